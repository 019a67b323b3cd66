//! Pre-tokenisation rules of byte-level BPE, and token types, by their names in GGUF files.
use serde_json::{Value, json};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Pre-tokenisation rules by the name in `tokenizer.ggml.pre`, as in the models' own files on the hub; llama.cpp's are in
/// <https://github.com/ggml-org/llama.cpp/blob/b6000/src/llama-vocab.cpp>.
pub(crate) const RULES: [Rule; 5] = [
    Rule { name: "smollm", digits: true, splits: &[], whole_words: false, normalised: false },
    Rule { name: "llama-bpe", digits: false, splits: &[LLAMA3], whole_words: true, normalised: false },
    Rule { name: "qwen2", digits: false, splits: &[QWEN2], whole_words: false, normalised: true },
    Rule { name: "gpt-2", digits: false, splits: &[], whole_words: false, normalised: false },
    Rule {
        name: "default",
        digits: false,
        splits: &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
        whole_words: false,
        normalised: false,
    },
];

/// A rule that splits texts into words before BPE.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// True if each digit is a word.
    digits: bool,
    /// Patterns, applied one after another; GPT-2's if empty.
    splits: &'static [&'static str],
    /// True if a word that is a token is not merged from parts.
    pub(crate) whole_words: bool,
    /// True if characters are composed (NFC).
    pub(crate) normalised: bool,
}

impl Rule {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        let name = match name {
            "llama3" | "llama-v3" => "llama-bpe",
            name => name,
        };
        RULES.iter().find(|rule| rule.name == name)
    }

    pub(crate) fn pre_tokenizer(&self) -> Value {
        let digits = json!({"type": "Digits", "individual_digits": true});
        let split = |pattern: &&str| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
        let mut steps: Vec<Value> = self.digits.then_some(digits).into_iter().collect();
        steps.extend(self.splits.iter().map(split));
        steps.push(byte_level(self.splits.is_empty()));
        json!({"type": "Sequence", "pretokenizers": steps})
    }

    /// Returns the rule that a `tokenizer.json` uses.
    pub(crate) fn of(pre_tokenizer: &Value) -> Option<&'static Self> {
        let found = steps(pre_tokenizer)?;
        RULES.iter().find(|rule| steps(&rule.pre_tokenizer()).as_ref() == Some(&found))
    }
}

pub(crate) fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex})
}

/// Returns the normaliser that replaces spaces with `▁`, as SentencePiece does.
pub(crate) fn blanks() -> Value {
    json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
}

/// Returns the normaliser that prepends `▁` to texts.
pub(crate) fn prefix() -> Value {
    json!({"type": "Prepend", "prepend": "▁"})
}

/// Summarises a pre-tokenizer's steps; `None` if a step occurs in no rule.
fn steps(pre_tokenizer: &Value) -> Option<Vec<String>> {
    match pre_tokenizer["type"].as_str()? {
        "Sequence" => {
            let all: Option<Vec<_>> = pre_tokenizer["pretokenizers"].as_array()?.iter().map(steps).collect();
            Some(all?.concat())
        }
        "Digits" if pre_tokenizer["individual_digits"] == true => Some(vec!["digits".to_owned()]),
        "Split" if pre_tokenizer["behavior"] == "Isolated" && pre_tokenizer["invert"] != true => {
            Some(vec![pre_tokenizer["pattern"]["Regex"].as_str()?.to_owned()])
        }
        "ByteLevel" if pre_tokenizer["add_prefix_space"] != true => {
            let by_words = pre_tokenizer["use_regex"] != false;
            Some(vec![if by_words { "words" } else { "bytes" }.to_owned()])
        }
        _ => None,
    }
}

/// Token types, `tokenizer.ggml.token_type`.
pub(crate) mod kind {
    pub(crate) const NORMAL: i64 = 1;
    pub(crate) const UNKNOWN: i64 = 2;
    pub(crate) const CONTROL: i64 = 3;
    pub(crate) const OF_USER: i64 = 4;
    pub(crate) const UNUSED: i64 = 5;
    pub(crate) const BYTE: i64 = 6;
}
