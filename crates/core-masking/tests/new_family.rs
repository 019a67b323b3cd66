//! A new family needs a table of names and choices, and an entry in a list of families. This one computes what BERT computes, under other
//! names and with fused and transposed maps.
use core_masking::{Classifier, GatedModel, Gates, HeadSet, ModelConfig, Removal, Weights};
use families::tables::{
    ClassifierFamily, ClassifierHead, ClassifierNames, ConfigKeys, HeadActivation, PositionStart,
};
use families::{Fused, Storage};
use serde_json::{Value, json};
use tch::{Device, Kind};

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

#[test]
fn a_family_is_a_table_and_all_that_is_done_to_heads_works_on_it() {
    let options = (Kind::Float, Device::Cpu);
    let bert = Classifier::load(&test_support::golden("bert-random").unwrap(), options).unwrap();
    let mut config = bert.config().clone();
    (config.family, config.model_type) = (&TOY, "toy".to_owned());
    let names = bert.config().inventory().into_iter().zip(config.inventory());
    let tensors = names.map(|((theirs, _), (own, _))| (own, bert.weights().get(&theirs).unwrap()));
    let model = Classifier::new(config, Weights::from_tensors(tensors)).unwrap();

    let head: HeadSet = "self:2:3".parse().unwrap();
    let masked = Gates::masking(&model.layout(), std::slice::from_ref(&head), options).unwrap();
    assert_eq!(model.probe(&masked), bert.probe(&masked));
    model.check_gates().unwrap();
    let cut = model.without_heads(&head, Removal::Cut).unwrap();
    let gap = (cut.probe(&cut.open()) - model.probe(&masked)).abs().max().double_value(&[]);
    assert!(gap < 1e-5, "{gap:e}");

    let folder = tempfile::tempdir().unwrap();
    cut.save(folder.path()).unwrap();
    let stored = Weights::read(&folder.path().join("model.safetensors"), options).unwrap();
    let sizes = [0, 1].map(|layer| stored.get(&format!("toy.blocks.{layer}.qkv.weight")).unwrap().size());
    assert_eq!(sizes, [[36, 3 * 36], [36, 3 * 27]], "four heads of width 9, and three");
    let text = std::fs::read(folder.path().join("config.json")).unwrap();
    let config: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((&config["width"], &config["hidden_size"]), (&json!(36), &Value::Null));
}
