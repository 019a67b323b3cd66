//! Power of a test set to show that heads are dispensable, and uncertainty of the share of dispensable heads.

use records::verdicts::margin;
use records::{TestedRow, Testing};
use stats::family::Comparison;
use stats::spread::{Step, reached};
use stats::{Direction, Error, Segments, power};

/// Adds the power if there is an interval and a margin; also returns the loss that the row may have as a step of a curve.
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

/// Records how often each step of a curve is reached on resamples; `curve` contains the steps in any order, with the indices of their rows.
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
