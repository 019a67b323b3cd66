//! Differences between families of classifiers: keys of `config.json`, names of tensors, and a few choices.
use super::LanguageFamily;
use crate::config_keys::ConfigKeys;
use crate::parts::Projections;
use crate::storage::Storage;
use serde_json::{Map, Value};

/// A family of encoders with a classification head, such as BERT.
#[derive(Debug, PartialEq)]
pub struct ClassifierFamily {
    /// `model_type` in its `config.json`.
    pub model_type: &'static str,
    /// The class that transformers loads its folders into, for text or image classification.
    pub architecture: &'static str,
    /// Keys of `config.json` that differ from BERT's, and transformers' defaults of absent keys.
    pub keys: ConfigKeys,
    /// Names of the tensors.
    pub names: ClassifierNames,
    /// Layers of a language model, which replace BERT's post-norm layers.
    pub stack: Option<&'static LanguageFamily>,
    /// How files store linear maps.
    pub storage: Storage,
    /// True if all layers share the weights of layer 0.
    pub shares_layers: bool,
    /// Keys with a single supported value: JSON under common keys. Values other than null are saved.
    pub supported: &'static str,
    /// Where positions start.
    pub positions: PositionStart,
    /// Classification head for texts or images.
    pub head: ClassifierHead,
    /// Classification head for tokens.
    pub token_head: ClassifierHead,
    /// Prefixes of ignored tensors, such as pretraining heads.
    pub unused: &'static [&'static str],
}

/// Names of tensors, without the encoder's prefix.
#[derive(Debug, PartialEq)]
pub struct ClassifierNames {
    /// Prefix of encoder names, absent if the encoder was saved separately.
    pub prefix: &'static str,
    /// Token embeddings.
    pub words: &'static str,
    /// Position embeddings, if any.
    pub positions: Option<&'static str>,
    /// Patch embeddings of image models, which replace token, position and segment embeddings.
    pub patches: Option<PatchNames>,
    /// Segment embeddings, if any.
    pub segments: Option<&'static str>,
    /// Norm of the sum of embeddings.
    pub embedding_norm: &'static str,
    /// Projection from embeddings to the residual stream, in families where embeddings may be narrower.
    pub embedding_map: Option<&'static str>,
    /// Tables of the position terms of attention scores, if any.
    pub distances: Option<DistanceNames>,
    /// Prefix of a layer's names, before its number.
    pub layers: &'static str,
    /// Query, key, value and output projection of a layer.
    pub projections: [&'static str; 4],
    /// Norm after attention.
    pub attention_norm: &'static str,
    /// The two maps of the feed-forward layer.
    pub feed_forward: [&'static str; 2],
    /// Norm after the feed-forward layer.
    pub norm: &'static str,
}

/// Names of the tensors that embed an image, without the encoder's prefix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchNames {
    /// Learned embeddings before the patches: the first is classified, the others are only attended to.
    pub first: &'static [&'static str],
    /// Convolution that embeds patches.
    pub projection: &'static str,
    /// Position embeddings.
    pub positions: &'static str,
}

/// Tables indexed by the bucket of the distance between query and key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DistanceNames {
    /// Relative position bias, as in MPNet.
    Bias(&'static str),
    /// Relative-position embeddings and their norm, as in DeBERTa.
    Embeddings {
        /// The table.
        table: &'static str,
        /// The norm.
        norm: &'static str,
    },
}

/// Where positions start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionStart {
    /// At 0.
    Zero,
    /// After the padding id, as in fairseq; padding has no position, and earlier rows are unused.
    AfterPadding,
    /// At 2, as if the padding id were 1.
    AfterOne,
}

/// What a model classifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Classified {
    /// Texts, or pairs of texts.
    Texts,
    /// Each token of a text.
    Tokens,
    /// Images.
    Images,
}

impl Classified {
    /// Returns the suffix of transformers' class names for this task.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Texts => "ForSequenceClassification",
            Self::Tokens => "ForTokenClassification",
            Self::Images => "ForImageClassification",
        }
    }
}

/// Classification head of one or two linear maps: for a text from its first position or the mean of all, for a token from its position.
#[derive(Debug, PartialEq)]
pub struct ClassifierHead {
    /// The first map; `None` if the head has only one.
    pub first: Option<&'static str>,
    /// Activation after the first map.
    pub activation: HeadActivation,
    /// Norm after the activation.
    pub norm: Option<&'static str>,
    /// The last map, which has a row per class.
    pub last: &'static str,
    /// True if dropout also applies to the first map's input.
    pub drops_input: bool,
}

/// Activation of a classification head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadActivation {
    /// tanh x
    Tanh,
    /// max(0, x)
    Relu,
    /// x Φ(x)
    Gelu,
}

/// Names of a layer's tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockNames {
    /// Maps of attention.
    pub projections: Projections,
    /// Norm after attention.
    pub attention_norm: String,
    /// The two maps of the feed-forward layer.
    pub feed_forward: [String; 2],
    /// Norm after the feed-forward layer.
    pub norm: String,
}

impl ClassifierHead {
    /// A single map: the head for token classification in nearly all families.
    ///
    /// Differs from transformers when DistilBERT or DeBERTa are trained: there, the dropout before it has the rate of hidden states, not of
    /// the classifier.
    pub const OF_TOKENS: Self = Self {
        first: None,
        activation: HeadActivation::Tanh,
        norm: None,
        last: "classifier",
        drops_input: false,
    };

    /// Returns the names of its maps and its norm.
    pub fn maps(&self) -> impl Iterator<Item = &'static str> {
        self.first.into_iter().chain(self.norm).chain([self.last])
    }
}

impl ClassifierFamily {
    /// Returns the class that transformers loads a folder into.
    pub fn architecture_of(&self, classified: Classified) -> String {
        self.architecture.replace(Classified::Texts.suffix(), classified.suffix())
    }

    /// Returns the classification head for a task.
    pub fn head_of(&self, classified: Classified) -> &ClassifierHead {
        match classified {
            Classified::Texts | Classified::Images => &self.head,
            Classified::Tokens => &self.token_head,
        }
    }

    /// Returns the keys with a single supported value.
    pub fn supported(&self) -> Map<String, Value> {
        serde_json::from_str(self.supported).expect("supported values are JSON")
    }
}

impl ClassifierNames {
    /// Returns the name of a part of the encoder.
    pub fn of(&self, part: &str) -> String {
        format!("{}.{part}", self.prefix)
    }

    /// Returns the names of a layer, counted from 0.
    pub fn layer(&self, layer: usize) -> BlockNames {
        let of = |part: &str| format!("{}.{}.{layer}.{part}", self.prefix, self.layers);
        BlockNames {
            projections: Projections::new(self.projections.map(of)),
            attention_norm: of(self.attention_norm),
            feed_forward: self.feed_forward.map(of),
            norm: of(self.norm),
        }
    }

    /// Adds the prefix to a tensor's name if it lacks it, as in separately saved encoders.
    pub fn with_prefix(&self, name: String) -> String {
        let first = |path: &'static str| path.split('.').next().unwrap_or(path);
        let parts =
            [first(self.words), first(self.layers), self.embedding_map.map_or("pooler", first), "pooler"];
        let part = name.split('.').next().unwrap_or(&name);
        if parts.contains(&part) { self.of(&name) } else { name }
    }
}
