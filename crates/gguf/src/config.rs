//! `config.json` of Llama and its like, as far as GGUF files hold it.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;

/// Entries of `config.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Config {
    #[serde(default)]
    pub(crate) architectures: Vec<String>,
    pub(crate) model_type: String,
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) num_key_value_heads: Option<usize>,
    pub(crate) head_dim: Option<usize>,
    #[serde(default = "silu")]
    pub(crate) hidden_act: String,
    pub(crate) max_position_embeddings: Option<usize>,
    #[serde(default = "epsilon")]
    pub(crate) rms_norm_eps: f64,
    pub(crate) rope_theta: Option<f64>,
    pub(crate) rope_scaling: Option<Value>,
    /// The two entries above, as transformers 5 writes them.
    #[serde(skip_serializing)]
    pub(crate) rope_parameters: Option<Value>,
    #[serde(default)]
    pub(crate) attention_bias: bool,
    #[serde(default)]
    pub(crate) mlp_bias: bool,
    #[serde(default)]
    pub(crate) tie_word_embeddings: bool,
    #[serde(skip_serializing, default = "window")]
    pub(crate) sliding_window: Option<usize>,
    #[serde(skip_serializing)]
    pub(crate) use_sliding_window: Option<bool>,
    pub(crate) bos_token_id: Option<Value>,
    pub(crate) eos_token_id: Option<Value>,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub(crate) dtype: String,
    /// Heads that were cut out, by layer, both counted from 0: an entry of this project.
    #[serde(default, skip_serializing)]
    pub(crate) pruned_query_heads: BTreeMap<usize, BTreeSet<usize>>,
}

/// The largest size of a model; so products of two fit any computer.
const LARGEST: usize = 1 << 24;
/// The largest number of layers, and of heads in one; so no list of heads fills the memory.
const MOST: usize = 1 << 12;

fn silu() -> String {
    "silu".to_owned()
}

/// The default of transformers for Mistral and Qwen2, where null is no window.
fn window() -> Option<usize> {
    Some(4096)
}

fn epsilon() -> f64 {
    1e-6
}

impl Config {
    /// Reads the configuration of a folder that can be written as a GGUF file.
    ///
    /// # Errors
    /// If it is missing or malformed, or of a model that llama.cpp's `llama` and `deci` cannot hold.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let mut adapters = corpus::hub::ADAPTER_WEIGHTS.iter().map(|name| folder.join(name));
        if let Some(adapter) =
            adapters.find(|path| path.exists() && folder.join("adapter_config.json").exists())
        {
            let remedy = "merge it into the model with `merge_and_unload` of PEFT, or move its files away";
            let reason = format!("this is an adapter, which would not be in the GGUF file: {remedy}");
            return Err(Error::of(&adapter, reason));
        }
        let path = folder.join("config.json");
        let config = read_json(&path)?;
        let family = config["model_type"].as_str().unwrap_or_default().to_owned();
        if !["llama", "mistral", "qwen2"].contains(&family.as_str()) {
            let why = match family.as_str() {
                "qwen3" => {
                    "; `deci`, the architecture of llama.cpp whose layers may differ, has no norms of queries and keys"
                }
                _ => "",
            };
            let family = words::excerpt(&family);
            let reason = format!(
                "a model of type `{family}` is not written as GGUF{why}; llama, mistral and qwen2 are"
            );
            return Err(Error::of(&path, reason));
        }
        let config: Self = serde_json::from_value(config).map_err(|error| Error::of(&path, error))?;
        config.check(MOST).map_err(|reason| Error::of(&path, reason))?;
        Ok(config)
    }

    /// Refuses what GGUF files cannot hold, or that has more layers than `most_layers`.
    pub(crate) fn check(&self, most_layers: usize) -> Result<(), String> {
        self.check_sizes(most_layers)?;
        let (heads, key_values) = (self.num_attention_heads, self.key_values());
        if heads == 0 || key_values == 0 || !heads.is_multiple_of(key_values) {
            return Err(format!(
                "{heads} heads cannot share {key_values} keys and values: they form no equal groups"
            ));
        }
        if self.d_head() == 0 || !self.d_head().is_multiple_of(2) {
            return Err(format!("a head of width {} cannot turn: it must be even", self.d_head()));
        }
        if self.hidden_act != "silu" {
            return Err(format!(
                "hidden_act `{}` is not written as GGUF; silu is",
                words::excerpt(&self.hidden_act)
            ));
        }
        let windows = self.sliding_window.filter(|_| self.use_sliding_window != Some(false));
        if let Some(window) =
            windows.filter(|_| self.model_type == "mistral" || self.use_sliding_window == Some(true))
        {
            return Err(format!(
                "sliding_window is {window}, and llama.cpp's `llama` and `deci` have no windows: set it to null if all texts are \
                 shorter"
            ));
        }
        let beyond = |(&layer, heads): (&usize, &BTreeSet<usize>)| {
            layer >= self.num_hidden_layers || heads.iter().any(|&head| head >= self.num_attention_heads)
        };
        if self.pruned_query_heads.iter().any(beyond) {
            return Err("pruned_query_heads names heads that the model does not have".to_owned());
        }
        if (0..self.num_hidden_layers).all(|layer| self.kept(layer).is_empty()) {
            return Err("no layer has a head left: llama.cpp runs no model without attention".to_owned());
        }
        self.rotary().map(drop)
    }

    fn check_sizes(&self, most_layers: usize) -> Result<(), String> {
        let sizes = [self.vocab_size, self.hidden_size, self.intermediate_size, self.d_head()];
        let (layers, heads) = (self.num_hidden_layers, self.num_attention_heads);
        if !(1..=MOST).contains(&heads) {
            return Err(format!("it cannot have {heads} heads: at most {MOST}"));
        }
        if let Some(size) = sizes.into_iter().find(|size| !(1..=LARGEST).contains(size)) {
            return Err(format!("a size is {size}: all must lie between 1 and {LARGEST}"));
        }
        if !(1..=most_layers).contains(&layers) {
            return Err(format!("it cannot have {layers} layers: at most {most_layers}"));
        }
        Ok(())
    }

    pub(crate) fn key_values(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }

    pub(crate) fn d_head(&self) -> usize {
        self.head_dim.unwrap_or(self.hidden_size / self.num_attention_heads.max(1))
    }

    /// The query heads that a layer still has.
    pub(crate) fn kept(&self, layer: usize) -> Vec<usize> {
        let cut = self.pruned_query_heads.get(&layer);
        (0..self.num_attention_heads).filter(|head| !cut.is_some_and(|cut| cut.contains(head))).collect()
    }

    /// Base of the frequencies, and their scaling.
    pub(crate) fn rotary(&self) -> Result<(f64, Scaling), String> {
        let newer = self.rope_parameters.as_ref();
        let theta = self.rope_theta.or(newer.and_then(|all| all["rope_theta"].as_f64())).unwrap_or(10_000.0);
        let scaling = self.rope_scaling.as_ref().or(newer);
        Ok((theta, scaling.map_or(Ok(Scaling::None), Scaling::read)?))
    }
}

/// How the frequencies of rotary positions are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scaling {
    None,
    /// All are divided by this.
    Linear(f64),
    Llama3(Llama3),
}

/// Llama 3.1's scaling: low frequencies are divided by `factor`, high ones stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Llama3 {
    pub(crate) factor: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) original: f64,
}

impl Scaling {
    fn read(entry: &Value) -> Result<Self, String> {
        let kind = entry.get("rope_type").or(entry.get("type")).and_then(Value::as_str).unwrap_or("default");
        let number = |name: &str| {
            entry[name].as_f64().ok_or_else(|| format!("rope_scaling lacks the number `{name}`"))
        };
        match kind {
            "default" => Ok(Self::None),
            "linear" => Ok(Self::Linear(number("factor")?)),
            "llama3" => Ok(Self::Llama3(Llama3 {
                factor: number("factor")?,
                low: number("low_freq_factor")?,
                high: number("high_freq_factor")?,
                original: number("original_max_position_embeddings")?,
            })),
            other => Err(format!(
                "rotary scaling `{}` is not written as GGUF; linear and llama3 are",
                words::excerpt(other)
            )),
        }
    }
}

impl Llama3 {
    /// What each frequency is divided by, as transformers' `_compute_llama3_parameters` has it; one for each pair of channels.
    pub(crate) fn divisors(self, theta: f64, d_head: usize) -> Vec<f32> {
        let divisor = |pair: usize| {
            let turns = theta.powf(-((2 * pair) as f64) / d_head as f64) / (2.0 * std::f64::consts::PI);
            let share = ((self.original * turns - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
            (1.0 / ((1.0 - share) / self.factor + share)) as f32
        };
        (0..d_head / 2).map(divisor).collect()
    }

    /// The entry of `config.json`.
    pub(crate) fn to_json(self) -> Value {
        serde_json::json!({
            "rope_type": "llama3", "factor": self.factor, "low_freq_factor": self.low, "high_freq_factor": self.high,
            "original_max_position_embeddings": self.original as u64,
        })
    }
}

pub(crate) fn read_json(path: &Path) -> Result<Value, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::reading(path))?;
    serde_json::from_str(&text).map_err(|error| Error::of(path, error))
}
