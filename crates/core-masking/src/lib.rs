//! Transformers whose attention heads can be gated, on libtorch.
//!
//! Everything that the experiments do to a model is a value of one argument, the gates ξ: `[rows, heads]` for each
//! attention module. The alternative, a mask stored in the model, made the papers' own code depend on the order of
//! calls; here the same call gives the same answer in any order.
mod ablation;
pub mod attention;
mod batch;
mod block;
mod checkpoint;
pub mod classifier;
mod decode;
mod disentangled;
mod dropout;
mod error;
mod experts;
pub mod families;
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
pub mod relative_positions;
pub mod relevance;
mod repair;
mod rotary;
mod storage;
pub mod subset;
mod sweep;
mod tensor_file;
pub mod translator;
mod weights;

pub use ablation::{ContextSums, Replacement};
pub use attention::Projections;
pub use batch::{SegmentBatch, TokenBatch, causal_bias};
pub use checkpoint::refuse_adapter;
pub use classifier::{Classifier, ClassifierConfig};
pub use decode::{BeamSearch, OutputRules, Stopping, Translation};
pub use dropout::{Dropout, DropoutRates, ModelDropout};
pub use error::Error;
pub use gates::{AttentionRecord, Gate, Gates, RecordedWeights};
pub use hard_concrete::HardConcrete;
pub use heads::{Attention, AttentionMaps, HeadId, HeadLayout, HeadSet, LayerShape, Measure, Needs};
pub use importance::{HeadMeans, HeadScores, Measured};
pub use language_model::{LanguageConfig, LanguageModel};
pub use layers::Activation;
pub use model::{GatedModel, ModelConfig, Module};
pub use product::products;
pub use pruning::{PrunedHeads, Removal};
pub use relevance::Relevance;
pub use repair::Moments;
pub use storage::{Fused, Storage};
pub use sweep::{Trunk, Variants};
pub use tensor_file::weight_files;
pub use translator::{Translator, TranslatorConfig};
pub use weights::{Inventory, Weights, to_vec};
