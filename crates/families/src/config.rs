//! Configuration of a model of any family.
use std::fmt::Debug;
use std::path::Path;

use heads::{Attention, HeadLayout, HeadSet};

use crate::parts::{Inventory, Projections};
use crate::{Error, Storage};

/// The `config.json` of a model.
pub trait ModelConfig: Debug + Clone {
    /// Reads the layout of the heads from a `config.json`, whatever the model is trained for.
    fn read_layout(path: &Path) -> Result<HeadLayout, Error>;

    /// Writes the configuration under the family's keys.
    fn write(&self, path: &Path) -> Result<(), Error>;

    /// Returns name and shape of each tensor, before maps are fused.
    fn inventory(&self) -> Inventory;

    /// Returns the layout of the heads.
    fn layout(&self) -> HeadLayout;

    /// Returns the dropout rates for training.
    fn dropout(&self) -> DropoutRates;

    /// Returns the names of an attention module's linear maps; layers are counted from 0.
    fn projections(&self, attention: Attention, layer: usize) -> Projections;

    /// Returns true if queries and keys of removed heads are kept, because they are normalised together with other heads.
    fn queries_stay(&self) -> bool {
        false
    }

    /// Returns how the family's files store linear maps.
    fn storage(&self) -> &'static Storage {
        &Storage::PLAIN
    }

    /// Returns the configuration with these heads removed; all must be present.
    fn without_heads(&self, heads: &HeadSet) -> Self;

    /// Returns the configuration with biases in all attention modules; `None` if the family has no key for them.
    fn with_attention_bias(&self) -> Option<Self> {
        None
    }

    /// Returns the configuration of a model that never had the removed heads; the remaining ones are renumbered.
    ///
    /// # Errors
    /// If layers or groups have unequal numbers of heads left, or the family has no key for the width of a head, with the reason.
    fn uniform(&self) -> Result<Self, String> {
        Err("the config.json of this family has no key for the head width".to_owned())
    }
}

/// Dropout rates, from 0 to below 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DropoutRates {
    /// Of the output of each sublayer, and of embeddings except in language models.
    pub hidden: f64,
    /// Of attention weights.
    pub attention: f64,
    /// Of the classification head's input; in language models, of embeddings.
    pub classifier: f64,
}

/// Returns the width of a head.
pub fn d_head(config: &impl ModelConfig) -> i64 {
    config.layout().types().next().map_or(1, |(_, shape)| shape.d_head)
}
