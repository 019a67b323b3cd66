//! Decoders that predict the next token.
mod config;
mod parts;

pub use config::{LanguageConfig, LanguageOptions, SLIDING, TokenIds};
pub use parts::LanguageParts;
