//! Disentangled attention: He et al. (2021), <https://arxiv.org/abs/2006.03654>, Section 3.1. A score is the sum of content-to-content,
//! content-to-position and position-to-content, where a position is an embedding of the distance between query and key.
use families::buckets::DebertaBuckets;
use tch::{Device, Kind, Tensor};

use crate::Dropout;
use crate::attention::MultiHeadAttention;
use crate::layers::Norm;

/// Relative-position embeddings, mapped to queries and keys by the content's projections (`share_att_key` of DeBERTa).
#[derive(Debug)]
pub(crate) struct Disentangled {
    embeddings: Tensor, // [2 * buckets, d_model]
    norm: Norm,
    buckets: DebertaBuckets,
    rows: Tensor, // of the embeddings, for distances `query - key` from -longest to longest
    longest: i64,
}

#[derive(Debug)]
pub(crate) struct MappedDistances {
    queries: Tensor, // [1, kept, d_head, rows]
    keys: Tensor,    // [1, kept, d_head, rows]
    rows: Tensor,    // row of each pair, [query, key]
}

impl MappedDistances {
    /// Returns the queries and keys of the distances from the query at `place` to all keys, each `[kept, key, d_head]`.
    pub fn of_query(&self, place: i64) -> [Tensor; 2] {
        let rows = self.rows.get(place);
        [&self.queries, &self.keys].map(|all| all.squeeze_dim(0).index_select(-1, &rows).transpose(-2, -1))
    }
}

impl Disentangled {
    /// - `embeddings`: `[2 * buckets, d_model]`
    /// - `longest`: maximum number of positions
    pub fn new(embeddings: Tensor, norm: Norm, buckets: DebertaBuckets, longest: i64) -> Self {
        let rows = table(longest, |distance| buckets.row(distance), embeddings.device());
        Self { embeddings, norm, buckets, rows, longest }
    }

    /// Returns the two terms with positions, for queries at the first positions, divided by the divisor of `module`.
    ///
    /// - `queries`: `[batch, kept, query, d_head]`; `keys`: `[batch, kept, key, d_head]`
    /// - `dropout`: on embeddings, in training
    /// - returns `[batch, kept, query, key]`
    pub fn scores(
        &self,
        module: &MultiHeadAttention,
        queries: &Tensor,
        keys: &Tensor,
        dropout: &Dropout,
    ) -> Tensor {
        let [batch, kept, query, _] = queries.size()[..] else { unreachable!("four axes") };
        let key = keys.size()[2];
        let distances = self.distances(module, query, key, dropout);
        let rows = distances.rows.expand([batch, kept, query, key], false);
        let to_position = queries.matmul(&distances.keys).gather(-1, &rows, false);
        let to_content = keys.matmul(&distances.queries).gather(-1, &rows.transpose(-2, -1), false);
        (to_position + to_content.transpose(-2, -1)) / module.divisor
    }

    /// Returns the queries and keys of the distances between queries and keys at the first positions.
    pub fn distances(
        &self,
        module: &MultiHeadAttention,
        query: i64,
        key: i64,
        dropout: &Dropout,
    ) -> MappedDistances {
        let (first, count) = self.span(query, key);
        let embeddings = self.norm.forward(&self.embeddings.narrow(0, first, count));
        let embeddings = dropout.apply(embeddings).unsqueeze(0); // [1, rows, d_model]
        let [queries, keys] =
            [&module.query, &module.key].map(|map| module.project(map, &embeddings).transpose(-2, -1));
        let positions = |count| Tensor::arange(count, (Kind::Int64, embeddings.device()));
        let distances = positions(query).unsqueeze(1) - positions(key); // [query, key]
        MappedDistances { queries, keys, rows: self.rows.take(&(distances + self.longest)) - first }
    }

    /// Returns the first embedding that these numbers of queries and keys need, and how many.
    fn span(&self, queries: i64, keys: i64) -> (i64, i64) {
        let [first, last] = [1 - keys, queries - 1].map(|distance| self.buckets.row(distance));
        (first, last - first + 1)
    }

    /// Returns the multiply-adds of [`scores`](Self::scores) for one row of the batch, without the projections, which all rows share.
    pub fn multiply_adds(&self, module: &MultiHeadAttention, keys: u64, queries: u64) -> u64 {
        let (_, rows) = self.span(queries as i64, keys as i64);
        (queries + keys) * rows as u64 * module.query.size().0
    }
}

/// Tabulates `bucket` for all distances from `-reach` to `reach`: integers, `[2 * reach + 1]`.
pub(crate) fn table(reach: i64, bucket: impl Fn(i64) -> i64, device: Device) -> Tensor {
    Tensor::from_slice(&(-reach..=reach).map(bucket).collect::<Vec<_>>()).to_device(device)
}
