//! Tokenisers: the fields of a GGUF file as `tokenizer.json`, and back.
//!
//! Byte-level BPE is `gpt2` there, with the name of the rule that cuts texts into words; BPE of SentencePiece, with bytes for
//! rare characters, is `llama`, which has a score for each piece in the place of a list of merges.
use std::collections::HashMap;
use std::path::Path;

use candle_core::quantized::gguf_file::Value as Field;
use serde_json::{Map, Value, json};
use words::excerpt;

use crate::Error;
use crate::config::{Config, read_json};
use crate::file::{GgufFile, whole};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Rules that cut texts into words, by the name in `tokenizer.ggml.pre`, as the models' own files on the hub have them; llama.cpp's are in
/// <https://github.com/ggml-org/llama.cpp/blob/b6000/src/llama-vocab.cpp>.
const RULES: [Rule; 5] = [
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

/// A rule that cuts texts into words.
struct Rule {
    name: &'static str,
    /// Digits stand alone.
    digits: bool,
    /// Patterns, one after the other; without any, GPT-2's.
    splits: &'static [&'static str],
    /// A word that is a token needs no merges that lead to it.
    whole_words: bool,
    /// Characters are composed (NFC).
    normalised: bool,
}

impl Rule {
    fn named(name: &str) -> Option<&'static Self> {
        let name = match name {
            "llama3" | "llama-v3" => "llama-bpe",
            name => name,
        };
        RULES.iter().find(|rule| rule.name == name)
    }

    fn pre_tokenizer(&self) -> Value {
        let digits = json!({"type": "Digits", "individual_digits": true});
        let split = |pattern: &&str| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
        let mut steps: Vec<Value> = self.digits.then_some(digits).into_iter().collect();
        steps.extend(self.splits.iter().map(split));
        steps.push(byte_level(self.splits.is_empty()));
        json!({"type": "Sequence", "pretokenizers": steps})
    }

    /// The rule of a `tokenizer.json`, if it is one of these.
    fn of(pre_tokenizer: &Value) -> Option<&'static Self> {
        let found = steps(pre_tokenizer)?;
        RULES.iter().find(|rule| steps(&rule.pre_tokenizer()).as_ref() == Some(&found))
    }
}

fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex})
}

/// What a pre-tokeniser does, in short, if it is one of those that some rule has.
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

/// Kinds of tokens, `tokenizer.ggml.token_type`.
mod kind {
    pub(super) const NORMAL: i64 = 1;
    pub(super) const UNKNOWN: i64 = 2;
    pub(super) const CONTROL: i64 = 3;
    pub(super) const OF_USER: i64 = 4;
    pub(super) const UNUSED: i64 = 5;
    pub(super) const BYTE: i64 = 6;
}

/// A tokeniser as a Hugging Face folder holds it.
pub(crate) struct Tokens {
    pub(crate) count: usize,
    pub(crate) begin: Option<u32>,
    pub(crate) end: Option<u32>,
    /// `tokenizer.json`.
    pub(crate) json: Value,
    /// `tokenizer_config.json`.
    pub(crate) settings: Value,
}

/// Reads the tokeniser of a GGUF file.
pub(crate) fn read(file: &GgufFile) -> Result<Tokens, Error> {
    let model = file.require("tokenizer.ggml.model", file.text("tokenizer.ggml.model")?)?;
    let tokens = file.list("tokenizer.ggml.tokens", "a list of texts", |token| token.to_string().ok())?;
    let tokens: Vec<&str> = tokens.into_iter().map(String::as_str).collect();
    let kinds = file.list("tokenizer.ggml.token_type", "a list of whole numbers", whole)?;
    let is_first_of = |(id, kind): (usize, &i64), wanted: &[i64]| id < tokens.len() && wanted.contains(kind);
    let of_kind =
        |wanted: &'static [i64]| kinds.iter().enumerate().filter(move |&found| is_first_of(found, wanted));
    let ids: HashMap<&str, usize> = tokens.iter().enumerate().map(|(id, &token)| (token, id)).collect();
    let (inner, adds_begin) = match model {
        "gpt2" => (of_bytes(file, &ids)?, None),
        "llama" => (of_pieces(file, &tokens, &kinds, &ids)?, Some(true)),
        other => {
            let reason =
                format!("a tokeniser of kind `{}` cannot be read; gpt2 and llama can", excerpt(other));
            return Err(Error::of(&file.path, reason));
        }
    };
    let named = |name: &str| -> Result<Option<usize>, Error> {
        Ok(file.number(&format!("tokenizer.ggml.{name}_token_id"))?.filter(|&id| id < tokens.len()))
    };
    let of_llama3 =
        file.text("tokenizer.ggml.pre")?.and_then(Rule::named).is_some_and(|rule| rule.name == "llama-bpe");
    let adds_begin = file.flag("tokenizer.ggml.add_bos_token")?.or(adds_begin).unwrap_or(of_llama3);
    // Where nothing is put before a text, the symbol that is named may begin a turn of a chat, as SmolLM2's does. What the model
    // has seen before texts is then what stood between them, if the vocabulary has it.
    let between = ids.get(corpus::language_tokenizer::END_OF_TEXT).copied().filter(|_| !adds_begin);
    let begin = between.or(named("bos")?);
    let end = named("eos")?;
    let added = of_kind(&[kind::UNKNOWN, kind::CONTROL, kind::OF_USER]).map(|(id, &found)| {
        json!({"id": id, "content": tokens[id], "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
               "special": found != kind::OF_USER})
    });
    let mut json = inner;
    json["added_tokens"] = added.collect();
    if let (true, Some(id)) = (adds_begin, begin) {
        json["post_processor"] = begins_with(tokens[id], id);
    }
    let token = |id: Option<usize>| id.map(|id| tokens[id]);
    let settings = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": adds_begin, "add_prefix_space": false, "clean_up_tokenization_spaces": false,
        "bos_token": token(begin), "eos_token": token(end), "pad_token": token(named("padding")?), "unk_token": token(named("unknown")?),
        "model_max_length": file.number("llama.context_length")?, "chat_template": file.text("tokenizer.chat_template")?,
    });
    let id = |id: Option<usize>| id.map(|id| id as u32);
    Ok(Tokens { count: tokens.len(), begin: id(begin), end: id(end), json, settings })
}

/// A `tokenizer.json` of byte-level BPE.
fn of_bytes(file: &GgufFile, ids: &HashMap<&str, usize>) -> Result<Value, Error> {
    let name = file.text("tokenizer.ggml.pre")?.unwrap_or("default");
    let rule = Rule::named(name).ok_or_else(|| {
        let known = RULES.map(|rule| rule.name).join(", ");
        Error::of(
            &file.path,
            format!(
                "it cuts texts into words by the rule `{}`, which is not known; {known} are",
                excerpt(name)
            ),
        )
    })?;
    let merges =
        file.list("tokenizer.ggml.merges", "a list of pairs with a blank between them", |merge| {
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

/// A `tokenizer.json` of SentencePiece's BPE: pieces merge in the order of their scores, as transformers converts them.
fn of_pieces(
    file: &GgufFile,
    tokens: &[&str],
    kinds: &[i64],
    ids: &HashMap<&str, usize>,
) -> Result<Value, Error> {
    let scores = file.list("tokenizer.ggml.scores", "a list of numbers", |score| score.to_f32().ok())?;
    if scores.len() != tokens.len() || kinds.len() != tokens.len() {
        return Err(Error::of(&file.path, "its tokens, their scores and their kinds are not equally many"));
    }
    let mut merges = Vec::new();
    for (id, token) in tokens.iter().enumerate().filter(|&(id, _)| kinds[id] == kind::NORMAL) {
        let splits = token.char_indices().skip(1).map(|(place, _)| token.split_at(place));
        let mut parts: Vec<_> =
            splits.filter_map(|(left, right)| Some((ids.get(left)?, ids.get(right)?, left, right))).collect();
        parts.sort_unstable();
        merges.extend(parts.into_iter().map(|(_, _, left, right)| (scores[id], left, right)));
    }
    merges.sort_by(|left, right| right.0.total_cmp(&left.0));
    let merges: Vec<(&str, &str)> = merges.into_iter().map(|(_, left, right)| (left, right)).collect();
    let unknown = kinds.iter().position(|&found| found == kind::UNKNOWN).map(|id| tokens[id]);
    let prefix = file.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let blanks = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let mut normalizers = vec![blanks];
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
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

/// A post-processor that puts a symbol before a text.
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

/// The fields of a GGUF file for the tokeniser of a folder, if llama.cpp has its kind; the model has `config.vocab_size` rows.
///
/// # Errors
/// If a file of it is malformed, or it has more tokens than the model has rows.
pub(crate) fn fields(folder: &Path, config: &Config) -> Result<Option<Vec<(String, Field)>>, Error> {
    let path = folder.join("tokenizer.json");
    if !path.exists() {
        return Ok(None);
    }
    let json = read_json(&path)?;
    let settings = folder.join("tokenizer_config.json");
    let settings = if settings.exists() { read_json(&settings)? } else { json!({}) };
    let Some(Inner { model, rule, merges, prefix }) = Inner::of(&json) else { return Ok(None) };
    let vocabulary = Vocabulary::of(&json, config.vocab_size).map_err(|reason| Error::of(&path, reason))?;
    let ids = |name: &str, entry: Option<&Value>| {
        let token = settings[name].as_str().or(settings[name]["content"].as_str());
        let stated = entry.and_then(|entry| entry.as_u64().or(entry[0].as_u64())).map(|id| id as usize);
        token.and_then(|token| vocabulary.id(token)).or(stated.filter(|&id| id < config.vocab_size))
    };
    let text = |text: &str| Field::String(text.to_owned());
    let texts = |all: Vec<String>| Field::Array(all.into_iter().map(Field::String).collect());
    let mut fields = vec![
        ("model".to_owned(), text(model)),
        ("add_space_prefix".to_owned(), Field::Bool(prefix)),
        ("add_bos_token".to_owned(), Field::Bool(adds_begin(&json, &settings))),
        (
            "token_type".to_owned(),
            Field::Array(vocabulary.kinds.iter().map(|&kind| Field::I32(kind as i32)).collect()),
        ),
    ];
    match rule {
        Some(rule) => fields.extend([
            ("pre".to_owned(), text(rule.name)),
            (
                "merges".to_owned(),
                texts(merges.iter().map(|[left, right]| format!("{left} {right}")).collect()),
            ),
        ]),
        None => fields.push(("scores".to_owned(), scores(&merges, &vocabulary.tokens))),
    }
    let symbols = [
        ("bos", ids("bos_token", config.bos_token_id.as_ref())),
        ("eos", ids("eos_token", config.eos_token_id.as_ref())),
        ("unknown", ids("unk_token", None)),
        ("padding", ids("pad_token", None)),
    ];
    fields.extend(
        symbols
            .into_iter()
            .filter_map(|(name, id)| Some((format!("{name}_token_id"), Field::U32(id? as u32)))),
    );
    fields.push(("tokens".to_owned(), texts(vocabulary.tokens)));
    let mut fields: Vec<_> =
        fields.into_iter().map(|(name, field)| (format!("tokenizer.ggml.{name}"), field)).collect();
    fields.extend(
        settings["chat_template"]
            .as_str()
            .map(|template| ("tokenizer.chat_template".to_owned(), text(template))),
    );
    Ok(Some(fields))
}

/// What a `tokenizer.json` does, in the words of GGUF files.
struct Inner {
    model: &'static str,
    rule: Option<&'static Rule>,
    merges: Vec<[String; 2]>,
    /// A blank is put before texts.
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
        if model["byte_fallback"] == true {
            let normalizers = json["normalizer"]["normalizers"].as_array().into_iter().flatten();
            let prepends = normalizers.into_iter().any(|part| part["type"] == "Prepend");
            let space = &json["pre_tokenizer"];
            let prefix = prepends || space["type"] == "Metaspace" && space["prepend_scheme"] != "never";
            return Some(Self { model: "llama", rule: None, merges, prefix });
        }
        let rule = Some(Rule::of(&json["pre_tokenizer"])?);
        Some(Self { model: "gpt2", rule, merges, prefix: false })
    }
}

/// Tokens by id, with their kinds.
struct Vocabulary {
    tokens: Vec<String>,
    kinds: Vec<i64>,
}

impl Vocabulary {
    /// Rows of the model without a token are filled up, as llama.cpp asks for.
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

    fn id(&self, token: &str) -> Option<usize> {
        self.tokens.iter().position(|known| known == token)
    }
}

/// A score for each token: the earlier it can be merged, the higher.
fn scores(merges: &[[String; 2]], tokens: &[String]) -> Field {
    let mut ranks = HashMap::new();
    for (rank, merge) in merges.iter().enumerate() {
        ranks.entry(merge.concat()).or_insert(rank);
    }
    let score = |token: &String| Field::F32(ranks.get(token).map_or(0.0, |&rank| -(rank as f32)));
    Field::Array(tokens.iter().map(score).collect())
}

/// True if a symbol is put before texts.
fn adds_begin(json: &Value, settings: &Value) -> bool {
    let processor = &json["post_processor"];
    let parts = processor["processors"].as_array().map_or(std::slice::from_ref(processor), Vec::as_slice);
    let stated = settings["add_bos_token"] == true && !settings["bos_token"].is_null();
    stated
        || parts
            .iter()
            .any(|part| part["type"] == "TemplateProcessing" && !part["single"][0]["SpecialToken"].is_null())
}
