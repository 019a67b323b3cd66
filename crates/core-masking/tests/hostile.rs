//! Folders that nobody saved: forged headers and configurations, and files with bytes changed at random. Each is read or
//! refused in one line; nothing that they claim is believed before it is checked.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::error::Error;
use std::fs;
use std::path::Path;

use core_masking::{
    BeamSearch, Classifier, ClassifierConfig, GatedModel, Gates, ModelDropout, Translator, TranslatorConfig,
    Weights,
};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const NAN: &str = "the model computes NaN: its weights are too large for the precision";

fn bert_config() -> Value {
    json!({
        "model_type": "bert", "vocab_size": 11, "hidden_size": 6, "num_hidden_layers": 2,
        "num_attention_heads": 3, "intermediate_size": 5, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        "initializer_range": 0.02, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 8, "type_vocab_size": 2, "pad_token_id": 0, "pruned_heads": {"1": [0, 2]},
        "id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1},
    })
}

fn marian_config() -> Value {
    json!({
        "model_type": "marian", "vocab_size": 9, "d_model": 6, "encoder_layers": 1,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 5, "decoder_layers": 2, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 7, "activation_function": "swish", "max_position_embeddings": 8, "dropout": 0.1,
        "scale_embedding": true, "pad_token_id": 8, "eos_token_id": 0, "decoder_start_token_id": 8,
        "forced_eos_token_id": 0, "pruned_attention_heads": {"enc-dec": {"1": [0]}},
    })
}

/// The source has more pieces than the target.
fn fsmt_config() -> Value {
    json!({
        "model_type": "fsmt", "src_vocab_size": 12, "tgt_vocab_size": 9, "d_model": 6, "encoder_layers": 1,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 5, "decoder_layers": 2, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 7, "max_position_embeddings": 8, "max_length": 6,
    })
}

fn generation_config() -> Value {
    json!({
        "num_beams": 3, "max_length": 6, "length_penalty": 0.6, "early_stopping": "never",
        "bad_words_ids": [[8]], "renormalize_logits": true, "forced_eos_token_id": 0, "eos_token_id": 0,
        "pad_token_id": 8, "decoder_start_token_id": 8, "min_length": 0,
    })
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Family {
    Bert,
    Marian,
    Fsmt,
}

impl Family {
    const ALL: [Self; 3] = [Self::Bert, Self::Marian, Self::Fsmt];

    fn config(self) -> Value {
        match self {
            Self::Bert => bert_config(),
            Self::Marian => marian_config(),
            Self::Fsmt => fsmt_config(),
        }
    }
}

/// A sound folder of two or three kilobytes.
fn folder(family: Family) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    match family {
        Family::Bert => {
            let config: ClassifierConfig = serde_json::from_value(bert_config()).unwrap();
            Classifier::random(config, 3, OPTIONS).unwrap().save(folder.path()).unwrap();
        }
        Family::Marian | Family::Fsmt => {
            write(folder.path(), CONFIG, &family.config());
            let config = TranslatorConfig::read(&folder.path().join(CONFIG)).unwrap();
            Translator::random(config, 3, OPTIONS).unwrap().save(folder.path()).unwrap();
            if family == Family::Marian {
                write(folder.path(), "generation_config.json", &generation_config());
            }
        }
    }
    folder
}

fn write(folder: &Path, name: &str, json: &Value) {
    fs::write(folder.join(name), json.to_string()).unwrap();
}

/// The whole message of an error, as binaries print it.
fn message(error: &core_masking::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.chars().count() < 1000, "{text}");
    text
}

/// Loads the folder and uses the model once.
fn load(family: Family, folder: &Path) -> Result<(), String> {
    match family {
        Family::Bert => {
            let model = Classifier::load(folder, OPTIONS).map_err(|error| message(&error))?;
            let batch = model.batch(&[(&[0], &[0])]).unwrap();
            let _ = model.forward(&batch, &Gates::open(&model.layout(), OPTIONS), &ModelDropout::OFF);
        }
        Family::Marian | Family::Fsmt => {
            let model = Translator::load(folder, OPTIONS).map_err(|error| message(&error))?;
            let search = BeamSearch::read(folder, model.config()).map_err(|error| message(&error))?;
            let gates = Gates::open(&model.layout(), OPTIONS);
            search.translate(&model, &[&[0]], &gates).map_err(|error| message(&error))?;
        }
    }
    Ok(())
}

/// What is said of a folder whose configuration has another value at `entry`.
fn refusal_of_config(family: Family, entry: &str, value: &Value) -> String {
    let folder = folder(family);
    let mut config = family.config();
    config[entry] = value.clone();
    write(folder.path(), CONFIG, &config);
    load(family, folder.path()).unwrap_err()
}

/// A file with this header and this many bytes of data, beside a sound configuration.
fn refusal_of_header(header: &str, data: usize) -> String {
    let folder = folder(Family::Bert);
    let length = (header.len() as u64).to_le_bytes();
    let bytes = [length.as_slice(), header.as_bytes(), &vec![0; data]].concat();
    fs::write(folder.path().join(WEIGHTS), bytes).unwrap();
    let message = load(Family::Bert, folder.path()).unwrap_err();
    assert!(message.contains(WEIGHTS), "{message}");
    // whatever reads the file without knowing what should be in it is not fooled either
    let _ = Weights::read(&folder.path().join(WEIGHTS), OPTIONS).map_err(|error| self::message(&error));
    message
}

#[test]
fn sound_folders_are_read() {
    for family in Family::ALL {
        assert_eq!(load(family, folder(family).path()), Ok(()));
    }
}

/// Old folders of transformers hold the numbers 0, 1, 2 .. as integers; integers in the place of weights are none.
#[test]
fn integers_are_ignored_where_nothing_is_read_from_them() {
    let with_integers = |name: &str| {
        let folder = folder(Family::Bert);
        let path = folder.path().join(WEIGHTS);
        let bytes = fs::read(&path).unwrap();
        let integers = [0; 6 * 8];
        let view = TensorView::new(Dtype::I64, vec![6], &integers).unwrap();
        let mut tensors = SafeTensors::deserialize(&bytes).unwrap().tensors();
        tensors.retain(|(other, _)| other != name);
        tensors.push((name.to_owned(), view));
        fs::write(&path, safetensors::serialize(tensors, None).unwrap()).unwrap();
        load(Family::Bert, folder.path())
    };
    assert_eq!(with_integers("bert.embeddings.position_ids"), Ok(()));
    let message = with_integers("bert.embeddings.LayerNorm.bias").unwrap_err();
    assert!(message.ends_with("has type I64; F64, F32, F16 and BF16 are understood"), "{message}");
}

/// What the crate `safetensors` lets through: a tensor without numbers may claim any shape.
#[test]
fn a_header_with_impossible_shapes_is_refused() {
    let refusal = |name: &str, shape: &str| {
        refusal_of_header(
            &format!(r#"{{"{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[0,0]}}}}"#),
            0,
        )
    };
    let axes = format!("[0{}]", ",1".repeat(100_000));
    for shape in ["[0,9223372036854775808]", "[0,18446744073709551615]", "[0,4611686018427387904,4]", &axes] {
        assert!(refusal("x", shape).contains("lacks tensor"), "{shape}");
        let message = refusal("bert.embeddings.LayerNorm.bias", shape);
        assert!(message.contains("but the configuration asks for [6]"), "{message}");
    }
}

#[test]
fn a_file_that_ends_too_soon_or_too_late_is_refused() {
    let folder = folder(Family::Bert);
    let path = folder.path().join(WEIGHTS);
    let whole = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let message = load(Family::Bert, folder.path()).unwrap_err();
        assert!(message.contains("model.safetensors` is not a complete safetensors file"), "{message}");
    };
    for length in [0, 7, 8, 9, 100, whole.len() - 1] {
        refused(&whole[..length]);
    }
    refused(&[&whole[..], &[0]].concat());
    for length in [0, 1, 1 << 20, 100_000_001, u64::MAX - 7, u64::MAX] {
        refused(&length.to_le_bytes());
    }
}

/// One would silently win.
#[test]
fn two_names_for_one_tensor_are_refused() {
    for (name, other) in [
        ("bert.embeddings.LayerNorm.weight", "embeddings.LayerNorm.weight"),
        ("bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma"),
        ("bert.pooler.dense.bias", "pooler.dense.bias"),
    ] {
        let folder = folder(Family::Bert);
        let path = folder.path().join(WEIGHTS);
        let weights = Weights::read(&path, OPTIONS).unwrap();
        let copy = [(other.to_owned(), weights.get(name).unwrap())];
        let own = weights.iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
        Weights::from_tensors(own.chain(copy)).write(&path).unwrap();
        let message = load(Family::Bert, folder.path()).unwrap_err();
        assert!(message.ends_with("which mean one tensor"), "{message}");
        assert!(
            message.contains(&format!("`{name}`")) && message.contains(&format!("`{other}`")),
            "{message}"
        );
    }
}

/// Built from what the configuration says, these would be 6 and 14 GB; the file has one number.
#[test]
fn sizes_are_compared_before_anything_is_built() {
    for (family, width) in [(Family::Bert, "hidden_size"), (Family::Marian, "d_model")] {
        let folder = folder(family);
        let mut config = family.config();
        config[width] = json!(12_288);
        config["max_position_embeddings"] = json!(4096);
        write(folder.path(), CONFIG, &config);
        let one = Weights::from_tensors([("x".to_owned(), Tensor::ones([1], OPTIONS))]);
        one.write(&folder.path().join(WEIGHTS)).unwrap();
        let message = load(family, folder.path()).unwrap_err();
        assert!(message.contains("lacks tensor"), "{message}");
    }
    // positions are computed, so that no tensor of the file vouches for them
    let mut config = marian_config();
    config["d_model"] = json!(65_532);
    let positions = |config: &Value| {
        let mut config = config.clone();
        config["max_position_embeddings"] = json!(65_536);
        serde_json::from_value::<TranslatorConfig>(config).unwrap().validate()
    };
    let expected = "max_position_embeddings must be from 1 to 1024 for a d_model of 65532";
    assert_eq!(positions(&config), Err(expected.to_owned()));
    assert_eq!(positions(&marian_config()), Ok(()));
}

/// Zero divides nothing, lists are as long as their number says, and products may overflow; shapes refuse all else.
#[test]
fn sizes_that_shapes_cannot_refuse_are_refused_by_name() {
    let of_bert = ["hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"];
    let of_marian = ["d_model", "encoder_layers", "decoder_attention_heads", "decoder_ffn_dim"];
    let entries = of_bert.map(|entry| (Family::Bert, entry)).into_iter();
    for (family, entry) in entries.chain(of_marian.map(|entry| (Family::Marian, entry))) {
        for value in [json!(0), json!(1 << 30), json!(i64::MAX)] {
            let message = refusal_of_config(family, entry, &value);
            assert!(message.contains(&format!("{entry} must be from 1 to ")), "{entry} {value}: {message}");
        }
        for value in [json!(-1), json!(1.5), json!("six"), Value::Null] {
            let message = refusal_of_config(family, entry, &value);
            let is_named = message.contains("cannot understand") || message.contains(entry);
            assert!(is_named && message.contains(CONFIG), "{entry} {value}: {message}");
        }
    }
    let message = refusal_of_config(Family::Bert, "vocab_size", &json!(12));
    assert!(message.contains("`bert.embeddings.word_embeddings.weight` is [11, 6], but"), "{message}");
}

#[test]
fn other_entries_have_theirs() {
    let cases = [
        (Family::Bert, "layer_norm_eps", json!(-1e-12), "layer_norm_eps (-0.000000000001) must be above 0"),
        (Family::Bert, "layer_norm_eps", json!(0.0), "layer_norm_eps (0) must be above 0 and at most 1"),
        (Family::Bert, "hidden_dropout_prob", json!(-0.1), "hidden_dropout_prob (-0.1) must be at least 0"),
        (Family::Bert, "pad_token_id", json!(11), "pad_token_id is not below vocab_size (11)"),
        (Family::Bert, "num_attention_heads", json!(4), "num_attention_heads (4) does not divide"),
        (Family::Bert, "pruned_heads", json!({"2": [0]}), "pruned_heads: no layer 3 of `self`"),
        (Family::Bert, "pruned_heads", json!({"0": [3]}), "pruned_heads: no head 4 in a layer of `self`"),
        (Family::Bert, "id2label", json!({"0": "a", "1": "b\u{1b}[2J"}), "`b\\u{1b}[2J` holds a control"),
        (
            Family::Bert,
            "problem_type",
            json!("regression"),
            "problem_type is `regression`; only `single_label",
        ),
        (Family::Bert, "is_decoder", json!(true), "is_decoder is true, but only encoders are supported"),
        (Family::Fsmt, "src_vocab_size", json!(-1), "src_vocab_size must be from 1 to"),
        (Family::Marian, "dropout", json!(1), "dropout (1) must be at least 0 and below 1"),
        (Family::Marian, "eos_token_id", json!(9), "eos_token_id is not below vocab_size (9)"),
        (Family::Marian, "forced_eos_token_id", json!(9), "forced_eos_token_id is not below vocab_size (9)"),
        (Family::Marian, "decoder_attention_heads", json!(4), "decoder_attention_heads (4) does not divide"),
        (
            Family::Marian,
            "pruned_attention_heads",
            json!({"dec-dec": {"2": [0]}}),
            "pruned_attention_heads: no layer 3 of `dec-dec`",
        ),
        (
            Family::Marian,
            "pruned_attention_heads",
            json!({"self": {"0": [0]}}),
            "pruned_attention_heads: no `self` attention in this model",
        ),
    ];
    for (family, entry, value, expected) in cases {
        let message = refusal_of_config(family, entry, &value);
        assert!(message.contains(expected), "{message}");
    }
}

/// What is banned is a token of the target; `config.json` has the entry where there is no `generation_config.json`.
#[test]
fn a_banned_token_that_the_target_does_not_have_is_refused() {
    let message = refusal_of_config(Family::Fsmt, "bad_words_ids", &json!([[9]]));
    assert!(message.contains("bad_words_ids: 9 is not below tgt_vocab_size (9)"), "{message}");
    let folder = folder(Family::Fsmt);
    let mut config = fsmt_config();
    config["bad_words_ids"] = json!([[8]]);
    write(folder.path(), CONFIG, &config);
    assert_eq!(load(Family::Fsmt, folder.path()), Ok(()));
}

/// Each size is allowed, but not all of them at once.
#[test]
fn a_model_beyond_any_memory_is_refused() {
    let mut config = bert_config();
    config["vocab_size"] = json!(1 << 24);
    config["hidden_size"] = json!(3 << 12);
    config["num_hidden_layers"] = json!(256);
    let config: ClassifierConfig = serde_json::from_value(config).unwrap();
    let fault = Classifier::random(config, 1, OPTIONS).unwrap_err().to_string();
    assert!(fault.ends_with("parameters; at most 137438953472 are allowed"), "{fault}");
}

#[test]
fn numbers_that_are_none_are_refused() {
    for (entry, value) in [
        ("\"layer_norm_eps\":1e-12", "\"layer_norm_eps\":NaN"),
        ("\"layer_norm_eps\":1e-12", "\"layer_norm_eps\":1e999"),
        ("\"vocab_size\":11", "\"vocab_size\":99999999999999999999999999"),
    ] {
        let folder = folder(Family::Bert);
        let text = bert_config().to_string();
        assert!(text.contains(entry));
        fs::write(folder.path().join(CONFIG), text.replace(entry, value)).unwrap();
        let message = load(Family::Bert, folder.path()).unwrap_err();
        assert!(message.contains("cannot understand"), "{message}");
    }
}

#[test]
fn a_search_that_no_one_means_is_refused() {
    for (entry, value, expected) in [
        ("length_penalty", json!(1e300), "length_penalty (1000"),
        ("length_penalty", json!(-51), "length_penalty (-51) must be from -50 to 50"),
        ("num_beams", json!(u64::MAX), "num_beams must be from 1 to 1000"),
        ("num_beams", json!(-3), "cannot understand"),
        ("bad_words_ids", json!([vec![1; 1 << 16]]), "is not one token, which is not supported"),
        ("early_stopping", json!("x".repeat(1 << 16)), "it must be true, false or \"never\""),
        ("suppress_tokens", json!(vec![7; 1 << 16]), "which is not supported"),
    ] {
        let folder = folder(Family::Marian);
        let mut generation = generation_config();
        generation[entry] = value;
        write(folder.path(), "generation_config.json", &generation);
        let message = load(Family::Marian, folder.path()).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn deep_or_endless_json_is_refused() {
    let deep = ["[", "{\"a\":"].map(|open| open.repeat(1 << 20));
    let nested = format!("{{\"model_type\":\"marian\",\"x\":{}", "[".repeat(1 << 20));
    let long = " ".repeat((1 << 24) + 1);
    for text in [&deep[0], &deep[1], &nested, &long] {
        for name in [CONFIG, "generation_config.json"] {
            let folder = folder(Family::Marian);
            fs::write(folder.path().join(name), text).unwrap();
            let message = load(Family::Marian, folder.path()).unwrap_err();
            let is_named =
                message.contains("cannot understand") || message.contains("longer than 16777216 bytes");
            assert!(is_named && message.contains(name), "{message}");
        }
        assert!(refusal_of_header(text, 0).contains("is not a complete safetensors file"));
    }
    let metadata = format!("{{\"__metadata__\":{}", "[".repeat(1 << 20));
    assert!(refusal_of_header(&metadata, 0).contains("is not a complete safetensors file"));
}

#[cfg(unix)]
#[test]
fn a_folder_or_device_in_the_place_of_a_file_is_refused() {
    for name in [CONFIG, "generation_config.json", WEIGHTS] {
        let folder = folder(Family::Marian);
        let path = folder.path().join(name);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let message = load(Family::Marian, folder.path()).unwrap_err();
        assert!(message.ends_with("not a regular file"), "{message}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let message = load(Family::Marian, folder.path()).unwrap_err();
        assert!(message.ends_with("not a regular file"), "{message}");
    }
}

/// They are finite, so they can be read.
#[test]
fn weights_that_overflow_in_use_are_refused() {
    let folder = folder(Family::Marian);
    let path = folder.path().join(WEIGHTS);
    let weights = Weights::read(&path, OPTIONS).unwrap();
    let huge = weights.iter().map(|(name, tensor)| (name.to_owned(), tensor * 1e38));
    Weights::from_tensors(huge).write(&path).unwrap();
    assert_eq!(load(Family::Marian, folder.path()), Err(NAN.to_owned()));
}

/// A terminal would obey them, and a log would show lines that nobody wrote.
#[test]
fn foreign_names_are_shown_escaped_and_shortened() {
    let name = "\\u001b[2Jx\\n".repeat(100);
    let tensor = format!(r#""{name}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#);
    let sound = refusal_of_header(&format!("{{{tensor}}}"), 4);
    assert!(sound.contains("lacks tensor"), "{sound}");
    let offset = refusal_of_header(&format!("{{{}}}", tensor.replace("[0,4]", "[4,8]")), 8);
    assert!(offset.contains(r"tensor `\u{1b}[2Jx\n"), "{offset}");

    let hostile = json!("\u{1b}[2Jx\n".repeat(100));
    for entry in ["model_type", "hidden_act", "position_embedding_type", "vocab_size"] {
        let message = refusal_of_config(Family::Bert, entry, &hostile);
        assert!(message.contains(r"\u{1b}[2Jx\n"), "{message}");
    }

    let folder = folder(Family::Bert);
    let path = folder.path().join(WEIGHTS);
    let weights = Weights::read(&path, OPTIONS).unwrap();
    let own = weights.iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
    let extra = ("zz\u{1b}[2J\n".to_owned(), Tensor::ones([1], OPTIONS));
    Weights::from_tensors(own.chain([extra])).write(&path).unwrap();
    let message = load(Family::Bert, folder.path()).unwrap_err();
    assert!(message.contains(r"holds tensor `zz\u{1b}[2J\n`"), "{message}");
}

/// One change of a file.
#[derive(Debug, Clone)]
enum Change {
    Replace(usize, u8),
    Flip(usize, u8),
    Insert(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Cut(usize),
    /// Puts something else in the place of a number written in digits.
    Number(usize, &'static str),
}

const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "2",
    "7",
    "65536",
    "1e999",
    "1.5",
    "null",
    "[]",
    "\"\"",
    "9223372036854775808",
    "18446744073709551615",
    "4294967296",
];

impl Change {
    fn any() -> impl Strategy<Value = Self> {
        let place = any::<proptest::sample::Index>().prop_map(|place| place.index(1 << 20));
        prop_oneof![
            (place.clone(), any::<u8>()).prop_map(|(place, byte)| Self::Replace(place, byte)),
            (place.clone(), 0..8_u8).prop_map(|(place, bit)| Self::Flip(place, bit)),
            (place.clone(), any::<u8>()).prop_map(|(place, byte)| Self::Insert(place, byte)),
            (place.clone(), 1..40_usize).prop_map(|(place, length)| Self::Remove(place, length)),
            (place.clone(), 1..90_usize).prop_map(|(place, length)| Self::Repeat(place, length)),
            place.clone().prop_map(Self::Cut),
            (place.clone(), proptest::sample::select(&NUMBERS[..]))
                .prop_map(|(place, number)| Self::Number(place, number)),
            (place, proptest::sample::select(&NUMBERS[..]))
                .prop_map(|(place, number)| Self::Number(place, number)),
        ]
    }

    /// Changes `bytes` within the first `header`, which is where a file says what it is.
    fn apply(&self, bytes: &mut Vec<u8>, header: usize) {
        let within = |place: usize, length: usize| place % header.min(length).max(1);
        let length = bytes.len();
        match *self {
            _ if length == 0 => {}
            Self::Replace(place, byte) => bytes[within(place, length)] = byte,
            Self::Flip(place, bit) => bytes[within(place, length)] ^= 1 << bit,
            Self::Insert(place, byte) => bytes.insert(within(place, length), byte),
            Self::Remove(place, count) => {
                let place = within(place, length);
                bytes.drain(place..(place + count).min(length));
            }
            Self::Repeat(place, count) => {
                let place = within(place, length);
                let copy = bytes[place..(place + count).min(length)].to_vec();
                bytes.splice(place..place, copy);
            }
            Self::Cut(place) => bytes.truncate(within(place, length)),
            Self::Number(place, number) => replace_number(bytes, within(place, length), number),
        }
    }
}

/// Replaces the first run of digits from `place` on, but not the length of the header.
fn replace_number(bytes: &mut Vec<u8>, place: usize, number: &str) {
    let place = place.max(8);
    let Some(start) = bytes.iter().skip(place).position(u8::is_ascii_digit).map(|found| place + found) else {
        return;
    };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + digits, number.bytes());
}

/// The length in front of the header, made to fit again, so that the change is what is judged.
fn mend_length(bytes: &mut [u8], before: usize) {
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as i64;
    let mended = header + bytes.len() as i64 - before as i64;
    bytes[..8].copy_from_slice(&mended.to_le_bytes());
}

fn survives(family: Family, name: &str, changes: &[Change], mend: bool) {
    let folder = folder(family);
    let path = folder.path().join(name);
    let mut bytes = fs::read(&path).unwrap();
    let before = bytes.len();
    // three quarters of a tiny checkpoint are its header
    let header = if name == WEIGHTS { before * 3 / 4 } else { before };
    changes.iter().for_each(|change| change.apply(&mut bytes, header));
    if mend && bytes.len() >= 8 {
        mend_length(&mut bytes, before);
    }
    fs::write(&path, &bytes).unwrap();
    if let Err(message) = load(family, folder.path()) {
        let names_file =
            [CONFIG, "generation_config.json", WEIGHTS].iter().any(|name| message.contains(name));
        assert!(names_file || message == NAN, "{message}");
    }
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    proptest::collection::vec(Change::any(), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_a_checkpoint_brings_the_program_down(
        bert in any::<bool>(), changes in changes(), mend in any::<bool>()
    ) {
        let family = if bert { Family::Bert } else { Family::Marian };
        survives(family, WEIGHTS, &changes, mend);
    }

    #[test]
    fn no_change_of_a_configuration_brings_the_program_down(bert in any::<bool>(), changes in changes()) {
        let family = if bert { Family::Bert } else { Family::Marian };
        survives(family, CONFIG, &changes, false);
    }

    #[test]
    fn no_change_of_a_generation_configuration_brings_the_program_down(changes in changes()) {
        survives(Family::Marian, "generation_config.json", &changes, false);
    }
}
