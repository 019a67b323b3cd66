//! Effects of heads by group of segments: accuracies on groups such as the paradigms of BLiMP.
//!
//! Warstadt et al. (2020), <https://aclanthology.org/2020.tacl-1.25>, whose 67 paradigms are minimal pairs of one phenomenon each. Michel
//! et al. (2019) have no such table.
use stats::adjust::holm;
use stats::bootstrap::Interval;
use stats::classification::Outcome;
use stats::correlation::spearman;
use stats::mcnemar::mid_p;
use stats::proportion::{tango, wilson};

/// Neighbouring segments of the split that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Number of segments.
    pub segments: usize,
    /// Number of segments that the full model gets right.
    pub right: usize,
    /// Effect of each head on the group.
    pub changes: Vec<Change>,
}

/// Effect of masking one head on one group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Accuracy with the head masked minus accuracy of the full model, in percentage points.
    pub delta: f64,
    /// 95% interval of `delta` by [`tango`], in percentage points.
    pub interval: Interval,
    /// Mid-p of McNemar's test on the group's segments, adjusted by Holm over all heads and groups, 0 to 1.
    pub p_adjusted: f64,
}

impl Group {
    /// Returns the accuracy of the full model, in percent.
    pub fn accuracy(&self) -> f64 {
        100.0 * self.right as f64 / self.segments as f64
    }

    /// Returns the 95% interval of the accuracy, in percent.
    pub fn interval(&self) -> Interval {
        let Interval { low, high } = wilson(self.right, self.segments);
        Interval { low: 100.0 * low, high: 100.0 * high }
    }

    /// Returns the agreement with another group on which heads matter: Spearman's rho of the effects; `None` if all effects in a group are
    /// equal, or with fewer than three heads.
    pub fn likeness(&self, other: &Self) -> Option<f64> {
        let deltas = |group: &Self| group.changes.iter().map(|change| change.delta).collect::<Vec<_>>();
        spearman(&deltas(self), &deltas(other)).ok().map(|found| found.coefficient)
    }
}

/// Tests each head on each group; `None` if a group has no segments, or if the groups do not add up to the segments of the full model and
/// of each head.
///
/// - `named`: name and number of segments of each group
/// - `base`: outcomes of the full model
/// - `heads`: outcomes with each head masked
pub fn groups(named: &[(String, usize)], base: &[Outcome], heads: &[Vec<Outcome>]) -> Option<Vec<Group>> {
    if heads.iter().any(|head| head.len() != base.len()) || named.iter().any(|(_, segments)| *segments == 0) {
        return None;
    }
    let mut first = 0_usize;
    let mut groups = Vec::new();
    let mut p_values = Vec::new();
    for (name, segments) in named {
        let range = first..first.checked_add(*segments)?;
        let base = base.get(range.clone())?;
        let mut changes = Vec::new();
        for head in heads {
            let (lost, won) = exchanged(base, head.get(range.clone())?);
            let delta = 100.0 * (won as f64 - lost as f64) / *segments as f64;
            p_values.push(mid_p(lost, won));
            let Interval { low, high } = tango(lost, won, *segments);
            let interval = Interval { low: 100.0 * low, high: 100.0 * high };
            changes.push(Change { delta, interval, p_adjusted: 1.0 });
        }
        let right = base.iter().filter(|outcome| outcome.is_right()).count();
        groups.push(Group { name: name.clone(), segments: *segments, right, changes });
        first = range.end;
    }
    let changes = groups.iter_mut().flat_map(|group| &mut group.changes);
    changes.zip(holm(&p_values)).for_each(|(change, adjusted)| change.p_adjusted = adjusted);
    (first == base.len()).then_some(groups)
}

/// Returns the numbers of segments that are right only in the base and only in the variant.
fn exchanged(base: &[Outcome], variant: &[Outcome]) -> (usize, usize) {
    let only = |left: &[Outcome], right: &[Outcome]| {
        left.iter().zip(right).filter(|(left, right)| left.is_right() && !right.is_right()).count()
    };
    (only(base, variant), only(variant, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(right: &[bool]) -> Vec<Outcome> {
        right.iter().map(|&right| Outcome { gold: 0, predicted: usize::from(!right) }).collect()
    }

    fn named(sizes: &[usize]) -> Vec<(String, usize)> {
        sizes.iter().map(|&segments| ("islands".to_owned(), segments)).collect()
    }

    /// Groups of 20, 16 and 12 segments, of which the full model gets 20, 15 and 2 right. Heads 2, 3 and 7 make some wrong, and 7 corrects
    /// the last group.
    fn example() -> Vec<Group> {
        let sizes = [20, 16, 12];
        let right = |spoilt: [usize; 3], base: [usize; 3]| {
            let of = |group: usize| (0..sizes[group]).map(move |n| n >= spoilt[group] && n < base[group]);
            outcomes(&(0..3).flat_map(of).collect::<Vec<_>>())
        };
        let full = [20, 15, 2];
        let variant = |head: usize| match head {
            2 => right([16, 12, 0], full),
            3 => right([2, 2, 1], full),
            7 => right([0, 1, 0], [20, 15, 12]),
            _ => right([0; 3], full),
        };
        groups(&named(&sizes), &right([0; 3], full), &(1..=8).map(variant).collect::<Vec<_>>()).unwrap()
    }

    /// 16 of 20 are lost, none gained: mid-p = 1 / 2^16, times 24 as the smallest of 24. 12 lost are second, 10 gained third.
    #[test]
    fn each_head_is_tested_on_each_group_and_adjusted_for_all() {
        let groups = example();
        for (group, head, delta, p_adjusted) in [
            (0, 1, -80.0, 24.0 / 65536.0),
            (1, 1, -75.0, 23.0 / 4096.0),
            (2, 6, 1000.0 / 12.0, 22.0 / 1024.0),
        ] {
            let found = groups[group].changes[head];
            assert!((found.delta - delta).abs() < 1e-12, "{found:?}");
            assert!((found.p_adjusted - p_adjusted).abs() < 1e-12, "{found:?}");
        }
        let unchanged = groups[0].changes[0];
        assert_eq!((unchanged.delta, unchanged.p_adjusted), (0.0, 1.0));
        // no change in 20 is Wilson's interval of a share of 0 on either side: z² / (n + z²)
        assert!((unchanged.interval.high - 100.0 * 3.841_459 / 23.841_459).abs() < 1e-4);
        assert_eq!((groups[1].right, groups[1].accuracy()), (15, 93.75));
    }

    /// The accuracy on no segments is undefined.
    #[test]
    fn groups_that_do_not_match_the_segments_are_refused() {
        let base = outcomes(&[true; 5]);
        let found = |sizes: &[usize], segments| {
            groups(&named(sizes), &base, &[outcomes(&vec![true; segments])]).map(|groups| groups.len())
        };
        for sizes in [&[3, 1][..], &[3, 3], &[5, usize::MAX], &[3, 0, 2]] {
            assert_eq!(found(sizes, 5), None, "{sizes:?}");
        }
        assert_eq!([4, 5, 6].map(|segments| found(&[3, 2], segments)), [None, Some(2), None]);
    }
}
