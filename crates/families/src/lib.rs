//! Meaning of `config.json` and names and shapes of tensors: one table per family, in [`tables`].
//!
//! Nothing here contains tensor data, so programs without libtorch can use these tables to read and write model folders.
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
