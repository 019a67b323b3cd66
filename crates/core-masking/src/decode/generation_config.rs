//! Decoding settings of a checkpoint folder: `generation_config.json`, or the corresponding keys in `config.json` of older folders.
//!
//! Keys and defaults follow transformers' `GenerationConfig`:
//! <https://github.com/huggingface/transformers/blob/v4.46.3/src/transformers/generation/configuration_utils.py#L96>.
use std::path::{Path, PathBuf};

use families::checkpoint;
use families::config_keys::assume;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use words::excerpt;

use super::{BeamSearch, OutputRules, Stopping};

use crate::Error;
use crate::translator::TranslatorConfig;

/// The supported keys; null values are removed before parsing.
#[derive(Deserialize)]
#[serde(default)]
struct GenerationConfig {
    num_beams: usize,
    max_length: usize,
    max_new_tokens: Option<usize>,
    length_penalty: f64,
    early_stopping: Value,
    bad_words_ids: Vec<Vec<u32>>,
    renormalize_logits: bool,
    forced_eos_token_id: Option<Value>,
    forced_bos_token_id: Option<u32>,
    no_repeat_ngram_size: usize,
    min_length: usize,
    min_new_tokens: Option<usize>,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            num_beams: 1,
            max_length: DEFAULT_LENGTH,
            max_new_tokens: None,
            length_penalty: 1.0,
            early_stopping: Value::Bool(false),
            bad_words_ids: Vec::new(),
            renormalize_logits: false,
            forced_eos_token_id: None,
            forced_bos_token_id: None,
            no_repeat_ngram_size: 0,
            min_length: 0,
            min_new_tokens: None,
        }
    }
}

const DEFAULT_LENGTH: usize = 20;
/// Maximum beam width, so that a forged file cannot exhaust the memory.
const MAX_BEAMS: usize = 1000;
/// Maximum absolute length penalty, so that powers of any length stay finite.
const STEEPEST_PENALTY: f64 = 50.0;

impl BeamSearch {
    /// Reads the settings that transformers' `generate` would use with a folder whose `config.json` is `model`.
    ///
    /// Differs from transformers: unsupported settings are refused, even if transformers would ignore them.
    ///
    /// # Errors
    /// If a file is missing or truncated, requires something unsupported (sampling, several EOS tokens, forbidden token sequences, ...), or
    /// contains a token that the model does not have.
    pub fn read(folder: &Path, model: &TranslatorConfig) -> Result<Self, Error> {
        let (path, entries) = read_entries(folder, model)?;
        let fault = |fault: String| Error::file(&path, fault);
        refuse_unsupported(&entries).map_err(fault)?;
        check_symbols(&entries, model).map_err(fault)?;
        let config: GenerationConfig = checkpoint::parse(&path, Value::Object(entries))?;
        config.search(model).map_err(fault)
    }
}

/// Returns the keys that are not null, and the path of their file.
fn read_entries(folder: &Path, model: &TranslatorConfig) -> Result<(PathBuf, Map<String, Value>), Error> {
    let own = folder.join("generation_config.json");
    let is_own = own.exists();
    let path = if is_own { own } else { folder.join("config.json") };
    let mut entries: Map<String, Value> = checkpoint::read_json(&path)?;
    if !is_own {
        assume(&mut entries, model.family.generation);
    }
    entries.retain(|_, value| !value.is_null());
    Ok((path, entries))
}

/// Refuses settings that would change the output of `generate` and that we do not support.
fn refuse_unsupported(entries: &Map<String, Value>) -> Result<(), String> {
    let neutral = [
        ("do_sample", json!(false)),
        ("num_beam_groups", json!(1)),
        ("num_return_sequences", json!(1)),
        ("penalty_alpha", json!(0.0)),
        ("diversity_penalty", json!(0.0)),
        ("repetition_penalty", json!(1.0)),
        ("encoder_repetition_penalty", json!(1.0)),
        ("guidance_scale", json!(1.0)),
        ("encoder_no_repeat_ngram_size", json!(0)),
        ("suppress_tokens", json!([])),
        ("begin_suppress_tokens", json!([])),
        ("forced_decoder_ids", Value::Null),
        ("sequence_bias", Value::Null),
        ("exponential_decay_length_penalty", Value::Null),
        ("constraints", Value::Null),
        ("force_words_ids", Value::Null),
        ("max_time", Value::Null),
        ("stop_strings", Value::Null),
        ("watermarking_config", Value::Null),
    ];
    let equal = |a: &Value, b: &Value| a == b || (a.as_f64().is_some() && a.as_f64() == b.as_f64());
    let found = neutral.iter().find_map(|(name, neutral)| {
        entries.get(*name).filter(|value| !equal(value, neutral)).map(|value| (name, value))
    });
    match found {
        Some((name, value)) => {
            Err(format!("{name} is {}, which is not supported", excerpt(&value.to_string())))
        }
        None => Ok(()),
    }
}

/// Refuses special tokens that differ from the model's; each may be a number or a list of one.
fn check_symbols(entries: &Map<String, Value>, model: &TranslatorConfig) -> Result<(), String> {
    let symbols = [
        ("forced_eos_token_id", model.eos_token_id),
        ("eos_token_id", model.eos_token_id),
        ("pad_token_id", model.pad_token_id),
        ("decoder_start_token_id", model.decoder_start_token_id),
    ];
    for (name, expected) in symbols {
        let is_other = |found: &&Value| **found != json!(expected) && **found != json!([expected]);
        if let Some(found) = entries.get(name).filter(is_other) {
            let found = excerpt(&found.to_string());
            return Err(format!("{name} is {found}, but config.json has {expected}"));
        }
    }
    Ok(())
}

impl GenerationConfig {
    fn search(&self, model: &TranslatorConfig) -> Result<BeamSearch, String> {
        if !(1..=MAX_BEAMS).contains(&self.num_beams) {
            return Err(format!("num_beams must be from 1 to {MAX_BEAMS}"));
        }
        if !(-STEEPEST_PENALTY..=STEEPEST_PENALTY).contains(&self.length_penalty) {
            let most = STEEPEST_PENALTY;
            return Err(format!("length_penalty ({}) must be from -{most} to {most}", self.length_penalty));
        }
        let longest = self.max_new_tokens.unwrap_or_else(|| self.longest(model));
        if longest == 0 {
            return Err("max_length must be at least 2, and max_new_tokens at least 1".to_owned());
        }
        let target = model.target_vocabulary();
        if let Some(token) = self.forced_bos_token_id.filter(|&token| i64::from(token) >= target) {
            return Err(format!("forced_bos_token_id is {token}, but the target has {target} tokens"));
        }
        Ok(BeamSearch {
            beam: self.num_beams,
            length_penalty: self.length_penalty,
            stopping: self.stopping()?,
            length_limit: (0.0, longest),
            rules: Some(OutputRules {
                banned: self.banned(model)?,
                renormalised: self.renormalize_logits,
                end_forced: self.forced_eos_token_id.is_some(),
                begin: self.forced_bos_token_id,
                ngram: self.no_repeat_ngram_size,
                // `min_length` counts the start token too
                shortest: self.min_new_tokens.unwrap_or(self.min_length.saturating_sub(1)),
            }),
        })
    }

    /// Returns the maximum number of new tokens without `max_new_tokens`. `max_length` counts the start token, except for the default of
    /// 20, which transformers reads as 20 new tokens, whether given or not:
    /// <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/generation/utils.py#L1677>.
    fn longest(&self, model: &TranslatorConfig) -> usize {
        let with_start = match self.max_length {
            DEFAULT_LENGTH => (DEFAULT_LENGTH + 1).min(model.max_position_embeddings as usize),
            stated => stated,
        };
        with_start.saturating_sub(1)
    }

    fn stopping(&self) -> Result<Stopping, String> {
        match &self.early_stopping {
            Value::Bool(true) => Ok(Stopping::Early),
            Value::Bool(false) => Ok(Stopping::Heuristic),
            Value::String(text) if text == "never" => Ok(Stopping::Exact),
            other => {
                let found = excerpt(&other.to_string());
                Err(format!("early_stopping is {found}: it must be true, false or \"never\""))
            }
        }
    }

    /// Returns the banned tokens. As in transformers, EOS cannot be banned.
    fn banned(&self, model: &TranslatorConfig) -> Result<Vec<u32>, String> {
        let target = model.target_vocabulary();
        let size = if model.decoder_vocab_size.is_some() { "decoder_vocab_size" } else { "vocab_size" };
        let mut banned = Vec::new();
        for word in &self.bad_words_ids {
            match word[..] {
                [token] if i64::from(token) >= target => {
                    let name = model.family.keys.own(size);
                    return Err(format!("bad_words_ids: {token} is not below {name} ({target})"));
                }
                [token] if token != model.eos_token_id => banned.push(token),
                [_] => {}
                _ => {
                    let word = excerpt(&format!("{word:?}"));
                    return Err(format!("bad_words_ids: {word} is not one token, which is not supported"));
                }
            }
        }
        Ok(banned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and sizes of Helsinki-NLP/opus-mt-en-fr, written from memory.
    const OPUS: &str = include_str!("../../tests/fixtures/opus-mt-en-fr/config.json");
    const OPUS_GENERATION: &str = include_str!("../../tests/fixtures/opus-mt-en-fr/generation_config.json");

    fn read(config: &str, generation: Option<&str>) -> Result<BeamSearch, Error> {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("config.json", config);
        if let Some(text) = generation {
            write("generation_config.json", text);
        }
        let model = TranslatorConfig::read(&folder.path().join("config.json")).unwrap();
        BeamSearch::read(folder.path(), &model)
    }

    fn opus() -> BeamSearch {
        BeamSearch {
            beam: 4,
            length_penalty: 1.0,
            stopping: Stopping::Heuristic,
            length_limit: (0.0, 511), // 512 with the start token
            rules: Some(OutputRules {
                banned: vec![59_513],
                renormalised: true,
                end_forced: true,
                ..OutputRules::default()
            }),
        }
    }

    /// Old folders keep them in the configuration.
    #[test]
    fn the_settings_of_opus_mt_are_read() {
        let mut expected = opus();
        assert_eq!(read(OPUS, Some(OPUS_GENERATION)).unwrap(), expected);
        expected.rules.as_mut().unwrap().renormalised = false;
        assert_eq!(read(OPUS, None).unwrap(), expected);
        // for transformers' TranslatorConfig an absent key means 0, but null forces nothing
        let entry = r#""forced_eos_token_id": 0,"#;
        assert!(OPUS.contains(entry));
        assert_eq!(read(&OPUS.replace(entry, ""), None).unwrap(), expected);
        expected.rules.as_mut().unwrap().end_forced = false;
        let null = OPUS.replace(entry, r#""forced_eos_token_id": null,"#);
        assert_eq!(read(&null, None).unwrap(), expected);
    }

    #[test]
    fn each_entry_sets_its_field_and_defaults_are_those_of_transformers() {
        let read = |text: &str| read(OPUS, Some(text)).unwrap();
        let (stopping, rules) = (Stopping::Heuristic, Some(OutputRules::default()));
        let defaults = BeamSearch { beam: 1, length_penalty: 1.0, stopping, length_limit: (0.0, 20), rules };
        assert_eq!(read("{}"), defaults);
        assert_eq!(read(r#"{"num_beams": null, "early_stopping": null}"#), defaults);
        assert_eq!(read(r#"{"early_stopping": true}"#).stopping, Stopping::Early);
        assert_eq!(read(r#"{"early_stopping": "never"}"#).stopping, Stopping::Exact);
        assert_eq!(read(r#"{"max_length": 9, "max_new_tokens": 30}"#).length_limit, (0.0, 30));
        // New tokens that `generate` of transformers 4.57.1 produces with a model that never ends.
        for (length, new) in [(19, 18), (20, 20), (21, 20), (22, 21)] {
            let text = format!(r#"{{"max_length": {length}}}"#);
            assert_eq!(read(&text).length_limit, (0.0, new), "{text}");
        }
        assert_eq!(read(r#"{"length_penalty": 0.6}"#).length_penalty, 0.6);
        // neither EOS, which cannot be banned, nor neutral settings
        let text = r#"{"bad_words_ids": [[7], [0], [9]], "repetition_penalty": 1, "min_length": 0}"#;
        assert_eq!(read(text).rules.unwrap().banned, [7, 9]);
        assert!(read(r#"{"forced_eos_token_id": [0]}"#).rules.unwrap().end_forced);
        let text = r#"{"forced_bos_token_id": 7, "no_repeat_ngram_size": 3, "min_length": 56}"#;
        let rules = read(text).rules.unwrap();
        assert_eq!((rules.begin, rules.ngram, rules.shortest), (Some(7), 3, 55));
        assert_eq!(read(r#"{"min_length": 9, "min_new_tokens": 2}"#).rules.unwrap().shortest, 2);
    }

    /// A forced EOS takes the last place, so a translation that is one token shorter ended with its own EOS.
    #[test]
    fn translations_are_cut_if_their_own_eos_does_not_fit_into_the_limit() {
        let (config, mut search) = (serde_json::from_str::<TranslatorConfig>(OPUS).unwrap(), opus());
        let own = OutputRules { banned: vec![59_513], end_forced: true, ..OutputRules::default() };
        assert_eq!(OutputRules::of(&config), own, "without rules the padding is banned");
        for (end_forced, tokens, is_cut) in
            [(true, 2, false), (true, 3, true), (false, 3, false), (false, 4, true)]
        {
            search.rules.as_mut().unwrap().end_forced = end_forced;
            assert_eq!(search.is_cut(&config, tokens, 4), is_cut, "{end_forced}, {tokens} tokens");
        }
    }
}
