//! Multi-headed attention with one gate per head: Michel et al. (2019), Equation 1 and Section 2.3.
mod merge;
mod scores;

use tch::{Device, Kind, Tensor};

use crate::gates::Gate;
use crate::layers::Linear;
use crate::{Dropout, causal_bias};
use families::parts;
use heads::ModuleHeads;

pub use scores::DistanceBias;
pub(crate) use scores::Scores;

/// Attention whose heads can each be scaled by a gate.
#[derive(Debug)]
pub struct MultiHeadAttention {
    heads: i64,
    kept: Option<Tensor>, // indices of the remaining heads, [kept]; absent if none was removed
    key_of: Option<Tensor>, // [kept]: the key-value head of each query head; absent if each has its own
    pub(crate) d_head: i64,
    pub(crate) divisor: f64, // of the scores
    scores: Scores,
    cap: Option<f64>,         // of the scores
    pub(crate) query: Linear, // without removed heads, like the other maps
    pub(crate) key: Linear,
    pub(crate) value: Linear,
    pub(crate) output: Linear,
}

/// Keys and values of the attended positions, computed once and used by any number of queries.
#[derive(Debug)]
pub struct KeyValue {
    /// `[batch, key-value heads, key, d_head]`
    pub key: Tensor,
    /// `[batch, key-value heads, key, d_head]`
    pub value: Tensor,
}

/// Which keys a query sees.
#[derive(Debug)]
pub(crate) enum Visible<'a> {
    /// An additive bias, which broadcasts to `[batch, heads, query, key]`: 0 shows a key, `-inf` hides it.
    Under(&'a Tensor),
    /// Causal mask. Requires as many keys as queries; faster than an explicit bias.
    Past,
    /// All keys.
    All,
}

impl MultiHeadAttention {
    /// Creates the module from the maps of queries, keys, values and output, which contain the remaining heads only.
    ///
    /// - `divisor`: divides the products of queries and keys
    /// - `scores`: position terms, added to the quotient
    /// - `cap`: scores are `cap * tanh(score / cap)` (Gemma 2, <https://arxiv.org/abs/2408.00118>, Section 2)
    pub(crate) fn new(
        maps: [parts::Linear<Tensor>; 4],
        heads: &ModuleHeads,
        (divisor, scores, cap): (f64, Scores, Option<f64>),
    ) -> Self {
        let [query, key, value, output] = maps.map(Linear::from);
        let places = |places: &[i64]| Tensor::from_slice(places).to_device(output.weight().device());
        let key_values = heads.kept_key_values();
        let of_head =
            |&head: &i64| key_values.partition_point(|&kept| kept < heads.key_value_of(head)) as i64;
        let key_of: Vec<i64> = heads.kept.iter().map(of_head).collect();
        Self {
            heads: heads.shape.heads as i64,
            kept: (heads.kept.len() < heads.shape.heads).then(|| places(&heads.kept)),
            key_of: (key_values.len() < heads.kept.len()).then(|| places(&key_of)),
            d_head: heads.shape.d_head,
            divisor,
            scores,
            cap,
            query,
            key,
            value,
            output,
        }
    }

    /// Attends from `x` to `memory`; pass the same tensor twice for self-attention.
    ///
    /// - `x`: `[batch, query, d_model]`
    /// - `memory`: `[batch, key, d_model]`
    /// - `bias`: broadcasts to `[batch, heads, query, key]`; 0 keeps a position, `-inf` hides it
    /// - `gates`: `[rows, heads]` or `[rows, heads, queries]`, rows 1 or batch: the ξ_h of Section 2.3; all ones is Equation 1. Gates of
    ///   removed heads are ignored
    /// - `dropout`: of attention weights, in training
    /// - returns `[batch, query, d_model]`
    pub fn forward<'a>(
        &self,
        x: &Tensor,
        memory: &Tensor,
        bias: &Tensor,
        gates: impl Into<Gate<'a>>,
        dropout: &Dropout,
    ) -> Tensor {
        self.attend(x, &self.keys_values(memory), bias, gates, dropout)
    }

    /// Returns the keys and values of `memory`, `[batch, key, d_model]`.
    pub fn keys_values(&self, memory: &Tensor) -> KeyValue {
        KeyValue { key: self.project(&self.key, memory), value: self.project(&self.value, memory) }
    }

    /// Allocates an empty key-value cache, `[batch, key-value heads, positions, d_head]`.
    pub(crate) fn room(&self, batch: i64, positions: i64, options: (Kind, Device)) -> KeyValue {
        let heads = self.value.size().0 as i64 / self.d_head;
        let zeros = || Tensor::zeros([batch, heads, positions, self.d_head], options);
        KeyValue { key: zeros(), value: zeros() }
    }

    /// [`forward`](Self::forward) with precomputed keys and values.
    pub fn attend<'a>(
        &self,
        x: &Tensor,
        memory: &KeyValue,
        bias: &Tensor,
        gates: impl Into<Gate<'a>>,
        dropout: &Dropout,
    ) -> Tensor {
        let gates = gates.into();
        self.merge(self.context(x, memory, bias, gates, dropout), gates)
    }

    /// Returns the head outputs before gating: `[batch, kept, query, d_head]`. `gates` only decide whether attention weights are recorded.
    pub(crate) fn context(
        &self,
        x: &Tensor,
        memory: &KeyValue,
        bias: &Tensor,
        gates: Gate<'_>,
        dropout: &Dropout,
    ) -> Tensor {
        self.read(self.queries(x), memory, &Visible::Under(bias), gates, dropout)
    }

    /// Returns the queries of `x`, `[batch, query, d_model]`, as `[batch, kept, query, d_head]`.
    pub(crate) fn queries(&self, x: &Tensor) -> Tensor {
        self.project(&self.query, x)
    }

    /// [`context`](Self::context) for precomputed queries, `[batch, kept, query, d_head]`.
    pub(crate) fn read(
        &self,
        queries: Tensor,
        memory: &KeyValue,
        visible: &Visible<'_>,
        gates: Gate<'_>,
        dropout: &Dropout,
    ) -> Tensor {
        if self.is_without_heads() {
            return self.no_context(queries, &memory.key, gates);
        }
        let [k, v] = [&memory.key, &memory.value].map(|shared| self.by_head(shared, 1)); // [batch, kept, key, d_head]
        // The fused kernel returns no weights and cannot cap scores, and its dropout would draw from libtorch's global generator.
        if dropout.is_off() && !gates.is_recorded() && self.cap.is_none() {
            return fused(&queries, &k, &v, visible, self.divisor);
        }
        let options = (k.kind(), k.device());
        let bias = match visible {
            Visible::Under(bias) => bias.shallow_clone(),
            Visible::Past => causal_bias(k.size()[2], options),
            Visible::All => Tensor::zeros([1], options),
        };
        let weights = attention_weights(&queries, &k, &bias, self.divisor, self.cap);
        dropout.apply(self.record(gates, weights)).matmul(&v)
    }

    /// Repeats shared keys or values for every query head (grouped-query attention); `axis` is the head axis.
    fn by_head(&self, shared: &Tensor, axis: i64) -> Tensor {
        let read = |key_of: &Tensor| shared.index_select(axis, key_of);
        self.key_of.as_ref().map_or_else(|| shared.shallow_clone(), read)
    }

    /// [`context`](Self::context) of the first position only, without computing keys and values of all positions.
    ///
    /// `q · (W_k x)` is `(W_kᵀ q) · x` and `Σ α W_v x` is `W_v Σ α x`, so a single query needs no product of all positions with W_k and
    /// W_v. The bias of W_k shifts all scores of a row equally, which softmax cancels.
    ///
    /// - `x`: `[batch, position, d_model]`
    /// - `bias`: `[batch, 1, 1, position]`
    /// - returns `[batch, kept, 1, d_head]`
    pub(crate) fn first_context(&self, x: &Tensor, bias: &Tensor) -> Tensor {
        let q = self.project(&self.query, &x.narrow(1, 0, 1)); // [batch, kept, 1, d_head]
        if self.is_without_heads() {
            return q;
        }
        // [kept, d_head, d_model]
        let by_head = |map: &Linear| self.by_head(&map.weight().unflatten(0, [-1, self.d_head]), 0);
        let q = q.squeeze_dim(2).transpose(0, 1); // [kept, batch, d_head]
        let probe = q.matmul(&by_head(&self.key)).transpose(0, 1); // [batch, kept, d_model]
        let bias = self.with_distances(bias).narrow(2, 0, 1).squeeze_dim(2); // [batch, 1 or kept, position]
        let scores = probe.matmul(&x.transpose(1, 2)) / self.divisor + bias; // [batch, kept, position]
        let seen = scores.softmax(-1, scores.kind()).matmul(x).transpose(0, 1); // [kept, batch, d_model]
        let values = seen.matmul(&by_head(&self.value).transpose(1, 2)).transpose(0, 1); // [batch, kept, d_head]
        let bias = self.by_head(&self.value.bias().unflatten(0, [-1, self.d_head]), 0); // [kept, d_head]
        (values + bias).unsqueeze(2)
    }

    /// Returns the multiply-adds of [`keys_values`](Self::keys_values) for one row of the batch.
    pub(crate) fn key_value_multiply_adds(&self, keys: u64) -> u64 {
        keys * (self.key.multiply_adds() + self.value.multiply_adds())
    }

    /// Returns the multiply-adds of [`attend`](Self::attend) for one row of the batch.
    pub(crate) fn attend_multiply_adds(&self, queries: u64, keys: u64) -> u64 {
        let (_, width) = self.output.size(); // of the remaining heads
        queries * (self.query.multiply_adds() + self.output.multiply_adds() + 2 * keys * width)
    }

    /// Records attention weights, `[batch, kept, query, key]`, if asked for, with zeros for removed heads; returns `weights`.
    fn record(&self, gates: Gate<'_>, weights: Tensor) -> Tensor {
        let Some(kept) = self.kept.as_ref().filter(|_| gates.is_recorded()) else {
            return gates.record(weights);
        };
        let size = weights.size();
        let shape = [size[0], self.heads, size[2], size[3]];
        let all = weights.new_zeros(shape, (weights.kind(), weights.device()));
        // Continue with weights taken from the recorded tensor, so that gradients pass through it.
        gates.record(all.index_copy(1, kept, &weights)).index_select(1, kept)
    }

    /// Projects `x`, `[batch, position, d_model]`, to `[batch, kept, position, d_head]`.
    pub(crate) fn project(&self, projection: &Linear, x: &Tensor) -> Tensor {
        // libtorch would divide by the number of heads, 0
        let projected = if self.is_without_heads() { x.narrow(2, 0, 0) } else { projection.forward(x) };
        projected.unflatten(2, [projected.size()[2] / self.d_head, self.d_head]).transpose(1, 2)
    }

    fn is_without_heads(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.numel() == 0)
    }

    /// Returns the head outputs of a layer without heads. `query`: `[batch, 0, query, d_head]`.
    fn no_context(&self, query: Tensor, key: &Tensor, gates: Gate<'_>) -> Tensor {
        if !gates.is_recorded() {
            return query;
        }
        let size = query.size();
        let weights = query.new_zeros([size[0], 0, size[2], key.size()[2]], (query.kind(), query.device()));
        let recorded = self.record(gates, weights); // [batch, 0, query, key]
        query + recorded.sum_dim_intlist(3, true, None)
    }
}

/// Returns `cap * tanh(x / cap)`, or `x` if `cap` is `None`.
pub(crate) fn capped(x: Tensor, cap: Option<f64>) -> Tensor {
    cap.map_or_else(|| x.shallow_clone(), |cap| (&x / cap).tanh() * cap)
}

/// Keys per step of libtorch's CPU kernel; it processes a remainder key by key.
pub(crate) const KEYS_AT_ONCE: i64 = 16;

/// Computes attention with libtorch's fused kernel. Pads keys to whole steps of the kernel if that costs less than the remainder.
///
/// - `queries`: `[batch, kept, query, d_head]`; `keys`, `values`: `[batch, kept, key, d_head]`
/// - `divisor`: of the scores
/// - returns the shape of `queries`
fn fused(queries: &Tensor, keys: &Tensor, values: &Tensor, visible: &Visible<'_>, divisor: f64) -> Tensor {
    let attend = |k: &Tensor, v: &Tensor, bias: Option<&Tensor>, is_causal: bool| {
        Tensor::scaled_dot_product_attention(queries, k, v, bias, 0.0, is_causal, divisor.recip(), false)
    };
    let (left_over, d_head) = (keys.size()[2] % KEYS_AT_ONCE, queries.size()[3]);
    let padding = KEYS_AT_ONCE - left_over;
    let is_plain =
        queries.device() == Device::Cpu && [queries, keys, values].iter().all(|part| !part.requires_grad());
    match visible {
        Visible::Under(bias) if is_plain && left_over >= d_head / 4 + 4 && !bias.requires_grad() => {
            let [k, v] = [keys, values].map(|part| part.constant_pad_nd([0, 0, 0, padding]));
            attend(&k, &v, Some(&bias.pad([0, padding], "constant", f64::NEG_INFINITY)), false)
        }
        Visible::Under(bias) => attend(keys, values, Some(bias), false),
        Visible::Past => attend(keys, values, None, true),
        Visible::All => attend(keys, values, None, false),
    }
}

/// Returns α of Equation 1: `[batch, heads, query, key]`, each row a distribution over keys.
fn attention_weights(query: &Tensor, key: &Tensor, bias: &Tensor, divisor: f64, cap: Option<f64>) -> Tensor {
    let scores = query.matmul(&key.transpose(-2, -1)) / divisor; // [batch, heads, query, key]
    let scores = capped(scores, cap) + bias;
    scores.softmax(-1, scores.kind())
}

#[cfg(test)]
mod tests;
