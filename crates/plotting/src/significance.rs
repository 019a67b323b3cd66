//! How many heads matter, by which p-value, and how many would by chance.
use records::AblationRow;

/// The test behind the p-values of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Paired bootstrap (Koehn 2004), one-sided: p counts resamples against the side that was observed.
    PairedBootstrap,
    /// Paired t-test, two-sided.
    PairedT,
}

impl Test {
    /// Its name, with the `resamples` where it has some and they are known.
    pub fn description(self, resamples: Option<u64>) -> String {
        match (self, resamples) {
            (Self::PairedBootstrap, Some(resamples)) => format!("paired bootstrap, {resamples} resamples"),
            (Self::PairedBootstrap, None) => "paired bootstrap".to_owned(),
            (Self::PairedT, _) => "paired t-test".to_owned(),
        }
    }

    /// Share of all tests without any effect in which p is below `alpha`.
    pub fn false_alarms(self, alpha: f64) -> f64 {
        match self {
            // Either side may be the one that is observed.
            Self::PairedBootstrap => (2.0 * alpha).min(1.0),
            Self::PairedT => alpha,
        }
    }

    /// Which side p looks at.
    pub fn sides(self) -> &'static str {
        match self {
            Self::PairedBootstrap => "one-sided, on the side observed",
            Self::PairedT => "two-sided",
        }
    }

    /// The least p-value there can be, if there is one above 0.
    pub fn least_p_value(self, resamples: Option<u64>) -> Option<f64> {
        match self {
            Self::PairedBootstrap => Some(1.0 / (resamples? as f64 + 1.0)),
            Self::PairedT => None,
        }
    }
}

/// Which p-value decides; the paper's is [`Adjustment::None`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Adjustment {
    /// As tested, not adjusted for the number of heads (Michel et al. 2019)
    #[default]
    None,
    /// Holm (1979): the chance of any false alarm is at most alpha
    Holm,
    /// Benjamini and Hochberg (1995): the expected share of false alarms is at most alpha
    Bh,
}

impl Adjustment {
    /// The p-value of a head, if it was tested and adjusted.
    pub fn p_value(self, row: &AblationRow) -> Option<f64> {
        self.choose(row.p_value, row.p_holm, row.p_benjamini_hochberg)
    }

    /// The one of three p-values that counts.
    pub fn choose(self, tested: Option<f64>, holm: Option<f64>, bh: Option<f64>) -> Option<f64> {
        match self {
            Self::None => tested,
            Self::Holm => holm,
            Self::Bh => bh,
        }
    }

    /// What follows "p < 0.01" in a caption.
    pub fn description(self) -> &'static str {
        match self {
            Self::None => "not adjusted for the number of heads",
            Self::Holm => "Holm-adjusted",
            Self::Bh => "Benjamini-Hochberg-adjusted",
        }
    }
}

/// When a cell is marked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criterion {
    /// Heads with a p-value below this are significant.
    pub alpha: f64,
    /// Which p-value counts.
    pub adjustment: Adjustment,
}

impl Criterion {
    /// Whether removing this head changes the score significantly.
    pub fn holds(self, row: &AblationRow) -> bool {
        self.adjustment.p_value(row).is_some_and(|p_value| p_value < self.alpha)
    }

    /// Counts over one family of tests.
    pub fn tally(self, family: &[&AblationRow]) -> Tally {
        Tally::of(family, self.alpha, |row| self.adjustment.p_value(row))
    }
}

/// Counts over one family of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Heads with a p-value.
    pub tested: usize,
    /// Heads whose removal changes the score significantly.
    pub significant: usize,
    /// Those of them whose removal raises the score.
    pub better: usize,
}

impl Tally {
    /// Counts with some p-value of each row.
    pub fn of(family: &[&AblationRow], alpha: f64, p_value: impl Fn(&AblationRow) -> Option<f64>) -> Self {
        let tested: Vec<_> = family.iter().filter_map(|row| Some((row.score_delta, p_value(row)?))).collect();
        let significant = || tested.iter().filter(|(_, p_value)| *p_value < alpha);
        Self {
            tested: tested.len(),
            significant: significant().count(),
            better: significant().filter(|(delta, _)| *delta > 0.0).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A one-sided p on the observed side is half the two-sided one, so it falls below alpha twice as often.
    #[test]
    fn a_one_sided_test_gives_twice_the_false_alarms() {
        assert_eq!(Test::PairedT.false_alarms(0.01), 0.01);
        assert_eq!(Test::PairedBootstrap.false_alarms(0.01), 0.02);
        assert_eq!(Test::PairedBootstrap.false_alarms(0.9), 1.0);
    }

    #[test]
    fn only_resampling_has_a_least_p_value() {
        assert_eq!(Test::PairedBootstrap.least_p_value(Some(99)), Some(0.01));
        assert_eq!(Test::PairedBootstrap.least_p_value(None), None);
        assert_eq!(Test::PairedT.least_p_value(Some(99)), None);
    }
}
