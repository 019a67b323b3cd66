//! Tokenisers of translators, and the check that tokeniser and model match.
use std::fs;
use std::path::Path;

use core_masking::TranslatorConfig;
use core_masking::families::FSMT;
use corpus::fsmt_tokenizer::FsmtTokenizer;
use corpus::marian_tokenizer::MarianTokenizer;
use corpus::piece_tokenizer::{Frame, PieceTokenizer};
use corpus::sentence_tokenizer::SentenceTokenizer;
use serde_json::{Map, Value};

use crate::error::Error;

/// The tokeniser published with a model.
pub(super) struct Published {
    pub(super) tokenizer: Box<dyn SentenceTokenizer>,
    /// The target language code, if translations begin with it.
    pub(super) begin: Option<u32>,
}

impl Published {
    fn new(tokenizer: impl SentenceTokenizer + 'static) -> Self {
        Self { tokenizer: Box::new(tokenizer), begin: None }
    }
}

/// Loads the tokeniser published with a model; `None` for a model that was trained here.
///
/// - `languages`: source and target codes, for tokenisers that need them
pub(super) fn of_publisher(
    folder: &Path,
    config: &TranslatorConfig,
    languages: [Option<&str>; 2],
) -> Result<Option<Published>, Error> {
    if config.family.model_type == FSMT.model_type {
        return Ok(Some(Published::new(FsmtTokenizer::load(folder)?)));
    }
    let frame = match config.family.model_type {
        "t5" | "mt5" | "pegasus" => Some(Frame::End),
        "bart" => Some(Frame::BeginEnd),
        "mbart" if config.decoder_start_token_id != config.eos_token_id => Some(Frame::CodeLast),
        "mbart" | "m2m_100" => Some(Frame::CodeFirst),
        _ => None,
    };
    if let Some(frame) = frame {
        let tokenizer = PieceTokenizer::load(folder, frame, languages)?;
        let begin = tokenizer.code.filter(|_| frame == Frame::CodeFirst);
        return Ok(Some(Published { begin, ..Published::new(tokenizer) }));
    }
    let is_ours = !folder.join("source.spm").exists() && folder.join("tokenizer.json").exists();
    Ok(if is_ours { None } else { Some(Published::new(MarianTokenizer::load(folder)?)) })
}

/// Returns where prefixes are listed, and the prefixes of sources in training: those in `config.json` for the tasks of a T5. If an original
/// T5 lists none, two prefixes that all such models know (Raffel et al. 2020, Appendix D).
pub(crate) fn prefixes(folder: &Path) -> (&'static str, Vec<String>) {
    let config = fs::read(folder.join("config.json")).ok();
    let config: Value = config.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let tasks = config["task_specific_params"].as_object().into_iter().flat_map(Map::values);
    let listed = tasks.filter_map(|task| task["prefix"].as_str()).filter(|prefix| !prefix.is_empty());
    let listed: Vec<String> = listed.map(str::to_owned).collect();
    let is_gated = config["feed_forward_proj"].as_str().is_some_and(|block| block.starts_with("gated"));
    if listed.is_empty() && config["model_type"] == "t5" && !is_gated {
        let usual = ["summarize: ", "translate English to German: "].map(str::to_owned).to_vec();
        return ("each original T5 has prefixes", usual);
    }
    ("config.json lists prefixes", listed)
}

/// Refuses a tokeniser that does not match the model in `folder`; `name`: of the setup.
pub(super) fn check(
    tokenizer: &dyn SentenceTokenizer,
    config: &TranslatorConfig,
    folder: &Path,
    name: &str,
) -> Result<(), Error> {
    if [tokenizer.end(), tokenizer.pad()] != [config.eos_token_id, config.pad_token_id] {
        return Err(other_model(folder, name));
    }
    Ok(())
}

/// Returns the error for a model in `folder` whose architecture or vocabulary differs from the setup `name`.
pub(super) fn other_model(folder: &Path, name: &str) -> Error {
    let fault = format!("is not the one that setup `{name}` describes");
    let folder = folder.display();
    Error::Invalid(format!("the model in `{folder}` {fault}: its config.json or tokenizer.json differs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_those_of_the_tasks_and_of_an_original_t5() {
        for (config, expected) in [
            (
                r#"{"model_type": "t5", "feed_forward_proj": "gated-gelu", "task_specific_params": {
                "summarization": {"prefix": "summarize: ", "num_beams": 4}, "other": {"prefix": ""}}}"#,
                &["summarize: "][..],
            ),
            (r#"{"model_type": "t5", "feed_forward_proj": "gated-gelu", "task_specific_params": null}"#, &[]),
            (r#"{"model_type": "t5"}"#, &["summarize: ", "translate English to German: "]),
            (r#"{"model_type": "bart", "task_specific_params": {"summarization": {"min_length": 12}}}"#, &[]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("config.json"), config).unwrap();
            assert_eq!(prefixes(folder.path()).1, expected, "{config}");
        }
    }
}
