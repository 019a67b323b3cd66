//! Faulty folders, each refused in one line.
use serde_json::json;

use super::*;

fn json_of(name: &str) -> Value {
    let path = Path::new(FIXTURES).join(name).join("tokenizer.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Stripping more characters than a token has makes the library's counter underflow.
#[test]
fn a_decoder_that_fails_is_an_error() {
    let mut json = json_of("llama2");
    json["decoder"]["decoders"][3] = json!({"type": "Strip", "content": " ", "start": 0, "stop": 9});
    let folder = copied("llama2", &[("tokenizer.json", &json.to_string())]);
    let tokenizer = LanguageTokenizer::load(folder.path()).unwrap();
    let error = tokenizer.decode(&tokenizer.encode(" ").unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("a text cannot be tokenized: its parser fails: "), "{error}");
}

/// `\h` has its own meaning in Oniguruma's syntax.
#[test]
fn patterns_have_onigurumas_syntax() {
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
        format!("has the id {most}, but the model has only {most} embeddings: the text does not fit it");
    assert!(error.ends_with(&reason), "{error}");
    assert!(tokenizer.encode_placed(text).is_err() && tokenizer.encode("").is_ok());
    let characters = LanguageTokenizer::characters(["ab"].iter()).for_rows(2);
    assert!(characters.encode("a").is_ok() && characters.encode("b").is_err());
}
