//! How numbers, scores and captions are worded: the only place where a number is rounded.
use stats::Direction;

/// Sentences of a caption: one, several, or none where it does not hold.
pub trait Sentences {
    fn all(self) -> Vec<String>;
}

impl Sentences for &str {
    fn all(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl Sentences for String {
    fn all(self) -> Vec<String> {
        vec![self]
    }
}

impl<T: Sentences> Sentences for Option<T> {
    fn all(self) -> Vec<String> {
        self.map(T::all).unwrap_or_default()
    }
}

impl<T: Sentences> Sentences for Vec<T> {
    fn all(self) -> Vec<String> {
        self.into_iter().flat_map(T::all).collect()
    }
}

/// `value` with a sign and `decimals` digits; what rounds to 0 has no sign.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    if text.contains(|character: char| ('1'..='9').contains(&character)) {
        text
    } else {
        text[1..].to_owned()
    }
}

/// `value` with a proper minus sign (U+2212) for figures.
pub fn typeset(value: f64, decimals: usize) -> String {
    signed(value, decimals).trim_start_matches('+').replace('-', "\u{2212}")
}

/// `value` with as many digits as it needs, at most three after the point: `0.96`, `1`, `0.01`.
pub fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `value` with at most one digit after the point: `20`, `19.8`.
pub fn tenths(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A share in percent, where `is_open` one that may be larger: `20`, `≥ 90`.
pub fn share(percent: f64, is_open: bool) -> String {
    let least = if is_open { "\u{2265} " } else { "" };
    format!("{least}{}", tenths(percent))
}

/// Digits after the point, at most three, with which `value` has three digits: `1.23`, `12.3`, `123`.
pub fn decimals(value: f64) -> usize {
    [100.0, 10.0, 1.0].into_iter().filter(|&bound| value.abs() < bound).count()
}

/// `p = 0.012`, or `p < 0.001` where it is.
pub fn p_value(value: f64) -> String {
    if value < 0.001 { "p < 0.001".to_owned() } else { format!("p = {value:.3}") }
}

/// `1 head`, `2 heads`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// `1 to 2`
pub fn range((low, high): (f64, f64), number: impl Fn(f64) -> String) -> String {
    format!("{} to {}", number(low), number(high))
}

/// What each is called where there are several, else nothing.
pub fn name_among<T: ToString>(one: &T, all: &[T]) -> String {
    if all.len() > 1 { one.to_string() } else { String::new() }
}

/// What a score measures: points in every result file, but nats a token for perplexities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric(String);

impl Metric {
    /// The metric that a CSV file calls `name`.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The name in a CSV file, such as `bleu`.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The name in running text.
    pub fn label(&self) -> &str {
        match self.name() {
            "bleu" => "BLEU",
            "f1" => "F1",
            "matthews" => "Matthews correlation",
            "nats" => "nats a token",
            other => other,
        }
    }

    /// What scores, and differences of them, are counted in. BLEU is always in points, so it needs no unit.
    fn units(&self) -> Option<[&'static str; 2]> {
        match self.name() {
            "accuracy" => Some(["%", "percentage points"]),
            "f1" | "matthews" => Some(["points"; 2]),
            _ => None,
        }
    }

    /// Name and unit for an axis.
    pub fn axis_label(&self) -> String {
        self.units().map_or(self.label().to_owned(), |[unit, _]| format!("{} ({unit})", self.label()))
    }

    /// A score with its unit, rounded: `36.05`, `83.40 %`, `57.31 points`, `3.217` nats a token.
    pub fn amount(&self, score: f64) -> String {
        let unit = self.units().map_or(String::new(), |[unit, _]| format!(" {unit}"));
        format!("{score:.*}{unit}", if self.is_nats() { 3 } else { 2 })
    }

    /// A score by the name of its metric: `BLEU 36.05`; `3.217 nats a token, perplexity 24.95`.
    pub fn described(&self, score: f64) -> String {
        let (label, amount) = (self.label(), self.amount(score));
        if self.is_nats() {
            format!("{amount} {label}, perplexity {}", perplexity(score))
        } else {
            format!("{label} {amount}")
        }
    }

    /// A difference of scores, with a sign: a head changes nats by less than points.
    pub fn change(&self, delta: f64) -> String {
        signed(delta, if self.is_nats() { 4 } else { 2 })
    }

    /// An interval of such differences: ` [-0.35, +0.08]`; nothing where there is none.
    pub fn brackets(&self, ends: Option<(f64, f64)>) -> String {
        ends.map_or(String::new(), |(low, high)| format!(" [{}, {}]", self.change(low), self.change(high)))
    }

    /// What percentages are taken of, since none of nats mean anything: `BLEU`; `1/perplexity`, the geometric mean of the
    /// probabilities of tokens.
    pub fn proportional(&self) -> &str {
        if self.is_nats() { "1/perplexity" } else { self.label() }
    }

    /// Which of two scores is the better one.
    pub fn direction(&self) -> Direction {
        Direction::of(self.name())
    }

    /// Where a worse score is: `below` or `above` another.
    pub fn worse_side(&self) -> &'static str {
        if self.direction() == Direction::HigherIsBetter { "below" } else { "above" }
    }

    /// Whether the scores are nats a token.
    pub fn is_nats(&self) -> bool {
        self.name() == "nats"
    }

    /// What a difference of scores is counted in, where that needs saying: `, in points`.
    pub fn in_unit(&self) -> String {
        self.units().map_or(String::new(), |[_, unit]| format!(", in {unit}"))
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
    fn numbers_are_rounded_as_a_reader_expects() {
        let signs = [-0.004, 0.0, -0.0, 0.03].map(|value| signed(value, 2));
        assert_eq!(signs, ["0.00", "0.00", "0.00", "+0.03"]);
        assert_eq!((typeset(-0.5, 1), typeset(36.0, 0)), ("\u{2212}0.5".to_owned(), "36".to_owned()));
        assert_eq!([20.0, 19.79, 0.04, 99.96].map(tenths), ["20", "19.8", "0", "100"]);
        assert_eq!([share(20.0, false), share(90.3, true)], ["20", "\u{2265} 90.3"]);
        assert_eq!([0.5, 1.0, -9.9, 10.0, 99.0, 100.0, 12_345.0].map(decimals), [3, 2, 2, 1, 1, 0, 0]);
        assert_eq!([0.0, 0.001, 0.034_56].map(p_value), ["p < 0.001", "p = 0.001", "p = 0.035"]);
        assert_eq!([0.96, 1.0, 100.0, 0.05].map(short), ["0.96", "1", "100", "0.05"]);
    }

    /// exp(3.217) = 24.953.
    #[test]
    fn scores_have_the_unit_of_their_metric_and_nats_their_perplexity() {
        let amounts = ["bleu", "accuracy", "f1", "chrf"].map(|name| Metric::new(name).amount(83.401));
        assert_eq!(amounts, ["83.40", "83.40 %", "83.40 points", "83.40"]);
        let (nats, bleu) = (Metric::new("nats"), Metric::new("bleu"));
        assert_eq!(nats.described(3.217), "3.217 nats a token, perplexity 24.95");
        assert_eq!(nats.described(30.0), "30.000 nats a token, perplexity 1.07e13");
        assert_eq!(nats.described(1e6), "1000000.000 nats a token, perplexity above 1e308");
        assert_eq!((nats.change(0.01234), bleu.change(-0.5)), ("+0.0123".to_owned(), "-0.50".to_owned()));
        assert_eq!((nats.worse_side(), bleu.worse_side()), ("above", "below"));
    }
}
