//! Texts as a model reads them by themselves, and what its heads look at in them.
use core_masking::{Attention, AttentionMaps, HeadId};

use crate::error::Error;

/// The way in which the heads of a model read a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The attention from the text to itself: that of the encoder of a translator, or the only one.
    pub attention: Attention,
    /// True if a token sees those that follow it.
    pub sees_future: bool,
    /// Symbols that end a text: of a translator `</s>`; of a classifier what stands behind its text, `[SEP]` or `</s>`; of a
    /// language model those that its configuration names, of which GPT-2 puts one before its texts too.
    pub ends: Vec<u32>,
    /// Tokens of the longest text that the model can read.
    pub longest: usize,
}

/// A text for a model to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input<'a> {
    /// The text.
    pub text: &'a str,
    /// The other text of a pair, or the translation that a translator is given in the place of its own.
    pub second: Option<&'a str>,
}

/// Attention of all heads in a text.
#[derive(Debug, Clone)]
pub struct ReadText {
    /// The model's answer: its translation, its class, or the text that follows.
    pub answer: String,
    /// Maps of each attention type.
    pub maps: Vec<AttentionMaps>,
}

/// Refuses a text that is longer than the model reads, or has no token.
pub(crate) fn check_length(what: &str, tokens: usize, longest: usize) -> Result<(), Error> {
    match tokens {
        0 => Err(Error::Invalid(format!("{what} has no token"))),
        _ if tokens > longest => {
            Err(Error::Invalid(format!("{what} has {tokens} tokens, but the model reads {longest} at most")))
        }
        _ => Ok(()),
    }
}

/// Tokens of a language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    /// The symbol that texts begin with, if there is one.
    pub begin: Option<u32>,
    /// Tokens that stand for text, by id.
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
    /// Of a text of this many `tokens`, from the weights of each layer, `[heads, query, key]`.
    ///
    /// # Panics
    /// If a layer has not as many weights as the others, or no whole number of heads.
    pub fn new(tokens: usize, layers: Vec<Vec<f32>>) -> Self {
        let heads = layers.first().map_or(0, |weights| weights.len() / (tokens * tokens).max(1));
        let size = heads * tokens * tokens;
        assert!(layers.iter().all(|weights| weights.len() == size), "a weight for each pair of tokens");
        Self { tokens, heads, layers }
    }

    /// Returns true if all weights are numbers, neither NaN nor infinite.
    pub(crate) fn is_finite(&self) -> bool {
        self.layers.iter().flatten().all(|weight| weight.is_finite())
    }

    /// Weights that a query gives to each key: a distribution over the tokens, or zeros for a head that was removed.
    ///
    /// # Panics
    /// If there is no such layer, head or query.
    pub fn row(&self, id: HeadId, query: usize) -> &[f32] {
        assert!(id.head_index() < self.heads, "no head {id}");
        let start = (id.head_index() * self.tokens + query) * self.tokens;
        &self.layers[id.layer_index()][start..start + self.tokens]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two layers of two heads on three tokens: weights that name layer, head, query and key.
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
