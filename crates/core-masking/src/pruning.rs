//! Heads removed for real, Michel et al. (2019), Section 4.3: rows of W_q, W_k, W_v and columns of W_o.
//!
//! A head at gate 0 adds nothing, so the model without its weights gives the same outputs. The bias of W_o belongs to
//! no head and stays, also in a layer that loses all its heads.
use std::collections::{BTreeMap, BTreeSet};

use tch::Tensor;

use crate::{Attention, Error, HeadId, HeadLayout, HeadSet, Weights};

/// What becomes of the weights of a removed head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// They are cut out: the model is smaller and faster.
    Cut,
    /// They are zeros: the model has the old shapes, which any reader of such models takes.
    Zeros,
}

/// Removed heads as transformers writes them in `config.json`: by layer, both counted from 0.
pub type PrunedHeads = BTreeMap<usize, BTreeSet<usize>>;

/// The heads of `pruned` as names.
pub(crate) fn named(attention: Attention, pruned: &PrunedHeads) -> impl Iterator<Item = HeadId> + '_ {
    let in_layer = move |(&layer, heads): (&usize, &BTreeSet<usize>)| {
        heads.iter().map(move |&head| HeadId::from_index(attention, layer, head)).collect::<Vec<_>>()
    };
    pruned.iter().flat_map(in_layer)
}

/// The heads of one attention type by layer.
pub(crate) fn by_layer(attention: Attention, heads: &HeadSet) -> PrunedHeads {
    let mut layers = PrunedHeads::new();
    for id in heads.iter().filter(|id| id.attention() == attention) {
        layers.entry(id.layer_index()).or_default().insert(id.head_index());
    }
    layers
}

/// The weights without `heads`. `projections` names query, key, value and output projection of a layer.
///
/// # Errors
/// If the model does not have one of the heads, or no head would be left.
pub(crate) fn without_heads(
    weights: &Weights,
    layout: &HeadLayout,
    heads: &HeadSet,
    removal: Removal,
    projections: impl Fn(Attention, usize) -> [String; 4],
) -> Result<Weights, Error> {
    layout.without(heads)?;
    let mut pruned = weights.share();
    for (attention, shape) in layout.types() {
        for layer in 0..shape.layers {
            let present = layout.kept(attention, layer);
            let is_removed = |&id: &i64| heads.contains(HeadId::from_index(attention, layer, id as usize));
            let cut = Cut {
                removal,
                removed: places(&present, is_removed),
                kept: places(&present, |id| !is_removed(id)),
            };
            if !cut.removed.is_empty() {
                cut.apply(&mut pruned, &projections(attention, layer), shape.heads as i64)?;
            }
        }
    }
    Ok(pruned)
}

/// Places in `present` of the heads that fulfil a condition.
fn places(present: &[i64], condition: impl Fn(&i64) -> bool) -> Vec<i64> {
    (0..present.len()).filter(|&place| condition(&present[place])).map(|place| place as i64).collect()
}

/// What is cut from one layer: places among the heads that its weights hold.
struct Cut {
    removal: Removal,
    removed: Vec<i64>,
    kept: Vec<i64>,
}

impl Cut {
    /// `heads`: those that the layer had at first, which share `d_model` between them.
    fn apply(&self, weights: &mut Weights, projections: &[String; 4], heads: i64) -> Result<(), Error> {
        let [query, key, value, output] = projections;
        let d_head = weights.get(&format!("{output}.bias"))?.size()[0] / heads;
        for name in [query, key, value] {
            for kind in ["weight", "bias"] {
                self.replace(weights, format!("{name}.{kind}"), 0, d_head)?;
            }
        }
        self.replace(weights, format!("{output}.weight"), 1, d_head)
    }

    fn replace(&self, weights: &mut Weights, name: String, axis: i64, d_head: i64) -> Result<(), Error> {
        let old = weights.get(&name)?.detach();
        let rows = |places: &[i64]| {
            let all: Vec<i64> =
                places.iter().flat_map(|place| place * d_head..(place + 1) * d_head).collect();
            Tensor::from_slice(&all).to_device(old.device())
        };
        let new = match self.removal {
            Removal::Cut => old.index_select(axis, &rows(&self.kept)),
            Removal::Zeros => old.index_fill(axis, &rows(&self.removed), 0.0),
        };
        weights.insert(name, new);
        Ok(())
    }
}
