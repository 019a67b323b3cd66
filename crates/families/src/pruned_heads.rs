//! Removed heads in a `config.json`.
use std::collections::{BTreeMap, BTreeSet};

use heads::{Attention, HeadId, HeadSet};

/// Removed heads as transformers writes them to `config.json`: by layer, both counted from 0.
pub type PrunedHeads = BTreeMap<usize, BTreeSet<usize>>;

/// Returns the heads in `pruned`.
pub fn named(attention: Attention, pruned: &PrunedHeads) -> impl Iterator<Item = HeadId> + '_ {
    let in_layer = move |(&layer, heads): (&usize, &BTreeSet<usize>)| {
        heads.iter().map(move |&head| HeadId::from_index(attention, layer, head)).collect::<Vec<_>>()
    };
    pruned.iter().flat_map(in_layer)
}

/// Groups the heads of one attention type by layer.
pub fn by_layer(attention: Attention, heads: &HeadSet) -> PrunedHeads {
    let mut layers = PrunedHeads::new();
    for id in heads.iter().filter(|id| id.attention() == attention) {
        layers.entry(id.layer_index()).or_default().insert(id.head_index());
    }
    layers
}

/// Adds heads of one attention type to `pruned`.
pub fn joined(attention: Attention, pruned: &PrunedHeads, heads: &HeadSet) -> PrunedHeads {
    by_layer(attention, &named(attention, pruned).chain(heads.iter()).collect())
}
