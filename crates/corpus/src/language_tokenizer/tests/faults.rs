//! Folders that are at fault: each is refused in one line.
use serde_json::json;

use super::*;

/// Why a copy of a fixture is refused in which some files are others.
fn refusal_of(name: &str, changed: &[(&str, &str)]) -> String {
    let folder = copied(name, changed);
    let prefix = format!("{}/", folder.path().display());
    let error = LanguageTokenizer::load(folder.path()).unwrap_err().to_string().replace(&prefix, "");
    assert!(!error.contains('\n'), "{error}");
    error
}

fn json_of(name: &str) -> Value {
    let path = Path::new(FIXTURES).join(name).join("tokenizer.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Why a `tokenizer.json` is refused of which a part is another.
fn json_refusal(name: &str, place: &str, part: Value) -> String {
    let mut json = json_of(name);
    *json.pointer_mut(place).unwrap() = part;
    refusal_of(name, &[("tokenizer.json", &json.to_string())])
}

#[test]
fn folders_at_fault_are_refused_in_one_line() {
    let qwen = "it holds `vocab.json`, but no `tokenizer.json`: make one with python";
    let torn = fs::read_to_string(Path::new(FIXTURES).join("llama3/tokenizer.json")).unwrap();
    let torn = &torn[..torn.len() / 2];
    for (name, file, text, reason) in [
        ("gpt2-lists", "merges.txt", "", "`tokenizer.json`, or else `vocab.json` and `merges.txt`: copy"),
        ("gpt2-lists", "config.json", r#"{"model_type": "qwen2"}"#, qwen),
        ("gpt2-lists", "tokenizer_config.json", r#"{"tokenizer_class": "qwen2"}"#, qwen),
        ("llama3", "tokenizer.json", torn, "`tokenizer.json`: "),
        ("llama3", "tokenizer_config.json", r#"{"bos_token": 3}"#, "`tokenizer_config.json`: "),
        ("llama2", "tokenizer_config.json", r#"{"eos_token": "<end>"}"#, "it lacks `<end>`"),
    ] {
        let error = refusal_of(name, &[(file, text)]);
        assert!(error.contains(reason), "{name}/{file}: {error}");
    }
    let regex = "/pre_tokenizer/pretokenizers/0/pattern/Regex";
    assert!(json_refusal("llama3", regex, json!("(a")).contains("`tokenizer.json`: "));
    let refusal = json_refusal("gpt2", "/model/continuing_subword_prefix", json!("#".repeat(30)));
    assert!(refusal.contains("its parser fails: "), "{refusal}");
}

/// One that cuts off more letters than a token has makes the library count below zero.
#[test]
fn a_decoder_that_fails_is_an_error() {
    let mut json = json_of("llama2");
    json["decoder"]["decoders"][3] = json!({"type": "Strip", "content": " ", "start": 0, "stop": 9});
    let folder = copied("llama2", &[("tokenizer.json", &json.to_string())]);
    let tokenizer = LanguageTokenizer::load(folder.path()).unwrap();
    let error = tokenizer.decode(&tokenizer.encode(" ").unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("a text cannot be cut into tokens: its parser fails: "), "{error}");
}

/// Oniguruma's syntax, which other engines read in another way.
#[test]
fn patterns_are_those_of_the_reference() {
    let mut json = json_of("llama3");
    json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = json!(r"\h+|\w");
    let folder = copied("llama3", &[("tokenizer.json", &json.to_string())]);
    LanguageTokenizer::load(folder.path()).unwrap();
}

#[test]
fn a_token_without_a_row_is_refused_where_it_occurs() {
    let text = "the river";
    let most = *fixture("gpt2").encode(text).unwrap().iter().max().unwrap();
    assert!(fixture("gpt2").for_rows(i64::from(most) + 1).encode(text).is_ok());
    let tokenizer = fixture("gpt2").for_rows(most.into());
    let error = tokenizer.encode(text).unwrap_err().to_string();
    let reason =
        format!("has the id {most}, but the model has only {most} embeddings: this text is not for it");
    assert!(error.ends_with(&reason), "{error}");
    assert!(tokenizer.encode_placed(text).is_err() && tokenizer.encode("").is_ok());
    let characters = LanguageTokenizer::characters(["ab"].iter()).for_rows(2);
    assert!(characters.encode("a").is_ok() && characters.encode("b").is_err());
}
