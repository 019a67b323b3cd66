//! Subwords: byte-level byte-pair encoding (Sennrich et al. 2016, <https://aclanthology.org/P16-1162>),
//! one vocabulary for both languages, kept as a Hugging Face `tokenizer.json`.
//!
//! Any text survives encoding and decoding. Special tokens are not recognised in texts: `</s>` in a
//! sentence is encoded as four characters.
use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::PostProcessorWrapper;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, TokenizerImpl};
use words::excerpt;

use crate::Error;
use crate::foreign::{MOST_BYTES, read_text, wrong};
use crate::foreign_tokenizer::guarded;
use crate::placed::PlacedToken;
use crate::sentence_tokenizer::SentenceTokenizer;

/// Ends every sentence. Id 0 in what we train.
pub const END: &str = "</s>";
/// Stands for what cannot be encoded, which does not happen with bytes. Id 1 in what we train.
pub const UNKNOWN: &str = "<unk>";
/// Pads sentences of a batch to one length; decoders also start from it. Id 2 in what we train.
pub const PAD: &str = "<pad>";

/// Byte-level BPE as we train it.
pub(crate) type Inner = TokenizerImpl<BPE, NormalizerWrapper, ByteLevel, PostProcessorWrapper, ByteLevel>;

/// Subwords of a source and a target language.
#[derive(Debug, Clone)]
pub struct SubwordTokenizer {
    inner: Inner,
    end: u32,
    pad: u32,
}

impl SubwordTokenizer {
    /// Learns merges from `lines` of both languages until the vocabulary has `vocabulary_size`
    /// entries or there is nothing left to merge. Equal lines give equal tokenisers.
    pub fn train<S: AsRef<str> + Send>(
        lines: impl Iterator<Item = S> + Send,
        vocabulary_size: usize,
    ) -> Result<Self, Error> {
        let inner = learn(lines, vocabulary_size, &[END, UNKNOWN, PAD])?;
        Ok(Self::from_inner(inner).expect("the trainer adds the special tokens and all bytes"))
    }

    /// Reads a `tokenizer.json` that [`SubwordTokenizer::save`] wrote.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let json = read_text(path, MOST_BYTES)?;
        let wrong = |reason: String| wrong(path, reason);
        guarded(
            || Self::from_inner(parse(&json).map_err(|reason| wrong(excerpt(&reason)))?).map_err(wrong),
            wrong,
        )
    }

    /// Writes a `tokenizer.json` that Hugging Face tokenizers read too.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        fs::write(path, self.to_json()).map_err(|source| Error::Write { path: path.to_owned(), source })
    }

    fn to_json(&self) -> String {
        self.inner.to_string(true).expect("a tokeniser is plain data")
    }

    /// Checks what `encode` relies on; the error says what is missing.
    fn from_inner(mut inner: Inner) -> Result<Self, String> {
        let id = |token: &str| inner.token_to_id(token).ok_or_else(|| format!("it lacks `{token}`"));
        let (end, pad) = (id(END)?, id(PAD)?);
        let vocabulary: HashSet<String> = inner.get_vocab(false).into_keys().collect();
        if !ByteLevel::alphabet().iter().all(|byte| vocabulary.contains(byte.to_string().as_str())) {
            return Err("its vocabulary lacks some of the 256 bytes".into());
        }
        inner.with_post_processor(Some(append_end(end)));
        inner.set_encode_special_tokens(true); // not part of the JSON
        Ok(Self { inner, end, pad })
    }
}

impl SentenceTokenizer for SubwordTokenizer {
    /// Ids of the subwords of `text`, then the end symbol.
    fn encode(&self, text: &str) -> Vec<u32> {
        let encoding = self.inner.encode_fast(text, false).expect("every byte is in the vocabulary");
        let mut ids = encoding.get_ids().to_vec();
        ids.push(self.end);
        ids
    }

    fn encode_placed(&self, text: &str) -> Option<Vec<PlacedToken>> {
        let encoding = self.inner.encode(text, false).expect("every byte is in the vocabulary");
        let mut tokens = PlacedToken::of(&encoding);
        tokens.push(PlacedToken::symbol(self.end));
        Some(tokens)
    }

    /// The same as for the source, since both sides share their pieces.
    fn encode_target(&self, text: &str) -> Vec<u32> {
        self.encode(text)
    }

    /// Text of `ids`; special tokens and ids outside the vocabulary are left out, and bytes that
    /// are not UTF-8 become U+FFFD.
    fn decode(&self, ids: &[u32]) -> String {
        self.inner.decode(ids, true).expect("a byte-level decoder takes any token")
    }

    /// One more than the highest id; less than was asked for if there was little text.
    fn source_vocabulary_size(&self) -> usize {
        self.inner.get_vocab(true).into_values().max().map_or(0, |highest| highest as usize + 1)
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

/// Learns merges from `lines` until the vocabulary has `vocabulary_size` entries or there is nothing left to merge. The
/// special tokens come first, in their order.
pub(crate) fn learn<S: AsRef<str> + Send>(
    lines: impl Iterator<Item = S> + Send,
    vocabulary_size: usize,
    specials: &[&str],
) -> Result<Inner, Error> {
    let least = ByteLevel::alphabet().len() + specials.len();
    if vocabulary_size < least {
        return Err(Error::VocabularySize { asked: vocabulary_size, least });
    }
    let mut trainer = BpeTrainer::builder()
        .vocab_size(vocabulary_size)
        .show_progress(false)
        .special_tokens(specials.iter().map(|&token| AddedToken::from(token, true)).collect())
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let mut inner = untrained();
    inner.train(&mut trainer, lines).expect("counting strings in memory cannot fail");
    Ok(inner)
}

/// A tokeniser without a vocabulary, with the parts of every tokeniser that we train.
fn untrained() -> Inner {
    let byte_level = ByteLevel::new(false, true, true); // no space before the text, since decoding would not remove it
    let mut inner = Inner::new(BPE::default());
    inner.with_pre_tokenizer(Some(byte_level));
    inner.with_decoder(Some(byte_level));
    inner
}

/// Reads a `tokenizer.json` with the parts of every tokeniser that we train. What it says about truncation, padding and
/// special tokens is ignored, since `encode` sees to those.
fn parse(text: &str) -> Result<Inner, String> {
    let mut json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    check_parts(&json)?;
    for part in ["truncation", "padding", "post_processor"] {
        if let Some(part) = json.get_mut(part) {
            part.take();
        }
    }
    serde_json::from_str(&json.to_string()).map_err(|error| error.to_string())
}

/// Refuses other parts than ours: they could fail in the middle of a text, change it, or draw at random.
fn check_parts(json: &Value) -> Result<(), String> {
    let ours = serde_json::to_value(untrained()).map_err(|error| error.to_string())?;
    let parts =
        ["normalizer", "pre_tokenizer", "decoder"].map(|part| (part.to_owned(), &ours[part], &json[part]));
    let model = ours["model"].as_object().into_iter().flatten();
    let model = model.filter(|(key, _)| !["vocab", "merges"].contains(&key.as_str()));
    let model =
        model.map(|(key, ours)| (format!("model.{key}"), ours, json["model"].get(key).unwrap_or(ours)));
    match parts.into_iter().chain(model).find(|(_, ours, found)| ours != found) {
        Some((part, ours, found)) => {
            Err(format!("its `{part}` is {}, but must be {ours}", excerpt(&found.to_string())))
        }
        None => Ok(()),
    }
}

/// Appends the end symbol for other readers of the file, as [`SubwordTokenizer::encode`] does itself.
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
    use proptest::prelude::*;
    use serde_json::json;
    use std::sync::LazyLock;

    static SMALL: LazyLock<SubwordTokenizer> = LazyLock::new(|| trained(400, 500));

    fn trained(samples: usize, vocabulary_size: usize) -> SubwordTokenizer {
        let samples = generate(Domain::Standard, samples, 1);
        let lines = samples.iter().flat_map(|sample| [&sample.source, &sample.target]);
        SubwordTokenizer::train(lines, vocabulary_size).unwrap()
    }

    fn in_file(json: &str) -> Result<SubwordTokenizer, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        fs::write(&path, json).unwrap();
        SubwordTokenizer::load(&path)
    }

    proptest! {
        #[test]
        fn any_text_survives(text in any::<String>()) {
            prop_assert_eq!(SMALL.decode(&SMALL.encode(&text)), text);
        }

        #[test]
        fn text_with_special_tokens_survives(text in "(</s>|<pad>|<unk>|[ a-c\\n<>/]){0,12}") {
            let ids = SMALL.encode(&text);
            prop_assert!(ids[..ids.len() - 1].iter().all(|&id| id > 2), "{:?}", ids);
            prop_assert_eq!(SMALL.decode(&ids), text);
        }
    }

    #[test]
    fn special_tokens_come_first() {
        assert_eq!((SMALL.end(), SMALL.inner.token_to_id(UNKNOWN), SMALL.pad()), (0, Some(1), 2));
        assert_eq!(SMALL.encode(""), [0]);
        assert_eq!(SMALL.source_vocabulary_size(), 500);
    }

    #[test]
    fn decoding_skips_special_and_unknown_ids() {
        let mut ids = vec![0, 2, 9_999];
        ids.extend(SMALL.encode("The dogs sleep."));
        ids.extend([2, 2]);
        assert_eq!(SMALL.decode(&ids), "The dogs sleep.");
    }

    #[test]
    fn equal_lines_give_equal_tokenisers() {
        assert_eq!(trained(300, 800).to_json(), trained(300, 800).to_json());
    }

    #[test]
    fn a_small_text_gives_a_small_vocabulary() {
        let tokenizer = SubwordTokenizer::train(["ab ab"].iter(), 1_000).unwrap();
        // 256 bytes, 3 special tokens, and the merges "ab" and " ab".
        assert_eq!(tokenizer.source_vocabulary_size(), 261);
    }

    #[test]
    fn other_readers_of_the_file_see_the_same_ids() {
        let foreign: tokenizers::Tokenizer = SMALL.to_json().parse().unwrap();
        let text = "Does Maliven see the dogs?";
        assert_eq!(foreign.encode(text, true).unwrap().get_ids(), SMALL.encode(text));
    }

    #[test]
    fn a_saved_tokeniser_loads_and_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        SMALL.save(&path).unwrap();
        let loaded = SubwordTokenizer::load(&path).unwrap();
        let text = "The child </s> sleeps.";
        assert_eq!(loaded.encode(text), SMALL.encode(text));
        assert_eq!(loaded.to_json(), SMALL.to_json());
    }

    #[test]
    fn a_file_without_end_symbol_is_refused() {
        let error = in_file(&SMALL.to_json().replace(END, "<eos>")).unwrap_err().to_string();
        assert!(error.ends_with("tokenizer.json`: it lacks `</s>`"), "{error}");
    }

    #[test]
    fn a_file_without_all_bytes_is_refused() {
        let error = in_file(&SMALL.to_json().replace("\"Ã\":", "\"ÃÃ\":")).unwrap_err().to_string();
        assert!(error.ends_with("its vocabulary lacks some of the 256 bytes"), "{error}");
    }

    /// Why a file is refused in which this part is something else.
    fn refusal_of(place: &str, part: Value) -> String {
        let mut json: Value = serde_json::from_str(&SMALL.to_json()).unwrap();
        *json.pointer_mut(place).unwrap() = part;
        let error = in_file(&json.to_string()).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    }

    #[test]
    fn merges_that_are_left_out_at_random_are_refused() {
        let error = refusal_of("/model/dropout", json!(0.1));
        assert!(error.ends_with("its `model.dropout` is 0.1, but must be null"), "{error}");
    }

    #[test]
    fn parts_that_no_tokeniser_of_ours_has_are_refused_before_they_do_anything() {
        let error = refusal_of("/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"}));
        assert!(error.contains("its `normalizer` is {") && error.ends_with("but must be null"), "{error}");
        for (place, part) in [
            ("/pre_tokenizer/add_prefix_space", json!(true)),
            ("/decoder", json!(null)),
            ("/model/type", json!("Unigram")),
            ("/model/unk_token", json!("<unk>")),
            // The library cuts merges at this length, also within a letter.
            ("/model/continuing_subword_prefix", json!("#############################")),
            ("/model/byte_fallback", json!(true)),
        ] {
            assert!(refusal_of(place, part).contains("but must be "), "{place}");
        }
    }

    #[test]
    fn settings_that_cut_or_fill_up_texts_do_nothing() {
        let mut json: Value = serde_json::from_str(&SMALL.to_json()).unwrap();
        json["truncation"] =
            json!({"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 7});
        json["padding"] = json!({"strategy": {"Fixed": 50}, "direction": "Left", "pad_to_multiple_of": 0,
            "pad_id": 3, "pad_type_id": 0, "pad_token": "!"});
        json["post_processor"]["special_tokens"] = json!({});
        let loaded = in_file(&json.to_string()).unwrap();
        let text = "The child sleeps.";
        assert_eq!(loaded.encode(text), SMALL.encode(text));
        assert_eq!(loaded.to_json(), SMALL.to_json());
    }

    #[test]
    fn a_torn_file_is_refused_in_one_line() {
        let json = SMALL.to_json();
        let error = in_file(&json[..json.len() / 2]).unwrap_err().to_string();
        assert!(error.starts_with("no tokeniser can be read from `") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_vocabulary_without_room_for_bytes_is_refused() {
        let error = SubwordTokenizer::train(["a"].iter(), 258).unwrap_err().to_string();
        assert_eq!(error, "a vocabulary of 258 is too small: its letters and special tokens alone take 259");
    }
}
