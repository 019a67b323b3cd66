//! Tokenizer of Marian translators from the hub (opus-mt): `source.spm` and `target.spm` split the text into pieces, and `vocab.json`
//! numbers the pieces of both languages unless `target_vocab.json` numbers those of the target.
//!
//! Follows transformers' `MarianTokenizer`:
//! <https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/marian/tokenization_marian.py>. Punctuation is not
//! normalised, and special tokens in the text are recognised. As in transformers 5, a language code such as `>>fra<<` is recognised only at
//! the start of a text; version 4 also removes codes elsewhere.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::Path;

use crate::Error;
use crate::foreign::{read_if_there, read_json, wrong};
use crate::foreign_tokenizer::{join_punctuation, require};
use crate::pieces::Pieces;
use crate::sentence_tokenizer::SentenceTokenizer;
use crate::special_tokens::{SpecialToken, SpecialTokens};
use crate::tokenizer::{END, PAD, UNKNOWN};

/// SentencePiece tokenizer of a source and a target language, with a shared vocabulary or one each.
pub struct MarianTokenizer {
    source: Side,
    target: Side,
    pieces: HashMap<u32, String>,
    specials: SpecialTokens,
    joins_punctuation: bool,
}

struct Side {
    model: Pieces,
    ids: BTreeMap<String, u32>,
    /// Ids of the end, padding and unknown tokens.
    symbols: [u32; 3],
}

impl Side {
    fn read(folder: &Path, model: &str, vocabulary: &str) -> Result<Self, Error> {
        let path = folder.join(vocabulary);
        let ids: BTreeMap<String, u32> = read_json(&path)?;
        if ids.values().collect::<BTreeSet<_>>().len() < ids.len() {
            return Err(wrong(&path, "each piece must have a unique id".to_owned()));
        }
        let id =
            |text: &str| ids.get(text).copied().ok_or_else(|| wrong(&path, format!("it lacks `{text}`")));
        let symbols = [id(END)?, id(PAD)?, id(UNKNOWN)?];
        Ok(Self { model: Pieces::read(&folder.join(model))?, ids, symbols })
    }

    /// Returns the ids of a text; a language code at its start, such as `>>fra<<`, is one token.
    fn cut(&self, text: &str) -> Result<Vec<u32>, Error> {
        let (code, text) = split_language_code(text);
        let pieces = code.into_iter().map(str::to_owned).chain(self.model.cut(text)?);
        Ok(pieces.map(|piece| self.ids.get(&piece).copied().unwrap_or(self.symbols[2])).collect())
    }
}

/// A space in SentencePiece's notation.
const SPACE: &str = "\u{2581}";

impl MarianTokenizer {
    /// Reads `source.spm`, `target.spm`, `vocab.json` and, if it exists, `tokenizer_config.json`; also `target_vocab.json` if
    /// `separate_vocabs` is set.
    ///
    /// # Errors
    /// If a file is missing or malformed, two pieces share an id, or a special token has different ids in the two vocabularies.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let settings: Settings = read_if_there(&folder.join("tokenizer_config.json"))?;
        let files = ["source.spm", "target.spm", "vocab.json", "target_vocab.json"];
        let files = if settings.separate_vocabs { &files } else { &files[..3] };
        require(folder, &[files])?;
        let of_target = files[files.len() - 1];
        let source = Side::read(folder, files[0], files[2])?;
        let target = Side::read(folder, files[1], of_target)?;
        if source.symbols != target.symbols {
            let reason =
                format!("`{END}`, `{PAD}` and `{UNKNOWN}` must have the ids that `vocab.json` gives them");
            return Err(wrong(&folder.join(of_target), reason));
        }
        let special = |(text, id): (&str, u32)| SpecialToken { text: text.to_owned(), id };
        let specials = [END, PAD, UNKNOWN].into_iter().zip(source.symbols).map(special).collect();
        Ok(Self {
            pieces: target.ids.iter().map(|(piece, &id)| (id, piece.clone())).collect(),
            source,
            target,
            specials: SpecialTokens(specials),
            joins_punctuation: settings.clean_up_tokenization_spaces,
        })
    }

    fn encode_with(&self, side: &Side, text: &str) -> Result<Vec<u32>, Error> {
        let mut ids = self.specials.encode(text, |text| side.cut(text))?;
        ids.push(self.end());
        Ok(ids)
    }
}

impl SentenceTokenizer for MarianTokenizer {
    fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.encode_with(&self.source, text)
    }

    fn openings(&self) -> Vec<String> {
        let is_code = |piece: &&String| matches!(split_language_code(piece), (Some(_), ""));
        self.source.ids.keys().filter(is_code).cloned().collect()
    }

    fn encode_target(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.encode_with(&self.target, text)
    }

    fn decode(&self, ids: &[u32]) -> String {
        let pieces = ids.iter().filter(|id| !self.specials.has(**id)).filter_map(|id| self.pieces.get(id));
        let text = pieces.map(String::as_str).collect::<String>().replace(SPACE, " ");
        let text = text.trim();
        if self.joins_punctuation { join_punctuation(text) } else { text.to_owned() }
    }

    fn token(&self, id: u32, is_source: bool) -> String {
        let of_source = || self.source.ids.iter().find(|(_, own)| **own == id).map(|(piece, _)| piece);
        let piece = if is_source { of_source() } else { self.pieces.get(&id) };
        piece.map_or(String::new(), |piece| piece.replace(SPACE, " "))
    }

    fn end(&self) -> u32 {
        self.source.symbols[0]
    }

    fn pad(&self) -> u32 {
        self.source.symbols[1]
    }
}

impl fmt::Debug for MarianTokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MarianTokenizer").field("pieces", &self.pieces.len()).finish_non_exhaustive()
    }
}

/// Splits off the language code at the start of `text`.
fn split_language_code(text: &str) -> (Option<&str>, &str) {
    match text.find("<<") {
        Some(place) if text.starts_with(">>") => {
            let (code, rest) = text.split_at(place + "<<".len());
            (Some(code), rest)
        }
        _ => (None, text),
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Settings {
    /// True if decoding joins punctuation to words; written by older versions of transformers.
    clean_up_tokenization_spaces: bool,
    separate_vocabs: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::copied;
    use std::fs;

    const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian");

    #[derive(serde::Deserialize)]
    struct Example {
        text: String,
        ids: Vec<u32>,
    }

    /// Ids from transformers 5.23, written by `make_tiny_marian_tokenizer.py` next to the fixture.
    fn expected(list: &str) -> Vec<Example> {
        let json = fs::read_to_string(Path::new(FIXTURE).join("expected-tokenizer.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        serde_json::from_value(json[list].clone()).unwrap()
    }

    fn fixture() -> MarianTokenizer {
        MarianTokenizer::load(Path::new(FIXTURE)).unwrap()
    }

    fn with_file(name: &str, text: &str) -> MarianTokenizer {
        MarianTokenizer::load(copied(Path::new(FIXTURE), &[(name, text)]).path()).unwrap()
    }

    #[test]
    fn ids_and_texts_are_those_of_transformers() {
        let tokenizer = fixture();
        let [source, target, decoded] = ["source", "target", "decoded"].map(expected);
        assert_eq!([source.len(), target.len(), decoded.len()], [49, 12, 67]);
        for Example { text, ids } in source {
            assert_eq!(tokenizer.encode(&text).unwrap(), ids, "{text:?}");
        }
        for Example { text, ids } in target {
            assert_eq!(tokenizer.encode_target(&text).unwrap(), ids, "{text:?}");
        }
        for Example { text, ids } in decoded {
            assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
        }
    }

    #[test]
    fn punctuation_is_joined_where_the_folder_says_so() {
        let settings = r#"{"clean_up_tokenization_spaces": true}"#;
        let tokenizer = with_file("tokenizer_config.json", settings);
        let examples = expected("cleaned");
        assert!(examples.iter().any(|example| fixture().decode(&example.ids) != example.text));
        for Example { text, ids } in examples {
            assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
        }
    }

    /// Numbers the target's pieces backwards but keeps the ids of its special tokens.
    #[test]
    fn each_side_may_have_a_vocabulary_of_its_own() {
        let one = fixture();
        let other = |id: u32| if one.specials.has(id) { id } else { 254 - id };
        let ids: BTreeMap<&String, u32> =
            one.source.ids.iter().map(|(piece, &id)| (piece, other(id))).collect();
        let settings = ("tokenizer_config.json", r#"{"separate_vocabs": true}"#);
        let vocabulary = ("target_vocab.json", &*serde_json::to_string(&ids).unwrap());
        let folder = copied(Path::new(FIXTURE), &[settings, vocabulary]);
        let two = MarianTokenizer::load(folder.path()).unwrap();
        for Example { text, .. } in expected("target") {
            assert_eq!(two.encode(&text).unwrap(), one.encode(&text).unwrap());
            let ids = one.encode_target(&text).unwrap();
            let others: Vec<u32> = ids.iter().map(|&id| other(id)).collect();
            assert_eq!((two.encode_target(&text).unwrap(), two.decode(&others)), (others, one.decode(&ids)));
        }
    }

    #[test]
    fn codes_of_languages_are_symbols_that_sources_begin_with() {
        assert_eq!(fixture().openings(), [">>tgt<<"]);
        let vocabulary =
            r#"{"</s>": 0, "<unk>": 1, "<pad>": 2, ">>fra<<": 3, ">>": 4, "<<": 5, ">>deu<<": 6, "a": 7}"#;
        assert_eq!(with_file("vocab.json", vocabulary).openings(), [">>deu<<", ">>fra<<"]);
    }

    #[test]
    fn symbols_are_those_of_the_vocabulary_and_other_ids_are_left_out() {
        let tokenizer = fixture();
        assert_eq!((tokenizer.end(), tokenizer.pad()), (0, 253));
        let mut ids = tokenizer.encode("The dogs sleep.").unwrap();
        ids.extend([254, u32::MAX]);
        assert_eq!(tokenizer.decode(&ids), "The dogs sleep.");
    }
}
