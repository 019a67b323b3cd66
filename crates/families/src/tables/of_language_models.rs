//! Differences between families of language models: keys of `config.json`, names of tensors, and a few choices.
use crate::config_keys::ConfigKeys;
use crate::parts::{HeadNorm, Normalisation, Projections};
use crate::storage::Storage;

/// A family of decoders with norms inside the residual connections, such as Llama.
#[derive(Debug, PartialEq)]
pub struct LanguageFamily {
    /// `model_type` in its `config.json`.
    pub model_type: &'static str,
    /// The class that transformers loads its folders into.
    pub architecture: &'static str,
    /// Keys of `config.json` that differ from Llama's, and transformers' defaults for absent keys.
    pub keys: ConfigKeys,
    /// Optional keys that the family has: dropout, sliding windows, and the `LanguageOptions`.
    pub optional: &'static [&'static str],
    /// Names of the tensors.
    pub names: LanguageNames,
    /// How files store linear maps.
    pub storage: Storage,
    /// Kind of norm.
    pub norm: Normalisation,
    /// Which linear maps have a bias.
    pub biases: Biases,
    /// True if attention and feed-forward layer run in parallel and share their normalised input.
    pub shared_norm: bool,
    /// True if rotary positions pair neighbouring dimensions of a head (0 with 1) instead of its two halves.
    pub interleaved_rotary: bool,
    /// True if embeddings are multiplied by the square root of their width.
    pub scales_words: bool,
    /// Which layers have sliding windows.
    pub windows: Windows,
    /// Keys of `config.json` with a single supported value.
    pub supported: &'static [(&'static str, bool)],
    /// Suffixes of tensors that are ignored because they are computed.
    pub unused: &'static [&'static str],
}

/// Names of tensors, without the decoder's prefix.
#[derive(Debug, PartialEq)]
pub struct LanguageNames {
    /// Prefix of decoder names, absent if the decoder was saved separately.
    pub prefix: &'static str,
    /// Token embeddings.
    pub words: &'static str,
    /// Learned position embeddings; `None` for rotary positions.
    pub positions: Option<&'static str>,
    /// Rows of the position table before the first position's.
    pub rows_before: i64,
    /// Prefix of a layer's names, before its number.
    pub layers: &'static str,
    /// Norms of the attention sublayer.
    pub attention_norm: SublayerNorms<&'static str>,
    /// True if the first layer has no attention norm, since embeddings are normalised.
    pub bare_first: bool,
    /// Query, key, value and output projection of a layer.
    pub projections: [&'static str; 4],
    /// Norms of queries and keys, if any.
    pub head_norms: Option<[&'static str; 2]>,
    /// Kind of the norms of queries and keys.
    pub head_norm: HeadNorm,
    /// Norms of the feed-forward sublayer.
    pub feed_forward_norm: SublayerNorms<&'static str>,
    /// Inner and outer map of the feed-forward layer, preceded by the gate if it is gated.
    pub feed_forward: &'static [&'static str],
    /// In a layer with experts: the router, and the prefix of an expert's number. The last components of its maps' names equal those of the
    /// feed-forward layer.
    pub experts: Option<[&'static str; 2]>,
    /// Norm after the last layer.
    pub norm: &'static str,
    /// The output layer, with its full name; absent if tied to the embeddings.
    pub output: &'static str,
}

/// Values before and after a sublayer, inside its residual connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SublayerNorms<T> {
    /// For the sublayer's input.
    pub before: Option<T>,
    /// For the sublayer's output.
    pub after: Option<T>,
}

impl<T> SublayerNorms<T> {
    /// Converts both values.
    pub fn map<U>(self, make: impl Fn(T) -> U) -> SublayerNorms<U> {
        SublayerNorms { before: self.before.map(&make), after: self.after.map(make) }
    }
}

/// Which linear maps have a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Biases {
    /// Maps of queries, keys and values.
    pub inputs: Bias,
    /// The output projection.
    pub output: Bias,
    /// Maps of the feed-forward layer.
    pub feed_forward: Bias,
}

/// Condition on which a linear map has a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bias {
    /// In all models of the family.
    Always,
    /// In none.
    Never,
    /// If `attention_bias` is true.
    OfAttention,
    /// If `mlp_bias` is true.
    OfFeedForward,
}

/// Which layers have sliding windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// None.
    Nowhere,
    /// All, if `sliding_window` is a number.
    Everywhere,
    /// Layers given by `layer_types`, by default all except every N-th; `sliding_window_pattern` overrides N.
    Periodic(usize),
    /// Layers given by `layer_types`, by default all except every N-th, starting with the first; `sliding_window_pattern` overrides N.
    PeriodicFromFirst(usize),
    /// Layers given by `layer_types`, by default all from `max_window_layers` on; only if `use_sliding_window`.
    ByLayer,
}

/// Names of a layer's tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerNames {
    /// Norms of the attention sublayer.
    pub attention_norm: SublayerNorms<String>,
    /// Maps of attention.
    pub projections: Projections,
    /// Norms of queries and keys.
    pub head_norms: Option<[String; 2]>,
    /// Norms of the feed-forward sublayer.
    pub feed_forward_norm: SublayerNorms<String>,
    /// Two maps, or three with a gate.
    pub feed_forward: Vec<String>,
    /// The router, and the prefix of an expert's number.
    pub experts: Option<[String; 2]>,
}

impl LayerNames {
    /// Returns the names of an expert's maps.
    pub fn expert(&self, number: usize) -> Vec<String> {
        let before = self.experts.as_ref().map_or("", |[_, expert]| expert);
        let last = |name: &String| format!("{before}.{number}.{}", name.rsplit('.').next().unwrap_or(name));
        self.feed_forward.iter().map(last).collect()
    }
}

impl LanguageFamily {
    /// Returns true if the family has a key, given by its common name.
    pub fn has(&self, name: &str) -> bool {
        self.optional.contains(&name)
            || self.keys.entries.iter().any(|(common, own)| *common == name && own.is_some())
    }
}

impl LanguageNames {
    /// Returns the name of a part of the decoder.
    pub fn of(&self, part: &str) -> String {
        format!("{}.{part}", self.prefix)
    }

    /// Returns the names of a layer, counted from 0.
    pub fn layer(&self, layer: usize) -> LayerNames {
        let of = |part: &str| format!("{}.{}.{layer}.{part}", self.prefix, self.layers);
        let is_bare = layer == 0 && self.bare_first;
        LayerNames {
            attention_norm: if is_bare {
                SublayerNorms { before: None, after: None }
            } else {
                self.attention_norm.map(of)
            },
            projections: Projections::new(self.projections.map(of)),
            head_norms: self.head_norms.map(|names| names.map(of)),
            feed_forward_norm: self.feed_forward_norm.map(of),
            feed_forward: self.feed_forward.iter().map(|name| of(name)).collect(),
            experts: self.experts.map(|names| names.map(of)),
        }
    }

    /// Adds the prefix to a tensor's name if it lacks it, as in separately saved decoders.
    pub fn with_prefix(&self, name: &str) -> String {
        let parts = [Some(self.words), self.positions, Some(self.layers), Some(self.norm)];
        // part of a vision-language model
        let name = name.strip_prefix("language_model.").unwrap_or(name);
        if let Some((outer, inner)) = self.prefix.split_once('.')
            && name.split('.').next() == Some(inner)
        {
            return format!("{outer}.{name}");
        }
        let first = name.split('.').next().unwrap_or(name);
        if parts.contains(&Some(first)) { self.of(name) } else { name.to_owned() }
    }
}
