//! Encoders with a classification head.
mod config;
mod image;
mod parts;

pub use config::{ClassifierConfig, ClassifierOptions, Pooling};
pub use image::{ImageShape, ImageSize};
pub use parts::{ClassifierParts, EmbeddingParts, HeadParts};
