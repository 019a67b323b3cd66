//! Linear maps that a family does not store one by one as `[out, in]`, such as those of GPT-2.
use std::collections::BTreeMap;

use tch::Tensor;

use crate::Weights;
use crate::parts::Inventory;

/// Storage of linear maps in a family's files, by the ends of their names. In memory each has a tensor of its own, `[out, in]`.
#[derive(Debug, PartialEq)]
pub struct Storage {
    /// Maps stored as `[in, out]`.
    pub transposed: &'static [&'static str],
    /// Maps that share a tensor.
    pub fused: &'static [Fused],
}

/// Maps of one input in one tensor, output after output.
#[derive(Debug, PartialEq)]
pub struct Fused {
    /// Name of the tensor.
    pub name: &'static str,
    /// The maps in their order.
    pub parts: &'static [&'static str],
    /// True if each head has its part of all maps, one behind the other, and the next head follows.
    pub by_head: bool,
}

impl Storage {
    /// One by one, as `[out, in]`.
    pub const PLAIN: Self = Self { transposed: &[], fused: &[] };

    /// Inventory of the file of a model with this inventory.
    pub(crate) fn inventory(&self, inventory: &Inventory) -> Inventory {
        let mut stored: Inventory = Vec::new();
        for (name, shape) in inventory {
            let place = self.place(name);
            match stored.iter_mut().find(|(name, _)| *name == place) {
                Some((_, fused)) => fused[0] += shape[0],
                None => stored.push((place, shape.clone())),
            }
        }
        for (name, shape) in &mut stored {
            if self.is_transposed(name) {
                shape.reverse();
            }
        }
        stored
    }

    /// The tensors of a model with this inventory, which has them all, from those that are stored.
    pub(crate) fn unpack(&self, mut stored: Weights, inventory: &Inventory, d_head: i64) -> Weights {
        let mut parts: BTreeMap<String, Vec<&(String, Vec<i64>)>> = BTreeMap::new();
        for part in inventory {
            parts.entry(self.place(&part.0)).or_default().push(part);
        }
        let is_moved = |(place, parts): &(String, Vec<_>)| self.is_transposed(place) || parts.len() > 1;
        for (place, parts) in parts.into_iter().filter(is_moved) {
            let Some(tensor) = stored.remove(&place) else { continue };
            let tensor = if self.is_transposed(&place) { tensor.tr().contiguous() } else { tensor };
            let tensor = self.regrouped(&parts[0].0, tensor, parts.len() as i64, d_head, false);
            let mut first = 0;
            for (name, shape) in parts {
                stored.insert(name.clone(), tensor.narrow(0, first, shape[0]));
                first += shape[0];
            }
        }
        stored
    }

    /// Tensors of the file of a model with these tensors.
    pub(crate) fn pack(&self, weights: &Weights, d_head: i64) -> Weights {
        let mut packed: BTreeMap<String, Vec<(usize, &str, Tensor)>> = BTreeMap::new();
        for (name, tensor) in weights.iter() {
            packed.entry(self.place(name)).or_default().push((self.rank(name), name, tensor.shallow_clone()));
        }
        Weights::from_tensors(packed.into_iter().map(|(place, mut parts)| {
            parts.sort_by_key(|(rank, ..)| *rank);
            let first = parts[0].1;
            let parts: Vec<Tensor> = parts.into_iter().map(|(.., tensor)| tensor).collect();
            let tensor = if let [one] = &parts[..] { one.shallow_clone() } else { Tensor::cat(&parts, 0) };
            let tensor = self.regrouped(first, tensor, parts.len() as i64, d_head, true);
            let tensor = if self.is_transposed(&place) { tensor.tr().contiguous() } else { tensor };
            (place, tensor)
        }))
    }

    /// Rows of maps that share a tensor by head: from map after map to head after head, or back.
    fn regrouped(&self, part: &str, tensor: Tensor, maps: i64, d_head: i64, to_heads: bool) -> Tensor {
        let map = part.rsplit_once('.').map_or(part, |(map, _)| map);
        let is_part = |fused: &&Fused| fused.parts.iter().any(|part| is_called(map, part));
        if !self.fused.iter().find(is_part).is_some_and(|fused| fused.by_head) {
            return tensor;
        }
        let heads = tensor.size()[0] / (maps * d_head);
        let groups = if to_heads { [maps, heads, d_head] } else { [heads, maps, d_head] };
        tensor.unflatten(0, groups).transpose(0, 1).flatten(0, 2)
    }

    /// The name of the tensor that this one is stored in: its own, unless it is fused.
    fn place(&self, name: &str) -> String {
        let Some((map, kind)) = name.rsplit_once('.') else { return name.to_owned() };
        let fused = self.fused.iter().find_map(|fused| {
            let part = fused.parts.iter().find(|part| is_called(map, part))?;
            Some(format!("{}{}.{kind}", &map[..map.len() - part.len()], fused.name))
        });
        fused.unwrap_or_else(|| name.to_owned())
    }

    /// The place of a map among those that share its tensor.
    fn rank(&self, name: &str) -> usize {
        let map = name.rsplit_once('.').map_or(name, |(map, _)| map);
        let mut ranks =
            self.fused.iter().filter_map(|fused| fused.parts.iter().position(|part| is_called(map, part)));
        ranks.next().unwrap_or(0)
    }

    fn is_transposed(&self, stored: &str) -> bool {
        let map = stored.strip_suffix(".weight");
        map.is_some_and(|map| self.transposed.iter().any(|name| is_called(map, name)))
    }
}

/// Returns true if the last parts of a map's name are these.
pub(crate) fn is_called(map: &str, name: &str) -> bool {
    map.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}
