//! Removal of heads from the weights, Michel et al. (2019), Section 4.3: rows of W_q, W_k, W_v and columns of W_o.
//!
//! A head with gate 0 adds nothing, so the model without its weights gives the same outputs. The bias of W_o belongs to no head and is
//! kept, even in a layer that loses all its heads.
use std::collections::BTreeSet;

use tch::{Device, Tensor};

use crate::{Attention, Error, HeadLayout, HeadSet, Projections, Weights};
use heads::ModuleHeads;

/// What happens to the weights of a removed head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Deletes them, which makes the model smaller and faster.
    Cut,
    /// Sets them to 0. Shapes stay, so any program that loads the original model can load this one.
    Zeros,
    /// Deletes them and renumbers the remaining heads. If all layers lose the same number, the result is an ordinary, smaller model.
    Uniform,
}

/// Returns the weights without `heads`. `projections` names the linear maps of a layer. With `queries_stay`, W_q and W_k are left as they
/// are.
///
/// In grouped-query attention, a key and value head is removed with the last query head that reads it.
pub(crate) fn without_heads(
    weights: &Weights,
    layout: &HeadLayout,
    heads: &HeadSet,
    removal: Removal,
    queries_stay: bool,
    projections: impl Fn(Attention, usize) -> Projections,
) -> Result<Weights, Error> {
    let after = if removal == Removal::Zeros { layout.lacking(heads)? } else { layout.without(heads)? };
    let (mut pruned, mut done) = (weights.share(), BTreeSet::new());
    for (attention, shape) in layout.types() {
        for layer in 0..shape.layers {
            let (old, new) = (layout.module(attention, layer), after.module(attention, layer));
            let names = projections(attention, layer);
            // layers may share their weights
            if new.kept.len() < old.kept.len() && done.insert(names.query.clone()) {
                cut(&mut pruned, &names, (&old, &new), removal, queries_stay)?;
            }
        }
    }
    Ok(pruned)
}

/// Removes the heads that `new` lacks from the weights of a module with the heads of `old`.
fn cut(
    weights: &mut Weights,
    names: &Projections,
    (old, new): (&ModuleHeads, &ModuleHeads),
    removal: Removal,
    queries_stay: bool,
) -> Result<(), Error> {
    let d_head = old.shape.d_head;
    let queries = Slices { present: &old.kept, kept: &new.kept, d_head, removal };
    let (present, kept) = (&old.kept_key_values(), &new.kept_key_values());
    let key_values = Slices { present, kept, d_head, removal };
    let inputs = [(&names.value, key_values), (&names.query, queries), (&names.key, key_values)];
    for (name, slices) in inputs.into_iter().take(if queries_stay { 1 } else { 3 }) {
        slices.replace(weights, format!("{name}.weight"), 0)?;
        if weights.holds(&format!("{name}.bias")) {
            slices.replace(weights, format!("{name}.bias"), 0)?;
        }
    }
    queries.replace(weights, format!("{}.weight", names.output), 1)
}

/// Consecutive slices of an axis, one per head: those present and those to keep.
#[derive(Clone, Copy)]
struct Slices<'a> {
    present: &'a [i64],
    kept: &'a [i64],
    d_head: i64,
    removal: Removal,
}

impl Slices<'_> {
    fn replace(&self, weights: &mut Weights, name: String, axis: i64) -> Result<(), Error> {
        let old = weights.get(&name)?.detach();
        let new = match self.removal {
            Removal::Cut | Removal::Uniform => old.index_select(axis, &self.places(true, old.device())),
            Removal::Zeros => old.index_fill(axis, &self.places(false, old.device()), 0.0),
        };
        weights.insert(name, new);
        Ok(())
    }

    /// Returns the indices of the slices that stay, or of those that are removed.
    fn places(&self, stay: bool, device: Device) -> Tensor {
        let slices = self.present.iter().zip(0..).filter(|(id, _)| self.kept.contains(id) == stay);
        let places = slices.flat_map(|(_, place)| place * self.d_head..(place + 1) * self.d_head);
        Tensor::from_slice(&places.collect::<Vec<i64>>()).to_device(device)
    }
}
