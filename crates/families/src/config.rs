//! Heads and sizes of a model, whatever its family.
use std::fmt::Debug;
use std::path::Path;

use heads::{Attention, HeadLayout, HeadSet};

use crate::parts::{Inventory, Projections};
use crate::{Error, Storage};

/// Heads and sizes in a `config.json`.
pub trait ModelConfig: Debug + Clone {
    /// The heads of the model whose `config.json` this is, whatever it is trained to.
    ///
    /// # Errors
    /// If the file is missing, no JSON, of another model type, or describes an impossible model.
    fn read_layout(path: &Path) -> Result<HeadLayout, Error>;

    /// Writes it under the family's names.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn write(&self, path: &Path) -> Result<(), Error>;

    /// Name and shape of each tensor, before maps are fused.
    fn inventory(&self) -> Inventory;

    /// The heads of the model.
    fn layout(&self) -> HeadLayout;

    /// Dropout in training.
    fn dropout(&self) -> DropoutRates;

    /// The names of an attention module's linear maps; layers are counted from 0.
    fn projections(&self, attention: Attention, layer: usize) -> Projections;

    /// True if a removed head's queries and keys stay, since they are normalised together with those of the others.
    fn queries_stay(&self) -> bool {
        false
    }

    /// Storage of linear maps in the family's files.
    fn storage(&self) -> &'static Storage {
        &Storage::PLAIN
    }

    /// The same model with these heads cut out, of which it has all.
    fn without_heads(&self, heads: &HeadSet) -> Self;

    /// The same model with biases in its attention modules, which it can hold but does not have; `None` where its family has no
    /// entry for them.
    fn with_attention_bias(&self) -> Option<Self> {
        None
    }

    /// The same weights as a model that never had the heads that were cut out: those that are left are numbered anew.
    ///
    /// # Errors
    /// If layers or groups have unequal numbers of heads left, or the family knows no other width of heads than their share
    /// of the residual stream: what, in words.
    fn uniform(&self) -> Result<Self, String> {
        Err("this family has no entry for the width of a head".to_owned())
    }
}

/// Probabilities with which elements are dropped, from 0 to below 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DropoutRates {
    /// Of embeddings and of the output of each sublayer.
    pub hidden: f64,
    /// Of attention weights.
    pub attention: f64,
    /// Of what a classifier sees.
    pub classifier: f64,
}

/// Width of a head.
pub fn d_head(config: &impl ModelConfig) -> i64 {
    config.layout().types().next().map_or(1, |(_, shape)| shape.d_head)
}
