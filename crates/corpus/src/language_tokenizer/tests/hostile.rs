//! Folders that would make the library panic, drop text, or draw at random.
use serde_json::json;

use super::*;

/// Why a copy of a fixture is refused in which some files are others.
fn refusal_of(name: &str, changed: &[(&str, &str)]) -> String {
    let folder = copied(name, changed);
    let prefix = format!("{}/", folder.path().display());
    let error = LanguageTokenizer::load(folder.path()).unwrap_err();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
    let error = format!("{error}{source}").replace(&prefix, "");
    assert!(!error.contains('\n'), "{error}");
    error
}

/// Why a `tokenizer.json` is refused of which a part is another.
fn json_refusal(name: &str, place: &str, part: Value) -> String {
    let path = Path::new(FIXTURES).join(name).join("tokenizer.json");
    let mut json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    *json.pointer_mut(place).unwrap() = part;
    let error = refusal_of(name, &[("tokenizer.json", &json.to_string())]);
    let prefix = "`tokenizer.json` is not a language model's tokeniser: ";
    error.strip_prefix(prefix).unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn a_folder_without_pieces_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = LanguageTokenizer::load(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("it holds neither `tokenizer.json` nor `vocab.json`"), "{error}");
    let error = refusal_of("gpt2-lists", &[("merges.txt", "")]);
    assert!(error.starts_with("cannot read `merges.txt`"), "{error}");
    let error = refusal_of("gpt2-lists", &[("merges.txt", "#version: 0.2\na\n")]);
    assert!(error.ends_with("line 2: it must hold two pieces with a space between them"), "{error}");
}

#[test]
fn lists_of_other_families_are_not_taken_for_gpt2s() {
    for changed in [
        ("config.json", r#"{"model_type": "qwen2"}"#),
        ("tokenizer_config.json", r#"{"tokenizer_class": "qwen2"}"#),
    ] {
        let error = refusal_of("gpt2-lists", &[changed]);
        assert!(
            error.ends_with("without `tokenizer.json` only GPT-2's lists can be read, but it is of `qwen2`"),
            "{error}"
        );
    }
}

#[test]
fn a_torn_file_is_refused_in_one_line() {
    let whole = fs::read_to_string(Path::new(FIXTURES).join("llama3/tokenizer.json")).unwrap();
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        let folder = copied("llama3", &[]);
        fs::write(folder.path().join("tokenizer.json"), &whole[..length]).unwrap();
        let error = LanguageTokenizer::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is not a language model's tokeniser: ") && !error.contains('\n'), "{error}");
    }
    let error = refusal_of("llama3", &[("tokenizer_config.json", r#"{"bos_token": 3}"#)]);
    assert!(error.starts_with("`tokenizer_config.json` is not a language model's tokeniser: "), "{error}");
}

#[test]
fn parts_that_draw_at_random_or_can_fail_are_refused() {
    let refusal = json_refusal("gpt2", "/model/dropout", json!(0.1));
    assert_eq!(refusal, "its model leaves out merges at random: `dropout` is 0.1");
    let refusal = json_refusal("gpt2", "/model/continuing_subword_prefix", json!("##"));
    assert_eq!(refusal, "its merges have a `continuing_subword_prefix`, which is not supported");
    let refusal = json_refusal("gpt2", "/pre_tokenizer", json!({"type": "FixedLength", "length": 0}));
    assert!(
        refusal.starts_with("its pre-tokeniser `FixedLength` is not supported: allowed are "),
        "{refusal}"
    );
    let refusal = json_refusal("llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", json!(r"\w+"));
    assert_eq!(refusal, r"its pre-tokeniser `Split`: its pattern `\w+` is not supported from `\w+` on");
    let refusal = json_refusal("llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", json!("(a"));
    assert!(refusal.contains("Parsing error"), "{refusal}");
    let refusal = json_refusal("gpt2", "/model/type", json!("Unigram"));
    assert!(!refusal.is_empty());
}

/// More letters off than a token has would make the library count below zero.
#[test]
fn decoders_that_can_fail_are_refused() {
    let strip = json!({"type": "Strip", "content": " ", "start": 0, "stop": 9});
    let refusal = json_refusal("llama2", "/decoder/decoders/3", strip);
    assert_eq!(refusal, "its decoder `Strip`: it must not cut off the ends of tokens");
    let refusal = json_refusal("llama2", "/decoder", json!({"type": "CTC"}));
    assert!(refusal.starts_with("its decoder `CTC` is not supported"), "{refusal}");
    let long = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "b".repeat(10_001)});
    let refusal = json_refusal("llama2", "/decoder", long);
    assert_eq!(refusal, "its decoder could make a text 10001 times as long: 10000 times is the most");
}

/// 101 times 101 for one letter.
#[test]
fn normalisers_that_multiply_a_text_are_refused() {
    let prepend = json!({"type": "Prepend", "prepend": "a".repeat(100)});
    let twice = json!({"type": "Sequence", "normalizers": [prepend, prepend]});
    let refusal = json_refusal("llama2", "/normalizer", twice);
    assert!(
        refusal.starts_with("its normaliser and pre-tokeniser could make a text 10201 times"),
        "{refusal}"
    );
}

#[test]
fn pieces_without_all_bytes_or_with_one_id_for_two_are_refused() {
    let shared = json_refusal("gpt2", "/model/vocab/!", json!(2));
    assert_eq!(shared, "`!` and `\"` both have the id 2");
    let path = Path::new(FIXTURES).join("llama2/tokenizer.json");
    let text = fs::read_to_string(path).unwrap();
    let lacking = text.replacen("\"<0x0A>\":", "\"<0x0a>\":", 1);
    let without = lacking.replacen("\"unk_token\":\"<unk>\"", "\"unk_token\":null", 1);
    assert!(LanguageTokenizer::load(copied("llama2", &[("tokenizer.json", &lacking)]).path()).is_ok());
    let refusal = refusal_of("llama2", &[("tokenizer.json", &without)]);
    assert!(refusal.ends_with("its vocabulary lacks 1 of the 256 bytes, such as `<0x0A>`"), "{refusal}");
    let refusal = json_refusal("mistral", "/model/unk_token", json!("<other>"));
    assert_eq!(refusal, "its vocabulary lacks `<other>`");
}

#[test]
fn special_tokens_that_are_not_there_are_refused() {
    let error = refusal_of("llama2", &[("tokenizer_config.json", r#"{"eos_token": "<end>"}"#)]);
    assert!(error.ends_with("it lacks `<end>`"), "{error}");
    let template = "/post_processor/processors/1/special_tokens";
    let refusal = "its template names `<|begin_of_text|>`, but does not number it rightly";
    for tokens in [json!({}), json!({"<|begin_of_text|>": {"ids": [4_000_000_000_u32]}}), json!(3)] {
        assert_eq!(json_refusal("llama3", template, tokens), refusal);
    }
    let other = json_refusal("llama3", "/post_processor", json!({"type": "BertProcessing"}));
    assert_eq!(other, "its post-processor `BertProcessing` is not supported");
}

#[test]
fn whole_words_are_refused() {
    let mut json = LanguageTokenizer::characters(["ab"].iter()).to_json();
    json["model"]["vocab"]["ab"] = json!(3);
    let refusal = refusal_of("gpt2", &[("tokenizer.json", &json.to_string())]);
    assert!(refusal.ends_with("its token `ab` is no single character"), "{refusal}");
    json["pre_tokenizer"] = Value::Null;
    let refusal = refusal_of("gpt2", &[("tokenizer.json", &json.to_string())]);
    assert!(refusal.ends_with("but does not cut texts into single characters"), "{refusal}");
}

#[test]
fn settings_that_cut_or_fill_up_texts_do_nothing() {
    let path = Path::new(FIXTURES).join("gpt2/tokenizer.json");
    let mut json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    json["truncation"] =
        json!({"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 7});
    json["padding"] = json!({"strategy": {"Fixed": 50}, "direction": "Left", "pad_to_multiple_of": 0, "pad_id": 3,
        "pad_type_id": 0, "pad_token": "!"});
    let loaded =
        LanguageTokenizer::load(copied("gpt2", &[("tokenizer.json", &json.to_string())]).path()).unwrap();
    assert_eq!(loaded.encode("the river").unwrap(), fixture("gpt2").encode("the river").unwrap());
}
