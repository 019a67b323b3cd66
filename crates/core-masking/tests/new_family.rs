//! What a new family requires: a table of names and choices, and an entry in a list of families. This one has no name in common with BERT,
//! but computes what BERT computes.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;

use core_masking::classifier::{
    ClassifierFamily, ClassifierHead, ClassifierNames, HeadActivation, PositionStart,
};
use core_masking::families::ConfigKeys;
use core_masking::{
    Classifier, Fused, GatedModel, Gates, HeadSet, LanguageModel, ModelDropout, Removal, Storage, Weights,
};
use serde_json::Value;
use tch::{Device, Kind, Tensor};
use test_support::copy_files;

static TOY: ClassifierFamily = ClassifierFamily {
    model_type: "toy",
    architecture: "ToyForSequenceClassification",
    keys: ConfigKeys {
        entries: &[("hidden_size", Some("width")), ("layer_norm_eps", None)],
        defaults: r#"{"type_vocab_size": 2}"#,
    },
    names: ClassifierNames {
        prefix: "toy",
        words: "tokens",
        positions: Some("places"),
        patches: None,
        segments: Some("parts"),
        embedding_norm: "norm",
        embedding_map: None,
        distances: None,
        layers: "blocks",
        projections: ["q", "k", "v", "o"],
        attention_norm: "norm1",
        feed_forward: ["up", "down"],
        norm: "norm2",
    },
    stack: None,
    storage: Storage {
        transposed: &["qkv", "up", "down"],
        fused: &[Fused { name: "qkv", parts: &["q", "k", "v"], by_head: false }],
    },
    shares_layers: false,
    supported: "{}",
    positions: PositionStart::Zero,
    head: ClassifierHead {
        first: Some("pool"),
        activation: HeadActivation::Tanh,
        norm: None,
        last: "out",
        drops_input: false,
    },
    token_head: ClassifierHead::OF_TOKENS,
    unused: &["pretraining."],
};

/// Names of BERT's tensors in this family.
const RENAMED: [(&str, &str); 14] = [
    ("bert.embeddings.word_embeddings", "toy.tokens"),
    ("bert.embeddings.position_embeddings", "toy.places"),
    ("bert.embeddings.token_type_embeddings", "toy.parts"),
    ("bert.embeddings.LayerNorm", "toy.norm"),
    ("bert.encoder.layer", "toy.blocks"),
    ("attention.self.query", "q"),
    ("attention.self.key", "k"),
    ("attention.self.value", "v"),
    ("attention.output.dense", "o"),
    ("attention.output.LayerNorm", "norm1"),
    ("intermediate.dense", "up"),
    ("output.dense", "down"),
    ("output.LayerNorm", "norm2"),
    ("bert.pooler.dense", "pool"),
];

/// Fuses query, key and value, and transposes these and the feed-forward maps to `[in, out]`.
fn fused(mut tensors: BTreeMap<String, Tensor>) -> Weights {
    for layer in (0..).map(|layer| format!("toy.blocks.{layer}.")) {
        if !tensors.contains_key(&format!("{layer}q.weight")) {
            return Weights::from_tensors(tensors);
        }
        for kind in ["weight", "bias"] {
            let parts = ["q", "k", "v"].map(|part| tensors.remove(&format!("{layer}{part}.{kind}")).unwrap());
            tensors.insert(format!("{layer}qkv.{kind}"), Tensor::cat(&parts, 0));
        }
        for map in ["qkv", "up", "down"] {
            let stored = tensors.get_mut(&format!("{layer}{map}.weight")).unwrap();
            *stored = stored.tr().contiguous();
        }
    }
    unreachable!("a model has an end")
}

#[test]
fn a_family_is_a_table_and_all_that_is_done_to_heads_works_on_it() {
    let options = (Kind::Float, Device::Cpu);
    let bert = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support/golden/bert-random");
    let folder = tempfile::tempdir().unwrap();
    let own_name =
        |name: &str| RENAMED.iter().fold(name.to_owned(), |name, (theirs, own)| name.replace(theirs, own));
    let tensors = Weights::read(&bert.join("model.safetensors"), options).unwrap();
    let own = tensors
        .iter()
        .map(|(name, tensor)| (own_name(name).replace("classifier", "out"), tensor.shallow_clone()));
    fused(own.collect()).write(&folder.path().join("model.safetensors")).unwrap();
    let mut config: Value = serde_json::from_slice(&fs::read(bert.join("config.json")).unwrap()).unwrap();
    config["model_type"] = "toy".into();
    config["width"] = config["hidden_size"].take();
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();

    let model = Classifier::load_as(&[&TOY], folder.path(), options).unwrap();
    let expected = Classifier::load(&bert, options).unwrap();
    let head: HeadSet = "self:2:3".parse().unwrap();
    let masked = Gates::masking(&model.layout(), std::slice::from_ref(&head), options).unwrap();
    assert_eq!(model.probe(&masked), expected.probe(&masked));
    model.check_gates().unwrap();
    let cut = model.without_heads(&head, Removal::Cut).unwrap();
    let gap = (cut.probe(&Gates::open(&cut.layout(), options)) - model.probe(&masked)).abs().max();
    assert!(gap.double_value(&[]) < 1e-5, "{gap:?}");
    let texts = model.batch(&[(&[1, 4, 2], &[0, 0, 1])]).unwrap();
    let variants = model.variants(&[HeadSet::none(), head], false).unwrap();
    let (swept, _) = model.sweep(&texts, &variants, 1, None);
    let alone = model.forward(&texts, &masked, &ModelDropout::OFF);
    assert!((&swept[1] - alone).abs().max().double_value(&[]) < 1e-5);

    let saved = tempfile::tempdir().unwrap();
    cut.save(saved.path()).unwrap();
    let stored = Weights::read(&saved.path().join("model.safetensors"), options).unwrap();
    let width = model.config().hidden_size;
    assert_eq!(stored.get("toy.blocks.0.qkv.weight").unwrap().size(), [width, 3 * width]);
    assert_eq!(Classifier::load_as(&[&TOY], saved.path(), options).unwrap().layout(), cut.layout());
    let refusal = Classifier::load(saved.path(), options).unwrap_err().to_string();
    assert!(refusal.contains("model_type is `toy`, but it must be `bert` or `roberta`"), "{refusal}");
}

/// A Llama under another name, unchanged and with an extra tensor.
#[test]
fn an_unknown_family_is_compared_with_those_that_are_known() {
    let llama = test_support::golden("families/llama").unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy_files(&llama, folder.path());
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["model_type"] = "llamoid".into();
    fs::write(&path, config.to_string()).unwrap();
    let options = (Kind::Float, Device::Cpu);
    let refusal = || LanguageModel::load(folder.path(), options).unwrap_err().to_string();
    let same = refusal();
    assert!(same.contains("model_type is `llamoid`, but it must be `gpt2` or"), "{same}");
    assert!(
        same.ends_with("; its tensors have the names and shapes of `llama`, but what it computes may differ"),
        "{same}"
    );

    let file = folder.path().join("model.safetensors");
    let mut weights = Weights::read(&file, options).unwrap();
    let norm = weights.remove("model.norm.weight").unwrap();
    let more = Weights::from_tensors(
        weights
            .iter()
            .map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()))
            .chain([("model.last_norm.weight".to_owned(), norm)]),
    );
    more.write(&file).unwrap();
    let other = refusal();
    let differs = "; nearest is `llama`, with 1 tensor missing or of another shape, such as `model.norm.weight` and 1 tensor unknown, such as \
                   `model.last_norm.weight`";
    assert!(other.ends_with(differs), "{other}");
}
