//! Differences between families of classifiers: entries of `config.json`, names of tensors, a few choices.
use super::LanguageFamily;
use crate::config_keys::ConfigKeys;
use crate::parts::Projections;
use crate::storage::Storage;
use serde_json::{Map, Value};

/// A family of encoders with a classifier on top, such as BERT.
#[derive(Debug, PartialEq)]
pub struct ClassifierFamily {
    /// `model_type` in its `config.json`.
    pub model_type: &'static str,
    /// The class that transformers loads its folders into, if texts or images are classified.
    pub architecture: &'static str,
    /// Entries of `config.json` that BERT calls otherwise, and what transformers assumes of those that are not there.
    pub keys: ConfigKeys,
    /// Names of its tensors.
    pub names: ClassifierNames,
    /// Layers as language models have them, in the place of BERT's.
    pub stack: Option<&'static LanguageFamily>,
    /// Storage of its linear maps.
    pub storage: Storage,
    /// True if all layers have the weights of one, which has the number 0.
    pub shares_layers: bool,
    /// Entries whose only supported values these are: JSON under common names. Those that are not null are saved.
    pub supported: &'static str,
    /// Where positions begin to count.
    pub positions: PositionStart,
    /// Computation of the logits of a text.
    pub head: ClassifierHead,
    /// Computation of the logits of each token.
    pub token_head: ClassifierHead,
    /// Prefixes of tensors to ignore: heads of pretraining.
    pub unused: &'static [&'static str],
}

/// Names of tensors; those of the encoder without its prefix.
#[derive(Debug, PartialEq)]
pub struct ClassifierNames {
    /// Prefix of names in the encoder, unless it was saved by itself.
    pub prefix: &'static str,
    /// Embeddings of tokens.
    pub words: &'static str,
    /// Embeddings of positions, if there are any.
    pub positions: Option<&'static str>,
    /// Positions of an image, in the place of embeddings of tokens, positions and segments.
    pub patches: Option<PatchNames>,
    /// Embeddings of segments, if there are any.
    pub segments: Option<&'static str>,
    /// Normalisation of the sum of embeddings.
    pub embedding_norm: &'static str,
    /// Map from embeddings to the width of the residual stream, where these may be narrower.
    pub embedding_map: Option<&'static str>,
    /// What scores owe to the distance between query and key, if they do.
    pub distances: Option<DistanceNames>,
    /// Prefix of a layer's names, before its number.
    pub layers: &'static str,
    /// Query, key, value and output projection of a layer.
    pub projections: [&'static str; 4],
    /// Normalisation after attention.
    pub attention_norm: &'static str,
    /// The two maps of the feed-forward block.
    pub feed_forward: [&'static str; 2],
    /// Normalisation after it.
    pub norm: &'static str,
}

/// Names of the tensors that make positions of an image; the prefix of the encoder is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchNames {
    /// Learned embeddings before the patches: the one that is classified, and those that are only attended to.
    pub first: &'static [&'static str],
    /// Convolution that makes an embedding of each patch.
    pub projection: &'static str,
    /// Embeddings of all positions.
    pub positions: &'static str,
}

/// Tables by the bucket of the distance between query and key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DistanceNames {
    /// A bias of each head: MPNet's.
    Bias(&'static str),
    /// Embeddings, and their normalisation: DeBERTa's.
    Embeddings {
        /// The table.
        table: &'static str,
        /// The normalisation.
        norm: &'static str,
    },
}

/// Where positions begin to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionStart {
    /// At 0.
    Zero,
    /// After the padding id, as in fairseq, and padding is not counted: earlier rows are unused.
    AfterPadding,
    /// The same as if the padding id were 1.
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
    /// End of the names of the classes in transformers that do so.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Texts => "ForSequenceClassification",
            Self::Tokens => "ForTokenClassification",
            Self::Images => "ForImageClassification",
        }
    }
}

/// One or two linear maps to the logits: of a text from its first position or the mean of all, of a token from its own.
#[derive(Debug, PartialEq)]
pub struct ClassifierHead {
    /// The first map; `None` if there is only one.
    pub first: Option<&'static str>,
    /// Nonlinearity after the first map.
    pub activation: HeadActivation,
    /// Normalisation after the nonlinearity.
    pub norm: Option<&'static str>,
    /// The last map, which has a row for each class.
    pub last: &'static str,
    /// True if training drops out elements of the first map's input too.
    pub drops_input: bool,
}

/// The nonlinearity of a classifier's head.
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
    /// The two maps of the feed-forward block.
    pub feed_forward: [String; 2],
    /// Norm after it.
    pub norm: String,
}

impl ClassifierHead {
    /// One map, from each token: the head of token classifiers in nearly all families.
    ///
    /// Differs from transformers in training DistilBERT and DeBERTa, where the dropout before it has the rate of hidden states, not
    /// that of the classifier.
    pub const OF_TOKENS: Self = Self {
        first: None,
        activation: HeadActivation::Tanh,
        norm: None,
        last: "classifier",
        drops_input: false,
    };

    /// Names of its maps and its normalisation.
    pub fn maps(&self) -> impl Iterator<Item = &'static str> {
        self.first.into_iter().chain(self.norm).chain([self.last])
    }
}

impl ClassifierFamily {
    /// The class that transformers loads a folder into.
    pub fn architecture_of(&self, classified: Classified) -> String {
        self.architecture.replace(Classified::Texts.suffix(), classified.suffix())
    }

    /// The classification head of a model that classifies these.
    pub fn head_of(&self, classified: Classified) -> &ClassifierHead {
        match classified {
            Classified::Texts | Classified::Images => &self.head,
            Classified::Tokens => &self.token_head,
        }
    }

    /// The only supported values of some entries.
    ///
    /// # Panics
    /// If they are no JSON.
    pub fn supported(&self) -> Map<String, Value> {
        serde_json::from_str(self.supported).expect("supported values are JSON")
    }
}

impl ClassifierNames {
    /// The name of a part of the encoder.
    pub fn of(&self, part: &str) -> String {
        format!("{}.{part}", self.prefix)
    }

    /// The names of a layer, counted from 0.
    pub fn layer(&self, layer: usize) -> BlockNames {
        let of = |part: &str| format!("{}.{}.{layer}.{part}", self.prefix, self.layers);
        BlockNames {
            projections: Projections::new(self.projections.map(of)),
            attention_norm: of(self.attention_norm),
            feed_forward: self.feed_forward.map(of),
            norm: of(self.norm),
        }
    }

    /// A tensor's name with the prefix, which an encoder that was saved by itself lacks.
    pub fn with_prefix(&self, name: String) -> String {
        let first = |path: &'static str| path.split('.').next().unwrap_or(path);
        let parts =
            [first(self.words), first(self.layers), self.embedding_map.map_or("pooler", first), "pooler"];
        let part = name.split('.').next().unwrap_or(&name);
        if parts.contains(&part) { self.of(&name) } else { name }
    }
}
