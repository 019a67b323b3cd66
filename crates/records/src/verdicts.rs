//! Verdicts on the interval of a loss, and two rules for which heads are dispensable.
//!
//! A loss that is not significant may still be large, especially on a small test set, and a significant loss may be small. Therefore the
//! verdict is about the size of the loss; the paper's rule, significance, is reported next to it.
use std::fmt;

use stats::MetricName;
use stats::bootstrap::Interval;
pub use stats::family::ALPHA;

use crate::{CurveRow, TestedRow};

/// Default margin: the loss that is accepted, in percent of the full model's score.
pub const MARGIN_PERCENT: f64 = 2.0;

/// Returns true for a valid margin in percent of the full model's score: above 0 and at most 100.
pub fn is_margin(percent: f64) -> bool {
    percent > 0.0 && percent <= 100.0
}

/// Returns the loss that is accepted, in the unit of the metric: `percent` of the full model's score; for nats per token, a perplexity that
/// is `percent` higher, such as ln(1.02) = 0.0198 nats for 2%.
pub fn margin(metric: MetricName, base_score: f64, percent: f64) -> f64 {
    match metric {
        MetricName::Nats => (percent / 100.0).ln_1p(),
        _ => base_score.abs() * percent / 100.0,
    }
}

/// Verdict on the cost of masking heads, from the 95% interval of the loss and the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The whole interval is above the margin.
    Needed,
    /// The whole interval is below the margin.
    Dispensable,
    /// The interval contains the margin.
    Undecided,
}

impl Verdict {
    /// Returns the verdict on a loss from its interval, in the unit of the margin.
    pub fn of(loss: Interval, margin: f64) -> Self {
        if loss.low > margin {
            Self::Needed
        } else if loss.high < margin {
            Self::Dispensable
        } else {
            Self::Undecided
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Needed => "needed",
            Self::Dispensable => "dispensable",
            Self::Undecided => "undecided",
        })
    }
}

/// Numbers of verdicts in one family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the number of heads with the verdict of its name")]
pub struct Verdicts {
    pub needed: usize,
    pub dispensable: usize,
    pub undecided: usize,
}

impl Verdicts {
    /// Counts verdicts and leaves out untested rows; `None` without verdicts.
    pub fn of(verdicts: impl IntoIterator<Item = Option<Verdict>>) -> Option<Self> {
        let mut counts = Self::default();
        verdicts.into_iter().flatten().for_each(|verdict| counts.add(verdict));
        (counts.all() > 0).then_some(counts)
    }

    /// Counts another verdict.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Needed => &mut self.needed,
            Verdict::Dispensable => &mut self.dispensable,
            Verdict::Undecided => &mut self.undecided,
        } += 1;
    }

    /// Returns the number of all verdicts.
    pub fn all(self) -> usize {
        self.needed + self.dispensable + self.undecided
    }

    /// Returns `1 needed, 33 dispensable, 14 undecided`.
    pub fn in_words(self) -> String {
        let Self { needed, dispensable, undecided } = self;
        format!("{needed} needed, {dispensable} dispensable, {undecided} undecided")
    }
}

/// A rule that decides whether heads are dispensable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The verdict is [`Verdict::Dispensable`].
    Dispensable {
        /// Margin in percent of the full model's score.
        margin_percent: f64,
    },
    /// The score is not significantly worse; the paper's rule.
    NoSignificantLoss {
        /// Significance level: p-values below it are significant.
        alpha: f64,
        /// Smallest p-value that the test can give. If it is not below `alpha`, nothing is shown.
        smallest_p_value: f64,
    },
}

impl Rule {
    /// Returns true if this rule accepts the masked heads of a row, given the relevant two-sided p-value. Untested rows, and rows that
    /// could not have been significant, are never accepted.
    pub fn accepts(self, row: &impl TestedRow, p_value: Option<f64>) -> bool {
        match self {
            Self::Dispensable { margin_percent } => row.verdict(margin_percent) == Some(Verdict::Dispensable),
            Self::NoSignificantLoss { alpha, smallest_p_value } => {
                let is_loss = |p: f64| row.gain() < 0.0 && p < alpha;
                smallest_p_value < alpha && p_value.is_some_and(|p| !is_loss(p))
            }
        }
    }

    /// Returns the last of `steps` before the first one that the rule does not accept, which gives the largest share of dispensable heads.
    /// The steps are those of one curve in order, from the full model on, which is not tested; `None` without it. A missing step ends the
    /// sequence, but a search has only the requested steps.
    ///
    /// Steps are tested in a fixed order up to the first failure, so the probability of a wrong claim is as for a single test, unless
    /// the order was made on the tested segments, like the oracle's.
    pub fn last_accepted<'a>(self, steps: impl IntoIterator<Item = &'a CurveRow>) -> Option<&'a CurveRow> {
        let follows = |(place, row): &(usize, &CurveRow)| row.step == *place || row.search_score.is_some();
        let is_full_model = |row: &CurveRow| row.step == 0 && row.masked == 0;
        let climb = steps.into_iter().enumerate().take_while(follows);
        let accepted = climb.take_while(|(_, row)| is_full_model(row) || self.accepts(*row, row.p_value));
        accepted.last().map(|(_, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISPENSABLE: Rule = Rule::Dispensable { margin_percent: 2.0 };
    const PAPER: Rule = Rule::NoSignificantLoss { alpha: 0.01, smallest_p_value: 0.0002 };

    fn row(step: usize, delta: f64, ends: Option<(f64, f64)>) -> CurveRow {
        let (delta_low, delta_high) = ends.unzip();
        let (score, p_value) = (50.0 + delta, ends.map(|_| 0.5));
        let row =
            CurveRow { step, masked: 3 * step, heads: 30, delta_low, delta_high, ..CurveRow::default() };
        CurveRow { base_score: 50.0, score, score_delta: delta, p_value, ..row }
    }

    /// 2% of 50 points are 1 point.
    #[test]
    fn a_verdict_reads_the_whole_interval_beside_the_margin() {
        use Verdict::{Dispensable, Needed, Undecided};
        let of = |low, high| row(1, -0.5, Some((low, high))).verdict(2.0);
        assert_eq!(of(-0.99, -0.01), Some(Dispensable), "significant, and small");
        assert_eq!(of(-1.0, 0.0), Some(Undecided), "the margin itself is not below it");
        assert_eq!(of(-30.0, 10.0), Some(Undecided), "not significant, and perhaps large");
        assert_eq!(of(-3.0, -1.0), Some(Undecided), "the margin itself is not above it");
        assert_eq!(of(-3.0, -1.01), Some(Needed));
        assert_eq!(row(1, -0.5, None).verdict(2.0), None);
        let of_base = |base_score| CurveRow { base_score, ..row(1, -0.5, Some((-0.9, 0.0))) }.verdict(2.0);
        assert_eq!(of_base(-50.0), Some(Dispensable), "a margin is a size");
        assert_eq!(of_base(0.0), Some(Undecided));
    }

    /// A perplexity that is 2% higher is ln(1.02) = 0.0198 more nats, for any full model.
    #[test]
    fn more_nats_are_a_loss_and_their_margin_is_of_the_perplexity() {
        let of = |low, high| {
            let row = CurveRow { metric: MetricName::Nats, ..row(1, 0.5, Some((low, high))) };
            (row.verdict(2.0), PAPER.accepts(&row, Some(0.001)))
        };
        assert_eq!(of(0.01, 0.0197), (Some(Verdict::Dispensable), false));
        assert_eq!(of(0.01, 0.0199), (Some(Verdict::Undecided), false));
        assert_eq!(of(0.0199, 0.9), (Some(Verdict::Needed), false));
        assert_eq!(of(-6.0, -4.0).0, Some(Verdict::Dispensable));
        assert!((margin(MetricName::Nats, 3.0, 2.0) - 1.02_f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn only_a_significant_loss_counts_against_the_papers_rule() {
        let accepts = |delta, p| PAPER.accepts(&row(1, delta, None), p);
        assert!(!accepts(-0.5, Some(0.009)));
        assert!(accepts(-0.5, Some(0.01)));
        assert!(accepts(-27.4, Some(0.02)), "the rule sees no size");
        assert!(accepts(0.5, Some(0.001)));
        assert!(!accepts(0.0, None), "what was not tested proves nothing");
        let blind = Rule::NoSignificantLoss { alpha: 0.01, smallest_p_value: 0.01 };
        assert!(!blind.accepts(&row(1, -0.5, None), Some(0.5)));
    }

    #[test]
    fn the_climb_ends_at_the_first_step_that_is_not_accepted() {
        let row = |step, delta, low: Option<f64>| row(step, delta, low.map(|low| (low, 1.0)));
        let steps =
            [row(0, 0.0, None), row(1, -0.1, Some(-0.5)), row(2, -0.9, Some(-1.5)), row(3, -0.1, Some(-0.5))];
        let last = |rule: Rule, steps: &[CurveRow]| rule.last_accepted(steps).map(|row| row.step);
        assert_eq!(last(DISPENSABLE, &steps), Some(1));
        assert_eq!(last(PAPER, &steps), Some(3));
        let untested = [row(0, 0.0, None), row(1, -0.1, None), row(2, -0.1, Some(-0.5))];
        assert_eq!(last(DISPENSABLE, &untested), Some(0));
        assert_eq!(last(DISPENSABLE, &[]), None);
        assert_eq!(last(DISPENSABLE, &steps[1..2]), None, "a climb begins at the full model");
        let mut gap = [row(0, 0.0, None), row(2, -0.1, Some(-0.5))];
        assert_eq!(last(DISPENSABLE, &gap), Some(0));
        gap[1].search_score = Some(49.0);
        assert_eq!(last(DISPENSABLE, &gap), Some(2), "a search makes no steps between");
    }
}
