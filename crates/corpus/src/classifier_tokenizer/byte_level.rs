//! Byte-level BPE: `vocab.json` and `merges.txt` of RoBERTa, which took them from GPT-2.
use std::path::Path;

use tokenizers::Tokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::settings::Settings;
use super::wrong;
use crate::Error;
use crate::foreign_tokenizer::lists;

/// Reads `vocab.json` and `merges.txt`.
pub(super) fn load(folder: &Path, settings: &Settings) -> Result<Tokenizer, Error> {
    let mut inner = Tokenizer::new(lists::read(folder, wrong)?);
    inner.with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(settings.add_prefix_space)));
    Ok(inner)
}
