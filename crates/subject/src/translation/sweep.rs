//! Many head sets over one split: what the intact encoder computes is kept between them, within a bound of memory.
use std::sync::{Mutex, PoisonError};

use core_masking::marian::{Marian, Variants};
use core_masking::{BeamSearch, HeadSet, Translation, Trunk};
use corpus::batches::longest_first;
use stats::bleu::{Bleu, BleuStatistics};
use tch::Kind;

use super::{BATCH_TOKENS, Prepared, Tokenizer, TranslationSubject};
use crate::plan::{Load, Plan, Sizes, padded};
use crate::progress::Progress;
use crate::{Error, workers};

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
    batches: Vec<Vec<usize>>,
    plan: Plan,
    /// What the last head sets left of each batch, if there is room for it.
    trunks: Vec<Mutex<Option<Trunk>>>,
}

/// What the split asks of the memory.
fn load(subject: &TranslationSubject, lengths: &[usize]) -> Load {
    let (config, search) = (subject.model.config(), &subject.search);
    let bytes = if subject.model.options().0 == Kind::BFloat16 { 2 } else { 4 };
    let (width, beam) = (config.d_model as u64, search.beam as u64);
    let vocabulary = config.vocab_size as u64;
    // On the way through the encoder stand query, key, value, their products, the residual stream and the feed-forward
    // block before and after its nonlinearity.
    let encoder = bytes * (8 * width + 2 * config.encoder_ffn_dim as u64);
    // Keys and values of source and target, twice while they grow; logits as they are and in single precision.
    let of_sentence = |length: u64| {
        let seen = length + beam * search.limit(&subject.model, length as usize) as u64;
        length * encoder
            + 2 * 2 * config.decoder_layers as u64 * seen * width * bytes
            + beam * vocabulary * (bytes + 4)
    };
    let of_token = |&length: &usize| of_sentence(length as u64).div_ceil(length as u64);
    let batches = longest_first(lengths.iter().copied(), BATCH_TOKENS);
    Load {
        batch: BATCH_TOKENS as u64,
        kept: width * bytes,
        way: lengths.iter().filter(|&&length| length > 0).map(of_token).max().unwrap_or(1),
        longest: lengths.iter().max().map_or(0, |&longest| longest as u64),
        all: padded(lengths, &batches),
    }
}

impl<'a> Sweep<'a> {
    /// # Errors
    /// If the memory is too small for one sentence.
    pub(super) fn new(subject: &'a TranslationSubject, prepared: &'a Prepared) -> Result<Self, Error> {
        let lengths: Vec<usize> = prepared.sources.iter().map(Vec::len).collect();
        let plan = Sizes::new(&subject.machine, load(subject, &lengths)).plan()?;
        let batches = longest_first(lengths.iter().copied(), plan.tokens);
        let trunks = batches.iter().map(|_| Mutex::new(None)).collect();
        let (search, tokenizer) = (&subject.search, subject.tokenizer.as_ref());
        Ok(Self { subject, split: Split { search, tokenizer, prepared, batches, plan, trunks } })
    }

    /// Number of batches.
    pub(super) fn batches(&self) -> usize {
        self.split.batches.len()
    }

    /// Counts what BLEU needs of each sentence without each of these sets of heads, and hands it to `each` with the set's
    /// place, in order.
    pub(super) fn run(
        &self,
        sets: &[HeadSet],
        rescale: bool,
        progress: &mut Progress,
        each: &mut dyn FnMut(&mut Progress, usize, Vec<BleuStatistics>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (split, together, batches) = (&self.split, self.split.plan.together, self.batches());
        let groups: Vec<&[HeadSet]> = sets.chunks(together).collect();
        let job = |model: &Marian, item: usize| {
            let variants = Variants::new(model, groups[item / batches], rescale)?;
            split.translate(model, &variants, item % batches)
        };
        let mut segments = vec![vec![BleuStatistics::default(); split.prepared.sources.len()]; together];
        workers::in_order(self.subject.models()?, groups.len() * batches, job, |item, found| {
            let (group, batch) = (item / batches, item % batches);
            progress.advance(found.len());
            for (place, (segments, found)) in segments.iter_mut().zip(found).enumerate() {
                for (&row, counted) in split.batches[batch].iter().zip(found) {
                    segments[row] = counted;
                }
                if batch + 1 == batches {
                    each(progress, group * together + place, segments.clone())?;
                }
            }
            Ok(())
        })
    }
}

impl Split<'_> {
    /// Translates a batch under each variant and counts what BLEU needs of each sentence.
    fn translate(
        &self,
        model: &Marian,
        variants: &Variants,
        batch: usize,
    ) -> Result<Vec<Vec<BleuStatistics>>, Error> {
        let (rows, slot) = (&self.batches[batch], &self.trunks[batch]);
        let sources: Vec<&[u32]> = rows.iter().map(|&row| self.prepared.sources[row].as_slice()).collect();
        let left = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (found, trunk) = self.search.sweep(model, &sources, variants, self.plan.together, left)?;
        if self.plan.keeps_trunks {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(trunk);
        }
        let bleu = Bleu::new();
        let counted = |(translation, &row): (&Translation, &usize)| {
            bleu.segment(&self.tokenizer.decode(&translation.tokens), &self.prepared.text.target[row])
        };
        let of_variant = |found: &Vec<Translation>| found.iter().zip(rows).map(counted).collect();
        Ok(found.iter().map(of_variant).collect())
    }
}
