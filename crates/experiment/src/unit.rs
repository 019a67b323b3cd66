//! Units of masking: single heads, or heads that share keys and values or weights; optionally equal numbers in all layers.
use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use core_masking::{Attention, HeadId, HeadLayout, HeadScores};

use crate::error::Error;

/// Unit of masking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// A head
    Head,
    /// All heads that share keys and values; in ALBERT, whose layers share weights, the same head in every layer
    Group,
}

/// Rule for masking heads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskingUnits {
    /// Heads per unit: neighbours in a layer, or one head in every layer that shares weights.
    unit: usize,
    /// Heads per group.
    group: usize,
    /// Masks equal numbers of units in all layers, and of heads in all groups.
    uniform: bool,
    /// Layers share weights, and a unit is one head in all of them.
    shares_layers: bool,
}

/// Units among which masking is kept even: a layer's units, or a group's heads.
type MaskingStratum = (Attention, usize, usize);

impl MaskingUnits {
    /// Each head alone.
    pub const SINGLE_HEADS: Self = Self { unit: 1, group: 1, uniform: false, shares_layers: false };

    /// Returns the rule for a model.
    ///
    /// # Errors
    /// If the rule depends on groups, and heads have been removed or group sizes differ between attention types.
    pub fn of(layout: &HeadLayout, unit: Unit, uniform: bool) -> Result<Self, Error> {
        if unit == Unit::Head && !uniform {
            return Ok(Self::SINGLE_HEADS);
        }
        let layers = layout.types().map(|(_, shape)| shape.layers).max().unwrap_or(1);
        if layout.is_one_layer() && unit == Unit::Group {
            return Ok(Self { unit: layers, shares_layers: true, ..Self::SINGLE_HEADS });
        }
        let groups: BTreeSet<usize> =
            layout.types().map(|(_, shape)| shape.heads / shape.key_value_heads).collect();
        let removed = layout.removed().len();
        match groups.first() {
            Some(&group) if groups.len() == 1 && removed == 0 => Ok(Self {
                unit: if unit == Unit::Group { group } else { 1 },
                group,
                uniform,
                shares_layers: false,
            }),
            _ => {
                let fault = match removed {
                    0 => "its attention types have groups of different sizes".to_owned(),
                    _ => format!("it lacks {}", words::count(removed, "head")),
                };
                let needed = "--unit group and --uniform need a model with groups of one size";
                Err(Error::input(format!("{needed}, but {fault}")))
            }
        }
    }

    /// Returns the number of heads per unit.
    pub fn unit(self) -> usize {
        self.unit
    }

    /// Returns the number of heads per unit in one layer.
    pub fn unit_in_layer(self) -> usize {
        if self.shares_layers { 1 } else { self.unit }
    }

    /// Returns the smallest number of heads that can be masked at once.
    pub fn at_once(self, heads: &[HeadId]) -> usize {
        let strata: BTreeSet<MaskingStratum> = heads.iter().map(|&id| self.stratum(id)).collect();
        self.unit * if self.uniform { strata.len() } else { 1 }
    }

    /// Returns the heads unit by unit, in the order in which they are masked. A unit's score is the sum of its heads' scores.
    pub fn arrange(self, scores: &HeadScores) -> Vec<HeadId> {
        let mut units: BTreeMap<(MaskingStratum, usize), ScoredUnit> = BTreeMap::new();
        for (id, score) in scores.iter() {
            let unit = units.entry((self.stratum(id), id.head_index() / self.unit_in_layer())).or_default();
            unit.score += score;
            unit.heads.push(id);
        }
        let mut units: Vec<(MaskingStratum, ScoredUnit)> =
            units.into_iter().map(|((stratum, _), unit)| (stratum, unit)).collect();
        units.sort_by(|(_, one), (_, other)| one.score.total_cmp(&other.score)); // stable
        if self.uniform {
            let mut seen: BTreeMap<MaskingStratum, usize> = BTreeMap::new();
            for (stratum, unit) in &mut units {
                let before = seen.entry(*stratum).or_default();
                unit.turn = *before;
                *before += 1;
            }
            units.sort_by_key(|(_, unit)| unit.turn); // stable
        }
        units.into_iter().flat_map(|(_, unit)| unit.heads).collect()
    }

    fn stratum(self, id: HeadId) -> MaskingStratum {
        if self.shares_layers {
            return (id.attention(), 0, 0);
        }
        let group = if self.unit == 1 { id.head_index() / self.group } else { 0 };
        (id.attention(), id.layer_index(), group)
    }
}

/// A unit with its score.
#[derive(Default)]
struct ScoredUnit {
    score: f64,
    heads: Vec<HeadId>,
    /// Number of units of its stratum that are masked before it.
    turn: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_masking::LayerShape;

    /// 2 layers of 4 heads in 2 groups.
    fn layout() -> HeadLayout {
        let shape = LayerShape { layers: 2, heads: 4, key_value_heads: 2, d_head: 3 };
        HeadLayout::new([(Attention::SelfAttention, shape)])
    }

    fn scores(of: [[f64; 4]; 2]) -> HeadScores {
        layout().heads().into_iter().map(|id| (id, of[id.layer_index()][id.head_index()])).collect()
    }

    fn arranged(unit: Unit, uniform: bool) -> (String, usize) {
        let units = MaskingUnits::of(&layout(), unit, uniform).unwrap();
        let order = units.arrange(&scores([[8.0, 1.0, 3.0, 3.5], [0.0, 2.0, 5.0, 9.0]]));
        let names = order.iter().map(|id| format!("{}{}", id.layer_number(), id.head_number()));
        (names.collect::<Vec<_>>().join(" "), units.at_once(&layout().heads()))
    }

    /// The groups sum to 9, 6.5, 2 and 14. A uniform order starts with the lower-scoring head of each of the four groups.
    #[test]
    fn heads_are_ordered_by_their_scores_and_groups_by_their_sums() {
        for (unit, uniform, order, at_once) in [
            (Unit::Head, false, "21 12 22 13 14 23 11 24", 1),
            (Unit::Head, true, "21 12 13 23 22 14 11 24", 4),
            (Unit::Group, false, "21 22 13 14 11 12 23 24", 2),
            (Unit::Group, true, "21 22 13 14 11 12 23 24", 4),
        ] {
            assert_eq!(arranged(unit, uniform), (order.to_owned(), at_once), "{unit:?} {uniform}");
        }
    }

    /// Sums over both layers: 8, 3, 8 and 12.5.
    #[test]
    fn a_head_of_shared_layers_is_masked_in_all_layers() {
        let units = MaskingUnits::of(&layout().of_one_layer(), Unit::Group, false).unwrap();
        let order = units.arrange(&scores([[8.0, 1.0, 3.0, 3.5], [0.0, 2.0, 5.0, 9.0]]));
        let names: Vec<String> = order.iter().map(ToString::to_string).collect();
        let heads =
            ["self:1:2", "self:2:2", "self:1:1", "self:2:1", "self:1:3", "self:2:3", "self:1:4", "self:2:4"];
        assert_eq!((names, units.at_once(&layout().heads())), (heads.map(str::to_owned).to_vec(), 2));
    }

    #[test]
    fn a_model_that_lacks_heads_has_no_whole_groups() {
        let layout = layout().without(&"self:1:1".parse().unwrap()).unwrap();
        assert!(MaskingUnits::of(&layout, Unit::Head, false).is_ok());
        let refusal = MaskingUnits::of(&layout, Unit::Group, false).unwrap_err().to_string();
        assert!(refusal.contains("but it lacks 1 head"), "{refusal}");
    }
}
