//! Whether the numbers of a row can be.

use records::TestedRow;

/// The first number that cannot be: its column, its value, and what is allowed.
pub fn implausible(row: &impl TestedRow, score_delta: f64) -> Option<(&'static str, f64, &'static str)> {
    let tests = row.tests();
    let points = [
        ("base_score", Some(tests.base_score)),
        ("score", Some(tests.score)),
        ("score_delta", Some(score_delta)),
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
