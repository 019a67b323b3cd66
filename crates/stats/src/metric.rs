//! What scores are: their names, units and directions, and how segments make them.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Direction;
use crate::classification::ClassificationMetric;

/// What scores are counted in, by its name in result files.
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

    /// Which of two scores is the better one.
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

/// How segments make a score.
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
    /// What its scores are counted in.
    pub fn name(self) -> MetricName {
        match self {
            Self::Bleu => MetricName::Bleu,
            Self::Classes(metric) => metric.name(),
            Self::Nats => MetricName::Nats,
        }
    }

    /// What is stored of a segment, by name.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Bleu => {
                &["hypothesis_length", "reference_length", "correct_1", "correct_2", "correct_3", "correct_4"]
            }
            Self::Classes(_) => &["gold", "predicted"],
            Self::Nats => &["nats", "tokens", "words"],
        }
    }

    /// Whether scores are compared by bootstrap; accuracies are by t-test.
    pub fn is_resampled(self) -> bool {
        self != Self::Classes(ClassificationMetric::Accuracy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nats are better the lower they are, and differ by less than points.
    #[test]
    fn metrics_have_names_directions_and_tests() {
        let f1 = Metric::Classes(ClassificationMetric::F1 { positive: 1 });
        let [accuracy, matthews] =
            [ClassificationMetric::Accuracy, ClassificationMetric::Matthews].map(Metric::Classes);
        let all = [accuracy, Metric::Bleu, f1, matthews, Metric::Nats];
        assert_eq!(all.map(Metric::name), MetricName::ALL);
        assert_eq!(all.map(Metric::is_resampled), [false, true, true, true, true]);
        let (points, nats) = ((2, Direction::HigherIsBetter), (4, Direction::LowerIsBetter));
        let found = MetricName::ALL.map(|metric| (metric.digits(), metric.direction()));
        assert_eq!(found, [points, points, points, points, nats]);
    }

    #[test]
    fn files_have_the_names_of_messages() {
        for metric in MetricName::ALL {
            let json = serde_json::to_value(metric).unwrap();
            assert_eq!(json, metric.name());
            assert_eq!(serde_json::from_value::<MetricName>(json).unwrap(), metric);
        }
        let message = serde_json::from_str::<MetricName>(r#""BLEU""#).unwrap_err().to_string();
        assert!(message.starts_with("unknown metric `BLEU`: it is one of accuracy, bleu, "), "{message}");
    }
}
