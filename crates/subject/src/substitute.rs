//! Replacements of masked heads' outputs in the segments of a split.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use core_masking::{GatedModel, HeadOutputSums, HeadSet, Replacement};
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tch::{Tensor, no_grad};

use crate::error::Error;
use crate::evaluation::{Need, Purpose};
use crate::models::Models;
use crate::scored::{Ablation, Sample};
use crate::task::Task;
use crate::task_subject::TaskSubject;

/// Replacements of masked heads' outputs for each segment.
pub(crate) enum Substitute<T: Task> {
    Nothing,
    /// Mean head outputs, which the models cache.
    Means(Sample),
    /// Head outputs from another text.
    Texts {
        encoded: T::Encoded,
        /// The other text for each segment.
        partners: Vec<usize>,
        /// Token counts of the segments' own texts, and of the other texts.
        lengths: [Vec<usize>; 2],
        /// Head outputs that have already been computed.
        known: Mutex<Known>,
    },
}

/// Head outputs in other texts, cached by batch while memory allows.
pub(crate) struct Known {
    /// By the segments of the batch.
    of: BTreeMap<Vec<usize>, Replacement>,
    /// Bytes that remain.
    room: u64,
    /// Bytes of all heads per position of a batch, as measured at the last computation; 0 before the first.
    at_position: u64,
}

impl<T: Task> Substitute<T> {
    /// - `lengths`: tokens of the text of each segment
    /// - `is_own`: the segments and the other texts are identical and in equal order; no text replaces itself
    /// - `room`: bytes for caching head outputs of other texts, so that each text is read once for all heads
    ///
    /// # Errors
    /// If the split that replacements come from is invalid or has only one text.
    pub(crate) fn new(
        subject: &TaskSubject<T>,
        ablation: &Ablation,
        (lengths, is_own): (Vec<usize>, bool),
        room: u64,
    ) -> Result<Self, Error> {
        Ok(match ablation {
            Ablation::Zero => Self::Nothing,
            Ablation::Mean(of) => {
                means_of(subject, of)?;
                Self::Means(of.clone())
            }
            Ablation::Resample { of, draw } => {
                let encoded = subject.encode(&of.scored())?;
                let others = T::encoded_text_lengths(&encoded);
                if others.len() < 2 {
                    return Err(Error::Invalid(format!(
                        "split `{}` has {} text that the model can read: resample ablation takes head outputs from another text, \
                         so it needs at least 2",
                        of.split,
                        others.len()
                    )));
                }
                let partners = partners((&lengths, is_own), &others, (of.seed, *draw));
                let known = Mutex::new(Known { of: BTreeMap::new(), room, at_position: 0 });
                Self::Texts { encoded, partners, lengths: [lengths, others], known }
            }
        })
    }

    /// Returns replacements of the outputs of `masked` heads, one row per segment or one for all. The exact model reads other texts in
    /// parts that have no more positions than the segments.
    pub(crate) fn of(
        &self,
        models: &Models<T::Model>,
        rows: &[usize],
        masked: &HeadSet,
    ) -> Result<Option<Replacement>, Error> {
        let known = match self {
            Self::Nothing => return Ok(None),
            Self::Means(of) => {
                let known =
                    models.means(of, || unreachable!("means are measured before they are requested"))?;
                return Ok(Some(known.only(masked, None)));
            }
            Self::Texts { known, .. } => || known.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let found = known().of.get(rows).map(Replacement::share);
        if let Some(found) = found {
            return Ok(Some(found.only(masked, None)));
        }
        let positions = (rows.len() * self.longest(rows)) as u64;
        let is_kept = {
            let known = known();
            known.room > 0 && known.room >= known.at_position.saturating_mul(positions)
        };
        let all = models.layout().heads().into_iter().collect();
        let read = self.read(models, rows, if is_kept { &all } else { masked })?;
        let mut known = known();
        if is_kept {
            known.at_position = read.bytes() / positions.max(1);
            if let Some(room) = known.room.checked_sub(read.bytes()) {
                known.room = room;
                known.of.insert(rows.to_vec(), read.share());
            }
        }
        Ok(Some(read.only(masked, None)))
    }

    /// Returns the maximum number of tokens in the own texts of these segments.
    fn longest(&self, rows: &[usize]) -> usize {
        let Self::Texts { lengths: [own, _], .. } = self else { return 0 };
        rows.iter().map(|&row| own[row]).max().unwrap_or(0)
    }

    /// Computes the outputs of these heads in the other texts of these segments.
    fn read(&self, models: &Models<T::Model>, rows: &[usize], heads: &HeadSet) -> Result<Replacement, Error> {
        let Self::Texts { encoded, partners, lengths: [_, others], .. } = self else {
            unreachable!("there are no other texts to read")
        };
        let longest = self.longest(rows);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&place| others[partners[rows[place]]]);
        let texts: Vec<usize> = order.iter().map(|&place| partners[rows[place]]).collect();
        // decoders may generate more tokens than the source has
        let goes_on = models.layout().types().count() > 1;
        let positions = (!goes_on).then_some(longest as i64);
        let mut parts = Vec::new();
        let mut rest = &texts[..];
        while !rest.is_empty() {
            let fits = |&count: &usize| count * others[rest[count - 1]] <= rows.len() * longest;
            let (part, later) = rest.split_at((1..=rest.len()).take_while(fits).last().unwrap_or(1));
            let examples = T::examples(&models.exact, encoded, part)?;
            parts.push(no_grad(|| models.exact.replacement(&examples)).only(heads, positions));
            rest = later;
        }
        let mut place_of = vec![0_i64; order.len()];
        order.iter().zip(0..).for_each(|(&place, sorted)| place_of[place] = sorted);
        Ok(Replacement::joined(&parts).select(&Tensor::from_slice(&place_of)))
    }
}

/// Returns the mean output of each head over all positions of these segments, computed once by the exact model.
pub(crate) fn means_of<T: Task>(subject: &TaskSubject<T>, of: &Sample) -> Result<Replacement, Error> {
    subject.models.means(of, || mean_outputs(subject, &subject.encode(&of.scored())?))
}

fn mean_outputs<T: Task>(subject: &TaskSubject<T>, encoded: &T::Encoded) -> Result<Replacement, Error> {
    let job = |models: &Models<T::Model>, rows: &[usize]| {
        let examples = T::examples(&models.exact, encoded, rows)?;
        Ok(no_grad(|| models.exact.context_sums(&examples)))
    };
    let measures = [core_masking::Measure::Confidence].into();
    let need: Need<'_> = subject.task.need(&subject.models, Purpose::Measuring(&measures));
    let lengths = T::encoded_lengths(encoded);
    let mut total = HeadOutputSums::default();
    subject.over_batches(&subject.models, (&need, &lengths), "averaging contexts", job, |_, sums| {
        total.merge(&sums);
        Ok(())
    })?;
    Ok(total.means())
}

/// Draws for each text one of the `others` that is at least as long, or the longest if none is. If `others` are the texts themselves, a
/// text is never its own partner.
fn partners((lengths, is_own): (&[usize], bool), others: &[usize], (seed, draw): (u64, u64)) -> Vec<usize> {
    let mut longest_first: Vec<usize> = (0..others.len()).collect();
    longest_first.sort_by_key(|&other| std::cmp::Reverse(others[other]));
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(draw);
    let partner = |(place, &length): (usize, &usize)| {
        let is_meant = |other: &&usize| !is_own || **other != place;
        let count = longest_first.partition_point(|&other| others[other] >= length);
        let candidates: Vec<usize> = longest_first[..count].iter().filter(is_meant).copied().collect();
        let longest = longest_first.iter().find(is_meant).expect("there are other texts");
        *candidates.choose(&mut random).unwrap_or(longest)
    };
    lengths.iter().enumerate().map(partner).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Partners of 5 tokens are the texts of 5 and 9; of 10 tokens the longest, since none is long enough. No text is its own partner.
    #[test]
    fn partners_are_at_least_as_long_if_possible() {
        let others = [3, 9, 5, 1];
        let lengths: Vec<usize> = [5; 200].into_iter().chain([10; 20]).collect();
        let found = partners((&lengths, false), &others, (7, 1));
        let of_first: BTreeSet<usize> = found[..200].iter().copied().collect();
        assert_eq!(of_first, BTreeSet::from([1, 2]));
        assert!(found[200..].iter().all(|&other| other == 1));
        assert_ne!(found, partners((&lengths, false), &others, (7, 2)));
        for seed in 0..50 {
            let found = partners((&others, true), &others, (seed, 1));
            assert!(found.iter().enumerate().all(|(place, &other)| place != other), "{found:?}");
            assert_eq!((found[1], found[2]), (2, 1), "the longest has no longer one");
        }
    }
}
