//! WordPiece: reads the `vocab.txt` of BERT and its kin, or learns a vocabulary.
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainer};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    AddedToken, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer, Tokenizer, Trainer,
};

use super::settings::Settings;
use super::wrong;
use crate::Error;
use crate::foreign::{MOST_BYTES, read_text};

/// Reads `vocab.txt`, which has one token per line.
pub(super) fn load(folder: &Path, settings: &Settings) -> Result<Tokenizer, Error> {
    let path = folder.join("vocab.txt");
    let text = read_text(&path, MOST_BYTES)?;
    let numbered = text.lines().zip(0..).map(|(token, id)| (token.to_owned(), id));
    tokenizer(&numbered.collect(), settings).map_err(|reason| wrong(&path, reason))
}

/// A BERT tokeniser with this vocabulary.
pub(super) fn tokenizer(vocabulary: &HashMap<String, u32>, settings: &Settings) -> Result<Tokenizer, String> {
    // Not the builder: it takes a hash table from a crate that we do not depend on. 100 is the limit in transformers.
    let model = serde_json::json!({
        "type": "WordPiece",
        "unk_token": settings.specials.unknown.content,
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": vocabulary,
    });
    let model = WordPiece::from_bytes(model.to_string()).map_err(|error| error.to_string())?;
    let mut inner = Tokenizer::new(model);
    inner.with_normalizer(Some(settings.bert_normalizer()));
    inner.with_pre_tokenizer(Some(BertPreTokenizer));
    Ok(inner)
}

/// The words of a line, before they are cut into pieces.
pub(super) fn words(line: &str, settings: &Settings) -> Vec<String> {
    let mut normalized = NormalizedString::from(line);
    settings.bert_normalizer().normalize(&mut normalized).expect("any text can be normalised");
    let mut split = PreTokenizedString::from(normalized);
    BertPreTokenizer.pre_tokenize(&mut split).expect("any text can be split");
    let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(word, ..)| word.to_owned()).collect()
}

/// Learns a vocabulary: special tokens, letters at the start of words, letters inside words, then the most frequent
/// merges.
///
/// On its own, the library would number the letters inside words in the order of a hash table, which differs from run
/// to run, and ties between merges go by number. So it gets all letters as if they were special tokens.
pub(super) fn learn_pieces(
    words: &[String],
    vocabulary_size: usize,
    settings: &Settings,
) -> Result<HashMap<String, u32>, Error> {
    let letters: BTreeSet<String> = words.iter().flat_map(|word| word.chars()).map(String::from).collect();
    let inner: BTreeSet<String> =
        words.iter().flat_map(|word| word.chars().skip(1)).map(|letter| format!("##{letter}")).collect();
    let specials = settings.specials.all().map(|token| token.content.clone());
    let fixed: Vec<String> = specials.into_iter().chain(letters).chain(inner).collect();
    if vocabulary_size < fixed.len() {
        return Err(Error::VocabularySize { asked: vocabulary_size, least: fixed.len() });
    }
    let mut trainer = WordPieceTrainer::builder()
        .vocab_size(vocabulary_size)
        .show_progress(false)
        .special_tokens(fixed.iter().map(|token| AddedToken::from(token.as_str(), true)).collect())
        .build();
    let mut model = WordPiece::default();
    trainer
        .feed(words.iter(), |word| Ok(vec![word.to_owned()]))
        .and_then(|()| trainer.train(&mut model))
        .expect("counting strings in memory cannot fail");
    Ok(tokenizers::Model::get_vocab(&model))
}
