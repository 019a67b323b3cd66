//! The one interface between experiments and models.
use core_masking::{HeadLayout, HeadSet};
use records::Identity;
use stats::bleu::BleuStatistics;
use stats::bootstrap::{Comparison, paired_bootstrap};

use crate::Error;

/// What an experiment is done to: a model, its data, its loss and its score.
///
/// An experiment never knows whether it looks at a translator or at a classifier.
pub trait Subject {
    /// The heads of the model.
    fn layout(&self) -> HeadLayout;

    /// All that a score depends on besides the experiment: subject, split, data, weights, decoding, metric.
    ///
    /// # Errors
    /// If the split does not exist or is at fault.
    fn identity(&self, experiment: &str, scored: &Scored) -> Result<Identity, Error>;

    /// Scores the model without each of these sets of heads, and hands each result to `each` with its place in
    /// `sets`, in order, as soon as it is there. Many sets in one call share what they can.
    ///
    /// # Errors
    /// If a set names a head that the model does not have, the split is at fault, or `each` fails.
    fn evaluate(
        &self,
        scored: &Scored,
        sets: &[HeadSet],
        each: &mut dyn FnMut(usize, Evaluation) -> Result<(), Error>,
    ) -> Result<(), Error>;
}

/// What is scored, and how heads are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scored {
    /// Name of the split.
    pub split: String,
    /// First segments of the split; all if absent.
    pub limit: Option<usize>,
    /// Whether the kept heads of a layer are multiplied by heads / kept.
    pub rescale: bool,
}

/// A score with what significance tests need.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// In the unit of the metric; BLEU in points, 0 to 100.
    pub score: f64,
    /// One entry for each segment.
    pub segments: Segments,
}

/// Sufficient statistics of each segment, by metric.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Segments {
    /// Of corpus BLEU.
    Bleu(Vec<BleuStatistics>),
}

impl Evaluation {
    /// From the statistics of each segment.
    pub fn new(segments: Segments) -> Self {
        use stats::SegmentStatistics;
        let Segments::Bleu(statistics) = &segments;
        Self { score: stats::sum(statistics).score(), segments }
    }

    /// Name of the metric in result files.
    pub fn metric(&self) -> &'static str {
        match self.segments {
            Segments::Bleu(_) => "bleu",
        }
    }

    /// Tests this variant against the intact model `base` (EXPERIMENTS.md, section 9): for BLEU by paired bootstrap.
    ///
    /// # Errors
    /// If there is no segment.
    ///
    /// # Panics
    /// If the two are of different segments.
    pub fn compare_with(&self, base: &Self, resamples: usize, seed: u64) -> Result<Comparison, Error> {
        let (Segments::Bleu(base), Segments::Bleu(variant)) = (&base.segments, &self.segments);
        Ok(paired_bootstrap(base, variant, resamples, seed)?)
    }
}
