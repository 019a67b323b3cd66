//! Hostile folders: forged headers, impossible or foreign configurations, and files with random changes. Each is read or refused in one
//! line that names the file; no claim of a file is trusted before it is checked.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::error::Error;
use std::fs;
use std::path::Path;

use core_masking::{
    BeamSearch, Classifier, ClassifierConfig, GatedModel, Gates, LanguageConfig, ModelDropout, Translator,
    TranslatorConfig, Weights,
};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const CONFIG: &str = "config.json";
const GENERATION: &str = "generation_config.json";
const WEIGHTS: &str = "model.safetensors";
const NAN: &str = "the model computes NaN: its weights are too large for the precision";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Family {
    Bert,
    Marian,
    /// The source vocabulary is larger than the target's.
    Fsmt,
}

use Family::{Bert, Fsmt, Marian};

impl Family {
    fn config(self) -> Value {
        match self {
            Bert => json!({
                "model_type": "bert", "vocab_size": 11, "hidden_size": 6, "num_hidden_layers": 2,
                "num_attention_heads": 3, "intermediate_size": 5, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
                "max_position_embeddings": 8, "type_vocab_size": 2, "pad_token_id": 0, "pruned_heads": {"1": [0, 2]},
                "id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1},
            }),
            Marian => json!({
                "model_type": "marian", "vocab_size": 9, "d_model": 6, "encoder_layers": 1,
                "encoder_attention_heads": 3, "encoder_ffn_dim": 5, "decoder_layers": 2, "decoder_attention_heads": 2,
                "decoder_ffn_dim": 7, "activation_function": "swish", "max_position_embeddings": 8, "dropout": 0.1,
                "scale_embedding": true, "pad_token_id": 8, "eos_token_id": 0, "decoder_start_token_id": 8,
                "forced_eos_token_id": 0, "pruned_attention_heads": {"enc-dec": {"1": [0]}},
            }),
            Fsmt => json!({
                "model_type": "fsmt", "src_vocab_size": 12, "tgt_vocab_size": 9, "d_model": 6, "encoder_layers": 1,
                "encoder_attention_heads": 3, "encoder_ffn_dim": 5, "decoder_layers": 2, "decoder_attention_heads": 2,
                "decoder_ffn_dim": 7, "max_position_embeddings": 8, "max_length": 6,
            }),
        }
    }
}

fn generation_config() -> Value {
    json!({
        "num_beams": 3, "max_length": 6, "length_penalty": 0.6, "early_stopping": "never",
        "bad_words_ids": [[8]], "renormalize_logits": true, "forced_eos_token_id": 0, "eos_token_id": 0,
        "pad_token_id": 8, "decoder_start_token_id": 8, "min_length": 0,
    })
}

/// Creates a valid folder of two or three kilobytes.
fn folder(family: Family) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), CONFIG, &family.config());
    let config = folder.path().join(CONFIG);
    if family == Bert {
        let config = ClassifierConfig::read(&config).unwrap();
        Classifier::random(config, 3, OPTIONS).unwrap().save(folder.path()).unwrap();
    } else {
        let config = TranslatorConfig::read(&config).unwrap();
        Translator::random(config, 3, OPTIONS).unwrap().save(folder.path()).unwrap();
    }
    if family == Marian {
        write(folder.path(), GENERATION, &generation_config());
    }
    folder
}

fn write(folder: &Path, name: &str, json: &Value) {
    fs::write(folder.join(name), json.to_string()).unwrap();
}

/// Loads the folder and uses the model once; returns the whole message of an error, as binaries print it.
fn load(family: Family, folder: &Path) -> Result<(), String> {
    let used = || {
        if family == Bert {
            let model = Classifier::load(folder, OPTIONS)?;
            let batch = model.batch(&[(&[0], &[0])]).unwrap();
            let _ = model.forward(&batch, &Gates::open(&model.layout(), OPTIONS), &ModelDropout::OFF);
        } else {
            let model = Translator::load(folder, OPTIONS)?;
            let search = BeamSearch::read(folder, model.config())?;
            search.translate(&model, &[&[0]], &Gates::open(&model.layout(), OPTIONS))?;
        }
        Ok(())
    };
    used().map_err(|error: core_masking::Error| {
        let source = error.source().map(|source| format!(": {source}"));
        let message = error.to_string() + &source.unwrap_or_default();
        assert!(!message.chars().any(char::is_control) && message.chars().count() < 1000, "{message:?}");
        let names_file = [CONFIG, GENERATION, WEIGHTS].iter().any(|name| message.contains(name));
        assert!(names_file || message == NAN, "{message}");
        message
    })
}

/// Returns the error for a folder whose file `name` has another value at `entry`.
fn refusal(family: Family, name: &str, entry: &str, value: &Value) -> String {
    let folder = folder(family);
    let path = folder.path().join(name);
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json[entry] = value.clone();
    write(folder.path(), name, &json);
    let message = load(family, folder.path()).expect_err(&format!("{family:?} {entry} {value}"));
    assert!(message.contains(name), "{message}");
    message
}

/// Returns the error for a folder whose file `name` has these contents.
fn refusal_of_bytes(family: Family, name: &str, bytes: &[u8]) -> String {
    let folder = folder(family);
    fs::write(folder.path().join(name), bytes).unwrap();
    load(family, folder.path()).unwrap_err()
}

/// Returns the error for a safetensors file with this header and this many bytes of data.
fn refusal_of_header(header: &str, data: usize) -> String {
    let length = (header.len() as u64).to_le_bytes();
    refusal_of_bytes(Bert, WEIGHTS, &[length.as_slice(), header.as_bytes(), &vec![0; data]].concat())
}

/// Loads a classifier's folder with changed tensors.
fn with_tensors(change: impl FnOnce(&mut Vec<(String, Tensor)>)) -> Result<(), String> {
    let folder = folder(Bert);
    let path = folder.path().join(WEIGHTS);
    let weights = Weights::read(&path, OPTIONS).unwrap();
    let mut tensors: Vec<_> = weights.iter().map(|(name, tensor)| (name.to_owned(), tensor.copy())).collect();
    change(&mut tensors);
    Weights::from_tensors(tensors).write(&path).unwrap();
    load(Bert, folder.path())
}

#[test]
fn sound_folders_are_read() {
    for family in [Bert, Marian, Fsmt] {
        assert_eq!(load(family, folder(family).path()), Ok(()));
    }
}

#[test]
fn entries_that_no_model_can_have_are_refused_by_name() {
    let mut cases = vec![
        (Bert, "pad_token_id", json!(11), "pad_token_id is not below vocab_size (11)"),
        (Bert, "num_attention_heads", json!(4), "num_attention_heads (4) does not divide hidden_size (6)"),
        (Bert, "vocab_size", json!(12), "`bert.embeddings.word_embeddings.weight` is [11, 6], but"),
        (
            Bert,
            "position_embedding_type",
            json!("relative_key"),
            "is `relative_key`; only `absolute` is supported",
        ),
        (Bert, "pruned_heads", json!({"2": [0]}), "pruned_heads: no layer 3 of `self`"),
        (Bert, "pruned_heads", json!({"0": [u64::MAX]}), "heads are numbered 1 to 3"),
        (
            Bert,
            "pruned_heads",
            json!({"0": [0, 1, 2], "1": [0, 1, 2]}),
            "pruned_heads: no head would be left",
        ),
        (Bert, "id2label", json!({"0": "a", "1": "b\u{1b}[2J"}), "`b\\u{1b}[2J` holds a control"),
        (Bert, "id2label", json!({"0": "no", "1": "no"}), "id2label gives two classes the same name"),
        (Bert, "id2label", json!({"0": "no", "2": "yes"}), "id2label must number its 2 classes from 0 to 1"),
        (Bert, "id2label", json!({}), "id2label names 0 outputs; there are from 1 to 65536"),
        (Bert, "layer_norm_eps", json!(-1e-12), "layer_norm_eps (-1e-12) must be from 1e-30 to 1.0"),
        (Bert, "id2label", json!({"0": "no", "1": []}), "the name of class 1 is no text"),
        (Bert, "problem_type", json!("regression"), "problem_type is `regression`; only `single_label"),
        (Bert, "is_decoder", json!(true), "is_decoder is true, but only encoders are supported"),
        (
            Bert,
            "model_type",
            json!("gpt2"),
            "it must be `bert` or `roberta` or `xlm-roberta` or `distilbert` or ",
        ),
        (
            Bert,
            "quantization_config",
            json!({"bits": 4}),
            r#"its weights are quantised ({"bits":4}): use the model that it was made from"#,
        ),
        (Bert, "layer_head_num", json!([3, 2]), "`layer_head_num` gives layers sizes of their own"),
        (
            Fsmt,
            "src_vocab_size",
            json!(-1),
            "tensor `model.encoder.embed_tokens.weight` would be [-1, 6], but sizes are from 1 to",
        ),
        (Marian, "encoder_ffn_dim", json!(0), "`config.json`, or from `[model]` for a new model"),
        (Fsmt, "bad_words_ids", json!([[9]]), "bad_words_ids: 9 is not below tgt_vocab_size (9)"),
        (Marian, "dropout", json!(1), "dropout (1) must be at least 0 and below 1"),
        (Marian, "eos_token_id", json!(9), "eos_token_id is not below vocab_size (9)"),
        (Marian, "eos_token_id", json!(8), "pad_token_id and eos_token_id must differ"),
        (
            Marian,
            "decoder_attention_heads",
            json!(4),
            "decoder_attention_heads (4) does not divide d_model (6)",
        ),
        (Marian, "decoder_vocab_size", json!(10), "decoder_vocab_size (10) differs from vocab_size (9)"),
        (Marian, "pruned_attention_heads", json!({"dec-dec": {"2": [0]}}), "no layer 3 of `dec-dec`"),
        (Marian, "pruned_attention_heads", json!({"self": {"0": [0]}}), "no `self` attention in this model"),
    ];
    for entry in ["hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"] {
        for value in [json!(0), json!(-6), json!(1 << 30), json!(i64::MAX), json!(i64::MIN)] {
            let message = refusal(Bert, CONFIG, entry, &value);
            let is_range = message.contains("from 1 to") || message.contains("does not divide");
            assert!(is_range || message.contains("cannot understand it"), "{entry} {value}: {message}");
        }
        cases.extend(
            [json!(1.5), json!("six"), Value::Null].map(|value| (Bert, entry, value, "cannot understand it")),
        );
    }
    for (entry, value) in [
        ("normalize_before", true),
        ("add_final_layer_norm", true),
        ("normalize_embedding", true),
        ("is_encoder_decoder", false),
        ("tie_word_embeddings", false),
    ] {
        let message = refusal(Marian, CONFIG, entry, &json!(value));
        assert!(message.ends_with(&format!("{entry} is {value}, which is not supported")), "{message}");
    }
    for (family, entry, value, expected) in cases {
        let folder = folder(family);
        let mut config = family.config();
        config[entry] = value.clone();
        write(folder.path(), CONFIG, &config);
        let message = load(family, folder.path()).expect_err(&format!("{entry} {value}"));
        assert!(message.contains(expected), "{entry} {value}: {message}");
    }
}

/// Numbers that no tensor confirms.
#[test]
fn numbers_that_no_language_model_can_have_are_refused_by_name() {
    let read = |family: &str, entry: &str, value: Value| {
        let folder = tempfile::tempdir().unwrap();
        let mut config = json!({
            "model_type": family, "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 5,
        });
        config[entry] = value;
        write(folder.path(), CONFIG, &config);
        LanguageConfig::read(&folder.path().join(CONFIG)).map(drop).map_err(|error| error.to_string())
    };
    let llama3 = |[factor, low, high, length]: [u32; 4]| {
        json!({
            "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
            "original_max_position_embeddings": length,
        })
    };
    for (entry, value, expected) in [
        ("sliding_window", json!(0), "sliding_window (0) must be at least 1"),
        ("sliding_window", json!(i64::MIN), "sliding_window (-9223372036854775808) must be at least 1"),
        ("rope_theta", json!(0), "rope_theta (0.0) must be from 1.0 to 1e16"),
        ("rms_norm_eps", json!(-1e-6), "rms_norm_eps (-1e-6) must be from 1e-30 to 1.0"),
        (
            "rope_scaling",
            json!({"rope_type": "linear", "factor": 0}),
            "rope_scaling.factor (0.0) must be from 1e-6 to 1e16",
        ),
        (
            "rope_scaling",
            llama3([8, 4, 4, 100]),
            "rope_scaling.low_freq_factor (4.0) must be below high_freq_factor (4.0)",
        ),
        (
            "rope_scaling",
            llama3([8, 1, 4, 0]),
            "rope_scaling.original_max_position_embeddings (0.0) must be from 1e-6 to 1e16",
        ),
    ] {
        let message = read("mistral", entry, value).unwrap_err();
        assert!(message.contains(CONFIG) && message.ends_with(expected), "{message}");
    }
    // layers of this family have a window only with `use_sliding_window`
    assert_eq!(read("qwen2", "sliding_window", json!(0)), Ok(()));
}

/// As written by hand: keys as strings, and names that are numbers or numbers as strings.
#[test]
fn names_of_classes_may_be_numbers() {
    for (names, expected) in [
        (json!({"0": "bad", "1": "good"}), ["bad", "good"]),
        (json!({"0": 1, "1": 0}), ["1", "0"]),
        (json!({"0": "1", "1": "2"}), ["1", "2"]),
    ] {
        let folder = folder(Bert);
        let mut config = Bert.config();
        config["id2label"] = names;
        config["label2id"] = json!({"1": "0"});
        write(folder.path(), CONFIG, &config);
        assert_eq!(load(Bert, folder.path()), Ok(()));
        let read = ClassifierConfig::read(&folder.path().join(CONFIG)).unwrap();
        assert_eq!((read.labels(), read.label2id[expected[1]]), (expected.map(str::to_owned).to_vec(), 1));
    }
}

#[test]
fn a_search_that_is_not_supported_is_refused_by_name() {
    for (entry, value, expected) in [
        ("length_penalty", json!(-51), "length_penalty (-51) must be from -50 to 50"),
        ("num_beams", json!(u64::MAX), "num_beams must be from 1 to 1000"),
        ("num_beams", json!(-3), "cannot understand it"),
        (
            "bad_words_ids",
            json!([[5], [6, 7]]),
            "bad_words_ids: [6, 7] is not one token, which is not supported",
        ),
        ("early_stopping", json!("x".repeat(1 << 16)), "it must be true, false or \"never\""),
        ("suppress_tokens", json!(vec![7; 1 << 16]), "which is not supported"),
        ("do_sample", json!(true), "do_sample is true, which is not supported"),
        ("repetition_penalty", json!(1.2), "repetition_penalty is 1.2, which is not supported"),
        ("max_length", json!(1), "max_length must be at least 2, and max_new_tokens at least 1"),
        ("eos_token_id", json!(3), "eos_token_id is 3, but config.json has 0"),
        ("eos_token_id", json!([0, 2]), "eos_token_id is [0,2], but config.json has 0"),
    ] {
        let message = refusal(Marian, GENERATION, entry, &value);
        assert!(message.contains(expected), "{message}");
    }
}

/// One would silently win; TensorFlow and separately saved encoders use other names.
#[test]
fn tensors_at_fault_are_refused_by_name() {
    const BIAS: &str = "bert.embeddings.LayerNorm.bias";
    fn place<'a>(all: &'a mut [(String, Tensor)], name: &str) -> &'a mut (String, Tensor) {
        all.iter_mut().find(|(found, _)| found == name).unwrap()
    }
    type Change = fn(&mut Vec<(String, Tensor)>);
    let cases: [(Change, &str); 9] = [
        (|all| all.retain(|(name, _)| name != BIAS), "it lacks tensor `bert.embeddings.LayerNorm.bias`"),
        (
            |all| all.push(("zz\u{1b}\n".to_owned(), Tensor::from(1.0_f32))),
            r"it holds tensor `zz\u{1b}\n`, which",
        ),
        (
            |all| place(all, BIAS).1 = Tensor::zeros([5], OPTIONS),
            "is [5], but the configuration asks for [6]",
        ),
        (|all| place(all, BIAS).1 *= f64::NAN, "LayerNorm.bias` holds NaN or infinite values"),
        (
            |all| all.push(("bert.embeddings.LayerNorm.beta".to_owned(), Tensor::zeros([6], OPTIONS))),
            "which mean one tensor",
        ),
        (
            |all| all.push(("embeddings.LayerNorm.bias".to_owned(), Tensor::zeros([6], OPTIONS))),
            "which mean one tensor",
        ),
        (
            |all| all.iter_mut().for_each(|(name, _)| *name = format!("module.{name}")),
            "`module.`, as DataParallel wraps",
        ),
        (
            |all| all.iter_mut().for_each(|(name, _)| *name = format!("_orig_mod.{name}")),
            "as torch.compile wraps a model",
        ),
        (
            |all| place(all, BIAS).0 = format!("base_model.model.{BIAS}"),
            "as PEFT wraps a model: save the model inside it",
        ),
    ];
    for (change, expected) in cases {
        let message = with_tensors(change).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_adapter_is_named_as_one() {
    for (name, fault) in [(CONFIG, "cannot read"), (WEIGHTS, "it must have a model.safetensors, or")] {
        let folder = folder(Bert);
        fs::remove_file(folder.path().join(name)).unwrap();
        let message = load(Bert, folder.path()).unwrap_err();
        assert!(message.contains(fault), "{message}");
        fs::write(folder.path().join("adapter_config.json"), "{}").unwrap();
        let message = load(Bert, folder.path()).unwrap_err();
        assert!(message.contains("this is an adapter and no model"), "{message}");
    }
}

/// transformers with PEFT would add the adapter to the full weights, so they alone are not the user's model.
#[test]
fn an_adapter_next_to_full_weights_is_refused() {
    for name in ["adapter_model.safetensors", "adapter_model.bin"] {
        let folder = folder(Bert);
        fs::write(folder.path().join("adapter_config.json"), "{}").unwrap();
        load(Bert, folder.path()).unwrap(); // settings without an adapter
        fs::write(folder.path().join(name), "").unwrap();
        let message = load(Bert, folder.path()).unwrap_err();
        let path = folder.path().join(name).display().to_string();
        for part in [&*path, "would not be measured", "merge_and_unload", "move it and `adapter_config.json`"]
        {
            assert!(message.contains(part), "{message}");
        }
    }
}

/// Old folders of transformers contain the position ids 0, 1, 2 … as integers; integers instead of weights are refused.
#[test]
fn integers_are_ignored_where_nothing_is_read_from_them() {
    let with_integers = |name: &str| {
        let folder = folder(Bert);
        let path = folder.path().join(WEIGHTS);
        let bytes = fs::read(&path).unwrap();
        let integers = [0; 6 * 8];
        let view = TensorView::new(Dtype::I64, vec![6], &integers).unwrap();
        let mut tensors = SafeTensors::deserialize(&bytes).unwrap().tensors();
        tensors.retain(|(other, _)| other != name);
        tensors.push((name.to_owned(), view));
        fs::write(&path, safetensors::serialize(tensors, None).unwrap()).unwrap();
        load(Bert, folder.path())
    };
    assert_eq!(with_integers("bert.embeddings.position_ids"), Ok(()));
    let message = with_integers("bert.embeddings.LayerNorm.bias").unwrap_err();
    assert!(message.ends_with("has type I64; F64, F32, F16 and BF16 are understood"), "{message}");
}

/// Eight-bit integers are weights only with a scale that is stored elsewhere. An empty tensor may have any shape.
#[test]
fn headers_with_other_types_and_shapes() {
    let entry = |name: &str, kind: &str, shape: &str| {
        refusal_of_header(
            &format!(r#"{{"{name}":{{"dtype":"{kind}","shape":{shape},"data_offsets":[0,0]}}}}"#),
            0,
        )
    };
    let quantised = entry("bert.embeddings.LayerNorm.bias", "I8", "[0]");
    assert!(quantised.contains("LayerNorm.bias` is quantised (I8): use the model"), "{quantised}");
    let axes = format!("[0{}]", ",1".repeat(100_000));
    for shape in ["[0,9223372036854775808]", "[0,4611686018427387904,4]", &axes] {
        let message = entry("bert.embeddings.LayerNorm.bias", "F32", shape);
        assert!(message.contains("but the configuration asks for [6]"), "{message}");
    }
    let name = "\\u001b[2Jx\\n".repeat(100);
    let offset =
        refusal_of_header(&format!(r#"{{"{name}":{{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}}}"#), 8);
    assert!(offset.contains(r"\u{1b}[2Jx\n"), "{offset}");
}

#[test]
fn torn_deep_and_endless_files_are_refused() {
    let whole = fs::read(folder(Bert).path().join(WEIGHTS)).unwrap();
    let mut torn: Vec<Vec<u8>> =
        [0, 7, 9, 100, whole.len() - 1].map(|length| whole[..length].to_vec()).into();
    torn.push([&whole[..], &[0]].concat());
    torn.extend([0, 1 << 20, 100_000_001, u64::MAX].map(|length: u64| length.to_le_bytes().to_vec()));
    for bytes in torn {
        let message = refusal_of_bytes(Bert, WEIGHTS, &bytes);
        assert!(message.contains("is not a complete safetensors file"), "{message}");
    }
    let long = " ".repeat((1 << 24) + 1);
    for text in [&"[".repeat(1 << 20), &"{\"a\":".repeat(1 << 20), &long, "{\"vocab_size\":1e999}"] {
        for name in [CONFIG, GENERATION] {
            let message = refusal_of_bytes(Marian, name, text.as_bytes());
            let is_named =
                message.contains("cannot understand it") || message.contains("longer than 16777216 bytes");
            assert!(is_named && message.contains(name), "{message}");
        }
        assert!(refusal_of_header(text, 0).contains("is not a complete safetensors file"));
    }
}

/// Built from the configuration these would take 6 and 14 GB, and the last one more than any memory; the file contains one number.
#[test]
fn sizes_are_compared_before_anything_is_built() {
    for (family, width) in [(Bert, "hidden_size"), (Marian, "d_model")] {
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
    // positions are computed, so no tensor in the file confirms their number
    let mut config: TranslatorConfig = serde_json::from_value(Marian.config()).unwrap();
    (config.d_model, config.max_position_embeddings) = (65_532, 65_536);
    let expected = "max_position_embeddings must be from 1 to 1024 for a d_model of 65532";
    assert_eq!(config.validate(), Err(expected.to_owned()));
    let mut config: ClassifierConfig = serde_json::from_value(Bert.config()).unwrap();
    (config.vocab_size, config.hidden_size, config.num_hidden_layers) = (1 << 24, 3 << 12, 256);
    assert!(config.validate().unwrap_err().ends_with("parameters; at most 137438953472 are allowed"));
}

#[cfg(unix)]
#[test]
fn a_folder_or_device_in_the_place_of_a_file_is_refused() {
    for name in [CONFIG, GENERATION, WEIGHTS] {
        let folder = folder(Marian);
        let path = folder.path().join(name);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(load(Marian, folder.path()).unwrap_err().ends_with("not a regular file"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(load(Marian, folder.path()).unwrap_err().ends_with("not a regular file"));
    }
}

/// They are finite, so reading them succeeds.
#[test]
fn weights_that_overflow_in_use_are_refused() {
    let folder = folder(Marian);
    let path = folder.path().join(WEIGHTS);
    let weights = Weights::read(&path, OPTIONS).unwrap();
    let huge = weights.iter().map(|(name, tensor)| (name.to_owned(), tensor * 1e38));
    Weights::from_tensors(huge).write(&path).unwrap();
    assert_eq!(load(Marian, folder.path()), Err(NAN.to_owned()));
}

const NUMBERS: [&str; 10] =
    ["0", "-1", "7", "65536", "1e999", "1.5", "null", "\"\"", "9223372036854775808", "18446744073709551615"];

/// Replaces the first number after `place`, but not the header length.
fn replace_number(bytes: &mut Vec<u8>, place: usize, number: &str) {
    let start = place.max(8);
    let Some(start) = bytes.iter().skip(start).position(u8::is_ascii_digit).map(|found| start + found) else {
        return;
    };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + digits, number.bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// A changed, missing or repeated byte, a truncated file, or another number, in the part that describes the file.
    #[test]
    fn no_change_of_a_file_brings_the_program_down(
        case in 0..5_usize, place in any::<proptest::sample::Index>(), change in 0..6_usize, byte in any::<u8>(),
        number in proptest::sample::select(&NUMBERS[..]),
    ) {
        let (family, name) =
            [(Bert, CONFIG), (Bert, WEIGHTS), (Marian, CONFIG), (Marian, WEIGHTS), (Marian, GENERATION)][case];
        let folder = folder(family);
        let path = folder.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        let before = bytes.len();
        // three quarters of a tiny checkpoint are its header
        let place = place.index(if name == WEIGHTS { before * 3 / 4 } else { before });
        match change {
            0 => bytes[place] = byte,
            1 => bytes.insert(place, byte),
            2 => drop(bytes.remove(place)),
            3 => bytes.truncate(place),
            _ => replace_number(&mut bytes, place, number),
        }
        if name == WEIGHTS && change > 3 {
            // the header length is corrected, so that the changed number is what gets tested
            let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) + bytes.len() as u64 - before as u64;
            bytes[..8].copy_from_slice(&header.to_le_bytes());
        }
        fs::write(&path, &bytes).unwrap();
        let _ = load(family, folder.path());
    }
}
