//! What a folder says about its tokeniser besides the pieces.
use std::path::Path;

use serde::de::DeserializeOwned;
use words::excerpt;

use super::wrong;
use crate::Error;
use crate::classifier_tokenizer::Name;
use crate::foreign::read_json;

/// What `tokenizer_config.json` states.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Stated {
    tokenizer_class: Option<String>,
    add_bos_token: Option<bool>,
    add_prefix_space: Option<bool>,
    bos_token: Option<Name>,
    eos_token: Option<Name>,
}

/// What an older `special_tokens_map.json` states.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Names {
    bos_token: Option<Name>,
    eos_token: Option<Name>,
}

/// What `config.json` says of the model.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Model {
    model_type: Option<String>,
}

impl Stated {
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let stated: Self = read_if_there(&folder.join("tokenizer_config.json"))?;
        let names: Names = read_if_there(&folder.join("special_tokens_map.json"))?;
        let (bos_token, eos_token) =
            (stated.bos_token.or(names.bos_token), stated.eos_token.or(names.eos_token));
        Ok(Self { bos_token, eos_token, ..stated })
    }

    /// Whether the first word of a text is cut as if a space stood before it; false if not stated, as in transformers.
    pub(super) fn add_prefix_space(&self) -> bool {
        self.add_prefix_space.unwrap_or(false)
    }

    /// Whether the folder says that its `bos_token` is put before texts, whatever `tokenizer.json` says.
    pub(super) fn adds_begin(&self) -> bool {
        self.add_bos_token == Some(true)
    }

    pub(super) fn begin(&self) -> Option<&str> {
        self.bos_token.as_ref().map(Name::as_str)
    }

    pub(super) fn end(&self) -> Option<&str> {
        self.eos_token.as_ref().map(Name::as_str)
    }

    /// Lists without `tokenizer.json` are read as GPT-2 reads them. Those of Qwen and others look the same, but their
    /// texts are cut into words by other rules.
    pub(super) fn check_is_gpt2(&self, folder: &Path) -> Result<(), Error> {
        let model: Model = read_if_there(&folder.join("config.json"))?;
        let class = self.tokenizer_class.as_deref();
        let is_gpt2 = match (class, model.model_type.as_deref()) {
            (Some(class), _) => class.strip_suffix("Fast").unwrap_or(class) == "GPT2Tokenizer",
            (None, Some(model_type)) => model_type == "gpt2",
            (None, None) => true,
        };
        if is_gpt2 {
            return Ok(());
        }
        let found = class.or(model.model_type.as_deref()).unwrap_or_default();
        Err(wrong(
            folder,
            format!(
                "without `tokenizer.json` only GPT-2's lists can be read, but it is of `{}`",
                excerpt(found)
            ),
        ))
    }
}

/// Reads a file; the defaults if there is none.
fn read_if_there<T: Default + DeserializeOwned>(path: &Path) -> Result<T, Error> {
    if path.exists() { read_json(path, wrong) } else { Ok(T::default()) }
}
