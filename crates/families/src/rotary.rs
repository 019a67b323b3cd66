//! Rotary positions: Su et al. (2021), <https://arxiv.org/abs/2104.09864>. As in transformers, a dimension of the first half of a head is
//! paired with one of the second half; in some families neighbouring dimensions are paired, as in the paper.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use words::excerpt;

use crate::limits::check_range;

/// Scaling of rotary frequencies, for texts longer than in the original training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase")]
pub enum RotaryScaling {
    /// Divides all frequencies by a factor: Chen et al. (2023), <https://arxiv.org/abs/2306.15595>.
    Linear {
        /// Divisor of all frequencies.
        factor: f64,
    },
    /// Divides low frequencies by a factor, keeps high ones, and interpolates in between: Llama 3.1,
    /// <https://github.com/meta-llama/llama-models/blob/v0.0.1/models/llama3_1/api/model.py>.
    Llama3 {
        /// Divisor of low frequencies.
        factor: f64,
        /// Frequencies with fewer rotations than this in the original length are low.
        low_freq_factor: f64,
        /// Frequencies with more rotations than this are high.
        high_freq_factor: f64,
        /// Maximum length in the original training, in tokens.
        original_max_position_embeddings: u32,
    },
}

impl RotaryScaling {
    /// Refuses numbers that would make a frequency infinite or NaN, and returns why.
    pub fn validate(self) -> Result<(), String> {
        let positive = 1e-6..=1e16;
        match self {
            Self::Linear { factor } => check_range(positive, [("rope_scaling.factor", factor)]),
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings } => {
                let length = f64::from(original_max_position_embeddings);
                check_range(
                    positive,
                    [
                        ("rope_scaling.factor", factor),
                        ("rope_scaling.low_freq_factor", low_freq_factor),
                        ("rope_scaling.high_freq_factor", high_freq_factor),
                        ("rope_scaling.original_max_position_embeddings", length),
                    ],
                )?;
                if low_freq_factor < high_freq_factor {
                    return Ok(());
                }
                let low = format!("rope_scaling.low_freq_factor ({low_freq_factor:?})");
                Err(format!("{low} must be below high_freq_factor ({high_freq_factor:?})"))
            }
        }
    }

    /// Scales a frequency, in radians per token.
    pub fn scale(self, frequency: f64) -> f64 {
        match self {
            Self::Linear { factor } => frequency / factor,
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings } => {
                let turns = f64::from(original_max_position_embeddings) * frequency / std::f64::consts::TAU;
                let share = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                let share = share.clamp(0.0, 1.0); // 0 for low, 1 for high frequencies
                frequency * (share + (1.0 - share) / factor)
            }
        }
    }
}

/// Converts rotary settings of all transformers versions to `rope_theta` and `rope_scaling` (with `rope_type`) and, if the family `has`
/// them, `partial_rotary_factor` and `rope_local_base_freq`.
pub fn normalise_rotary_keys(
    json: &mut Map<String, Value>,
    has: impl Fn(&str) -> bool,
) -> Result<(), String> {
    // transformers 5 has one key for both
    if let Some(Value::Object(mut settings)) = json.remove("rope_parameters") {
        if has(LOCAL_BASE)
            && let Some(Value::Object(mut local)) = settings.remove("sliding_attention")
            && let Some(Value::Object(global)) = settings.remove("full_attention")
        {
            let kind = local.get("rope_type").and_then(Value::as_str).unwrap_or("default");
            if kind != "default" {
                return Err(format!(
                    "rope_type of sliding layers is `{}`; only `default` is supported",
                    excerpt(kind)
                ));
            }
            json.extend(local.remove("rope_theta").map(|theta| (LOCAL_BASE.to_owned(), theta)));
            settings = global;
        }
        if settings.values().any(Value::is_object) {
            return Err("rope_parameters differ from layer to layer, which is not supported".to_owned());
        }
        if let Some(theta) = settings.remove("rope_theta") {
            json.insert("rope_theta".to_owned(), theta);
        }
        json.extend(settings.remove(SHARE).map(|share| (SHARE.to_owned(), share)));
        json.insert("rope_scaling".to_owned(), Value::Object(settings));
    }
    let check = |entries: &Map<String, Value>| match entries.get(SHARE).and_then(Value::as_f64) {
        Some(share) if share != 1.0 && !has(SHARE) => {
            Err(format!("{SHARE} is {share}; only 1 is supported for this family"))
        }
        _ => Ok(()),
    };
    check(json)?;
    let mut scaling = match json.remove("rope_scaling") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(scaling)) => scaling,
        Some(_) => return Err("rope_scaling is not an object".to_owned()),
    };
    if let Some(old) = scaling.remove("type") {
        scaling.entry("rope_type").or_insert(old);
    }
    check(&scaling)?;
    let kind = scaling.get("rope_type").map_or(Some("default"), Value::as_str);
    match kind.ok_or("rope_type is not text")? {
        "default" => {}
        "linear" | "llama3" => {
            json.insert("rope_scaling".to_owned(), Value::Object(scaling));
        }
        other => {
            let found = excerpt(other);
            return Err(format!("rope_type is `{found}`; expected `default`, `linear` or `llama3`"));
        }
    }
    Ok(())
}

/// Share of each head's dimensions that are rotated.
const SHARE: &str = "partial_rotary_factor";
/// Base of the rotary frequencies in layers with a sliding window.
const LOCAL_BASE: &str = "rope_local_base_freq";

/// Rotary settings of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RotaryConfig {
    /// Number of dimensions of a head that are rotated, from the first on.
    pub width: i64,
    /// True if neighbouring dimensions are paired instead of the two halves.
    pub interleaved: bool,
    /// Base of the frequencies.
    pub theta: f64,
    /// Scaling of the frequencies.
    pub scaling: Option<RotaryScaling>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one_age(json: Value) -> Result<Value, String> {
        let Value::Object(mut json) = json else { panic!("{json}") };
        normalise_rotary_keys(&mut json, |_| false)?;
        Ok(Value::Object(json))
    }

    #[test]
    fn settings_of_all_transformers_versions_are_equivalent() {
        let linear = json!({ "rope_theta": 5.0, "rope_scaling": { "rope_type": "linear", "factor": 2.0 } });
        let plain = json!({ "rope_theta": 5.0 });
        for (old, expected) in [
            (json!({ "rope_theta": 5.0, "rope_scaling": { "type": "linear", "factor": 2.0 } }), &linear),
            (
                json!({ "rope_parameters": { "rope_type": "linear", "rope_theta": 5.0, "factor": 2.0 } }),
                &linear,
            ),
            (linear.clone(), &linear),
            (json!({ "rope_theta": 5.0, "rope_scaling": null }), &plain),
            (json!({ "rope_parameters": { "rope_type": "default", "rope_theta": 5.0 } }), &plain),
        ] {
            assert_eq!(one_age(old).as_ref(), Ok(expected));
        }
    }

    #[test]
    fn unknown_settings_are_refused_by_name() {
        for (json, expected) in [
            (json!({ "rope_scaling": { "rope_type": "yarn", "factor": 4.0 } }), "rope_type is `yarn`"),
            (json!({ "rope_parameters": { "partial_rotary_factor": 0.5 } }), "partial_rotary_factor is 0.5"),
            (json!({ "partial_rotary_factor": 0.5 }), "partial_rotary_factor is 0.5"),
        ] {
            let refusal = one_age(json).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }

    /// In 100 tokens, frequencies with at most 1 rotation are low, those with at least 4 high; 2.5 rotations are halfway: (1 + 1/8) / 2.
    #[test]
    fn llama3_divides_only_low_frequencies_fully() {
        let scaling = RotaryScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 100,
        };
        let scaled = |turns: f64| {
            let frequency = turns * std::f64::consts::TAU / 100.0;
            scaling.scale(frequency) / frequency
        };
        for (turns, expected) in [(0.5, 0.125), (1.0, 0.125), (2.5, 0.5625), (4.0, 1.0), (9.0, 1.0)] {
            assert!((scaled(turns) - expected).abs() < 1e-12, "{turns} turns: {}", scaled(turns));
        }
    }
}
