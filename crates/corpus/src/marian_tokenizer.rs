//! Pieces of Marian translators as they come from the hub (opus-mt): `source.spm` and `target.spm` cut the text,
//! `vocab.json` numbers the pieces of both languages.
//!
//! After transformers' `MarianTokenizer`:
//! <https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/marian/tokenization_marian.py>.
//! Like it, this one leaves punctuation as it is, and recognises special tokens in the text. A language code stands
//! between `>>` and `<<` at the start of a text, as in transformers 5; version 4 also drops codes elsewhere.
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use crate::Error;
use crate::foreign::{read_json, wrong};
use crate::numbering::Numbering;
use crate::pieces::Pieces;
use crate::sentence_tokenizer::SentenceTokenizer;
use crate::special_tokens::{SpecialToken, SpecialTokens};
use crate::tokenizer::{END, PAD, UNKNOWN};

/// Pieces of a source and a target language with one numbering.
pub struct MarianTokenizer {
    source: Pieces,
    target: Pieces,
    ids: HashMap<String, u32>,
    pieces: HashMap<u32, String>,
    specials: SpecialTokens,
    end: u32,
    pad: u32,
    unknown: u32,
    joins_punctuation: bool,
}

/// How SentencePiece writes a space.
const SPACE: &str = "\u{2581}";

impl MarianTokenizer {
    /// Reads `source.spm`, `target.spm` and `vocab.json` of a folder, and its `tokenizer_config.json` if it has one.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let joins_punctuation = read_settings(&folder.join("tokenizer_config.json"))?;
        let path = folder.join("vocab.json");
        let ids = read_vocabulary(&path)?;
        let id =
            |token: &str| ids.get(token).copied().ok_or_else(|| wrong(&path, format!("it lacks `{token}`")));
        let (end, pad, unknown) = (id(END)?, id(PAD)?, id(UNKNOWN)?);
        let specials = [(END, end), (PAD, pad), (UNKNOWN, unknown)]
            .map(|(text, id)| SpecialToken { text: text.to_owned(), id });
        Ok(Self {
            source: Pieces::read(&folder.join("source.spm"))?,
            target: Pieces::read(&folder.join("target.spm"))?,
            pieces: ids.iter().map(|(piece, &id)| (id, piece.clone())).collect(),
            ids,
            specials: SpecialTokens(specials.into()),
            end,
            pad,
            unknown,
            joins_punctuation,
        })
    }

    fn encode_with(&self, model: &Pieces, text: &str) -> Vec<u32> {
        let mut ids = self.specials.encode(text, |text| self.cut(model, text));
        ids.push(self.end);
        ids
    }

    /// Ids of the pieces of a text without special tokens.
    fn cut(&self, model: &Pieces, text: &str) -> Vec<u32> {
        let (code, text) = split_language_code(text);
        let pieces = code.into_iter().map(str::to_owned).chain(model.cut(text));
        pieces.map(|piece| self.ids.get(&piece).copied().unwrap_or(self.unknown)).collect()
    }
}

impl SentenceTokenizer for MarianTokenizer {
    /// Ids of the pieces of a source text, then the end symbol.
    ///
    /// A language code at the start, such as `>>fra<<`, is one piece.
    fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_with(&self.source, text)
    }

    /// Ids of the pieces of a target text, then the end symbol.
    fn encode_target(&self, text: &str) -> Vec<u32> {
        self.encode_with(&self.target, text)
    }

    /// Text of `ids`; special tokens and ids outside the vocabulary are left out.
    fn decode(&self, ids: &[u32]) -> String {
        let pieces = ids.iter().filter(|id| !self.specials.has(**id)).filter_map(|id| self.pieces.get(id));
        let text = pieces.map(String::as_str).collect::<String>().replace(SPACE, " ");
        let text = text.trim();
        if self.joins_punctuation { join_punctuation(text) } else { text.to_owned() }
    }

    /// One more than the highest id, so the least number of rows that an embedding table needs.
    fn source_vocabulary_size(&self) -> usize {
        self.pieces.keys().max().map_or(0, |&highest| highest as usize + 1)
    }

    /// Id of [`END`].
    fn end(&self) -> u32 {
        self.end
    }

    /// Id of [`PAD`].
    fn pad(&self) -> u32 {
        self.pad
    }
}

impl fmt::Debug for MarianTokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MarianTokenizer").field("pieces", &self.ids.len()).finish_non_exhaustive()
    }
}

/// The language code that `text` begins with, and the rest of it.
fn split_language_code(text: &str) -> (Option<&str>, &str) {
    match text.find("<<") {
        Some(place) if text.starts_with(">>") => {
            let (code, rest) = text.split_at(place + "<<".len());
            (Some(code), rest)
        }
        _ => (None, text),
    }
}

/// The rules of transformers' `clean_up_tokenization`, in the same order:
/// <https://github.com/huggingface/transformers/blob/v4.46.3/src/transformers/tokenization_utils_base.py#L4052>.
pub(crate) fn join_punctuation(text: &str) -> String {
    let rules = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    rules.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Whether decoding joins punctuation to words. Older versions of transformers wrote this setting into folders.
fn read_settings(path: &Path) -> Result<bool, Error> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Settings {
        clean_up_tokenization_spaces: bool,
        separate_vocabs: bool,
    }
    if !path.exists() {
        return Ok(false);
    }
    let settings: Settings = read_json(path)?;
    if settings.separate_vocabs {
        let reason = "`separate_vocabs` is true, but one vocabulary must serve both languages";
        return Err(wrong(path, reason.into()));
    }
    Ok(settings.clean_up_tokenization_spaces)
}

fn read_vocabulary(path: &Path) -> Result<HashMap<String, u32>, Error> {
    let numbering: Numbering = read_json(path)?;
    numbering.into_unique().map_err(|reason| wrong(path, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian");

    #[derive(serde::Deserialize)]
    struct Example {
        text: String,
        ids: Vec<u32>,
    }

    /// What transformers 5.23 makes of some texts: `make_tiny_marian_tokenizer.py` beside the fixture.
    fn expected(list: &str) -> Vec<Example> {
        let json = fs::read_to_string(Path::new(FIXTURE).join("expected-tokenizer.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        serde_json::from_value(json[list].clone()).unwrap()
    }

    fn fixture() -> MarianTokenizer {
        MarianTokenizer::load(Path::new(FIXTURE)).unwrap()
    }

    /// A copy of the fixture in which `name` holds other bytes.
    fn with_file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for file in ["source.spm", "target.spm", "vocab.json", "tokenizer_config.json"] {
            fs::copy(Path::new(FIXTURE).join(file), folder.path().join(file)).unwrap();
        }
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn refusal(name: &str, bytes: &[u8]) -> String {
        let (folder, _) = with_file(name, bytes);
        let error = MarianTokenizer::load(folder.path()).unwrap_err().to_string();
        assert!(!error.contains('\n') && error.contains(name), "{error}");
        error
    }

    #[test]
    fn source_ids_are_those_of_transformers() {
        let tokenizer = fixture();
        let examples = expected("source");
        assert_eq!(examples.len(), 49);
        for Example { text, ids } in examples {
            assert_eq!(tokenizer.encode(&text), ids, "{text:?}");
        }
    }

    #[test]
    fn target_ids_are_those_of_transformers() {
        let tokenizer = fixture();
        let examples = expected("target");
        assert_eq!(examples.len(), 12);
        for Example { text, ids } in examples {
            assert_eq!(tokenizer.encode_target(&text), ids, "{text:?}");
        }
    }

    #[test]
    fn texts_of_ids_are_those_of_transformers() {
        let tokenizer = fixture();
        let examples = expected("decoded");
        assert_eq!(examples.len(), 67);
        for Example { text, ids } in examples {
            assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
        }
    }

    #[test]
    fn punctuation_is_joined_where_the_folder_says_so() {
        let (folder, _) = with_file("tokenizer_config.json", br#"{"clean_up_tokenization_spaces": true}"#);
        let tokenizer = MarianTokenizer::load(folder.path()).unwrap();
        let examples = expected("cleaned");
        assert!(examples.iter().any(|example| fixture().decode(&example.ids) != example.text));
        for Example { text, ids } in examples {
            assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
        }
    }

    #[test]
    fn symbols_and_size_are_those_of_the_vocabulary() {
        let tokenizer = fixture();
        assert_eq!((tokenizer.end(), tokenizer.pad(), tokenizer.source_vocabulary_size()), (0, 253, 254));
    }

    #[test]
    fn ids_outside_the_vocabulary_are_left_out() {
        let tokenizer = fixture();
        let mut ids = tokenizer.encode("The dogs sleep.");
        ids.extend([254, u32::MAX]);
        assert_eq!(tokenizer.decode(&ids), "The dogs sleep.");
    }

    #[test]
    fn the_size_covers_the_highest_id_even_where_ids_are_left_out() {
        let (folder, _) = with_file("vocab.json", br#"{"</s>": 0, "<unk>": 1, "<pad>": 9}"#);
        assert_eq!(MarianTokenizer::load(folder.path()).unwrap().source_vocabulary_size(), 10);
    }

    #[test]
    fn a_torn_model_is_refused_in_one_line() {
        let bytes = fs::read(Path::new(FIXTURE).join("source.spm")).unwrap();
        let error = refusal("source.spm", &bytes[..bytes.len() / 2]);
        assert!(error.contains("source.spm`: "), "{error}");
    }

    #[test]
    fn a_vocabulary_without_end_symbol_is_refused() {
        let error = refusal("vocab.json", br#"{"<unk>": 1, "<pad>": 9}"#);
        assert!(error.ends_with("vocab.json`: it lacks `</s>`"), "{error}");
    }

    #[test]
    fn two_tokens_of_one_id_are_refused_by_name() {
        let error = refusal("vocab.json", br#"{"</s>": 0, "<unk>": 1, "a\n": 7, "b": 7, "<pad>": 9}"#);
        assert!(error.ends_with(r"vocab.json`: `a\n` and `b` both have the id 7"), "{error}");
    }

    #[test]
    fn a_token_that_occurs_twice_is_refused_by_name() {
        let error = refusal("vocab.json", br#"{"</s>": 0, "<unk>": 1, "a": 7, "<pad>": 9, "a": 8}"#);
        assert!(error.ends_with("vocab.json`: `a` has two ids, 7 and 8"), "{error}");
    }

    #[test]
    fn a_torn_vocabulary_is_refused_in_one_line() {
        let bytes = fs::read(Path::new(FIXTURE).join("vocab.json")).unwrap();
        let error = refusal("vocab.json", &bytes[..bytes.len() / 2]);
        assert!(error.contains("vocab.json`: EOF while parsing"), "{error}");
    }

    #[test]
    fn separate_vocabularies_are_refused() {
        let error = refusal("tokenizer_config.json", br#"{"separate_vocabs": true}"#);
        assert!(error.contains("one vocabulary must serve both languages"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        for name in ["source.spm", "target.spm", "vocab.json"] {
            let (folder, path) = with_file(name, b"");
            fs::remove_file(&path).unwrap();
            let error = MarianTokenizer::load(folder.path()).unwrap_err().to_string();
            assert_eq!(error, format!("cannot read `{}`", path.display()));
        }
    }
}
