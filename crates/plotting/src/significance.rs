//! How many heads matter, by which p-value, and how many would by chance.
use records::AblationRow;

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
        match self {
            Self::None => row.p_value,
            Self::Holm => row.p_holm,
            Self::Bh => row.p_benjamini_hochberg,
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
        let significant = || family.iter().filter(|row| self.holds(row));
        Tally {
            tested: family.iter().filter(|row| self.adjustment.p_value(row).is_some()).count(),
            significant: significant().count(),
            better: significant().filter(|row| row.score_delta > 0.0).count(),
        }
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
