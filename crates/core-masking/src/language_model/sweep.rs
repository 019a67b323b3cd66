//! Evaluation of one batch under many head sets. The output layer, a large part of the work, must be computed for each set.
use families::rotary::RotaryConfig;
use tch::Tensor;

use super::nats::{shortfalls, token_nats};
use super::{LanguageModel, PredictionBatch};
use crate::attention::MultiHeadAttention;
use crate::rotary::RotaryAngles;
use crate::sweep::{PrefixCache, Stack, Variants, Walk};
use crate::{Attention, Error, GatedModel, Gates, HeadSet, ModelDropout};

struct Texts<'a> {
    model: &'a LanguageModel,
    angles: Vec<(RotaryConfig, RotaryAngles)>,
}

impl Stack for Texts<'_> {
    fn attention(&self, layer: usize) -> &MultiHeadAttention {
        &self.model.layers[layer].attention
    }

    fn context(&self, layer: usize, x: &Tensor, gates: &Gates) -> Tensor {
        self.model.context(layer, x, &self.angles, gates, &ModelDropout::OFF)
    }

    fn finish(&self, layer: usize, x: &Tensor, attended: Tensor) -> Tensor {
        self.model.layers[layer].finish(x, &attended, &ModelDropout::OFF)
    }
}

impl LanguageModel {
    /// Prepares `sets` for [`sweep`](Self::sweep); `rescale` multiplies the kept heads of a layer by heads / kept. Fails if the model lacks
    /// one of the heads.
    pub fn variants(&self, sets: &[HeadSet], rescale: bool) -> Result<Variants, Error> {
        Variants::new(self, Attention::SelfAttention, sets, rescale)
    }

    /// Computes the nats of each prediction of a batch under each variant, `[predictions]`, or logit gaps if the batch asks for these.
    ///
    /// - `together`: nodes of the tree that are computed as rows of one batch, at least 1, which bounds the memory
    /// - `prefix`: the second result of an earlier call with this batch; reused if all variants leave the layers before it unmasked
    pub fn sweep(
        &self,
        batch: &PredictionBatch,
        variants: &Variants,
        together: usize,
        prefix: Option<PrefixCache>,
    ) -> (Vec<Tensor>, PrefixCache) {
        let [rows, positions] = batch.size();
        let texts = Texts { model: self, angles: self.angles(0, positions) };
        let open = self.open();
        let pass = |layer: usize, x: &Tensor| self.layer(layer, x, &texts.angles, &open, &ModelDropout::OFF);
        let enter = || self.embed(&batch.ids, 0, &ModelDropout::OFF);
        let prefix = PrefixCache::up_to(variants.lowest, prefix, &batch.ids.size(), enter, pass);
        let walk = Walk::new(&texts, variants, Attention::SelfAttention, rows, together);
        let measure = if batch.shortfalls { shortfalls } else { token_nats };
        let mut found = Vec::new();
        walk.ascend(prefix.layer..self.layers.len(), &prefix.x, &mut |x, nodes| {
            for (place, node) in nodes.into_iter().enumerate() {
                let hidden = self.normalised(&batch.predicting(&walk.of_node(x, place)));
                found.push((node, measure(&hidden, &self.output, &batch.labels)));
            }
        });
        (walk.by_variant(found), prefix)
    }
}
