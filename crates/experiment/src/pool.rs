//! Pools of heads that are masked step by step.
use std::collections::BTreeMap;

use core_masking::{Attention, HeadId, HeadLayout, HeadScores, HeadSet};
use heads::Selection;
use records::{CurveId, CurveRow, Identity, MetricName, Order, Scope};

use crate::args::has_duplicates;
use crate::error::Error;
use crate::unit::MaskingUnits;

/// Arguments of experiments that mask heads step by step.
#[derive(Debug, Clone, clap::Args)]
pub struct StepArgs {
    /// Attention types whose heads are masked: `all` or one type (Figure 4); types separated by commas each get their own curves
    #[arg(long, action = clap::ArgAction::Set, value_delimiter = ',', value_name = "TYPES", default_value = "all")]
    attention: Vec<Selection>,

    /// Heads masked at each step, in percent [default: 10 for translators and 5 for other models, as in the paper for BERT]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=100))]
    step_percent: Option<u64>,

    /// Heads to keep in each layer
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_at_least: usize,
}

impl StepArgs {
    /// Sets the step size, in percent, unless one was given.
    #[must_use]
    pub fn with_default(self, percent: Option<u64>) -> Self {
        Self { step_percent: self.step_percent.or(percent), ..self }
    }

    /// Returns a pool for each `--attention`.
    pub fn pools(&self, layout: &HeadLayout, units: MaskingUnits) -> Result<Vec<Pool>, Error> {
        let &Self { step_percent, keep_at_least, .. } = self;
        if has_duplicates(&self.attention) {
            return Err(Error::input("a type is given twice in --attention"));
        }
        let most = layout.types().map(|(_, shape)| shape.heads).min().unwrap_or_default();
        if keep_at_least >= most {
            return Err(Error::input(format!(
                "--keep-at-least {keep_at_least} leaves nothing to mask: layers have {most} heads"
            )));
        }
        if !keep_at_least.is_multiple_of(units.unit_in_layer()) {
            return Err(Error::input(format!(
                "--keep-at-least {keep_at_least} is not a multiple of {}, the number of heads per group",
                units.unit()
            )));
        }
        let step_percent = step_percent.unwrap_or(if layout.types().count() == 1 { 5 } else { 10 });
        let pool = |selection: &Selection| {
            let (scope, heads) = (selection.scope(layout), selection.heads(layout)?);
            Ok(Pool { scope, heads, keep_at_least, step_percent, units })
        };
        self.attention.iter().map(pool).collect()
    }
}

/// Heads that are ranked together.
#[derive(Debug, Clone)]
pub struct Pool {
    /// Name of the pool.
    pub scope: Scope,
    /// The heads: either all heads of a layer or none.
    pub heads: Vec<HeadId>,
    /// Number of heads that each layer keeps.
    pub keep_at_least: usize,
    /// Heads masked at each step, in percent, 1 to 100.
    pub step_percent: u64,
    /// Rule for masking heads together.
    pub units: MaskingUnits,
}

impl Pool {
    /// Returns the number of masked heads at each step: 0, then ⌈heads · step · percent / 100⌉, up to all that may be masked. Heads that
    /// are masked together round each number up. For steps of 10% this is Section 4.2's `ceil(total * i / 10)`.
    pub fn counts(&self) -> Vec<usize> {
        let (most, at_once) = (self.most(), self.units.at_once(&self.heads));
        let total = self.heads.len() as u64;
        let mut counts = vec![0];
        for step in 1.. {
            let count = (total * step * self.step_percent).div_ceil(100) as usize;
            let count = count.div_ceil(at_once) * at_once;
            if count >= most {
                break;
            }
            if Some(&count) != counts.last() {
                counts.push(count);
            }
        }
        if most > 0 {
            counts.push(most);
        }
        counts
    }

    /// Adds the step settings to an identity.
    pub fn describe(&self, identity: &mut Identity) {
        identity.arguments.insert("step_percent".to_owned(), self.step_percent.into());
        identity.arguments.insert("keep_at_least".to_owned(), self.keep_at_least.into());
    }

    /// Returns the name of the curve of an order over these heads.
    pub fn curve(&self, order: Order) -> CurveId {
        CurveId { attention: self.scope, order, order_seed: None, complement: false }
    }

    /// Returns the row of a step, without scores, which are filled in when it is measured.
    pub fn row(&self, order: Order, step: usize, masked: &HeadSet, metric: MetricName) -> CurveRow {
        CurveRow {
            attention: self.scope,
            order,
            step,
            masked: masked.len(),
            heads: self.heads.len(),
            metric,
            masked_heads: masked.names(),
            ..CurveRow::default()
        }
    }

    /// Returns the pool's heads by increasing score, the order in which they are masked.
    pub fn order(&self, scores: &HeadScores) -> Vec<HeadId> {
        let own = scores.iter().filter(|(id, _)| self.heads.contains(id)).collect();
        self.units.arrange(&own)
    }

    /// Returns the number of heads that may be masked, a multiple of the number masked at once.
    fn most(&self) -> usize {
        let at_once = self.units.at_once(&self.heads);
        let all: usize = self.layers().values().map(|heads| heads.saturating_sub(self.keep_at_least)).sum();
        all / at_once * at_once
    }

    /// Returns the number of heads in each layer.
    fn layers(&self) -> BTreeMap<(Attention, usize), usize> {
        let mut layers = BTreeMap::new();
        for id in &self.heads {
            *layers.entry((id.attention(), id.layer_index())).or_default() += 1;
        }
        layers
    }

    /// Returns true if this head may be masked in addition to `masked`.
    pub fn may_mask(&self, id: HeadId, masked: &HeadSet) -> bool {
        let same_layer =
            |other: &HeadId| (other.attention(), other.layer_index()) == (id.attention(), id.layer_index());
        let heads = self.heads.iter().filter(|other| same_layer(other)).count();
        let gone = masked.iter().filter(|other| same_layer(other)).count();
        !masked.contains(id) && heads - gone > self.keep_at_least
    }

    /// Extends `masked` by the first heads of `order` that may be masked, until there are `count`.
    pub fn extend(&self, masked: &HeadSet, order: &[HeadId], count: usize) -> HeadSet {
        let mut masked = masked.clone();
        for unit in order.chunks(self.units.unit()) {
            if masked.len() >= count {
                break;
            }
            let with_unit = unit
                .iter()
                .try_fold(masked.clone(), |masked, &id| self.may_mask(id, &masked).then(|| masked.with(id)));
            masked = with_unit.unwrap_or(masked);
        }
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pool(layers: usize, heads: usize, keep_at_least: usize, step_percent: u64) -> Pool {
        let id = |layer, head| HeadId::from_index(Attention::SelfAttention, layer, head);
        let heads = (0..layers).flat_map(|layer| (0..heads).map(move |head| id(layer, head))).collect();
        let units = MaskingUnits::SINGLE_HEADS;
        Pool { scope: Scope::All, heads, keep_at_least, step_percent, units }
    }

    /// ⌈144 i / 10⌉, for BERT base in the paper. 2 layers of 6 heads keep 2 each: 8 can be masked, and steps of 25% are 3, 6, 9, 12.
    #[test]
    fn steps_are_rounded_up_as_in_the_paper_and_the_last_masks_all_that_may_be_masked() {
        let expected = [0, 15, 29, 44, 58, 72, 87, 101, 116, 130, 144];
        assert_eq!(pool(12, 12, 0, 10).counts(), expected);
        assert_eq!(pool(2, 6, 2, 25).counts(), [0, 3, 6, 8]);
        assert_eq!(pool(2, 6, 6, 25).counts(), [0]);
        assert_eq!(pool(2, 2, 0, 10).counts(), [0, 1, 2, 3, 4], "steps of less than a head are left out");
        assert_eq!(pool(3, 5, 0, 100).counts(), [0, 15]);
    }

    proptest! {
        #[test]
        fn steps_are_nested_and_every_layer_keeps_its_heads(
            layers in 1_usize..5, heads in 1_usize..7, keep in 0_usize..7, percent in 1_u64..=100, seed in 0_u64..100,
        ) {
            let pool = pool(layers, heads, keep.min(heads), percent);
            let order = crate::order::random_order(&pool.heads, "tiny", seed);
            let mut last = HeadSet::none();
            for count in pool.counts() {
                let masked = pool.extend(&HeadSet::none(), &order, count);
                prop_assert_eq!(masked.len(), count);
                prop_assert!(last.iter().all(|id| masked.contains(id)));
                for layer in 0..layers {
                    let gone = masked.iter().filter(|id| id.layer_index() == layer).count();
                    prop_assert!(heads - gone >= pool.keep_at_least);
                }
                last = masked;
            }
            prop_assert_eq!(last.len(), layers * (heads - pool.keep_at_least));
        }
    }
}
