use super::*;
use serde_json::{Value, json};

fn json() -> Value {
    json!({
        "model_type": "bert", "vocab_size": 11, "hidden_size": 6, "num_hidden_layers": 2,
        "num_attention_heads": 3, "intermediate_size": 10, "hidden_act": "gelu",
        "max_position_embeddings": 8, "type_vocab_size": 2,
    })
}

fn fault(name: &str, value: Value) -> String {
    let mut json = json();
    json[name] = value;
    serde_json::from_value::<ClassifierConfig>(json).unwrap().validate().unwrap_err()
}

#[test]
fn what_old_folders_leave_out_has_the_defaults_of_transformers() {
    let config: ClassifierConfig = serde_json::from_value(json()).unwrap();
    config.validate().unwrap();
    assert_eq!(config.labels(), ["LABEL_0", "LABEL_1"]);
    assert!(!config.has_label_names());
    assert_eq!((config.layer_norm_eps, config.classifier_dropout()), (1e-12, 0.1));
}

#[test]
fn impossible_models_are_refused() {
    assert_eq!(
        fault("num_attention_heads", json!(4)),
        "num_attention_heads (4) does not divide hidden_size (6)"
    );
    assert_eq!(fault("num_hidden_layers", json!(0)), "num_hidden_layers must be from 1 to 1024");
    assert_eq!(fault("pad_token_id", json!(11)), "pad_token_id is not below vocab_size (11)");
    assert_eq!(
        fault("classifier_dropout", json!(1.0)),
        "classifier_dropout (1) must be at least 0 and below 1"
    );
    let relative = fault("position_embedding_type", json!("relative_key"));
    assert_eq!(relative, "position_embedding_type is `relative_key`; only `absolute` is supported");
    let twice = fault("id2label", json!({"0": "no", "1": "no"}));
    assert_eq!(twice, "id2label gives two classes the same name");
    let gap = fault("id2label", json!({"0": "no", "2": "yes"}));
    assert_eq!(gap, "id2label must number its 2 classes from 0 to 1");
    assert_eq!(
        fault("id2label", json!({"0": "score"})),
        "id2label names 1 classes; a classifier has from 2 to 65536"
    );
}

#[test]
fn heads_that_are_pruned_must_exist() {
    assert_eq!(
        fault("pruned_heads", json!({"1": [0, 3]})),
        "pruned_heads: no head 4 in a layer of `self`: heads are numbered 1 to 3"
    );
    let beyond = fault("pruned_heads", json!({"0": [u64::MAX]}));
    assert!(beyond.contains("heads are numbered 1 to 3"), "{beyond}");
    assert_eq!(
        fault("pruned_heads", json!({"0": [0, 1, 2], "1": [0, 1, 2]})),
        "pruned_heads: no head would be left in the model"
    );
}

#[test]
fn new_classes_replace_the_old_ones() {
    let config: ClassifierConfig = serde_json::from_value(json()).unwrap();
    let config = config.with_labels(&["a", "b", "c"].map(str::to_owned));
    assert_eq!(config.labels(), ["a", "b", "c"]);
    assert_eq!(config.label2id["c"], 2);
    assert!(config.has_label_names());
    assert!(config.inventory().contains(&("classifier.weight".to_owned(), vec![3, 6])));
}
