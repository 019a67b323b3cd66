//! Differences between families of language models: entries of `config.json`, names of tensors, a few choices.
use crate::config_keys::ConfigKeys;
use crate::parts::{HeadNorm, Normalisation, Projections};
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
    /// Entries of `config.json` beyond those that all have: dropout, windows, and the `LanguageOptions`.
    pub optional: &'static [&'static str],
    /// Names of its tensors.
    pub names: LanguageNames,
    /// Storage of its linear maps.
    pub storage: Storage,
    /// Kind of normalisation.
    pub norm: Normalisation,
    /// Which of its linear maps have a bias.
    pub biases: Biases,
    /// True if attention and the feed-forward block run in parallel and read the same normalised input.
    pub shared_norm: bool,
    /// True if rotary positions rotate neighbouring dimensions of a head (0 with 1) instead of its two halves.
    pub interleaved_rotary: bool,
    /// True if embeddings are multiplied by the square root of their width.
    pub scales_words: bool,
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
    /// Rows of that table before the one of the first position.
    pub rows_before: i64,
    /// Prefix of a layer's names, before its number.
    pub layers: &'static str,
    /// Normalisation around attention.
    pub attention_norm: Around<&'static str>,
    /// True if the first layer has none of it, since embeddings are normalised.
    pub bare_first: bool,
    /// Query, key, value and output projection of a layer.
    pub projections: [&'static str; 4],
    /// Normalisation of queries and keys, if there is any.
    pub head_norms: Option<[&'static str; 2]>,
    /// Kind of that normalisation.
    pub head_norm: HeadNorm,
    /// Normalisation around the feed-forward block.
    pub feed_forward_norm: Around<&'static str>,
    /// Inner and outer map of the feed-forward block, behind its gate if there is one.
    pub feed_forward: &'static [&'static str],
    /// In a layer of experts: the map that chooses among them, and what stands before an expert's number. The last parts of
    /// the names of its maps are those of the feed-forward block.
    pub experts: Option<[&'static str; 2]>,
    /// Normalisation after the last layer.
    pub norm: &'static str,
    /// The output layer, with its whole name; tied to the embeddings, it has no tensor.
    pub output: &'static str,
}

/// What stands before and after a sublayer, within its residual connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around<T> {
    /// Of what the sublayer reads.
    pub before: Option<T>,
    /// Of what it adds.
    pub after: Option<T>,
}

impl<T> Around<T> {
    /// Both made anew.
    pub fn map<U>(self, make: impl Fn(T) -> U) -> Around<U> {
        Around { before: self.before.map(&make), after: self.after.map(make) }
    }
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
    /// Layers that `layer_types` names, or else all but every N-th; `sliding_window_pattern` is another N.
    Periodic(usize),
    /// The same, counted from the first layer, which sees all tokens.
    PeriodicFromFirst(usize),
    /// Layers that `layer_types` names, or else those from `max_window_layers` on; only if `use_sliding_window`.
    ByLayer,
}

/// Names of a layer's tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerNames {
    /// Norms around attention.
    pub attention_norm: Around<String>,
    /// Maps of attention.
    pub projections: Projections,
    /// Norms of queries and keys.
    pub head_norms: Option<[String; 2]>,
    /// Norms around the feed-forward block.
    pub feed_forward_norm: Around<String>,
    /// Two maps, or three if they are gated.
    pub feed_forward: Vec<String>,
    /// The map that chooses among experts, and what stands before an expert's number.
    pub experts: Option<[String; 2]>,
}

impl LayerNames {
    /// The names of an expert's maps.
    pub fn expert(&self, number: usize) -> Vec<String> {
        let before = self.experts.as_ref().map_or("", |[_, expert]| expert);
        let last = |name: &String| format!("{before}.{number}.{}", name.rsplit('.').next().unwrap_or(name));
        self.feed_forward.iter().map(last).collect()
    }
}

impl LanguageFamily {
    /// Returns true if the entry, by its common name, is one of the family's.
    pub fn has(&self, name: &str) -> bool {
        self.optional.contains(&name)
            || self.keys.entries.iter().any(|(common, own)| *common == name && own.is_some())
    }
}

impl LanguageNames {
    /// The name of a part of the decoder.
    pub fn of(&self, part: &str) -> String {
        format!("{}.{part}", self.prefix)
    }

    /// The names of a layer, counted from 0.
    pub fn layer(&self, layer: usize) -> LayerNames {
        let of = |part: &str| format!("{}.{}.{layer}.{part}", self.prefix, self.layers);
        let is_bare = layer == 0 && self.bare_first;
        LayerNames {
            attention_norm: if is_bare {
                Around { before: None, after: None }
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

    /// A tensor's name with the prefix, which a decoder that was saved by itself lacks.
    pub fn with_prefix(&self, name: &str) -> String {
        let parts = [Some(self.words), self.positions, Some(self.layers), Some(self.norm)];
        // part of a model that reads pictures too
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
