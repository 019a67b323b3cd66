//! Metrics: their names, units and directions.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classification::ClassificationMetric;
use crate::estimates::CorrelationMetric;
use crate::text::TextMetric;

/// Side on which a score is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// BLEU, accuracy.
    HigherIsBetter,
    /// Nats per token.
    LowerIsBetter,
}

impl Direction {
    /// Improvement of a model whose score changed by `delta`; below 0 it became worse.
    pub fn gain(self, delta: f64) -> f64 {
        match self {
            Self::HigherIsBetter => delta,
            Self::LowerIsBetter => -delta,
        }
    }

    /// `true` if `score` is better than `other`; of equals, none is.
    pub fn is_better(self, score: f64, other: f64) -> bool {
        self.gain(score) > self.gain(other)
    }
}

/// Unit of scores, by its name in result files.
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
    /// F1 of common words, in points.
    Rouge1,
    /// F1 of common pairs of words, in points.
    Rouge2,
    /// F1 of the longest common subsequence of words, in points.
    RougeL,
    /// F2 of common character n-grams, in points.
    Chrf,
    /// Share of texts that equal their reference, in percent.
    ExactMatch,
    /// Pearson's correlation, in points.
    Pearson,
    /// Spearman's correlation, in points.
    Spearman,
}

impl MetricName {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Accuracy,
        Self::Bleu,
        Self::F1,
        Self::Matthews,
        Self::Nats,
        Self::Rouge1,
        Self::Rouge2,
        Self::RougeL,
        Self::Chrf,
        Self::ExactMatch,
        Self::Pearson,
        Self::Spearman,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Bleu => "bleu",
            Self::F1 => "f1",
            Self::Matthews => "matthews",
            Self::Nats => "nats",
            Self::Rouge1 => "rouge1",
            Self::Rouge2 => "rouge2",
            Self::RougeL => "rougeL",
            Self::Chrf => "chrf",
            Self::ExactMatch => "exact-match",
            Self::Pearson => "pearson",
            Self::Spearman => "spearman",
        }
    }

    /// Digits behind the point that differences of scores are told with.
    pub fn digits(self) -> usize {
        if self == Self::Nats { 4 } else { 2 }
    }

    /// Side on which a score is better.
    pub fn direction(self) -> Direction {
        if self == Self::Nats { Direction::LowerIsBetter } else { Direction::HigherIsBetter }
    }
}

impl TryFrom<String> for MetricName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::name).join(", ");
            format!("unknown metric `{}`: it is one of {allowed}", words::excerpt(&name))
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

/// Way to make a score of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Corpus BLEU.
    Bleu,
    /// A score of classifiers.
    Classes(ClassificationMetric),
    /// Nats per token of a language model, the logarithm of its perplexity.
    Nats,
    /// A score of generated texts.
    Texts(TextMetric),
    /// A score of models with one output.
    Estimates(CorrelationMetric),
}

impl Metric {
    /// The metric of this name; `None` if it needs a positive class and has none, or the other way round.
    pub fn of(name: MetricName, positive: Option<usize>) -> Option<Self> {
        let texts = TextMetric::ALL.into_iter().map(Self::Texts);
        let estimates = CorrelationMetric::ALL.into_iter().map(Self::Estimates);
        let classes = [ClassificationMetric::Accuracy, ClassificationMetric::Matthews].map(Self::Classes);
        let mut all = [Self::Bleu, Self::Nats].into_iter().chain(classes).chain(texts).chain(estimates);
        match (name, positive) {
            (MetricName::F1, Some(positive)) => Some(Self::Classes(ClassificationMetric::F1 { positive })),
            (_, None) => all.find(|metric| metric.name() == name),
            _ => None,
        }
    }

    /// Unit of its scores.
    pub fn name(self) -> MetricName {
        match self {
            Self::Bleu => MetricName::Bleu,
            Self::Classes(metric) => metric.name(),
            Self::Nats => MetricName::Nats,
            Self::Texts(metric) => metric.name(),
            Self::Estimates(metric) => metric.name(),
        }
    }

    /// Numbers that are stored of a segment, by name.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Bleu => {
                &["hypothesis_length", "reference_length", "correct_1", "correct_2", "correct_3", "correct_4"]
            }
            Self::Classes(_) => &["gold", "predicted"],
            Self::Nats => &["nats", "tokens", "words"],
            Self::Texts(metric) => metric.columns(),
            Self::Estimates(_) => &["gold", "predicted"],
        }
    }

    /// `true` if scores are compared by bootstrap; accuracies are by t-test.
    pub fn is_resampled(self) -> bool {
        self != Self::Classes(ClassificationMetric::Accuracy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_of_messages_and_fewer_nats_are_better() {
        for metric in MetricName::ALL {
            let json = serde_json::to_value(metric).unwrap();
            assert_eq!(json, metric.name());
            assert_eq!(serde_json::from_value::<MetricName>(json).unwrap(), metric);
            assert_eq!(metric.direction().is_better(1.0, 2.0), metric == MetricName::Nats);
        }
        let message = serde_json::from_str::<MetricName>(r#""BLEU""#).unwrap_err().to_string();
        assert!(message.starts_with("unknown metric `BLEU`: it is one of accuracy, bleu, "), "{message}");
    }
}
