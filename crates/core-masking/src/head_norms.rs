//! Query-key normalisation: Henry et al. (2020), <https://arxiv.org/abs/2010.04245>.
use families::parts::{self, HeadNorm};
use tch::{Device, Tensor};

use crate::layers::Norm;
use heads::ModuleHeads;

#[derive(Debug)]
pub(crate) struct HeadNorms {
    query: Norm,
    key: Norm,
    all: Option<AllHeads>,
}

/// Norms with separate weights for each head. They precede the selection of the kept heads, so their input has all heads.
#[derive(Debug)]
struct AllHeads {
    /// True if one norm spans all heads, false if each head has its own.
    is_joined: bool,
    queries: Option<Tensor>, // [kept]; absent if no head was removed
    keys: Option<Tensor>,
}

impl HeadNorms {
    pub(crate) fn new(
        norms: [parts::Norm<Tensor>; 2],
        kind: HeadNorm,
        heads: &ModuleHeads,
        device: Device,
    ) -> Self {
        let [query, key] = norms.map(Norm::from);
        if kind == HeadNorm::Alike {
            return Self { query, key, all: None };
        }
        let kept =
            |kept: &[i64], all: usize| (kept.len() < all).then(|| Tensor::from_slice(kept).to_device(device));
        let shape = heads.shape;
        let queries = kept(&heads.kept, shape.heads);
        let keys = kept(&heads.kept_key_values(), shape.key_value_heads);
        Self { query, key, all: Some(AllHeads { is_joined: kind == HeadNorm::Joined, queries, keys }) }
    }

    /// Normalises `x`, `[batch, heads, position, d_head]`, and returns the kept heads. If heads have separate weights, `x` has all heads.
    pub(crate) fn of_queries(&self, x: &Tensor) -> Tensor {
        match &self.all {
            Some(all) => all.normalise(x, &self.query, all.queries.as_ref()),
            None => self.query.forward(x),
        }
    }

    /// Normalises keys; see [`of_queries`](Self::of_queries).
    pub(crate) fn of_keys(&self, x: &Tensor) -> Tensor {
        match &self.all {
            Some(all) => all.normalise(x, &self.key, all.keys.as_ref()),
            None => self.key.forward(x),
        }
    }
}

impl AllHeads {
    fn normalise(&self, x: &Tensor, norm: &Norm, kept: Option<&Tensor>) -> Tensor {
        let size = x.size();
        if size[1] == 0 {
            return x.shallow_clone();
        }
        let rows = x.transpose(1, 2); // [batch, position, heads, d_head]
        let rows = if self.is_joined {
            norm.forward(&rows.flatten(2, 3)).unflatten(2, [size[1], size[3]])
        } else {
            norm.forward(&rows)
        };
        let x = rows.transpose(1, 2);
        kept.map_or_else(|| x.shallow_clone(), |kept| x.index_select(1, kept))
    }
}
