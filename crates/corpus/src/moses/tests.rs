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

#[test]
fn lines_are_treated_as_by_sacremoses() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/moses/lines.json");
    let lines: Vec<Line> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(lines.len(), 1000);
    let languages = ["en", "fr", "de", "ru", "eo"].map(Moses::new);
    let tokens = |text: &str| words(text).map(str::to_owned).collect::<Vec<_>>();
    let mut differences = Vec::new();
    for line in &lines {
        let moses = languages.iter().find(|moses| moses.language == line.language).unwrap();
        for (found, expected) in [
            (moses.normalize(&line.text), &line.punctuation),
            (moses.clean(&line.text), &line.clean),
            (moses.tokenize(&line.text).join(" "), &line.tokens),
            (moses.detokenize(&tokens(&line.tokens)), &line.back),
            (moses.detokenize(&tokens(&line.text)), &line.words),
        ] {
            if found != *expected {
                differences.push(format!("{} {:?}\n   {expected:?}\n   {found:?}", line.language, line.text));
            }
        }
    }
    assert!(differences.is_empty(), "{} lines differ:\n{}", differences.len(), differences.join("\n"));
}
