//! What subjects ask of a model, whatever its family.
use std::path::Path;

use core_masking::{Error, GatedModel, HeadLayout, HeadSet, ModelConfig, Removal};
use tch::{Device, Kind};

/// A model with heads.
pub(crate) trait Model: Send + Sized {
    /// The heads of the model whose `config.json` this is.
    fn read_layout(config: &Path) -> Result<HeadLayout, Error>;

    /// Its heads.
    fn layout(&self) -> HeadLayout;

    /// Kind and device of its tensors.
    fn options(&self) -> (Kind, Device);

    /// Number of its parameters.
    fn parameters(&self) -> u64;

    /// Bytes of its tensors.
    fn bytes(&self) -> u64 {
        self.parameters() * self.options().0.elt_size_in_bytes() as u64
    }

    /// The same model on the same tensors, for another thread.
    fn share(&self) -> Result<Self, Error>;

    /// The model without these heads.
    fn without_heads(&self, heads: &HeadSet, removal: Removal) -> Result<Self, Error>;

    /// Writes configuration and weights into a folder.
    fn save(&self, folder: &Path) -> Result<(), Error>;
}

impl<M: GatedModel> Model for M {
    fn read_layout(config: &Path) -> Result<HeadLayout, Error> {
        M::Config::read_layout(config)
    }

    fn layout(&self) -> HeadLayout {
        GatedModel::layout(self)
    }

    fn options(&self) -> (Kind, Device) {
        GatedModel::options(self)
    }

    fn parameters(&self) -> u64 {
        self.weights().parameters()
    }

    fn share(&self) -> Result<Self, Error> {
        GatedModel::share(self)
    }

    fn without_heads(&self, heads: &HeadSet, removal: Removal) -> Result<Self, Error> {
        GatedModel::without_heads(self, heads, removal)
    }

    fn save(&self, folder: &Path) -> Result<(), Error> {
        GatedModel::save(self, folder)
    }
}

/// A model for each thread, each of which computes alone.
pub(crate) fn of_threads<M: Model>(model: &M, workers: usize) -> Result<Vec<M>, Error> {
    tch::set_num_threads(1);
    (0..workers).map(|_| model.share()).collect()
}
