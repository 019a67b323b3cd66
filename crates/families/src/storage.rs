//! Linear maps that a family does not store separately as `[out, in]`, such as GPT-2's.
use crate::parts::Inventory;

/// How a family's files store linear maps, by name suffix. In memory each map is a separate tensor, `[out, in]`.
#[derive(Debug, PartialEq)]
pub struct Storage {
    /// Maps stored as `[in, out]`.
    pub transposed: &'static [&'static str],
    /// Fused maps.
    pub fused: &'static [Fused],
}

/// Maps with a common input that are fused into one tensor along the outputs.
#[derive(Debug, PartialEq)]
pub struct Fused {
    /// Name of the tensor.
    pub name: &'static str,
    /// The maps in order.
    pub parts: &'static [&'static str],
    /// True if the maps are interleaved by head: all maps of the first head, then all of the next.
    pub by_head: bool,
}

impl Storage {
    /// Separate maps, `[out, in]`.
    pub const PLAIN: Self = Self { transposed: &[], fused: &[] };

    /// Returns the inventory of a file from the inventory of the model.
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

    /// Returns the name of the stored tensor that contains a tensor: its own, unless it is fused.
    pub fn place(&self, name: &str) -> String {
        let Some((map, kind)) = name.rsplit_once('.') else { return name.to_owned() };
        let fused = self.fused.iter().find_map(|fused| {
            let part = fused.parts.iter().find(|part| is_called(map, part))?;
            Some(format!("{}{}.{kind}", &map[..map.len() - part.len()], fused.name))
        });
        fused.unwrap_or_else(|| name.to_owned())
    }

    /// Returns the index of a map in its fused tensor.
    pub fn rank(&self, name: &str) -> usize {
        let map = name.rsplit_once('.').map_or(name, |(map, _)| map);
        let mut ranks =
            self.fused.iter().filter_map(|fused| fused.parts.iter().position(|part| is_called(map, part)));
        ranks.next().unwrap_or(0)
    }

    /// Returns true if a stored tensor is `[in, out]`.
    pub fn is_transposed(&self, stored: &str) -> bool {
        let map = stored.strip_suffix(".weight");
        map.is_some_and(|map| self.transposed.iter().any(|name| is_called(map, name)))
    }
}

/// Returns true if a map's name is `name` or ends with it as whole components.
pub fn is_called(map: &str, name: &str) -> bool {
    map.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}
