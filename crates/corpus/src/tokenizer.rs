//! Byte-level byte-pair encoding (Sennrich et al. 2016, <https://aclanthology.org/P16-1162>) with one
//! vocabulary for both languages, saved as a Hugging Face `tokenizer.json`.
//!
//! Decoding restores any encoded text. Special tokens are not recognised in texts: `</s>` in a
//! sentence is encoded as four characters.
use std::fs;
use std::path::Path;

use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::PostProcessorWrapper;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, TokenizerImpl};

use crate::Error;
use crate::foreign::{parse_json, read_text, wrong};
use crate::foreign_tokenizer::{check_is_certain, guarded, not_encoded};
use crate::placed::PlacedToken;
use crate::sentence_tokenizer::SentenceTokenizer;

/// EOS token. Id 0 in tokenizers trained here.
pub const END: &str = "</s>";
/// Unknown token, which byte-level BPE never uses. Id 1 in tokenizers trained here.
pub const UNKNOWN: &str = "<unk>";
/// Padding token, and start token of decoders. Id 2 in tokenizers trained here.
pub const PAD: &str = "<pad>";

/// Byte-level BPE as trained here.
pub(crate) type Inner = TokenizerImpl<BPE, NormalizerWrapper, ByteLevel, PostProcessorWrapper, ByteLevel>;

/// Tokenizer of a source and a target language.
#[derive(Debug, Clone)]
pub struct SubwordTokenizer {
    inner: Inner,
    end: u32,
    pad: u32,
}

impl SubwordTokenizer {
    /// Learns merges from `lines` of both languages until the vocabulary has `vocabulary_size`
    /// entries or nothing is left to merge. Training is deterministic.
    pub fn train<S: AsRef<str> + Send>(
        lines: impl Iterator<Item = S> + Send,
        vocabulary_size: usize,
    ) -> Result<Self, Error> {
        let inner = learn(lines, vocabulary_size, &[END, UNKNOWN, PAD])?;
        Ok(Self::from_inner(inner).expect("the trainer adds the special tokens and all bytes"))
    }

    /// Reads a `tokenizer.json` that [`SubwordTokenizer::save`] wrote. Truncation and padding settings are ignored.
    ///
    /// # Errors
    /// If it is missing, malformed or not byte-level BPE.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let json = read_text(path)?;
        let fault = |reason| wrong(path, reason);
        guarded(|| parse_json(&json).and_then(Self::from_inner).map_err(fault), fault)
    }

    /// Writes a `tokenizer.json`, also for Hugging Face tokenizers.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        fs::write(path, self.to_json()).map_err(Error::writing(path))
    }

    /// Returns the maximum id plus 1, the minimum number of embedding rows; smaller than requested if there was little text.
    pub fn vocabulary_size(&self) -> usize {
        self.inner.get_vocab(true).into_values().max().map_or(0, |highest| highest as usize + 1)
    }

    fn to_json(&self) -> String {
        self.inner.to_string(true).expect("a tokenizer is plain data")
    }

    /// Sets what `encode` needs; the error names what is missing.
    fn from_inner(mut inner: Inner) -> Result<Self, String> {
        check_is_certain(inner.get_model())?;
        let id = |token: &str| inner.token_to_id(token).ok_or_else(|| format!("it lacks `{token}`"));
        let (end, pad) = (id(END)?, id(PAD)?);
        inner.with_post_processor(Some(append_end(end)));
        inner.with_padding(None);
        inner.with_truncation(None).expect("nothing is checked where nothing is cut");
        inner.set_encode_special_tokens(true); // not part of the JSON
        Ok(Self { inner, end, pad })
    }
}

impl SentenceTokenizer for SubwordTokenizer {
    fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        let encode = || self.inner.encode_fast(text, false).map_err(not_encoded);
        let mut ids = guarded(encode, not_encoded)?.get_ids().to_vec();
        ids.push(self.end);
        Ok(ids)
    }

    fn encode_placed(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        let encoding = guarded(|| self.inner.encode(text, false).map_err(not_encoded), not_encoded)?;
        let mut tokens = PlacedToken::of(&encoding);
        tokens.push(PlacedToken::symbol(self.end));
        Ok(Some(tokens))
    }

    /// Encodes like a source: both languages share the vocabulary.
    fn encode_target(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.encode(text)
    }

    /// Decodes ids; invalid UTF-8 becomes U+FFFD.
    fn decode(&self, ids: &[u32]) -> String {
        self.inner.decode(ids, true).expect("a byte-level decoder takes any token")
    }

    fn token(&self, id: u32, _: bool) -> String {
        self.inner.decode(&[id], false).expect("a byte-level decoder takes any token")
    }

    fn end(&self) -> u32 {
        self.end
    }

    fn pad(&self) -> u32 {
        self.pad
    }
}

/// Learns merges from `lines` until the vocabulary has `vocabulary_size` entries or nothing is left to merge. Special
/// tokens get the first ids, in the order of `specials`.
pub(crate) fn learn<S: AsRef<str> + Send>(
    lines: impl Iterator<Item = S> + Send,
    vocabulary_size: usize,
    specials: &[&str],
) -> Result<Inner, Error> {
    check_size(vocabulary_size, ByteLevel::alphabet().len() + specials.len())?;
    let mut trainer = BpeTrainer::builder()
        .vocab_size(vocabulary_size)
        .show_progress(false)
        .special_tokens(specials.iter().map(|&token| AddedToken::from(token, true)).collect())
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let byte_level = ByteLevel::new(false, true, true); // no space before the text, since decoding would not remove it
    let mut inner = Inner::new(BPE::default());
    inner.with_pre_tokenizer(Some(byte_level));
    inner.with_decoder(Some(byte_level));
    inner.train(&mut trainer, lines).expect("counting strings in memory cannot fail");
    Ok(inner)
}

/// Refuses a vocabulary smaller than `least`, its letters and special tokens.
pub(crate) fn check_size(asked: usize, least: usize) -> Result<(), Error> {
    if asked >= least {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "a vocabulary of {asked} is too small: its letters and special tokens alone need {least}"
    )))
}

/// Appends EOS for other readers of the file; [`SubwordTokenizer::encode`] appends it anyway.
fn append_end(end: u32) -> TemplateProcessing {
    TemplateProcessing::builder()
        .try_single(format!("$A {END}"))
        .expect("the template is well-formed")
        .special_tokens(vec![(END, end)])
        .build()
        .expect("the template names only known tokens")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{Domain, generate};
    use crate::test_files::read_as;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::sync::LazyLock;

    static SMALL: LazyLock<SubwordTokenizer> = LazyLock::new(|| {
        let samples = generate(Domain::Standard, 400, 1);
        let lines = samples.iter().flat_map(|sample| [&sample.source, &sample.target]);
        SubwordTokenizer::train(lines, 500).unwrap()
    });

    fn in_file(json: &str) -> Result<SubwordTokenizer, String> {
        read_as("tokenizer.json", json, SubwordTokenizer::load)
    }

    proptest! {
        #[test]
        fn any_text_survives(text in any::<String>()) {
            prop_assert_eq!(SMALL.decode(&SMALL.encode(&text).unwrap()), text);
        }

        #[test]
        fn text_with_special_tokens_survives(text in "(</s>|<pad>|<unk>|[ a-c\\n<>/]){0,12}") {
            let ids = SMALL.encode(&text).unwrap();
            prop_assert!(ids[..ids.len() - 1].iter().all(|&id| id > 2), "{:?}", ids);
            prop_assert_eq!(SMALL.decode(&ids), text);
        }
    }

    #[test]
    fn special_tokens_come_first_and_are_left_out_of_texts() {
        assert_eq!((SMALL.end(), SMALL.inner.token_to_id(UNKNOWN), SMALL.pad()), (0, Some(1), 2));
        assert_eq!(SMALL.encode("").unwrap(), [0]);
        let ids = [vec![0, 2, 9_999], SMALL.encode("The dogs sleep.").unwrap(), vec![2, 2]].concat();
        assert_eq!(SMALL.decode(&ids), "The dogs sleep.");
    }

    #[test]
    fn vocabularies_have_the_size_that_was_asked_for_or_all_that_the_text_gives() {
        assert_eq!(SMALL.vocabulary_size(), 500);
        // 256 bytes, 3 special tokens, and the merges "ab" and " ab".
        assert_eq!(SubwordTokenizer::train(["ab ab"].iter(), 1_000).unwrap().vocabulary_size(), 261);
        let error = SubwordTokenizer::train(["a"].iter(), 258).unwrap_err().to_string();
        assert_eq!(error, "a vocabulary of 258 is too small: its letters and special tokens alone need 259");
    }

    /// Also if the file sets truncation and padding.
    #[test]
    fn a_saved_tokeniser_is_the_same_and_other_readers_see_the_same_ids() {
        let text = "Does Maliven </s> see the dogs?";
        let foreign: tokenizers::Tokenizer = SMALL.to_json().parse().unwrap();
        assert_eq!(
            foreign.encode("Does Maliven see?", true).unwrap().get_ids(),
            SMALL.encode("Does Maliven see?").unwrap()
        );
        let mut json: Value = serde_json::from_str(&SMALL.to_json()).unwrap();
        json["truncation"] =
            json!({"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 7});
        json["padding"] = json!({"strategy": {"Fixed": 50}, "direction": "Left", "pad_to_multiple_of": 0,
            "pad_id": 3, "pad_type_id": 0, "pad_token": "!"});
        for json in [SMALL.to_json(), json.to_string()] {
            let loaded = in_file(&json).unwrap();
            assert_eq!(loaded.encode(text).unwrap(), SMALL.encode(text).unwrap());
            assert_eq!(loaded.to_json(), SMALL.to_json());
        }
    }

    #[test]
    fn files_that_are_not_ours_are_refused_in_one_line() {
        let whole = SMALL.to_json();
        let with = |place: &str, part: Value| {
            let mut json: Value = serde_json::from_str(&whole).unwrap();
            *json.pointer_mut(place).unwrap() = part;
            json.to_string()
        };
        for (json, reason) in [
            (whole.replace(END, "<eos>"), "it lacks `</s>`"),
            (whole[..whole.len() / 2].to_owned(), "EOF while parsing"),
            (with("/model/dropout", json!(0.1)), "its model skips merges at random: `dropout` is 0.1"),
            (with("/model/type", json!("Unigram")), ""),
            (with("/decoder", json!({"type": "Fuse"})), ""),
            // The library slices merges at this byte length, even within a character, and panics.
            (with("/model/continuing_subword_prefix", json!("#".repeat(29))), "its parser fails: "),
        ] {
            let error = in_file(&json).unwrap_err();
            assert!(error.starts_with("no tokenizer can be read from `tokenizer.json`: "), "{error}");
            assert!(error.contains(reason), "{error}");
        }
    }
}
