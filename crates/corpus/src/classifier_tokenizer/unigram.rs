//! Unigrams: `sentencepiece.bpe.model` of XLM-RoBERTa, converted as in transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/convert_slow_tokenizer.py#L919>.
use std::path::Path;

use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Precompiled, Replace, Sequence, Strip};
use tokenizers::pre_tokenizers::metaspace::Metaspace;
use tokenizers::{NormalizerWrapper, Tokenizer};
use words::excerpt;

use super::settings::Settings;
use super::wrong;
use crate::Error;
use crate::foreign_tokenizer::charsmap::check_charsmap;
use crate::foreign_tokenizer::parts::SPACES;
use crate::pieces::ScoredPieces;

/// The first pieces of the model, and those that fairseq puts in their place, which moves all others up by one.
const IN_MODEL: [&str; 3] = ["<unk>", "<s>", "</s>"];
const IN_FAIRSEQ: [&str; 4] = ["<s>", "<pad>", "</s>", "<unk>"];
const UNKNOWN: usize = 3;

/// Reads `sentencepiece.bpe.model`, a unigram model despite its name.
pub(super) fn load(folder: &Path, _: &Settings) -> Result<Tokenizer, Error> {
    let path = folder.join("sentencepiece.bpe.model");
    tokenizer(ScoredPieces::read(&path)?).map_err(|reason| wrong(&path, reason))
}

fn tokenizer(model: ScoredPieces) -> Result<Tokenizer, String> {
    let names: Vec<&str> =
        model.pieces.iter().take(IN_MODEL.len()).map(|(piece, _)| piece.as_str()).collect();
    if names != IN_MODEL {
        return Err(format!("its first pieces must be {}", IN_MODEL.join(", ")));
    }
    let special = |name: &str| (name.to_owned(), 0.0);
    let others = model.pieces.into_iter().skip(IN_MODEL.len());
    let pieces = IN_FAIRSEQ.map(special).into_iter().chain(others).chain([special("<mask>")]);
    let unigram = Unigram::from(pieces.collect(), Some(UNKNOWN), false);
    let mut inner = Tokenizer::new(unigram.map_err(|error| excerpt(&error.to_string()))?);
    inner.with_normalizer(Some(normalizer(&model.charsmap)?));
    inner.with_pre_tokenizer(Some(Metaspace::default()));
    Ok(inner)
}

fn normalizer(charsmap: &[u8]) -> Result<Sequence, String> {
    let spaces = Replace::new(ReplacePattern::Regex(SPACES.into()), "\u{2581}");
    let spaces = spaces.map_err(|error| excerpt(&error.to_string()))?;
    let mut steps: Vec<NormalizerWrapper> = vec![Strip::new(false, true).into(), spaces.into()];
    if !charsmap.is_empty() {
        check_charsmap(charsmap)?;
        steps.insert(0, Precompiled::from(charsmap).map_err(|error| excerpt(&error.to_string()))?.into());
    }
    Ok(Sequence::new(steps))
}
