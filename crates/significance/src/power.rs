//! Power of a test set to show that heads are dispensable.

use records::rules::margin;
use stats::family::Comparison;
use stats::{Direction, Error, Segments, power};

/// Fills in the power, where there is an interval and a margin.
pub(crate) fn with_power(
    tests: Comparison,
    [base, variant]: [&Segments; 2],
    (margin_percent, seed): (f64, u64),
) -> Result<Comparison, Error> {
    let metric = base.metric().name();
    let margin = margin(metric, tests.base, margin_percent);
    let Some(ends) = tests.interval.filter(|_| margin > 0.0) else { return Ok(tests) };
    let reach = match metric.direction() {
        Direction::HigherIsBetter => tests.delta - ends.low,
        Direction::LowerIsBetter => ends.high - tests.delta,
    };
    let found = power::power(base, variant, (reach, margin), seed)?;
    Ok(Comparison { power: Some(found.power), segments_for_power: Some(found.segments), ..tests })
}
