//! Settings of a folder's tokeniser besides the pieces.
use std::path::Path;

use words::excerpt;

use crate::Error;
use crate::foreign::wrong;
use crate::foreign_tokenizer::{Name, read_if_there};

/// The statements of `tokenizer_config.json`, and of the older `special_tokens_map.json`.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Stated {
    tokenizer_class: Option<String>,
    /// Whether `bos_token` is put before texts, whatever `tokenizer.json` says.
    pub(super) add_bos_token: bool,
    /// Whether the first word of a text is cut as if a space stood before it; false if not stated, as in transformers.
    pub(super) add_prefix_space: bool,
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
