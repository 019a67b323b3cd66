//! Differences between families of translators: entries of `config.json`, embeddings, positions, places of normalisation.
use tch::{Device, Kind, Tensor};

use super::parts::Architecture;
use crate::families::ConfigKeys;

/// A family of encoder-decoder models, such as Marian.
#[derive(Debug)]
pub struct TranslatorFamily {
    /// `model_type` in its `config.json`.
    pub model_type: &'static str,
    /// The class that transformers loads its folders into.
    pub architecture: &'static str,
    /// Entries of `config.json` that Marian calls otherwise, and what transformers assumes of those that are not there.
    pub keys: ConfigKeys,
    /// The layers.
    pub layers: &'static Architecture,
    /// Names of embeddings and output layer.
    pub embeddings: EmbeddingNames,
    /// The same where `share_encoder_decoder_embeddings` is false, if the family knows that.
    pub separate: Option<EmbeddingNames>,
    /// Search settings of transformers' configuration class where a `config.json` does not say: JSON. Its
    /// `GenerationConfig` has other defaults.
    pub generation: &'static str,
    /// What the embeddings know of positions.
    pub positions: Positions,
    /// Where layers normalise.
    pub norms: Norms,
    /// Entries that a `config.json` may have, and the only value that is supported.
    pub supported: &'static [(&'static str, bool)],
    /// Tensors that a file may hold and that nothing reads.
    pub unused: &'static [&'static str],
}

/// Families are told apart by their `model_type`.
impl PartialEq for TranslatorFamily {
    fn eq(&self, other: &Self) -> bool {
        self.model_type == other.model_type
    }
}

/// Names of embeddings and output layer.
#[derive(Debug, PartialEq)]
pub struct EmbeddingNames {
    /// Embeddings of source tokens.
    pub source: &'static str,
    /// Target embeddings, tied to the output layer. Where they are also the source's, here or by `tie_word_embeddings`, both
    /// sides have one vocabulary.
    pub target: &'static str,
    /// An output layer that is not the target embeddings, if `tie_word_embeddings` is false or the tensor differs from them.
    pub output: Option<&'static str>,
    /// The bias of the logits, if there is one; zeros where a file lacks it.
    pub bias: Option<&'static str>,
    /// Tensors that a folder may hold beside that which they are copies of.
    pub copies: &'static [(&'static str, &'static str)],
}

/// What is added to embeddings for their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positions {
    /// Rows of a table that is computed.
    Sinusoids(Sinusoids),
    /// Rows of a table of each stack, `model.encoder.embed_positions` and `model.decoder.embed_positions`.
    Learned {
        /// Rows before that of the first token.
        first: i64,
    },
    /// Nothing: scores know of distances.
    Nowhere,
}

/// Where layers normalise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Norms {
    /// Before each sublayer and at the end of each stack, or behind each sublayer, as in Vaswani et al. (2017).
    pub before: bool,
    /// Behind the embeddings too.
    pub of_embeddings: bool,
}

/// Sinusoidal positions, all sines before all cosines, as in Marian and fairseq; Vaswani et al. (2017), Section 3.5, let
/// them take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sinusoids {
    /// The frequencies of Vaswani et al. (2017): `10000^(-2 i / d_model)`, from position 0.
    Vaswani,
    /// `10000^(-i / (d_model / 2 - 1))`, from the position behind the number of the padding symbol:
    /// <https://github.com/facebookresearch/fairseq/blob/v0.12.2/fairseq/modules/sinusoidal_positional_embedding.py>.
    Fairseq,
}

impl Sinusoids {
    /// The rows of the table in a checkpoint before that of the first token.
    pub(super) fn first_row(self, padding: u32) -> i64 {
        match self {
            Self::Vaswani => 0,
            Self::Fairseq => i64::from(padding) + 1,
        }
    }

    /// Rows `first` to `first + rows` of the table: `[rows, d_model]`.
    pub(super) fn table(self, first: i64, rows: i64, d_model: i64, options: (Kind, Device)) -> Tensor {
        let wide = (Kind::Double, Device::Cpu);
        let step = match self {
            Self::Vaswani => -2.0 / d_model as f64 * 10_000_f64.ln(),
            Self::Fairseq => -(10_000_f64.ln()) / (d_model / 2 - 1) as f64,
        };
        let rate = (Tensor::arange(d_model / 2, wide) * step).exp();
        let position = Tensor::arange_start(first, first + rows, wide);
        let angle = position.unsqueeze(1) * rate; // [rows, d_model / 2]
        Tensor::cat(&[angle.sin(), angle.cos()], 1).to_kind(options.0).to_device(options.1)
    }
}
