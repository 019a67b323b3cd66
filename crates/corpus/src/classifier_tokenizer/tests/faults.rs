//! Lists of added tokens, and models with fewer embedding rows than tokens.
use serde_json::json;

use super::families::copied;
use super::*;

/// Older versions of transformers wrote `added_tokens.json`; it is ignored if `tokenizer_config.json` has its own list.
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
