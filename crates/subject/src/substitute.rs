//! What takes the place of masked heads in the segments of a split.
use core_masking::{ContextSums, GatedModel, Replacement};
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tch::no_grad;

use crate::error::Error;
use crate::evaluation::{Need, Purpose};
use crate::models::Models;
use crate::subject::{Ablation, Sample};
use crate::task::Task;
use crate::task_subject::TaskSubject;

/// What takes the place of masked heads in each of some segments.
pub(crate) enum Substitute<T: Task> {
    /// Nothing.
    Nothing,
    /// What heads read on average, which the models know.
    Means(Sample),
    /// What they read in another text.
    Texts {
        encoded: T::Encoded,
        /// The text for each segment.
        partners: Vec<usize>,
    },
}

impl<T: Task> Substitute<T> {
    /// `lengths`: tokens of the text of each segment
    ///
    /// # Errors
    /// If the split that replacements come from is at fault, or has one text alone.
    pub(crate) fn new(
        subject: &TaskSubject<T>,
        ablation: &Ablation,
        lengths: &[usize],
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
                        "split `{}` has {} text that the model can take: resample ablation takes what heads read in another \
                         text, so it needs at least 2",
                        of.split,
                        others.len()
                    )));
                }
                Self::Texts { partners: partners(lengths, &others, of.seed.wrapping_add(*draw)), encoded }
            }
        })
    }

    /// What takes the place of masked heads in these segments, a row for each or one for all.
    ///
    /// # Errors
    /// If the model cannot take a text.
    pub(crate) fn of(&self, models: &Models<T::Model>, rows: &[usize]) -> Result<Option<Replacement>, Error> {
        Ok(match self {
            Self::Nothing => None,
            Self::Means(of) => {
                Some(models.means(of, || unreachable!("means are measured before they are asked for"))?)
            }
            Self::Texts { encoded, partners } => {
                let texts: Vec<usize> = rows.iter().map(|&row| partners[row]).collect();
                let model = models.quickest();
                let texts = T::examples(model, encoded, &texts)?;
                Some(no_grad(|| model.replacement(&texts)))
            }
        })
    }
}

/// The mean of what each head reads, over all positions of these segments; measured once.
///
/// # Errors
/// If the split is at fault.
pub(crate) fn means_of<T: Task>(subject: &TaskSubject<T>, of: &Sample) -> Result<Replacement, Error> {
    subject.models.means(of, || mean_contexts(subject, &subject.encode(&of.scored())?))
}

fn mean_contexts<T: Task>(subject: &TaskSubject<T>, encoded: &T::Encoded) -> Result<Replacement, Error> {
    let job = |models: &Models<T::Model>, rows: &[usize]| {
        let model = models.quickest();
        let examples = T::examples(model, encoded, rows)?;
        Ok(no_grad(|| model.context_sums(&examples)))
    };
    let measures = [core_masking::Measure::Confidence].into();
    let need: Need<'_> = subject.task.need(&subject.models, Purpose::Measuring(&measures));
    let lengths = T::encoded_lengths(encoded);
    let mut total = ContextSums::default();
    subject.over_batches(&subject.models, (&need, &lengths), "reading what heads read", job, |_, sums| {
        total.merge(&sums);
        Ok(())
    })?;
    Ok(total.means())
}

/// For each text one of the `others` that is at least as long, or any where none is.
fn partners(lengths: &[usize], others: &[usize], seed: u64) -> Vec<usize> {
    let mut longest_first: Vec<usize> = (0..others.len()).collect();
    longest_first.sort_by_key(|&other| std::cmp::Reverse(others[other]));
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let partner = |&length: &usize| {
        let count = longest_first.partition_point(|&other| others[other] >= length);
        let candidates = if count == 0 { &longest_first[..] } else { &longest_first[..count] };
        *candidates.choose(&mut random).expect("there are other texts")
    };
    lengths.iter().map(partner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For 5 tokens the texts of 5 and 9, for 10 any, as none is long enough.
    #[test]
    fn partners_are_at_least_as_long_where_there_are_such() {
        let others = [3, 9, 5, 1];
        let found = partners(&[5; 200].into_iter().chain([10; 200]).collect::<Vec<_>>(), &others, 7);
        let of_first: std::collections::BTreeSet<usize> = found[..200].iter().copied().collect();
        let of_others: std::collections::BTreeSet<usize> = found[200..].iter().copied().collect();
        assert_eq!(of_first.into_iter().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(of_others.len(), 4);
        assert_ne!(found, partners(&[5; 400], &others, 8));
    }
}
