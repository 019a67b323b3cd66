//! Heads removed for real, Michel et al. (2019), Section 4.3: rows of W_q, W_k, W_v and columns of W_o.
//!
//! A head at gate 0 adds nothing, so the model without its weights gives the same outputs. The bias of W_o belongs to
//! no head and stays, also in a layer that loses all its heads.
use std::collections::BTreeSet;

use tch::{Device, Tensor};

use crate::{Attention, Error, HeadLayout, HeadSet, Projections, Weights};
use heads::ModuleHeads;

/// Fate of the weights of a removed head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// They are cut out: the model is smaller and faster.
    Cut,
    /// They are zeros: the model has the old shapes, which any reader of such models takes.
    Zeros,
    /// They are cut out, and the heads that are left are numbered anew: a smaller model of the same kind, if every layer
    /// loses as many.
    Uniform,
}

/// The weights without `heads`. `projections` names the linear maps of a layer; `queries_stay` says that its maps of queries and
/// keys are left as they are.
///
/// Keys and values that heads share go with the last head that reads them.
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

/// Takes the heads that `new` lacks out of the weights of a module that has those of `old`.
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

/// Slices of an axis, one behind the other: those that are there, and those that stay.
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

    /// Places on the axis of the slices that stay, or of those that go.
    fn places(&self, stay: bool, device: Device) -> Tensor {
        let slices = self.present.iter().zip(0..).filter(|(id, _)| self.kept.contains(id) == stay);
        let places = slices.flat_map(|(_, place)| place * self.d_head..(place + 1) * self.d_head);
        Tensor::from_slice(&places.collect::<Vec<i64>>()).to_device(device)
    }
}
