//! Conversion between a model's tensors and the tensors of its file, as [`Storage`] describes.
use std::collections::BTreeMap;

use families::parts::Inventory;
use families::storage::{Fused, Storage, is_called};
use tch::Tensor;

use crate::Weights;

/// Splits and transposes stored tensors into the model's; `stored` must contain all of `inventory`.
pub(crate) fn unpack(storage: &Storage, mut stored: Weights, inventory: &Inventory, d_head: i64) -> Weights {
    let mut parts: BTreeMap<String, Vec<&(String, Vec<i64>)>> = BTreeMap::new();
    for part in inventory {
        parts.entry(storage.place(&part.0)).or_default().push(part);
    }
    let is_moved = |(place, parts): &(String, Vec<_>)| storage.is_transposed(place) || parts.len() > 1;
    for (place, parts) in parts.into_iter().filter(is_moved) {
        let Some(tensor) = stored.remove(&place) else { continue };
        let tensor = if storage.is_transposed(&place) { tensor.tr().contiguous() } else { tensor };
        let tensor = regrouped(storage, &parts[0].0, tensor, parts.len() as i64, d_head, false);
        let mut first = 0;
        for (name, shape) in parts {
            stored.insert(name.clone(), tensor.narrow(0, first, shape[0]));
            first += shape[0];
        }
    }
    stored
}

/// Fuses and transposes a model's tensors as in its file.
pub(crate) fn pack(storage: &Storage, weights: &Weights, d_head: i64) -> Weights {
    let mut packed: BTreeMap<String, Vec<(usize, &str, Tensor)>> = BTreeMap::new();
    for (name, tensor) in weights.iter() {
        packed.entry(storage.place(name)).or_default().push((
            storage.rank(name),
            name,
            tensor.shallow_clone(),
        ));
    }
    Weights::from_tensors(packed.into_iter().map(|(place, mut parts)| {
        parts.sort_by_key(|(rank, ..)| *rank);
        let first = parts[0].1;
        let parts: Vec<Tensor> = parts.into_iter().map(|(.., tensor)| tensor).collect();
        let tensor = if let [one] = &parts[..] { one.shallow_clone() } else { Tensor::cat(&parts, 0) };
        let tensor = regrouped(storage, first, tensor, parts.len() as i64, d_head, true);
        let tensor = if storage.is_transposed(&place) { tensor.tr().contiguous() } else { tensor };
        (place, tensor)
    }))
}

/// Reorders the rows of a fused tensor whose maps are interleaved by head: to head by head, or back to map by map.
fn regrouped(
    storage: &Storage,
    part: &str,
    tensor: Tensor,
    maps: i64,
    d_head: i64,
    to_heads: bool,
) -> Tensor {
    let map = part.rsplit_once('.').map_or(part, |(map, _)| map);
    let is_part = |fused: &&Fused| fused.parts.iter().any(|part| is_called(map, part));
    if !storage.fused.iter().find(is_part).is_some_and(|fused| fused.by_head) {
        return tensor;
    }
    let heads = tensor.size()[0] / (maps * d_head);
    let groups = if to_heads { [maps, heads, d_head] } else { [heads, maps, d_head] };
    tensor.unflatten(0, groups).transpose(0, 1).flatten(0, 2)
}
