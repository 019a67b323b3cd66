//! Gates: the ξ of Michel et al. (2019), Section 2.3, as an argument of every forward pass.
//!
//! One tensor `[rows, heads]` per attention module; rows: 1 or the batch size. A gate of 1 keeps a head, 0 masks it. To evaluate many head
//! sets in one batch, repeat each example and give every copy its own row of gates. Gates that require a gradient give ∂L/∂ξ. Gates
//! `[rows, heads, queries]` act on each query separately.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tch::{Device, Kind, Tensor};

use crate::ablation::Contexts;
use crate::{Attention, Error, HeadId, HeadLayout, HeadSet, Replacement};

/// Gates of all heads of a model, for each row of a batch.
#[derive(Debug)]
pub struct Gates {
    modules: BTreeMap<Attention, Vec<Module>>,
    replacement: Option<Replacement>, // replaces masked heads' outputs; 0 if absent
    record: Option<AttentionRecord>,
    contexts: Option<AttentionRecord>,
    residuals: Option<AttentionRecord>,
}

#[derive(Debug)]
struct Module {
    values: Tensor, // [rows, heads] or [rows, heads, queries]
    open: bool,     // known to be 1 everywhere, so that no product is needed
}

/// Gates of one attention module, and the records of its attention weights, head outputs and residual stream.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    values: &'a Tensor,
    open: bool,
    replacement: Option<&'a Contexts>,
    record: Option<Entry<'a>>,
    contexts: Option<Entry<'a>>,
    residuals: Option<Entry<'a>>,
}

/// A record, and the key of a module in it.
type Entry<'a> = (&'a AttentionRecord, Attention, usize);

impl<'a> From<&'a Tensor> for Gate<'a> {
    fn from(values: &'a Tensor) -> Self {
        Self { values, open: false, replacement: None, record: None, contexts: None, residuals: None }
    }
}

impl<'a> Gate<'a> {
    /// Replaces the outputs of masked heads.
    pub(crate) fn replaced_by(self, replacement: Option<&'a Contexts>) -> Self {
        Self { replacement, ..self }
    }

    /// Returns the gates, `[rows, heads]` or `[rows, heads, queries]`.
    pub fn values(&self) -> &Tensor {
        self.values
    }

    /// Returns `ξ c + (1 - ξ) r` for head outputs c, `context`, `[batch, kept, query, d_head]`, and replacements r. `kept`: their heads,
    /// by default all. Gates of later queries are ignored. Only `ξ c` is differentiated with respect to ξ (Equation 2), unless r is
    /// [derived](crate::Replacement::derived).
    pub(crate) fn apply(&self, context: Tensor, kept: Option<&Tensor>) -> Tensor {
        if let Some((record, attention, layer)) = self.contexts {
            let all = || {
                let (mut shape, heads) = (context.size(), self.values.size()[1]);
                shape[1] = heads;
                context.new_zeros(shape, (context.kind(), context.device()))
            };
            let whole =
                kept.map_or_else(|| context.shallow_clone(), |kept| all().index_copy(1, kept, &context));
            record.lock().insert((attention, layer), whole);
        }
        if self.open && !self.values.requires_grad() {
            assert!([1, context.size()[0]].contains(&self.values.size()[0]), "rows: 1 or the batch");
            return context;
        }
        let values =
            kept.map_or_else(|| self.values.shallow_clone(), |kept| self.values.index_select(1, kept));
        let gates = match values.dim() {
            3 => values.narrow(2, 0, context.size()[2]), // [rows, kept, query]
            _ => values.unsqueeze(-1),                   // [rows, kept, 1]
        };
        let (kind, gates) = (context.kind(), gates.unsqueeze(-1));
        let replaced = self.replacement.map(|contexts| {
            let all = contexts.of_first(context.size()[2]);
            let own = kept.map_or_else(|| all.shallow_clone(), |kept| all.index_select(1, kept));
            own * (1.0 - if contexts.is_derived { gates.shallow_clone() } else { gates.detach() })
        });
        let gated = context * gates;
        replaced.map_or_else(|| gated.shallow_clone(), |replaced| &gated + replaced).to_kind(kind)
    }

    /// If asked for, records the cosine similarity of the residual stream before and after the module, repeated for each head:
    /// `[batch, heads, query]`. `before`, `after`: `[batch, query, d_model]`; returns `after`.
    pub fn passing(&self, before: &Tensor, after: Tensor) -> Tensor {
        if let Some((record, attention, layer)) = self.residuals {
            let wide = |x: &Tensor| x.detach().to_kind(Kind::Double);
            let cosine = Tensor::cosine_similarity(&wide(before), &wide(&after), 2, f64::MIN_POSITIVE);
            let of_heads = cosine.unsqueeze(1).expand([-1, self.values.size()[1], -1], false);
            record.lock().insert((attention, layer), of_heads);
        }
        after
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Records attention weights, `[batch, heads, query, key]`, if asked for; returns them.
    pub(crate) fn record(&self, weights: Tensor) -> Tensor {
        let Some((record, attention, layer)) = self.record else { return weights };
        // Weights of the first layer depend on no gate. If gradients for gates are wanted, gradients for these weights may be too.
        let is_leaf = self.values.requires_grad() && !weights.requires_grad();
        let weights = if is_leaf { weights.set_requires_grad(true) } else { weights };
        record.lock().insert((attention, layer), weights.shallow_clone());
        weights
    }
}

/// Tensors of the last forward pass whose gates record here, such as attention weights ([`Gates::recorded_in`]).
#[derive(Debug, Clone, Default)]
pub struct AttentionRecord(Arc<Mutex<RecordedWeights>>);

/// Weights `[batch, heads, query, key]` by attention type and layer, from 0; part of the autograd graph if gradients are enabled.
pub type RecordedWeights = BTreeMap<(Attention, usize), Tensor>;

impl AttentionRecord {
    /// Takes the recorded tensors out.
    pub fn take(&self) -> RecordedWeights {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RecordedWeights> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gates {
    fn new(modules: BTreeMap<Attention, Vec<Module>>) -> Self {
        Self { modules, replacement: None, record: None, contexts: None, residuals: None }
    }

    /// Returns the gates of the full model, all open: one row, which serves any batch. To differentiate with respect to gates, use
    /// [`from_stacked`](Self::from_stacked).
    pub fn open(layout: &HeadLayout, options: (Kind, Device)) -> Self {
        let ones = |shape: crate::LayerShape| {
            let layer = |_| Module { values: Tensor::ones([1, shape.heads as i64], options), open: true };
            (0..shape.layers).map(layer).collect()
        };
        Self::new(layout.types().map(|(attention, shape)| (attention, ones(shape))).collect())
    }

    /// Returns one row of gates per head set, with the gates of its heads closed. Fails if the model lacks one of the heads.
    pub fn masking(layout: &HeadLayout, sets: &[HeadSet], options: (Kind, Device)) -> Result<Self, Error> {
        let mut gates: BTreeMap<Attention, Vec<Vec<f32>>> = layout
            .types()
            .map(|(attention, shape)| (attention, vec![vec![1.0; sets.len() * shape.heads]; shape.layers]))
            .collect();
        for (row, set) in sets.iter().enumerate() {
            for id in set.iter() {
                layout.check(id)?;
                if let Some(layers) = gates.get_mut(&id.attention()) {
                    let values = &mut layers[id.layer_index()];
                    let heads = values.len() / sets.len();
                    values[row * heads + id.head_index()] = 0.0;
                }
            }
        }
        let rows = sets.len() as i64;
        let module = |values: Vec<f32>| Module {
            values: Tensor::from_slice(&values).view([rows, -1]).to_device(options.1).to_kind(options.0),
            open: values.iter().all(|&gate| gate == 1.0),
        };
        let modules = |layers: Vec<Vec<f32>>| layers.into_iter().map(module).collect();
        Ok(Self::new(gates.into_iter().map(|(key, layers)| (key, modules(layers))).collect()))
    }

    /// Returns one row in which the gates of `heads` are `values`, `[heads]`, and all others are open; gradients flow back to `values`.
    /// Fails if the model lacks one of the heads.
    pub fn of_heads(layout: &HeadLayout, heads: &[HeadId], values: &Tensor) -> Result<Self, Error> {
        heads.iter().try_for_each(|&id| layout.check(id))?;
        let mut gates = Self::open(layout, (values.kind(), values.device()));
        for (&attention, layers) in &mut gates.modules {
            for (layer, module) in layers.iter_mut().enumerate() {
                let is_own = |id: &HeadId| id.attention() == attention && id.layer_index() == layer;
                let own = || heads.iter().zip(0_i64..).filter(|(id, _)| is_own(id));
                let index = |places: Vec<i64>| Tensor::from_slice(&places).to_device(values.device());
                let from = index(own().map(|(_, place)| place).collect());
                let to = index(own().map(|(id, _)| id.head_index() as i64).collect());
                if from.numel() > 0 {
                    let values = values.index_select(0, &from).unsqueeze(0); // [1, own]
                    *module = Module { values: module.values.index_copy(1, &to, &values), open: false };
                }
            }
        }
        Ok(gates)
    }

    /// Creates gates from one tensor per attention type, `[layers, rows, heads]` or `[layers, rows, heads, queries]`; gradients flow back
    /// to them.
    pub fn from_stacked(stacked: &BTreeMap<Attention, Tensor>) -> Self {
        let module = |values| Module { values, open: false };
        let modules = |layers: &Tensor| layers.unbind(0).into_iter().map(module).collect();
        Self::new(stacked.iter().map(|(&attention, layers)| (attention, modules(layers))).collect())
    }

    /// Returns the gates of each attention type as one tensor, `[layers, rows, heads]` or `[layers, rows, heads, queries]`.
    pub fn stacked(&self) -> BTreeMap<Attention, Tensor> {
        let stacked = |layers: &Vec<Module>| {
            Tensor::stack(&layers.iter().map(|module| &module.values).collect::<Vec<_>>(), 0)
        };
        self.modules.iter().map(|(&attention, layers)| (attention, stacked(layers))).collect()
    }

    /// Records attention weights in `record`, which requires the explicit path instead of the fused kernel.
    pub fn recorded_in(self, record: &AttentionRecord) -> Self {
        Self { record: Some(record.clone()), ..self }
    }

    /// Records head outputs before gating in `record`.
    pub(crate) fn contexts_in(self, record: &AttentionRecord) -> Self {
        Self { contexts: Some(record.clone()), ..self }
    }

    /// Records the cosine similarity of the residual stream before and after each module in `record`.
    pub(crate) fn residuals_in(self, record: &AttentionRecord) -> Self {
        Self { residuals: Some(record.clone()), ..self }
    }

    pub(crate) fn is_recorded(&self) -> bool {
        [&self.record, &self.contexts, &self.residuals].into_iter().any(Option::is_some)
    }

    /// Replaces the outputs of masked heads with `replacement`, which has one row or one per row of the batch.
    #[must_use]
    pub fn replaced_by(self, replacement: Option<Replacement>) -> Self {
        Self { replacement, ..self }
    }

    /// Takes the replacements of `others`, row by row or, given the example of each row, `of_row`, `[batch]`, by example.
    pub(crate) fn replaced_like(self, others: &Self, of_row: Option<&Tensor>) -> Self {
        let own = |all: &Replacement| of_row.map_or_else(|| all.share(), |of_row| all.select(of_row));
        self.replaced_by(others.replacement.as_ref().map(own))
    }

    /// Returns the gates for queries that are all at this position; `None` without a replacement.
    pub(crate) fn at(&self, position: i64) -> Option<Self> {
        let replacement = self.replacement.as_ref()?.at(position);
        Some(self.share().replaced_by(Some(replacement)))
    }

    /// Multiplies the kept gates of each layer by heads / kept, so that the layer's output keeps its scale. Heads that were removed
    /// according to `layout` do not count, and a layer whose heads are all masked stays closed.
    ///
    /// Differs from the paper, which masks without rescaling.
    pub fn rescaled(&self, layout: &HeadLayout) -> Self {
        let rescale = |attention: Attention, layer: usize, Module { values: gates, open }: &Module| {
            let present = layout.kept(attention, layer);
            let places = Tensor::from_slice(&present).to_device(gates.device());
            // rounding factors such as 12/11 to bf16 would cost as much precision as the rest of the model
            let gates = if gates.kind() == Kind::BFloat16 { &gates.to_kind(Kind::Float) } else { gates };
            let own = gates.index_select(1, &places); // [rows, present]
            let kept = own.ne(0.0).sum_dim_intlist(1, true, gates.kind()); // [rows, 1]
            let values = gates * (present.len() as f64) / kept.clamp_min(1.0);
            Module { values, open: *open && !present.is_empty() }
        };
        let layers = |(&attention, layers): (&Attention, &Vec<Module>)| {
            let layers = layers.iter().enumerate().map(|(layer, gates)| rescale(attention, layer, gates));
            (attention, layers.collect())
        };
        Self { modules: self.modules.iter().map(layers).collect(), ..self.share() }
    }

    /// Returns the gates of one module; layers are counted from 0. Panics if the model has no such module.
    pub fn of(&self, attention: Attention, layer: usize) -> Gate<'_> {
        let Module { values, open } = &self.modules[&attention][layer];
        Gate {
            values,
            open: *open,
            replacement: self.replacement.as_ref().and_then(|replacement| replacement.of(attention, layer)),
            record: self.record.as_ref().map(|record| (record, attention, layer)),
            contexts: self.contexts.as_ref().map(|record| (record, attention, layer)),
            residuals: self.residuals.as_ref().map(|record| (record, attention, layer)),
        }
    }

    /// Returns the number of rows: 1, or the batch.
    pub fn rows(&self) -> i64 {
        self.modules.values().flatten().next().map_or(1, |module| module.values.size()[0])
    }

    /// Selects rows of the batch; `rows`: indices, `[kept]`. A single row serves any batch and is kept.
    pub fn select(&self, rows: &Tensor) -> Self {
        let selected = self.map(|gates| match gates.size()[0] {
            1 => gates.shallow_clone(),
            _ => gates.index_select(0, rows),
        });
        selected.replaced_by(self.replacement.as_ref().map(|replacement| replacement.select(rows)))
    }

    pub(crate) fn share(&self) -> Self {
        self.map(Tensor::shallow_clone)
    }

    /// `change` must leave open gates open.
    fn map(&self, change: impl Fn(&Tensor) -> Tensor) -> Self {
        let changed = |layers: &Vec<Module>| {
            let module = |Module { values, open }: &Module| Module { values: change(values), open: *open };
            layers.iter().map(module).collect()
        };
        Self {
            modules: self.modules.iter().map(|(&key, layers)| (key, changed(layers))).collect(),
            replacement: self.replacement.as_ref().map(Replacement::share),
            record: self.record.clone(),
            contexts: self.contexts.clone(),
            residuals: self.residuals.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LayerShape;

    const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);

    fn layout() -> HeadLayout {
        HeadLayout::new([(Attention::EncEnc, LayerShape::plain(2, 3, 6))])
    }

    fn set(names: &[&str]) -> HeadSet {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn values(gates: &Gates, layer: usize) -> Vec<Vec<f64>> {
        gates.of(Attention::EncEnc, layer).values().try_into().unwrap()
    }

    #[test]
    fn rescaling_keeps_the_sum_of_gates_unless_no_head_is_left() {
        let sets = [set(&["enc-enc:1:2"]), set(&["enc-enc:1:1", "enc-enc:1:2", "enc-enc:1:3"])];
        let gates = Gates::masking(&layout(), &sets, OPTIONS).unwrap().rescaled(&layout());
        // 3 heads, 2 kept: each kept gate is 3/2
        assert_eq!(values(&gates, 0), [[1.5, 0.0, 1.5], [0.0, 0.0, 0.0]]);
        assert_eq!(values(&gates, 1), [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]);
        // one of 3 heads is removed and one masked, which leaves 2 heads with 1 kept; the gate of a removed head does not matter
        let layout = layout().without(&set(&["enc-enc:1:2"])).unwrap();
        let gates = Gates::masking(&layout, &[set(&["enc-enc:1:1"])], OPTIONS).unwrap().rescaled(&layout);
        assert_eq!((values(&gates, 0)[0][0], values(&gates, 0)[0][2]), (0.0, 2.0));
    }

    /// In any order. The other layer is known to be open. Values get the derivatives of their gates.
    #[test]
    fn gates_of_some_heads_leave_the_others_open() {
        let heads = ["enc-enc:2:3", "enc-enc:2:1"].map(|name| name.parse().unwrap());
        let chosen = Tensor::from_slice(&[0.25, 0.5]).set_requires_grad(true);
        let gates = Gates::of_heads(&layout(), &heads, &chosen).unwrap();
        assert_eq!(values(&gates, 0), [[1.0, 1.0, 1.0]]);
        assert_eq!(values(&gates, 1), [[0.5, 1.0, 0.25]]);
        assert!(gates.of(Attention::EncEnc, 0).open && !gates.of(Attention::EncEnc, 1).open);
        let weighted = gates.of(Attention::EncEnc, 1).values() * Tensor::from_slice(&[3.0, 5.0, 7.0]);
        weighted.sum(None).backward();
        assert_eq!(Vec::<f64>::try_from(chosen.grad()).unwrap(), [7.0, 3.0]);
        assert!(Gates::of_heads(&layout(), &["self:1:1".parse().unwrap()], &chosen).is_err());
    }

    #[test]
    fn gates_that_need_no_product_are_known() {
        let known = |gates: &Gates| [0, 1].map(|layer| gates.of(Attention::EncEnc, layer).open);
        let open = Gates::open(&layout(), OPTIONS);
        assert_eq!(known(&open), [true, true]);
        assert_eq!(known(&Gates::from_stacked(&open.stacked())), [false, false]);
        let masking = Gates::masking(&layout(), &[set(&[]), set(&["enc-enc:2:3"])], OPTIONS).unwrap();
        let rows = Tensor::from_slice(&[0_i64]);
        let recorded = masking.share().recorded_in(&AttentionRecord::default());
        for gates in [&masking, &masking.rescaled(&layout()), &masking.select(&rows), &recorded] {
            assert_eq!(known(gates), [true, false]);
        }
    }
}
