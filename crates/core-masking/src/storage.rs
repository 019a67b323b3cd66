//! Linear maps that a family does not store one by one as `[out, in]`, such as those of GPT-2.
use std::collections::BTreeMap;

use tch::Tensor;

use crate::Weights;
use crate::weights::Inventory;

/// How a family stores its linear maps, told by the ends of their names. In memory each has a tensor of its own, `[out, in]`.
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
    /// What the tensor is called.
    pub name: &'static str,
    /// The maps in their order.
    pub parts: &'static [&'static str],
}

impl Storage {
    /// One by one, as `[out, in]`.
    pub const PLAIN: Self = Self { transposed: &[], fused: &[] };

    /// What is stored of a model with this inventory.
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
    pub(crate) fn unpack(&self, mut stored: Weights, inventory: &Inventory) -> Weights {
        let mut parts: BTreeMap<String, Vec<&(String, Vec<i64>)>> = BTreeMap::new();
        for part in inventory {
            parts.entry(self.place(&part.0)).or_default().push(part);
        }
        let is_moved = |(place, parts): &(String, Vec<_>)| self.is_transposed(place) || parts.len() > 1;
        for (place, parts) in parts.into_iter().filter(is_moved) {
            let Some(tensor) = stored.remove(&place) else { continue };
            let tensor = if self.is_transposed(&place) { tensor.tr().contiguous() } else { tensor };
            let mut first = 0;
            for (name, shape) in parts {
                stored.insert(name.clone(), tensor.narrow(0, first, shape[0]));
                first += shape[0];
            }
        }
        stored
    }

    /// What is stored of a model with these tensors.
    pub(crate) fn pack(&self, weights: &Weights) -> Weights {
        let mut packed: BTreeMap<String, Vec<(usize, Tensor)>> = BTreeMap::new();
        for (name, tensor) in weights.iter() {
            packed.entry(self.place(name)).or_default().push((self.rank(name), tensor.shallow_clone()));
        }
        Weights::from_tensors(packed.into_iter().map(|(place, mut parts)| {
            parts.sort_by_key(|(rank, _)| *rank);
            let parts: Vec<Tensor> = parts.into_iter().map(|(_, tensor)| tensor).collect();
            let tensor = if let [one] = &parts[..] { one.shallow_clone() } else { Tensor::cat(&parts, 0) };
            let tensor = if self.is_transposed(&place) { tensor.tr().contiguous() } else { tensor };
            (place, tensor)
        }))
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

/// Whether the last parts of a map's name are these.
pub(crate) fn is_called(map: &str, name: &str) -> bool {
    map.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::{linear, norm};
    use tch::{Device, Kind};

    const STORAGE: Storage = Storage {
        transposed: &["attn.c_attn", "up"],
        fused: &[Fused { name: "attn.c_attn", parts: &["attn.q", "attn.k", "attn.v"] }],
    };

    fn inventory() -> Inventory {
        let mut inventory = Vec::new();
        // keys and values of one head for two of queries
        for (name, output) in
            [("h.0.attn.q", 4), ("h.0.attn.k", 2), ("h.0.attn.v", 2), ("h.0.up", 5), ("h.0.pup", 3)]
        {
            linear(&mut inventory, name, output, 6);
        }
        norm(&mut inventory, "norm", 6);
        inventory
    }

    #[test]
    fn fused_and_transposed_maps_are_stored_as_the_family_has_them() {
        let stored = STORAGE.inventory(&inventory());
        let shape = |name: &str| &stored.iter().find(|(found, _)| found == name).unwrap().1;
        assert_eq!((shape("h.0.attn.c_attn.weight"), shape("h.0.attn.c_attn.bias")), (&vec![6, 8], &vec![8]));
        assert_eq!((shape("h.0.up.weight"), shape("h.0.pup.weight")), (&vec![6, 5], &vec![3, 6]));
        assert_eq!(stored.len(), 8);
    }

    #[test]
    fn what_is_packed_is_unpacked_as_it_was() {
        let options = (Kind::Float, Device::Cpu);
        let weights = Weights::drawn(inventory(), 1, |_, shape| Tensor::randn(shape, options));
        let packed = STORAGE.pack(&weights);
        let found: Inventory = packed.iter().map(|(name, tensor)| (name.to_owned(), tensor.size())).collect();
        let mut expected = STORAGE.inventory(&inventory());
        expected.sort();
        assert_eq!(found, expected);
        let fused = packed.get("h.0.attn.c_attn.weight").unwrap();
        assert_eq!(fused.narrow(1, 4, 2).tr(), weights.get("h.0.attn.k.weight").unwrap());
        let back = STORAGE.unpack(packed, &inventory());
        assert!(weights.iter().eq(back.iter()));
    }
}
