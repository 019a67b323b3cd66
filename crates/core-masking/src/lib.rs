//! Transformers whose attention heads can be gated, on libtorch.
//!
//! Everything that the experiments do to a model is a value of one argument, the gates ξ: `[rows, heads]` for each
//! attention module. The alternative, a mask stored in the model, made the papers' own code depend on the order of
//! calls; here the same call gives the same answer in any order.
pub mod attention;
mod batch;
pub mod bert;
mod checkpoint;
mod decode;
mod dropout;
mod error;
mod gates;
mod head;
pub mod importance;
mod layers;
pub mod loss;
pub mod marian;
mod message;
mod pruning;
mod tensor_file;
mod trunk;
mod weights;

pub use batch::{SegmentBatch, TokenBatch, causal_bias};
pub use decode::{BeamSearch, OutputRules, Stopping, Translation};
pub use dropout::Dropout;
pub use error::Error;
pub use gates::{AttentionRecord, Gate, Gates, RecordedWeights};
pub use head::{Attention, HeadId, HeadLayout, HeadSet, LayerShape};
pub use importance::{HeadMeans, HeadScores, Measure};
pub use message::one_line;
pub use pruning::{PrunedHeads, Removal};
pub use trunk::Trunk;
pub use weights::{Inventory, Weights, to_vec};
