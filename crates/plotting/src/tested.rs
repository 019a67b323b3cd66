//! What rows of all sweeps and curves have in common: scores, an interval and p-values.
use records::{AblationRow, Difference, PruningRow, Tests};

use crate::significance::Criterion;

/// A row that compares a score with that of the intact model.
pub trait Tested {
    /// The columns that tests fill in.
    fn tests(&self) -> Tests;

    /// The column `score_delta`.
    fn delta(&self) -> f64;

    /// What the rules of what can go look at, with the p-value that counts.
    fn difference_by(&self, criterion: Criterion) -> Difference {
        let Tests { base_score, delta_low, .. } = self.tests();
        Difference { base_score, delta: self.delta(), delta_low, p_value: criterion.p_value(self) }
    }

    /// The first number that cannot be: its column, its value, and what is allowed.
    fn implausible(&self) -> Option<(&'static str, f64, &'static str)> {
        let tests = self.tests();
        let points = [
            ("base_score", Some(tests.base_score)),
            ("score", Some(tests.score)),
            ("score_delta", Some(self.delta())),
            ("delta_low", tests.delta_low),
            ("delta_high", tests.delta_high),
        ];
        let p_values = [
            ("p_value", tests.p_value),
            ("p_koehn", tests.p_koehn),
            ("p_adjusted", tests.p_adjusted),
            ("p_benjamini_hochberg", tests.p_benjamini_hochberg),
            ("p_unpaired_t", tests.p_unpaired_t),
            ("p_mcnemar", tests.p_mcnemar),
        ];
        let points = points.map(|(column, value)| (column, value, -1e9..=1e9, "a finite number of points"));
        let p_values = p_values.map(|(column, value)| (column, value, 0.0..=1.0, "0 to 1 or empty"));
        let mut all = points.into_iter().chain(p_values);
        all.find_map(|(column, value, allowed, range)| {
            value.filter(|value| !allowed.contains(value)).map(|value| (column, value, range))
        })
    }
}

macro_rules! tested {
    ($row:ty) => {
        impl Tested for $row {
            fn tests(&self) -> Tests {
                Tests {
                    base_score: self.base_score,
                    score: self.score,
                    delta_low: self.delta_low,
                    delta_high: self.delta_high,
                    p_value: self.p_value,
                    p_koehn: self.p_koehn,
                    p_adjusted: self.p_adjusted,
                    p_benjamini_hochberg: self.p_benjamini_hochberg,
                    p_unpaired_t: self.p_unpaired_t,
                    p_mcnemar: self.p_mcnemar,
                }
            }

            fn delta(&self) -> f64 {
                self.score_delta
            }
        }
    };
}

tested!(AblationRow);
tested!(PruningRow);
