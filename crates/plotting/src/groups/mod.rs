//! Which heads matter for which segments: accuracies by group of segments, such as the paradigms of BLiMP.
//!
//! Warstadt et al. (2020), <https://aclanthology.org/2020.tacl-1.25>, whose 67 paradigms are minimal pairs of one phenomenon
//! each. The paper has no such table.
mod figure;
mod table;

use std::path::Path;

use records::{BASE, Blocks, Row, sha256_file};
use significance::{Store, metric_of};
use stats::Segments;
use stats::adjust::holm;
use stats::bootstrap::Interval;
use stats::classification::{ClassificationMetric, Outcome};
use stats::correlation::spearman;
use stats::mcnemar::mid_p;
use stats::proportion::wilson;

use crate::Error;
use crate::attention::Attention;
use crate::origin::SegmentGroup;
use crate::sweep::Sweep;

pub use figure::figure;
pub use table::tables;

/// Name of its files, without extension.
pub const FILE_STEM: &str = "groups";

/// What masking one head at a time does to each group of segments.
#[derive(Debug, Clone)]
pub struct Groups {
    /// The sweep that the heads are from.
    pub sweep: Sweep,
    heads: Vec<Head>,
    groups: Vec<Group>,
}

/// A head of the sweep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    attention: Attention,
    layer: usize,
    /// Counted from 1.
    number: usize,
    /// Its name, such as `self:6:13`.
    name: String,
}

/// Some neighbouring segments of the split.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    name: String,
    segments: usize,
    /// Segments that the intact model has right.
    right: usize,
    /// One for each head.
    changes: Vec<Change>,
}

/// What masking one head does to one group.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Change {
    /// Accuracy without the head minus that of the intact model, in percentage points.
    delta: f64,
    /// Mid-p of McNemar's test on the segments of the group, adjusted by Holm for all heads and groups, 0 to 1.
    p_adjusted: f64,
}

impl Group {
    /// Accuracy of the intact model, in percent.
    fn accuracy(&self) -> f64 {
        100.0 * self.right as f64 / self.segments as f64
    }

    /// Its 95 % interval, in percent.
    fn interval(&self) -> Interval {
        let Interval { low, high } = wilson(self.right, self.segments);
        Interval { low: 100.0 * low, high: 100.0 * high }
    }

    /// How far the same heads matter as for another group: Spearman's rho of the changes; absent where all heads change
    /// nothing, or are fewer than three.
    fn likeness(&self, other: &Self) -> Option<f64> {
        let deltas = |group: &Self| group.changes.iter().map(|change| change.delta).collect::<Vec<_>>();
        spearman(&deltas(self), &deltas(other)).ok().map(|found| found.coefficient)
    }
}

impl Groups {
    /// Reads what is stored of the segments of a sweep; its signature names the groups.
    ///
    /// # Errors
    /// If it names none, they do not fit the segments, or these are missing, damaged or no choices.
    pub fn read(sweep: Sweep) -> Result<Self, Error> {
        let path = sweep.path().to_owned();
        let origin = &sweep.file.origin;
        let (Some(named), Some(measured)) = (origin.groups(), origin.measured()) else {
            return Err(Error::NoGroups { path });
        };
        let blocks = blocks(&sweep)?;
        let fault = |source| Error::Segments { path: path.clone(), source: Box::new(source) };
        let mut store = Store::new(&blocks, metric_of(measured).map_err(fault)?);
        let base = choices(&path, store.base(BASE).map_err(fault)?)?;
        let mut heads: Vec<(Head, Vec<Outcome>)> = Vec::new();
        for (attention, row) in sweep.rows() {
            let (layer, number, name) = (row.layer, row.head, row.name());
            let outcomes = choices(&path, store.variant(&name, BASE).map_err(fault)?)?;
            heads.push((Head { attention: *attention, layer, number, name }, outcomes));
        }
        heads.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (heads, outcomes): (Vec<_>, Vec<_>) = heads.into_iter().unzip();
        let groups = groups(&named, &base, &outcomes).ok_or(Error::OtherGroups {
            path,
            segments: base.len(),
            named: named.iter().map(|group| group.segments).fold(0, usize::saturating_add),
        })?;
        Ok(Self { sweep, heads, groups })
    }

    /// Whether a change is significant at the level `alpha`.
    fn is_significant(change: Change, alpha: f64) -> bool {
        change.p_adjusted < alpha
    }
}

/// The statistics of the segments, as they were when the sweep was complete.
fn blocks(sweep: &Sweep) -> Result<Blocks, Error> {
    let path = Blocks::path_beside(sweep.path());
    let stored = sweep.file.origin.complete().and_then(|complete| complete.segments_sha256.as_ref());
    if stored.is_some_and(|_| path.exists()) && Some(&sha256_file(&path)?) != stored {
        return Err(Error::Edited { path, found: "its checksum is not the one in the signature".to_owned() });
    }
    Blocks::read(&path)?.ok_or_else(|| Error::NoGroups { path: sweep.path().to_owned() })
}

fn choices(path: &Path, segments: Segments) -> Result<Vec<Outcome>, Error> {
    match segments {
        Segments::Classes(outcomes, ClassificationMetric::Accuracy) => Ok(outcomes),
        _ => Err(Error::NoGroups { path: path.to_owned() }),
    }
}

/// Tests each head on each group; `None` if the groups do not have as many segments as there are.
fn groups(named: &[SegmentGroup], base: &[Outcome], heads: &[Vec<Outcome>]) -> Option<Vec<Group>> {
    let mut first = 0_usize;
    let mut groups = Vec::new();
    let mut p_values = Vec::new();
    for SegmentGroup { name, segments } in named {
        let range = first..first.checked_add(*segments)?;
        let base = base.get(range.clone())?;
        let mut changes = Vec::new();
        for head in heads {
            let (lost, won) = exchanged(base, head.get(range.clone())?);
            let delta = 100.0 * (won as f64 - lost as f64) / *segments as f64;
            p_values.push(mid_p(lost, won));
            changes.push(Change { delta, p_adjusted: 1.0 });
        }
        let right = base.iter().filter(|outcome| outcome.is_right()).count();
        groups.push(Group { name: name.clone(), segments: *segments, right, changes });
        first = range.end;
    }
    let changes = groups.iter_mut().flat_map(|group| &mut group.changes);
    changes.zip(holm(&p_values)).for_each(|(change, adjusted)| change.p_adjusted = adjusted);
    (first == base.len()).then_some(groups)
}

/// Segments that the base alone has right, and those that the variant alone has.
fn exchanged(base: &[Outcome], variant: &[Outcome]) -> (usize, usize) {
    let only = |left: &[Outcome], right: &[Outcome]| {
        left.iter().zip(right).filter(|(left, right)| left.is_right() && !right.is_right()).count()
    };
    (only(base, variant), only(variant, base))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_rows;

    fn outcomes(right: &[bool]) -> Vec<Outcome> {
        right.iter().map(|&right| Outcome { gold: 0, predicted: usize::from(!right) }).collect()
    }

    fn named(sizes: &[usize]) -> Vec<SegmentGroup> {
        let names = ["agreement", "agreement over a distractor", "islands", "quantifiers"];
        let group = |(name, &segments): (&&str, &usize)| SegmentGroup { name: (*name).to_owned(), segments };
        names.iter().zip(sizes).map(group).collect()
    }

    /// Two layers of four heads over two key-value heads; three groups of 20, 16 and 12 segments. Head 1:2 spoils all of the
    /// first two groups but four each, head 2:3 mends the last, head 1:3 spoils two of each.
    pub(crate) fn example() -> Groups {
        let sizes = [20, 16, 12];
        let right = |spoilt: [usize; 3], base: [usize; 3]| {
            let of = |group: usize| (0..sizes[group]).map(move |n| n >= spoilt[group] && n < base[group]);
            outcomes(&(0..3).flat_map(of).collect::<Vec<_>>())
        };
        let intact = [20, 15, 2];
        let base = right([0; 3], intact);
        let heads = (1..=2).flat_map(|layer| (1..=4).map(move |number| (layer, number)));
        let (mut rows, mut all, mut variants) = (Vec::new(), Vec::new(), Vec::new());
        for (layer, number) in heads {
            variants.push(match (layer, number) {
                (1, 2) => right([16, 12, 0], intact),
                (1, 3) => right([2, 2, 1], intact),
                (2, 3) => right([0, 1, 0], [20, 15, 12]),
                _ => base.clone(),
            });
            let row = test_rows::row("self", (layer, number), 77.0, 77.0);
            all.push(Head { attention: Attention::SelfAttention, layer, number, name: row.name() });
            rows.push(records::AblationRow { metric: "accuracy".to_owned(), ..row });
        }
        let mut sweep = test_rows::sweep(rows).unwrap();
        sweep.file.origin = crate::origin::tests::of_language_model(2);
        Groups { sweep, heads: all, groups: groups(&named(&sizes), &base, &variants).unwrap() }
    }

    /// 16 of 20 are lost and none is won: mid-p = 1 / 2^16, and the smallest of 24 after 1 / 2^16 * 24; with 12 lost it is the
    /// next but one, since the 10 that are won are the third.
    #[test]
    fn each_head_is_tested_on_each_group_and_adjusted_for_all() {
        let Groups { groups, .. } = example();
        let of = |group: usize, head: usize| groups[group].changes[head];
        for (group, head, delta, p_adjusted) in [
            (0, 1, -80.0, 24.0 / 65536.0),
            (1, 1, -75.0, 23.0 / 4096.0),
            (2, 6, 1000.0 / 12.0, 22.0 / 1024.0),
        ] {
            let found = of(group, head);
            assert!((found.delta - delta).abs() < 1e-12, "{found:?}");
            assert!((found.p_adjusted - p_adjusted).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(of(0, 0), Change { delta: 0.0, p_adjusted: 1.0 });
        assert_eq!((groups[1].right, groups[1].accuracy()), (15, 93.75));
    }

    #[test]
    fn groups_that_are_not_the_segments_are_refused() {
        let base = outcomes(&[true; 5]);
        for sizes in [&[3, 1][..], &[3, 3], &[usize::MAX, 3], &[5, usize::MAX]] {
            assert_eq!(groups(&named(sizes), &base, &[]), None, "{sizes:?}");
        }
        assert_eq!(groups(&named(&[3, 2]), &base, &[]).map(|groups| groups.len()), Some(2));
    }

    /// Ranks of the changes of heads 1:2, 1:3, 2:3 and of the five others, which are 0, less their mean of 4.5: -3.5, -2.5, 1, 1
    /// in the first group; -3.5, -2.5, -1.5, 1.5 in the second; 0, -3.5, 3.5, 0 in the third. The first two have a covariance
    /// of 24.5 and variances of 24.5 and 32, the outer two 12.25 and 24.5 on both sides.
    #[test]
    fn groups_are_alike_where_the_same_heads_matter() {
        let Groups { groups, .. } = example();
        for (other, expected) in [(1, 0.875), (2, 0.5)] {
            let found = groups[0].likeness(&groups[other]).unwrap();
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
        let none = Group { changes: vec![Change { delta: 0.0, p_adjusted: 1.0 }; 8], ..groups[0].clone() };
        assert_eq!(none.likeness(&groups[1]), None);
    }
}
