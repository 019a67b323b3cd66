//! Training of WordPiece vocabularies.
use std::collections::BTreeSet;

use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainer};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    AddedToken, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer, Trainer,
};

use super::settings::Settings;
use crate::Error;
use crate::tokenizer::check_size;

pub(super) fn words(line: &str, settings: &Settings) -> Vec<String> {
    let mut normalized = NormalizedString::from(line);
    settings.normalizer().normalize(&mut normalized).expect("any text can be normalised");
    let mut split = PreTokenizedString::from(normalized);
    BertPreTokenizer.pre_tokenize(&mut split).expect("any text can be split");
    let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(word, ..)| word.to_owned()).collect()
}

/// Trains a vocabulary: special tokens, letters at the start of words, letters inside words, then the most frequent merges.
///
/// All letters are passed as special tokens. Otherwise the library would number the letters inside words in hash order, which differs
/// between runs, and break ties between merges by these numbers.
pub(super) fn learn(
    words: &[String],
    vocabulary_size: usize,
    settings: &Settings,
) -> Result<WordPiece, Error> {
    let letters: BTreeSet<String> = words.iter().flat_map(|word| word.chars()).map(String::from).collect();
    let inner: BTreeSet<String> =
        words.iter().flat_map(|word| word.chars().skip(1)).map(|letter| format!("##{letter}")).collect();
    let specials = settings.specials().map(|token| token.content);
    let [_, unknown, ..] = specials.clone();
    let fixed: Vec<String> = specials.into_iter().chain(letters).chain(inner).collect();
    check_size(vocabulary_size, fixed.len())?;
    let mut trainer = WordPieceTrainer::builder()
        .vocab_size(vocabulary_size)
        .show_progress(false)
        .special_tokens(fixed.iter().map(|token| AddedToken::from(token.as_str(), true)).collect())
        .build();
    let mut model = WordPiece::builder().unk_token(unknown).build().expect("no file is read");
    trainer
        .feed(words.iter(), |word| Ok(vec![word.to_owned()]))
        .and_then(|()| trainer.train(&mut model))
        .expect("counting strings in memory cannot fail");
    Ok(model)
}
