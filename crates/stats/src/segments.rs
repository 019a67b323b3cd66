//! What is known of the segments of a test set, whatever the metric.

use crate::bleu::BleuStatistics;
use crate::bootstrap::{Change, Interval, Resampled, Scores, changes, paired_bootstrap, weighted};
use crate::classification::{self, ClassificationMetric, Outcome, counted};
use crate::confusion::{Accuracy, Decision, F1, Matthews, reach_of_flips};
use crate::nats::NatsStatistics;
use crate::{Cell, Error, Metric, SegmentStatistics, score};

/// What is known of each segment, in the order of the test set.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Segments {
    /// Sufficient statistics of corpus BLEU.
    Bleu(Vec<BleuStatistics>),
    /// Right and predicted classes, and what is made of them.
    Classes(Vec<Outcome>, ClassificationMetric),
    /// Nats and lengths of documents.
    Nats(Vec<NatsStatistics>),
}

/// A segment as it is stored: one number for each of [`Metric::columns`].
pub type Cells = Vec<Cell>;

impl Segments {
    /// From stored segments.
    ///
    /// # Errors
    /// [`Error::Cells`] if one has not a number for each column, [`Error::Nats`] if a document cannot be.
    pub fn from_cells(metric: Metric, segments: &[Cells]) -> Result<Self, Error> {
        let fault = Error::Cells { metric: metric.name(), columns: metric.columns().len() };
        let counts = |cells: &Cells| cells.iter().map(|cell| cell.count()).collect::<Option<Vec<u32>>>();
        match metric {
            Metric::Bleu => {
                let segment = |cells| match counts(cells).as_deref() {
                    Some(&[hypothesis, reference, c1, c2, c3, c4]) => {
                        Ok(BleuStatistics::new(hypothesis, reference, [c1, c2, c3, c4]))
                    }
                    _ => Err(fault),
                };
                Ok(Self::Bleu(segments.iter().map(segment).collect::<Result<_, _>>()?))
            }
            Metric::Classes(metric) => {
                let outcome = |cells| match counts(cells).as_deref() {
                    Some(&[gold, predicted]) => {
                        Ok(Outcome { gold: gold as usize, predicted: predicted as usize })
                    }
                    _ => Err(fault),
                };
                Ok(Self::Classes(segments.iter().map(outcome).collect::<Result<_, _>>()?, metric))
            }
            Metric::Nats => {
                let document = |cells: &Cells| NatsStatistics::from_cells(cells).unwrap_or(Err(fault));
                Ok(Self::Nats(segments.iter().map(document).collect::<Result<_, _>>()?))
            }
        }
    }

    /// A segment as it is stored.
    ///
    /// # Panics
    /// If there is no such segment.
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
            Self::Nats(documents) => documents[segment].cells(),
        }
    }

    /// How the segments make a score.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Bleu(_) => Metric::Bleu,
            Self::Classes(_, metric) => Metric::Classes(*metric),
            Self::Nats(_) => Metric::Nats,
        }
    }

    /// Number of segments.
    pub fn len(&self) -> usize {
        match self {
            Self::Bleu(segments) => segments.len(),
            Self::Classes(outcomes, _) => outcomes.len(),
            Self::Nats(documents) => documents.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how far the score moves if this share of the segments changes: of two classes, predictions of one kind are turned
    /// round; of other metrics each segment takes along what it adds on average.
    pub(crate) fn reach(&self, share: f64) -> Result<Interval, Error> {
        let flipped = |outcomes: &[Outcome], score: fn(&[f64]) -> f64, positive| {
            let mut sums = [0.0; 4];
            for counts in outcomes.iter().map(|&outcome| Decision::of(outcome, positive).counts()) {
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            reach_of_flips(sums, share * outcomes.len() as f64, score)
        };
        match self {
            Self::Classes(outcomes, ClassificationMetric::F1 { positive }) => {
                Ok(flipped(outcomes, F1::score, *positive))
            }
            Self::Classes(outcomes, ClassificationMetric::Matthews) => {
                Ok(flipped(outcomes, Matthews::score, 1))
            }
            _ => {
                let most = share * self.score()?.abs();
                Ok(Interval { low: -most, high: most })
            }
        }
    }

    /// The score of the test set, in the unit of the metric.
    ///
    /// # Errors
    /// [`Error::Empty`] without segments, [`Error::Class`] if a metric of two classes meets a class above 1.
    pub fn score(&self) -> Result<f64, Error> {
        match self {
            Self::Bleu(segments) if segments.is_empty() => Err(Error::Empty),
            Self::Bleu(segments) => Ok(score(segments)),
            Self::Classes(outcomes, metric) => classification::score(outcomes, *metric),
            Self::Nats(documents) if documents.is_empty() => Err(Error::Empty),
            Self::Nats(documents) => Ok(score(documents)),
        }
    }

    /// The paired bootstrap of `variants` against this base, whatever the metric: [`paired_bootstrap`].
    ///
    /// # Errors
    /// As for that, and [`Error::Class`] if a metric of two classes meets a class above 1.
    ///
    /// # Panics
    /// If a variant covers other segments or has another metric.
    pub fn resampled(
        &self,
        variants: &[&Self],
        resamples: usize,
        seed: u64,
    ) -> Result<Vec<Resampled>, Error> {
        self.check(variants)?;
        match self.typed(variants) {
            Typed::Bleu(pair) => paired_bootstrap(&pair.base, &pair.variants, resamples, seed),
            Typed::Accuracy(pair) => paired_bootstrap(&pair.base, &pair.variants, resamples, seed),
            Typed::F1(pair) => paired_bootstrap(&pair.base, &pair.variants, resamples, seed),
            Typed::Matthews(pair) => paired_bootstrap(&pair.base, &pair.variants, resamples, seed),
            Typed::Nats(pair) => paired_bootstrap(&pair.base, &pair.variants, resamples, seed),
        }
    }

    /// Scores with each segment counted as often as `drawn` names it, under each of `weightings`.
    ///
    /// # Errors
    /// [`Error::Empty`] without segments, [`Error::Class`] if a metric of two classes meets a class above 1.
    pub(crate) fn weighted<I: IntoIterator<Item = usize>>(
        &self,
        variants: &[&Self],
        weightings: usize,
        drawn: impl Fn(u64) -> I + Sync,
    ) -> Result<Scores, Error> {
        self.check(variants)?;
        Ok(match self.typed(variants) {
            Typed::Bleu(pair) => weighted(&pair.base, &pair.variants, weightings, drawn),
            Typed::Accuracy(pair) => weighted(&pair.base, &pair.variants, weightings, drawn),
            Typed::F1(pair) => weighted(&pair.base, &pair.variants, weightings, drawn),
            Typed::Matthews(pair) => weighted(&pair.base, &pair.variants, weightings, drawn),
            Typed::Nats(pair) => weighted(&pair.base, &pair.variants, weightings, drawn),
        })
    }

    fn check(&self, variants: &[&Self]) -> Result<(), Error> {
        self.score()?;
        variants.iter().try_for_each(|variant| variant.score().map(drop))
    }

    fn typed(&self, variants: &[&Self]) -> Typed {
        match self {
            Self::Bleu(base) => {
                let segments = variants.iter().map(|variant| match variant {
                    Self::Bleu(segments) => segments.clone(),
                    _ => panic!("paired systems must have the same metric"),
                });
                Typed::Bleu(Pair::new(base.clone(), segments))
            }
            Self::Classes(base, metric) => {
                let outcomes = variants.iter().map(|variant| match variant {
                    Self::Classes(outcomes, own) if own == metric => outcomes.as_slice(),
                    _ => panic!("paired systems must have the same metric"),
                });
                Typed::of_classes(base, outcomes.collect(), *metric)
            }
            Self::Nats(base) => {
                let documents = variants.iter().map(|variant| match variant {
                    Self::Nats(documents) => paired_documents(base, documents),
                    _ => panic!("paired systems must have the same metric"),
                });
                Typed::Nats(Pair::new(base.clone(), documents))
            }
        }
    }
}

/// A base and what its variants change.
struct Pair<S> {
    base: Vec<S>,
    variants: Vec<Vec<Change<S>>>,
}

impl<S: SegmentStatistics> Pair<S> {
    fn new(base: Vec<S>, variants: impl Iterator<Item = Vec<S>>) -> Self {
        let variants = variants.map(|variant| changes(&base, &variant)).collect();
        Self { base, variants }
    }
}

/// A base and its variants, as their metric counts segments.
enum Typed {
    Bleu(Pair<BleuStatistics>),
    Accuracy(Pair<Accuracy>),
    F1(Pair<F1>),
    Matthews(Pair<Matthews>),
    Nats(Pair<NatsStatistics>),
}

impl Typed {
    fn of_classes(base: &[Outcome], variants: Vec<&[Outcome]>, metric: ClassificationMetric) -> Self {
        for variant in &variants {
            let gold = |outcome: &Outcome| outcome.gold;
            let are_paired = base.iter().map(gold).eq(variant.iter().map(gold));
            assert!(are_paired, "paired systems must cover the same examples");
        }
        match metric {
            ClassificationMetric::Accuracy => Self::Accuracy(pair(base, &variants, Accuracy::of)),
            ClassificationMetric::F1 { positive } => {
                Self::F1(pair(base, &variants, |outcome| F1(Decision::of(outcome, positive))))
            }
            // Which class is the positive one makes no difference.
            ClassificationMetric::Matthews => {
                Self::Matthews(pair(base, &variants, |outcome| Matthews(Decision::of(outcome, 1))))
            }
        }
    }
}

fn paired_documents(base: &[NatsStatistics], variant: &[NatsStatistics]) -> Vec<NatsStatistics> {
    let are_paired = base.iter().zip(variant).all(|(base, variant)| base.is_paired_with(variant));
    assert!(are_paired, "paired systems must cover the same documents");
    variant.to_vec()
}

fn pair<S: SegmentStatistics>(
    base: &[Outcome],
    variants: &[&[Outcome]],
    of: impl Fn(Outcome) -> S,
) -> Pair<S> {
    Pair::new(counted(base, &of), variants.iter().map(|variant| counted(variant, &of)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(predicted: &[usize], metric: ClassificationMetric) -> Segments {
        let outcome = |&predicted: &usize| Outcome { gold: 1, predicted };
        Segments::Classes(predicted.iter().map(outcome).collect(), metric)
    }

    #[test]
    fn stored_segments_read_back() {
        let bleu = Segments::Bleu(vec![
            BleuStatistics::new(7, 5, [4, 3, 2, 1]),
            BleuStatistics::new(0, 2, [0; 4]),
            BleuStatistics::new(2, 9, [2, 1, 0, 0]),
        ]);
        let nats = documents(&[(7.1, 3), (0.0, 0), (2.0, 5)]);
        for segments in [bleu, outcomes(&[1, 0, 2], ClassificationMetric::Accuracy), nats] {
            let cells: Vec<Cells> = (0..segments.len()).map(|segment| segments.cells(segment)).collect();
            assert!(cells.iter().all(|cells| cells.len() == segments.metric().columns().len()));
            assert_eq!(Segments::from_cells(segments.metric(), &cells), Ok(segments));
        }
        let torn = Segments::from_cells(Metric::Bleu, &[[1, 2, 3].map(Cell::Count).to_vec()]);
        assert_eq!(torn.unwrap_err().to_string(), "a segment of bleu has 6 numbers");
        let class = vec![Cell::Count(1), Cell::Decimal(1.0)];
        let accuracy = Metric::Classes(ClassificationMetric::Accuracy);
        assert!(Segments::from_cells(accuracy, &[class]).is_err(), "a class is counted");
        let document = vec![Cell::Decimal(1.0), Cell::Count(0), Cell::Count(0)];
        assert_eq!(
            Segments::from_cells(Metric::Nats, &[document]),
            Err(Error::Nats { nats: 1.0, tokens: 0 })
        );
    }

    fn documents(documents: &[(f64, u32)]) -> Segments {
        let document = |&(nats, tokens): &(f64, u32)| NatsStatistics::new(nats, tokens, 2 * tokens);
        Segments::Nats(documents.iter().map(document).collect::<Result<_, _>>().unwrap())
    }

    /// Adding what a variant changes to the sums of its base rounds otherwise than adding up the variant.
    #[test]
    fn a_resampled_score_is_the_measured_one_to_the_last_bit() {
        let base = documents(&[(1e6, 7), (0.1, 2), (0.3, 3), (1e-7, 5)]);
        let variant = documents(&[(1.7, 7), (0.2, 2), (1e-3, 3), (3e-9, 5)]);
        let found = base.resampled(&[&variant], 9, 1).unwrap().remove(0);
        assert_eq!((found.base, found.variant), (base.score().unwrap(), variant.score().unwrap()));
    }

    #[test]
    #[should_panic(expected = "paired systems must cover the same documents")]
    fn documents_of_other_lengths_panic() {
        let _ = documents(&[(1.0, 2)]).resampled(&[&documents(&[(1.0, 3)])], 1, 1);
    }

    /// Of two right and two wrong, the variant mends one: 50 and 75 of 100, as the metric itself says.
    #[test]
    fn an_accuracy_can_be_resampled_too() {
        let (base, variant) = (
            outcomes(&[1, 1, 0, 0], ClassificationMetric::Accuracy),
            outcomes(&[1, 1, 1, 0], ClassificationMetric::Accuracy),
        );
        let found = base.resampled(&[&variant], 50, 1).unwrap();
        assert_eq!((found[0].base, found[0].variant), (50.0, 75.0));
        assert!(found[0].deltas.iter().all(|delta| (0.0..=100.0).contains(delta) && delta % 25.0 == 0.0));
    }

    #[test]
    fn what_cannot_be_scored_cannot_be_resampled() {
        let matthews = outcomes(&[1, 2], ClassificationMetric::Matthews);
        assert_eq!(
            matthews.resampled(&[], 5, 1).unwrap_err(),
            Error::Class { class: 2, metric: crate::MetricName::Matthews }
        );
        for empty in [Segments::Bleu(Vec::new()), Segments::Nats(Vec::new())] {
            assert_eq!(empty.resampled(&[], 5, 1).unwrap_err(), Error::Empty);
        }
        assert!(Segments::Bleu(Vec::new()).is_empty());
    }

    #[test]
    #[should_panic(expected = "paired systems must have the same metric")]
    fn other_metrics_panic() {
        let (accuracy, matthews) = (ClassificationMetric::Accuracy, ClassificationMetric::Matthews);
        let _ = outcomes(&[1], accuracy).resampled(&[&outcomes(&[1], matthews)], 1, 1);
    }
}
