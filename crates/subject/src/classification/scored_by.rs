//! Metrics of classifiers, as the TOML file names them.
use serde::{Deserialize, Serialize};
use stats::estimates::CorrelationMetric;
use stats::text::TextMetric;

/// A measure of classification, of one output, or of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScoredBy {
    /// Share of right answers.
    Accuracy,
    /// Harmonic mean of precision and recall of one of two classes.
    F1,
    /// Matthews correlation of two classes.
    Matthews,
    /// Pearson correlation of a model's one output with the values of the data.
    Pearson,
    /// Spearman correlation of these.
    Spearman,
    /// F1 of the entities that the tags of words mark.
    EntityF1,
    /// Share of right tags of words.
    TokenAccuracy,
}

impl ScoredBy {
    /// The name in TOML and result files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::F1 => "f1",
            Self::Matthews => "matthews",
            Self::Pearson => "pearson",
            Self::Spearman => "spearman",
            Self::EntityF1 => "entity-f1",
            Self::TokenAccuracy => "token-accuracy",
        }
    }

    /// The metric, if it is of tags of words.
    pub(super) fn of_tags(self) -> Option<TextMetric> {
        match self {
            Self::EntityF1 => Some(TextMetric::EntityF1),
            Self::TokenAccuracy => Some(TextMetric::TokenAccuracy),
            _ => None,
        }
    }

    /// True if it is for two classes.
    pub(super) fn is_of_two(self) -> bool {
        matches!(self, Self::F1 | Self::Matthews)
    }

    /// The correlation, if this is a measure of numbers, not of classes.
    pub(super) fn correlation(self) -> Option<CorrelationMetric> {
        match self {
            Self::Pearson => Some(CorrelationMetric::Pearson),
            Self::Spearman => Some(CorrelationMetric::Spearman),
            _ => None,
        }
    }
}
