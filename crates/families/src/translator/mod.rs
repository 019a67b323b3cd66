//! Encoder-decoder models.
mod config;
mod parts;

pub use config::{FeedForwardProjection, RelativeEntries, TranslatorConfig};
pub use parts::TranslatorParts;
