//! Transformers whose attention heads can be gated, on libtorch.
//!
//! Every experiment changes the model through one argument, the gates ξ: `[rows, heads]` for each attention module. The papers' own code
//! stores a mask in the model, which makes results depend on the order of calls. Here equal arguments give equal results.
mod ablation;
pub mod attention;
mod batch;
mod block;
pub mod classifier;
mod decode;
mod disentangled;
mod dropout;
mod experts;
mod gates;
mod hard_concrete;
mod head_norms;
pub mod importance;
pub mod language_model;
pub mod layers;
pub mod loss;
mod model;
mod product;
mod pruning;
pub mod relevance;
mod repair;
mod rotary;
mod storage;
pub mod subset;
mod sweep;
pub mod translator;
mod weights;

pub use ::families::checkpoint::refuse_adapter;
pub use ::families::parts::{Activation, Inventory, Projections};
pub use ::families::pruned_heads::PrunedHeads;
pub use ::families::tables as families;
pub use ::families::tensor_file::weight_files;
pub use ::families::{DropoutRates, Error, ModelConfig};
pub use ablation::{HeadOutputSums, Replacement};
pub use batch::{SegmentBatch, TokenBatch, causal_bias};
pub use classifier::{Classifier, ClassifierConfig};
pub use decode::{BeamSearch, OutputRules, Stopping, Translation};
pub use dropout::{Dropout, ModelDropout};
pub use gates::{AttentionRecord, Gate, Gates, RecordedWeights};
pub use hard_concrete::HardConcrete;
pub use heads::{Attention, AttentionMaps, HeadId, HeadLayout, HeadSet, LayerShape, Measure, Needs};
pub use importance::{HeadMeans, HeadScores, Measured};
pub use language_model::{LanguageConfig, LanguageModel};
pub use model::{GatedModel, Module};
pub use product::products;
pub use pruning::Removal;
pub use relevance::Relevance;
pub use repair::Moments;
pub use sweep::{PrefixCache, Variants};
pub use translator::{Translator, TranslatorConfig};
pub use weights::{Weights, to_vec};
