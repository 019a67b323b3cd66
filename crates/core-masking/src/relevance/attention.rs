//! Relevance through an attention module, from what it adds to the residual stream down to what it attends from and to.
use tch::Tensor;

use super::Rule;
use super::rules::{EPSILON, rescaled};
use crate::attention::MultiHeadAttention;

/// Numbers that some heads have of a query, a key and a neuron, held at once: few enough that they stay in the caches.
const AT_ONCE: i64 = 1 << 16;

/// Intermediate values of a module for one example.
pub(super) struct AttentionTrace<'a> {
    module: &'a MultiHeadAttention,
    query_input: Tensor, // [query, d_model]
    memory: Tensor,      // [key, d_model]
    query: Tensor,       // [kept, query, d_head]
    key: Tensor,         // [kept, key, d_head]
    value: Tensor,       // [kept, key, d_head]
    weights: Tensor,     // [kept, query, key]
    context: Tensor,     // [kept, query, d_head]
    /// Output, which is added to the residual stream, `[query, d_model]`.
    pub(super) added: Tensor,
    is_self: bool,
}

/// Relevance of what a module attends from and to.
pub(super) struct AttentionRelevance {
    /// Of each head's context, `[n, kept, query, d_head]`.
    pub(super) context: Tensor,
    /// `[n, query, d_model]`; of self-attention that of both.
    pub(super) query_input: Tensor,
    /// `[n, key, d_model]`; absent of self-attention.
    pub(super) memory: Option<Tensor>,
}

/// Relevance of queries, keys and values, each `[n, kept, position, d_head]`; the paper's rule gives all to values.
struct Projected {
    query_key: Option<[Tensor; 2]>,
    value: Tensor,
}

impl<'a> AttentionTrace<'a> {
    /// - `x`: `[query, d_model]`; `memory`: `[key, d_model]`, absent of self-attention
    /// - `bias`: broadcasts to `[1, heads, query, key]`
    pub(super) fn new(
        module: &'a MultiHeadAttention,
        x: &Tensor,
        memory: Option<&Tensor>,
        bias: &Tensor,
    ) -> Self {
        let (is_self, memory) = (memory.is_none(), memory.unwrap_or(x));
        let heads = |map: &crate::layers::Linear, x: &Tensor| {
            map.forward(x).unflatten(1, [-1, module.d_head]).transpose(0, 1) // [kept, position, d_head]
        };
        let (query, key, value) =
            (heads(&module.query, x), heads(&module.key, memory), heads(&module.value, memory));
        let scores = query.matmul(&key.transpose(-2, -1)) / module.divisor + bias.squeeze_dim(0);
        let weights = scores.softmax(-1, scores.kind()); // [kept, query, key]
        let context = weights.matmul(&value);
        let added = module.output.forward(&joined(&context));
        Self {
            query_input: x.shallow_clone(),
            memory: memory.shallow_clone(),
            module,
            query,
            key,
            value,
            weights,
            context,
            added,
            is_self,
        }
    }

    /// - `relevance`: of [`added`](Self::added), `[n, query, d_model]`
    pub(super) fn propagate(&self, relevance: &Tensor, rule: Rule) -> AttentionRelevance {
        let of_joined = rule.linear(relevance, &joined(&self.context), &self.module.output); // [n, query, kept * d_head]
        let context = of_joined.unflatten(2, [-1, self.module.d_head]).transpose(1, 2); // [n, kept, query, d_head]
        let parts = match rule {
            Rule::Paper => Projected { query_key: None, value: self.weighted_sum(&context) },
            Rule::AlphaBeta => {
                let [query, key, value] = rescaled(&context, self.alpha_beta(&context));
                Projected { query_key: Some([query, key]), value }
            }
        };
        let (query_input, memory) = self.project_back(relevance, parts, rule);
        AttentionRelevance { context, query_input, memory }
    }

    /// `Σ_k α_qk v_k` with constant α: `[n, kept, key, d_head]`.
    fn weighted_sum(&self, relevance: &Tensor) -> Tensor {
        let is_zero = self.context.eq(0.0);
        let each = (relevance / self.context.masked_fill(&is_zero, 1.0)).masked_fill(&is_zero, 0.0);
        let equal = relevance * is_zero.to_kind(relevance.kind());
        // where nothing is added up, by the weights
        self.weights.transpose(-2, -1).matmul(&each) * &self.value
            + self.weights.transpose(-2, -1).matmul(&equal)
    }

    /// Relevance of queries, keys and values before it is rescaled: some heads at a time, and of large ones some queries.
    fn alpha_beta(&self, relevance: &Tensor) -> [Tensor; 3] {
        let size = self.weights.size();
        let [heads, queries, keys] = [size[0], size[1], size[2]];
        let of_query = keys * self.module.d_head;
        let (heads_at_once, queries_at_once) =
            ((AT_ONCE / (queries * of_query)).max(1), (AT_ONCE / of_query).max(1));
        let of_heads = |start: i64| {
            let some = (start, heads_at_once.min(heads - start));
            let parts = (0..queries).step_by(queries_at_once as usize).map(|first| {
                let part = self.part(some, (first, queries_at_once.min(queries - first)));
                part.alpha_beta(&relevance.narrow(1, start, some.1).narrow(2, first, part.query.size()[1]))
            });
            together(parts.collect())
        };
        let found: Vec<[Tensor; 3]> = (0..heads).step_by(heads_at_once as usize).map(of_heads).collect();
        if found.is_empty() {
            return [&self.query, &self.key, &self.value].map(|none| none.unsqueeze(0) * 0.0);
        }
        [0, 1, 2].map(|which| Tensor::cat(&found.iter().map(|part| &part[which]).collect::<Vec<_>>(), 1))
    }

    /// Some heads and some of their queries: of both the first and the number.
    fn part(&self, heads: (i64, i64), queries: (i64, i64)) -> Heads {
        let of_heads = |of: &Tensor| of.narrow(0, heads.0, heads.1);
        let of_queries = |of: &Tensor| of_heads(of).narrow(1, queries.0, queries.1);
        Heads {
            query: of_queries(&self.query),
            key: of_heads(&self.key),
            value: of_heads(&self.value),
            weights: of_queries(&self.weights),
            context: of_queries(&self.context),
        }
    }

    /// Through W_q, W_k and W_v: relevance of what is attended from, and of the memory, if that is another.
    ///
    /// The code has one map for all three in self-attention, and one for keys and values otherwise.
    fn project_back(&self, relevance: &Tensor, parts: Projected, rule: Rule) -> (Tensor, Option<Tensor>) {
        let MultiHeadAttention { query, key, value, .. } = self.module;
        let Projected { query_key, value: of_value } = parts;
        let joined = |part: &Tensor| part.transpose(1, 2).flatten(2, 3); // [n, position, kept * d_head]
        let of_value = joined(&of_value);
        let together = |relevance: &[&Tensor], maps: &[&crate::layers::Linear], x: &Tensor| {
            let weight = Tensor::cat(&maps.iter().map(|map| map.weight()).collect::<Vec<_>>(), 0);
            let bias = Tensor::cat(&maps.iter().map(|map| map.bias()).collect::<Vec<_>>(), 0);
            rule.affine(&Tensor::cat(relevance, 2), x, &weight, &bias)
        };
        let Some([of_query, of_key]) = query_key.map(|parts| parts.map(|part| joined(&part))) else {
            let found = together(&[&of_value], &[value], &self.memory);
            return if self.is_self { (found, None) } else { (relevance.zeros_like(), Some(found)) };
        };
        if self.is_self {
            return (together(&[&of_query, &of_key, &of_value], &[query, key, value], &self.memory), None);
        }
        let parts = [
            together(&[&of_query], &[query], &self.query_input),
            together(&[&of_key, &of_value], &[key, value], &self.memory),
        ];
        let [of_input, of_memory] = rescaled(relevance, parts);
        (of_input, Some(of_memory))
    }
}

/// Adds up what keys and values get of several queries.
fn together(parts: Vec<[Tensor; 3]>) -> [Tensor; 3] {
    let queries = Tensor::cat(&parts.iter().map(|[query, ..]| query).collect::<Vec<_>>(), 2);
    let sum = |which: usize| {
        let parts = parts.iter().map(|part| part[which].shallow_clone());
        parts.reduce(|sum, next| sum + next).expect("there is a query")
    };
    [queries, sum(1), sum(2)]
}

/// Intermediate values of some heads for some queries.
struct Heads {
    query: Tensor,   // [heads, query, d_head]
    key: Tensor,     // [heads, key, d_head]
    value: Tensor,   // [heads, key, d_head]
    weights: Tensor, // [heads, query, key]
    context: Tensor, // [heads, query, d_head]
}

impl Heads {
    /// By the Jacobian of `softmax(q kᵀ / √d) v` at q, k and v; f(0) = 0. To the output (q, j) the inputs add
    /// - v_kj: `α_qk v_kj`
    /// - q_qm: `Σ_k α_qk (v_kj - c_qj) k_km q_qm / √d`
    /// - k_km: `α_qk (v_kj - c_qj) q_qm k_km / √d`, a product of g_qkj and w_qkm, so that its positive part is that of
    ///   g⁺ w⁺ + g⁻ w⁻ and need not be written out
    ///
    /// `relevance`: of the context, `[n, heads, query, d_head]`; returns that of queries, keys and values.
    fn alpha_beta(&self, relevance: &Tensor) -> [Tensor; 3] {
        let Self { query, key, value, weights, context } = self;
        let scale = (query.size()[2] as f64).sqrt();
        let signs = |z: &Tensor| [z.clamp_min(0.0), z.clamp_max(0.0)];
        let g = weights.unsqueeze(-1) * (value.unsqueeze(1) - context.unsqueeze(2)); // [heads, query, key, j]
        let w = query.unsqueeze(2) * key.unsqueeze(1) / scale; // [heads, query, key, m]
        // Σ_k g_qkj k_km q_qm / √d
        let of_query = g.transpose(-2, -1).matmul(&w); // [heads, query, j, m]
        let ([g_up, g_down], [w_up, w_down]) = (signs(&g), signs(&w));
        let ([q_up, q_down], [v_up, v_down]) = (signs(&of_query), signs(value));
        let last = |z: &Tensor| z.sum_dim_intlist(-1, true, None); // [.., 1]
        // Σ_k g_qkj of [heads, query, key, j] and [heads, query, key, 1]
        let over_keys = |g: &Tensor, sum: &Tensor| g.transpose(-2, -1).matmul(sum).squeeze_dim(-1);
        let (w_up_sum, w_down_sum) = (last(&w_up), last(&w_down));
        let up = weights.matmul(&v_up)
            + last(&q_up).squeeze_dim(-1)
            + over_keys(&g_up, &w_up_sum)
            + over_keys(&g_down, &w_down_sum);
        let down = weights.matmul(&v_down)
            + last(&q_down).squeeze_dim(-1)
            + over_keys(&g_up, &w_down_sum)
            + over_keys(&g_down, &w_up_sum);
        let a = relevance * 0.5 / (up + EPSILON); // [n, heads, query, j]
        let c = relevance * 0.5 / (down - EPSILON);

        let by_query = weights.transpose(-2, -1); // [heads, key, query]
        let of_value = by_query.matmul(&a) * v_up + by_query.matmul(&c) * v_down; // [n, heads, key, j]
        // what each query hands to each m: [n, heads, query, m] of [n, heads, query, j] and [heads, query, j, m]
        let over = |each: &Tensor, z: &Tensor| {
            let rows = each.permute([1, 2, 0, 3]); // [heads, query, n, j]
            rows.matmul(z).permute([2, 0, 1, 3])
        };
        let of_query = over(&a, &q_up) + over(&c, &q_down);
        let [g_up, g_down] = [g_up, g_down].map(|g| g.transpose(-2, -1)); // [heads, query, j, key]
        let with_up = over(&a, &g_up) + over(&c, &g_down); // [n, heads, query, key]
        let with_down = over(&a, &g_down) + over(&c, &g_up);
        let pairs = |each: &Tensor, w: &Tensor| Tensor::einsum("nhqk,hqkm->nhkm", &[each, w], None::<i64>);
        let of_key = pairs(&with_up, &w_up) + pairs(&with_down, &w_down); // [n, heads, key, m]
        [of_query, of_key, of_value]
    }
}

/// `[kept, query, d_head]` to `[query, kept * d_head]`.
fn joined(context: &Tensor) -> Tensor {
    context.transpose(0, 1).flatten(1, 2)
}
