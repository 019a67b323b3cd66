//! Round trips of tiny folders through GGUF files, and faulty files.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use corpus::language_tokenizer::LanguageTokenizer;
use gguf::{Precision, export, import};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};
use tempfile::TempDir;

const ROWS: usize = 400;

/// A Llama of 2 layers, 4 heads of width 8 in 2 groups, with the tokenizer `name`; `cut` lists removed heads by layer.
fn folder(at: &Path, name: &str, cut: [&[usize]; 2], entries: &Value) -> PathBuf {
    let language = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/tests/fixtures/language");
    fs::create_dir_all(at).unwrap();
    for file in ["tokenizer.json", "tokenizer_config.json"] {
        fs::copy(language.join(name).join(file), at.join(file)).unwrap();
    }
    let mut config = json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": ROWS, "hidden_size": 24, "intermediate_size": 40,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu",
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 500_000.0, "attention_bias": true, "mlp_bias": false,
        "tie_word_embeddings": false, "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
    });
    let lost = cut.iter().enumerate().filter(|(_, heads)| !heads.is_empty());
    let lost: BTreeMap<String, &[usize]> = lost.map(|(layer, heads)| (layer.to_string(), *heads)).collect();
    if !lost.is_empty() {
        config["pruned_query_heads"] = json!(lost);
    }
    config.as_object_mut().unwrap().extend(entries.as_object().unwrap().clone());
    fs::write(at.join("config.json"), config.to_string()).unwrap();
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_owned(), vec![ROWS, 24]),
        ("lm_head.weight".to_owned(), vec![ROWS, 24]),
    ];
    shapes.push(("model.norm.weight".to_owned(), vec![24]));
    let is_bare = entries["model_type"] == "mistral"; // without biases
    for (layer, heads) in cut.iter().enumerate() {
        let kept: Vec<usize> = (0..4).filter(|head| !heads.contains(head)).collect();
        let groups = kept.chunk_by(|left, right| left / 2 == right / 2).count();
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        for (part, outputs) in [("q", kept.len() * 8), ("k", groups * 8), ("v", groups * 8)] {
            shapes.push((name(&format!("self_attn.{part}_proj.weight")), vec![outputs, 24]));
            shapes.push((name(&format!("self_attn.{part}_proj.bias")), vec![outputs]));
        }
        shapes.push((name("self_attn.o_proj.weight"), vec![24, kept.len() * 8]));
        shapes.push((name("self_attn.o_proj.bias"), vec![24]));
        shapes.extend(
            [("gate", [40, 24]), ("up", [40, 24]), ("down", [24, 40])]
                .map(|(part, shape)| (name(&format!("mlp.{part}_proj.weight")), shape.to_vec())),
        );
        shapes.extend(
            ["input_layernorm", "post_attention_layernorm"]
                .map(|part| (name(&format!("{part}.weight")), vec![24])),
        );
    }
    shapes.retain(|(name, _)| !is_bare || !name.ends_with(".bias"));
    // all numbers differ, so that misplaced rows are detected
    let mut number = 0_u32;
    let mut next = || {
        number += 1;
        (number as f32).sin().to_le_bytes()
    };
    let data: Vec<(String, Vec<usize>, Vec<u8>)> = shapes
        .into_iter()
        .map(|(name, shape)| {
            let bytes = (0..shape.iter().product()).flat_map(|_| next()).collect();
            (name, shape, bytes)
        })
        .collect();
    let views = data
        .iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    safetensors::serialize_to_file(views, None, &at.join("model.safetensors")).unwrap();
    at.to_owned()
}

/// Creates such a folder with all heads.
fn plain(at: &Path, name: &str) -> PathBuf {
    folder(at, name, [&[], &[]], &json!({}))
}

fn tensors(folder: &Path) -> BTreeMap<String, (Vec<usize>, Vec<u8>)> {
    let bytes = fs::read(folder.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensors()
        .into_iter()
        .map(|(name, view)| (name, (view.shape().to_vec(), view.data().to_vec())))
        .collect()
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// In f32 the round trip preserves all bits, also of reordered queries and keys, and the settings.
#[test]
fn a_folder_comes_back_as_it_was() {
    let temporary = TempDir::new().unwrap();
    let [there, file, back] = ["there", "model.gguf", "back"].map(|name| temporary.path().join(name));
    plain(&there, "llama3");
    let exported = export(&there, &file, Precision::F32).unwrap();
    assert_eq!((exported.architecture, exported.heads), ("llama", vec![(4, 2); 2]));
    import(&file, &back, false).unwrap();
    assert!(tensors(&there) == tensors(&back), "other tensors");
    let (before, after) = (json_of(&there.join("config.json")), json_of(&back.join("config.json")));
    for (name, value) in before.as_object().unwrap() {
        assert_eq!(&after[name], value, "{name}");
    }
}

/// Layers have different numbers of heads; a layer without heads gets one of zeros only if llama.cpp needs it.
#[test]
fn layers_with_other_heads_make_the_architecture_deci() {
    let temporary = TempDir::new().unwrap();
    let export = |name: &str, cut: [&[usize]; 2]| {
        let folder = folder(&temporary.path().join(name), "gpt2", cut, &json!({}));
        export(&folder, &temporary.path().join(format!("{name}.gguf")), Precision::Q8).unwrap()
    };
    let exported = export("groups", [&[2, 3], &[]]);
    assert_eq!((exported.architecture, exported.heads), ("deci", vec![(2, 1), (4, 2)]));
    assert_eq!(export("first", [&[0, 1, 2, 3], &[1]]).heads, [(1, 1), (4, 2)]);
    let bias = export("bias", [&[1], &[0, 1, 2, 3]]);
    assert_eq!(bias.heads, [(4, 2), (1, 1)], "the bias of the output must not be lost");
    assert_eq!(export("equal", [&[0, 3], &[1, 2]]).architecture, "llama");
}

/// The imported tokenizers give the ids of llama.cpp (`fixtures/make_ids.py`).
#[test]
fn tokenisers_come_back_with_the_ids_of_llama_cpp() {
    let known: BTreeMap<String, Value> = serde_json::from_str(include_str!("fixtures/ids.json")).unwrap();
    let texts: Vec<String> = serde_json::from_value(known["texts"].clone()).unwrap();
    for (name, all) in known.iter().filter(|(name, _)| *name != "texts") {
        let temporary = TempDir::new().unwrap();
        let [file, back] = ["model.gguf", "back"].map(|name| temporary.path().join(name));
        let exported = export(&plain(&temporary.path().join("there"), name), &file, Precision::F16).unwrap();
        assert!(exported.has_tokenizer, "{name}");
        import(&file, &back, false).unwrap();
        let tokenizer = LanguageTokenizer::load(&back).unwrap();
        let adds_begin = ["llama3", "llama2"].contains(&name.as_str());
        for (text, ids) in texts.iter().zip(all.as_array().unwrap()) {
            if name == "qwen2" && text.contains('\u{301}') {
                continue; // Qwen composes letters and accents, as in its own tokenizer.json; llama.cpp does not
            }
            let mut found = tokenizer.encode(text).unwrap();
            let decoded = tokenizer.decode(&found).unwrap();
            assert_eq!(&decoded, text, "{name}");
            found.splice(0..0, tokenizer.begin().filter(|_| adds_begin));
            assert_eq!(json!(found), *ids, "{name}: {text:?}");
        }
    }
}

/// Steps that llama.cpp lacks, in otherwise supported tokenizers, would give other ids there.
#[test]
fn tokenisers_that_do_more_than_llama_cpp_are_left_out() {
    let temporary = TempDir::new().unwrap();
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let end = json!({"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}});
    let ends = json!({"type": "TemplateProcessing", "single": [text, end], "pair": [], "special_tokens": {}});
    let cases = [
        ("gpt2", "normalizer", json!({"type": "Lowercase"})),
        ("gpt2", "normalizer", json!({"type": "NFC"})),
        ("gpt2", "post_processor", ends.clone()),
        ("gpt2", "post_processor", json!({"type": "Sequence", "processors": [ends]})),
        ("llama2", "normalizer", Value::Null),
        ("llama2", "pre_tokenizer", json!({"type": "Digits", "individual_digits": true})),
        ("mistral", "normalizer", json!({"type": "Lowercase"})),
        (
            "mistral",
            "pre_tokenizer",
            json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}),
        ),
    ];
    for (number, (name, step, other)) in cases.into_iter().enumerate() {
        let folder = plain(&temporary.path().join(number.to_string()), name);
        let has_tokenizer = || {
            let file = temporary.path().join(format!("{number}.gguf"));
            export(&folder, &file, Precision::Q8).unwrap().has_tokenizer
        };
        assert!(has_tokenizer(), "{name}");
        let path = folder.join("tokenizer.json");
        let mut json = json_of(&path);
        json[step] = other;
        fs::write(&path, json.to_string()).unwrap();
        assert!(!has_tokenizer(), "{name}: {}", json[step]);
    }
}

/// transformers writes it to a separate file since version 4.57.
#[test]
fn the_template_of_chats_is_kept_from_its_own_file() {
    let temporary = TempDir::new().unwrap();
    let [there, file, back] = ["there", "model.gguf", "back"].map(|name| temporary.path().join(name));
    plain(&there, "gpt2");
    fs::write(there.join("chat_template.jinja"), "{{ messages }}").unwrap();
    export(&there, &file, Precision::Q8).unwrap();
    import(&file, &back, false).unwrap();
    assert_eq!(json_of(&back.join("tokenizer_config.json"))["chat_template"], "{{ messages }}");
}

fn refused(binary: &str, arguments: [&Path; 2]) -> String {
    let mut command = Command::cargo_bin(binary).unwrap();
    test_support::refusal(command.args(arguments))
}

#[test]
fn files_that_cannot_be_read_are_refused_in_one_line_and_leave_nothing() {
    let temporary = TempDir::new().unwrap();
    let [file, back, other] = ["model.gguf", "back", "other.gguf"].map(|name| temporary.path().join(name));
    export(&plain(&temporary.path().join("there"), "smollm"), &file, Precision::F16).unwrap();
    let bytes = fs::read(&file).unwrap();
    let place = |text: &str| bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    let patched = |place: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[place..place + new.len()].copy_from_slice(new);
        bytes
    };
    let alignment = [&b"general.alignment"[..], &[4, 0, 0, 0], &[0; 4]].concat(); // 4: the type of u32
    let heads = place("llama.attention.head_count") + "llama.attention.head_count".len() + 4;
    let kind = place("blk.0.attn_q.weight") + "blk.0.attn_q.weight".len() + 4 + 2 * 8;
    let cases = [
        (b"{}".to_vec(), "not a readable GGUF file"),
        (patched(place("\u{5}\0\0\0\0\0\0\0llama") + 8, b"gamma"), "`gamma` is not supported; expected"),
        (patched(place("smollm"), b"tekken"), "its pre-tokenizer `tekken` is not supported"),
        (patched(place("blk.0.attn_q.weight"), b"blk.0.attn_X"), "has a tensor `blk.0.attn_X.weight`"),
        (patched(place("llama.block_count"), &alignment), "its parser fails: attempt to divide by zero"),
        (patched(heads, &[254, 255, 255, 255]), "num_attention_heads must be from 1 to 1024"),
        (patched(kind, &[20]), "unknown dtype for tensor 20; expected F32"),
    ];
    for (bytes, reason) in cases {
        fs::write(&other, bytes).unwrap();
        let message = refused("import-model", [&other, &back]);
        assert!(message.contains("other.gguf") && message.contains(reason), "{message}");
        assert!(!back.exists(), "{reason}");
    }
    for cut in (0..bytes.len()).step_by(bytes.len() / 50) {
        fs::write(&other, &bytes[..cut]).unwrap();
        let message = import(&other, &back, false).unwrap_err().to_string();
        let is_named = message.contains("other.gguf") && !message.contains('\n');
        assert!(is_named && !back.exists(), "{cut}: {message}");
    }
    fs::create_dir(&back).unwrap();
    assert!(refused("import-model", [&file, &back]).contains("back` exists already"));
}

#[test]
fn models_that_llama_cpp_cannot_hold_are_refused_with_the_reason() {
    let temporary = TempDir::new().unwrap();
    let file = temporary.path().join("model.gguf");
    let all: &[usize] = &[0, 1, 2, 3];
    let cases = [
        (json!({"model_type": "qwen3"}), "has no norms of queries and keys"),
        (json!({"model_type": "mistral", "sliding_window": 32}), "sliding_window is 32"),
        (json!({"model_type": "mistral"}), "sliding_window is 4096"), // transformers' default
        (json!({"num_key_value_heads": 3}), "does not divide num_attention_heads (4)"),
        (json!({"vocab_size": 399}), "is [400, 24], but config.json asks for [399, 24]"),
    ];
    let uncut = cases.map(|(entries, reason)| ([&[][..], &[]], entries, reason));
    let headless = ([all, all], json!({}), "no head would be left in the model");
    for (number, (cut, entries, reason)) in uncut.into_iter().chain([headless]).enumerate() {
        let folder = folder(&temporary.path().join(number.to_string()), "gpt2", cut, &entries);
        let message = refused("export-gguf", [&folder, &file]);
        assert!(message.contains(reason), "{message}");
        assert!(!file.exists());
    }
    fs::write(&file, "mine").unwrap();
    let no_window = json!({"model_type": "mistral", "sliding_window": null});
    let folder = folder(&temporary.path().join("sound"), "gpt2", [&[], &[]], &no_window);
    assert!(refused("export-gguf", [&folder, &file]).contains("model.gguf` exists already"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let mut command = Command::cargo_bin("export-gguf").unwrap();
    command.args([&folder, &file]).arg("--replace").assert().success();
    assert!(fs::read(&file).unwrap().starts_with(b"GGUF"));
    let weights = folder.join("model.safetensors");
    fs::rename(&weights, folder.join("model.safetensors.index.json")).unwrap();
    let message = refused("export-gguf", [&folder, &temporary.path().join("other.gguf")]);
    assert!(message.contains("its weights are in several files: export-model writes one"), "{message}");
}

#[test]
fn fetching_a_gguf_file_makes_a_folder_of_it() {
    let temporary = TempDir::new().unwrap();
    let path = |name: &str| temporary.path().join(name);
    fs::create_dir_all(path("mirror/toy")).unwrap();
    export(&plain(&path("there"), "smollm"), &path("mirror/toy/model.gguf"), Precision::F32).unwrap();
    let source = "title = 'Toy'\nlicence = 'for tests'\nterms = 'None.'\nelsewhere = 'a mirror'\nmodel_folder = 'toy-model'";
    let list = |files: &str| {
        fs::write(path("sources.toml"), format!("[toy]\n{source}\n[toy.files]\n{files}\n")).unwrap()
    };
    let fetch = || {
        let mut command = test_support::program("fetch", temporary.path());
        command.args(["toy", "--mirror", "mirror", "--sources", "sources.toml"]);
        command
    };
    for files in ["'vocab.txt' = 'unverified'", "'a.gguf' = 'unverified'\n'b.gguf' = 'unverified'"] {
        list(files);
        assert!(test_support::refusal(&mut fetch()).contains("`model_folder` needs one GGUF file"));
    }
    list("'model.gguf' = 'unverified'");
    for ending in ["`\n", "` (exists already; kept)\n"] {
        fetch().assert().success().stderr(predicates::str::ends_with(format!("data/toy-model{ending}")));
        assert!(tensors(&path("data/toy-model")) == tensors(&path("there")), "other tensors");
    }
}
