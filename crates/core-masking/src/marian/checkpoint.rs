//! Marian folders as they come, and models that begin anew.
use std::path::Path;

use tch::{Device, Kind, Tensor};

use super::{Marian, MarianConfig, sinusoidal_positions};
use crate::tensor_file::TensorFile;
use crate::weights::Inventory;
use crate::{Error, Weights, checkpoint};

impl Marian {
    /// New weights: Xavier uniform for linear maps, `N(0, 1/d_model)` for the embeddings, zeros for biases.
    ///
    /// The last map of each sublayer starts smaller, by the square root of the number of sublayers in its stack, since
    /// deep models with normalisation after each sublayer hardly train otherwise: Zhang et al. (2019),
    /// <https://aclanthology.org/D19-1083>, scale by depth; the factor is that of GPT-2 (Radford et al. 2019, 2.3).
    ///
    /// Draws from libtorch's global generator, seeded here.
    ///
    /// # Errors
    /// If the configuration is impossible.
    pub fn random(config: MarianConfig, seed: u64, options: (Kind, Device)) -> Result<Self, Error> {
        config.validate().map_err(|fault| Error::Config { path: "config.json".into(), fault })?;
        let initial = |name: &str, shape: &[i64]| match (name, shape) {
            ("model.shared.weight", [_, width]) => Tensor::randn(shape, options) / (*width as f64).sqrt(),
            ("final_logits_bias", _) => Tensor::zeros(shape, options),
            (name, [output, input]) => {
                let bound = (6.0 / (output + input) as f64).sqrt() * config.initial_scale(name);
                (Tensor::rand(shape, options) * 2.0 - 1.0) * bound
            }
            (name, _) if name.ends_with("norm.weight") => Tensor::ones(shape, options),
            _ => Tensor::zeros(shape, options),
        };
        let weights = Weights::drawn(config.inventory(), seed, initial);
        Self::new(config, weights)
    }

    /// Loads a Hugging Face folder: `config.json` and `model.safetensors`.
    ///
    /// # Errors
    /// If a file is missing, torn or foreign, or its tensors do not fit the configuration.
    pub fn load(folder: &Path, options: (Kind, Device)) -> Result<Self, Error> {
        let config = MarianConfig::read(&folder.join("config.json"))?;
        let path = folder.join("model.safetensors");
        let file = TensorFile::open(&path)?;
        let tied = tied_inventory(&config).into_iter().filter(|(name, _)| file.holds(name));
        file.check(&config.inventory().into_iter().chain(tied).collect())?;
        let mut weights = file.read(options)?;
        drop_tied(&mut weights, &config, &path)?;
        Self::new(config, weights)
    }

    /// Writes `config.json` and `model.safetensors`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), Error> {
        checkpoint::write(folder, &self.config, &self.weights)
    }
}

/// Copies of the shared embedding.
const EMBEDDINGS: [&str; 3] =
    ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"];
/// Copies of the table of positions.
const POSITIONS: [&str; 2] = ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"];

/// Older folders repeat the shared embedding and the table of positions under other names.
fn tied_inventory(config: &MarianConfig) -> Inventory {
    let sized = |names: &[&str], rows| {
        names.iter().map(|&name| (name.to_owned(), vec![rows, config.d_model])).collect::<Inventory>()
    };
    [sized(&EMBEDDINGS, config.vocab_size), sized(&POSITIONS, config.max_position_embeddings)].concat()
}

/// Takes the copies out.
///
/// # Errors
/// If one is no copy.
fn drop_tied(weights: &mut Weights, config: &MarianConfig, path: &Path) -> Result<(), Error> {
    let refusal = |name: &str, of| Error::Tied { path: path.to_owned(), name: name.to_owned(), of };
    let shared = weights.get("model.shared.weight")?;
    for name in EMBEDDINGS {
        if weights.remove(name).is_some_and(|copy| copy != shared) {
            return Err(refusal(name, "equal to `model.shared.weight`"));
        }
    }
    for name in POSITIONS {
        if let Some(table) = weights.remove(name) {
            let options = (table.kind(), table.device());
            let expected = sinusoidal_positions(config.max_position_embeddings, config.d_model, options);
            // half precision is the coarsest that a table is stored in
            if !table.allclose(&expected, 0.0, 1e-3, false) {
                return Err(refusal(name, "the sinusoidal table"));
            }
        }
    }
    Ok(())
}
