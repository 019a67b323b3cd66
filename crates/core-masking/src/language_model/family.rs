//! Differences between families of language models: entries of `config.json`, names of tensors, a few choices.
use crate::Projections;
use crate::families::ConfigKeys;
use crate::storage::Storage;

/// A family of decoders with normalisation before each sublayer, such as Llama.
#[derive(Debug, PartialEq)]
pub struct LanguageFamily {
    /// `model_type` in its `config.json`.
    pub model_type: &'static str,
    /// The class that transformers loads its folders into.
    pub architecture: &'static str,
    /// Entries of `config.json` that Llama calls otherwise, and what transformers assumes of those that are not there.
    pub keys: ConfigKeys,
    /// Names of its tensors.
    pub names: LanguageNames,
    /// Storage of its linear maps.
    pub storage: Storage,
    /// Kind of normalisation.
    pub norm: Normalisation,
    /// Which of its linear maps have a bias.
    pub biases: Biases,
    /// Which of its layers look at the nearest tokens alone.
    pub windows: Windows,
    /// Entries that a `config.json` may have, and the only value that is supported.
    pub supported: &'static [(&'static str, bool)],
    /// Ends of the names of tensors to ignore: tables that are computed.
    pub unused: &'static [&'static str],
}

/// Names of tensors; those of the decoder without its prefix.
#[derive(Debug, PartialEq)]
pub struct LanguageNames {
    /// Prefix of names in the decoder, unless it was saved by itself.
    pub prefix: &'static str,
    /// Embeddings of tokens.
    pub words: &'static str,
    /// Learned embeddings of positions; rotary ones if absent.
    pub positions: Option<&'static str>,
    /// Prefix of a layer's names, before its number.
    pub layers: &'static str,
    /// Normalisation before attention.
    pub attention_norm: &'static str,
    /// Query, key, value and output projection of a layer.
    pub projections: [&'static str; 4],
    /// Normalisation of each head's query and key, if there is any.
    pub head_norms: Option<[&'static str; 2]>,
    /// Normalisation before the feed-forward block.
    pub feed_forward_norm: &'static str,
    /// Inner and outer map of the feed-forward block, behind its gate if there is one.
    pub feed_forward: &'static [&'static str],
    /// Normalisation after the last layer.
    pub norm: &'static str,
    /// The output layer, with its whole name; tied to the embeddings, it has no tensor.
    pub output: &'static str,
}

/// Kind of normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalisation {
    /// Layer normalisation, Ba et al. (2016), <https://arxiv.org/abs/1607.06450>.
    Layer,
    /// Root mean square, Zhang and Sennrich (2019), <https://arxiv.org/abs/1910.07467>: no mean is taken away, no bias added.
    RootMeanSquare,
}

/// Which linear maps have a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Biases {
    /// Maps of queries, keys and values.
    pub inputs: Bias,
    /// The output projection.
    pub output: Bias,
    /// Maps of the feed-forward block.
    pub feed_forward: Bias,
}

/// Condition on which a linear map has a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bias {
    /// In all models of the family.
    Always,
    /// In none.
    Never,
    /// As `attention_bias` says.
    OfAttention,
    /// As `mlp_bias` says.
    OfFeedForward,
}

/// Which layers look at the nearest tokens alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// None.
    Nowhere,
    /// All, if `sliding_window` is a number.
    Everywhere,
    /// Layers that `layer_types` names, or else those from `max_window_layers` on; only if `use_sliding_window`.
    ByLayer,
}

/// Names of a layer's tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LayerNames {
    pub(super) attention_norm: String,
    pub(super) projections: Projections,
    pub(super) head_norms: Option<[String; 2]>,
    pub(super) feed_forward_norm: String,
    /// Two maps, or three if they are gated.
    pub(super) feed_forward: Vec<String>,
}

impl LanguageNames {
    /// The name of a part of the decoder.
    pub(super) fn of(&self, part: &str) -> String {
        format!("{}.{part}", self.prefix)
    }

    /// The names of a layer, counted from 0.
    pub(super) fn layer(&self, layer: usize) -> LayerNames {
        let of = |part: &str| format!("{}.{}.{layer}.{part}", self.prefix, self.layers);
        LayerNames {
            attention_norm: of(self.attention_norm),
            projections: Projections::new(self.projections.map(of)),
            head_norms: self.head_norms.map(|names| names.map(of)),
            feed_forward_norm: of(self.feed_forward_norm),
            feed_forward: self.feed_forward.iter().map(|name| of(name)).collect(),
        }
    }

    /// A tensor's name with the prefix, which a decoder that was saved by itself lacks.
    pub(super) fn with_prefix(&self, name: &str) -> String {
        let parts = [Some(self.words), self.positions, Some(self.layers), Some(self.norm)];
        let first = name.split('.').next().unwrap_or(name);
        if parts.contains(&Some(first)) { self.of(name) } else { name.to_owned() }
    }
}
