//! Linear maps that a family does not store one by one as `[out, in]`, such as those of GPT-2.
use std::collections::BTreeMap;

use tch::Tensor;

use crate::Weights;
use crate::weights::Inventory;

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

    /// Tensors of the file of a model with these tensors.
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

/// Returns true if the last parts of a map's name are these.
pub(crate) fn is_called(map: &str, name: &str) -> bool {
    map.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}
