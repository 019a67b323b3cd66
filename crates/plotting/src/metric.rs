//! Names and units of the scores, which are points in every result file.

/// What a score measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    name: String,
}

impl Metric {
    /// The metric that a CSV file calls `name`.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }

    /// The name in a CSV file, such as `bleu`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name in running text.
    pub fn label(&self) -> &str {
        match self.name.as_str() {
            "bleu" => "BLEU",
            "f1" => "F1",
            "matthews" => "Matthews correlation",
            other => other,
        }
    }

    /// Name and unit for an axis. BLEU is always in points, so it needs no unit.
    pub fn axis_label(&self) -> String {
        match self.name.as_str() {
            "accuracy" => "accuracy (%)".to_owned(),
            "f1" | "matthews" => format!("{} (points)", self.label()),
            _ => self.label().to_owned(),
        }
    }

    /// A score with its unit, rounded: `36.05`, `83.40 %`, `57.31 points`.
    pub fn amount(&self, score: f64, decimals: usize) -> String {
        let unit = match self.name.as_str() {
            "accuracy" => " %",
            "f1" | "matthews" => " points",
            _ => "",
        };
        format!("{score:.decimals$}{unit}")
    }

    /// What a difference of scores is counted in, where that needs saying.
    pub fn difference_unit(&self) -> Option<&'static str> {
        match self.name.as_str() {
            "accuracy" => Some("percentage points"),
            "f1" | "matthews" => Some("points"),
            _ => None,
        }
    }

    /// Whether the scores are accuracies.
    pub fn is_accuracy(&self) -> bool {
        self.name == "accuracy"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_of_tomorrow_keeps_its_own_name() {
        assert_eq!(Metric::new("chrf").axis_label(), "chrf");
        assert_eq!(Metric::new("bleu").axis_label(), "BLEU");
        assert_eq!(Metric::new("matthews").axis_label(), "Matthews correlation (points)");
    }

    #[test]
    fn scores_have_the_unit_of_their_metric() {
        let amount = |name| Metric::new(name).amount(83.401, 2);
        assert_eq!(["bleu", "accuracy", "f1"].map(amount), ["83.40", "83.40 %", "83.40 points"]);
    }
}
