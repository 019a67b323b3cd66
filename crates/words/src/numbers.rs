//! Rounded numbers.

/// Formats `value` with a sign and this many `decimals`; a value that rounds to 0 has no sign.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = value.is_finite() && !text.contains(|character: char| ('1'..='9').contains(&character));
    if is_zero { text[1..].to_owned() } else { text }
}

/// Formats `value` with this many `decimals`, and a sign if it is negative after rounding.
pub fn fixed(value: f64, decimals: usize) -> String {
    signed(value, decimals).trim_start_matches('+').to_owned()
}

/// Formats `value` with one digit before the point, this many `decimals` and a power of ten: `2.35e10`.
pub fn scientific(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$e}")
}

/// Formats `value` like [`fixed`], with a proper minus sign (U+2212) for figures.
pub fn typeset(value: f64, decimals: usize) -> String {
    with_minus(&fixed(value, decimals))
}

/// Replaces hyphens before numbers with a proper minus sign (U+2212): before a digit, at the beginning or after a space, a bracket or the
/// sign of a verdict. Hyphens in names stay.
pub fn with_minus(text: &str) -> String {
    let mut shown = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let begins = shown.is_empty() || shown.ends_with([' ', '(', '[', '!', '?']);
        let is_minus = character == '-' && begins && characters.peek().is_some_and(char::is_ascii_digit);
        shown.push(if is_minus { '\u{2212}' } else { character });
    }
    shown
}

/// Formats `value` with as few digits as possible: at most three decimals or, below a thousandth, two significant digits: `0.96`, `1`,
/// `0.0002`.
pub fn short(value: f64) -> String {
    let is_small = value != 0.0 && value.abs() < 0.001;
    let places = if is_small { (1.0 - value.abs().log10().floor()) as usize } else { 3 };
    let text = format!("{value:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats `value` with at most one decimal: `20`, `19.8`.
pub fn tenths(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Formats how much larger than 1 a ratio is, in percent: `+17.5`.
pub fn percent_more(ratio: f64) -> String {
    signed(100.0 * (ratio - 1.0), 1)
}

/// Formats a share in percent, with `≥` if `is_open`: `20`, `≥ 90`.
pub fn share(percent: f64, is_open: bool) -> String {
    let least = if is_open { "\u{2265} " } else { "" };
    format!("{least}{}", tenths(percent))
}

/// Returns the number of decimals, at most three, for three significant digits: `1.23`, `12.3`, `123`.
pub fn decimals(value: f64) -> usize {
    [100.0, 10.0, 1.0].into_iter().filter(|&bound| value.abs() < bound).count()
}

/// Formats a p-value: `p = 0.012`, or `p < 0.001` for smaller ones.
pub fn p_value(value: f64) -> String {
    format!("p {}{}", if value < 0.001 { "" } else { "= " }, bare_p(value))
}

/// Formats a p-value without the letter, for columns with a heading: `0.012`, `< 0.001`.
pub fn bare_p(value: f64) -> String {
    if value < 0.001 { "< 0.001".to_owned() } else { format!("{value:.3}") }
}

/// Formats a number with its noun: `1 head`, `2 heads`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Formats a duration with its unit: `40 s`, `12 min`, `3.4 h`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        _ if seconds < 99.5 => format!("{seconds:.0} s"),
        _ if seconds < 99.5 * 60.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Formats a range: `1 to 2`.
pub fn range((low, high): (f64, f64), number: impl Fn(f64) -> String) -> String {
    format!("{} to {}", number(low), number(high))
}

/// Formats the ends of an interval in brackets after a space, such as ` [-0.35, +0.08]`; empty for `None`.
pub fn brackets(ends: Option<(f64, f64)>, between: &str, number: impl Fn(f64) -> String) -> String {
    ends.map_or(String::new(), |(low, high)| format!(" [{}{between}{}]", number(low), number(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_a_reader_expects() {
        let durations = [1.4, 99.0, 100.0, 5_900.0, 12_300.0].map(duration);
        assert_eq!(durations, ["1 s", "99 s", "2 min", "98 min", "3.4 h"]);
        let signs = [-0.004, 0.0, -0.0, 0.03].map(|value| signed(value, 2));
        assert_eq!(signs, ["0.00", "0.00", "0.00", "+0.03"]);
        assert_eq!([f64::NAN, f64::NEG_INFINITY].map(|value| signed(value, 2)), ["NaN", "-inf"]);
        assert_eq!([fixed(-0.5, 1), fixed(36.0, 0), fixed(-0.004, 2)], ["-0.5", "36", "0.00"]);
        assert_eq!(with_minus("-0.5 (-1 to +2) enc-enc-1"), "\u{2212}0.5 (\u{2212}1 to +2) enc-enc-1");
        let shorts = [0.0002, 0.000_199_98, -0.000_25, 0.0, 0.012, 1.0, 100.0].map(short);
        assert_eq!(shorts, ["0.0002", "0.0002", "-0.00025", "0", "0.012", "1", "100"]);
        assert_eq!([20.0, 19.79, 0.04, 99.96].map(tenths), ["20", "19.8", "0", "100"]);
        assert_eq!([0.5, 1.0, -9.9, 10.0, 99.0, 100.0, 12_345.0].map(decimals), [3, 2, 2, 1, 1, 0, 0]);
        assert_eq!([0.0, 0.001, 0.034_56].map(p_value), ["p < 0.001", "p = 0.001", "p = 0.035"]);
    }
}
