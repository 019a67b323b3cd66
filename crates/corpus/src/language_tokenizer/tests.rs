mod faults;
mod trained;

use std::collections::BTreeMap;

use super::*;
use crate::test_files;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/language");

#[derive(serde::Deserialize)]
struct Expected {
    texts: Vec<String>,
    folders: BTreeMap<String, Results>,
}

/// Results of transformers for all texts with the tokenizer of one folder.
#[derive(serde::Deserialize)]
struct Results {
    size: usize,
    begin: Option<u32>,
    /// True if transformers puts `begin` before a text.
    adds: bool,
    end: Option<u32>,
    ids: Vec<Vec<u32>>,
    /// Decoded texts that differ from the originals, by index.
    decoded: BTreeMap<usize, String>,
}

fn fixture(name: &str) -> LanguageTokenizer {
    LanguageTokenizer::load(&Path::new(FIXTURES).join(name)).unwrap()
}

fn expected() -> Expected {
    serde_json::from_slice(&fs::read(Path::new(FIXTURES).join("expected.json")).unwrap()).unwrap()
}

fn copied(name: &str, changed: &[(&str, &str)]) -> tempfile::TempDir {
    test_files::copied(&Path::new(FIXTURES).join(name), changed)
}

fn check(tokenizer: &LanguageTokenizer, name: &str, texts: &[String], results: &Results) {
    assert_eq!(tokenizer.vocabulary_size(), results.size, "{name}");
    assert_eq!((tokenizer.begin(), tokenizer.end()), (results.begin, results.end), "{name}");
    assert_eq!(tokenizer.added_bos(), results.begin.filter(|_| results.adds), "{name}");
    for (place, (text, ids)) in texts.iter().zip(&results.ids).enumerate() {
        assert_eq!(&tokenizer.encode(text).unwrap(), ids, "{name}: {text:?}");
        let decoded = results.decoded.get(&place).unwrap_or(text);
        assert_eq!(&tokenizer.decode(ids).unwrap(), decoded, "{name}: {text:?}");
    }
}

#[test]
fn every_family_cuts_as_transformers_does() {
    let Expected { texts, folders } = expected();
    assert_eq!(folders.len(), 7);
    for (name, results) in &folders {
        check(&fixture(name), name, &texts, results);
    }
}

#[test]
fn what_is_saved_is_the_same_when_it_is_loaded() {
    let Expected { texts, folders } = expected();
    for (name, results) in &folders {
        let folder = tempfile::tempdir().unwrap();
        fixture(name).save(&folder.path().join("tokenizer.json")).unwrap();
        let loaded = LanguageTokenizer::load(folder.path()).unwrap();
        check(&loaded, name, &texts, results);
    }
}

/// Llama 3's template puts `<|begin_of_text|>`, id 0, first; Llama 2's settings put `<s>`, id 1, first. Other readers of a saved file must
/// still do so.
#[test]
fn what_is_put_around_texts_is_saved() {
    for (name, ids) in [("llama3", &[0][..]), ("llama2", &[1]), ("gpt2", &[]), ("qwen2", &[])] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        fixture(name).save(&path).unwrap();
        let foreign: Tokenizer = fs::read_to_string(&path).unwrap().parse().unwrap();
        assert_eq!(foreign.encode("", true).unwrap().get_ids(), ids, "{name}");
    }
}

#[test]
fn special_tokens_are_letters_in_texts_and_nothing_in_decoded_ones() {
    let tokenizer = fixture("gpt2");
    let mut ids = tokenizer.encode("a<|endoftext|>").unwrap();
    assert!(!ids.contains(&0), "{ids:?}");
    ids.insert(1, 0);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "a<|endoftext|>");
    let error = tokenizer.decode(&[0, 310]).unwrap_err().to_string();
    assert_eq!(error, "no token has the id 310: ids are below 310");
}

/// The template in the file puts `<s>`, id 1, first.
#[test]
fn the_first_token_is_the_one_that_is_put_there_or_named() {
    let begin = |settings: &str, change: fn(&mut Value)| {
        let mut json: Value =
            serde_json::from_slice(&fs::read(Path::new(FIXTURES).join("llama2/tokenizer.json")).unwrap())
                .unwrap();
        change(&mut json);
        let files = [("tokenizer.json", &*json.to_string()), ("tokenizer_config.json", settings)];
        LanguageTokenizer::load(copied("llama2", &files).path()).unwrap().begin()
    };
    let without = |json: &mut Value| json["post_processor"] = Value::Null;
    assert_eq!(begin("{}", |_| {}), Some(1), "the template's");
    assert_eq!(begin(r#"{"bos_token": "</s>"}"#, |_| {}), Some(1), "the template's before the named one");
    assert_eq!(begin(r#"{"bos_token": "</s>", "add_bos_token": true}"#, |_| {}), Some(2), "made anew");
    assert_eq!(begin(r#"{"bos_token": "</s>"}"#, without), Some(2), "the named one");
    assert_eq!(begin(r#"{"eos_token": {"content": "</s>"}}"#, without), Some(2), "the end");
    assert_eq!(begin("{}", without), None);
}

/// Whether transformers 4.57.1 puts BOS first (`AutoTokenizer.from_pretrained(folder)("a")["input_ids"]`), with and without the template
/// `<s> $A` in `tokenizer.json`, for each class and `add_bos_token`. Differs from it: without a template, `true` adds BOS in the first two
/// classes too, as transformers does for GPT-2's vocabulary files without a `tokenizer.json`.
#[test]
fn bos_is_added_by_template_class_or_setting() {
    // for `add_bos_token` null, true and false
    let expected = [
        ("PreTrainedTokenizerFast", [true, true, true], [false, true, false]),
        ("GPT2Tokenizer", [true, true, true], [false, true, false]),
        ("LlamaTokenizerFast", [true, true, false], [true, true, false]),
        ("LlamaTokenizer", [true, true, false], [true, true, false]),
        ("GemmaTokenizerFast", [true, true, false], [true, true, false]),
        ("CodeLlamaTokenizer", [true, true, false], [true, true, false]),
        ("CohereTokenizerFast", [true, true, false], [true, true, false]),
        ("GPTNeoXTokenizerFast", [false, true, false], [false, true, false]),
    ];
    let text = fs::read_to_string(Path::new(FIXTURES).join("llama2/tokenizer.json")).unwrap();
    let mut without: Value = serde_json::from_str(&text).unwrap();
    without["post_processor"] = Value::Null;
    let without = without.to_string();
    for (class, with_template, without_template) in expected {
        for (json, found) in [(&text, with_template), (&without, without_template)] {
            for (stated, adds) in [Value::Null, true.into(), false.into()].into_iter().zip(found) {
                let settings = serde_json::json!({
                    "tokenizer_class": class, "add_bos_token": stated, "bos_token": "<s>", "eos_token": "</s>",
                });
                let files = [("tokenizer.json", &**json), ("tokenizer_config.json", &*settings.to_string())];
                let tokenizer = LanguageTokenizer::load(copied("llama2", &files).path()).unwrap();
                assert_eq!(tokenizer.added_bos(), adds.then_some(1), "{settings}");
                assert_eq!(tokenizer.begin(), Some(1), "{settings}: documents begin with BOS in any case");
            }
        }
    }
}

/// Expected texts from `AutoTokenizer.from_pretrained(folder).decode(ids)` of transformers 4.57.1.
#[test]
fn decoding_joins_punctuation_if_the_folder_asks_for_it() {
    for (settings, expected) in [
        (r#"{"clean_up_tokenization_spaces": true}"#, "a dog's, isn't?"),
        (r#"{"clean_up_tokenization_spaces": false}"#, "a dog 's , is n't ?"),
        ("{}", "a dog 's , is n't ?"),
    ] {
        let folder = copied("gpt2", &[("tokenizer_config.json", settings)]);
        let tokenizer = LanguageTokenizer::load(folder.path()).unwrap();
        let decoded = |tokenizer: &LanguageTokenizer| {
            tokenizer.decode(&tokenizer.encode("a dog 's , is n't ?").unwrap()).unwrap()
        };
        assert_eq!(decoded(&tokenizer), expected, "{settings}");
        let saved = tempfile::tempdir().unwrap();
        tokenizer.save(&saved.path().join("tokenizer.json")).unwrap();
        assert_eq!(decoded(&LanguageTokenizer::load(saved.path()).unwrap()), expected, "{settings}, saved");
    }
}
