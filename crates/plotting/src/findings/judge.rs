//! Criteria for needed and dispensable heads: verdicts by default, and significance as in the paper.
use clap::ValueEnum;
use records::verdicts::{ALPHA, MARGIN_PERCENT, margin};
use records::{AblationRow, Rule, TestedRow, Testing, Verdict, Verdicts};
use stats::adjust::{benjamini_hochberg, p_of_limit};
use stats::swaps::smallest_p_value;
use words::{count, short};

use crate::findings::metric::Metric;

/// Adjustment of the two-sided p-value that decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Adjustment {
    /// Not adjusted for the number of tests.
    #[default]
    None,
    /// Controls the family-wise error rate at alpha: max-T for swaps, Holm for t-tests.
    Family,
    /// Controls the false discovery rate at alpha (Benjamini and Hochberg 1995).
    Bh,
}

/// Parses a significance level.
pub fn parse_alpha(text: &str) -> Result<f64, &'static str> {
    let alpha = text.parse().ok().filter(|alpha| *alpha > 0.0 && *alpha < 1.0);
    alpha.ok_or("must be a number between 0 and 1")
}

/// Criterion for a significant difference: a p-value below alpha.
#[derive(Debug, Clone, Copy, PartialEq, clap::Args)]
pub struct Criterion {
    /// Significance level: p-values below it are significant
    #[arg(long, value_name = "P", default_value_t = ALPHA, value_parser = parse_alpha)]
    pub alpha: f64,

    /// Adjustment of the two-sided p-values
    #[arg(long = "adjust", value_name = "METHOD", value_enum, default_value_t)]
    pub adjustment: Adjustment,
}

impl Criterion {
    /// Returns the criterion with p-values adjusted for the family-wise error rate.
    pub fn adjusted(self) -> Self {
        Self { adjustment: Adjustment::Family, ..self }
    }

    /// `true` for the criterion of Michel et al. (2019).
    pub(crate) fn is_the_papers(self) -> bool {
        self.adjustment == Adjustment::None && self.alpha.total_cmp(&ALPHA).is_eq()
    }

    /// Returns the p-value that decides, if the row was tested and adjusted.
    pub fn p_value(self, row: &impl TestedRow) -> Option<f64> {
        let tests = row.tests();
        match self.adjustment {
            Adjustment::None => tests.p_value,
            Adjustment::Family => tests.p_adjusted,
            Adjustment::Bh => tests.p_benjamini_hochberg,
        }
    }

    /// `true` if the score differs significantly from the full model's.
    pub fn holds(self, row: &impl TestedRow) -> bool {
        self.p_value(row).is_some_and(|p_value| p_value < self.alpha)
    }

    /// `true` if the score is significantly worse than the full model's.
    pub fn is_loss(self, row: &impl TestedRow) -> bool {
        row.gain() < 0.0 && self.holds(row)
    }

    /// Returns words such as `p < 0.01, not adjusted`.
    pub fn in_words(self) -> String {
        let adjustment = match self.adjustment {
            Adjustment::None => "not adjusted",
            Adjustment::Family => "adjusted",
            Adjustment::Bh => "BH",
        };
        format!("p < {}, {adjustment}", self.alpha)
    }

    /// Counts heads over one family of tests.
    pub fn tally<'a>(self, family: impl IntoIterator<Item = &'a AblationRow>) -> Tally {
        Tally::of(family, self.alpha, |row| self.p_value(row))
    }
}

/// Numbers of heads tested and of heads with significant effects in one family of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Heads with a p-value.
    pub tested: usize,
    /// Heads with a significant effect.
    pub significant: usize,
    /// Heads with a significant gain.
    pub better: usize,
}

impl Tally {
    /// Counts heads by a p-value of each row.
    pub fn of<'a>(
        family: impl IntoIterator<Item = &'a AblationRow>,
        alpha: f64,
        p_value: impl Fn(&AblationRow) -> Option<f64>,
    ) -> Self {
        let mut tally = Self { tested: 0, significant: 0, better: 0 };
        for row in family {
            let Some(p_value) = p_value(row) else { continue };
            let is_significant = p_value < alpha;
            tally.tested += 1;
            tally.significant += usize::from(is_significant);
            tally.better += usize::from(is_significant && row.gain() > 0.0);
        }
        tally
    }

    /// Returns words such as `2 of 3 heads significant, 1 for the better`.
    pub fn in_words(self) -> String {
        let Self { tested, significant, better } = self;
        format!("{significant} of {} significant, {better} for the better", count(tested, "head"))
    }
}

/// False discovery rate of [`Judge::verdicts_at_fdr`].
const FALSE_DISCOVERIES: f64 = 0.05;

/// Rule that decides how many heads can be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// The default: the interval shows that the loss is below the margin.
    Dispensable,
    /// The paper's: no loss is significant.
    NoSignificantLoss,
}

impl RuleKind {
    /// Both rules, the default first.
    pub const BOTH: [Self; 2] = [Self::Dispensable, Self::NoSignificantLoss];
}

/// Why the paper's rule is not the default.
pub const CAUTION: &str = "it lets more pass on smaller test sets, which hide losses";

/// Criteria for needed and dispensable heads in one file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judge {
    /// Criterion for a significant difference.
    pub criterion: Criterion,
    /// Margin, in percent of the full model's score (for nats, of its perplexity).
    pub margin_percent: f64,
    metric: Metric,
    /// Accuracies are tested by paired t-tests as in Michel et al. (2019), other metrics by swaps (Noreen 1989).
    is_t_test: bool,
    swaps: Option<usize>,
}

impl Judge {
    /// Returns the criteria for scores of `metric`, with test settings from the signature.
    pub(crate) fn new(metric: &Metric, testing: Option<Testing>, criterion: Criterion) -> Self {
        Self {
            criterion,
            margin_percent: testing.map_or(MARGIN_PERCENT, |testing| testing.margin_percent),
            metric: *metric,
            is_t_test: metric.is_accuracy(),
            swaps: testing.map(|testing| testing.resamples),
        }
    }

    /// Returns the margin for this score of the full model, both in the unit of the metric.
    pub fn margin(self, base: f64) -> f64 {
        margin(self.metric.name(), base, self.margin_percent)
    }

    /// Returns the margin in words: `2% of the score`.
    pub fn margin_in_words(self) -> String {
        let of = if self.metric.is_nats() { "perplexity" } else { "score" };
        format!("{}% of the {of}", short(self.margin_percent))
    }

    /// Returns the verdict from the 95% interval of the loss; `None` without an interval.
    pub fn verdict(self, row: &impl TestedRow) -> Option<Verdict> {
        row.verdict(self.margin_percent)
    }

    /// Returns the verdicts on all rows.
    pub fn verdicts<'a, R: TestedRow + 'a>(self, rows: impl IntoIterator<Item = &'a R>) -> Option<Verdicts> {
        Verdicts::of(rows.into_iter().map(|row| self.verdict(row)))
    }

    /// Returns verdicts from simultaneous intervals, which hold for all rows of a family at once; `None` without them.
    pub fn verdicts_at_once<'a, R: TestedRow + 'a>(
        self,
        rows: impl IntoIterator<Item = &'a R>,
    ) -> Option<Verdicts> {
        let verdict = |row: &R| row.verdict_by(row.simultaneous_interval(), self.margin_percent);
        Verdicts::of(rows.into_iter().map(verdict))
    }

    /// Returns verdicts at a false discovery rate of 5%: at most 5% of the heads called needed are expected to cost no more than the
    /// margin, and at most 5% of those called dispensable to cost more. Applies Benjamini and Hochberg to p-values of tests against the
    /// margin, derived from the 95% intervals; `None` if nothing was tested.
    pub fn verdicts_at_fdr<'a, R: TestedRow + 'a>(
        self,
        rows: impl IntoIterator<Item = &'a R>,
    ) -> Option<Verdicts> {
        let p_values = |row: &R| {
            let tests = row.tests();
            let ends = tests.interval?;
            let loss = |delta: f64| -row.direction().gain(delta);
            let (one, other) = (loss(ends.low), loss(ends.high));
            let margin = self.margin(tests.base);
            Some([one.min(other), one.max(other)].map(|end| p_of_limit(loss(tests.delta), end, margin)))
        };
        let p_values: Vec<[f64; 2]> = rows.into_iter().filter_map(p_values).collect();
        let count = |side: usize| {
            let adjusted = benjamini_hochberg(&p_values.iter().map(|own| own[side]).collect::<Vec<_>>());
            adjusted.into_iter().filter(|&p| p < FALSE_DISCOVERIES).count()
        };
        let (needed, dispensable) = (count(0), count(1));
        let undecided = p_values.len() - needed - dispensable;
        (!p_values.is_empty()).then_some(Verdicts { needed, dispensable, undecided })
    }

    /// Explains the verdicts in a sentence.
    pub fn of_verdicts(self) -> String {
        format!(
            "needed: the whole 95% interval of the loss is above {}; dispensable: below it; otherwise undecided",
            self.margin_in_words()
        )
    }

    /// Returns the name of the method that adjusts p-values; `None` without adjustment.
    pub fn method(self, adjustment: Adjustment) -> Option<&'static str> {
        match adjustment {
            Adjustment::None => None,
            Adjustment::Family if self.is_t_test => Some("Holm (1979)"),
            Adjustment::Family => Some("step-down max-T (Westfall and Young 1993)"),
            Adjustment::Bh => Some("Benjamini and Hochberg (1995)"),
        }
    }

    /// Describes the criterion, `p < 0.01 (two-sided, paired t-test; not adjusted for the number of heads)`; `tests` names the family.
    pub fn description(self, tests: &str) -> String {
        let swaps = self.swaps.map_or("swaps".to_owned(), |swaps| format!("{swaps} swaps"));
        let test = if self.is_t_test { "paired t-test".to_owned() } else { format!("{swaps} of segments") };
        let adjusted = self.method(self.criterion.adjustment).map(|method| format!("adjusted by {method}"));
        let adjusted = adjusted.unwrap_or_else(|| format!("not adjusted for the number of {tests}"));
        format!("p < {} (two-sided, {test}; {adjusted})", self.criterion.alpha)
    }

    /// Returns the smallest p-value that the test can give, adjusted or not; 0 if unbounded.
    pub fn smallest_p_value(self) -> f64 {
        self.swaps.filter(|_| !self.is_t_test).map_or(0.0, smallest_p_value)
    }

    /// Returns a warning if no p-value can be below alpha, however large the effects are.
    pub fn out_of_reach(self) -> Option<String> {
        let (smallest, alpha) = (self.smallest_p_value(), self.criterion.alpha);
        let (p, needed) = (short(smallest), (1.0 / alpha).floor());
        let sentence =
            format!("nothing can be significant: p is at least {p}; p < {alpha} requires {needed} swaps");
        (smallest >= alpha).then_some(sentence)
    }

    pub(crate) fn rule(self, which: RuleKind) -> Rule {
        let (alpha, smallest_p_value) = (self.criterion.alpha, self.smallest_p_value());
        match which {
            RuleKind::Dispensable => Rule::Dispensable { margin_percent: self.margin_percent },
            RuleKind::NoSignificantLoss => Rule::NoSignificantLoss { alpha, smallest_p_value },
        }
    }

    /// `true` if the rule can decide on a row: it was tested and, for the paper's rule, a p-value below alpha is possible.
    pub(crate) fn can_tell(self, which: RuleKind, row: &impl TestedRow) -> bool {
        match which {
            RuleKind::Dispensable => self.verdict(row).is_some(),
            RuleKind::NoSignificantLoss => {
                self.out_of_reach().is_none() && self.criterion.p_value(row).is_some()
            }
        }
    }

    /// `true` if the rule accepts the loss caused by the heads that a row masks.
    pub(crate) fn accepts(self, which: RuleKind, row: &impl TestedRow) -> bool {
        self.rule(which).accepts(row, self.criterion.p_value(row))
    }

    /// Describes both rules; `tests` names the members of the family.
    pub fn rules(self, tests: &str) -> Vec<String> {
        let dispensable =
            format!("dispensable: the whole 95% interval of the loss is below {}", self.margin_in_words());
        let criterion = self.description(tests);
        let no_loss = format!(
            "no significant loss, the paper's rule: not worse than the full model at {criterion}; {CAUTION}"
        );
        [dispensable, no_loss].into_iter().chain(self.out_of_reach()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::MetricName;

    const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

    /// Two of three changes are significant: a decrease in nats, which is better, and an increase.
    #[test]
    fn fewer_nats_are_better() {
        let row = |delta: f64, p_value: f64| AblationRow {
            p_value: Some(p_value),
            ..AblationRow::untested("self:1:1".parse().unwrap(), MetricName::Nats, 3.0, 3.0 + delta)
        };
        let rows = [row(-0.5, 0.001), row(0.5, 0.001), row(-0.5, 0.5)];
        assert_eq!(CRITERION.tally(&rows), Tally { tested: 3, significant: 2, better: 1 });
        assert_eq!(rows.map(|row| CRITERION.is_loss(&row)), [false, true, false]);
    }

    /// Losses of 6, 3.2, 3.001 and 0 points with intervals of ±1 and a margin of 2: three heads are needed without adjustment. These losses
    /// are 7.84, 2.35 and 1.96 standard errors from the margin, with two-sided p-values of 0, 0.0187 and 0.0498. Benjamini and Hochberg's
    /// factors 4/1, 4/2 and 4/3 turn them into 0, 0.037 and 0.066.
    #[test]
    fn a_false_discovery_rate_counts_fewer_heads() {
        let row = |loss: f64| AblationRow {
            delta_low: Some(-loss - 1.0),
            delta_high: Some(-loss + 1.0),
            ..AblationRow::untested("self:1:1".parse().unwrap(), MetricName::Accuracy, 100.0, 100.0 - loss)
        };
        let rows = [6.0, 3.2, 3.001, 0.0].map(row);
        let judge = Judge::new(&Metric::new(MetricName::Accuracy), None, CRITERION);
        let counts = |needed, undecided| Some(Verdicts { needed, dispensable: 1, undecided });
        assert_eq!(judge.verdicts(&rows), counts(3, 0));
        assert_eq!(judge.verdicts_at_fdr(&rows), counts(2, 1));
    }

    /// 1 / (99 + 1) is 0.01, which is not below 0.01; 1 / 101 is. A t-test has no swaps, so its p-value has no bound.
    #[test]
    fn too_few_resamples_are_reported() {
        let metric = Metric::new(MetricName::Bleu);
        let judge =
            |is_t_test, swaps| Judge { criterion: CRITERION, margin_percent: 2.0, metric, is_t_test, swaps };
        let expected = "nothing can be significant: p is at least 0.01; p < 0.01 requires 100 swaps";
        assert_eq!(judge(false, Some(99)).out_of_reach().unwrap(), expected);
        assert_eq!(judge(false, Some(100)).out_of_reach(), None);
        assert_eq!([judge(true, Some(99)), judge(false, None)].map(Judge::smallest_p_value), [0.0; 2]);
    }
}
