//! Rows of pruned models in llama.cpp.
use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{Limit, MOST, finite};

/// One row of `llama-cpp`: a model without some heads, run by llama.cpp. The first row is the full model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlamaCppRow {
    /// How heads were chosen, such as `importance by group`; `nothing` for the full model.
    pub removal: String,
    /// Number of removed heads.
    pub removed: usize,
    /// Number of heads of the full model.
    pub heads: usize,
    /// Size of the GGUF file, in bytes.
    pub file_bytes: u64,
    /// Size of the key-value cache, in bytes.
    pub cache_bytes: u64,
    /// Tokens that the cache holds.
    pub cache_tokens: usize,
    /// Predicted tokens.
    pub predictions: usize,
    /// Nats per token.
    pub nats: f64,
    /// `nats` minus the nats of the full model.
    pub nats_delta: f64,
    /// Lower end of the 95% interval of `nats_delta`, over windows of the text.
    pub delta_low: f64,
    /// Upper end of the 95% interval of `nats_delta`.
    pub delta_high: f64,
    /// Timed rounds over all models, without the warm-up.
    pub rounds: usize,
    /// Prompt tokens per second, mean over rounds.
    pub prompt_per_second: f64,
    /// Prompt speed divided by the full model's: geometric mean over rounds.
    pub prompt_ratio: f64,
    /// Lower end of the 95% interval of `prompt_ratio`, over rounds.
    pub prompt_ratio_low: f64,
    /// Upper end of the 95% interval of `prompt_ratio`.
    pub prompt_ratio_high: f64,
    /// Generated tokens per second, mean over rounds.
    pub generated_per_second: f64,
    /// Generation speed divided by the full model's: geometric mean over rounds.
    pub generated_ratio: f64,
    /// Lower end of the 95% interval of `generated_ratio`, over rounds.
    pub generated_ratio_low: f64,
    /// Upper end of the 95% interval of `generated_ratio`.
    pub generated_ratio_high: f64,
}

impl Row for LlamaCppRow {
    /// The full model first, then by choice of the removed heads and their number.
    type Key = (bool, String, usize);

    fn key(&self) -> Self::Key {
        (self.removed > 0, self.removal.clone(), self.removed)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.removal, self.removed)
    }

    fn limits(&self) -> Vec<Limit> {
        let some = |column, value| Limit::new(column, value, 1.0..=f64::MAX, "at least 1");
        let above = |column, value| Limit::new(column, value, 1e-9..=MOST, "above 0 and finite");
        let mut limits = finite(&[
            ("nats_delta", Some(self.nats_delta)),
            ("delta_low", Some(self.delta_low)),
            ("delta_high", Some(self.delta_high)),
        ]);
        limits.extend([
            Limit::new("heads", self.heads as f64, 1.0..=1e5, "1 to 100000"),
            Limit::new("removed", self.removed as f64, 0.0..=self.heads as f64, "at most `heads`"),
            some("file_bytes", self.file_bytes as f64),
            some("cache_bytes", self.cache_bytes as f64),
            some("cache_tokens", self.cache_tokens as f64),
            some("predictions", self.predictions as f64),
            some("rounds", self.rounds as f64),
            above("nats", self.nats),
            above("prompt_per_second", self.prompt_per_second),
            above("prompt_ratio", self.prompt_ratio),
            above("prompt_ratio_low", self.prompt_ratio_low),
            above("prompt_ratio_high", self.prompt_ratio_high),
            above("generated_per_second", self.generated_per_second),
            above("generated_ratio", self.generated_ratio),
            above("generated_ratio_low", self.generated_ratio_low),
            above("generated_ratio_high", self.generated_ratio_high),
        ]);
        limits
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        let numbers = [
            ("heads", self.heads),
            ("cache_tokens", self.cache_tokens),
            ("predictions", self.predictions),
            ("rounds", self.rounds),
        ];
        numbers.map(|(column, number)| (column, number.to_string())).to_vec()
    }
}
