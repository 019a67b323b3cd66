//! Import of a GGUF file's tokenizer as `tokenizer.json`.
//!
//! GGUF's `gpt2` is byte-level BPE, with the name of a pre-tokenisation rule. Its `llama` is SentencePiece BPE with byte fallback, with a
//! score for each piece instead of a list of merges.
use std::collections::HashMap;

use serde_json::{Value, json};
use words::excerpt;

use crate::Error;
use crate::file::{GgufFile, whole};
use crate::names::Architecture;
use crate::pretokenizers::{self, RULES, Rule, byte_level, kind};

/// A tokenizer in the form of a Hugging Face folder.
pub(crate) struct Tokens {
    pub(crate) count: usize,
    pub(crate) begin: Option<u32>,
    pub(crate) end: Option<u32>,
    /// `tokenizer.json`.
    pub(crate) json: Value,
    /// `tokenizer_config.json`.
    pub(crate) settings: Value,
}

pub(crate) fn read(file: &GgufFile, kind: &Architecture) -> Result<Tokens, Error> {
    let model = file.require("tokenizer.ggml.model", file.text("tokenizer.ggml.model")?)?;
    let tokens = file.list("tokenizer.ggml.tokens", "a list of texts", |token| token.to_string().ok())?;
    let tokens: Vec<&str> = tokens.into_iter().map(String::as_str).collect();
    let kinds = file.list("tokenizer.ggml.token_type", "a list of whole numbers", whole)?;
    let ids: HashMap<&str, usize> = tokens.iter().enumerate().map(|(id, &token)| (token, id)).collect();
    let (mut json, adds_begin) = match model {
        "gpt2" => (of_bytes(file, &ids)?, None),
        "llama" => (of_pieces(file, &tokens, &kinds, &ids)?, Some(true)),
        other => {
            let reason = format!("tokenizer `{}` is not supported; expected gpt2 or llama", excerpt(other));
            return Err(Error::of(&file.path, reason));
        }
    };
    let named = |name: &str| -> Result<Option<usize>, Error> {
        Ok(file.number(&format!("tokenizer.ggml.{name}_token_id"))?.filter(|&id| id < tokens.len()))
    };
    let of_llama3 =
        file.text("tokenizer.ggml.pre")?.and_then(Rule::named).is_some_and(|rule| rule.name == "llama-bpe");
    let adds_begin = file.flag("tokenizer.ggml.add_bos_token")?.or(adds_begin).unwrap_or(of_llama3);
    // If nothing is prepended to texts, the BOS token may start a chat turn, as in SmolLM2. In training, texts then followed the
    // end-of-text token, if the vocabulary contains it.
    let between = ids.get(corpus::language_tokenizer::END_OF_TEXT).copied().filter(|_| !adds_begin);
    let begin = between.or(named("bos")?);
    let end = named("eos")?;
    json["added_tokens"] = tokens.iter().zip(&kinds).enumerate().filter_map(added).collect();
    if let (true, Some(id)) = (adds_begin, begin) {
        json["post_processor"] = begins_with(tokens[id], id);
    }
    let token = |id: Option<usize>| id.map(|id| tokens[id]);
    let settings = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": adds_begin, "add_prefix_space": false, "clean_up_tokenization_spaces": false,
        "bos_token": token(begin), "eos_token": token(end), "pad_token": token(named("padding")?), "unk_token": token(named("unknown")?),
        "model_max_length": file.number(&format!("{}.context_length", kind.name))?, "chat_template": file.text("tokenizer.chat_template")?,
    });
    let id = |id: Option<usize>| id.map(|id| id as u32);
    Ok(Tokens { count: tokens.len(), begin: id(begin), end: id(end), json, settings })
}

/// Returns the entry of an added token, which is recognised as a whole; `None` for other tokens.
fn added((id, (token, &found)): (usize, (&&str, &i64))) -> Option<Value> {
    let entry = json!({
        "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": found != kind::OF_USER,
    });
    [kind::UNKNOWN, kind::CONTROL, kind::OF_USER].contains(&found).then_some(entry)
}

fn of_bytes(file: &GgufFile, ids: &HashMap<&str, usize>) -> Result<Value, Error> {
    let name = file.text("tokenizer.ggml.pre")?.unwrap_or("default");
    let rule = Rule::named(name).ok_or_else(|| {
        let known = RULES.map(|rule| rule.name).join(", ");
        Error::of(
            &file.path,
            format!("its pre-tokenizer `{}` is not supported; expected one of {known}", excerpt(name)),
        )
    })?;
    let merges = file.list("tokenizer.ggml.merges", "a list of pairs separated by a space", |merge| {
        merge.to_string().ok()?.split_once(' ')
    })?;
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": rule.normalised.then(|| json!({"type": "NFC"})),
        "pre_tokenizer": rule.pre_tokenizer(), "post_processor": null, "decoder": byte_level(true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": rule.whole_words, "vocab": ids, "merges": merges,
        },
    }))
}

/// Returns a `tokenizer.json` of SentencePiece BPE: pieces merge in the order of their scores, as in transformers' conversion.
fn of_pieces(
    file: &GgufFile,
    tokens: &[&str],
    kinds: &[i64],
    ids: &HashMap<&str, usize>,
) -> Result<Value, Error> {
    let scores = file.list("tokenizer.ggml.scores", "a list of numbers", |score| score.to_f32().ok())?;
    if scores.len() != tokens.len() || kinds.len() != tokens.len() {
        return Err(Error::of(&file.path, "its numbers of tokens, scores and token types differ"));
    }
    let merges = merges_by_score(tokens, kinds, &scores, ids);
    let unknown = kinds.iter().position(|&found| found == kind::UNKNOWN).map(|id| tokens[id]);
    let prefix = file.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let mut normalizers = vec![pretokenizers::blanks()];
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        normalizers.insert(0, pretokenizers::prefix());
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": normalizers}, "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": true, "byte_fallback": true, "ignore_merges": false, "vocab": ids, "merges": merges,
        },
    }))
}

/// Returns the merges: both halves of each split of a piece into two pieces, highest scores first.
fn merges_by_score<'a>(
    tokens: &[&'a str],
    kinds: &[i64],
    scores: &[f32],
    ids: &HashMap<&str, usize>,
) -> Vec<(&'a str, &'a str)> {
    let mut merges = Vec::new();
    for (id, token) in tokens.iter().enumerate().filter(|&(id, _)| kinds[id] == kind::NORMAL) {
        let splits = token.char_indices().skip(1).map(|(place, _)| token.split_at(place));
        let mut parts: Vec<_> =
            splits.filter_map(|(left, right)| Some((ids.get(left)?, ids.get(right)?, left, right))).collect();
        parts.sort_unstable();
        merges.extend(parts.into_iter().map(|(_, _, left, right)| (scores[id], left, right)));
    }
    merges.sort_by(|left, right| right.0.total_cmp(&left.0));
    merges.into_iter().map(|(_, left, right)| (left, right)).collect()
}

/// Returns a post-processor that prepends a token to texts.
fn begins_with(token: &str, id: usize) -> Value {
    let symbol = |sequence: u8| json!({"SpecialToken": {"id": token, "type_id": sequence}});
    let text = |name: &str, sequence: u8| json!({"Sequence": {"id": name, "type_id": sequence}});
    json!({
        "type": "TemplateProcessing",
        "single": [symbol(0), text("A", 0)],
        "pair": [symbol(0), text("A", 0), symbol(1), text("B", 1)],
        "special_tokens": {token: {"id": token, "ids": [id], "tokens": [token]}},
    })
}
