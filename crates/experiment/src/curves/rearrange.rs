//! Rearrangement of masked heads within each module (Kwon et al. 2022, Section 4.2), following the authors' code,
//! <https://github.com/WoosukKwon/retraining-free-pruning/blob/01a736c325d88399c6d297cdf658e839508946fc/prune/rearrange.py>.
use std::cmp::Ordering;
use std::collections::BTreeMap;

use core_masking::HeadSet;
use records::HeadId;

/// Derivatives of each batch's mean loss with respect to each head's gate.
pub type Derivatives = BTreeMap<HeadId, Vec<f64>>;

/// Rearranges the heads of each module in `masked`, keeping their number, so that their joint loss is small. The joint loss is the squared
/// sum of their derivatives, summed over batches.
pub fn rearranged(masked: &HeadSet, derivatives: &Derivatives) -> HeadSet {
    let mut modules = BTreeMap::<_, Vec<HeadId>>::new();
    for id in derivatives.keys() {
        modules.entry(id.module()).or_default().push(*id);
    }
    modules.into_values().flat_map(|heads| of_module(heads, masked, derivatives)).collect()
}

/// Adds each kept head in turn, smallest loss first, and then drops the head without which the joint loss is smallest.
fn of_module(heads: Vec<HeadId>, masked: &HeadSet, derivatives: &Derivatives) -> Vec<HeadId> {
    let lost = |heads: &[HeadId]| lost_together(heads, derivatives);
    let (mut gone, mut kept): (Vec<HeadId>, Vec<HeadId>) =
        heads.into_iter().partition(|id| masked.contains(*id));
    kept.sort_by(|left, right| lost(&[*left]).total_cmp(&lost(&[*right])));
    if gone.is_empty() {
        return gone;
    }
    for id in kept {
        gone.push(id);
        let without = |place: usize| lost(&[&gone[..place], &gone[place + 1..]].concat());
        let by_loss =
            |left: &usize, right: &usize| -> Ordering { without(*left).total_cmp(&without(*right)) };
        let dropped = (0..gone.len()).min_by(by_loss).unwrap_or_default();
        gone.remove(dropped);
    }
    gone
}

fn lost_together(heads: &[HeadId], derivatives: &Derivatives) -> f64 {
    let batches = derivatives.values().next().map_or(0, Vec::len);
    let sum = |batch: usize| heads.iter().map(|id| derivatives[id][batch]).sum::<f64>();
    (0..batches).map(|batch| sum(batch).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(layer: usize, rows: &[[f64; 2]]) -> Derivatives {
        let named = |(head, row): (usize, &[f64; 2])| {
            (format!("self:{layer}:{}", head + 1).parse().unwrap(), row.to_vec())
        };
        rows.iter().enumerate().map(named).collect()
    }

    /// Alone, heads 1 and 2 lose least (2 and 2.44; the others 3.13 and 25), but together they lose 2.2² + 2² = 8.84. Heads 2 and 3 lose
    /// 0.1² + 0.2² = 0.05, the minimum over all pairs.
    #[test]
    fn heads_that_compensate_each_other_are_masked_together() {
        let derivatives = module(1, &[[1.0, 1.0], [1.2, 1.0], [-1.3, -1.2], [5.0, 0.0]]);
        let found = rearranged(&"self:1:1+self:1:2".parse().unwrap(), &derivatives);
        assert_eq!(found.to_string(), "self:1:2+self:1:3");
        let heads: Vec<HeadId> = derivatives.keys().copied().collect();
        let pairs = heads.iter().flat_map(|left| heads.iter().map(move |right| [*left, *right]));
        let pairs = pairs.filter(|[left, right]| left < right);
        let least = pairs.map(|pair| lost_together(&pair, &derivatives)).fold(f64::INFINITY, f64::min);
        assert!((least - 0.05).abs() < 1e-12);
        assert_eq!(lost_together(&found.iter().collect::<Vec<_>>(), &derivatives), least);
    }

    /// In module 1 the masked head already loses least; module 2 has no masked head, and module 3 no kept one.
    #[test]
    fn the_number_of_masked_heads_per_module_stays() {
        let mut derivatives = module(1, &[[1.0, 0.0], [-1.0, 0.1]]);
        derivatives.extend(module(2, &[[1.0, 2.0], [-1.0, -2.0]]));
        derivatives.extend(module(3, &[[3.0, 2.0], [0.0, 0.0]]));
        let masked: HeadSet = "self:1:1+self:3:1+self:3:2".parse().unwrap();
        assert_eq!(rearranged(&masked, &derivatives), masked);
    }
}
