//! Position terms of attention scores: a relative position bias, or relative-position embeddings.
use tch::{Kind, Tensor};

use super::MultiHeadAttention;
use crate::Dropout;
use crate::disentangled::{Disentangled, MappedDistances, table};
use families::parts::Distances;

/// Position terms that are added to the products of queries and keys.
#[derive(Debug)]
pub(crate) enum Scores {
    Plain,
    /// Relative position bias.
    Distances(DistanceBias),
    /// Products with relative-position embeddings (DeBERTa).
    Disentangled(Disentangled),
}

/// Relative position bias, one per head and bucket of distances between query and key: Raffel et al. (2020), Section 2.1,
/// <https://arxiv.org/abs/1910.10683>.
#[derive(Debug)]
pub struct DistanceBias {
    /// `[buckets, heads]`, removed heads included.
    pub by_bucket: Tensor,
    /// Bucket of each distance `key - query` from `-reach` to `reach`, integers `[2 * reach + 1]`; larger distances are clamped.
    pub buckets: Tensor,
}

impl DistanceBias {
    /// Returns `[1, heads, query, key]` for distances `[query, key]`.
    fn of(&self, distances: &Tensor) -> Tensor {
        let reach = (self.buckets.size()[0] - 1) / 2;
        let places = distances.clamp(-reach, reach) + reach;
        let buckets = self.buckets.take(&places); // [query, key]
        Tensor::embedding(&self.by_bucket, &buckets, -1, false, false).permute([2, 0, 1]).unsqueeze(0)
    }
}

impl From<Distances<Tensor>> for Scores {
    fn from(distances: Distances<Tensor>) -> Self {
        match distances {
            Distances::None => Self::Plain,
            Distances::Bias(by_bucket, buckets) => {
                // buckets are constant beyond this distance
                let buckets =
                    table(buckets.furthest, |distance| buckets.bucket(distance), by_bucket.device());
                Self::Distances(DistanceBias { by_bucket, buckets })
            }
            Distances::Embeddings { table, norm, buckets, longest } => {
                Self::Disentangled(Disentangled::new(table, norm.into(), buckets, longest))
            }
        }
    }
}

impl MultiHeadAttention {
    /// Adds the position terms of queries at the first positions to `bias`.
    ///
    /// - `bias`: `[batch, 1, 1 or position, position]`
    /// - `queries`: `[batch, kept, query, d_head]`; `keys`: `[batch, kept, position, d_head]`
    /// - `dropout`: on relative-position embeddings, in training
    /// - returns what broadcasts to `[batch, kept, query, position]`
    pub(crate) fn scored(&self, bias: &Tensor, queries: &Tensor, keys: &Tensor, dropout: &Dropout) -> Tensor {
        if let Scores::Disentangled(distances) = &self.scores {
            return bias + distances.scores(self, queries, keys, dropout);
        }
        let (bias, count) = (self.with_distances(bias), queries.size()[2]);
        if bias.size()[2] > count { bias.narrow(2, 0, count) } else { bias }
    }

    /// Adds the relative position bias to `bias`, for queries and keys at equal positions. The last axis of `bias` is the keys; `bias` and
    /// the result broadcast to `[batch, kept, query, key]`.
    pub fn with_distances(&self, bias: &Tensor) -> Tensor {
        let all = || {
            let keys = bias.size().last().copied().unwrap_or(0);
            let positions = Tensor::arange(keys, (Kind::Int64, bias.device()));
            &positions - positions.unsqueeze(1)
        };
        self.distance_bias(all).map_or_else(|| bias.shallow_clone(), |of_distances| bias + of_distances)
    }

    /// Returns the relative position bias of distances `key - query`, `[query, key]`, as `[1, kept, query, key]`, if the module has one.
    pub(crate) fn distance_bias(&self, distances: impl FnOnce() -> Tensor) -> Option<Tensor> {
        let Scores::Distances(by_distance) = &self.scores else { return None };
        let bias = by_distance.of(&distances());
        Some(self.kept.as_ref().map_or_else(|| bias.shallow_clone(), |kept| bias.index_select(1, kept)))
    }

    /// Returns the relative-position embeddings for these queries and keys; `None` unless attention is disentangled.
    pub(crate) fn distances(&self, queries: i64, keys: i64) -> Option<MappedDistances> {
        match &self.scores {
            Scores::Disentangled(distances) => Some(distances.distances(self, queries, keys, &Dropout::OFF)),
            _ => None,
        }
    }

    pub(crate) fn is_disentangled(&self) -> bool {
        matches!(self.scores, Scores::Disentangled(_))
    }

    /// Returns the multiply-adds of the position terms for one row of the batch.
    pub(crate) fn distance_multiply_adds(&self, keys: u64, queries: u64) -> u64 {
        match &self.scores {
            Scores::Disentangled(distances) => distances.multiply_adds(self, keys, queries),
            _ => 0,
        }
    }
}
