use super::*;
use std::fs;

/// Results of sacremoses for a line, from the fixture's `make.py`.
#[derive(serde::Deserialize)]
struct Line {
    language: String,
    text: String,
    punctuation: String,
    clean: String,
    tokens: String,
    back: String,
    words: String,
}

/// Returns the lines for which `found` is not `expected`.
fn differences(found: impl Fn(&Moses, &Line) -> String, expected: impl Fn(&Line) -> &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/moses/lines.json");
    let lines: Vec<Line> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(lines.len(), 1000);
    let languages = ["en", "fr", "de", "ru", "eo"].map(Moses::new);
    let mut differences = Vec::new();
    for line in &lines {
        let moses = languages.iter().find(|moses| moses.language == line.language).unwrap();
        let (found, expected) = (found(moses, line), expected(line));
        if found != expected {
            differences.push(format!("{} {:?}\n   {expected:?}\n   {found:?}", line.language, line.text));
        }
    }
    differences
}

fn assert_none(differences: &[String]) {
    assert!(differences.is_empty(), "{} lines differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn punctuation_is_normalised_as_by_sacremoses() {
    assert_none(&differences(|moses, line| moses.normalize(&line.text), |line| &line.punctuation));
    assert_none(&differences(|moses, line| moses.clean(&line.text), |line| &line.clean));
}

#[test]
fn tokens_are_those_of_sacremoses() {
    assert_none(&differences(|moses, line| moses.tokenize(&line.text).join(" "), |line| &line.tokens));
}

#[test]
fn texts_of_tokens_are_those_of_sacremoses() {
    let tokens = |text: &str| words(text).map(str::to_owned).collect::<Vec<_>>();
    assert_none(&differences(|moses, line| moses.detokenize(&tokens(&line.tokens)), |line| &line.back));
    assert_none(&differences(|moses, line| moses.detokenize(&tokens(&line.text)), |line| &line.words));
}
