//! Removed heads as a `config.json` names them.
use std::collections::{BTreeMap, BTreeSet};

use heads::{Attention, HeadId, HeadSet};

/// Removed heads as transformers writes them in `config.json`: by layer, both counted from 0.
pub type PrunedHeads = BTreeMap<usize, BTreeSet<usize>>;

/// The heads of `pruned` as names.
pub fn named(attention: Attention, pruned: &PrunedHeads) -> impl Iterator<Item = HeadId> + '_ {
    let in_layer = move |(&layer, heads): (&usize, &BTreeSet<usize>)| {
        heads.iter().map(move |&head| HeadId::from_index(attention, layer, head)).collect::<Vec<_>>()
    };
    pruned.iter().flat_map(in_layer)
}

/// The heads of one attention type by layer.
pub fn by_layer(attention: Attention, heads: &HeadSet) -> PrunedHeads {
    let mut layers = PrunedHeads::new();
    for id in heads.iter().filter(|id| id.attention() == attention) {
        layers.entry(id.layer_index()).or_default().insert(id.head_index());
    }
    layers
}

/// Heads of one attention type that are `pruned`, and these.
pub fn joined(attention: Attention, pruned: &PrunedHeads, heads: &HeadSet) -> PrunedHeads {
    by_layer(attention, &named(attention, pruned).chain(heads.iter()).collect())
}
