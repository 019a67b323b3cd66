//! A model with heads: all that sweeps, importance, removal and training need to know of one, whatever its family.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;

use tch::{Device, Kind, Tensor, no_grad};

use crate::ablation::fold;
use crate::importance::{Attended, Measured, Measuring};
use crate::pruning::without_heads;
use crate::storage::pack;
use crate::{
    Attention, AttentionRecord, ContextSums, Error, Gates, HeadId, HeadLayout, HeadMeans, HeadSet, Measure,
    ModelConfig, ModelDropout, Moments, RecordedWeights, Removal, Replacement, Weights,
};
use families::config::d_head;
use families::pruned_heads::by_layer;

/// An attention module: its type, and its layer counted from 0.
pub type Module = (Attention, usize);

/// A model whose heads can be gated.
pub trait GatedModel: Debug + Send + Sized {
    /// Sizes, symbols, labels.
    type Config: ModelConfig;
    /// A batch of inputs with what the model is to say of them.
    type Examples;

    /// A model on these tensors, which it shares.
    ///
    /// # Errors
    /// If a tensor is missing.
    fn new(config: Self::Config, weights: Weights) -> Result<Self, Error>;

    /// Sizes, symbols, labels.
    fn config(&self) -> &Self::Config;

    /// The tensors by name; those of a model in training require gradients.
    fn weights(&self) -> &Weights;

    /// Cross-entropy in nats of each example, `[batch]`: the `L(x)` of Michel et al. (2019), Equation 2, where `dropout` is
    /// off. `gates` of one row, or of one for each example; where they require a gradient, row b's is exactly `dL_b/dξ`.
    fn losses(&self, examples: &Self::Examples, gates: &Gates, dropout: &ModelDropout) -> Tensor;

    /// Queries and keys of the modules of each attention type.
    fn attended(&self, examples: &Self::Examples) -> BTreeMap<Attention, Attended>;

    /// Contexts of all heads under `gates`, before these are applied, at every position of a batch; zeros of heads that were
    /// removed. `[batch, heads, query, d_head]` by attention type and layer.
    fn contexts(&self, examples: &Self::Examples, gates: Gates) -> RecordedWeights {
        let record = AttentionRecord::default();
        no_grad(|| drop(self.losses(examples, &gates.contexts_in(&record), &ModelDropout::OFF)));
        record.take()
    }

    /// All gates open.
    fn open(&self) -> Gates {
        Gates::open(&self.layout(), self.options())
    }

    /// Sums of the contexts of heads at real positions, of which [means](ContextSums::means) are made.
    fn context_sums(&self, examples: &Self::Examples) -> ContextSums {
        ContextSums::new(&self.contexts(examples, self.open()), &self.attended(examples))
    }

    /// Contexts of these examples, to stand in the place of those of others.
    fn replacement(&self, examples: &Self::Examples) -> Replacement {
        Replacement::of_texts(self.contexts(examples, self.open()), &self.attended(examples))
    }

    /// Second moments of the contexts of one module, with `masked` masked, beside the `intact` model.
    ///
    /// # Errors
    /// If the model does not have one of the heads.
    fn moments(
        &self,
        intact: &Self,
        examples: &Self::Examples,
        (module, masked): (Module, &HeadSet),
    ) -> Result<Moments, Error> {
        let gates = Gates::masking(&self.layout(), std::slice::from_ref(masked), self.options())?;
        let (lacking, intact) = (self.contexts(examples, gates), intact.contexts(examples, intact.open()));
        Ok(Moments::new(&lacking[&module], &intact[&module], &self.attended(examples)[&module.0]))
    }

    /// The same model, in which W_o of a module multiplies what it reads of each head that is not `masked`, so that it writes what
    /// is closest to what the intact model writes: [`Moments`]. `None` if that takes numbers beyond the bound.
    ///
    /// # Errors
    /// If layers share their weights.
    fn refitted(
        &self,
        (module, masked): (Module, &HeadSet),
        moments: &Moments,
    ) -> Result<Option<Self>, Error> {
        let (layout, (attention, layer)) = (self.layout(), module);
        if layout.is_one_layer() {
            let fault = "all layers of this model are one, so that none can be fitted by itself";
            return Err(Error::Input(fault.to_owned()));
        }
        let present = layout.heads().into_iter().filter(|id| id.module() == module).collect::<Vec<_>>();
        let name = format!("{}.weight", self.config().projections(attention, layer).output);
        let output = self.weights().get(&name)?.detach(); // [d_model, present * d_head]
        let Some(scales) = moments.scales(&output, &present, masked) else { return Ok(None) };
        let scale = |id: &HeadId| scales.get(*id).unwrap_or(1.0);
        let columns =
            Tensor::from_slice(&present.iter().map(scale).collect::<Vec<_>>()).to_device(output.device());
        let columns = columns.repeat_interleave_self_int(d_head(self.config()), 0, None);
        let mut weights = self.weights().share();
        weights.insert(name, (output.to_kind(Kind::Double) * columns).to_kind(output.kind()));
        Self::new(self.config().clone(), weights).map(Some)
    }

    /// Raw outputs for one short input, `[.., outputs]`.
    fn probe(&self, gates: &Gates) -> Tensor;

    /// Writes `config.json` and `model.safetensors`.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn save(&self, folder: &Path) -> Result<(), Error> {
        self.config().write(&folder.join("config.json"))?;
        pack(self.config().storage(), self.weights(), d_head(self.config()))
            .write(&folder.join("model.safetensors"))
    }

    /// The heads of the model.
    fn layout(&self) -> HeadLayout {
        self.config().layout()
    }

    /// Kind and device of the weights.
    fn options(&self) -> (Kind, Device) {
        self.weights().options()
    }

    /// The same model on the same tensors, for another thread.
    ///
    /// # Errors
    /// Never, since all tensors are there.
    fn share(&self) -> Result<Self, Error> {
        Self::new(self.config().clone(), self.weights().share())
    }

    /// The same model with tensors of another kind.
    ///
    /// # Errors
    /// Never, since all tensors are there.
    fn to_kind(&self, kind: Kind) -> Result<Self, Error> {
        Self::new(self.config().clone(), self.weights().to_kind(kind))
    }

    /// The model without these heads, which gives the outputs that it gives with them masked.
    ///
    /// # Errors
    /// If it does not have one of them, all would be cut out, or a uniform removal leaves unequal layers.
    fn without_heads(&self, heads: &HeadSet, removal: Removal) -> Result<Self, Error> {
        let config = self.config();
        check_shared(&self.layout(), heads)?;
        let projections = |attention, layer| config.projections(attention, layer);
        let weights = without_heads(
            self.weights(),
            &self.layout(),
            heads,
            removal,
            config.queries_stay(),
            projections,
        )?;
        let config = match removal {
            Removal::Cut => config.without_heads(heads),
            Removal::Zeros => config.clone(),
            Removal::Uniform => config.without_heads(heads).uniform().map_err(|fault| {
                Error::Input(format!("what is left is no smaller model of the same kind: {fault}"))
            })?,
        };
        Self::new(config, weights)
    }

    /// The model without these heads, in which W_o makes of the mean of what each read a part of its bias: it gives the outputs that
    /// the model gives under mean ablation.
    ///
    /// # Errors
    /// As for [`without_heads`](Self::without_heads), or if W_o can have no bias, or layers share theirs.
    fn folded(&self, heads: &HeadSet, means: &Replacement, removal: Removal) -> Result<Self, Error> {
        let cannot =
            |why: &str| Err(Error::Input(format!("mean contexts cannot be folded into this model: {why}")));
        if self.layout().is_one_layer() {
            return cannot("all layers have the same bias, and contexts differ");
        }
        let (layout, projections) = (self.layout(), |kind, layer| self.config().projections(kind, layer));
        heads.iter().try_for_each(|id| layout.check(id))?;
        let output = |id: HeadId| projections(id.attention(), id.layer_index()).output;
        let (config, weights) =
            if heads.iter().all(|id| self.weights().holds(&format!("{}.bias", output(id)))) {
                (self.config().clone(), self.weights().share())
            } else {
                let Some(config) = self.config().with_attention_bias() else {
                    return cannot(
                        "its family has no bias of the output projection; heads can be removed without",
                    );
                };
                let mut weights = self.weights().share();
                for (name, shape) in config.inventory() {
                    if !weights.holds(&name) {
                        weights.insert(name, Tensor::zeros(shape, self.options()));
                    }
                }
                (config, weights)
            };
        let folded = fold(&weights, &layout, heads, means, projections)?;
        Self::new(config, folded)?.without_heads(heads, removal)
    }

    /// Measures the heads on a batch, under `gates` of one row: open ones for the intact model.
    ///
    /// Padding adds nothing, and means over batches do not depend on how they are cut.
    fn measure(&self, examples: &Self::Examples, gates: &Gates, measures: &BTreeSet<Measure>) -> Measured {
        let (modules, layout) = (self.attended(examples), self.layout());
        let mut others = measures.clone();
        let attributed =
            others.remove(&Measure::LogitAttribution).then(|| self.logit_attribution(examples, gates));
        let attributed = attributed.flatten().map(|means| (Measure::LogitAttribution, means));
        let measuring = Measuring { gates, modules: &modules, measures: &others, layout: &layout };
        let measured = measuring.run(|gates| self.losses(examples, gates, &ModelDropout::OFF));
        measured.into_iter().chain(attributed).collect()
    }

    /// The direct part of each head in the logit differences of examples that are choices of two, in logits, under `gates` of one row;
    /// `None` of models that do not predict tokens one after another.
    fn logit_attribution(&self, _: &Self::Examples, _: &Gates) -> Option<HeadMeans> {
        None
    }

    /// Refuses a model whose gates do not do what they are for: masking a head must give what zeros in its columns of W_o
    /// give. Of each layer one head is tried, another one from layer to layer.
    ///
    /// # Errors
    /// If the two differ by more than rounding, or the model computes NaN.
    fn check_gates(&self) -> Result<(), Error> {
        let layout = self.layout();
        let open = Gates::open(&layout, self.options());
        for module in layout.heads_by_module() {
            let id = module[module[0].layer_index() % module.len()];
            // layers that share their weights have the same heads
            let turns = layout.heads().into_iter().filter(|other| {
                *other == id || (layout.is_one_layer() && other.head_index() == id.head_index())
            });
            let set = HeadSet::from_iter(turns);
            if set.len() == layout.heads().len() {
                continue;
            }
            let masked = Gates::masking(&layout, std::slice::from_ref(&set), self.options())?;
            let zeroed = self.without_heads(&set, Removal::Zeros)?;
            let (masked, zeroed) = no_grad(|| (self.probe(&masked), zeroed.probe(&open)));
            let size = zeroed.abs().max().double_value(&[]);
            let gap = (masked - zeroed).abs().max().double_value(&[]) / size.max(1.0);
            if gap.is_nan() {
                return Err(Error::NotANumber);
            }
            if gap > tolerance(self.options().0) {
                return Err(Error::Input(format!(
                    "masking head {id} is not the same as zeros in its columns of the output projection: the outputs differ by \
                     {gap:e} of the greatest, so this model is read wrongly"
                )));
            }
        }
        Ok(())
    }
}

/// Refuses heads that are not the same in all layers of a model whose layers share their weights.
fn check_shared(layout: &HeadLayout, heads: &HeadSet) -> Result<(), Error> {
    for (attention, shape) in layout.types().filter(|_| layout.is_one_layer()) {
        let of_layer = by_layer(attention, heads);
        if !of_layer.is_empty() && !(0..shape.layers).all(|layer| of_layer.get(&layer) == of_layer.get(&0)) {
            let fault = "all layers of this model are one, so that a head can only be removed from all of them: \
                 the heads must be the same in each layer, as those of a curve by iterative-prune --unit group are";
            return Err(Error::Input(fault.to_owned()));
        }
    }
    Ok(())
}

/// Greatest gap that two orders of the same sums may leave, as a share of the greatest output.
pub(crate) fn tolerance(kind: Kind) -> f64 {
    match kind {
        Kind::Double => 1e-9,
        Kind::Float => 1e-4,
        _ => 0.1,
    }
}
