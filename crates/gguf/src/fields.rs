//! Export of a folder's tokenizer as fields of a GGUF file, the inverse of `tokenizer`.
use std::collections::HashMap;
use std::path::Path;

use candle_core::quantized::gguf_file::Value as Field;
use families::language_model::LanguageConfig;
use serde_json::{Map, Value, json};
use words::excerpt;

use crate::Error;
use crate::config::read_json;
use crate::pretokenizers::{Rule, blanks, kind, prefix};

/// Returns the GGUF fields for a folder's tokenizer; `None` if llama.cpp has no tokenizer of its kind. Fails if the tokenizer has more
/// tokens than the model has rows, `config.vocab_size`.
pub(crate) fn of_tokenizer(
    folder: &Path,
    config: &LanguageConfig,
) -> Result<Option<Vec<(String, Field)>>, Error> {
    let path = folder.join("tokenizer.json");
    if !path.exists() {
        return Ok(None);
    }
    let json = read_json(&path)?;
    let settings = folder.join("tokenizer_config.json");
    let settings = if settings.exists() { read_json(&settings)? } else { json!({}) };
    let Some(inner) = Inner::of(&json) else { return Ok(None) };
    let vocabulary =
        Vocabulary::of(&json, config.vocab_size as usize).map_err(|reason| Error::of(&path, reason))?;
    let mut fields = inner.fields(&vocabulary);
    fields.push(("add_bos_token".to_owned(), Field::Bool(adds_begin(&json, &settings))));
    fields.extend(symbols(&vocabulary, &settings, config));
    let named = |(name, field)| (format!("tokenizer.ggml.{name}"), field);
    let mut fields: Vec<_> = fields.into_iter().chain(vocabulary.fields()).map(named).collect();
    if let Some(template) = chat_template(folder, &settings)? {
        fields.push(("tokenizer.chat_template".to_owned(), Field::String(template)));
    }
    Ok(Some(fields))
}

/// Returns the chat template. Since version 4.57, transformers writes it to a separate file; earlier versions write it to the settings.
fn chat_template(folder: &Path, settings: &Value) -> Result<Option<String>, Error> {
    let path = folder.join("chat_template.jinja");
    match settings["chat_template"].as_str() {
        None if path.exists() => std::fs::read_to_string(&path).map(Some).map_err(Error::reading(&path)),
        stated => Ok(stated.map(str::to_owned)),
    }
}

fn text(text: &str) -> Field {
    Field::String(text.to_owned())
}

/// Returns the ids of special tokens, named in `tokenizer_config.json` or else given in `config.json`.
fn symbols(
    vocabulary: &Vocabulary,
    settings: &Value,
    config: &LanguageConfig,
) -> impl Iterator<Item = (String, Field)> {
    let id = |name: &str, stated: Option<u32>| {
        let token = settings[name].as_str().or(settings[name]["content"].as_str());
        let stated = stated.map(|id| id as usize).filter(|&id| id < config.vocab_size as usize);
        token.and_then(|token| vocabulary.id(token)).or(stated)
    };
    let ids = [
        ("bos", id("bos_token", config.bos_token_id)),
        ("eos", id("eos_token", config.ends().first().copied())),
        ("unknown", id("unk_token", None)),
        ("padding", id("pad_token", None)),
    ];
    ids.into_iter().filter_map(|(name, id)| Some((format!("{name}_token_id"), Field::U32(id? as u32))))
}

/// A `tokenizer.json` in terms of GGUF files.
struct Inner {
    model: &'static str,
    rule: Option<&'static Rule>,
    merges: Vec<[String; 2]>,
    /// True if a space is prepended to texts.
    prefix: bool,
}

impl Inner {
    fn of(json: &Value) -> Option<Self> {
        let model = &json["model"];
        if model["type"].as_str().is_some_and(|kind| kind != "BPE") {
            return None;
        }
        let pair = |merge: &Value| match merge {
            Value::String(pair) => {
                pair.split_once(' ').map(|(left, right)| [left.to_owned(), right.to_owned()])
            }
            pair => serde_json::from_value(pair.clone()).ok(),
        };
        let merges = model["merges"].as_array()?.iter().map(pair).collect::<Option<Vec<_>>>()?;
        let normalizers = parts(&json["normalizer"], "normalizers");
        if !parts(&json["post_processor"], "processors").into_iter().all(adds_only_before) {
            return None;
        }
        if model["byte_fallback"] == true {
            let prefix = puts_blank_before(&normalizers, &json["pre_tokenizer"])?;
            return Some(Self { model: "llama", rule: None, merges, prefix });
        }
        let rule = Rule::of(&json["pre_tokenizer"])?;
        let is_same = rule.whole_words == (model["ignore_merges"] == true)
            && normalizers.iter().all(|part| rule.normalised && part["type"] == "NFC");
        is_same.then_some(Self { model: "gpt2", rule: Some(rule), merges, prefix: false })
    }

    fn fields(&self, vocabulary: &Vocabulary) -> Vec<(String, Field)> {
        let mut fields = vec![
            ("model".to_owned(), text(self.model)),
            ("add_space_prefix".to_owned(), Field::Bool(self.prefix)),
        ];
        match self.rule {
            Some(rule) => {
                let merge = |[left, right]: &[String; 2]| Field::String(format!("{left} {right}"));
                let merges = Field::Array(self.merges.iter().map(merge).collect());
                fields.extend([("pre".to_owned(), text(rule.name)), ("merges".to_owned(), merges)]);
            }
            None => fields.push(("scores".to_owned(), scores(&self.merges, &vocabulary.tokens))),
        }
        fields
    }
}

/// Returns the parts of a step of a `tokenizer.json`: none, one or a sequence.
fn parts<'a>(step: &'a Value, sequence: &str) -> Vec<&'a Value> {
    match step[sequence].as_array() {
        Some(parts) => parts.iter().collect(),
        None => Some(step).filter(|step| !step.is_null()).into_iter().collect(),
    }
}

/// Returns true if a post-processor adds no tokens, or one before the text.
fn adds_only_before(part: &Value) -> bool {
    let is_text = |place: &Value| place["Sequence"]["id"] == "A";
    match part["type"].as_str() {
        Some("ByteLevel") => true, // changes offsets, but no ids
        Some("TemplateProcessing") => match part["single"].as_array().map(Vec::as_slice) {
            Some([text] | [_, text]) => is_text(text),
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether a space is prepended to texts; `None` unless spaces become `▁` as in llama.cpp.
fn puts_blank_before(normalizers: &[&Value], pre_tokenizer: &Value) -> Option<bool> {
    let is_metaspace = pre_tokenizer["type"] == "Metaspace" && pre_tokenizer["split"] == false;
    match normalizers {
        [] if is_metaspace => Some(pre_tokenizer["prepend_scheme"] != "never"),
        [all @ .., last] if pre_tokenizer.is_null() && **last == blanks() => {
            let is_prefix = all.first().is_some_and(|first| **first == prefix());
            (all.len() == usize::from(is_prefix)).then_some(is_prefix)
        }
        _ => None,
    }
}

/// Tokens by id, with their types.
struct Vocabulary {
    tokens: Vec<String>,
    kinds: Vec<i64>,
}

impl Vocabulary {
    /// Rows of the model without a token get placeholders, as llama.cpp requires.
    fn of(json: &Value, rows: usize) -> Result<Self, String> {
        let mut tokens: Vec<String> = (0..rows).map(|id| format!("[PAD{id}]")).collect();
        let mut kinds = vec![kind::UNUSED; rows];
        let (model, empty) = (&json["model"], Map::new());
        let mut put = |token: &str, id: Option<u64>, kind: i64| {
            let id = id.and_then(|id| usize::try_from(id).ok()).filter(|&id| id < rows);
            let id = id.ok_or_else(|| {
                format!("the model has {rows} rows of embeddings, too few for the token `{}`", excerpt(token))
            })?;
            (tokens[id], kinds[id]) = (token.to_owned(), kind);
            Ok::<(), String>(())
        };
        let unknown = model["unk_token"].as_str();
        let of_bytes = model["byte_fallback"] == true;
        for (token, id) in model["vocab"].as_object().unwrap_or(&empty) {
            let is_byte = of_bytes && token.len() == 6 && token.starts_with("<0x");
            let kind = if is_byte { kind::BYTE } else { kind::NORMAL };
            put(token, id.as_u64(), kind)?;
        }
        for added in json["added_tokens"].as_array().into_iter().flatten() {
            let content = added["content"].as_str().unwrap_or_default();
            let kind = match added["special"] == true {
                true if of_bytes && unknown == Some(content) => kind::UNKNOWN,
                true => kind::CONTROL,
                false => kind::OF_USER,
            };
            put(content, added["id"].as_u64(), kind)?;
        }
        Ok(Self { tokens, kinds })
    }

    fn fields(self) -> [(String, Field); 2] {
        let kinds = self.kinds.into_iter().map(|kind| Field::I32(kind as i32)).collect();
        let tokens = self.tokens.into_iter().map(Field::String).collect();
        [("token_type".to_owned(), Field::Array(kinds)), ("tokens".to_owned(), Field::Array(tokens))]
    }

    fn id(&self, token: &str) -> Option<usize> {
        self.tokens.iter().position(|known| known == token)
    }
}

/// Returns a score for each token: the earlier its merge, the higher.
fn scores(merges: &[[String; 2]], tokens: &[String]) -> Field {
    let mut ranks = HashMap::new();
    for (rank, merge) in merges.iter().enumerate() {
        ranks.entry(merge.concat()).or_insert(rank);
    }
    let score = |token: &String| Field::F32(ranks.get(token).map_or(0.0, |&rank| -(rank as f32)));
    Field::Array(tokens.iter().map(score).collect())
}

/// Returns true if a BOS token is prepended to texts.
fn adds_begin(json: &Value, settings: &Value) -> bool {
    let stated = settings["add_bos_token"] == true && !settings["bos_token"].is_null();
    let puts =
        |part: &Value| part["type"] == "TemplateProcessing" && !part["single"][0]["SpecialToken"].is_null();
    stated || parts(&json["post_processor"], "processors").into_iter().any(puts)
}
