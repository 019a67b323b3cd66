//! Tokenizers that are trained here.
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::grammar::{Domain, generate};

static SMALL: LazyLock<LanguageTokenizer> = LazyLock::new(|| {
    let samples = generate(Domain::Standard, 400, 1);
    LanguageTokenizer::train_bytes(samples.iter().map(|sample| &sample.source), 400).unwrap()
});

fn reloaded(tokenizer: &LanguageTokenizer) -> LanguageTokenizer {
    let folder = tempfile::tempdir().unwrap();
    tokenizer.save(&folder.path().join("tokenizer.json")).unwrap();
    LanguageTokenizer::load(folder.path()).unwrap()
}

/// Encodes with the saved file and the library alone, as the library's Python package does.
fn foreign(tokenizer: &LanguageTokenizer, text: &str) -> Result<Vec<u32>, String> {
    let foreign: Tokenizer = tokenizer.to_json().to_string().parse().unwrap();
    let encoding = foreign.encode(text, true).map_err(|error| error.to_string())?;
    Ok(encoding.get_ids().to_vec())
}

proptest! {
    #[test]
    fn any_text_survives_bytes(text in any::<String>()) {
        prop_assert_eq!(SMALL.decode(&SMALL.encode(&text).unwrap()).unwrap(), text);
    }

    #[test]
    fn any_text_survives_its_own_characters(text in any::<String>()) {
        let tokenizer = LanguageTokenizer::characters([&text].into_iter());
        let ids = tokenizer.encode(&text).unwrap();
        prop_assert_eq!(ids.len(), text.chars().count());
        prop_assert!(ids.iter().all(|&id| 0 < id && (id as usize) < tokenizer.vocabulary_size()));
        prop_assert_eq!(&tokenizer.decode(&ids).unwrap(), &text);
        prop_assert_eq!(&foreign(&tokenizer, &text).unwrap(), &ids);
        prop_assert_eq!(&reloaded(&tokenizer).encode(&text).unwrap(), &ids);
    }
}

#[test]
fn one_special_token_begins_and_ends_documents() {
    for tokenizer in [&*SMALL, &reloaded(&SMALL), &LanguageTokenizer::characters(["ab"].iter())] {
        assert_eq!((tokenizer.begin(), tokenizer.end()), (Some(0), Some(0)));
        assert_eq!(tokenizer.decode(&[0]).unwrap(), "");
        assert!(tokenizer.encode("").unwrap().is_empty());
    }
    assert_eq!(SMALL.vocabulary_size(), 400);
    let error = LanguageTokenizer::train_bytes(["a"].iter(), 256).unwrap_err().to_string();
    assert!(error.ends_with("alone need 257"), "{error}");
}

#[test]
fn other_readers_give_equal_ids() {
    let text = "Does Maliven see  the dogs?\n\n犬";
    assert_eq!(foreign(&SMALL, text).unwrap(), SMALL.encode(text).unwrap());
    assert_eq!(reloaded(&SMALL).to_json(), SMALL.to_json());
}

/// Sorted by code point: `\n` 1, `a` 2, `b` 3, `é` 4.
#[test]
fn characters_are_numbered_by_code_point() {
    let tokenizer = LanguageTokenizer::characters(["ba\n", "éa"].iter());
    assert_eq!(tokenizer.vocabulary_size(), 5);
    assert_eq!(tokenizer.encode("\naébb").unwrap(), [1, 2, 4, 3, 3]);
    assert_eq!(tokenizer.decode(&[2, 0, 4]).unwrap(), "aé");
}

#[test]
fn an_unknown_character_is_named() {
    let tokenizer = LanguageTokenizer::characters(["ab"].iter());
    let error = tokenizer.encode("ab\u{1b}c").unwrap_err().to_string();
    assert_eq!(error, r"`\u{1b}` is not among the 2 characters of the tokenizer");
    assert!(foreign(&tokenizer, "abc").is_err(), "other readers refuse it too");
}
