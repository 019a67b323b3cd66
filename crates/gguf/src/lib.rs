//! Models as GGUF files, the format of llama.cpp: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.
//!
//! [`import`] converts a file of architecture `llama` or `gemma3` to a Hugging Face folder, and [`export`] a folder to a file, with or
//! without removed heads: in the architecture `deci` layers may have different numbers of heads. The crate `candle-core` reads and writes
//! the format and its quantised types.
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
mod pretokenizers;
mod slots;
mod tokenizer;

pub use error::Error;
pub use export::{Exported, check, export};
pub use file::Precision;
pub use import::import;
