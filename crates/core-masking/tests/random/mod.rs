//! Small random models in double precision.
#![allow(dead_code, reason = "not every test uses every part")]
use core_masking::classifier::Inputs;
use core_masking::{
    Classifier, ClassifierConfig, GatedModel, Gates, HeadSet, Translator, TranslatorConfig, Weights,
};
use tch::{Device, Kind, Tensor};

pub const DOUBLE: (Kind, Device) = (Kind::Double, Device::Cpu);
pub const SINGLE: (Kind, Device) = (Kind::Float, Device::Cpu);
pub const END: u32 = 0;
pub const PAD: u32 = 1;

/// Returns the configuration of a classifier of 3 layers with 4 heads of width 5, 23 words, 13 positions and 2 classes. With an
/// `initializer_range` of 0.4 heads matter.
pub fn bert(initializer_range: f64) -> ClassifierConfig {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
        "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
        "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": initializer_range,
    });
    serde_json::from_value(json).unwrap()
}

/// Returns the configuration of a translator of 2 encoder layers with 3 heads of width 4, and 3 decoder layers with 2 heads of width 6.
pub fn marian(vocab_size: i64) -> TranslatorConfig {
    let json = serde_json::json!({
        "model_type": "marian", "vocab_size": vocab_size, "d_model": 12, "encoder_layers": 2,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 14, "decoder_layers": 3, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 10, "activation_function": "swish", "max_position_embeddings": 20,
        "scale_embedding": true, "pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD,
    });
    serde_json::from_value(json).unwrap()
}

/// Creates a translator whose attention is far from uniform, with nonzero biases.
pub fn loud(config: TranslatorConfig, seed: u64) -> Translator {
    let quiet = Translator::random(config, seed, DOUBLE).unwrap();
    // deterministic noise with standard deviation 0.4
    let noise = |name: &str, tensor: &Tensor| {
        let places = Tensor::arange(tensor.numel() as i64, DOUBLE);
        (places * 12.9 + name.len() as f64 + seed as f64).sin().view_as(tensor) * 0.4 * 2_f64.sqrt()
    };
    let louder = |(name, tensor): (&str, &Tensor)| (name.to_owned(), tensor + noise(name, tensor));
    Translator::new(quiet.config().clone(), Weights::from_tensors(quiet.weights().iter().map(louder)))
        .unwrap()
}

/// Makes a batch of texts with these lengths, in two segments.
pub fn texts(model: &Classifier, lengths: &[u32]) -> Inputs {
    let text =
        |&length: &u32| (0..length).map(|place| (1 + (length * 7 + place * 5) % 22, place % 2)).unzip();
    let texts: Vec<(Vec<u32>, Vec<u32>)> = lengths.iter().map(text).collect();
    let rows: Vec<(&[u32], &[u32])> = texts.iter().map(|(ids, segments)| (&ids[..], &segments[..])).collect();
    model.batch(&rows).unwrap()
}

pub fn masking<M: GatedModel>(model: &M, set: &HeadSet) -> Gates {
    Gates::masking(&model.layout(), std::slice::from_ref(set), model.options()).unwrap()
}

pub fn gap(left: &Tensor, right: &Tensor) -> f64 {
    (left - right).abs().max().double_value(&[])
}
