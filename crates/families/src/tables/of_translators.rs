//! Differences between families of translators: keys of `config.json`, embeddings, positions, and norms.
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
    /// Keys of `config.json` that differ from Marian's, and transformers' defaults of absent keys.
    pub keys: ConfigKeys,
    /// Names of the layers' tensors.
    pub layers: &'static Architecture,
    /// Names of embeddings and output layer.
    pub embeddings: EmbeddingNames,
    /// Names if `share_encoder_decoder_embeddings` is false; `None` if the family lacks this key.
    pub separate: Option<EmbeddingNames>,
    /// Decoding defaults of transformers' configuration class, which differ from its `GenerationConfig`: JSON.
    pub generation: &'static str,
    /// Positions in the embeddings.
    pub positions: Positions,
    /// Where norms are.
    pub norms: Norms,
    /// Keys of `config.json` with a single supported value.
    pub supported: &'static [(&'static str, bool)],
    /// Tensors that a file may contain and that are ignored.
    pub unused: &'static [&'static str],
}

/// Families are identified by their `model_type`.
impl PartialEq for TranslatorFamily {
    fn eq(&self, other: &Self) -> bool {
        self.model_type == other.model_type
    }
}

/// Names of embeddings and output layer.
#[derive(Debug, PartialEq)]
pub struct EmbeddingNames {
    /// Source embeddings.
    pub source: &'static str,
    /// Target embeddings, tied to the output layer. If they are also the source's, here or by `tie_word_embeddings`, source and target
    /// share a vocabulary.
    pub target: &'static str,
    /// Output layer, if `tie_word_embeddings` is false or the tensor differs from the target embeddings.
    pub output: Option<&'static str>,
    /// Bias of the logits, if any; zeros if a file lacks it.
    pub bias: Option<&'static str>,
    /// Tied copies that a folder may also contain, each with its original.
    pub copies: &'static [(&'static str, &'static str)],
}

/// Names of a kind of layers: encoder before decoder, and self-attention before cross-attention.
#[derive(Debug)]
pub struct Architecture {
    /// Prefixes of the encoder and the decoder.
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
    /// Norms of the feed-forward network.
    pub feed_forward_norms: [&'static str; 2],
    /// Norm after the last layer of a stack.
    pub last_norm: &'static str,
    /// Relative position bias, which all layers of a stack share; only T5's layers have it.
    pub distances: Option<&'static str>,
}

/// The layers of Vaswani et al. (2017), used by Marian, fairseq's translators, BART, mBART, M2M100 and Pegasus.
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

/// The layers of T5, Raffel et al. (2020), <https://arxiv.org/abs/1910.10683>: RMS norm before each sublayer and after the last layer, no
/// biases, undivided scores, and a relative position bias in self-attention.
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
    /// Returns the names of an attention module's linear maps; layers are counted from 0.
    pub fn projections(&self, attention: Attention, layer: usize) -> Projections {
        let module = self.modules[usize::from(attention == Attention::EncDec)];
        Projections::new(
            self.projections.map(|map| self.in_layer(attention, layer, &format!("{module}.{map}"))),
        )
    }

    /// Returns the name of a part of a layer.
    pub fn in_layer(&self, attention: Attention, layer: usize, part: &str) -> String {
        format!("{}.{}.{layer}.{part}", self.stacks[stack(attention)], self.layers)
    }
}

/// Returns 0 for encoder modules, 1 for decoder modules.
pub fn stack(attention: Attention) -> usize {
    usize::from(attention != Attention::EncEnc)
}

/// Returns the name of a position table. `stack`: 0 or 1
pub fn position_table(stack: usize) -> String {
    format!("{}.embed_positions.weight", VASWANI.stacks[stack])
}

/// Positions that are added to embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positions {
    /// A computed table.
    Sinusoids(Sinusoids),
    /// Learned tables, `model.encoder.embed_positions` and `model.decoder.embed_positions`.
    Learned {
        /// Rows before the first token's.
        first: i64,
    },
    /// None; scores depend on distances instead.
    Nowhere,
}

/// Where norms are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Norms {
    /// True for pre-norm layers, with norms after the last layers; false for post-norm layers, as in Vaswani et al. (2017).
    pub before: bool,
    /// True if embeddings are normalised too.
    pub of_embeddings: bool,
}

/// Sinusoidal positions, all sines before all cosines, as in Marian and fairseq; in Vaswani et al. (2017), Section 3.5, they alternate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sinusoids {
    /// The frequencies of Vaswani et al. (2017): `10000^(-2 i / d_model)`, from position 0.
    Vaswani,
    /// `10000^(-i / (d_model / 2 - 1))`, from the position after the padding id:
    /// <https://github.com/facebookresearch/fairseq/blob/v0.12.2/fairseq/modules/sinusoidal_positional_embedding.py>.
    Fairseq,
}

impl Sinusoids {
    /// Returns the number of rows of a checkpoint's table before the first token's.
    pub fn first_row(self, padding: u32) -> i64 {
        match self {
            Self::Vaswani => 0,
            Self::Fairseq => i64::from(padding) + 1,
        }
    }
}
