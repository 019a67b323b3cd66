//! Rows along an order of heads.
use core_masking::HeadSet;
use records::TestedRow;

use crate::error::Error;

/// Refuses to go on with a curve that came from another order of heads, such as that of an oracle measured since.
///
/// - `stored`: the heads that a row which is there names
/// - `now`: those that it would mask now; none if the curve has no such step any more
///
/// # Errors
/// If they differ.
pub fn check_heads(row: &impl TestedRow, stored: &str, now: Option<&HeadSet>) -> Result<(), Error> {
    match now {
        Some(now) if now.names() == stored => Ok(()),
        _ => Err(Error::input(format!(
            "row `{}` masked other heads than now: compute it again with --again",
            row.name()
        ))),
    }
}
