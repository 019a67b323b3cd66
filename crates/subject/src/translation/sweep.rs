//! Many head sets over one split: what the intact encoder computes is kept between them, within a bound of memory.
use std::ops::Range;

use core_masking::marian::{Marian, Variants};
use core_masking::{Attention, BeamSearch, HeadId, HeadSet, Translation};
use stats::bleu::{Bleu, BleuStatistics};
use training::Progress;

use super::{BATCH_TOKENS, Prepared, Tokenizer, TranslationSubject};
use crate::Error;
use crate::groups::{evaluate, neighbours};
use crate::plan::{Load, Plan, Trunks};

/// A split, ready to be translated under any number of head sets.
pub(super) struct Sweep<'a> {
    subject: &'a TranslationSubject,
    split: Split<'a>,
}

/// What all threads look at.
struct Split<'a> {
    search: &'a BeamSearch,
    tokenizer: &'a Tokenizer,
    prepared: &'a Prepared,
    plan: Plan,
    trunks: Trunks,
}

/// How much of the split is computed at once.
fn plan(subject: &TranslationSubject, prepared: &Prepared) -> Result<Plan, Error> {
    let (model, search) = (&subject.model, &subject.search);
    let load = Load {
        lengths: &prepared.sources.iter().map(Vec::len).collect::<Vec<_>>(),
        batch_tokens: BATCH_TOKENS,
        segment_bytes: &|tokens| search.sentence_bytes(model, tokens),
        thread_bytes: search.batch_bytes(model),
        trunk_bytes: model.config().d_model as u64 * model.options().0.elt_size_in_bytes() as u64,
    };
    Plan::new(&subject.machine, &load)
}

impl<'a> Sweep<'a> {
    /// # Errors
    /// If the memory is too small for one sentence.
    pub(super) fn new(subject: &'a TranslationSubject, prepared: &'a Prepared) -> Result<Self, Error> {
        let plan = plan(subject, prepared)?;
        let (search, tokenizer, trunks) = (&subject.search, subject.tokenizer.as_ref(), Trunks::new(&plan));
        Ok(Self { subject, split: Split { search, tokenizer, prepared, plan, trunks } })
    }

    /// Number of batches.
    pub(super) fn batches(&self) -> usize {
        self.split.plan.batches.len()
    }

    /// Counts what BLEU needs of each sentence without each of these sets of heads, and hands it to `each` with the set's
    /// place, in order.
    pub(super) fn run(
        &self,
        sets: &[HeadSet],
        rescale: bool,
        progress: &mut Progress,
        each: impl FnMut(&mut Progress, usize, Vec<BleuStatistics>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let split = &self.split;
        let job = |model: &Marian, group: Range<usize>, batch: usize| {
            let variants = Variants::new(model, &sets[group], rescale)?;
            split.translate(model, &variants, batch)
        };
        let groups = groups(sets, split.plan.sets_per_batch);
        evaluate(self.subject.models()?, &groups, &split.plan.batches, job, progress, each)
    }
}

/// Neighbours in `sets` that are rows of one batch: up to `most` that share the encoder up to the same layer.
fn groups(sets: &[HeadSet], most: usize) -> Vec<Range<usize>> {
    let of_encoder = |id: &HeadId| id.attention() == Attention::EncEnc;
    let lowest = |set: &HeadSet| set.iter().filter(of_encoder).map(HeadId::layer_index).min();
    neighbours(sets, lowest, |_| most)
}

impl Split<'_> {
    /// Translates a batch under each variant and counts what BLEU needs of each sentence.
    fn translate(
        &self,
        model: &Marian,
        variants: &Variants,
        batch: usize,
    ) -> Result<Vec<Vec<BleuStatistics>>, Error> {
        let rows = &self.plan.batches[batch];
        let sources: Vec<&[u32]> = rows.iter().map(|&row| self.prepared.sources[row].as_slice()).collect();
        let found = self.trunks.with(batch, |left| {
            Ok(self.search.sweep(model, &sources, variants, self.plan.sets_per_batch, left)?)
        })?;
        let bleu = Bleu::new();
        let counted = |(translation, &row): (&Translation, &usize)| {
            bleu.segment(&self.tokenizer.decode(&translation.tokens), &self.prepared.text.target[row])
        };
        let of_variant = |found: &Vec<Translation>| found.iter().zip(rows).map(counted).collect();
        Ok(found.iter().map(of_variant).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_share_the_encoder_up_to_a_layer_are_neighbours() {
        let set = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<HeadSet>();
        let sets = [
            set(&[]),
            set(&["enc-dec:1:1"]),
            set(&["dec-dec:1:1"]),
            set(&["dec-dec:2:1", "enc-dec:2:1"]),
            set(&["enc-enc:2:1"]),
            set(&["enc-enc:2:2", "enc-enc:5:1", "dec-dec:1:1"]),
            set(&["enc-enc:1:1", "enc-enc:2:1"]),
        ];
        assert_eq!(groups(&sets, 3), [0..3, 3..4, 4..6, 6..7]);
        assert_eq!(groups(&sets, 1).len(), sets.len());
        assert!(groups(&[], 3).is_empty());
    }
}
