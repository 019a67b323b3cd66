//! Metrics: their names, units and directions.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classification::ClassificationMetric;
use crate::estimates::CorrelationMetric;
use crate::means::MeanMetric;
use crate::text::TextMetric;

/// Direction in which a score is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// BLEU, accuracy.
    HigherIsBetter,
    /// Nats per token.
    LowerIsBetter,
}

impl Direction {
    /// Returns the improvement of a model whose score changed by `delta`; negative if it became worse.
    pub fn gain(self, delta: f64) -> f64 {
        match self {
            Self::HigherIsBetter => delta,
            Self::LowerIsBetter => -delta,
        }
    }

    /// Returns true if `score` is better than `other`, false if they are equal.
    pub fn is_better(self, score: f64, other: f64) -> bool {
        self.gain(score) > self.gain(other)
    }
}

/// Name of a metric, as in result files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum MetricName {
    /// Share of right answers, in percent.
    Accuracy,
    /// Corpus BLEU, in points.
    #[default]
    Bleu,
    /// Harmonic mean of precision and recall of a class, in points.
    F1,
    /// Matthews correlation, in points.
    Matthews,
    /// Nats per token of a language model: lower is better.
    Nats,
    /// F1 of words in common, in points.
    Rouge1,
    /// F1 of word bigrams in common, in points.
    Rouge2,
    /// F1 of the longest common subsequence of words, in points.
    RougeL,
    /// F2 of character n-grams in common, in points.
    Chrf,
    /// Share of texts that equal their reference, in percent.
    ExactMatch,
    /// Pearson's correlation, in points.
    Pearson,
    /// Spearman's correlation, in points.
    Spearman,
    /// Translation edit rate: edits in percent of the reference length in words.
    Ter,
    /// Log-odds of the right choice, in nats.
    LogOdds,
    /// F1 of tagged entities, in points.
    EntityF1,
    /// Share of right tags, in percent.
    TokenAccuracy,
    /// Score of each document computed by another program, in its unit.
    Score,
}

/// Properties of a metric that do not depend on its segments.
struct Entry {
    metric: MetricName,
    name: &'static str,
    label: &'static str,
    /// Units of scores and of differences, if they must be stated.
    units: Option<[&'static str; 2]>,
    direction: Direction,
    digits: [usize; 2],
    range: Range,
}

/// Possible scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// 0 to 100.
    Points,
    /// -100 to 100.
    Signed,
    /// At least 0.
    Unbounded,
    /// Any number.
    Real,
}

/// Returns a metric in points or percent with higher scores better.
const fn entry(
    metric: MetricName,
    name: &'static str,
    label: &'static str,
    units: Option<[&'static str; 2]>,
) -> Entry {
    let direction = Direction::HigherIsBetter;
    Entry { metric, name, label, units, direction, digits: [2; 2], range: Range::Points }
}

const fn correlation(metric: MetricName, name: &'static str, label: &'static str) -> Entry {
    Entry { range: Range::Signed, ..entry(metric, name, label, POINTS) }
}

const PERCENT: Option<[&str; 2]> = Some(["%", "percentage points"]);
const POINTS: Option<[&str; 2]> = Some(["points"; 2]);

/// All metrics, in the order of [`MetricName`]. BLEU, ROUGE, chrF and TER are always in points, so their unit is not stated.
static TABLE: [Entry; 17] = [
    entry(MetricName::Accuracy, "accuracy", "accuracy", PERCENT),
    entry(MetricName::Bleu, "bleu", "BLEU", None),
    entry(MetricName::F1, "f1", "F1", POINTS),
    correlation(MetricName::Matthews, "matthews", "Matthews correlation"),
    Entry {
        direction: Direction::LowerIsBetter,
        digits: [3, 4],
        range: Range::Unbounded,
        ..entry(MetricName::Nats, "nats", "nats per token", None)
    },
    entry(MetricName::Rouge1, "rouge1", "ROUGE-1", None),
    entry(MetricName::Rouge2, "rouge2", "ROUGE-2", None),
    entry(MetricName::RougeL, "rougeL", "ROUGE-L", None),
    entry(MetricName::Chrf, "chrf", "chrF", None),
    entry(MetricName::ExactMatch, "exact-match", "exact match", PERCENT),
    correlation(MetricName::Pearson, "pearson", "Pearson correlation"),
    correlation(MetricName::Spearman, "spearman", "Spearman correlation"),
    Entry {
        direction: Direction::LowerIsBetter,
        range: Range::Unbounded,
        ..entry(MetricName::Ter, "ter", "TER", None)
    },
    Entry {
        digits: [3, 4],
        range: Range::Real,
        ..entry(MetricName::LogOdds, "log-odds", "log-odds", Some(["nats"; 2]))
    },
    entry(MetricName::EntityF1, "entity-f1", "entity F1", POINTS),
    entry(MetricName::TokenAccuracy, "token-accuracy", "token accuracy", PERCENT),
    Entry { digits: [4; 2], range: Range::Real, ..entry(MetricName::Score, "score", "score", None) },
];

impl MetricName {
    /// All metrics.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Accuracy; TABLE.len()];
        let mut place = 0;
        while place < TABLE.len() {
            all[place] = TABLE[place].metric;
            assert!(all[place] as usize == place, "the table has the order of the names");
            place += 1;
        }
        all
    };

    fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the name in running text.
    pub fn label(self) -> &'static str {
        self.entry().label
    }

    /// Returns the units of scores and of differences; `None` if they need not be stated.
    pub fn units(self) -> Option<[&'static str; 2]> {
        self.entry().units
    }

    /// Returns the decimal places of scores in running text.
    pub fn score_digits(self) -> usize {
        self.entry().digits[0]
    }

    /// Returns the decimal places of differences.
    pub fn digits(self) -> usize {
        self.entry().digits[1]
    }

    /// Returns the direction in which a score is better.
    pub fn direction(self) -> Direction {
        self.entry().direction
    }

    /// Returns the range of possible scores.
    pub fn range(self) -> Range {
        self.entry().range
    }
}

impl TryFrom<String> for MetricName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::name).join(", ");
            format!("unknown metric `{}`: expected one of {allowed}", words::excerpt(&name))
        })
    }
}

impl From<MetricName> for &'static str {
    fn from(metric: MetricName) -> Self {
        metric.name()
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A metric with the parameters that computing it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Corpus BLEU.
    Bleu,
    /// A metric of classifiers.
    Classes(ClassificationMetric),
    /// Nats per token of a language model, the logarithm of its perplexity.
    Nats,
    /// A metric of generated texts, or of tags.
    Texts(TextMetric),
    /// A metric of models with one output.
    Estimates(CorrelationMetric),
    /// A mean of real numbers.
    Means(MeanMetric),
}

impl Metric {
    /// Returns the metric with this name; `None` if a positive class is missing or not needed.
    pub fn of(name: MetricName, positive: Option<usize>) -> Option<Self> {
        let texts = TextMetric::ALL.into_iter().map(Self::Texts);
        let estimates = CorrelationMetric::ALL.into_iter().map(Self::Estimates);
        let classes = [ClassificationMetric::Accuracy, ClassificationMetric::Matthews].map(Self::Classes);
        let means = MeanMetric::ALL.into_iter().map(Self::Means);
        let mut all =
            [Self::Bleu, Self::Nats].into_iter().chain(means).chain(classes).chain(texts).chain(estimates);
        match (name, positive) {
            (MetricName::F1, Some(positive)) => Some(Self::Classes(ClassificationMetric::F1 { positive })),
            (_, None) => all.find(|metric| metric.name() == name),
            _ => None,
        }
    }

    /// Returns the metric of generated texts with this name; `None` for other metrics.
    pub fn of_texts(name: &str) -> Option<Self> {
        let metric = Self::of(MetricName::try_from(name.to_owned()).ok()?, None)?;
        let is_of_texts = match metric {
            Self::Bleu => true,
            Self::Texts(metric) => !metric.is_of_tags(),
            _ => false,
        };
        is_of_texts.then_some(metric)
    }

    /// Returns its name.
    pub fn name(self) -> MetricName {
        match self {
            Self::Bleu => MetricName::Bleu,
            Self::Classes(metric) => metric.name(),
            Self::Nats => MetricName::Nats,
            Self::Texts(metric) => metric.name(),
            Self::Estimates(metric) => metric.name(),
            Self::Means(metric) => metric.name(),
        }
    }

    /// Returns the names of the numbers stored for each segment.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Bleu => {
                &["hypothesis_length", "reference_length", "correct_1", "correct_2", "correct_3", "correct_4"]
            }
            Self::Classes(_) => &["gold", "predicted"],
            Self::Nats => &["nats", "tokens", "words"],
            Self::Texts(metric) => metric.columns(),
            Self::Estimates(_) => &["gold", "predicted"],
            Self::Means(metric) => metric.columns(),
        }
    }

    /// Returns true if scores are compared by bootstrap; accuracies are compared by t-test.
    pub fn is_resampled(self) -> bool {
        self != Self::Classes(ClassificationMetric::Accuracy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_of_messages() {
        for metric in MetricName::ALL {
            let json = serde_json::to_value(metric).unwrap();
            assert_eq!(json, metric.name());
            assert_eq!(serde_json::from_value::<MetricName>(json).unwrap(), metric);
        }
        let is_better = |metric: MetricName, own, other| metric.direction().is_better(own, other);
        assert!(is_better(MetricName::Nats, 1.0, 2.0) && is_better(MetricName::Bleu, 2.0, 1.0));
        let message = serde_json::from_str::<MetricName>(r#""BLEU""#).unwrap_err().to_string();
        assert!(message.starts_with("unknown metric `BLEU`: expected one of accuracy, bleu, "), "{message}");
    }
}
