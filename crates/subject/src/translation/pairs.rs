//! Sentence pairs as token ids, for computing losses.
use core_masking::Translator;
use core_masking::loss::PairBatch;
use corpus::parallel::ParallelText;

use crate::error::Error;

/// Returns the token ids of a sentence, ending with EOS.
pub(super) type Encode<'a> = &'a dyn Fn(&str) -> Result<Vec<u32>, Error>;

/// The pairs of a split that fit the model; each sentence ends with EOS.
#[derive(Debug)]
pub(crate) struct Pairs {
    sources: Vec<Vec<u32>>,
    targets: Vec<Vec<u32>>,
}

impl Pairs {
    /// Leaves out pairs with more than `positions` tokens on one side.
    ///
    /// # Errors
    /// If a sentence cannot be encoded, or no pair is left.
    pub(super) fn encode(
        text: &ParallelText,
        [source_ids, target_ids]: [Encode<'_>; 2],
        positions: i64,
        split: &str,
    ) -> Result<Self, Error> {
        let mut pairs = Self { sources: Vec::new(), targets: Vec::new() };
        for (source, target) in text.source.iter().zip(&text.target) {
            let (source, target) = (source_ids(source)?, target_ids(target)?);
            if source.len().max(target.len()) as i64 <= positions {
                pairs.sources.push(source);
                pairs.targets.push(target);
            }
        }
        if pairs.sources.is_empty() {
            let fault = format!("every pair is longer than the {positions} positions of the model");
            Err(Error::Invalid(format!("split `{split}`: {fault}")))
        } else {
            Ok(pairs)
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    pub(super) fn target_tokens(&self, rows: &[usize]) -> usize {
        rows.iter().map(|&row| self.targets[row].len()).sum()
    }

    pub(super) fn lengths(&self) -> Vec<(usize, usize)> {
        self.sources.iter().zip(&self.targets).map(|(source, target)| (source.len(), target.len())).collect()
    }

    /// Returns the tokens of the longer side of a pair.
    pub(super) fn tokens(&self, row: usize) -> usize {
        self.sources[row].len().max(self.targets[row].len())
    }

    pub(super) fn batch(&self, model: &Translator, rows: &[usize]) -> PairBatch {
        fn side<'a>(sentences: &'a [Vec<u32>], rows: &[usize]) -> Vec<&'a [u32]> {
            rows.iter().map(|&row| sentences[row].as_slice()).collect()
        }
        PairBatch::new(model, &side(&self.sources, rows), &side(&self.targets, rows))
    }
}
