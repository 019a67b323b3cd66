//! Heads of a model by name: attention types, heads, sets of heads, layouts, and measures of heads.
//!
//! Michel et al. (2019), Section 3: an encoder-decoder model has three types of attention, each with layers of
//! heads. Users count layers and heads from 1, as the paper does; tensors count from 0. Only [`HeadId`] converts.
mod attention;
mod error;
pub mod experiment;
mod head;
mod layout;
mod maps;
mod measure;
pub mod names;
mod set;

pub use attention::{Attention, Scope, Selection};
pub use error::Error;
pub use head::{HeadId, MOST_HEADS};
pub use layout::{HeadLayout, LayerShape, ModuleHeads};
pub use maps::AttentionMaps;
pub use measure::{First, Measure, Needs};
pub use names::UnknownName;
pub use set::HeadSet;
