//! When heads can go: two rules.
//!
//! A loss that is not significant may be large all the same, the more so the smaller the test set. So a loss counts as safe
//! where its interval shows that it is small, and the paper's rule stands beside it.

pub use stats::family::ALPHA;

use crate::{PruningRow, TestedRow};

/// The loss that is tolerated, in percent of the score with all heads.
pub const MARGIN_PERCENT: f64 = 2.0;

/// Result of a comparison with the intact model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Score of the intact model.
    pub base_score: f64,
    /// Gain of the score with heads masked; below 0 it is worse, so they were useful.
    pub gain: f64,
    /// The worse end of the 95 % interval of `gain`; absent if it was not tested, or with too few resamples for an interval.
    pub least_gain: Option<f64>,
    /// Two-sided p-value; absent if it was not tested.
    pub p_value: Option<f64>,
}

/// A way to decide whether heads can go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The 95 % interval of the gain does not reach below minus this margin, in percent of the intact score.
    ShownSafe {
        /// In percent.
        margin_percent: f64,
    },
    /// The score is not significantly worse; the paper's rule.
    NoSignificantLoss {
        /// A p-value below this is significant.
        alpha: f64,
        /// The smallest p-value that the test could give at all. Where that is not below `alpha`, nothing is shown.
        smallest_p_value: f64,
    },
}

impl Rule {
    /// Returns true if the difference is one that this rule accepts. What was not tested, or could not have been significant, never
    /// is.
    pub fn accepts(self, difference: &Difference) -> bool {
        match self {
            Self::ShownSafe { margin_percent } => {
                let margin = difference.base_score.abs() * margin_percent / 100.0;
                difference.least_gain.is_some_and(|least| least >= -margin)
            }
            Self::NoSignificantLoss { alpha, smallest_p_value } => {
                let is_loss = |p: f64| difference.gain < 0.0 && p < alpha;
                smallest_p_value < alpha && difference.p_value.is_some_and(|p| !is_loss(p))
            }
        }
    }

    /// The last of `steps` before the first that the rule does not accept: the largest share of heads that can go. The steps
    /// are those of one curve in their order, from that of the intact model on, which is not tested; `None` without it. A
    /// step that is missing ends the climb; a search has those that were asked for.
    ///
    /// Steps are tested in a fixed order up to the first failure, so the chance of a wrong claim is that of a single test,
    /// unless the order itself was made on the segments that are tested, as the oracle's is.
    pub fn last_accepted<'a>(
        self,
        steps: impl IntoIterator<Item = &'a PruningRow>,
    ) -> Option<&'a PruningRow> {
        let follows = |(place, row): &(usize, &PruningRow)| row.step == *place || row.search_score.is_some();
        let is_intact = |row: &PruningRow| row.step == 0 && row.masked == 0;
        let climb = steps.into_iter().enumerate().take_while(follows);
        let accepted =
            climb.take_while(|(_, row)| is_intact(row) || self.accepts(&row.difference(row.p_value)));
        accepted.last().map(|(_, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Order, Scope};
    use stats::MetricName;

    const SAFE: Rule = Rule::ShownSafe { margin_percent: 2.0 };
    const PAPER: Rule = Rule::NoSignificantLoss { alpha: 0.01, smallest_p_value: 0.0002 };

    fn difference(gain: f64, least_gain: f64, p_value: f64) -> Difference {
        Difference { base_score: 50.0, gain, least_gain: Some(least_gain), p_value: Some(p_value) }
    }

    /// 2 % of 50 points are 1 point.
    #[test]
    fn a_small_loss_is_safe_where_the_interval_shows_it() {
        assert!(SAFE.accepts(&difference(-0.5, -1.0, 0.001)));
        assert!(!SAFE.accepts(&difference(-0.5, -1.01, 0.4)));
        assert!(SAFE.accepts(&difference(3.0, 1.0, 0.001)));
        let negative = Difference { base_score: -50.0, ..difference(-0.5, -0.9, 0.5) };
        assert!(SAFE.accepts(&negative), "a margin is a size");
    }

    #[test]
    fn only_a_significant_loss_counts_against_the_papers_rule() {
        assert!(!PAPER.accepts(&difference(-0.5, -1.0, 0.009)));
        assert!(PAPER.accepts(&difference(-0.5, -1.0, 0.01)));
        assert!(PAPER.accepts(&difference(-27.4, -40.0, 0.02)), "the rule sees no size");
        assert!(PAPER.accepts(&difference(0.5, 0.2, 0.001)));
    }

    #[test]
    fn what_was_not_or_could_not_be_shown_proves_nothing() {
        let untested = Difference { least_gain: None, p_value: None, ..difference(0.0, 0.0, 1.0) };
        assert!(!SAFE.accepts(&untested) && !PAPER.accepts(&untested));
        let blind = Rule::NoSignificantLoss { alpha: 0.01, smallest_p_value: 0.01 };
        assert!(!blind.accepts(&difference(-0.5, -1.0, 0.5)));
    }

    fn row(step: usize, delta: f64, delta_low: Option<f64>) -> PruningRow {
        let p_value = delta_low.map(|_| 0.5);
        PruningRow {
            attention: Scope::All,
            order: Order::Importance,
            order_seed: None,
            complement: false,
            step,
            masked: 3 * step,
            heads: 30,
            metric: MetricName::Bleu,
            base_score: 50.0,
            score: 50.0 + delta,
            score_delta: delta,
            delta_low,
            delta_high: delta_low.map(|_| 1.0),
            p_value,
            p_koehn: None,
            p_adjusted: None,
            p_benjamini_hochberg: None,
            p_unpaired_t: None,
            p_mcnemar: None,
            search_score: None,
            masked_heads: String::new(),
        }
    }

    #[test]
    fn the_climb_ends_at_the_first_step_that_is_not_accepted() {
        let steps =
            [row(0, 0.0, None), row(1, -0.1, Some(-0.5)), row(2, -0.9, Some(-1.5)), row(3, -0.1, Some(-0.5))];
        assert_eq!(SAFE.last_accepted(&steps).map(|row| row.step), Some(1));
        assert_eq!(PAPER.last_accepted(&steps).map(|row| row.step), Some(3));
        let untested = [row(0, 0.0, None), row(1, -0.1, None), row(2, -0.1, Some(-0.5))];
        assert_eq!(SAFE.last_accepted(&untested).map(|row| row.step), Some(0));
        assert_eq!(SAFE.last_accepted(&[]), None);
        assert_eq!(SAFE.last_accepted(&steps[1..2]), None, "a climb begins at the intact model");
        let mut gap = [row(0, 0.0, None), row(2, -0.1, Some(-0.5))];
        assert_eq!(SAFE.last_accepted(&gap).map(|row| row.step), Some(0));
        gap[1].search_score = Some(49.0);
        assert_eq!(SAFE.last_accepted(&gap).map(|row| row.step), Some(2), "a search makes no steps between");
    }

    /// 2 % of 50 nats are 1: a rise of up to that is safe, and any fall is.
    #[test]
    fn more_nats_are_a_loss() {
        let nats = |delta, interval: (f64, f64)| {
            let row = row(1, delta, Some(interval.0));
            PruningRow { metric: MetricName::Nats, delta_high: Some(interval.1), ..row }
        };
        let difference = |row: PruningRow| row.difference(Some(0.001));
        assert!(SAFE.accepts(&difference(nats(0.5, (0.1, 1.0)))));
        assert!(!SAFE.accepts(&difference(nats(0.5, (0.1, 1.01)))));
        assert!(SAFE.accepts(&difference(nats(-5.0, (-6.0, -4.0)))));
        assert!(!PAPER.accepts(&difference(nats(0.5, (0.1, 1.0)))));
        assert!(PAPER.accepts(&difference(nats(-5.0, (-6.0, -4.0)))));
        let fallen = |step, delta| PruningRow { step, ..nats(delta, (delta - 0.1, delta + 0.1)) };
        let steps = [row(0, 0.0, None), fallen(1, -8.0), fallen(2, 0.5), fallen(3, 2.0), fallen(4, 0.0)];
        assert_eq!(
            SAFE.last_accepted(&steps).map(|row| row.step),
            Some(2),
            "a fall ends no climb, a rise does"
        );
    }
}
