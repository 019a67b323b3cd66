use super::*;
use crate::test_files::copied;
use std::fs;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/fsmt");

#[derive(serde::Deserialize)]
struct Example {
    text: String,
    ids: Vec<u32>,
}

/// Ids from transformers 4.57, written by `make.py` next to the fixture.
fn expected(list: &str, number: usize) -> Vec<Example> {
    let json = fs::read_to_string(Path::new(FIXTURE).join("expected.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let examples: Vec<Example> = serde_json::from_value(json[list].clone()).unwrap();
    assert_eq!(examples.len(), number);
    examples
}

fn fixture() -> FsmtTokenizer {
    FsmtTokenizer::load(Path::new(FIXTURE)).unwrap()
}

#[test]
fn ids_and_texts_are_those_of_transformers() {
    let tokenizer = fixture();
    for Example { text, ids } in expected("source", 311) {
        assert_eq!(tokenizer.encode(&text).unwrap(), ids, "{text:?}");
    }
    for Example { text, ids } in expected("target", 341) {
        assert_eq!(tokenizer.encode_target(&text).unwrap(), ids, "{text:?}");
    }
    for Example { text, ids } in expected("decoded", 401) {
        assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
    }
    assert_eq!((tokenizer.pad(), tokenizer.end()), (1, 2));
    assert!(!tokenizer.decode(&[4, 5, 6, u32::MAX, 152]).is_empty(), "ids without a piece are left out");
}

#[test]
fn texts_are_lower_cased_and_punctuation_is_joined_if_the_folder_sets_it() {
    let settings = r#"{"langs": ["en", "fr"], "do_lower_case": true, "clean_up_tokenization_spaces": true}"#;
    let folder = copied(Path::new(FIXTURE), &[("tokenizer_config.json", settings)]);
    let tokenizer = FsmtTokenizer::load(folder.path()).unwrap();
    for Example { text, ids } in expected("lower_case", 71) {
        assert_eq!(tokenizer.encode(&text).unwrap(), ids, "{text:?}");
    }
    let examples = expected("cleaned", 100);
    assert!(examples.iter().any(|example| fixture().decode(&example.ids) != example.text));
    for Example { text, ids } in examples {
        assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
    }
}

/// As in transformers 4.57; the BPE of `tokenizers` splits the first word into "abca", "bc", "x</w>".
#[test]
fn all_occurrences_of_a_pair_are_merged_before_those_of_another() {
    let merges = "b c\nb c</w>\na b\nab c\nabc a\na bc\na bc</w>\n";
    let cut = |word: &str| {
        Merges::parse(merges).unwrap().cut(&format!("{word}</w>")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(cut("abcabcx"), ["abc", "abc", "x</w>"]);
    assert_eq!(cut("abcabc"), ["abca", "bc</w>"]);
    assert_eq!(cut("x"), ["x</w>"]);
}

#[test]
fn of_two_equal_merges_the_last_one_counts() {
    let merges = Merges::parse("a b\nb c\na b\n").unwrap();
    assert_eq!(merges.cut("abcd</w>").collect::<Vec<_>>(), ["a", "bc", "d</w>"]);
}

#[test]
fn numbers_after_merges_do_nothing() {
    let merges = Merges::parse("a b 12\nab c</w> 3\n").unwrap();
    assert_eq!(merges.cut("abc</w>").collect::<Vec<_>>(), ["abc</w>"]);
}
