//! Size, tokeniser and training settings of a BERT model or a ViT.
use std::collections::BTreeMap;

use core_masking::classifier::{Classified, ClassifierOptions, ImageShape, ImageSize};
use core_masking::families::{BERT, VIT};
use core_masking::{Activation, ClassifierConfig};
use serde::{Deserialize, Serialize, Serializer};
use training::Keep;

use super::train::BETAS;
use crate::spec::{check_training, section};
use corpus::splits::check;

section! {
    /// Size of a BERT model, or of a ViT if `image` is set.
    model EncoderSpec {
        /// Dropout everywhere.
        pub dropout: f64,
        /// Standard deviation of the initial weights.
        #[serde(default = "crate::spec::initializer_range")]
        pub initializer_range: f64,
        /// Images that a ViT reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub image: Option<ImageSpec>,
    }
}

/// Images that a ViT reads.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImageSpec {
    /// Height and width, in pixels; images are resized to it.
    pub size: i64,
    /// Height and width of a patch, in pixels.
    pub patch: i64,
    /// 3 for RGB, 1 for greyscale.
    #[serde(default = "rgb")]
    pub channels: i64,
}

fn rgb() -> i64 {
    3
}

impl ImageSpec {
    pub(super) fn shape(self) -> ImageShape {
        let Self { size, patch, channels } = self;
        ImageShape { channels, height: size, width: size, patch }
    }

    pub(super) fn validate(self) -> Result<(), String> {
        let Self { size, patch, channels } = self;
        check(&[
            ("model.image.size must be from 1 to 8192", (1..=8192).contains(&size)),
            ("model.image.patch must be from 1 to model.image.size", (1..=size).contains(&patch)),
            ("model.image.channels must be 1 (greyscale) or 3 (RGB)", [1, 3].contains(&channels)),
        ])
    }
}

/// Tokeniser of the texts.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TextTokenizerSpec {
    /// Maximum number of tokens. Longer texts are truncated at the end; of two texts, the longer one is truncated first. Defaults to
    /// [`MAX_LENGTH`] or the number of the model's positions, if that is smaller.
    #[serde(serialize_with = "max_length")]
    pub max_length: Option<usize>,
    /// Maximum vocabulary size of the tokeniser, if the model is trained from scratch.
    pub vocabulary: Option<usize>,
}

/// Default maximum number of tokens.
const MAX_LENGTH: usize = 128;

/// Writes the default as a number, since the recipes of trained models contain the number.
fn max_length<S: Serializer>(length: &Option<usize>, serializer: S) -> Result<S::Ok, S::Error> {
    length.unwrap_or(MAX_LENGTH).serialize(serializer)
}

impl TextTokenizerSpec {
    pub(super) fn is_empty(&self) -> bool {
        self.max_length.is_none() && self.vocabulary.is_none()
    }

    /// Returns the maximum number of tokens for a model.
    ///
    /// - `positions`: of the model; `None` if the model is created for the tokeniser
    pub(super) fn max_length(&self, positions: Option<i64>) -> usize {
        let most = positions.and_then(|positions| usize::try_from(positions).ok());
        self.max_length.unwrap_or_else(|| most.map_or(MAX_LENGTH, |most| most.min(MAX_LENGTH)))
    }
}

section! {
    /// AdamW with linear warm-up and decay (Devlin et al. 2019, Appendix A.3).
    training FineTuningSpec {
        /// Examples per batch.
        pub batch_size: usize,
        /// Learning rate at the end of the warm-up.
        pub learning_rate: f64,
        /// Share of all optimiser updates that belong to the warm-up.
        #[serde(default = "warmup_share")]
        pub warmup_share: f64,
        /// Weight decay, applied to all weights except biases and normalisations.
        #[serde(default = "weight_decay")]
        pub weight_decay: f64,
        /// Maximum L2 norm of the gradient of all weights together.
        #[serde(default = "crate::spec::clip_norm")]
        pub clip_norm: f64,
        /// The epoch that becomes the model: `best` on the development split, or `last`.
        pub keep: Keep,
    }
}

fn warmup_share() -> f64 {
    0.1
}

fn weight_decay() -> f64 {
    0.01
}

impl FineTuningSpec {
    pub(super) fn validate(&self) -> Result<(), String> {
        let rate = ("learning_rate", self.learning_rate);
        check_training(self.epochs, rate, self.clip_norm, self.weight_decay, BETAS)?;
        check(&[
            ("training.batch_size must be from 1 to 65536", (1..=1 << 16).contains(&self.batch_size)),
            ("training.warmup_share must be from 0 to 1", (0.0..=1.0).contains(&self.warmup_share)),
        ])
    }
}

impl EncoderSpec {
    /// Returns the configuration with all heads, for a tokeniser's vocabulary size.
    pub(crate) fn config(
        &self,
        tokenizer: TextTokenizerSpec,
        (labels, classified): (&[String], Classified),
        vocabulary: usize,
    ) -> ClassifierConfig {
        let config = ClassifierConfig {
            family: &BERT,
            model_type: "bert".to_owned(),
            architectures: Vec::new(),
            problem_type: None,
            vocab_size: vocabulary as i64,
            hidden_size: self.d_model,
            embedding_size: None,
            position_buckets: None,
            max_relative_positions: None,
            num_hidden_layers: self.layers,
            num_attention_heads: self.heads,
            intermediate_size: self.d_ff,
            hidden_act: Activation::Gelu,
            max_position_embeddings: tokenizer.max_length(None) as i64,
            type_vocab_size: 2,
            layer_norm_eps: 1e-12,
            initializer_range: self.initializer_range,
            hidden_dropout_prob: self.dropout,
            attention_probs_dropout_prob: self.dropout,
            classifier_dropout: None,
            pad_token_id: 0,
            options: ClassifierOptions::default(),
            position_embedding_type: "absolute".to_owned(),
            id2label: BTreeMap::new(),
            label2id: BTreeMap::new(),
            pruned_heads: BTreeMap::new(),
        };
        match self.image {
            Some(image) => of_images(config, image).with_labels(labels),
            None => config.classifying(classified).with_labels(labels),
        }
    }
}

/// Returns the configuration of a ViT with the sizes in `config`.
fn of_images(config: ClassifierConfig, image: ImageSpec) -> ClassifierConfig {
    ClassifierConfig {
        family: &VIT,
        model_type: VIT.model_type.to_owned(),
        vocab_size: 1,
        type_vocab_size: 0,
        max_position_embeddings: 1 + image.shape().patches(),
        classifier_dropout: Some(0.0),
        options: ClassifierOptions {
            attention_bias: Some(true),
            image_size: Some(ImageSize::Square(image.size)),
            patch_size: Some(image.patch),
            num_channels: Some(image.channels),
            ..config.options
        },
        ..config
    }
}
