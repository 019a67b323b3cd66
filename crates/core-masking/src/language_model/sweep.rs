//! One batch of texts under many head sets. The output layer, a good part of the work, can be shared by no two sets.
use families::rotary::Turning;
use tch::Tensor;

use super::nats::{shortfalls, token_nats};
use super::{LanguageModel, PredictionBatch};
use crate::attention::MultiHeadAttention;
use crate::rotary::Turns;
use crate::sweep::{Stack, Trunk, Variants, Walk};
use crate::{Attention, Error, GatedModel, Gates, HeadSet, ModelDropout};

/// A batch on its way through the layers.
struct Texts<'a> {
    model: &'a LanguageModel,
    turns: Vec<(Turning, Turns)>,
}

impl Stack for Texts<'_> {
    fn attention(&self, layer: usize) -> &MultiHeadAttention {
        &self.model.layers[layer].attention
    }

    fn context(&self, layer: usize, x: &Tensor, gates: &Gates) -> Tensor {
        self.model.context(layer, x, &self.turns, gates, &ModelDropout::OFF)
    }

    fn finish(&self, layer: usize, x: &Tensor, attended: Tensor) -> Tensor {
        self.model.layers[layer].finish(x, &attended, &ModelDropout::OFF)
    }
}

impl LanguageModel {
    /// One variant for each of `sets`; `rescale` multiplies the kept heads of a layer by heads / kept.
    ///
    /// # Errors
    /// If a set names a head that the model does not have.
    pub fn variants(&self, sets: &[HeadSet], rescale: bool) -> Result<Variants, Error> {
        Variants::new(self, Attention::SelfAttention, sets, rescale)
    }

    /// Nats of each prediction of a batch under each variant, `[predictions]`; shortfalls, if the batch asks for them.
    ///
    /// - `together`: nodes of the tree of variants that are computed as rows of one batch, which bounds the memory
    /// - `trunk`: what an earlier call left for this batch, used if all variants leave the layers below it intact
    ///
    /// Also returns what is left for the next call with this batch.
    ///
    /// # Panics
    /// If `together` is 0.
    pub fn sweep(
        &self,
        batch: &PredictionBatch,
        variants: &Variants,
        together: usize,
        trunk: Option<Trunk>,
    ) -> (Vec<Tensor>, Trunk) {
        let [rows, positions] = batch.size();
        let texts = Texts { model: self, turns: self.turns(0, positions) };
        let open = self.open();
        let pass = |layer: usize, x: &Tensor| self.layer(layer, x, &texts.turns, &open, &ModelDropout::OFF);
        let enter = || self.embed(&batch.ids, 0, &ModelDropout::OFF);
        let trunk = Trunk::up_to(variants.lowest, trunk, &batch.ids.size(), enter, pass);
        let walk = Walk::new(&texts, variants, Attention::SelfAttention, rows, together);
        let measure = if batch.shortfalls { shortfalls } else { token_nats };
        let mut found = Vec::new();
        walk.ascend(trunk.layer..self.layers.len(), &trunk.x, &mut |x, nodes| {
            for (place, node) in nodes.into_iter().enumerate() {
                let hidden = self.normalised(&batch.predicting(&walk.of_node(x, place)));
                found.push((node, measure(&hidden, &self.output, &batch.labels)));
            }
        });
        (walk.by_variant(found), trunk)
    }
}
