//! Which heads matter and which can go: what counts as significant, and the two rules (EXPERIMENTS.md, sections 5 and 9).
use records::{AblationRow, Rule, TestedRow, Tests};
use stats::bootstrap::smallest_p_value;

use crate::metric::Metric;
use crate::number::short;
use crate::origin::Origin;

/// The test behind the p-values of a family, with its resamples as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Paired bootstrap (Koehn 2004).
    PairedBootstrap(Option<usize>),
    /// Paired t-test.
    PairedT,
}

impl Test {
    /// What tested scores of `metric`: accuracies go by t-tests as in Michel et al. (2019), all else by bootstrap.
    pub fn of(metric: &Metric, origin: &Origin) -> Self {
        if metric.is_accuracy() { Self::PairedT } else { Self::PairedBootstrap(origin.resamples()) }
    }

    /// Its name.
    pub fn description(self) -> String {
        match self {
            Self::PairedBootstrap(Some(resamples)) => {
                format!("two-sided paired bootstrap, {resamples} resamples")
            }
            Self::PairedBootstrap(None) => "two-sided paired bootstrap".to_owned(),
            Self::PairedT => "two-sided paired t-test".to_owned(),
        }
    }

    /// How p-values are adjusted for a single false alarm in the family.
    pub fn family_method(self) -> &'static str {
        match self {
            Self::PairedBootstrap(_) => "step-down max-T (Westfall and Young 1993)",
            Self::PairedT => "Holm (1979)",
        }
    }

    /// The smallest p-value that it can give, adjusted or not; 0 where nothing bounds it.
    pub fn smallest_p_value(self) -> f64 {
        match self {
            Self::PairedBootstrap(resamples) => resamples.map_or(0.0, smallest_p_value),
            Self::PairedT => 0.0,
        }
    }

    /// A sentence where no p-value can be below `alpha`, whatever the heads do.
    pub fn out_of_reach(self, alpha: f64) -> Option<String> {
        let smallest = self.smallest_p_value();
        let needed = (2.0 / alpha).floor();
        (smallest >= alpha).then(|| {
            let (smallest, alpha) = (short(smallest), short(alpha));
            format!("nothing could be significant: no p is below {smallest}; for {alpha} it takes {needed} resamples")
        })
    }
}

/// Which p-value decides; all are two-sided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Adjustment {
    /// As tested, not adjusted for the number of tests
    #[default]
    None,
    /// The chance of any false alarm in the family is at most alpha: max-T for bootstraps, Holm for t-tests
    Family,
    /// Benjamini and Hochberg (1995): the expected share of false alarms is at most alpha
    Bh,
}

impl Adjustment {
    /// The name of the method; absent for none.
    pub fn method(self, test: Test) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Family => Some(test.family_method()),
            Self::Bh => Some("Benjamini and Hochberg (1995)"),
        }
    }
}

/// When a difference is significant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criterion {
    /// A p-value below this is significant.
    pub alpha: f64,
    /// Which p-value counts.
    pub adjustment: Adjustment,
}

impl Criterion {
    /// The p-value that counts, if the row was tested and adjusted.
    pub fn p_value(self, row: &impl TestedRow) -> Option<f64> {
        let Tests { p_value, p_adjusted, p_benjamini_hochberg, .. } = row.tests();
        match self.adjustment {
            Adjustment::None => p_value,
            Adjustment::Family => p_adjusted,
            Adjustment::Bh => p_benjamini_hochberg,
        }
    }

    /// Whether the score differs significantly from the base.
    pub fn holds(self, row: &impl TestedRow) -> bool {
        self.p_value(row).is_some_and(|p_value| p_value < self.alpha)
    }

    /// Whether it is significantly worse than the base.
    pub fn is_loss(self, row: &impl TestedRow) -> bool {
        row.difference(None).gain < 0.0 && self.holds(row)
    }

    /// Counts over one family of tests.
    pub fn tally(self, family: &[&AblationRow]) -> Tally {
        Tally::of(family, self.alpha, |row| self.p_value(row))
    }

    /// What a caption says of it: `p < 0.01 (two-sided paired t-test; not adjusted for the number of heads)`; `tests` is
    /// what the family has several of.
    pub fn description(self, test: Test, tests: &str) -> String {
        let adjusted = self.adjustment.method(test).map(|method| format!("adjusted by {method}"));
        let adjusted = adjusted.unwrap_or_else(|| format!("not adjusted for the number of {tests}"));
        format!("p < {} ({}; {adjusted})", short(self.alpha), test.description())
    }
}

/// Counts over one family of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Heads with a p-value.
    pub tested: usize,
    /// Heads whose removal changes the score significantly.
    pub significant: usize,
    /// Those of them whose removal makes the score better.
    pub better: usize,
}

impl Tally {
    /// Counts with some p-value of each row.
    pub fn of(family: &[&AblationRow], alpha: f64, p_value: impl Fn(&AblationRow) -> Option<f64>) -> Self {
        let tested: Vec<_> =
            family.iter().filter_map(|row| Some((row.difference(None).gain, p_value(row)?))).collect();
        let significant = || tested.iter().filter(|(_, p_value)| *p_value < alpha);
        Self {
            tested: tested.len(),
            significant: significant().count(),
            better: significant().filter(|(gain, _)| *gain > 0.0).count(),
        }
    }
}

/// What decides whether heads can go, in one file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// What is significant.
    pub criterion: Criterion,
    margin_percent: f64,
    test: Test,
}

/// One of the two rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The default: the interval shows that the loss is small.
    ShownSafe,
    /// The paper's: there is no significant loss.
    NoSignificantLoss,
}

impl Which {
    /// Both, the default first.
    pub const BOTH: [Self; 2] = [Self::ShownSafe, Self::NoSignificantLoss];
}

/// Why the paper's rule is not the default.
pub const CAUTION: &str =
    "it grows as the test set shrinks, since a test that cannot see a loss calls it none";

impl Rules {
    /// The rules for scores of `metric` with this origin.
    pub fn of(metric: &Metric, origin: &Origin, criterion: Criterion) -> Self {
        Self { criterion, margin_percent: origin.margin_percent(), test: Test::of(metric, origin) }
    }

    /// One of them.
    pub fn rule(self, which: Which) -> Rule {
        match which {
            Which::ShownSafe => Rule::ShownSafe { margin_percent: self.margin_percent },
            Which::NoSignificantLoss => Rule::NoSignificantLoss {
                alpha: self.criterion.alpha,
                smallest_p_value: self.test.smallest_p_value(),
            },
        }
    }

    /// Whether a row could tell: what was not tested, or could not be significant, proves nothing.
    pub fn can_tell(self, which: Which, row: &impl TestedRow) -> bool {
        match which {
            Which::ShownSafe => row.difference(None).least_gain.is_some(),
            Which::NoSignificantLoss => {
                self.test.smallest_p_value() < self.criterion.alpha && self.criterion.p_value(row).is_some()
            }
        }
    }

    /// Whether the heads that a row masks can go.
    pub fn accepts(self, which: Which, row: &impl TestedRow) -> bool {
        self.rule(which).accepts(&row.difference(self.criterion.p_value(row)))
    }

    /// Both rules in words; `tests` is what a family has several of.
    pub fn descriptions(self, tests: &str) -> Vec<String> {
        let margin = short(self.margin_percent);
        let criterion = self.criterion.description(self.test, tests);
        let mut sentences = vec![
            format!(
                "shown safe, the default: at the worse end of the 95 % interval the loss is at most {margin} % of the base"
            ),
            format!(
                "no significant loss, the paper's rule: not worse than the base at {criterion}; {CAUTION}"
            ),
        ];
        sentences.extend(self.test.out_of_reach(self.criterion.alpha));
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three changes two are significant: a fall of nats, which is better, and a rise.
    #[test]
    fn fewer_nats_are_better() {
        let row = |delta: f64, p_value: f64| AblationRow {
            p_value: Some(p_value),
            ..AblationRow::untested("self", (1, 1), "nats", 3.0, 3.0 + delta)
        };
        let rows = [row(-0.5, 0.001), row(0.5, 0.001), row(-0.5, 0.5)];
        let family: Vec<&AblationRow> = rows.iter().collect();
        let criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };
        assert_eq!(criterion.tally(&family), Tally { tested: 3, significant: 2, better: 1 });
        assert_eq!(rows.each_ref().map(|row| criterion.is_loss(row)), [false, true, false]);
    }

    #[test]
    fn only_resampling_has_a_smallest_p_value() {
        assert_eq!(Test::PairedBootstrap(Some(99)).smallest_p_value(), 0.02);
        assert_eq!(Test::PairedBootstrap(None).smallest_p_value(), 0.0);
        assert_eq!(Test::PairedT.smallest_p_value(), 0.0);
    }

    /// 2 / (199 + 1) is 0.01, which is not below 0.01; 2 / 201 is.
    #[test]
    fn too_few_resamples_are_said_to_be_too_few() {
        let found = Test::PairedBootstrap(Some(199)).out_of_reach(0.01).unwrap();
        assert_eq!(
            found,
            "nothing could be significant: no p is below 0.01; for 0.01 it takes 200 resamples"
        );
        assert_eq!(Test::PairedBootstrap(Some(200)).out_of_reach(0.01), None);
    }
}
