//! Metrics: their names, units and directions.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classification::ClassificationMetric;

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
#[serde(rename_all = "lowercase", try_from = "String")]
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
}

impl MetricName {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Accuracy, Self::Bleu, Self::F1, Self::Matthews, Self::Nats];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Bleu => "bleu",
            Self::F1 => "f1",
            Self::Matthews => "matthews",
            Self::Nats => "nats",
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
}

impl Metric {
    /// Unit of its scores.
    pub fn name(self) -> MetricName {
        match self {
            Self::Bleu => MetricName::Bleu,
            Self::Classes(metric) => metric.name(),
            Self::Nats => MetricName::Nats,
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
