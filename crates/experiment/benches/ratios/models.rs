//! Models of well-known sizes with random weights, and synthetic texts.
use core_masking::classifier::Inputs;
use core_masking::families::{GPT2, LLAMA};
use core_masking::language_model::{LanguageFamily, PredictionBatch, Window};
use core_masking::{Classifier, ClassifierConfig, GatedModel, Gates, HeadSet, LanguageConfig, LanguageModel};
use core_masking::{ModelDropout, PrefixCache};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

/// Name, layers, heads and d_model; d_ff is 4 · d_model.
pub type Size = (&'static str, i64, i64, i64);

pub const MINILM: Size = ("MiniLM", 6, 12, 384);
pub const BERT_BASE: Size = ("BERT base", 12, 12, 768);

/// A model that is timed.
pub trait Timed: GatedModel {
    /// A batch of tokenized texts.
    type Batch;

    /// Returns a batch of synthetic texts of this length in tokens.
    fn synthetic(&self, texts: usize, length: u32) -> Self::Batch;

    /// Returns the outputs of the model for a batch.
    fn output(&self, batch: &Self::Batch, gates: &Gates) -> Tensor;

    /// Runs all layers at all positions, without this project's shortcuts.
    fn plain(&self, batch: &Self::Batch, gates: &Gates) -> Tensor;

    /// Returns the outputs for a batch under each of `sets`, and the prefix cache for the next call. `together` sets are evaluated as rows
    /// of one batch.
    fn swept(
        &self,
        batch: &Self::Batch,
        sets: &[HeadSet],
        together: usize,
        prefix: Option<PrefixCache>,
    ) -> (Vec<Tensor>, PrefixCache);

    /// Returns the multiply-adds of [`output`](Self::output) for a text of this length.
    fn work(&self, length: u32) -> f64;
}

impl Timed for Classifier {
    type Batch = Inputs;

    fn synthetic(&self, texts: usize, length: u32) -> Inputs {
        let ids = tokens(length);
        let segments = vec![0; ids.len()];
        self.batch(&vec![(&ids[..], &segments[..]); texts]).unwrap()
    }

    fn output(&self, batch: &Inputs, gates: &Gates) -> Tensor {
        self.forward(batch, gates, &ModelDropout::OFF)
    }

    fn plain(&self, batch: &Inputs, gates: &Gates) -> Tensor {
        let enter = self.embed(batch, &ModelDropout::OFF);
        let pass = |x, layer| self.layer(layer, &x, batch, gates, &ModelDropout::OFF);
        (0..self.config().num_hidden_layers).fold(enter, pass)
    }

    fn swept(
        &self,
        batch: &Inputs,
        sets: &[HeadSet],
        together: usize,
        prefix: Option<PrefixCache>,
    ) -> (Vec<Tensor>, PrefixCache) {
        self.sweep(batch, &self.variants(sets, false).unwrap(), together, prefix)
    }

    fn work(&self, length: u32) -> f64 {
        self.multiply_adds(u64::from(length)) as f64
    }
}

/// The output of a language model is the nats of each text.
impl Timed for LanguageModel {
    type Batch = PredictionBatch;

    fn synthetic(&self, texts: usize, length: u32) -> PredictionBatch {
        let tokens = tokens(length + 1); // the last one is predicted only
        self.batch(&vec![Window { tokens: &tokens, context: 1 }; texts]).unwrap()
    }

    fn output(&self, batch: &PredictionBatch, gates: &Gates) -> Tensor {
        self.losses(batch, gates, &ModelDropout::OFF)
    }

    fn plain(&self, batch: &PredictionBatch, gates: &Gates) -> Tensor {
        self.output(batch, gates)
    }

    fn swept(
        &self,
        batch: &PredictionBatch,
        sets: &[HeadSet],
        together: usize,
        prefix: Option<PrefixCache>,
    ) -> (Vec<Tensor>, PrefixCache) {
        let (nats, prefix) = self.sweep(batch, &self.variants(sets, false).unwrap(), together, prefix);
        (nats.iter().map(|nats| batch.by_row(nats)).collect(), prefix)
    }

    fn work(&self, length: u32) -> f64 {
        self.multiply_adds(&self.synthetic(1, length)) as f64
    }
}

/// Returns the `config.json` of a BERT, which transformers reads as well.
pub fn bert_config((_, layers, heads, width): Size) -> Value {
    json!({
        "model_type": "bert", "vocab_size": 1000, "hidden_size": width, "num_hidden_layers": layers,
        "num_attention_heads": heads, "intermediate_size": 4 * width, "hidden_act": "gelu",
        "max_position_embeddings": 128, "type_vocab_size": 2,
    })
}

pub fn classifier(size: Size, device: Device) -> Classifier {
    let config: ClassifierConfig = serde_json::from_value(bert_config(size)).unwrap();
    Classifier::random(config, 1, (Kind::Float, device)).unwrap()
}

/// Returns the configuration of the smallest GPT-2.
pub fn gpt2_config() -> Value {
    json!({
        "model_type": "gpt2", "vocab_size": 50_257, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "hidden_act": "gelu_new", "max_position_embeddings": 1_024,
        "tie_word_embeddings": true,
    })
}

pub fn gpt2(device: Device) -> LanguageModel {
    language_model(&GPT2, gpt2_config(), device)
}

/// Returns the configuration of SmolLM2 135M, in which groups of three heads share keys and values.
pub fn smollm2_config() -> Value {
    json!({
        "model_type": "llama", "vocab_size": 49_152, "hidden_size": 576, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1_536, "hidden_act": "silu",
        "max_position_embeddings": 8_192, "rms_norm_eps": 1e-5, "rope_theta": 1e5, "tie_word_embeddings": true,
    })
}

pub fn smollm2(device: Device) -> LanguageModel {
    language_model(&LLAMA, smollm2_config(), device)
}

/// Returns a small Llama with two heads in each group.
pub fn llama(device: Device) -> LanguageModel {
    let json = json!({
        "model_type": "llama", "vocab_size": 8_000, "hidden_size": 512, "num_hidden_layers": 8,
        "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 1_376, "hidden_act": "silu",
        "max_position_embeddings": 256,
    });
    language_model(&LLAMA, json, device)
}

fn language_model(family: &'static LanguageFamily, json: Value, device: Device) -> LanguageModel {
    let config: LanguageConfig = serde_json::from_value(json).unwrap();
    LanguageModel::random(LanguageConfig { family, ..config }, 1, (Kind::Float, device)).unwrap()
}

fn tokens(length: u32) -> Vec<u32> {
    (0..length).map(|place| 1 + place * 7 % 900).collect()
}

/// Waits until a GPU has finished.
pub fn finish(output: &Tensor) {
    let _ = output.sum(None).double_value(&[]);
}
