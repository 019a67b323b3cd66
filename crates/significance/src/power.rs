//! Power of a test set to show that heads are dispensable, and the spread of the share that can go.

use records::rules::margin;
use records::{TestedRow, Testing};
use stats::family::Comparison;
use stats::spread::{Step, reached};
use stats::{Direction, Error, Segments, power};

/// Fills in the power, where there is an interval and a margin; and what the row may lose as a step of a curve.
pub(crate) fn with_power<'a>(
    tests: Comparison,
    [base, variant]: [&'a Segments; 2],
    testing: Testing,
) -> Result<(Comparison, Option<Step<'a>>), Error> {
    let metric = base.metric().name();
    let margin = margin(metric, tests.base, testing.margin_percent);
    let Some(ends) = tests.interval.filter(|_| margin > 0.0) else { return Ok((tests, None)) };
    let reach = match metric.direction() {
        Direction::HigherIsBetter => tests.delta - ends.low,
        Direction::LowerIsBetter => ends.high - tests.delta,
    };
    let found = power::power(base, variant, (reach, margin), testing.of_segments())?;
    let tests = Comparison { power: Some(found.power), segments_for_power: found.segments, ..tests };
    Ok((tests, Some(Step { variant, reach, critical: found.critical })))
}

/// Fills in how often the walk along a curve gets to each of its steps; `curve` has these in any order, with the places of their rows.
pub(crate) fn walk<R: TestedRow>(
    rows: &mut [&mut R],
    mut curve: Vec<(usize, Step<'_>)>,
    base: &Segments,
    testing: Testing,
) -> Result<(), Error> {
    curve.sort_by_key(|&(place, _)| rows[place].step());
    let (places, steps): (Vec<_>, Vec<_>) = curve.into_iter().unzip();
    let margin = |score| margin(base.metric().name(), score, testing.margin_percent);
    for (place, found) in places.into_iter().zip(reached(base, &steps, margin, testing.of_segments())?) {
        rows[place].record_reached(found);
    }
    Ok(())
}
