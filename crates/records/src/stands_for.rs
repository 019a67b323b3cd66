//! The model of the paper that a setup corresponds to.
use serde::{Deserialize, Serialize};

use crate::MetricName;

/// Model and data of Michel et al. (2019) whose published numbers are shown next to a setup's; set in the setup's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StandsFor {
    /// The large translator, English to French: Tables 1, 2 and 5, Figures 1a, 2a, 3a and 4.
    Wmt,
    /// The small translator, German to English: Figures 5 and 6d.
    Iwslt,
    /// BERT on MultiNLI: Tables 3, 4 and 6, Figures 1b, 2b and 3b.
    Mnli,
    /// BERT on SST-2: Figure 6a.
    Sst2,
    /// BERT on CoLA: Figure 6b.
    Cola,
    /// BERT on MRPC: Figure 6c.
    Mrpc,
}

impl StandsFor {
    /// Returns the metric of the paper. Scores in other metrics are not compared.
    pub fn metric(self) -> MetricName {
        match self {
            Self::Wmt | Self::Iwslt => MetricName::Bleu,
            Self::Mnli | Self::Sst2 => MetricName::Accuracy,
            Self::Cola => MetricName::Matthews,
            Self::Mrpc => MetricName::F1,
        }
    }

    /// Returns the figure that shows how many heads can be pruned.
    pub fn figure(self) -> &'static str {
        match self {
            Self::Wmt => "Figure 3a",
            Self::Iwslt => "Figure 6d",
            Self::Mnli => "Figure 3b",
            Self::Sst2 => "Figure 6a",
            Self::Cola => "Figure 6b",
            Self::Mrpc => "Figure 6c",
        }
    }

    /// Returns true for a translator.
    pub fn translates(self) -> bool {
        matches!(self, Self::Wmt | Self::Iwslt)
    }

    /// Returns true for BERT on MultiNLI.
    pub fn is_inference(self) -> bool {
        self == Self::Mnli
    }

    /// Returns the value for translators, or for BERT on MultiNLI; `None` for others, about which the paper reports less.
    pub fn of_both<T>(self, translator: T, inference: T) -> Option<T> {
        if self.translates() { Some(translator) } else { self.is_inference().then_some(inference) }
    }
}
