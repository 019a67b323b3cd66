use super::*;
use std::fs;
use std::path::PathBuf;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/fsmt");
const FILES: [&str; 4] = ["tokenizer_config.json", "vocab-src.json", "vocab-tgt.json", "merges.txt"];

#[derive(serde::Deserialize)]
struct Example {
    text: String,
    ids: Vec<u32>,
}

/// What transformers 4.57 makes of some texts: `make.py` beside the fixture.
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

/// A copy of the fixture in which `name` holds other text.
fn with_file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for file in FILES {
        fs::copy(Path::new(FIXTURE).join(file), folder.path().join(file)).unwrap();
    }
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn loaded_with(name: &str, text: &str) -> FsmtTokenizer {
    let (folder, _) = with_file(name, text);
    FsmtTokenizer::load(folder.path()).unwrap()
}

/// What is said about `name` if it holds `text`.
fn refusal(name: &str, text: &str) -> String {
    let (folder, path) = with_file(name, text);
    let error = FsmtTokenizer::load(folder.path()).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    let start = format!("no tokeniser can be read from `{}`: ", path.display());
    error.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
}

fn text_of(name: &str) -> String {
    fs::read_to_string(Path::new(FIXTURE).join(name)).unwrap()
}

#[test]
fn source_ids_are_those_of_transformers() {
    let tokenizer = fixture();
    for Example { text, ids } in expected("source", 311) {
        assert_eq!(tokenizer.encode(&text), ids, "{text:?}");
    }
}

#[test]
fn target_ids_are_those_of_transformers_with_the_languages_exchanged() {
    let tokenizer = fixture();
    for Example { text, ids } in expected("target", 341) {
        assert_eq!(tokenizer.encode_target(&text), ids, "{text:?}");
    }
}

#[test]
fn ids_of_lower_case_are_those_of_transformers() {
    let tokenizer = loaded_with("tokenizer_config.json", r#"{"langs": ["en", "fr"], "do_lower_case": true}"#);
    for Example { text, ids } in expected("lower_case", 71) {
        assert_eq!(tokenizer.encode(&text), ids, "{text:?}");
    }
}

#[test]
fn texts_of_ids_are_those_of_transformers() {
    let tokenizer = fixture();
    for Example { text, ids } in expected("decoded", 401) {
        assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
    }
}

#[test]
fn punctuation_is_joined_where_the_folder_says_so() {
    let settings = r#"{"langs": ["en", "fr"], "clean_up_tokenization_spaces": true}"#;
    let tokenizer = loaded_with("tokenizer_config.json", settings);
    let examples = expected("cleaned", 100);
    assert!(examples.iter().any(|example| fixture().decode(&example.ids) != example.text));
    for Example { text, ids } in examples {
        assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
    }
}

#[test]
fn symbols_and_sizes_are_those_of_the_vocabularies() {
    let tokenizer = fixture();
    assert_eq!((tokenizer.pad(), tokenizer.end()), (1, 2));
    assert_eq!((tokenizer.source_vocabulary_size(), tokenizer.target_vocabulary_size()), (155, 152));
    assert!(!tokenizer.decode(&[4, 5, 6, u32::MAX, 152]).is_empty());
}

/// What transformers 4.57 does; `tokenizers` makes "abca", "bc", "x</w>" of the first word.
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

#[test]
fn merges_of_unknown_pieces_are_refused_by_line() {
    let refusal = |line: &str| refusal("merges.txt", &format!("#version: 0.2\na b\n{line}"));
    assert_eq!(refusal("ab cd\n"), "line 3: `cd` is no letter, and no line before makes it");
    assert_eq!(refusal("a </w>\n"), "line 3: `</w>` is no letter, and no line before makes it");
    for line in ["ab", "a  b", "a b c", " a", "a b 1 2", "a\u{1b}"] {
        let error = refusal(&format!("{line}\n"));
        let line = line.replace('\u{1b}', r"\u{1b}");
        assert_eq!(error, format!("line 3: `{line}` is not two pieces with a space between them"));
    }
    assert_eq!(refusal("ab c"), "its last line is not complete");
}

#[test]
fn torn_files_are_refused_in_one_line() {
    for name in &FILES[..3] {
        let text = text_of(name);
        let mut half = text.len() / 2;
        half = (0..=half).rev().find(|&place| text.is_char_boundary(place)).unwrap();
        assert!(refusal(name, &text[..half]).contains("EOF while parsing"), "{name}");
    }
    assert!(refusal("vocab-tgt.json", "[1]").contains("expected a map of tokens to ids"));
}

#[test]
fn a_missing_file_is_named() {
    for name in FILES {
        let (folder, path) = with_file(name, "");
        fs::remove_file(&path).unwrap();
        let error = FsmtTokenizer::load(folder.path()).unwrap_err().to_string();
        assert_eq!(error, format!("cannot read `{}`", path.display()));
    }
}

#[test]
fn settings_without_two_languages_are_refused() {
    assert!(refusal("tokenizer_config.json", "{}").contains("missing field `langs`"));
    let error = refusal("tokenizer_config.json", r#"{"langs": ["en"]}"#);
    assert!(error.contains("invalid length 1"), "{error}");
}

#[test]
fn vocabularies_without_special_tokens_are_refused() {
    let text = text_of("vocab-tgt.json").replace("</s>", "<end>");
    assert_eq!(refusal("vocab-tgt.json", &text), "it lacks `</s>`");
    let settings = r#"{"langs": ["en", "fr"], "unk_token": {"content": "a\n"}}"#;
    let (folder, _) = with_file("tokenizer_config.json", settings);
    let error = FsmtTokenizer::load(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with(r"vocab-src.json`: it lacks `a\n`"), "{error}");
}

#[test]
fn special_tokens_must_have_the_same_id_on_both_sides() {
    let text = text_of("vocab-tgt.json")
        .replace("\"</s>\": 2", "\"</s>\": 3")
        .replace("\"<unk>\": 3", "\"<unk>\": 2");
    let expected = "`</s>` has the id 3, but 2 in `vocab-src.json`: they must be equal";
    assert_eq!(refusal("vocab-tgt.json", &text), expected);
}

#[test]
fn ids_that_two_pieces_share_or_none_has_are_refused() {
    let text = text_of("vocab-src.json");
    let shared = text.replacen("\"<s>\": 0", "\"<s>\": 0,\n\"x\\u001b\": 0", 1);
    assert_eq!(refusal("vocab-src.json", &shared), r"`<s>` and `x\u{1b}` both have the id 0");
    let twice = text.replacen("\"<s>\": 0", "\"<s>\": 0,\n\"<s>\": 155", 1);
    assert_eq!(refusal("vocab-src.json", &twice), "`<s>` has two ids, 0 and 155");
    let gap = text.replacen(": 77,", ": 4000000000,", 1);
    assert_eq!(refusal("vocab-src.json", &gap), "no piece has the id 77, but ids must run from 0 to 154");
    assert_eq!(refusal("vocab-src.json", "{}"), "it lacks `<s>`");
}

#[test]
fn vocabularies_of_another_size_than_the_model_says_are_refused() {
    for (source, target, name) in [(154, 152, "src"), (155, 153, "tgt")] {
        let config = format!(r#"{{"src_vocab_size": {source}, "tgt_vocab_size": {target}}}"#);
        let (folder, _) = with_file("config.json", &config);
        let error = FsmtTokenizer::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("vocab-{name}.json`: ")), "{error}");
        assert!(error.contains(" pieces, but `config.json` says that there are 15"), "{error}");
    }
    loaded_with("config.json", r#"{"src_vocab_size": 155, "tgt_vocab_size": 152}"#);
}
