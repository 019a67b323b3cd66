//! Names and units of the scores.

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

    /// The paired test behind `p_value`; `resamples` where known.
    ///
    /// Accuracies are compared by a t-test as in Michel et al. (2019), all else by bootstrap.
    pub fn test(&self, resamples: Option<u64>) -> String {
        match (self.name.as_str(), resamples) {
            ("accuracy", _) => "paired t-test".to_owned(),
            (_, Some(resamples)) => format!("paired bootstrap, {resamples} resamples"),
            (_, None) => "paired bootstrap".to_owned(),
        }
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
    fn accuracies_are_compared_by_a_t_test() {
        assert_eq!(Metric::new("accuracy").test(Some(1000)), "paired t-test");
        assert_eq!(Metric::new("f1").test(Some(1000)), "paired bootstrap, 1000 resamples");
    }
}
