//! Models of well-known sizes, with random weights, and texts for them.
use core_masking::SegmentBatch;
use core_masking::{Classifier, ClassifierConfig};
use tch::{Device, Kind, Tensor};

/// Name, layers, heads and d_model; d_ff is 4 times as wide.
pub type Size = (&'static str, i64, i64, i64);

pub const MINILM: Size = ("MiniLM", 6, 12, 384);
pub const BERT_BASE: Size = ("BERT base", 12, 12, 768);

pub fn classifier((_, layers, heads, width): Size, device: Device) -> Classifier {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 1000, "hidden_size": width, "num_hidden_layers": layers,
        "num_attention_heads": heads, "intermediate_size": 4 * width, "hidden_act": "gelu",
        "max_position_embeddings": 128, "type_vocab_size": 2,
    });
    let config: ClassifierConfig = serde_json::from_value(json).unwrap();
    Classifier::random(config, 1, (Kind::Float, device)).unwrap()
}

/// Waits for a GPU.
pub fn finish(output: &Tensor) {
    let _ = output.sum(None).double_value(&[]);
}

/// As many texts of that length.
pub fn texts(model: &Classifier, texts: usize, length: u32) -> SegmentBatch {
    let ids: Vec<u32> = (0..length).map(|place| 1 + place * 7 % 900).collect();
    let segments = vec![0; ids.len()];
    model.batch(&vec![(&ids[..], &segments[..]); texts]).unwrap()
}
