//! A model with attention heads: the interface that sweeps, importance, removal and training use, for all families.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;

use tch::{Device, Kind, Tensor, no_grad};

use crate::ablation::fold;
use crate::importance::{Attended, Measured, Measuring};
use crate::pruning::without_heads;
use crate::storage::pack;
use crate::{
    Attention, AttentionRecord, Error, Gates, HeadId, HeadLayout, HeadMeans, HeadOutputSums, HeadSet,
    Measure, ModelConfig, ModelDropout, Moments, RecordedWeights, Removal, Replacement, Weights,
};
use families::config::d_head;
use families::pruned_heads::by_layer;

/// An attention module: its type, and its layer counted from 0.
pub type Module = (Attention, usize);

/// A model whose heads can be gated.
pub trait GatedModel: Debug + Send + Sized {
    /// Sizes, special tokens, labels.
    type Config: ModelConfig;
    /// A batch of inputs with their labels.
    type Examples;

    /// Builds the model on these tensors, which it shares. Fails if one is missing.
    fn new(config: Self::Config, weights: Weights) -> Result<Self, Error>;

    /// Returns the configuration.
    fn config(&self) -> &Self::Config;

    /// Returns the tensors by name; they require gradients if the model is in training.
    fn weights(&self) -> &Weights;

    /// Returns the cross-entropy in nats of each example, `[batch]`: without `dropout` the `L(x)` of Michel et al. (2019), Equation 2.
    /// `gates` have one row, or one per example, in which case the gradient in row b is exactly `dL_b/dξ`.
    fn losses(&self, examples: &Self::Examples, gates: &Gates, dropout: &ModelDropout) -> Tensor;

    /// Returns which queries and keys of the batch count, by attention type.
    fn attended(&self, examples: &Self::Examples) -> BTreeMap<Attention, Attended>;

    /// Returns the outputs of all heads under `gates`, before gating, at every position of a batch: `[batch, heads, query, d_head]` by
    /// attention type and layer. Outputs of removed heads are 0.
    fn contexts(&self, examples: &Self::Examples, gates: Gates) -> RecordedWeights {
        let record = AttentionRecord::default();
        no_grad(|| drop(self.losses(examples, &gates.contexts_in(&record), &ModelDropout::OFF)));
        record.take()
    }

    /// Returns open gates: the full model.
    fn open(&self) -> Gates {
        Gates::open(&self.layout(), self.options())
    }

    /// Sums head outputs over real positions, for their [means](HeadOutputSums::means).
    fn context_sums(&self, examples: &Self::Examples) -> HeadOutputSums {
        HeadOutputSums::new(&self.contexts(examples, self.open()), &self.attended(examples))
    }

    /// Returns the head outputs on these examples, to replace those on other examples.
    fn replacement(&self, examples: &Self::Examples) -> Replacement {
        Replacement::of_texts(self.contexts(examples, self.open()), &self.attended(examples))
    }

    /// Returns second moments of a module's head outputs, with the heads `masked` and in the `full` model. Fails if the model lacks a
    /// masked head.
    fn moments(
        &self,
        full: &Self,
        examples: &Self::Examples,
        (module, masked): (Module, &HeadSet),
    ) -> Result<Moments, Error> {
        let gates = Gates::masking(&self.layout(), std::slice::from_ref(masked), self.options())?;
        let (lacking, full) = (self.contexts(examples, gates), full.contexts(examples, full.open()));
        Ok(Moments::new(&lacking[&module], &full[&module], &self.attended(examples)[&module.0]))
    }

    /// Rescales the kept heads of a module in its W_o, so that with the heads `masked` its output is as close as possible to its output in
    /// the full model: [`Moments`]. `None` if a factor exceeds the bound. Fails if layers share their weights.
    fn refitted(
        &self,
        (module, masked): (Module, &HeadSet),
        moments: &Moments,
    ) -> Result<Option<Self>, Error> {
        let (layout, (attention, layer)) = (self.layout(), module);
        if layout.is_one_layer() {
            let fault = "all layers of this model share their weights, so none can be fitted separately";
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

    /// Returns raw outputs for one short input, `[.., outputs]`.
    fn probe(&self, gates: &Gates) -> Tensor;

    /// Writes `config.json` and `model.safetensors`.
    fn save(&self, folder: &Path) -> Result<(), Error> {
        self.config().write(&folder.join("config.json"))?;
        pack(self.config().storage(), self.weights(), d_head(self.config()))
            .write(&folder.join("model.safetensors"))
    }

    /// Returns the layout of the heads.
    fn layout(&self) -> HeadLayout {
        self.config().layout()
    }

    /// Returns kind and device of the weights.
    fn options(&self) -> (Kind, Device) {
        self.weights().options()
    }

    /// Returns a model that shares these tensors, for another thread. Never fails, since all tensors are present.
    fn share(&self) -> Result<Self, Error> {
        Self::new(self.config().clone(), self.weights().share())
    }

    /// Returns a copy with tensors of another kind. Never fails, since all tensors are present.
    fn to_kind(&self, kind: Kind) -> Result<Self, Error> {
        Self::new(self.config().clone(), self.weights().to_kind(kind))
    }

    /// Removes heads; the smaller model gives the outputs of this one with the heads masked.
    ///
    /// # Errors
    /// If the model lacks one of the heads, all would be removed, or a uniform removal leaves unequal layers.
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
                Error::Input(format!("the remaining heads form no smaller model of this family: {fault}"))
            })?,
        };
        Self::new(config, weights)
    }

    /// Removes heads and adds W_o times their mean outputs to the bias of W_o: the outputs are those of mean ablation.
    ///
    /// # Errors
    /// As for [`without_heads`](Self::without_heads), or if W_o can have no bias, or layers share it.
    fn folded(&self, heads: &HeadSet, means: &Replacement, removal: Removal) -> Result<Self, Error> {
        let cannot =
            |why: &str| Err(Error::Input(format!("cannot fold mean head outputs into this model: {why}")));
        if self.layout().is_one_layer() {
            return cannot("all layers share their bias, but mean head outputs differ between layers");
        }
        let (layout, projections) = (self.layout(), |kind, layer| self.config().projections(kind, layer));
        heads.iter().try_for_each(|id| layout.check(id))?;
        let output = |id: HeadId| projections(id.attention(), id.layer_index()).output;
        let (config, weights) = if heads
            .iter()
            .all(|id| self.weights().holds(&format!("{}.bias", output(id))))
        {
            (self.config().clone(), self.weights().share())
        } else {
            let Some(config) = self.config().with_attention_bias() else {
                return cannot(
                    "the output projection has no bias in this family; only zero ablation can be exported",
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

    /// Computes rankings of the heads on a batch, under `gates` of one row: open ones for the full model.
    ///
    /// Padding does not count, and means over batches do not depend on the batch size.
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

    /// Returns each head's direct logit attribution, in logits, for examples that are choices of two, under `gates` of one row; `None` for
    /// models that do not predict the next token.
    fn logit_attribution(&self, _: &Self::Examples, _: &Gates) -> Option<HeadMeans> {
        None
    }

    /// Checks that masking a head gives the outputs of a model with zeros in the head's columns of W_o. Tries one head per layer, a
    /// different one from layer to layer.
    ///
    /// # Errors
    /// If the outputs differ by more than rounding, or the model computes NaN.
    fn check_gates(&self) -> Result<(), Error> {
        let layout = self.layout();
        let open = Gates::open(&layout, self.options());
        for module in layout.heads_by_module() {
            let id = module[module[0].layer_index() % module.len()];
            // layers that share their weights have equal heads
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
                    "masking head {id} differs from zeros in its columns of the output projection: the outputs differ by \
                     {gap:e} of the maximum, so this model is read wrongly"
                )));
            }
        }
        Ok(())
    }
}

/// Refuses heads that differ between layers if the layers share their weights.
fn check_shared(layout: &HeadLayout, heads: &HeadSet) -> Result<(), Error> {
    for (attention, shape) in layout.types().filter(|_| layout.is_one_layer()) {
        let of_layer = by_layer(attention, heads);
        if !of_layer.is_empty() && !(0..shape.layers).all(|layer| of_layer.get(&layer) == of_layer.get(&0)) {
            let fault = "all layers of this model share their weights, so a head can only be removed from all layers: \
                 every layer must lose the same heads, as on a curve of iterative-prune --unit group";
            return Err(Error::Input(fault.to_owned()));
        }
    }
    Ok(())
}

/// Returns the maximum gap between two summation orders, relative to the largest output.
pub(crate) fn tolerance(kind: Kind) -> f64 {
    match kind {
        Kind::Double => 1e-9,
        Kind::Float => 1e-4,
        _ => 0.1,
    }
}
