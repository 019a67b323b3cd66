//! Files that are at fault: each is refused in one line, and none makes a program panic.
use serde_json::{Value, json};

use super::families::copied;
use super::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/classifiers");

fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(FIXTURES).join(name)).unwrap()
}

/// Why a copy of a fixture is refused in which one file is another.
fn refusal_of(name: &str, file: &str, content: &str) -> String {
    let folder = copied(name, &[(file, content)]);
    let error = ClassifierTokenizer::load(folder.path(), 16).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn the_file_that_a_folder_lacks_is_named() {
    for (name, file, files) in [
        ("roberta-lists", "vocab.json", "`vocab.json` and `merges.txt`"),
        ("roberta-lists", "merges.txt", "`vocab.json` and `merges.txt`"),
        ("distilbert-list", "vocab.txt", "`vocab.txt`"),
    ] {
        let folder = copied(name, &[]);
        fs::remove_file(folder.path().join(file)).unwrap();
        let error = ClassifierTokenizer::load(folder.path(), 16).unwrap_err().to_string();
        assert!(error.contains(&format!("`tokenizer.json`, or else {files}: copy")), "{error}");
    }
    let error = refusal_of("roberta-lists", "config.json", r#"{"model_type": "xlm-roberta"}"#);
    assert!(error.contains("it holds `vocab.json`, but no `tokenizer.json`: make one"), "{error}");
}

#[test]
fn files_at_fault_are_refused_in_one_line() {
    let vocabulary = fixture("roberta-lists/vocab.json");
    let mut random: Value = serde_json::from_str(&fixture("roberta-json/tokenizer.json")).unwrap();
    random["model"]["dropout"] = json!(0.1);
    let far = vocabulary.replacen(":77,", ":4000000000,", 1);
    let renamed = vocabulary.replacen("\"<mask>\"", "\"<other>\"", 1);
    let (random, torn) = (random.to_string(), r#"{"<s>": 0"#);
    let added =
        |id: &str, content: &str| json!({"added_tokens_decoder": {id: {"content": content}}}).to_string();
    let [other_id, other_mask, no_number] =
        [added("777", "new"), added("400", "<mask>"), added("x\n", "new")];
    for (name, file, text, reason) in [
        ("roberta-lists", "vocab.json", &*renamed, "it lacks `<mask>`"),
        ("roberta-lists", "vocab.json", torn, "EOF"),
        (
            "roberta-lists",
            "merges.txt",
            "#version: 0.2\ne r\nh\n",
            "merges.txt`: Merges text file invalid at line 2",
        ),
        (
            "roberta-lists",
            "merges.txt",
            "#version: 0.2\nqqq r\n",
            "merges.txt`: Token `qqq` out of vocabulary",
        ),
        ("bert-list", "vocab.txt", "[UNK]\n[CLS]\n", "it lacks `[PAD]`"),
        ("bert-list", "tokenizer_config.json", "{\"do_lower", "tokenizer_config.json`: EOF"),
        ("distilbert-silent", "config.json", r#"{"model_type": "rob"#, "config.json`: EOF"),
        ("distilbert-silent", "tokenizer.json", r#"{"version": "#, "tokenizer.json`: EOF"),
        ("roberta-lists", "vocab.json", &far, "it has 400 tokens, but its highest id is 4000000000"),
        ("roberta-json", "tokenizer.json", &random, "leaves out merges at random: `dropout` is 0.1"),
        (
            "roberta-lists",
            "tokenizer_config.json",
            &other_id,
            "the added token `new` should have the id 777, but its id is 400",
        ),
        (
            "roberta-lists",
            "tokenizer_config.json",
            &other_mask,
            "the added token `<mask>` should have the id 400, but its id is 4",
        ),
        ("roberta-lists", "tokenizer_config.json", &no_number, "tokenizer_config.json`: "),
        ("bert-list", "added_tokens.json", r#"{"[MASK]": 5}"#, "should have the id 5, but its id is 4"),
    ] {
        let error = refusal_of(name, file, text);
        assert!(error.contains(reason), "{name}/{file}: {error}");
    }
}

/// transformers wrote such a list once, and does not look at one where `tokenizer_config.json` has its own.
#[test]
fn tokens_of_an_older_list_are_added() {
    let size = |name: &str, list: &str| {
        let folder = copied(name, &[("added_tokens.json", list)]);
        let tokenizer = ClassifierTokenizer::load(folder.path(), 16).unwrap();
        (tokenizer.vocabulary_size(), tokenizer.encode("newish", None).unwrap().ids[1])
    };
    let (before, _) = size("bert-list", "{}");
    let list = json!({"[MASK]": 4, "new": before}).to_string();
    assert_eq!(size("bert-list", &list), (before + 1, before as u32));
    let (added, _) = size("roberta-added", "{}");
    assert_eq!(size("roberta-added", r#"{"new": 777}"#).0, added);
}

/// `!` has id 17.
#[test]
fn a_token_without_a_row_is_refused_where_it_occurs() {
    let tokenizer = from_list("{}", 16).for_rows(17);
    assert_eq!(tokenizer.encode("the cat", None).unwrap().ids, [2, 5, 6, 3]);
    let error = tokenizer.encode("the cat", Some("cat!")).unwrap_err().to_string();
    assert!(
        error.starts_with("the token `!` has the id 17, but the model has only 17 embeddings"),
        "{error}"
    );
    assert!(tokenizer.encode_placed("!").is_err());
}
