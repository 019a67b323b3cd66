//! Relevance through an attention module: from its output to the inputs of queries, keys and values.
use tch::Tensor;

use super::propagation::{linear, rate, rescaled, signs};
use crate::Dropout;
use crate::attention::MultiHeadAttention;
use crate::disentangled::MappedDistances;

/// Intermediate values of a module for one example.
pub(super) struct AttentionTrace<'a> {
    module: &'a MultiHeadAttention,
    x: Tensor,      // [query, d_model]
    memory: Tensor, // [key, d_model]
    query: Tensor,  // [kept, query, d_head]
    key: Tensor,    // [kept, key, d_head]
    value: Tensor,  // [kept, key, d_head]
    distances: Option<MappedDistances>,
    weights: Tensor, // [kept, query, key]
    context: Tensor, // [kept, query, d_head]
    /// Output, which is added to the residual stream, `[query, d_model]`.
    pub(super) added: Tensor,
}

impl<'a> AttentionTrace<'a> {
    /// - `x`: `[query, d_model]`; `memory`: `[key, d_model]`, equal to `x` in self-attention
    /// - `bias`: broadcasts to `[1, heads, query, key]`
    pub(super) fn new(module: &'a MultiHeadAttention, x: &Tensor, memory: &Tensor, bias: &Tensor) -> Self {
        let [query, key, value] = [(&module.query, x), (&module.key, memory), (&module.value, memory)]
            .map(|(map, x)| module.project(map, &x.unsqueeze(0))); // [1, kept, position, d_head]
        let bias = module.scored(bias, &query, &key, &Dropout::OFF);
        let scores = query.matmul(&key.transpose(-2, -1)) / module.divisor + bias;
        let weights = scores.softmax(-1, scores.kind()); // [1, kept, query, key]
        let context = weights.matmul(&value).squeeze_dim(0);
        let distances = module.distances(query.size()[2], key.size()[2]);
        Self {
            x: x.shallow_clone(),
            memory: memory.shallow_clone(),
            added: module.output.forward(&joined(&context)),
            query: query.squeeze_dim(0),
            key: key.squeeze_dim(0),
            value: value.squeeze_dim(0),
            weights: weights.squeeze_dim(0),
            module,
            distances,
            context,
        }
    }

    /// For self-attention, where the authors' code treats the three maps as one.
    ///
    /// - `relevance`: of [`added`](Self::added), `[n, query, d_model]`
    /// - returns the relevance of each head output, `[n, kept, query, d_head]`, and of `x`, `[n, query, d_model]`
    pub(super) fn propagate_own(&self, relevance: &Tensor) -> (Tensor, Tensor) {
        let (context, projected) = self.projected(relevance);
        let MultiHeadAttention { query, key, value, .. } = self.module;
        let of_x = linear(&Tensor::cat(&projected, 2), &self.memory, &[query, key, value]);
        (context, of_x)
    }

    /// For cross-attention, where the maps of keys and values are treated as one. Returns the relevance of each head output, of `x`, and of
    /// the memory, `[n, key, d_model]`.
    pub(super) fn propagate_cross(&self, relevance: &Tensor) -> (Tensor, [Tensor; 2]) {
        let (context, [of_query, of_key, of_value]) = self.projected(relevance);
        let MultiHeadAttention { query, key, value, .. } = self.module;
        let of_x = linear(&of_query, &self.x, &[query]);
        let of_memory = linear(&Tensor::cat(&[of_key, of_value], 2), &self.memory, &[key, value]);
        (context, rescaled(relevance, [of_x, of_memory]))
    }

    /// Returns the relevance of each head output, and of queries, keys and values, each `[n, position, kept * d_head]`.
    fn projected(&self, relevance: &Tensor) -> (Tensor, [Tensor; 3]) {
        let of_joined = linear(relevance, &joined(&self.context), &[&self.module.output]);
        let context = of_joined.unflatten(2, [-1, self.module.d_head]).transpose(1, 2); // [n, kept, query, d_head]
        let mut of_memory = [&self.key, &self.value].map(|part| part.zeros_like().unsqueeze(0));
        let of_queries = (0..context.size()[2]).map(|place| {
            let [query, key, value] = self.of_query(&context.select(2, place), place);
            of_memory = [&of_memory[0] + key, &of_memory[1] + value];
            query
        });
        let of_query = Tensor::stack(&of_queries.collect::<Vec<_>>(), 2);
        let [of_key, of_value] = of_memory;
        let projected = rescaled(&context, [of_query, of_key, of_value]).map(|part| joined(&part));
        (context, projected)
    }

    /// Propagates from the output of one query, by the Jacobian of `softmax(q kᵀ / d) v`, which is 0 at 0. The inputs add to output j:
    /// - `v_kj`: `α_k v_kj`
    /// - `q_m`: `Σ_k g_kj w_km`, where `g_kj = α_k (v_kj - c_j)` and `w_km = q_m k_km / d`
    /// - `k_km`: `g_kj w_km`, whose positive part is `g⁺ w⁺ + g⁻ w⁻`, so it need not be expanded for each j and m
    ///
    /// Relative-position embeddings are added to `k` in the second and to `q` in the third.
    ///
    /// - `relevance`: `[n, kept, d_head]`
    /// - returns the relevance of the query, `[n, kept, d_head]`, and of keys and values, `[n, kept, key, d_head]`
    fn of_query(&self, relevance: &Tensor, place: i64) -> [Tensor; 3] {
        let (key, query) = (&self.key, self.query.narrow(1, place, 1));
        let distances = self.distances.as_ref().map(|distances| distances.of_query(place)); // [kept, key, d_head]
        let (keys, queries) = match &distances {
            Some([queries, keys]) => (key + keys, &query + queries),
            None => (key.shallow_clone(), query.shallow_clone()),
        };
        let weights = self.weights.select(1, place).unsqueeze(-1); // [kept, key, 1]
        let g = &weights * (&self.value - self.context.narrow(1, place, 1)); // [kept, key, j]
        let by_query = signs(&g.transpose(-2, -1).matmul(&(query * keys / self.module.divisor))); // [kept, j, m]
        let by_value = signs(&(weights * &self.value)); // [kept, key, j]
        let (g, w) = (signs(&g), signs(&(queries * key / self.module.divisor)));
        let of_sign = |sign: usize| {
            let pairs = [(&g[0], &w[sign]), (&g[1], &w[1 - sign])];
            let over = |z: &Tensor, axis: i64| z.sum_dim_intlist(axis, false, None);
            let [same, other] = pairs.map(|(g, w)| over(&(g * w.sum_dim_intlist(-1, true, None)), 1)); // [kept, j]
            let sum = over(&by_query[sign], -1) + over(&by_value[sign], 1) + same + other;
            let each = relevance * rate(&sum, sign); // [n, kept, j]
            let through = |z: &Tensor| each.transpose(0, 1).matmul(z).transpose(0, 1); // [n, kept, ..] of [kept, j, ..]
            let [same, other] = pairs.map(|(g, w)| through(&g.transpose(-2, -1)).unsqueeze(-1) * w);
            [through(&by_query[sign]), same + other, each.unsqueeze(2) * &by_value[sign]]
        };
        let ([query, key, value], down) = (of_sign(0), of_sign(1));
        [query + &down[0], key + &down[1], value + &down[2]]
    }
}

/// `[.., kept, position, d_head]` to `[.., position, kept * d_head]`.
fn joined(x: &Tensor) -> Tensor {
    x.transpose(-3, -2).flatten(-2, -1)
}
