//! Names of the heads of a model: attention types, heads, head sets, layouts, and criteria.
//!
//! Michel et al. (2019), Section 3: an encoder-decoder model has three types of attention, each with layers of heads. Users count layers
//! and heads from 1, like the paper; tensors count from 0. Only [`HeadId`] converts.
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
pub use head::{HeadId, MAX_HEADS};
pub use layout::{HeadLayout, LayerShape, ModuleHeads};
pub use maps::AttentionMaps;
pub use measure::{First, Measure, Needs};
pub use names::UnknownName;
pub use set::HeadSet;
