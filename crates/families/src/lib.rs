//! What a model's `config.json` and the names and shapes of its tensors mean: one table per family, in [`tables`].
//!
//! Nothing here holds a tensor, so that a program without libtorch can read and write folders of models by the same tables.
pub mod buckets;
pub mod checkpoint;
pub mod classifier;
pub mod config;
pub mod config_keys;
mod error;
pub mod language_model;
pub mod limits;
pub mod parts;
pub mod pruned_heads;
pub mod rotary;
pub mod storage;
pub mod tables;
pub mod tensor_file;
pub mod translator;

pub use config::{DropoutRates, ModelConfig};
pub use error::Error;
pub use storage::{Fused, Storage};
pub use tensor_file::TensorFile;
