//! Hostile folders: forged headers, impossible or foreign configurations, and files with random changes. Each is read or refused in one
//! line that names the file; no claim of a file is trusted before it is checked.
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
const GENERATION: &str = "generation_config.json";
const WEIGHTS: &str = "model.safetensors";
const NAN: &str = "the model computes NaN: its weights are too large for the precision";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Family {
    Bert,
    Marian,
}

use Family::{Bert, Marian};

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

/// Asserts that a folder whose file `name` has another value at `entry` is refused with this reason.
fn refuse(family: Family, name: &str, (entry, value, expected): (&str, Value, &str)) {
    let folder = folder(family);
    let path = folder.path().join(name);
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json[entry] = value.clone();
    write(folder.path(), name, &json);
    let message = load(family, folder.path()).expect_err(&format!("{family:?} {entry} {value}"));
    assert!(message.contains(name) && message.contains(expected), "{entry} {value}: {message}");
}

/// Returns the error for a folder whose file `name` has these contents.
fn refusal_of_bytes(family: Family, name: &str, bytes: &[u8]) -> String {
    let folder = folder(family);
    fs::write(folder.path().join(name), bytes).unwrap();
    load(family, folder.path()).unwrap_err()
}

/// Returns the error for a safetensors file with this header and no data.
fn refusal_of_header(header: &str) -> String {
    let length = (header.len() as u64).to_le_bytes();
    refusal_of_bytes(Bert, WEIGHTS, &[length.as_slice(), header.as_bytes()].concat())
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
fn valid_folders_are_read() {
    for family in [Bert, Marian] {
        assert_eq!(load(family, folder(family).path()), Ok(()));
    }
}

#[test]
fn entries_that_no_model_can_have_are_refused_by_name() {
    for case in [
        ("pad_token_id", json!(11), "pad_token_id is not below vocab_size (11)"),
        ("num_attention_heads", json!(4), "num_attention_heads (4) does not divide hidden_size (6)"),
        ("position_embedding_type", json!("relative_key"), "only `absolute` is supported"),
        ("pruned_heads", json!({"2": [0]}), "pruned_heads: no layer 3 of `self`"),
        ("pruned_heads", json!({"0": [u64::MAX]}), "heads are numbered 1 to 3"),
        ("pruned_heads", json!({"0": [0, 1, 2], "1": [0, 1, 2]}), "no head would be left"),
        ("id2label", json!({"0": "a", "1": "b\u{1b}[2J"}), "`b\\u{1b}[2J` contains a control"),
        ("id2label", json!({"0": "no", "1": "no"}), "id2label gives two classes the same name"),
        ("id2label", json!({"0": "no", "2": "yes"}), "id2label must number its 2 classes"),
        ("id2label", json!({}), "id2label names 0 outputs"),
        ("id2label", json!({"0": "no", "1": []}), "the name of class 1 is not text"),
        ("layer_norm_eps", json!(-1e-12), "layer_norm_eps (-1e-12) must be from"),
        ("problem_type", json!("regression"), "problem_type is `regression`"),
        ("is_decoder", json!(true), "is_decoder is true"),
        ("quantization_config", json!({"bits": 4}), r#"its weights are quantised ({"bits":4})"#),
        ("layer_head_num", json!([3, 2]), "`layer_head_num` sets sizes per layer"),
        ("hidden_size", json!(1.5), "cannot parse it"),
        ("hidden_size", Value::Null, "cannot parse it"),
        ("num_hidden_layers", json!(0), "num_hidden_layers must be from 1 to"),
        ("num_hidden_layers", json!(i64::MIN), "cannot parse it"),
        ("num_attention_heads", json!(1 << 30), "num_attention_heads must be from 1 to"),
        ("max_position_embeddings", json!(-6), "would be [-6, 6], but sizes are from 1 to"),
        ("max_position_embeddings", json!(i64::MAX), "from 1 to"),
    ] {
        refuse(Bert, CONFIG, case);
    }
    for case in [
        ("encoder_ffn_dim", json!(0), "`config.json`, or from `[model]` for a new model"),
        ("dropout", json!(1), "dropout (1) must be at least 0 and below 1"),
        ("eos_token_id", json!(9), "eos_token_id is not below vocab_size (9)"),
        ("eos_token_id", json!(8), "pad_token_id and eos_token_id must differ"),
        ("decoder_attention_heads", json!(4), "decoder_attention_heads (4) does not divide d_model (6)"),
        ("decoder_vocab_size", json!(10), "decoder_vocab_size (10) differs from vocab_size (9)"),
        ("pruned_attention_heads", json!({"self": {"0": [0]}}), "no `self` attention in this model"),
        ("normalize_before", json!(true), "normalize_before is true"),
        ("add_final_layer_norm", json!(true), "add_final_layer_norm is true"),
        ("normalize_embedding", json!(true), "normalize_embedding is true"),
        ("is_encoder_decoder", json!(false), "is_encoder_decoder is false"),
        ("tie_word_embeddings", json!(false), "tie_word_embeddings is false"),
    ] {
        refuse(Marian, CONFIG, case);
    }
}

#[test]
fn a_search_that_is_not_supported_is_refused_by_name() {
    for case in [
        ("length_penalty", json!(-51), "length_penalty (-51) must be from -50 to 50"),
        ("num_beams", json!(u64::MAX), "num_beams must be from 1 to 1000"),
        ("num_beams", json!(-3), "cannot parse it"),
        ("bad_words_ids", json!([[5], [6, 7]]), "bad_words_ids: [6, 7] is not one token"),
        ("bad_words_ids", json!([[9]]), "bad_words_ids: 9 is not below vocab_size (9)"),
        ("early_stopping", json!("x".repeat(1 << 16)), "it must be true, false or \"never\""),
        ("suppress_tokens", json!(vec![7; 1 << 16]), "which is not supported"),
        ("do_sample", json!(true), "do_sample is true"),
        ("repetition_penalty", json!(1.2), "repetition_penalty is 1.2"),
        ("max_length", json!(1), "max_length must be at least 2"),
        ("eos_token_id", json!([0, 2]), "eos_token_id is [0,2], but config.json has 0"),
    ] {
        refuse(Marian, GENERATION, case);
    }
}

/// Of two names for one tensor, one would silently win; TensorFlow and separately saved encoders use other names.
#[test]
fn invalid_tensors_are_refused_by_name() {
    const BIAS: &str = "bert.embeddings.LayerNorm.bias";
    fn place<'a>(all: &'a mut [(String, Tensor)], name: &str) -> &'a mut (String, Tensor) {
        all.iter_mut().find(|(found, _)| found == name).unwrap()
    }
    fn add(all: &mut Vec<(String, Tensor)>, name: &str) {
        all.push((name.to_owned(), Tensor::zeros([6], OPTIONS)));
    }
    fn wrap(all: &mut [(String, Tensor)], prefix: &str) {
        all.iter_mut().for_each(|(name, _)| *name = format!("{prefix}{name}"));
    }
    type Change = fn(&mut Vec<(String, Tensor)>);
    let cases: [(Change, &str); 9] = [
        (|all| all.retain(|(name, _)| name != BIAS), "it lacks tensor `bert.embeddings.LayerNorm.bias`"),
        (|all| add(all, "zz\u{1b}\n"), r"it contains tensor `zz\u{1b}\n`, which"),
        (|all| place(all, BIAS).1 = Tensor::zeros([2, 3], OPTIONS), "is [2, 3], but the configuration"),
        (|all| place(all, BIAS).1 *= f64::NAN, "LayerNorm.bias` contains NaN or infinite values"),
        (|all| add(all, "bert.embeddings.LayerNorm.beta"), "which mean the same tensor"),
        (|all| add(all, "embeddings.LayerNorm.bias"), "which mean the same tensor"),
        (|all| wrap(all, "module."), "`module.`, which DataParallel adds"),
        (|all| wrap(all, "_orig_mod."), "which torch.compile adds"),
        (|all| wrap(all, "base_model.model."), "which PEFT adds"),
    ];
    for (change, expected) in cases {
        let message = with_tensors(change).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

/// transformers with PEFT would add an adapter to the full weights, so they alone are not the user's model.
#[test]
fn adapters_are_refused_alone_and_next_to_full_weights() {
    for (name, fault) in [(CONFIG, "cannot read"), (WEIGHTS, "it has no model.safetensors, and no")] {
        let folder = folder(Bert);
        fs::remove_file(folder.path().join(name)).unwrap();
        let message = load(Bert, folder.path()).unwrap_err();
        assert!(message.contains(fault), "{message}");
        fs::write(folder.path().join("adapter_config.json"), "{}").unwrap();
        let message = load(Bert, folder.path()).unwrap_err();
        assert!(message.contains("this is an adapter, not a model"), "{message}");
    }
    for name in ["adapter_model.safetensors", "adapter_model.bin"] {
        let folder = folder(Bert);
        fs::write(folder.path().join("adapter_config.json"), "{}").unwrap();
        load(Bert, folder.path()).unwrap(); // settings without an adapter
        fs::write(folder.path().join(name), "").unwrap();
        let message = load(Bert, folder.path()).unwrap_err();
        assert!(message.contains(name) && message.contains("merge_and_unload"), "{message}");
    }
}

/// Old folders of transformers contain the position ids 0, 1, 2 … as integers; integers instead of weights are refused.
#[test]
fn integers_are_ignored_unless_they_replace_weights() {
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
    assert!(message.contains("has type I64"), "{message}");
}

/// Eight-bit integers are weights only with a scale that is stored elsewhere. An empty tensor may have any shape.
#[test]
fn headers_with_other_types_and_shapes_are_refused() {
    let entry = |kind: &str, shape: &str| {
        let name = "bert.embeddings.LayerNorm.bias";
        let header = format!(r#"{{"{name}":{{"dtype":"{kind}","shape":{shape},"data_offsets":[0,0]}}}}"#);
        refusal_of_header(&header)
    };
    let quantised = entry("I8", "[0]");
    assert!(quantised.contains("LayerNorm.bias` is quantised (I8): use the model"), "{quantised}");
    let axes = format!("[0{}]", ",1".repeat(100_000));
    for shape in ["[0,9223372036854775808]", "[0,4611686018427387904,4]", &axes] {
        let message = entry("F32", shape);
        assert!(message.contains("but the configuration requires [6]"), "{message}");
    }
}

#[test]
fn torn_deep_and_endless_files_are_refused() {
    let whole = fs::read(folder(Bert).path().join(WEIGHTS)).unwrap();
    let mut torn: Vec<Vec<u8>> = [7, 100, whole.len() - 1].map(|length| whole[..length].to_vec()).into();
    torn.push([&whole[..], &[0]].concat());
    torn.extend([0, 1 << 20, u64::MAX].map(|length: u64| length.to_le_bytes().to_vec()));
    for bytes in torn {
        let message = refusal_of_bytes(Bert, WEIGHTS, &bytes);
        assert!(message.contains("is not a complete safetensors file"), "{message}");
    }
    let long = " ".repeat((1 << 24) + 1);
    for text in [&"[".repeat(1 << 20), &"{\"a\":".repeat(1 << 20), &long, "{\"vocab_size\":1e999}"] {
        for name in [CONFIG, GENERATION] {
            let message = refusal_of_bytes(Marian, name, text.as_bytes());
            let expected = if text.len() > 1 << 24 { "longer than 16777216" } else { "cannot parse it" };
            assert!(message.contains(name) && message.contains(expected), "{message}");
        }
        assert!(refusal_of_header(text).contains("is not a complete safetensors file"));
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
        assert!(load(family, folder.path()).unwrap_err().contains("lacks tensor"));
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
    fn no_change_to_a_file_crashes_the_program(
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
