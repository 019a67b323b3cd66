//! Names of heads.
use std::fmt;
use std::str::FromStr;

use words::excerpt;

use crate::{Attention, Error};

/// Maximum number of layers, and of heads in a layer.
pub const MAX_HEADS: usize = 256;

/// A head of a model, written `enc-enc:6:13`: attention type, layer and head, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeadId {
    attention: Attention,
    layer: usize,
    head: usize,
}

impl HeadId {
    /// Returns a head from its tensor indices: layer and head counted from 0.
    pub fn from_index(attention: Attention, layer: usize, head: usize) -> Self {
        Self { attention, layer, head }
    }

    /// Returns a head from its numbers: layer and head counted from 1. A 0 in an unchecked row is preserved.
    pub fn numbered(attention: Attention, layer: usize, head: usize) -> Self {
        Self { attention, layer: layer.wrapping_sub(1), head: head.wrapping_sub(1) }
    }

    /// Returns the attention type.
    pub fn attention(self) -> Attention {
        self.attention
    }

    /// Returns the attention type and the layer, counted from 0, which identify the module.
    pub fn module(self) -> (Attention, usize) {
        (self.attention, self.layer)
    }

    /// Returns the layer, counted from 0.
    pub fn layer_index(self) -> usize {
        self.layer
    }

    /// Returns the head within the layer, counted from 0.
    pub fn head_index(self) -> usize {
        self.head
    }

    /// Returns the layer, counted from 1 as in the paper.
    pub fn layer_number(self) -> usize {
        self.layer.wrapping_add(1)
    }

    /// Returns attention type, layer and head as in rows, with layer and head counted from 1.
    pub fn numbers(self) -> (Attention, usize, usize) {
        (self.attention, self.layer_number(), self.head_number())
    }

    /// Returns the head within the layer, counted from 1 as in the paper.
    pub fn head_number(self) -> usize {
        self.head.wrapping_add(1)
    }

    /// Returns the name in figures: `cross-attention L2H1`, or `L2H1` in a model with one attention type.
    pub fn in_words(self) -> String {
        let name = format!("L{}H{}", self.layer_number(), self.head_number());
        if self.attention == Attention::SelfAttention {
            name
        } else {
            format!("{} {name}", self.attention.in_words())
        }
    }
}

impl fmt::Display for HeadId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.attention, self.layer_number(), self.head_number())
    }
}

impl FromStr for HeadId {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let fault = || {
            Error::Head(format!(
                "`{}` is not a head: expected <attention>:<layer>:<head>, such as `enc-enc:6:13`, with numbers from 1 to \
                 {MAX_HEADS}",
                excerpt(name)
            ))
        };
        let [attention, layer, head] = name.split(':').collect::<Vec<_>>()[..] else { return Err(fault()) };
        let is_number = |number: &usize| (1..=MAX_HEADS).contains(number);
        let number = |text: &str| text.parse().ok().filter(is_number).ok_or_else(fault);
        Ok(Self::numbered(attention.parse()?, number(layer)?, number(head)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_counted_from_one_outside_and_from_zero_inside_and_other_texts_are_refused_by_name() {
        let id: HeadId = "enc-enc:6:13".parse().unwrap();
        assert_eq!(id, HeadId::from_index(Attention::EncEnc, 5, 12));
        assert_eq!(id, HeadId::numbered(Attention::EncEnc, 6, 13));
        assert_eq!(id.to_string(), "enc-enc:6:13");
        assert_eq!(HeadId::numbered(Attention::EncEnc, 0, 1).to_string(), "enc-enc:0:1");
        for name in ["", "enc-enc:1", "enc-enc:0:1", "self:1:0", "self:1:1:1", "self:257:1", "self:1:x"] {
            let message = name.parse::<HeadId>().unwrap_err().to_string();
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
        assert!("self:256:256".parse::<HeadId>().is_ok());
    }
}
