//! Texts that a model reads separately, and the attention weights of its heads.
use core_masking::{Attention, AttentionMaps, HeadId};

use crate::error::Error;

/// How the heads of a model read a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextInput {
    /// The self-attention over the text: of the encoder in a translator, otherwise the only attention type.
    pub attention: Attention,
    /// True if a token attends to later tokens.
    pub sees_future: bool,
    /// Tokens that end a text: `</s>` of a translator; `[SEP]` or `</s>` of a classifier; for a language model those in its configuration.
    /// GPT-2 also puts its EOS token before texts.
    pub ends: Vec<u32>,
    /// Maximum number of tokens per text.
    pub longest: usize,
}

/// A text for a model to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input<'a> {
    /// The text.
    pub text: &'a str,
    /// The second text of a pair, or a translation that replaces the translator's own.
    pub second: Option<&'a str>,
}

/// Attention patterns of all heads in a text.
#[derive(Debug, Clone)]
pub struct ReadText {
    /// The model's answer: its translation, its class, or the text that follows.
    pub answer: String,
    /// Attention patterns by attention type.
    pub maps: Vec<AttentionMaps>,
}

/// Refuses a text without tokens or with more tokens than the model reads.
pub(crate) fn check_length(what: &str, tokens: usize, longest: usize) -> Result<(), Error> {
    match tokens {
        0 => Err(Error::Invalid(format!("{what} has no token"))),
        _ if tokens > longest => {
            Err(Error::Invalid(format!("{what} has {tokens} tokens, but the model reads at most {longest}")))
        }
        _ => Ok(()),
    }
}

/// Tokens of a language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    /// BOS token; `None` if the model has none.
    pub begin: Option<u32>,
    /// Ids of tokens that represent text.
    pub of_text: Vec<u32>,
}

/// Attention weights of one text.
#[derive(Debug, Clone)]
pub struct TextAttention {
    tokens: usize,
    heads: usize,
    layers: Vec<Vec<f32>>, // of each layer [heads, query, key]
}

impl TextAttention {
    /// Takes the weights of each layer, `[heads, query, key]`, for a text with this many `tokens`.
    ///
    /// # Panics
    /// If layers differ in their number of weights, or it is not `heads * tokens * tokens`.
    pub fn new(tokens: usize, layers: Vec<Vec<f32>>) -> Self {
        let heads = layers.first().map_or(0, |weights| weights.len() / (tokens * tokens).max(1));
        let size = heads * tokens * tokens;
        assert!(layers.iter().all(|weights| weights.len() == size), "a weight for each pair of tokens");
        Self { tokens, heads, layers }
    }

    /// Returns true if no weight is NaN or infinite.
    pub(crate) fn is_finite(&self) -> bool {
        self.layers.iter().flatten().all(|weight| weight.is_finite())
    }

    /// Returns a query's weights for all keys: a distribution over the tokens, or zeros for a removed head.
    ///
    /// # Panics
    /// If the layer, head or query does not exist.
    pub fn row(&self, id: HeadId, query: usize) -> &[f32] {
        assert!(id.head_index() < self.heads, "no head {id}");
        let start = (id.head_index() * self.tokens + query) * self.tokens;
        &self.layers[id.layer_index()][start..start + self.tokens]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two layers of two heads on three tokens; the digits of a weight name its layer, head, query and key.
    #[test]
    fn a_row_is_that_of_its_layer_head_and_query() {
        let layer = |layer: usize| {
            let weight =
                |place: usize| (1000 * layer + 100 * (place / 9) + 10 * (place / 3 % 3) + place % 3) as f32;
            (0..18).map(weight).collect::<Vec<f32>>()
        };
        let attention = TextAttention::new(3, vec![layer(0), layer(1)]);
        let id = HeadId::from_index(Attention::SelfAttention, 1, 1);
        assert_eq!(attention.row(id, 2), [1120.0, 1121.0, 1122.0]);
        assert_eq!(attention.row(id, 0)[0], 1100.0);
    }
}
