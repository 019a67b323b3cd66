//! Models as GGUF files, the format of llama.cpp: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.
//!
//! [`import`] makes a Hugging Face folder of a file of architecture `llama` or `gemma3`, and [`export`] a file of a folder, also of one
//! whose heads were cut out: `deci` is the architecture whose layers may each have another number of heads. The format
//! itself, and the types that weights are quantised to, are read and written by the crate `candle-core`.
mod config;
mod error;
mod export;
pub mod export_gguf;
pub mod fetch;
mod fields;
mod file;
mod import;
pub mod import_model;
pub mod llama_cpp;
mod names;
mod rules;
mod slots;
mod tokenizer;

pub use error::Error;
pub use export::{Exported, check, export};
pub use file::Precision;
pub use import::import;
