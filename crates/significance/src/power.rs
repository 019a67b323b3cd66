//! Power of a test set to show that heads are dispensable.

use records::rules::margin;
use stats::family::{Comparison, Testing};
use stats::{Direction, Error, Segments, power};

/// Fills in the power, where there is an interval and a margin.
pub(crate) fn with_power(
    tests: Comparison,
    [base, variant]: [&Segments; 2],
    (margin_percent, testing): (f64, Testing),
) -> Result<Comparison, Error> {
    let metric = base.metric().name();
    let margin = margin(metric, tests.base, margin_percent);
    let Some(ends) = tests.interval.filter(|_| margin > 0.0) else { return Ok(tests) };
    let reach = match metric.direction() {
        Direction::HigherIsBetter => tests.delta - ends.low,
        Direction::LowerIsBetter => ends.high - tests.delta,
    };
    let found = power::power(base, variant, (reach, margin), testing)?;
    Ok(Comparison { power: Some(found.power), segments_for_power: found.segments, ..tests })
}
