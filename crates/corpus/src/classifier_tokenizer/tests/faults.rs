//! Files that are at fault: each is refused in one line, and none makes a program panic.
use serde_json::{Value, json};

use super::families::{copied, with_charsmap};
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
fn the_file_that_a_family_lacks_is_named() {
    for (name, file) in
        [("roberta-lists", "vocab.json"), ("roberta-lists", "merges.txt"), ("distilbert-list", "vocab.txt")]
    {
        let folder = copied(name, &[]);
        fs::remove_file(folder.path().join(file)).unwrap();
        let error = ClassifierTokenizer::load(folder.path(), 16).unwrap_err().to_string();
        assert!(error.contains(&format!("it holds neither `tokenizer.json` nor `{file}`: copy")), "{error}");
    }
    let error = refusal_of("roberta-lists", "config.json", r#"{"model_type": "xlm-roberta"}"#);
    assert!(error.contains("it holds no `tokenizer.json`"), "{error}");
}

#[test]
fn a_missing_special_token_is_named() {
    let vocabulary = fixture("roberta-lists/vocab.json");
    for token in ["<s>", "</s>", "<pad>", "<unk>", "<mask>"] {
        let other = vocabulary.replacen(&format!("\"{token}\""), "\"<other>\"", 1);
        let error = refusal_of("roberta-lists", "vocab.json", &other);
        assert!(error.ends_with(&format!("vocab.json`: it lacks `{token}`")), "{error}");
    }
    let error = refusal_of("distilbert-silent", "config.json", r#"{"model_type": "rob"#);
    assert!(error.contains("config.json`: EOF"), "{error}");
}

#[test]
fn torn_lists_and_merges_of_unknown_pieces_are_refused() {
    let merges = fixture("roberta-lists/merges.txt");
    let (first, _) = merges.split_once('\n').unwrap();
    for (text, reason) in [
        (merges.trim_end(), "its last line has no end"),
        (&format!("{first}\ne r\nh\n"), "Merges text file invalid at line 2"),
        (&format!("{first}\nqqq r\n"), "Token `qqq` out of vocabulary"),
    ] {
        let error = refusal_of("roberta-lists", "merges.txt", text);
        assert!(error.contains(&format!("merges.txt`: {reason}")), "{error}");
    }
    let whole = fixture("roberta-lists/vocab.json");
    let error = refusal_of("roberta-lists", "vocab.json", &whole[..whole.floor_char_boundary(99)]);
    assert!(error.contains("vocab.json`: EOF"), "{error}");
}

#[test]
fn merges_at_random_are_refused() {
    let mut json: Value = serde_json::from_str(&fixture("roberta-json/tokenizer.json")).unwrap();
    json["model"]["dropout"] = json!(0.1);
    let error = refusal_of("roberta-json", "tokenizer.json", &json.to_string());
    assert!(error.ends_with("its model leaves out merges at random: `dropout` is 0.1"), "{error}");
}

#[test]
fn added_tokens_with_other_ids_are_refused() {
    let settings =
        |id: &str, content: &str| json!({"added_tokens_decoder": {id: {"content": content}}}).to_string();
    let refused = |settings: &str| refusal_of("roberta-lists", "tokenizer_config.json", settings);
    let error = refused(&settings("777", "new"));
    assert!(error.ends_with("`added_tokens_decoder` gives `new` the id 777, but its id is 400"), "{error}");
    let error = refused(&settings("400", "<mask>"));
    assert!(error.ends_with("`added_tokens_decoder` gives `<mask>` the id 400, but its id is 4"), "{error}");
    assert!(refused(&settings("x\n", "new")).contains("tokenizer_config.json`: "));
    let error = refused(r#"{"truncation_side": "up"}"#);
    assert!(error.contains("unknown variant `up`, expected `left` or `right`"), "{error}");
}

#[test]
fn tokens_that_only_an_older_list_adds_are_refused() {
    let refused = |name: &str, list: &str, id: u32| {
        let error = refusal_of(name, "added_tokens.json", list);
        let reason = format!(
            "added_tokens.json`: it adds `new` with the id {id}, which no other file does: write the folder anew, with \
             `save_pretrained` of transformers"
        );
        assert!(error.ends_with(&reason), "{error}");
    };
    refused("bert-list", r#"{"new": 197}"#, 197);
    refused("distilbert-silent", r#"{"[MASK]": 4, "new": 194}"#, 194);
    let error = refusal_of("bert-list", "added_tokens.json", r#"{"[MASK]": 5}"#);
    assert!(error.contains("it adds `[MASK]` with the id 5, which no other"), "{error}");
}

/// transformers wrote an empty list once, and does not look at one where `tokenizer_config.json` has its own.
#[test]
fn older_lists_that_change_nothing_are_accepted() {
    let load = |name: &str, list| {
        ClassifierTokenizer::load(copied(name, &[("added_tokens.json", list)]).path(), 16).unwrap();
    };
    for list in ["{}", r#"{"[MASK]": 4, "<url>": 195}"#] {
        load("bert-list", list);
    }
    load("roberta-added", r#"{"new": 777}"#);
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

/// The places of all parts of a JSON value, as pointers, but for the long lists of pieces.
fn places(json: &Value, place: String, places: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match json {
        Value::Object(members) => members.iter().map(|(key, member)| (key.clone(), member)).collect(),
        Value::Array(members) => (0..).map(|number: usize| number.to_string()).zip(members).collect(),
        _ => Vec::new(),
    };
    for (key, member) in members.into_iter().take(6) {
        self::places(member, format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), places);
    }
    places.push(place);
}

#[test]
fn no_altered_part_of_a_json_makes_a_program_panic() {
    let others = json!([null, true, -1, 7, 1e300, "", "犬 ", [], {}]);
    let texts = ["", " a  b ", "犬 e\u{301}\u{1}", "the <mask>x</s><s>", "▁▁ \u{200b} door"];
    let no_replacements = [&1024_u32.to_le_bytes()[..], &[0; 1024]].concat();
    let (mut read, mut refused) = (0, 0);
    for name in ["roberta-json", "xlm-roberta-json", "xlm-roberta-hub"] {
        let whole = with_charsmap(&fixture(&format!("{name}/tokenizer.json")), &no_replacements);
        let whole: Value = serde_json::from_str(&whole).unwrap();
        let mut all = Vec::new();
        places(&whole, String::new(), &mut all);
        let folder = tempfile::tempdir().unwrap();
        let others = others.as_array().unwrap();
        for (place, other) in all.iter().flat_map(|place| others.iter().map(move |other| (place, other))) {
            let mut json = whole.clone();
            *json.pointer_mut(place).unwrap() = other.clone();
            fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
            let loaded = ClassifierTokenizer::load(folder.path(), 8);
            read += usize::from(loaded.is_ok());
            let encoded = |tokenizer: &ClassifierTokenizer| {
                texts.iter().filter_map(|text| tokenizer.encode(text, Some("a b 犬")).err()).collect()
            };
            let faults: Vec<Error> = loaded.as_ref().map_or_else(|_| Vec::new(), encoded);
            for error in faults.into_iter().chain(loaded.err()) {
                refused += 1;
                assert!(!error.to_string().contains('\n'), "{name}: {place} is {other}: {error}");
            }
        }
    }
    assert!(read > 99 && refused > 99, "{read} {refused}");
}
