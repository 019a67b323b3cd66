//! Linear maps that a family does not store one by one as `[out, in]`, such as those of GPT-2.
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
    /// True if each head has its part of all maps, one after another, and the next head follows.
    pub by_head: bool,
}

impl Storage {
    /// One by one, as `[out, in]`.
    pub const PLAIN: Self = Self { transposed: &[], fused: &[] };

    /// Inventory of the file of a model with this inventory.
    pub fn inventory(&self, inventory: &Inventory) -> Inventory {
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

    /// The name of the tensor that this one is stored in: its own, unless it is fused.
    pub fn place(&self, name: &str) -> String {
        let Some((map, kind)) = name.rsplit_once('.') else { return name.to_owned() };
        let fused = self.fused.iter().find_map(|fused| {
            let part = fused.parts.iter().find(|part| is_called(map, part))?;
            Some(format!("{}{}.{kind}", &map[..map.len() - part.len()], fused.name))
        });
        fused.unwrap_or_else(|| name.to_owned())
    }

    /// The place of a map among those that share its tensor.
    pub fn rank(&self, name: &str) -> usize {
        let map = name.rsplit_once('.').map_or(name, |(map, _)| map);
        let mut ranks =
            self.fused.iter().filter_map(|fused| fused.parts.iter().position(|part| is_called(map, part)));
        ranks.next().unwrap_or(0)
    }

    /// Returns true if a tensor of the file is stored as `[in, out]`.
    pub fn is_transposed(&self, stored: &str) -> bool {
        let map = stored.strip_suffix(".weight");
        map.is_some_and(|map| self.transposed.iter().any(|name| is_called(map, name)))
    }
}

/// Returns true if the last parts of a map's name are these.
pub fn is_called(map: &str, name: &str) -> bool {
    map.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}
