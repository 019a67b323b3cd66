//! A check on rows that files of several experiments share.
use std::path::Path;

use crate::Error;

/// Refuses two rows of one file that differ in a column in which they must not; `name` is what messages call a row.
///
/// # Errors
/// If they do.
pub(crate) fn same<R>(
    path: &Path,
    [one, other]: [&R; 2],
    (column, value): (&'static str, impl Fn(&R) -> String),
    name: impl Fn(&R) -> String,
) -> Result<(), Error> {
    let (expected, found) = (value(one), value(other));
    if expected == found {
        return Ok(());
    }
    let describe = |value, row| format!("{value} for {}", name(row));
    Err(Error::Mixed {
        path: path.to_owned(),
        column,
        expected: describe(expected, one),
        found: describe(found, other),
    })
}
