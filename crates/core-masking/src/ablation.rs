//! Replacements for masked heads. A gate ξ turns a head output c into `ξ c + (1 - ξ) r`. In Michel et al. (2019) r is 0, which later layers
//! have never seen; here r may also be the head's mean output (mean ablation) or its output on another text (resample ablation).
use std::collections::{BTreeMap, BTreeSet};

use tch::{Device, Kind, Tensor};

use crate::gates::RecordedWeights;
use crate::importance::Attended;
use crate::{Attention, Error, HeadLayout, HeadSet, Projections, Weights};

/// The replacement r of each head output of a model.
#[derive(Debug)]
pub struct Replacement {
    modules: BTreeMap<(Attention, usize), Contexts>, // by attention type and layer
}

/// Replacements of the head outputs of one module.
#[derive(Debug)]
pub(crate) struct Contexts {
    values: Tensor,          // [rows, heads, positions, d_head], rows 1 or the batch
    lengths: Option<Tensor>, // [rows]: positions after which a row repeats; `None` if one position serves all
    /// True if derivatives with respect to gates include the replacement.
    pub(crate) is_derived: bool,
}

impl Contexts {
    fn map(&self, change: impl Fn(&Tensor) -> Tensor) -> Self {
        Self { values: change(&self.values), lengths: self.lengths.as_ref().map(change), ..*self }
    }

    /// Returns the replacements at the first `queries` positions, `[rows, heads, queries or 1, d_head]`.
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

    /// Repeats the rows for this many copies of the batch.
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
    /// Takes head outputs on other texts as replacements: resample ablation. Row b replaces row b of the batch.
    ///
    /// - `contexts`: head outputs on these texts, from [`contexts`](crate::GatedModel::contexts), removed heads included
    /// - `attended`: by attention type, which positions of these texts are real rather than padding
    pub(crate) fn of_texts(contexts: RecordedWeights, attended: &BTreeMap<Attention, Attended>) -> Self {
        let of_module = |((attention, layer), values): ((Attention, usize), Tensor)| {
            let attended = &attended[&attention];
            let rows = attended.first_rows();
            let lengths = attended.queries.sum_dim_intlist(1, false, Kind::Int64).index_select(0, &rows);
            let contexts =
                Contexts { values: values.index_select(0, &rows), lengths: Some(lengths), is_derived: false };
            ((attention, layer), contexts)
        };
        Self { modules: contexts.into_iter().map(of_module).collect() }
    }

    /// Concatenates the rows of one or more replacements, padded to the longest.
    #[must_use]
    pub fn joined(parts: &[Self]) -> Self {
        let of_module = |&key: &(Attention, usize)| {
            let parts: Vec<&Contexts> = parts.iter().map(|part| &part.modules[&key]).collect();
            let longest = parts.iter().map(|part| part.values.size()[2]).max().unwrap_or(0);
            let padded = |part: &&Contexts| {
                let missing = longest - part.values.size()[2];
                part.values.constant_pad_nd([0, 0, 0, missing])
            };
            let lengths: Option<Vec<&Tensor>> = parts.iter().map(|part| part.lengths.as_ref()).collect();
            let contexts = Contexts {
                values: Tensor::cat(&parts.iter().map(padded).collect::<Vec<_>>(), 0),
                lengths: lengths.map(|lengths| Tensor::cat(&lengths, 0)),
                is_derived: false,
            };
            (key, contexts)
        };
        Self { modules: parts[0].modules.keys().map(of_module).collect() }
    }

    /// Includes the replacement in derivatives with respect to gates, which gives the first-order effect of replacing heads.
    #[must_use]
    pub fn derived(mut self) -> Self {
        self.modules.values_mut().for_each(|contexts| contexts.is_derived = true);
        self
    }

    /// Keeps only the replacements in the modules of these heads and, given `positions`, only the first positions of each row.
    #[must_use]
    pub fn only(mut self, heads: &HeadSet, positions: Option<i64>) -> Self {
        let modules: BTreeSet<_> = heads.iter().map(|id| (id.attention(), id.layer_index())).collect();
        self.modules.retain(|module, _| modules.contains(module));
        for contexts in self.modules.values_mut() {
            let (Some(positions), Some(lengths)) = (positions, &contexts.lengths) else { continue };
            let kept = positions.min(contexts.values.size()[2]);
            contexts.values = contexts.values.narrow(2, 0, kept).contiguous();
            contexts.lengths = Some(lengths.clamp_max(kept));
        }
        self
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        let of = |contexts: &Contexts| contexts.values.numel() * contexts.values.kind().elt_size_in_bytes();
        self.modules.values().map(of).sum::<usize>() as u64
    }

    pub(crate) fn of(&self, attention: Attention, layer: usize) -> Option<&Contexts> {
        self.modules.get(&(attention, layer))
    }

    fn map(&self, change: impl Fn(&Contexts) -> Contexts) -> Self {
        Self { modules: self.modules.iter().map(|(&key, contexts)| (key, change(contexts))).collect() }
    }

    /// Returns a replacement that shares these tensors.
    #[must_use]
    pub fn share(&self) -> Self {
        self.map(|contexts| contexts.map(Tensor::shallow_clone))
    }

    /// Converts the tensors to this kind and device.
    #[must_use]
    pub fn to(&self, (kind, device): (Kind, Device)) -> Self {
        self.map(|Contexts { values, lengths, is_derived }| Contexts {
            values: values.to_device(device).to_kind(kind),
            lengths: lengths.as_ref().map(|lengths| lengths.to_device(device)),
            is_derived: *is_derived,
        })
    }

    /// Selects rows of the batch; `rows`: indices, `[kept]`. A single row serves any batch and is kept.
    #[must_use]
    pub fn select(&self, rows: &Tensor) -> Self {
        self.map(|contexts| match contexts.values.size()[0] {
            1 => contexts.map(Tensor::shallow_clone),
            _ => contexts.map(|all| all.index_select(0, &rows.to_device(all.device()))),
        })
    }

    /// Repeats the rows for this many copies of the batch.
    pub(crate) fn repeat(&self, times: i64) -> Self {
        self.map(|contexts| contexts.repeat(times))
    }

    /// Returns the replacements at one position, which then serve any number of queries.
    pub(crate) fn at(&self, position: i64) -> Self {
        self.map(|contexts| Contexts { values: contexts.at(position, 1), lengths: None, ..*contexts })
    }
}

/// Adds `W_o m` of these heads to the bias of each W_o, where m is the replacement in the first row. Fails if a W_o has no bias.
pub(crate) fn fold(
    weights: &Weights,
    layout: &HeadLayout,
    heads: &HeadSet,
    means: &Replacement,
    projections: impl Fn(Attention, usize) -> Projections,
) -> Result<Weights, Error> {
    let mut folded = weights.share();
    for module in layout.heads_by_module() {
        let (attention, layer) = (module[0].attention(), module[0].layer_index());
        let removed: Vec<f64> = module.iter().map(|&id| f64::from(u8::from(heads.contains(id)))).collect();
        if removed.iter().all(|&removed| removed == 0.0) {
            continue;
        }
        let name = projections(attention, layer).output;
        let weight = weights.get(&format!("{name}.weight"))?.detach().to_kind(Kind::Double); // [d_model, kept * d_head]
        let bias = weights.get(&format!("{name}.bias"))?;
        let device = weight.device();
        let present = Tensor::from_slice(&layout.kept(attention, layer)).to_device(device);
        let removed = Tensor::from_slice(&removed).to_device(device).unsqueeze(1); // [kept, 1]
        let means = means.modules[&(attention, layer)].values.get(0).select(1, 0); // [heads, d_head]
        let means = means.to_device(device).to_kind(Kind::Double).index_select(0, &present); // [kept, d_head]
        let added = weight.matmul(&(means * removed).flatten(0, 1)); // [d_model]
        let sum = (bias.detach().to_kind(Kind::Double) + added).to_kind(bias.kind());
        folded.insert(format!("{name}.bias"), sum);
    }
    Ok(folded)
}

/// Sums of head outputs over real positions, not padding. The sums of several batches can be merged.
#[derive(Debug, Default)]
pub struct HeadOutputSums {
    /// `[heads, d_head]`, in double precision on the CPU, by attention type and layer.
    sums: BTreeMap<(Attention, usize), Tensor>,
    /// Number of positions summed over.
    positions: BTreeMap<Attention, f64>,
}

impl HeadOutputSums {
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

    /// Adds the sums of another batch.
    pub fn merge(&mut self, other: &Self) {
        for (&key, sum) in &other.sums {
            let total = self.sums.entry(key).or_insert_with(|| sum.zeros_like());
            *total = &*total + sum;
        }
        for (&attention, count) in &other.positions {
            *self.positions.entry(attention).or_default() += count;
        }
    }

    /// Returns the mean output of each head, in double precision on the CPU: mean ablation.
    pub fn means(&self) -> Replacement {
        let mean = |(&(attention, layer), sum): (&(Attention, usize), &Tensor)| {
            let values = (sum / self.positions[&attention].max(1.0)).unsqueeze(0).unsqueeze(2); // [1, heads, 1, d_head]
            ((attention, layer), Contexts { values, lengths: None, is_derived: false })
        };
        let modules = self.sums.iter().map(mean).collect();
        Replacement { modules }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Classifier, ClassifierConfig, GatedModel};
    use tch::no_grad;

    const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);

    /// 2 layers of 3 heads of width 4.
    fn model() -> Classifier {
        let json = serde_json::json!({
            "model_type": "bert", "vocab_size": 23, "hidden_size": 12, "num_hidden_layers": 2,
            "num_attention_heads": 3, "intermediate_size": 14, "hidden_act": "gelu",
            "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": 0.3,
        });
        let config: ClassifierConfig = serde_json::from_value(json).unwrap();
        Classifier::random(config, 3, OPTIONS).unwrap()
    }

    fn logits(model: &Classifier, replacement: Option<&Replacement>) -> Vec<Tensor> {
        let names = ["", "self:1:2", "self:1:1+self:1:3", "self:2:1", "self:1:1+self:1:2+self:1:3+self:2:2"];
        let sets = names.map(|name| if name.is_empty() { HeadSet::none() } else { name.parse().unwrap() });
        let texts = examples(model).inputs;
        let variants = model.variants(&sets, false).unwrap().replaced_by(replacement);
        [1, 4]
            .into_iter()
            .flat_map(|together| no_grad(|| model.sweep(&texts, &variants, together, None)).0)
            .collect()
    }

    fn examples(model: &Classifier) -> crate::classifier::LabelledBatch {
        let (long, short): (&[u32], &[u32]) = (&[3, 9, 14, 2, 7], &[5, 1]);
        let texts = model.batch(&[(long, &[0; 5]), (short, &[0; 2])]).unwrap();
        crate::classifier::LabelledBatch { inputs: texts, labels: Tensor::from_slice(&[0_i64, 1]) }
    }

    #[test]
    fn zero_means_are_zero_ablation_and_own_head_outputs_change_nothing() {
        let model = model();
        let zeros = model.context_sums(&examples(&model)).means().to(OPTIONS);
        let zeros = zeros.map(|contexts| contexts.map(Tensor::zeros_like));
        let plain = logits(&model, None);
        assert_eq!(logits(&model, Some(&zeros)), plain, "to the last bit");
        let own = logits(&model, Some(&model.replacement(&examples(&model))));
        let full = &plain[0];
        for (place, (found, masked)) in own.iter().zip(&plain).enumerate() {
            let gap = |other: &Tensor| (found - other).abs().max().double_value(&[]);
            assert!(gap(full) < 1e-5, "{}", gap(full));
            assert!(place % 5 == 0 || gap(masked) > 1e-4, "heads matter: {}", gap(masked));
        }
    }

    /// Two rows, of 2 and 3 positions, with 1 head of width 1.
    #[test]
    fn a_row_repeats_after_its_length() {
        let row = |values: &[f32]| Contexts {
            values: Tensor::from_slice(values).view([1, 1, -1, 1]),
            lengths: Some(Tensor::from_slice(&[values.len() as i64])),
            is_derived: false,
        };
        let key = (Attention::SelfAttention, 0);
        let of = |contexts| Replacement { modules: BTreeMap::from([(key, contexts)]) };
        let both = Replacement::joined(&[of(row(&[1.0, 2.0])), of(row(&[3.0, 4.0, 5.0]))]);
        let numbers = |tensor: Tensor| crate::to_vec::<f64>(&tensor);
        let contexts = &both.modules[&key];
        assert_eq!(numbers(contexts.of_first(5)), [1.0, 2.0, 1.0, 2.0, 1.0, 3.0, 4.0, 5.0, 3.0, 4.0]);
        assert_eq!(numbers(both.at(7).modules[&key].of_first(1)), [2.0, 4.0]);
        let first = both.share().only(&"self:1:1".parse().unwrap(), Some(2));
        assert_eq!(numbers(first.modules[&key].of_first(2)), [1.0, 2.0, 3.0, 4.0]);
        assert!(both.only(&"self:2:1".parse().unwrap(), None).modules.is_empty());
    }
}
