//! Differences between families of translators: entries of `config.json`, embeddings, positions, places of normalisation.
use heads::Attention;

use crate::config_keys::ConfigKeys;
use crate::parts::Projections;

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

/// Layers of a kind: the names of their tensors, encoder before decoder and self-attention before attention to the source.
#[derive(Debug)]
pub struct Architecture {
    /// Prefixes of the names in a stack.
    pub stacks: [&'static str; 2],
    /// Prefix of a layer's names, before its number.
    pub layers: &'static str,
    /// Attention modules.
    pub modules: [&'static str; 2],
    /// Query, key, value and output projection of a module.
    pub projections: [&'static str; 4],
    /// Norms of the modules.
    pub norms: [&'static str; 2],
    /// Prefixes of the maps of the feed-forward network.
    pub feed_forward: [&'static str; 2],
    /// Its norms.
    pub feed_forward_norms: [&'static str; 2],
    /// Norm at the end of a stack.
    pub last_norm: &'static str,
    /// Bias of each head by distance, which all layers of a stack share. Layers that have it are T5's.
    pub distances: Option<&'static str>,
}

/// Layers of self-attention, attention to the source, and feed-forward networks: Marian, fairseq's translators, BART, mBART, M2M100
/// and Pegasus are built of them.
pub static VASWANI: Architecture = Architecture {
    stacks: ["model.encoder", "model.decoder"],
    layers: "layers",
    modules: ["self_attn", "encoder_attn"],
    projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
    norms: ["self_attn_layer_norm", "encoder_attn_layer_norm"],
    feed_forward: ["fc", "fc"],
    feed_forward_norms: ["final_layer_norm"; 2],
    last_norm: "layer_norm",
    distances: None,
};

/// The layers of T5, Raffel et al. (2020), <https://arxiv.org/abs/1910.10683>: normalisation by the root mean square before each
/// sublayer and at the end of each stack, no biases, scores that are not divided, and a bias of each head on those of
/// self-attention by distance.
pub static RELATIVE: Architecture = Architecture {
    stacks: ["encoder", "decoder"],
    layers: "block",
    modules: ["layer.0.SelfAttention", "layer.1.EncDecAttention"],
    projections: ["q", "k", "v", "o"],
    norms: ["layer.0.layer_norm", "layer.1.layer_norm"],
    feed_forward: ["layer.1.DenseReluDense.", "layer.2.DenseReluDense."],
    feed_forward_norms: ["layer.1.layer_norm", "layer.2.layer_norm"],
    last_norm: "final_layer_norm",
    distances: Some("block.0.layer.0.SelfAttention.relative_attention_bias"),
};

impl Architecture {
    /// Names of the linear maps of an attention module; layers are counted from 0.
    pub fn projections(&self, attention: Attention, layer: usize) -> Projections {
        let module = self.modules[usize::from(attention == Attention::EncDec)];
        Projections::new(
            self.projections.map(|map| self.in_layer(attention, layer, &format!("{module}.{map}"))),
        )
    }

    /// The name of a part of a layer.
    pub fn in_layer(&self, attention: Attention, layer: usize, part: &str) -> String {
        format!("{}.{}.{layer}.{part}", self.stacks[stack(attention)], self.layers)
    }
}

/// 0 for a module of the encoder, 1 for one of the decoder.
pub fn stack(attention: Attention) -> usize {
    usize::from(attention != Attention::EncEnc)
}

/// Name of a table of positions. `stack`: 0 or 1
pub fn position_table(stack: usize) -> String {
    format!("{}.embed_positions.weight", VASWANI.stacks[stack])
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
    pub fn first_row(self, padding: u32) -> i64 {
        match self {
            Self::Vaswani => 0,
            Self::Fairseq => i64::from(padding) + 1,
        }
    }
}
