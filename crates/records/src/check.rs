//! Checks of rows: each row separately, the rows of a run, and the rows of a family.
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use heads::MAX_HEADS;
use stats::MetricName;
use stats::metric::Range;

use crate::signature::Signature;
use crate::table::{check_complete, parse};
use crate::{Error, Row, TestedRow, file};

/// A number of a row and the values allowed for it.
pub struct Limit {
    /// Column of the number.
    pub column: &'static str,
    /// The number; `None` for an empty cell, which is allowed.
    pub value: Option<f64>,
    /// Allowed values.
    pub allowed: RangeInclusive<f64>,
    /// Allowed values, in words.
    pub words: &'static str,
}

impl Limit {
    /// Limits a number that must be present.
    pub fn new(column: &'static str, value: f64, allowed: RangeInclusive<f64>, words: &'static str) -> Self {
        Self { column, value: Some(value), allowed, words }
    }

    /// Limits a number that may be missing.
    pub fn optional(
        column: &'static str,
        value: Option<f64>,
        allowed: RangeInclusive<f64>,
        words: &'static str,
    ) -> Self {
        Self { column, value, allowed, words }
    }

    /// Limits a probability or a share that may be missing.
    pub fn share(column: &'static str, value: Option<f64>) -> Self {
        Self::optional(column, value, 0.0..=1.0, "0 to 1 or empty")
    }
}

/// Maximum of scores and counts.
pub const MOST: f64 = 1e9;

pub(crate) fn head_limits(layer: usize, head: usize) -> [Limit; 2] {
    [("layer", layer), ("head", head)]
        .map(|(column, value)| Limit::new(column, value as f64, 1.0..=MAX_HEADS as f64, "1 to 256"))
}

/// Maximum of a measured number, such that squares are finite and axes can span all numbers.
pub(crate) const GREATEST: f64 = 1e100;

/// Returns the limits of numbers that only need to be finite.
pub(crate) fn finite(columns: &[(&'static str, Option<f64>)]) -> Vec<Limit> {
    let limit = |&(column, value)| {
        Limit::optional(column, value, -GREATEST..=GREATEST, "a number from -1e100 to 1e100")
    };
    columns.iter().map(limit).collect()
}

pub(crate) fn step_limits(masked: usize, heads: usize) -> [Limit; 2] {
    [
        Limit::new("heads", heads as f64, 1.0..=1e5, "1 to 100000"),
        Limit::new("masked", masked as f64, 0.0..=heads as f64, "at most `heads`"),
    ]
}

pub(crate) fn test_limits(row: &impl TestedRow, score_delta: f64) -> Vec<Limit> {
    let tests = row.tests();
    let (scores, words) = score_range(row.metric());
    let scores = [("base_score", tests.base), ("score", tests.variant)]
        .map(|(column, value)| Limit::new(column, value, scores.clone(), words));
    let delta = tests.delta;
    let rounding = 1e-5; // files with rounded numbers have six digits
    let delta = Limit::new(
        "score_delta",
        score_delta,
        delta - rounding..=delta + rounding,
        "`score` minus `base_score`",
    );
    let (low, high) = tests.interval.map(|ends| (ends.low, ends.high)).unzip();
    let (least, most) = (low.unwrap_or(-MOST), high.unwrap_or(-MOST));
    let ends = [("delta_low", low), ("delta_high", high)]
        .map(|(column, value)| Limit::optional(column, value, -MOST..=MOST, "a number from -1e9 to 1e9"));
    let order = Limit::optional("delta_high", high, least..=f64::INFINITY, "at least `delta_low`");
    let (low, high) = tests.simultaneous.map(|ends| (ends.low, ends.high)).unzip();
    let simultaneous = [
        Limit::optional("simultaneous_low", low, -MOST..=least, "at most `delta_low`"),
        Limit::optional("simultaneous_high", high, most..=MOST, "at least `delta_high`"),
    ];
    let p_values = [
        ("p_value", tests.p_value),
        ("p_bootstrap", tests.p_bootstrap),
        ("p_koehn", tests.p_koehn),
        ("p_adjusted", tests.p_adjusted),
        ("p_benjamini_hochberg", tests.p_benjamini_hochberg),
        ("p_unpaired_t", tests.p_unpaired_t),
        ("p_mcnemar", tests.p_mcnemar),
        ("power", tests.power),
    ];
    let p_values = p_values.map(|(column, value)| Limit::share(column, value));
    scores.into_iter().chain([delta]).chain(ends).chain([order]).chain(simultaneous).chain(p_values).collect()
}

/// Returns the range of a score; rounding may put a perfect one slightly above 100 points.
fn score_range(metric: MetricName) -> (RangeInclusive<f64>, &'static str) {
    const MAX_POINTS: f64 = 100.0 + 1e-6;
    match metric.range() {
        Range::Points => (0.0..=MAX_POINTS, "0 to 100"),
        Range::Signed => (-MAX_POINTS..=MAX_POINTS, "-100 to 100"),
        Range::Unbounded => (0.0..=MOST, "a number from 0 to 1e9"),
        Range::Real => (-MOST..=MOST, "a number from -1e9 to 1e9"),
    }
}

/// Checked rows of one run.
#[derive(Debug, Clone)]
pub struct Checked<R> {
    /// The rows in the order of their keys; at least one.
    pub rows: Vec<R>,
    /// `true` if an interruption tore the last line, which is left out.
    pub is_torn: bool,
}

/// Reads the rows of results, complete or not, and checks that they are the ones that the signature was completed with.
///
/// # Errors
/// If the file cannot be read, was edited, has no rows, a duplicate row, an impossible number, or rows of several runs.
pub fn read_checked<R: Row>(path: &Path, signature: Option<&Signature>) -> Result<Checked<R>, Error> {
    let bytes = file::read(path)?;
    let table = parse(path, &bytes, false)?;
    let is_torn = table.complete < bytes.len();
    check_complete(path, &bytes, table.rows.len(), signature)?;
    let rows: Vec<R> = table.rows.into_values().collect();
    check_rows(path, &rows)?;
    check_metric(path, &rows[0], signature)?;
    Ok(Checked { rows, is_torn })
}

fn check_metric<R: Row>(path: &Path, row: &R, signature: Option<&Signature>) -> Result<(), Error> {
    let signed = signature.and_then(|signature| signature.measured.as_ref());
    let signed = signed.map(|measured| format!("`{}`", measured.metric));
    let of_row = row.of_run().into_iter().find(|(column, _)| *column == "metric");
    match signed.zip(of_row) {
        Some((signed, (column, found))) if signed != found => Err(Error::Mixed {
            path: path.to_owned(),
            column,
            expected: format!("{signed} in its signature"),
            found: format!("{found} for {}", row.title()),
        }),
        _ => Ok(()),
    }
}

/// Checks each row, that all rows are from one run, the rows of each group, and each row against its predecessor.
pub fn check_rows<R: Row>(path: &Path, rows: &[R]) -> Result<(), Error> {
    let Some(first) = rows.first() else { return Err(Error::of(path, "has no rows yet")) };
    rows.iter().try_for_each(|row| check_row(path, row))?;
    rows.iter().try_for_each(|row| check_same(path, [first, row], Row::of_run))?;
    let mut groups: BTreeMap<String, &R> = BTreeMap::new();
    for row in rows {
        let Some(group) = row.group() else { continue };
        let first = *groups.entry(group).or_insert(row);
        check_same(path, [first, row], Row::of_group)?;
    }
    rows.windows(2).try_for_each(|pair| check_order(path, &pair[0], &pair[1]))
}

fn check_row<R: Row>(path: &Path, row: &R) -> Result<(), Error> {
    let is_outside = |limit: &Limit| limit.value.is_some_and(|value| !limit.allowed.contains(&value));
    match row.limits().into_iter().find(is_outside) {
        Some(Limit { column, value, words, .. }) => {
            Err(range(path, row, (column, value.unwrap_or(f64::NAN), words)))
        }
        None => row.fault().map_or(Ok(()), |fault| {
            Err(Error::Invalid(format!("`{}`: {} is invalid: {fault}", path.display(), row.title())))
        }),
    }
}

/// Checks that two rows agree in these columns.
fn check_same<R: Row>(
    path: &Path,
    [one, other]: [&R; 2],
    columns: fn(&R) -> Vec<(&'static str, String)>,
) -> Result<(), Error> {
    let differs = |((column, expected), (_, found)): ((&'static str, String), (&'static str, String))| {
        (expected != found).then_some((column, expected, found))
    };
    let Some((column, expected, found)) = columns(one).into_iter().zip(columns(other)).find_map(differs)
    else {
        return Ok(());
    };
    Err(Error::Mixed {
        path: path.to_owned(),
        column,
        expected: format!("{expected} for {}", one.title()),
        found: format!("{found} for {}", other.title()),
    })
}

fn check_order<R: Row>(path: &Path, before: &R, row: &R) -> Result<(), Error> {
    row.against(before).map_or(Ok(()), |fault| Err(range(path, row, fault)))
}

/// Returns the error for a number out of range, from its column, its value, and the allowed values.
fn range<R: Row>(path: &Path, row: &R, (column, found, allowed): (&str, f64, &str)) -> Error {
    let (row, found) = (row.title(), shown(found));
    Error::Invalid(format!("`{}`: {column} of {row} is {found}, but it must be {allowed}", path.display()))
}

/// Formats a number without long runs of zeros.
fn shown(number: f64) -> String {
    let is_plain = number == 0.0 || number.is_nan() || (1e-5..1e16).contains(&number.abs());
    if is_plain { number.to_string() } else { format!("{number:e}") }
}
