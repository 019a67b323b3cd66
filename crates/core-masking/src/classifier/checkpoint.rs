//! Loading classifiers: with or without a classification head, and with past and present tensor names.
use std::path::Path;

use families::TensorFile;
use families::config::d_head;
use tch::{Device, Kind, Tensor};

use super::{Classified, Classifier, ClassifierConfig, ClassifierFamily, ClassifierHead};
use crate::storage::unpack;
use crate::{Error, GatedModel, ModelConfig, Weights};

/// A pretrained encoder, ready for fine-tuning.
#[derive(Debug)]
pub struct Pretrained {
    /// The model.
    pub model: Classifier,
    /// Tensors that were missing or had a different size in the folder, newly initialised.
    pub new: Vec<String>,
}

impl Classifier {
    /// Creates new weights: `N(0, initializer_range²)` for linear maps and embeddings, zeros for biases.
    ///
    /// Draws from libtorch's global generator, seeded here. Fails if the configuration is impossible.
    pub fn random(config: ClassifierConfig, seed: u64, options: (Kind, Device)) -> Result<Self, Error> {
        config.validate().map_err(|fault| Error::file(Path::new("config.json"), fault))?;
        let draw = |name: &str, shape: &[i64]| initial(&config, name, shape, options);
        let weights = Weights::drawn(config.inventory(), seed, draw);
        Self::new(config, weights)
    }

    /// Loads a classifier from a Hugging Face folder: `config.json` and `model.safetensors`.
    pub fn load(folder: &Path, options: (Kind, Device)) -> Result<Self, Error> {
        let config = ClassifierConfig::read(&folder.join("config.json"))?;
        let file = open(folder, &config)?;
        let (storage, inventory) = (&config.family.storage, config.inventory());
        file.check(&storage.inventory(&inventory))?;
        let weights = unpack(storage, Weights::of_file(file, options)?, &inventory, d_head(&config));
        Self::new(config, weights)
    }

    /// Loads a Hugging Face folder for fine-tuning to `labels`, of texts or of tokens. A missing pooler is newly initialised, and so is a
    /// missing classifier or one for other classes.
    pub fn load_pretrained(
        folder: &Path,
        (labels, classified): (&[String], Classified),
        seed: u64,
        options: (Kind, Device),
    ) -> Result<Pretrained, Error> {
        let path = folder.join("config.json");
        let pretrained = ClassifierConfig::read_pretrained(&path)?;
        let is_unnamed = pretrained.has_one_output() || !pretrained.has_label_names();
        let knows_labels =
            pretrained.labels() == labels || (is_unnamed && pretrained.id2label.len() == labels.len());
        let knows_labels = knows_labels && pretrained.classified() == classified;
        let config = pretrained.classifying(classified).with_labels(labels);
        config.validate().map_err(|fault| Error::file(&path, fault))?;

        // only the number of classes may differ
        let last = config.head().last;
        let is_of_last = |name: &str| map_of(name) == last;
        let is_replaced = |name: &str| !knows_labels && is_of_last(name);
        let file = open(folder, &config)?.renamed(|name| (!is_replaced(name)).then(|| name.to_owned()))?;
        let mut missing = config.head_inventory();
        missing.retain(|(name, _)| !file.holds(name));
        let new: Vec<String> = missing.iter().map(|(name, _)| name.clone()).collect();
        let there = config.inventory().into_iter().filter(|(name, _)| !new.contains(name)).collect();
        let storage = &config.family.storage;
        file.check(&storage.inventory(&there))?;

        let draw = |name: &str, shape: &[i64]| initial(&config, name, shape, options);
        let mut weights = unpack(storage, Weights::of_file(file, options)?, &there, d_head(&config));
        weights.extend(Weights::drawn(missing, seed, draw));
        Ok(Pretrained { model: Self::new(config, weights)?, new })
    }
}

fn initial(config: &ClassifierConfig, name: &str, shape: &[i64], options: (Kind, Device)) -> Tensor {
    match shape {
        [_, _, ..] => Tensor::randn(shape, options) * config.initializer_range,
        _ if name.ends_with(".weight") => Tensor::ones(shape, options), // of a norm
        _ => Tensor::zeros(shape, options),
    }
}

/// Opens the folder's tensors under current names. Leaves out pretraining heads, maps that only the other type of head (text or token
/// classification) has, such as the pooler for token classification, and the position ids 0, 1, 2 … of old checkpoints.
fn open(folder: &Path, config: &ClassifierConfig) -> Result<TensorFile, Error> {
    let family = config.family;
    let has = |head: &ClassifierHead, name: &str| head.maps().any(|map| map == map_of(name));
    let is_of_other =
        |name: &str| !has(config.head(), name) && (has(&family.head, name) || has(&family.token_head, name));
    let is_unused = |name: &str| {
        let is_of_pretraining = family.unused.iter().any(|beginning| name.starts_with(beginning));
        is_of_pretraining || is_of_other(name) || name.ends_with("position_ids")
    };
    let rename = |name: &str| Some(current_name(name, family)).filter(|name| !is_unused(name));
    TensorFile::open_folder(folder)?.renamed(rename)
}

/// Returns the name of the map or norm that a tensor belongs to.
fn map_of(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(map, _)| map)
}

/// Renames a tensor: TensorFlow checkpoints call a norm's weight and bias gamma and beta.
fn current_name(name: &str, family: &ClassifierFamily) -> String {
    let name = match name.rsplit_once('.') {
        Some((layer, "gamma")) => format!("{layer}.weight"),
        Some((layer, "beta")) => format!("{layer}.bias"),
        _ => name.to_owned(),
    };
    // DeBERTa's pooler belongs to the classification head, not to the encoder
    if family.head.first.is_some_and(|first| name.starts_with(first)) {
        return name;
    }
    let name = family.names.with_prefix(name);
    family.stack.map_or_else(|| name.clone(), |stack| stack.names.with_prefix(&name))
}
