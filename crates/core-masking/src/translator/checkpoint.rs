//! Loading translators, and creating new ones.
use std::path::Path;

use families::TensorFile;
use families::parts::Inventory;
use families::tables::{Positions, Sinusoids, position_table};
use tch::{Device, Kind, Tensor};

use super::layers::sinusoid_table;
use super::{Translator, TranslatorConfig};
use crate::{Error, GatedModel, ModelConfig, Weights};

impl Translator {
    /// Creates new weights: Xavier uniform for linear maps, `N(0, 1/d_model)` for the embeddings, zeros for biases.
    ///
    /// The last map of each sublayer is divided by the square root of the number of sublayers in its stack, since deep post-norm models
    /// hardly train otherwise. Zhang et al. (2019), <https://aclanthology.org/D19-1083>, scale by depth; the factor is from GPT-2 (Radford
    /// et al. 2019, 2.3).
    ///
    /// Draws from libtorch's global generator, seeded here. Fails if the configuration is impossible.
    pub fn random(config: TranslatorConfig, seed: u64, options: (Kind, Device)) -> Result<Self, Error> {
        config.validate().map_err(|fault| Error::file(Path::new("config.json"), fault))?;
        let names = config.embeddings();
        let is_embedding = |name: &str| {
            [names.source, names.target].contains(&name) || name.ends_with("embed_positions.weight")
        };
        let initial = |name: &str, shape: &[i64]| match (name, shape) {
            (name, [_, width]) if is_embedding(name) => {
                Tensor::randn(shape, options) / (*width as f64).sqrt()
            }
            (name, _) if names.bias == Some(name) => Tensor::zeros(shape, options),
            (name, [output, input]) => {
                let bound = (6.0 / (output + input) as f64).sqrt() * config.initial_scale(name);
                (Tensor::rand(shape, options) * 2.0 - 1.0) * bound
            }
            (name, _) if name.ends_with(".weight") => Tensor::ones(shape, options),
            _ => Tensor::zeros(shape, options),
        };
        let weights = Weights::drawn(config.inventory(), seed, initial);
        Self::new(config, weights)
    }

    /// Loads a Hugging Face folder: `config.json` and `model.safetensors`.
    pub fn load(folder: &Path, options: (Kind, Device)) -> Result<Self, Error> {
        let mut config = TranslatorConfig::read(&folder.join("config.json"))?;
        let (names, unused) = (config.embeddings(), config.family.unused);
        let file = TensorFile::open_folder(folder)?;
        // files without an output layer, such as facebook/bart-base, lack the prefix
        let bare = names.source.strip_prefix("model.").is_some_and(|bare| file.holds(bare));
        let prefix = if bare && !file.holds(names.source) { "model." } else { "" };
        let mut file = file.renamed(|name| (!unused.contains(&name)).then(|| format!("{prefix}{name}")))?;
        config.copies().into_iter().for_each(|(copy, of)| file.alias(of, copy));
        let is_cut = config.vocab_size != config.target_vocabulary()
            && file.shape(names.target) == Some(vec![config.vocab_size, config.d_model]);
        if is_cut {
            let fault = "has the rows of the source vocabulary, not of the target vocabulary, as transformers 4 saves vocabularies \
                         of different sizes (huggingface/transformers#26338): save the model again with transformers 5";
            return Err(Error::tensor(folder, names.target, fault));
        }
        let bias = names.bias.filter(|bias| !file.holds(bias));
        let expected = config.inventory().into_iter().filter(|(name, _)| Some(&**name) != bias);
        let tied = tied_inventory(&config).into_iter().filter(|(name, _)| file.holds(name));
        file.check(&expected.chain(tied).collect())?;
        let mut weights = Weights::of_file(file, options)?;
        if let Some(bias) = bias {
            weights.insert(bias.to_owned(), Tensor::zeros([1, config.target_vocabulary()], options));
        }
        drop_tied(&mut weights, &mut config, folder)?;
        Self::new(config, weights)
    }
}

/// Returns the sinusoids of the position table, if it is computed, and how many rows precede the first token's in a folder.
fn sinusoids(config: &TranslatorConfig) -> Option<(Sinusoids, i64)> {
    match config.family.positions {
        Positions::Sinusoids(sinusoids) => Some((sinusoids, sinusoids.first_row(config.pad_token_id))),
        _ => None,
    }
}

/// Returns copies of embeddings and position tables that folders may contain under other names.
fn tied_inventory(config: &TranslatorConfig) -> Inventory {
    let (names, width) = (config.embeddings(), config.d_model);
    let copy = |(name, of): (&str, &str)| {
        let rows = if of == names.source { config.vocab_size } else { config.target_vocabulary() };
        (name.to_owned(), vec![rows, width])
    };
    let tables = sinusoids(config).into_iter().flat_map(|(_, first)| {
        STACKS.map(|stack| (position_table(stack), vec![first + config.max_position_embeddings, width]))
    });
    config.copies().into_iter().map(copy).chain(tables).collect()
}

const STACKS: [usize; 2] = [0, 1];

/// Removes tied copies after checking them; an output layer that differs from the embeddings is kept.
fn drop_tied(weights: &mut Weights, config: &mut TranslatorConfig, path: &Path) -> Result<(), Error> {
    let refusal = |name: &str, of: &str| {
        Error::tensor(path, name, &format!("is not {of}, and untied tensors are not supported"))
    };
    for (name, of) in config.copies() {
        let original = weights.get(of)?;
        let Some(copy) = weights.remove(name).filter(|copy| *copy != original) else { continue };
        if config.embeddings().output == Some(name) {
            config.tie_word_embeddings = Some(false); // an untied output layer, whatever the configuration states
            weights.insert(name.to_owned(), copy);
        } else {
            return Err(refusal(name, &format!("equal to `{of}`")));
        }
    }
    let Some((sinusoids, first)) = sinusoids(config) else { return Ok(()) };
    for name in STACKS.map(position_table) {
        if let Some(table) = weights.remove(&name) {
            let options = (table.kind(), table.device());
            let expected =
                sinusoid_table(sinusoids, first, config.max_position_embeddings, config.d_model, options);
            let used = table.narrow(0, first, config.max_position_embeddings);
            // The table may have been rounded to bf16, which has 8 bits: by 1/512 just below 1.
            if !used.allclose(&expected, 0.0, 2.5e-3, false) {
                return Err(refusal(&name, "the sinusoidal table"));
            }
        }
    }
    Ok(())
}
