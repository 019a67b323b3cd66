//! Ways to take a head away. A gate ξ makes of the context c of a head `ξ c + (1 - ξ) r`. Michel et al. (2019) let r be 0,
//! which later layers have never seen; here r may also be what the head reads on average (mean ablation), or what it reads in
//! another text (resample ablation).
use std::collections::BTreeMap;

use tch::{Device, Kind, Tensor};

use crate::gates::RecordedWeights;
use crate::importance::Attended;
use crate::{Attention, Error, HeadLayout, HeadSet, Projections, Weights};

/// The replacement r of the context of each head of a model.
#[derive(Debug)]
pub struct Replacement {
    modules: BTreeMap<Attention, Vec<Contexts>>,
}

/// Contexts of the heads of one module.
#[derive(Debug)]
pub(crate) struct Contexts {
    values: Tensor,          // [rows, heads, positions, d_head], rows 1 or the batch
    lengths: Option<Tensor>, // [rows]: positions that count, behind which they begin anew; absent: one position serves all
}

impl Contexts {
    fn map(&self, change: impl Fn(&Tensor) -> Tensor) -> Self {
        Self { values: change(&self.values), lengths: self.lengths.as_ref().map(change) }
    }

    /// Those that replace the contexts of `queries` positions, `[rows, heads, queries or 1, d_head]`.
    pub(crate) fn of_first(&self, queries: i64) -> Tensor {
        self.at(0, queries)
    }

    fn at(&self, first: i64, count: i64) -> Tensor {
        let Some(lengths) = &self.lengths else { return self.values.shallow_clone() };
        let size = self.values.size();
        let places = Tensor::arange_start(first, first + count, (Kind::Int64, lengths.device()));
        let places = places.remainder_tensor(&lengths.unsqueeze(1)); // [rows, count]
        let index = places.unsqueeze(1).unsqueeze(-1).expand([size[0], size[1], count, size[3]], false);
        self.values.gather(2, &index, false)
    }

    /// The same for this many copies of the batch, one behind the other.
    pub(crate) fn repeat(&self, times: i64) -> Self {
        match self.values.size()[0] {
            1 => self.map(Tensor::shallow_clone),
            _ => self.map(|all| {
                let mut repeats = vec![1; all.dim()];
                repeats[0] = times;
                all.repeat(repeats)
            }),
        }
    }
}

impl Replacement {
    /// What the heads of other texts read: resample ablation. Row b replaces that of the batch.
    ///
    /// - `contexts`: of these texts, as [`contexts`](crate::GatedModel::contexts) gives them, heads that were removed included
    /// - `attended`: their modules, of which the real queries count
    pub(crate) fn of_texts(
        mut contexts: RecordedWeights,
        attended: &BTreeMap<Attention, Attended>,
        layout: &HeadLayout,
    ) -> Self {
        let module = |(attention, shape): (Attention, crate::LayerShape)| {
            let attended = &attended[&attention];
            let rows = attended.first_rows();
            let lengths = attended.queries.sum_dim_intlist(1, false, Kind::Int64).index_select(0, &rows);
            let of_layer = |layer| {
                let values = contexts.remove(&(attention, layer)).expect("a record of each module");
                Contexts { values: values.index_select(0, &rows), lengths: Some(lengths.shallow_clone()) }
            };
            (attention, (0..shape.layers).map(of_layer).collect())
        };
        Self { modules: layout.types().map(module).collect() }
    }

    /// The contexts of one module.
    pub(crate) fn of(&self, attention: Attention, layer: usize) -> &Contexts {
        &self.modules[&attention][layer]
    }

    fn map(&self, change: impl Fn(&Contexts) -> Contexts) -> Self {
        let changed = |layers: &Vec<Contexts>| layers.iter().map(&change).collect();
        Self { modules: self.modules.iter().map(|(&key, layers)| (key, changed(layers))).collect() }
    }

    /// The same on the same tensors.
    #[must_use]
    pub fn share(&self) -> Self {
        self.map(|contexts| contexts.map(Tensor::shallow_clone))
    }

    /// The same for a model of this kind on this device.
    #[must_use]
    pub fn to(&self, (kind, device): (Kind, Device)) -> Self {
        self.map(|Contexts { values, lengths }| Contexts {
            values: values.to_device(device).to_kind(kind),
            lengths: lengths.as_ref().map(|lengths| lengths.to_device(device)),
        })
    }

    /// Those of some rows of the batch; `rows`: `[kept]` of indices. A single row serves any batch and stays.
    #[must_use]
    pub fn select(&self, rows: &Tensor) -> Self {
        self.map(|contexts| match contexts.values.size()[0] {
            1 => contexts.map(Tensor::shallow_clone),
            _ => contexts.map(|all| all.index_select(0, &rows.to_device(all.device()))),
        })
    }

    /// The same for this many copies of the batch, one behind the other.
    pub(crate) fn repeat(&self, times: i64) -> Self {
        self.map(|contexts| contexts.repeat(times))
    }

    /// Those of one position, for any number of queries at it.
    pub(crate) fn at(&self, position: i64) -> Self {
        self.map(|contexts| Contexts { values: contexts.at(position, 1), lengths: None })
    }
}

/// The weights with `W_o m` of these heads in the bias of each W_o, m the first of their replacements; `None` if one has no bias.
pub(crate) fn fold(
    weights: &Weights,
    layout: &HeadLayout,
    heads: &HeadSet,
    means: &Replacement,
    projections: impl Fn(Attention, usize) -> Projections,
) -> Option<Result<Weights, Error>> {
    let mut folded = weights.share();
    for module in layout.heads_by_module() {
        let (attention, layer) = (module[0].attention(), module[0].layer_index());
        let removed: Vec<f64> = module.iter().map(|&id| f64::from(u8::from(heads.contains(id)))).collect();
        let name = projections(attention, layer).output;
        if removed.iter().all(|&removed| removed == 0.0) {
            continue;
        }
        if !weights.holds(&format!("{name}.bias")) {
            return None;
        }
        let sum = || {
            let weight = weights.get(&format!("{name}.weight"))?.to_kind(Kind::Double); // [d_model, kept * d_head]
            let options = (Kind::Double, weight.device());
            let tensor = |values: &[i64]| Tensor::from_slice(values).to_device(options.1);
            let present = tensor(&layout.kept(attention, layer));
            let removed = Tensor::from_slice(&removed).to_device(options.1).unsqueeze(1); // [kept, 1]
            let means = means.to(options);
            let means = means.of(attention, layer).values.get(0).select(1, 0).index_select(0, &present); // [kept, d_head]
            let bias = weights.get(&format!("{name}.bias"))?;
            let added = weight.detach().matmul(&(means * removed).flatten(0, 1)); // [d_model]
            Ok((bias.detach().to_kind(Kind::Double) + added).to_kind(bias.kind()))
        };
        match sum() {
            Ok(bias) => folded.insert(format!("{name}.bias"), bias),
            Err(fault) => return Some(Err(fault)),
        }
    }
    Some(Ok(folded))
}

/// The weights with zeros for the biases of attention modules that have none.
pub(crate) fn with_zero_biases(
    weights: &Weights,
    layout: &HeadLayout,
    projections: impl Fn(Attention, usize) -> Projections,
) -> Result<Weights, Error> {
    let mut biased = weights.share();
    for (attention, shape) in layout.types() {
        for layer in 0..shape.layers {
            let Projections { query, key, value, output } = projections(attention, layer);
            for name in [query, key, value, output] {
                let weight = weights.get(&format!("{name}.weight"))?;
                if !weights.holds(&format!("{name}.bias")) {
                    let zeros = Tensor::zeros([weight.size()[0]], (weight.kind(), weight.device()));
                    biased.insert(format!("{name}.bias"), zeros);
                }
            }
        }
    }
    Ok(biased)
}

/// Sums of the contexts of heads over real positions, which add up over batches.
#[derive(Debug, Default)]
pub struct ContextSums {
    /// `[heads, d_head]`, in double precision on the CPU, by attention type and layer.
    sums: BTreeMap<(Attention, usize), Tensor>,
    /// Positions in the sums.
    positions: BTreeMap<Attention, f64>,
}

impl ContextSums {
    pub(crate) fn new(contexts: &RecordedWeights, attended: &BTreeMap<Attention, Attended>) -> Self {
        let sum = |(&(attention, layer), contexts): (&(Attention, usize), &Tensor)| {
            let real = attended[&attention].queries.to_kind(Kind::Double); // [batch, query]
            let real = real.unsqueeze(1).unsqueeze(-1);
            let sum = (contexts.to_kind(Kind::Double) * real).sum_dim_intlist([0, 2].as_slice(), false, None);
            ((attention, layer), sum.to_device(Device::Cpu))
        };
        let count = |(&attention, attended): (&Attention, &Attended)| {
            (attention, attended.queries.sum(Kind::Double).double_value(&[]))
        };
        Self { sums: contexts.iter().map(sum).collect(), positions: attended.iter().map(count).collect() }
    }

    /// Adds those of another batch.
    pub fn merge(&mut self, other: &Self) {
        for (&key, sum) in &other.sums {
            let total = self.sums.entry(key).or_insert_with(|| sum.zeros_like());
            *total = &*total + sum;
        }
        for (&attention, count) in &other.positions {
            *self.positions.entry(attention).or_default() += count;
        }
    }

    /// The mean context of each head, in double precision on the CPU: mean ablation.
    pub fn means(&self) -> Replacement {
        let mut modules: BTreeMap<Attention, Vec<Contexts>> = BTreeMap::new();
        for (&(attention, _), sum) in &self.sums {
            let values = (sum / self.positions[&attention].max(1.0)).unsqueeze(0).unsqueeze(2); // [1, heads, 1, d_head]
            modules.entry(attention).or_default().push(Contexts { values, lengths: None });
        }
        Replacement { modules }
    }
}
