//! How numbers are printed: the only place where one is rounded.

/// `value` with a sign and `decimals` digits; what rounds to 0 has no sign.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = text.chars().all(|character| !character.is_ascii_digit() || character == '0');
    if is_zero { text[1..].to_owned() } else { text }
}

/// `value` with a proper minus sign (U+2212) for figures.
pub fn typeset(value: f64, decimals: usize) -> String {
    let text = signed(value, decimals);
    text.trim_start_matches('+').replace('-', "\u{2212}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounded_zero_has_no_sign() {
        assert_eq!(signed(-0.004, 2), "0.00");
        assert_eq!(signed(0.0, 2), "0.00");
        assert_eq!(signed(-0.0, 2), "0.00");
        assert_eq!(signed(0.03, 2), "+0.03");
        assert_eq!(signed(-12.345, 1), "-12.3");
    }

    #[test]
    fn figures_have_a_true_minus_and_no_plus() {
        assert_eq!(typeset(-0.5, 1), "\u{2212}0.5");
        assert_eq!(typeset(36.0, 0), "36");
    }

    #[test]
    fn shares_have_a_digit_after_the_point_only_if_they_need_one() {
        assert_eq!([20.0, 19.79, 0.04, 99.96].map(tenths), ["20", "19.8", "0", "100"]);
    }

    #[test]
    fn a_share_that_may_be_larger_says_so() {
        assert_eq!([share(20.0, false), share(90.3, true)], ["20", "\u{2265} 90.3"]);
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.5, 1.0, -9.9, 10.0, 99.0, 100.0, 12_345.0].map(decimals), [3, 2, 2, 1, 1, 0, 0]);
    }

    #[test]
    fn small_p_values_are_bounded() {
        assert_eq!(p_value(0.0), "p < 0.001");
        assert_eq!(p_value(0.001), "p = 0.001");
        assert_eq!(p_value(0.034_56), "p = 0.035");
        assert_eq!(p_value(1.0), "p = 1.000");
    }

    #[test]
    fn short_numbers_drop_what_is_not_needed() {
        assert_eq!(short(0.96), "0.96");
        assert_eq!(short(1.0), "1");
        assert_eq!(short(100.0), "100");
        assert_eq!(short(0.05), "0.05");
    }
}
