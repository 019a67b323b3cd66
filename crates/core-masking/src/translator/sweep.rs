//! Translation of one batch under many head sets, which share computation.
//!
//! Hypotheses diverge with the first token, so no two sets can share decoding, which is nearly all of the work. They share the encoder up
//! to the first layer in which one of them masks a head, and all of it if none masks encoder heads.
use tch::Tensor;

use super::Translator;
use crate::sweep::{PrefixCache, Variants};
use crate::{
    Attention, BeamSearch, Error, GatedModel, Gates, HeadSet, ModelDropout, TokenBatch, Translation,
};

impl Variants {
    /// Returns the gates of `count` variants from `first` on: one row, which serves any batch, for a single variant, otherwise one for each
    /// row of their batches.
    fn gates_of(&self, first: usize, count: usize, batch: usize) -> Gates {
        let rows: Vec<i64> = match count {
            1 => vec![first as i64],
            _ => (0..count * batch).map(|row| (first + row / batch) as i64).collect(),
        };
        let device = self.gates.of(Attention::EncEnc, 0).values().device();
        let replacement = self.replacement.as_ref().map(|replacement| replacement.repeat(count as i64));
        self.gates.select(&Tensor::from_slice(&rows).to_device(device)).replaced_by(replacement)
    }
}

impl BeamSearch {
    /// Translates a batch under each variant.
    ///
    /// - `sources`: token ids of one or more sentences, each ending with EOS
    /// - `together`: variants that are decoded as rows of one batch, at least 1, which bounds the memory
    /// - `prefix`: the second result of an earlier call with this batch; reused if all variants leave the layers before it unmasked
    ///
    /// # Errors
    /// If a sentence is longer than the model's positions, or the model computes NaN.
    pub fn sweep(
        &self,
        model: &Translator,
        sources: &[&[u32]],
        variants: &Variants,
        together: usize,
        prefix: Option<PrefixCache>,
    ) -> Result<(Vec<Vec<Translation>>, PrefixCache), Error> {
        let batch = self.batch(model, sources)?;
        tch::no_grad(|| {
            let prefix = model.prefix(&batch, variants.lowest, prefix);
            let mut translations = Vec::with_capacity(variants.len());
            for first in (0..variants.len()).step_by(together) {
                let count = together.min(variants.len() - first);
                let gates = variants.gates_of(first, count, sources.len());
                let bias = batch.bias.repeat([count as i64, 1, 1, 1]);
                let memory = prefix.x.repeat([count as i64, 1, 1]);
                let memory = model.encode_from(prefix.layer, memory, &bias, &gates, &ModelDropout::OFF);
                let limits: Vec<usize> = (0..count)
                    .flat_map(|_| sources.iter().map(|source| self.limit(model.config(), source.len())))
                    .collect();
                let found = self.search(model, (&memory, &bias), &gates, &limits)?;
                translations.extend(found.chunks(sources.len()).map(<[Translation]>::to_vec));
            }
            Ok((translations, prefix))
        })
    }
}

impl Translator {
    /// Prepares `sets` for [`BeamSearch::sweep`]; `rescale` multiplies the kept heads of a layer by heads / kept. Fails if the model lacks
    /// one of the heads.
    pub fn variants(&self, sets: &[HeadSet], rescale: bool) -> Result<Variants, Error> {
        Variants::new(self, Attention::EncEnc, sets, rescale)
    }

    /// Returns the input of encoder layer `top` of the full model; `top` may be the number of layers.
    fn prefix(&self, batch: &TokenBatch, top: usize, left: Option<PrefixCache>) -> PrefixCache {
        let open = self.open();
        let pass = |layer: usize, x: &Tensor| {
            let gate = open.of(Attention::EncEnc, layer);
            self.layers.encoder_layer(layer, x, &batch.bias, gate, &ModelDropout::OFF)
        };
        let embed = || self.layers.embed_source(&batch.ids);
        PrefixCache::up_to(top, left, &batch.ids.size(), embed, pass)
    }
}
