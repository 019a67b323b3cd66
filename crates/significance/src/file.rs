//! Retesting of result files.

use std::path::{Path, PathBuf};

use heads::experiment::Rows;
use records::signature::{Measured, Testing};
use records::verdicts::Rule;
use records::{
    AblationRow, AuditRow, Blocks, CorrelationRow, CurveRow, DynamicsRow, GateRow, Held, Identity, Order,
    Row, Signature, Stored, TestedRow,
};
use serde_json::Value;

use stats::Metric;
use stats::swaps::smallest_p_value;

use crate::agreement::{Sweep, agreement, no_row};
use crate::{Error, metric_of, rows_of, test_rows};

/// Outcome of testing a file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Retested {
    /// The rows were tested.
    Tested {
        /// The CSV file.
        path: PathBuf,
        /// Number of rows.
        rows: usize,
        /// Shares of dispensable heads, for pruning curves.
        shares: Vec<Share>,
    },
    /// There are no statistics of segments for a test.
    NotMeasured {
        /// The CSV file.
        path: PathBuf,
    },
}

/// Share of the heads of a pruning curve that can be masked.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The curve, such as `all/importance`.
    pub curve: String,
    /// Number of heads that could be masked.
    pub heads: usize,
    /// Number of masked heads that are dispensable together; `None` if the curve does not start at the full model.
    pub dispensable: Option<usize>,
    /// Number of masked heads without a significant loss, the paper's rule.
    pub without_loss: Option<usize>,
    /// `true` if the heads were ordered by the tested segments. Then chance affects the order too, and the shares do not generalise to
    /// other segments.
    pub is_ordered_by_tested_segments: bool,
}

/// Tests a result file again, and replaces it with the outcome.
///
/// - `change`: returns the new settings, given the old ones
///
/// # Errors
/// If the file does not exist, cannot be read or written, is unfinished, or its statistics are missing or broken; for a comparison also if
/// the compared sweeps are not in its folder, or have changed.
pub fn retest(path: &Path, change: impl Fn(Testing) -> Testing) -> Result<Retested, Error> {
    std::fs::metadata(path).map_err(|source| records::Error::Read { path: path.to_owned(), source })?;
    let files = Held::take(path)?; // before anything is read: a killed process may have been publishing
    let not_measured = || Ok(Retested::NotMeasured { path: path.to_owned() });
    let Some(signature) = Signature::read(&Signature::path_beside(path))? else { return not_measured() };
    if signature.part.is_some() {
        let path = path.display();
        let fault = format!("`{path}` is a single shard: `merge` joins all shards and tests them together");
        return Err(Error::Invalid(fault));
    }
    let Some(testing) = signature.testing.map(change) else { return not_measured() };
    if rows_of(&signature.identity.experiment) == Rows::Correlation {
        return retest_agreement(path, &files, &signature, testing);
    }
    let Some(measured) = &signature.measured else { return not_measured() };
    let (rows, shares) = match rows_of(&signature.identity.experiment) {
        Rows::Curve => {
            let rows = replace::<CurveRow>(path, &files, testing, test_rows)?;
            (rows.len(), shares(&rows, testing, (measured, &signature.identity)))
        }
        Rows::Dynamics => (replace::<DynamicsRow>(path, &files, testing, test_rows)?.len(), Vec::new()),
        Rows::Gates => (replace::<GateRow>(path, &files, testing, test_rows)?.len(), Vec::new()),
        Rows::Audit => (replace::<AuditRow>(path, &files, testing, test_rows)?.len(), Vec::new()),
        Rows::Ablation => (replace::<AblationRow>(path, &files, testing, test_rows)?.len(), Vec::new()),
        Rows::Correlation | Rows::Untested => return not_measured(),
    };
    Ok(Retested::Tested { path: path.to_owned(), rows, shares })
}

/// Tests complete results with these settings, using `complete`, and returns the rows that replace them.
fn replace<R: Row>(
    path: &Path,
    files: &Held,
    testing: Testing,
    complete: impl FnOnce(&mut [R], &mut Blocks, &mut Signature) -> Result<(), Error>,
) -> Result<Vec<R>, Error> {
    files.check_finished::<R>()?;
    let none = || Error::Invalid(format!("`{}` has no rows", path.display()));
    let Stored { rows, mut blocks, mut signature, .. } = Stored::<R>::complete(path)?.ok_or_else(none)?;
    let mut rows: Vec<R> = rows.into_values().collect();
    signature.testing = Some(testing);
    complete(&mut rows, &mut blocks, &mut signature)?;
    if !files.has(&rows, &signature)? {
        files.publish(&rows, &blocks, signature)?;
    }
    Ok(rows)
}

/// Name of the arguments of a comparison for the sweep of its second split, if they differ from those for the first.
pub const AGAINST_ARGUMENTS: &str = "against_arguments";

/// Repeats the comparison of the sweeps that the signature names.
fn retest_agreement(
    path: &Path,
    files: &Held,
    signature: &Signature,
    testing: Testing,
) -> Result<Retested, Error> {
    let file = |argument: &str| match signature.identity.arguments.get(argument) {
        Some(Value::String(name)) if Path::new(name).components().count() == 1 => {
            Some(path.with_file_name(name))
        }
        _ => None,
    };
    let (Some(first), Some(second)) = (file("first_file"), file("second_file")) else {
        return Ok(Retested::NotMeasured { path: path.to_owned() });
    };
    if let Some(missing) = [&first, &second].into_iter().find(|sweep| !sweep.exists()) {
        let (path, sweep) = (path.display(), missing.file_name().unwrap_or_default().display());
        return Err(Error::Invalid(format!(
            "`{path}` compares `{sweep}`, which is not in its folder: move it there, or repeat the command that wrote it"
        )));
    }
    let (first, second) = (Sweep::read(&first)?, Sweep::read(&second)?);
    let identity = &signature.identity;
    let against = identity.arguments.get("against").and_then(Value::as_str).unwrap_or_default();
    let of_second = identity.arguments.get(AGAINST_ARGUMENTS).and_then(Value::as_object);
    let of_second =
        of_second.map(|own| own.iter().map(|(name, value)| (name.clone(), value.clone())).collect());
    first.check_fits(path, identity, (&identity.split, &identity.arguments))?;
    second.check_fits(path, identity, (against, of_second.as_ref().unwrap_or(&identity.arguments)))?;
    let found = agreement(&first, &second, testing)?;
    let rows = replace::<CorrelationRow>(path, files, testing, |rows, _, _| {
        for row in rows.iter_mut() {
            let of_type = found.iter().find(|found| found.attention == row.attention);
            row.clone_from(of_type.ok_or_else(|| no_row(row.attention))?);
        }
        Ok(())
    })?;
    Ok(Retested::Tested { path: path.to_owned(), rows: rows.len(), shares: Vec::new() })
}

/// Returns the shares of dispensable heads for each curve of models that were not repaired.
fn shares(rows: &[CurveRow], testing: Testing, (measured, identity): (&Measured, &Identity)) -> Vec<Share> {
    let estimated_on = identity.arguments.get("estimate_on").and_then(Value::as_str);
    let dispensable = Rule::Dispensable { margin_percent: testing.margin_percent };
    let is_resampled = metric_of(measured).is_ok_and(Metric::is_resampled);
    let smallest_p_value = if is_resampled { smallest_p_value(testing.resamples) } else { 0.0 };
    let paper = Rule::NoSignificantLoss { alpha: records::verdicts::ALPHA, smallest_p_value };
    let curves = rows.chunk_by(|left, right| left.family() == right.family());
    let share = |curve: &[CurveRow]| Share {
        curve: curve[0].family(),
        heads: curve[0].heads,
        dispensable: dispensable.last_accepted(curve).map(|row| row.masked),
        without_loss: paper.last_accepted(curve).map(|row| row.masked),
        is_ordered_by_tested_segments: curve[0].order.is_made_on(Some(&identity.split), estimated_on),
    };
    let is_meant = |row: &CurveRow| !row.complement && row.order != Order::Floor && !row.is_repaired();
    curves.filter(|curve| is_meant(&curve[0])).map(share).collect()
}
