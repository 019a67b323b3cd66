use super::*;
use std::fs;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/fsmt");

#[derive(serde::Deserialize)]
struct Example {
    text: String,
    ids: Vec<u32>,
}

/// Ids of some texts by transformers 4.57: `make.py` beside the fixture.
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

/// Loads a copy of the fixture in which `name` holds other text.
fn with_file(name: &str, text: &str) -> Result<FsmtTokenizer, String> {
    let folder = tempfile::tempdir().unwrap();
    for file in ["tokenizer_config.json", "vocab-src.json", "vocab-tgt.json", "merges.txt"] {
        fs::copy(Path::new(FIXTURE).join(file), folder.path().join(file)).unwrap();
    }
    fs::write(folder.path().join(name), text).unwrap();
    FsmtTokenizer::load(folder.path()).map_err(|error| error.to_string())
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
    assert!(!tokenizer.decode(&[4, 5, 6, u32::MAX, 152]).is_empty(), "ids of no piece are left out");
}

#[test]
fn letters_become_small_and_punctuation_is_joined_where_the_folder_says_so() {
    let settings = r#"{"langs": ["en", "fr"], "do_lower_case": true, "clean_up_tokenization_spaces": true}"#;
    let tokenizer = with_file("tokenizer_config.json", settings).unwrap();
    for Example { text, ids } in expected("lower_case", 71) {
        assert_eq!(tokenizer.encode(&text).unwrap(), ids, "{text:?}");
    }
    let examples = expected("cleaned", 100);
    assert!(examples.iter().any(|example| fixture().decode(&example.ids) != example.text));
    for Example { text, ids } in examples {
        assert_eq!(tokenizer.decode(&ids), text, "{ids:?}");
    }
}

/// As in transformers 4.57; `tokenizers` makes "abca", "bc", "x</w>" of the first word.
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
fn files_at_fault_are_refused_in_one_line() {
    let vocabulary = fs::read_to_string(Path::new(FIXTURE).join("vocab-tgt.json")).unwrap();
    let other = "`vocab-src.json` and `vocab-tgt.json` must give `</s>` the same id";
    let exchanged = vocabulary.replace("\"</s>\": 2", "\"</s>\": 3").replace("\"<unk>\": 3", "\"<unk>\": 2");
    let shared = vocabulary.replacen("\"<s>\": 0", "\"<s>\": 0,\n\"no piece\": 0", 1);
    for (name, text, reason) in [
        (
            "merges.txt",
            "#version: 0.2\na b\na\u{1b}\n",
            r"line 3: `a\u{1b}` is not two pieces with a space between them",
        ),
        ("vocab-tgt.json", "{\"<s>\": 0, ", "EOF while parsing"),
        ("vocab-tgt.json", &vocabulary.replace("</s>", "<end>"), other),
        ("vocab-tgt.json", &exchanged, other),
        ("vocab-tgt.json", &shared, "each piece must have an id of its own"),
        ("tokenizer_config.json", "{}", "missing field `langs`"),
    ] {
        let error = with_file(name, text).unwrap_err();
        assert!(error.contains(reason) && !error.contains('\n'), "{name}: {error}");
    }
}
