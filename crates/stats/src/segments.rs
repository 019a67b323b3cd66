//! Statistics of the segments of a test set, for any metric.

use crate::bleu::{self, BleuStatistics};
use crate::bootstrap::{Resampled, Scores, paired_bootstrap, weighted};
use crate::classification::{ClassificationMetric, Outcome, reach_of_flips};
use crate::counted::{Counted, Variant};
use crate::estimates::{CorrelationMetric, Estimate};
use crate::interval::Interval;
use crate::means::{self, Mean, MeanMetric};
use crate::nats::{self, NatsStatistics};
use crate::testing::Testing;
use crate::text::TextMetric;
use crate::{Cell, Error, Metric};

/// Segments in the order of the test set.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Segments {
    /// Sufficient statistics of corpus BLEU.
    Bleu(Vec<BleuStatistics>),
    /// True and predicted classes, and their metric.
    Classes(Vec<Outcome>, ClassificationMetric),
    /// Nats and lengths of documents.
    Nats(Vec<NatsStatistics>),
    /// Counts of generated texts, and their metric.
    Texts(Vec<Vec<u32>>, TextMetric),
    /// True and predicted numbers, and their metric.
    Estimates(Vec<Estimate>, CorrelationMetric),
    /// Real numbers, and the metric that averages them.
    Means(Vec<Mean>, MeanMetric),
}

/// A stored segment: one number for each of [`Metric::columns`].
pub type Cells = Vec<Cell>;

impl Segments {
    /// Builds segments from the log-odds of the right choice of each question, in nats: its log-probability minus the log of the total
    /// probability of all other choices. In single precision, as in files.
    pub fn log_odds(questions: impl IntoIterator<Item = f32>) -> Self {
        let means = questions.into_iter().map(|log_odds| Mean::of(log_odds.into()));
        Self::Means(means.collect(), MeanMetric::LogOdds)
    }

    /// Builds segments from stored ones.
    ///
    /// # Errors
    /// If a segment does not have a number for each column, or its numbers are impossible.
    pub fn from_cells(metric: Metric, segments: &[Cells]) -> Result<Self, Error> {
        let fault = || {
            let (name, columns) = (metric.name(), metric.columns().len());
            Error::Invalid(format!("a segment of {name} has {columns} numbers"))
        };
        let bleu = |cells: &Cells| match cells[..] {
            [
                Cell::Count(own),
                Cell::Count(reference),
                Cell::Count(c1),
                Cell::Count(c2),
                Cell::Count(c3),
                Cell::Count(c4),
            ] => Ok(BleuStatistics::new(own, reference, [c1, c2, c3, c4])),
            _ => Err(fault()),
        };
        let outcome = |cells: &Cells| match cells[..] {
            [Cell::Count(gold), Cell::Count(predicted)] => {
                Ok(Outcome { gold: gold as usize, predicted: predicted as usize })
            }
            _ => Err(fault()),
        };
        let document = |cells: &Cells| match cells[..] {
            [Cell::Decimal(nats), Cell::Count(tokens), Cell::Count(words)] => {
                NatsStatistics::new(nats.into(), tokens, words)
            }
            _ => Err(fault()),
        };
        let counts = |cells: &Cells| {
            let counts: Option<Vec<u32>> = cells.iter().map(|cell| cell.count()).collect();
            counts.filter(|counts| counts.len() == metric.columns().len()).ok_or_else(fault)
        };
        let estimate = |cells: &Cells| match cells[..] {
            [Cell::Decimal(gold), Cell::Decimal(predicted)] => Ok(Estimate { gold, predicted }),
            _ => Err(fault()),
        };
        let mean = |cells: &Cells| match cells[..] {
            [Cell::Decimal(value)] if value.is_finite() => Ok(Mean::of(value.into())),
            _ => Err(Error::Invalid(format!("a segment of {} has 1 finite number", metric.name()))),
        };
        Ok(match metric {
            Metric::Bleu => Self::Bleu(segments.iter().map(bleu).collect::<Result<_, _>>()?),
            Metric::Classes(metric) => {
                Self::Classes(segments.iter().map(outcome).collect::<Result<_, _>>()?, metric)
            }
            Metric::Nats => Self::Nats(segments.iter().map(document).collect::<Result<_, _>>()?),
            Metric::Texts(metric) => {
                Self::Texts(segments.iter().map(counts).collect::<Result<_, _>>()?, metric)
            }
            Metric::Estimates(metric) => {
                Self::Estimates(segments.iter().map(estimate).collect::<Result<_, _>>()?, metric)
            }
            Metric::Means(metric) => {
                Self::Means(segments.iter().map(mean).collect::<Result<_, _>>()?, metric)
            }
        })
    }

    /// Returns the numbers to store for a segment.
    pub fn cells(&self, segment: usize) -> Cells {
        match self {
            Self::Bleu(segments) => {
                let BleuStatistics { hypothesis_length, reference_length, correct, .. } = segments[segment];
                [hypothesis_length, reference_length].into_iter().chain(correct).map(Cell::Count).collect()
            }
            Self::Classes(outcomes, _) => {
                let Outcome { gold, predicted } = outcomes[segment];
                [gold, predicted].map(|class| Cell::Count(class as u32)).to_vec()
            }
            Self::Nats(documents) => {
                let own = &documents[segment];
                vec![Cell::Decimal(own.nats()), Cell::Count(own.tokens()), Cell::Count(own.words())]
            }
            Self::Texts(texts, _) => texts[segment].iter().copied().map(Cell::Count).collect(),
            Self::Estimates(estimates, _) => {
                let Estimate { gold, predicted } = estimates[segment];
                [gold, predicted].map(Cell::Decimal).to_vec()
            }
            Self::Means(all, _) => vec![Cell::Decimal(all[segment].value() as f32)],
        }
    }

    /// Returns their metric.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Bleu(_) => Metric::Bleu,
            Self::Classes(_, metric) => Metric::Classes(*metric),
            Self::Nats(_) => Metric::Nats,
            Self::Texts(_, metric) => Metric::Texts(*metric),
            Self::Estimates(_, metric) => Metric::Estimates(*metric),
            Self::Means(_, metric) => Metric::Means(*metric),
        }
    }

    /// Returns the sizes of the segments if the score is a sum over them divided by the sum of sizes: tokens for nats, numbers for means.
    pub(crate) fn sizes(&self) -> Option<Vec<f64>> {
        match self {
            Self::Nats(documents) => Some(documents.iter().map(|own| own.tokens().into()).collect()),
            Self::Means(all, _) => Some(all.iter().map(|own| own.count).collect()),
            _ => None,
        }
    }

    pub(crate) fn is_mean(&self) -> bool {
        matches!(self, Self::Nats(_) | Self::Means(..))
    }

    /// Replaces the segments at these indices by others, in their order.
    ///
    /// # Panics
    /// If the number of others differs, they have another metric, or an index is out of range.
    #[must_use]
    pub fn with(mut self, places: &[usize], others: &Self) -> Self {
        fn replace<T: Clone>(all: &mut [T], places: &[usize], others: &[T]) {
            assert_eq!(places.len(), others.len(), "a segment for each place");
            places.iter().zip(others).for_each(|(&place, other)| all[place].clone_from(other));
        }
        match (&mut self, others) {
            (Self::Bleu(all), Self::Bleu(others)) => replace(all, places, others),
            (Self::Classes(all, _), Self::Classes(others, _)) => replace(all, places, others),
            (Self::Nats(all), Self::Nats(others)) => replace(all, places, others),
            (Self::Texts(all, _), Self::Texts(others, _)) => replace(all, places, others),
            (Self::Estimates(all, _), Self::Estimates(others, _)) => replace(all, places, others),
            (Self::Means(all, _), Self::Means(others, _)) => replace(all, places, others),
            _ => panic!("segments of one metric"),
        }
        self
    }

    /// Returns the segments at these indices.
    #[must_use]
    pub fn at(&self, places: &[usize]) -> Self {
        fn chosen<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
            places.iter().map(|&place| all[place].clone()).collect()
        }
        match self {
            Self::Bleu(all) => Self::Bleu(chosen(all, places)),
            Self::Classes(all, metric) => Self::Classes(chosen(all, places), *metric),
            Self::Nats(all) => Self::Nats(chosen(all, places)),
            Self::Texts(all, metric) => Self::Texts(chosen(all, places), *metric),
            Self::Estimates(all, metric) => Self::Estimates(chosen(all, places), *metric),
            Self::Means(all, metric) => Self::Means(chosen(all, places), *metric),
        }
    }

    /// Sums neighbouring segments into one segment per text, for nats and BLEU; other segments stay unchanged.
    ///
    /// - `clusters`: number of segments of each text
    ///
    /// # Panics
    /// If these do not add up to the number of segments.
    #[must_use]
    pub fn clustered(&self, clusters: &[usize]) -> Self {
        fn summed<T>(all: &[T], clusters: &[usize], sum: impl Fn(&[T]) -> T) -> Vec<T> {
            assert_eq!(clusters.iter().sum::<usize>(), all.len(), "clusters of all segments");
            let mut rest = all;
            let of_text = |&size: &usize| {
                let (own, others) = rest.split_at(size);
                rest = others;
                sum(own)
            };
            clusters.iter().map(of_text).collect()
        }
        match self {
            Self::Nats(all) => Self::Nats(summed(all, clusters, NatsStatistics::sum)),
            Self::Bleu(all) => Self::Bleu(summed(all, clusters, BleuStatistics::sum)),
            other => other.clone(),
        }
    }

    /// Returns the number of segments.
    pub fn len(&self) -> usize {
        match self {
            Self::Bleu(segments) => segments.len(),
            Self::Classes(outcomes, _) => outcomes.len(),
            Self::Nats(documents) => documents.len(),
            Self::Texts(texts, _) => texts.len(),
            Self::Estimates(estimates, _) => estimates.len(),
            Self::Means(all, _) => all.len(),
        }
    }

    /// Returns true without segments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn counted(&self) -> Result<Counted, Error> {
        if self.is_empty() {
            return Err(Error::empty());
        }
        Ok(match self {
            Self::Bleu(segments) => Counted::new(segments.iter().map(BleuStatistics::counts), bleu::score),
            Self::Classes(outcomes, metric) => metric.counted(outcomes)?,
            Self::Nats(documents) => {
                let counts = documents.iter().map(|own| [own.nats().into(), own.tokens().into()]);
                Counted::new(counts, nats::per_token)
            }
            Self::Texts(texts, metric) => metric.counted(texts),
            Self::Estimates(estimates, metric) => metric.counted(estimates),
            Self::Means(all, _) => Counted::new(all.iter().map(|own| [own.sum, own.count]), nats::per_token),
        })
    }

    /// Estimates how far the score moves if this share of the segments changes: for two-class metrics by flipping predictions in one cell
    /// of the confusion matrix, for other metrics as if each changed segment took away its average contribution.
    pub(crate) fn reach(&self, share: f64) -> Result<Interval, Error> {
        let counted = self.counted()?;
        if let Self::Classes(_, ClassificationMetric::F1 { .. } | ClassificationMetric::Matthews) = self {
            return Ok(reach_of_flips(&counted, share * self.len() as f64));
        }
        if let Self::Means(all, MeanMetric::Score) = self {
            // scores of both signs may have a mean of 0
            let most = share * nats::per_token(&means::sizes(all));
            return Ok(Interval { low: -most, high: most });
        }
        let most = share * counted.score().abs();
        Ok(Interval { low: -most, high: most })
    }

    /// Returns true if the score is an undefined correlation, reported as 0, because predictions do not vary.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Estimates(estimates, metric) if !metric.exists(estimates))
    }

    /// Returns the score of the test set, in the unit of the metric.
    ///
    /// # Errors
    /// If there are no segments, or a two-class metric meets a class above 1.
    pub fn score(&self) -> Result<f64, Error> {
        Ok(self.counted()?.score())
    }

    /// Compares `variants` with this base by [`paired_bootstrap`].
    ///
    /// # Panics
    /// If a variant covers other segments or has another metric.
    pub fn resampled(&self, variants: &[&Self], testing: Testing) -> Result<Vec<Resampled>, Error> {
        let (base, variants) = self.beside(variants)?;
        paired_bootstrap(&base, &variants, testing)
    }

    /// Scores base and variants with each segment counted as often as `drawn` yields it, for each of `weightings`.
    pub(crate) fn weighted<I: IntoIterator<Item = usize>>(
        &self,
        variants: &[&Self],
        weightings: usize,
        drawn: impl Fn(u64) -> I + Sync,
    ) -> Result<Scores, Error> {
        let (base, variants) = self.beside(variants)?;
        Ok(weighted(&base, &variants, weightings, drawn))
    }

    /// Returns the sufficient statistics of this base, and the differences of its variants.
    pub(crate) fn beside(&self, variants: &[&Self]) -> Result<(Counted, Vec<Variant>), Error> {
        let base = self.counted()?;
        let paired = |variant: &&Self| {
            self.assert_paired(variant);
            Ok(base.variant(&variant.counted()?))
        };
        let variants = variants.iter().map(paired).collect::<Result<_, Error>>()?;
        Ok((base, variants))
    }

    /// # Panics
    /// If the other covers other segments or has another metric.
    pub(crate) fn assert_paired(&self, other: &Self) {
        assert_eq!(self.metric(), other.metric(), "paired systems must have the same metric");
        assert_eq!(self.len(), other.len(), "paired systems must cover the same segments");
        match (self, other) {
            (Self::Classes(own, _), Self::Classes(other, _)) => {
                let are_paired = own.iter().zip(other).all(|(own, other)| own.gold == other.gold);
                assert!(are_paired, "paired systems must cover the same examples");
            }
            (Self::Nats(own), Self::Nats(other)) => {
                let lengths = |own: &NatsStatistics| (own.tokens(), own.words());
                let are_paired = own.iter().zip(other).all(|(own, other)| lengths(own) == lengths(other));
                assert!(are_paired, "paired systems must cover the same documents");
            }
            (Self::Estimates(own, _), Self::Estimates(other, _)) => {
                let are_paired =
                    own.iter().zip(other).all(|(own, other)| own.gold.total_cmp(&other.gold).is_eq());
                assert!(are_paired, "paired systems must cover the same examples");
            }
            (Self::Means(own, _), Self::Means(other, _)) => {
                let are_paired = own.iter().zip(other).all(|(own, other)| own.count == other.count);
                assert!(are_paired, "paired systems must have as many numbers in each segment");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(predicted: &[usize], metric: ClassificationMetric) -> Segments {
        let outcome = |&predicted: &usize| Outcome { gold: 1, predicted };
        Segments::Classes(predicted.iter().map(outcome).collect(), metric)
    }

    fn documents(documents: &[(f64, u32)]) -> Segments {
        let document = |&(nats, tokens): &(f64, u32)| NatsStatistics::new(nats, tokens, 2 * tokens);
        Segments::Nats(documents.iter().map(document).collect::<Result<_, _>>().unwrap())
    }

    #[test]
    fn stored_segments_read_back() {
        let accuracy = ClassificationMetric::Accuracy;
        let bleu = Segments::Bleu(vec![
            BleuStatistics::new(7, 5, [4, 3, 2, 1]),
            BleuStatistics::new(0, 2, [0; 4]),
            BleuStatistics::new(2, 9, [2, 1, 0, 0]),
        ]);
        let nats = documents(&[(7.1, 3), (0.0, 0), (2.0, 5)]);
        let texts = Segments::Texts(vec![vec![5, 4, 3, 2, 3], vec![0; 5]], TextMetric::Rouge2);
        let estimates = [(2.5, -1.5), (0.0, 3.0)].map(|(gold, predicted)| Estimate { gold, predicted });
        let estimates = Segments::Estimates(estimates.to_vec(), CorrelationMetric::Spearman);
        let log_odds = Segments::log_odds([-1.5, 0.0, 4.0]);
        assert_eq!(log_odds.score(), Ok(2.5 / 3.0));
        for segments in [bleu, outcomes(&[1, 0, 2], accuracy), nats, texts, estimates, log_odds] {
            let cells: Vec<Cells> = (0..segments.len()).map(|segment| segments.cells(segment)).collect();
            assert!(cells.iter().all(|cells| cells.len() == segments.metric().columns().len()));
            assert_eq!(Segments::from_cells(segments.metric(), &cells), Ok(segments));
        }
        let count = Cell::Count;
        for (metric, cells, expected) in [
            (Metric::Bleu, [1, 2, 3].map(count).to_vec(), "of bleu has 6 numbers"),
            (Metric::Classes(accuracy), vec![count(1), Cell::Decimal(1.0)], "of accuracy has 2 numbers"),
            (Metric::Nats, vec![Cell::Decimal(1.0), count(0), count(0)], "1 nats for 0 tokens: "),
            (Metric::Means(MeanMetric::LogOdds), vec![Cell::Decimal(f32::INFINITY)], "has 1 finite number"),
        ] {
            let error = Segments::from_cells(metric, &[cells]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn chosen_segments_replace_those_of_others_and_sums_are_of_texts() {
        let (all, others) = (documents(&[(7.0, 3), (1.0, 2), (2.0, 5)]), documents(&[(0.5, 1), (9.0, 4)]));
        let found = all.clone().with(&[0, 2], &others);
        assert_eq!(found, documents(&[(0.5, 1), (1.0, 2), (9.0, 4)]));
        assert_eq!((found.at(&[0, 2]), all.clone().with(&[1], &all.at(&[1]))), (others, all.clone()));
        assert_eq!(all.clustered(&[1, 2]), documents(&[(7.0, 3), (3.0, 7)]));
        let bleu = |own: u32| BleuStatistics::new(own, own + 1, [own, 1, 0, 0]);
        let of_texts = Segments::Bleu([4, 5, 6].map(bleu).to_vec()).clustered(&[1, 2]);
        assert_eq!(of_texts.len(), 2);
        assert_eq!(of_texts.score(), Segments::Bleu([4, 5, 6].map(bleu).to_vec()).score(), "sums of sums");
    }

    /// Adding a variant's changes to the sums of the base has other rounding errors than summing the variant.
    #[test]
    fn a_resampled_score_is_the_measured_one_to_the_last_bit() {
        let base = documents(&[(1e6, 7), (0.1, 2), (0.3, 3), (1e-7, 5)]);
        let variant = documents(&[(1.7, 7), (0.2, 2), (1e-3, 3), (3e-9, 5)]);
        let found = &base.resampled(&[&variant], Testing { resamples: 9, seed: 1, block: 1 }).unwrap()[0];
        assert_eq!((found.base, found.variant), (base.score().unwrap(), variant.score().unwrap()));
    }

    #[test]
    fn systems_on_other_segments_or_with_other_metrics_panic() {
        let right = |metric| outcomes(&[1], metric);
        let accuracy = ClassificationMetric::Accuracy;
        let other = Segments::Classes(vec![Outcome { gold: 0, predicted: 1 }], accuracy);
        for (base, variant) in [
            (right(accuracy), other),
            (right(accuracy), right(ClassificationMetric::Matthews)),
            (documents(&[(1.0, 2)]), documents(&[(1.0, 3)])),
        ] {
            assert!(std::panic::catch_unwind(|| base.assert_paired(&variant)).is_err(), "{variant:?}");
        }
    }
}
