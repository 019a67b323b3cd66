//! Multi-headed attention with one gate per head: Michel et al. (2019), Equation 1 and Section 2.3.
use tch::Tensor;

use crate::layers::Linear;
use crate::{Error, Weights};

/// Attention whose heads can each be scaled by a gate.
#[derive(Debug)]
pub struct MultiHeadAttention {
    heads: i64,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
}

/// Keys and values of the attended positions, computed once and used by any number of queries.
#[derive(Debug)]
pub struct KeyValue {
    /// `[batch, heads, key, d_head]`
    pub key: Tensor,
    /// `[batch, heads, key, d_head]`
    pub value: Tensor,
}

impl MultiHeadAttention {
    /// Takes `{name}.{q,k,v,out}_proj.{weight,bias}` from a Marian checkpoint.
    ///
    /// # Errors
    /// If a tensor is missing.
    pub fn new(weights: &Weights, name: &str, heads: i64) -> Result<Self, Error> {
        let projection = |part: &str| Linear::new(weights, &format!("{name}.{part}_proj"));
        Ok(Self {
            heads,
            query: projection("q")?,
            key: projection("k")?,
            value: projection("v")?,
            output: projection("out")?,
        })
    }

    /// Attends from `x` to `memory`; pass the same tensor twice for self-attention.
    ///
    /// - `x`: `[batch, query, d_model]`
    /// - `memory`: `[batch, key, d_model]`
    /// - `bias`: broadcasts to `[batch, heads, query, key]`; 0 keeps a position, `-inf` hides it
    /// - `gates`: `[rows, heads]`, rows 1 or batch: the ξ_h of Section 2.3; all ones is Equation 1
    /// - returns `[batch, query, d_model]`
    pub fn forward(&self, x: &Tensor, memory: &Tensor, bias: &Tensor, gates: &Tensor) -> Tensor {
        self.attend(x, &self.keys_values(memory), bias, gates)
    }

    /// Keys and values of `memory`: `[batch, key, d_model]`.
    pub fn keys_values(&self, memory: &Tensor) -> KeyValue {
        KeyValue {
            key: self.split_heads(&self.key.forward(memory)),
            value: self.split_heads(&self.value.forward(memory)),
        }
    }

    /// [`forward`](Self::forward) with the keys and values at hand.
    pub fn attend(&self, x: &Tensor, memory: &KeyValue, bias: &Tensor, gates: &Tensor) -> Tensor {
        let q = self.split_heads(&self.query.forward(x)); // [batch, heads, query, d_head]
        let context = Tensor::scaled_dot_product_attention(
            &q,
            &memory.key,
            &memory.value,
            Some(bias),
            0.0,
            false,
            None,
            false,
        ); // [batch, heads, query, d_head]

        // ξ_h multiplies Att_h, which ends with W_o. W_o is linear, so gating its input is the
        // same; its bias belongs to no head and stays.
        let gated = context * gates.unsqueeze(-1).unsqueeze(-1); // [batch, heads, query, d_head]
        self.output.forward(&gated.transpose(1, 2).flatten(2, 3)) // [batch, query, d_model]
    }

    /// `[batch, position, d_model]` to `[batch, heads, position, d_head]`.
    fn split_heads(&self, x: &Tensor) -> Tensor {
        x.unflatten(2, [self.heads, -1]).transpose(1, 2)
    }
}
