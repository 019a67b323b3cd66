//! Loading language models, and creating new ones.
use std::path::Path;

use families::TensorFile;
use families::config::d_head;
use families::storage::is_called;
use tch::{Device, Kind, Tensor};

use super::{LanguageConfig, LanguageModel};
use crate::storage::unpack;
use crate::{Error, GatedModel, ModelConfig, Weights};

impl LanguageModel {
    /// Creates new weights: `N(0, initializer_range²)` for linear maps and embeddings, zeros for biases. The last map of each sublayer is
    /// divided by the square root of the number of sublayers: Radford et al. (2019), Section 2.3.
    ///
    /// Draws from libtorch's global generator, seeded here. Fails if the configuration is impossible.
    pub fn random(config: LanguageConfig, seed: u64, options: (Kind, Device)) -> Result<Self, Error> {
        config.validate().map_err(|fault| Error::file(Path::new("config.json"), fault))?;
        let sublayers = 2.0 * config.num_hidden_layers as f64;
        let last: Vec<String> = (0..config.num_hidden_layers)
            .map(|layer| config.family.names.layer(layer))
            .flat_map(|names| [Some(names.projections.output), names.feed_forward.last().cloned()])
            .flatten()
            .map(|name| format!("{name}.weight"))
            .collect();
        let initial = |name: &str, shape: &[i64]| match shape {
            [_, _] => {
                let scale = if last.iter().any(|last| last == name) { sublayers.sqrt().recip() } else { 1.0 };
                Tensor::randn(shape, options) * (config.initializer_range * scale)
            }
            _ if name.ends_with(".weight") => Tensor::ones(shape, options), // of a norm
            _ => Tensor::zeros(shape, options),
        };
        let weights = Weights::drawn(config.inventory(), seed, initial);
        Self::new(config, weights)
    }

    /// Loads a Hugging Face folder: `config.json` and `model.safetensors`, or shards of it.
    pub fn load(folder: &Path, options: (Kind, Device)) -> Result<Self, Error> {
        let config = LanguageConfig::read(&folder.join("config.json"))?;
        let family = config.family;
        let is_unused = |name: &str| family.unused.iter().any(|end| is_called(name, end));
        let rename = |name: &str| (!is_unused(name)).then(|| family.names.with_prefix(name));
        let mut file = TensorFile::open_folder(folder)?.renamed(rename)?;
        // Folders may repeat tied embeddings as the output layer, or contain them under that name only.
        let (inventory, output) = (config.inventory(), config.output());
        if config.tie_word_embeddings {
            file.alias(&config.embeddings().0, &output.0);
        }
        let copy = Some(&output).filter(|(name, _)| config.tie_word_embeddings && file.holds(name));
        let mut stored = family.storage.inventory(&inventory);
        stored.extend(copy.cloned());
        if let Some(name) = config.last_expert().filter(|name| !file.holds(name)) {
            let fault = format!("it contains fewer experts than num_experts: it lacks tensor `{name}`");
            return Err(Error::file(folder, fault));
        }
        file.check(&stored)?;
        let mut tensors = Weights::of_file(file, options)?;
        if let Some((name, _)) = copy {
            let of = config.embeddings().0;
            if tensors.remove(name) != Some(tensors.get(&of)?) {
                let fault = format!("is not equal to `{of}`, and untied tensors are not supported");
                return Err(Error::tensor(folder, name, &fault));
            }
        }
        let weights = unpack(&family.storage, tensors, &inventory, d_head(&config));
        Self::new(config, weights)
    }
}
