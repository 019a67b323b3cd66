//! Histograms with round bin edges.
use super::step::Step;

/// At most this many bins between the lowest and the highest score or reference.
const MOST: usize = 24;

/// Equal bins whose edges are multiples of one step; each holds its lower edge, not its upper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bins {
    step: Step,
    /// The lower edge of the first bin is this many steps from 0.
    first: i64,
    counts: Vec<usize>,
}

impl Bins {
    /// Empty bins over all `scores`, or `None` without a score.
    fn empty(scores: impl Iterator<Item = f64> + Clone, reference: f64) -> Option<Self> {
        let low = scores.clone().min_by(f64::total_cmp)?;
        let high = scores.max_by(f64::total_cmp)?;
        let span = high.max(reference) - low.min(reference);
        // Equal scores get one bin of a width that suits their size.
        let span = span.max(low.abs().max(high.abs()) * 1e-3).max(1e-3);
        let step = Step::covering(span, MOST);
        let first = step.index_below(low);
        let bins = step.index_below(high) - first + 1;
        let counts = vec![0; usize::try_from(bins).unwrap_or(1)];
        Some(Self { step, first, counts })
    }

    /// The same bins for several groups of scores, so that their histograms can be compared.
    ///
    /// They are wide enough to be seen on an axis that also holds `reference`. Returns nothing without a score.
    pub fn of_groups(groups: &[Vec<f64>], reference: f64) -> Vec<Self> {
        let Some(empty) = Self::empty(groups.iter().flatten().copied(), reference) else { return Vec::new() };
        groups.iter().map(|group| empty.filled(group)).collect()
    }

    fn filled(&self, scores: &[f64]) -> Self {
        let mut bins = self.clone();
        for &score in scores {
            bins.counts[self.index_of(score)] += 1;
        }
        bins
    }

    fn index_of(&self, score: f64) -> usize {
        let index = self.step.index_below(score) - self.first;
        usize::try_from(index).unwrap_or(0).min(self.counts.len() - 1)
    }

    /// Lower edge, upper edge and count of each bin.
    pub fn iter(&self) -> impl Iterator<Item = (f64, f64, usize)> + '_ {
        let edge = |index| self.step.multiple(self.first + index);
        (0..).zip(&self.counts).map(move |(index, &count)| (edge(index), edge(index + 1), count))
    }

    /// Lowest and highest edge.
    pub fn range(&self) -> (f64, f64) {
        let last = self.first + self.counts.len() as i64;
        (self.step.multiple(self.first), self.step.multiple(last))
    }

    /// Width of each bin.
    pub fn width(&self) -> f64 {
        self.step.multiple(1)
    }

    /// The largest count.
    pub fn highest(&self) -> usize {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn only(scores: &[f64]) -> Bins {
        Bins::of_groups(&[scores.to_vec()], scores[0]).remove(0)
    }

    /// 0.9 / 24 is 0.0375, so bins are 0.05 wide.
    #[test]
    fn a_score_on_an_edge_is_in_the_bin_above() {
        let bins: Vec<_> = only(&[35.5, 35.55, 36.05, 36.4]).iter().filter(|bin| bin.2 > 0).collect();
        assert_eq!(bins[1], (35.55, 35.6, 1));
        assert_eq!(bins[2], (36.05, 36.1, 1));
    }

    #[test]
    fn equal_scores_share_one_bin_and_no_scores_have_none() {
        assert_eq!(only(&[36.05; 7]).counts, [7]);
        assert_eq!(only(&[0.0; 3]).counts, [3]);
        assert!(Bins::of_groups(&[], 1.0).is_empty());
        assert!(Bins::of_groups(&[vec![]], 1.0).is_empty());
    }

    #[test]
    fn groups_share_their_edges() {
        let bins = Bins::of_groups(&[vec![1.0, 2.0], vec![9.0]], 3.0);
        assert_eq!(bins[0].range(), bins[1].range());
    }

    proptest! {
        #[test]
        fn every_score_is_inside_its_bin(scores in prop::collection::vec(-1e9_f64..1e9, 1..200)) {
            let bins = only(&scores);
            let edges: Vec<_> = bins.iter().collect();
            for &score in &scores {
                let (low, high, count) = edges[bins.index_of(score)];
                prop_assert!(low <= score && score < high && count > 0, "{score} in {low}..{high}");
            }
        }

        #[test]
        fn counts_sum_to_the_scores(scores in prop::collection::vec(20.0_f64..40.0, 1..200)) {
            let bins = only(&scores);
            prop_assert_eq!(bins.iter().map(|bin| bin.2).sum::<usize>(), scores.len());
            prop_assert!(bins.counts.len() <= MOST + 1);
        }
    }
}
