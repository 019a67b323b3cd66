//! Names and units of the scores: points in every result file, but nats a token for perplexities.
use stats::Direction;

use crate::number::signed;

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
            "nats" => "nats a token",
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

    /// A score with its unit, rounded: `36.05`, `83.40 %`, `57.31 points`, `3.217` nats a token.
    pub fn amount(&self, score: f64) -> String {
        let decimals = if self.is_nats() { 3 } else { 2 };
        let unit = match self.name.as_str() {
            "accuracy" => " %",
            "f1" | "matthews" => " points",
            _ => "",
        };
        format!("{score:.decimals$}{unit}")
    }

    /// A score by the name of its metric: `BLEU 36.05`; `3.217 nats a token, perplexity 24.95`.
    pub fn described(&self, score: f64) -> String {
        match self.is_nats() {
            true => format!("{} {}, perplexity {}", self.amount(score), self.label(), perplexity(score)),
            false => format!("{} {}", self.label(), self.amount(score)),
        }
    }

    /// A difference of scores, with a sign: a head changes nats by less than points.
    pub fn change(&self, delta: f64) -> String {
        signed(delta, if self.is_nats() { 4 } else { 2 })
    }

    /// What percentages are taken of, since none of nats mean anything: `BLEU`; `1/perplexity`, the geometric mean of the
    /// probabilities of tokens.
    pub fn proportional(&self) -> &str {
        if self.is_nats() { "1/perplexity" } else { self.label() }
    }

    /// Which of two scores is the better one.
    pub fn direction(&self) -> Direction {
        Direction::of(&self.name)
    }

    /// Where a worse score is: `below` or `above` another.
    pub fn worse_side(&self) -> &'static str {
        match self.direction() {
            Direction::HigherIsBetter => "below",
            Direction::LowerIsBetter => "above",
        }
    }

    /// Whether the scores are nats a token.
    pub fn is_nats(&self) -> bool {
        self.name == "nats"
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

/// The perplexity of so many nats a token, with two digits after the point up to a million: `24.95`, `2.35e10`.
fn perplexity(nats: f64) -> String {
    match nats.exp() {
        perplexity if perplexity < 1e6 => format!("{perplexity:.2}"),
        perplexity if perplexity.is_finite() => format!("{perplexity:.2e}"),
        _ => "above 1e308".to_owned(),
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
        let amount = |name| Metric::new(name).amount(83.401);
        assert_eq!(["bleu", "accuracy", "f1"].map(amount), ["83.40", "83.40 %", "83.40 points"]);
    }

    /// exp(3.217) = 24.953.
    #[test]
    fn nats_stand_beside_their_perplexity() {
        let (nats, bleu) = (Metric::new("nats"), Metric::new("bleu"));
        assert_eq!(nats.described(3.217), "3.217 nats a token, perplexity 24.95");
        assert_eq!(nats.described(30.0), "30.000 nats a token, perplexity 1.07e13");
        assert_eq!(nats.described(1e6), "1000000.000 nats a token, perplexity above 1e308");
        assert_eq!(bleu.described(36.051), "BLEU 36.05");
        assert_eq!((nats.change(0.01234), bleu.change(-0.5)), ("+0.0123".to_owned(), "-0.50".to_owned()));
        assert_eq!((nats.proportional(), bleu.proportional()), ("1/perplexity", "BLEU"));
        assert_eq!((nats.worse_side(), bleu.worse_side()), ("above", "below"));
    }
}
