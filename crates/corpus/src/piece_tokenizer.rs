//! Tokenizers of T5, BART, mBART, M2M100 and Pegasus, read from `tokenizer.json`, with their special tokens and language codes.
use std::path::Path;
use std::sync::Once;

use tokenizers::Tokenizer;
use words::excerpt;

use crate::Error;
use crate::foreign::wrong;
use crate::foreign_tokenizer::{
    TokenizerSettings, WHOLE, encode, guarded, join_punctuation, not_encoded, read_whole, require, token,
};
use crate::placed::PlacedToken;
use crate::sentence_tokenizer::SentenceTokenizer;
use crate::tokenizer::{END, PAD};

/// Special tokens around a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// `</s>` after the sentence.
    End,
    /// `<s>` before and `</s>` after the sentence.
    BeginEnd,
    /// The language code before and `</s>` after the sentence; a translation begins with the code.
    CodeFirst,
    /// `</s>` and the language code after the source; the decoder starts from the target's code.
    CodeLast,
}

/// Tokenizer of both languages, with a shared vocabulary.
#[derive(Debug)]
pub struct PieceTokenizer {
    inner: Tokenizer,
    source: [Vec<u32>; 2], // before and after the sentence
    target: [Vec<u32>; 2],
    /// Language code of the target; `None` if the family has no codes.
    pub code: Option<u32>,
    end: u32,
    pad: u32,
    /// True if decoding joins punctuation to words.
    joins_punctuation: bool,
}

impl PieceTokenizer {
    /// Reads a folder's `tokenizer.json` and `tokenizer_config.json`. `languages` are the tokenizer's codes of source and target.
    ///
    /// # Errors
    /// If a file is missing or malformed, or a language code is missing, unknown or given for a family without codes.
    pub fn load(folder: &Path, frame: Frame, languages: [Option<&str>; 2]) -> Result<Self, Error> {
        require(folder, &[WHOLE])?;
        let Some(mut inner) = read_whole(folder)? else { unreachable!("it is there") };
        let joins_punctuation = TokenizerSettings::read(folder)?.clean_up_tokenization_spaces;
        inner.with_padding(None);
        inner.with_truncation(None).map_err(not_encoded)?;
        let fault = |reason: String| wrong(&folder.join("tokenizer.json"), reason);
        let id = |text: &str| inner.token_to_id(text).ok_or_else(|| fault(format!("it lacks `{text}`")));
        let (end, pad) = (id(END)?, id(PAD)?);
        let has_codes = matches!(frame, Frame::CodeFirst | Frame::CodeLast);
        let names = ["data.source_language", "data.target_language"];
        let mut codes = Vec::new();
        for (name, language) in names.into_iter().zip(languages) {
            match language {
                Some(language) if has_codes => codes.push(code(&inner, name, language).map_err(fault)?),
                None if has_codes => return Err(fault(format!("{name} is missing: {}", known(&inner)))),
                Some(_) => return Err(fault(format!("{name} is given, but this family has no codes"))),
                None => {}
            }
        }
        let [source, target] = match (frame, &codes[..]) {
            (Frame::CodeFirst, [source, target]) => [source, target].map(|code| [vec![*code], vec![end]]),
            (Frame::CodeLast, [source, _]) => [[vec![], vec![end, *source]], [vec![], vec![end]]],
            (Frame::BeginEnd, _) => {
                let begin = id("<s>")?;
                [0, 1].map(|_| [vec![begin], vec![end]])
            }
            _ => [0, 1].map(|_| [vec![], vec![end]]),
        };
        Ok(Self { code: codes.get(1).copied(), source, target, end, pad, joins_punctuation, inner })
    }

    fn framed(&self, text: &str, [before, behind]: &[Vec<u32>; 2]) -> Result<Vec<u32>, Error> {
        let encoding = encode(&self.inner, None, |inner| inner.encode_fast(text, false))?;
        Ok([before, encoding.get_ids(), behind].concat())
    }
}

/// Returns the id of a language code; M2M100 encloses codes in underscores.
fn code(inner: &Tokenizer, name: &str, language: &str) -> Result<u32, String> {
    let found = inner.token_to_id(language).or_else(|| inner.token_to_id(&format!("__{language}__")));
    found.ok_or_else(|| format!("{name} is `{}`, which is unknown: {}", excerpt(language), known(inner)))
}

/// Lists some known codes for messages.
fn known(inner: &Tokenizer) -> String {
    let added = inner.get_added_vocabulary().get_vocab();
    let mut codes: Vec<&String> = added.keys().filter(|token| token.contains('_')).collect();
    codes.sort();
    let some: Vec<String> = codes.iter().take(6).map(|code| format!("`{}`", excerpt(code))).collect();
    format!("its {} codes include {}", codes.len(), some.join(", "))
}

impl SentenceTokenizer for PieceTokenizer {
    fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.framed(text, &self.source)
    }

    fn encode_placed(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        let encoding = encode(&self.inner, None, |inner| inner.encode(text, false))?;
        let [before, behind] = self.source.each_ref().map(|ids| ids.iter().copied().map(PlacedToken::symbol));
        Ok(Some(before.chain(PlacedToken::of(&encoding)).chain(behind).collect()))
    }

    fn encode_target(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.framed(text, &self.target)
    }

    fn decode(&self, ids: &[u32]) -> String {
        let decode = || self.inner.decode(ids, true).map_err(not_encoded);
        let text = guarded(decode, not_encoded).unwrap_or_else(|fault| {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| {
                words::warn(&format!("translations that the tokenizer cannot decode count as empty: {fault}"))
            });
            String::new()
        });
        if self.joins_punctuation { join_punctuation(&text) } else { text }
    }

    fn token(&self, id: u32, _: bool) -> String {
        token(&self.inner, id)
    }

    fn end(&self) -> u32 {
        self.end
    }

    fn pad(&self) -> u32 {
        self.pad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    /// Makes a folder with a word-level tokenizer; `added` are the indices of added tokens.
    fn folder(words: &[&str], added: &[usize], unknown: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let vocabulary: Map<String, Value> =
            words.iter().zip(0..).map(|(word, id)| ((*word).to_owned(), id.into())).collect();
        let token = |id: &usize| {
            json!({"id": id, "content": words[*id], "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true})
        };
        let json = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
            "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
            "added_tokens": added.iter().map(token).collect::<Vec<_>>(),
            "model": {"type": "WordLevel", "unk_token": unknown, "vocab": vocabulary},
        });
        std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
        folder
    }

    #[test]
    fn sentences_are_framed_as_the_family_does_it() {
        let folder =
            folder(&["<s>", "<pad>", "</s>", "a", "dog", "eng_Latn", "fra_Latn"], &[0, 1, 2, 5, 6], "dog");
        let load = |frame, languages| PieceTokenizer::load(folder.path(), frame, languages);
        let both = [Some("eng_Latn"), Some("fra_Latn")];
        for (frame, languages, source, target) in [
            (Frame::End, [None; 2], vec![3, 4, 2], vec![4, 2]),
            (Frame::BeginEnd, [None; 2], vec![0, 3, 4, 2], vec![0, 4, 2]),
            (Frame::CodeFirst, both, vec![5, 3, 4, 2], vec![6, 4, 2]),
            (Frame::CodeLast, both, vec![3, 4, 2, 5], vec![4, 2]),
        ] {
            let tokenizer = load(frame, languages).unwrap();
            assert_eq!(
                (tokenizer.encode("a dog").unwrap(), tokenizer.encode_target("dog").unwrap()),
                (source, target)
            );
            let placed = tokenizer.encode_placed("a dog").unwrap().unwrap();
            assert_eq!(
                placed.iter().map(|token| token.id).collect::<Vec<_>>(),
                tokenizer.encode("a dog").unwrap()
            );
            let places: Vec<_> = placed.into_iter().filter_map(|token| token.bytes).collect();
            assert_eq!(places, [0..1, 2..5]);
            assert_eq!(
                (tokenizer.decode(&[6, 4, 2]).trim(), tokenizer.end(), tokenizer.pad()),
                ("dog", 2, 1)
            );
            assert_eq!(tokenizer.code, languages[1].map(|_| 6));
        }
        let message = load(Frame::CodeFirst, [Some("eng"), None]).unwrap_err().to_string();
        assert!(
            message.contains("data.source_language is `eng`, which is unknown: its 2 codes"),
            "{message}"
        );
        let message = load(Frame::CodeFirst, [Some("eng_Latn"), None]).unwrap_err().to_string();
        assert!(message.contains("data.target_language is missing"), "{message}");
        assert!(load(Frame::End, both).unwrap_err().to_string().contains("has no codes"));
    }

    /// Expected texts: `AutoTokenizer.from_pretrained(folder).decode(ids, skip_special_tokens=True)` of transformers 4.57.1, equal for
    /// `BartTokenizer`, `MBartTokenizer`, `PegasusTokenizer` and `T5Tokenizer`.
    #[test]
    fn decoding_joins_punctuation_if_the_folder_asks_for_it() {
        let words = ["<s>", "<pad>", "</s>", "it", "'s", "red", ",", "is", "n't", "old", "?"];
        let folder = folder(&words, &[0, 1, 2], "red");
        let ids = [0, 3, 4, 5, 6, 7, 8, 3, 9, 10, 2];
        for (settings, text) in [
            (None, "it 's red , is n't it old ?"),
            (Some(r#"{"clean_up_tokenization_spaces": true}"#), "it's red, isn't it old?"),
            (Some(r#"{"clean_up_tokenization_spaces": false}"#), "it 's red , is n't it old ?"),
            (Some(r#"{"clean_up_tokenization_spaces": null}"#), "it 's red , is n't it old ?"),
        ] {
            if let Some(settings) = settings {
                std::fs::write(folder.path().join("tokenizer_config.json"), settings).unwrap();
            }
            let tokenizer = PieceTokenizer::load(folder.path(), Frame::BeginEnd, [None; 2]).unwrap();
            assert_eq!(tokenizer.decode(&ids), text, "{settings:?}");
        }
    }
}
