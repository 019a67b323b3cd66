//! Formats scores in the unit of their metric.
use records::MetricName;
use stats::Direction;
use words::{brackets, fixed, scientific, signed};

/// Metric of scores: points in every result file, except nats per token for perplexities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric(MetricName);

impl Metric {
    /// Returns the formatter for a metric.
    pub fn new(metric: MetricName) -> Self {
        Self(metric)
    }

    /// Returns the name used in files.
    pub fn name(self) -> MetricName {
        self.0
    }

    /// Returns the name used in running text.
    pub fn label(self) -> &'static str {
        self.0.label()
    }

    /// Returns name and unit: `accuracy (%)`.
    pub fn label_in_unit(self) -> String {
        self.0.units().map_or(self.label().to_owned(), |[unit, _]| format!("{} ({unit})", self.label()))
    }

    /// Returns a rounded score with its unit: `36.05`, `83.40%`, `57.31 points`, `3.217` nats per token.
    pub fn amount(self, score: f64) -> String {
        let unit = match self.0.units() {
            Some(["%", _]) => "%".to_owned(),
            Some([unit, _]) => format!(" {unit}"),
            None => String::new(),
        };
        fixed(score, self.0.score_digits()) + &unit
    }

    /// Returns a score with its metric: `BLEU 36.05`; `3.217 nats per token, perplexity 24.95`.
    pub fn described(self, score: f64) -> String {
        let (label, amount) = (self.label(), self.amount(score));
        if self.is_nats() {
            format!("{amount} {label}, perplexity {}", perplexity(score))
        } else {
            format!("{label} {amount}")
        }
    }

    /// Returns a difference of scores with a sign; nats get more digits than points.
    pub fn change(self, delta: f64) -> String {
        signed(delta, self.0.digits())
    }

    /// Returns an interval of differences: ` [-0.35, +0.08]`; empty without an interval.
    pub fn brackets(self, ends: Option<(f64, f64)>) -> String {
        brackets(ends, ", ", |delta| self.change(delta))
    }

    /// Returns a loss in percent of the base score; for nats, in percent of the perplexity.
    pub fn percent_lost(self, delta: f64, base: f64) -> f64 {
        if self.is_nats() {
            100.0 * delta.exp_m1()
        } else {
            -100.0 * self.direction().gain(delta) / base.abs()
        }
    }

    /// Returns the score that percentages refer to: `BLEU`; for nats `1/perplexity`, the geometric mean of token probabilities.
    pub fn proportional(self) -> &'static str {
        if self.is_nats() { "1/perplexity" } else { self.label() }
    }

    /// Returns which scores are better.
    pub fn direction(self) -> Direction {
        self.0.direction()
    }

    /// Returns where a worse score is: `below` or `above` another.
    pub fn worse_side(self) -> &'static str {
        if self.direction() == Direction::HigherIsBetter { "below" } else { "above" }
    }

    /// `true` for BLEU, the metric of all the paper's translators.
    pub fn is_bleu(self) -> bool {
        self.0 == MetricName::Bleu
    }

    /// `true` for accuracies, which a t-test compares.
    pub fn is_accuracy(self) -> bool {
        self.0 == MetricName::Accuracy
    }

    /// `true` for nats per token.
    pub fn is_nats(self) -> bool {
        self.0 == MetricName::Nats
    }

    /// Returns the unit of a difference after `before`, such as `, in points`; empty without a unit.
    pub fn in_unit(self, before: &str) -> String {
        self.0.units().map_or(String::new(), |[_, unit]| format!("{before} {unit}"))
    }
}

/// Returns the perplexity for nats per token, with two decimals up to a million: `24.95`, `2.35e10`.
fn perplexity(nats: f64) -> String {
    match nats.exp() {
        perplexity if perplexity < 1e6 => fixed(perplexity, 2),
        perplexity if perplexity.is_finite() => scientific(perplexity, 2),
        _ => "above 1e308".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_have_the_unit_of_their_metric_and_great_perplexities_are_short() {
        assert_eq!(Metric::new(MetricName::F1).amount(83.401), "83.40 points");
        let nats = |score| Metric::new(MetricName::Nats).described(score);
        assert_eq!(nats(30.0), "30.000 nats per token, perplexity 1.07e13");
        assert_eq!(nats(1e6), "1000000.000 nats per token, perplexity above 1e308");
    }
}
