//! The rows of `speed-bench`, read and checked (Michel et al. 2019, Section 4.3).
use std::path::Path;

use records::SpeedRow;

use crate::Error;
use crate::check;
use crate::result_file::ResultFile;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "speed-bench";

/// More of anything but arithmetic than this is a fault.
const MOST: f64 = 1e9;

/// How fast a model is with all its heads and without some.
#[derive(Debug, Clone)]
pub struct Speed {
    /// The file that the rows are from.
    pub file: ResultFile,
    /// By number of removed heads, then by batch size; at least one.
    rows: Vec<SpeedRow>,
}

impl Speed {
    /// Reads a file of `speed-bench`.
    ///
    /// # Errors
    /// If the file is missing or damaged, or its rows are not of one model.
    pub fn read(file: ResultFile) -> Result<Self, Error> {
        let rows = file.rows()?;
        Self::from_rows(file, rows)
    }

    /// Checks rows that come from `file`.
    ///
    /// # Errors
    /// If there are none or they are not of one model.
    pub fn from_rows(file: ResultFile, mut rows: Vec<SpeedRow>) -> Result<Self, Error> {
        let path = &file.path;
        let Some(first) = rows.first().cloned() else { return Err(Error::Empty { path: path.clone() }) };
        for row in &rows {
            check_numbers(path, row)?;
            let heads = |row: &SpeedRow| row.heads.to_string();
            check::same(path, [&first, row], ("heads", heads), name)?;
            let original = |row: &SpeedRow| row.original_parameters.to_string();
            check::same(path, [&first, row], ("original_parameters", original), name)?;
            let alike = rows.iter().find(|other| other.removed == row.removed).unwrap_or(row);
            let pruned = |row: &SpeedRow| row.pruned_parameters.to_string();
            check::same(path, [alike, row], ("pruned_parameters", pruned), name)?;
        }
        rows.sort_by_key(|row| (row.removed, row.batch_size));
        Ok(Self { file, rows })
    }

    /// The rows by number of removed heads, each by batch size.
    pub fn shares(&self) -> impl Iterator<Item = &[SpeedRow]> {
        self.rows.chunk_by(|left, right| left.removed == right.removed)
    }

    /// Whether each share has the batch sizes of the others, and no run was killed or is going on.
    pub fn is_finished(&self) -> bool {
        let sizes = |rows: &[SpeedRow]| rows.iter().map(|row| row.batch_size).collect::<Vec<_>>();
        let mut shares = self.shares().map(sizes);
        let first = shares.next();
        shares.all(|other| Some(other) == first) && !self.file.origin.is_unfinished()
    }
}

fn check_numbers(path: &Path, row: &SpeedRow) -> Result<(), Error> {
    // Rounding may put the mean of equal passes beside the ends of an interval of no length.
    let (low, high) = (row.ratio_low * (1.0 - 1e-9), row.ratio_high * (1.0 + 1e-9));
    let limits = [
        ("heads", row.heads as f64, 1.0..=1e5, "1 to 100000"),
        ("removed", row.removed as f64, 0.0..=row.heads as f64, "at most `heads`"),
        ("batch_size", row.batch_size as f64, 1.0..=MOST, "at least 1"),
        ("segments", row.segments as f64, 1.0..=MOST, "at least 1"),
        ("tokens", row.tokens as f64, 1.0..=f64::MAX, "at least 1"),
        ("repeats", row.repeats as f64, 1.0..=MOST, "at least 1"),
        ("original_per_second", row.original_per_second, 1e-9..=MOST, "above 0 and finite"),
        ("original_deviation", row.original_deviation, 0.0..=MOST, "0 or above and finite"),
        ("pruned_per_second", row.pruned_per_second, 1e-9..=MOST, "above 0 and finite"),
        ("pruned_deviation", row.pruned_deviation, 0.0..=MOST, "0 or above and finite"),
        ("ratio_low", row.ratio_low, 1e-9..=MOST, "above 0 and finite"),
        ("ratio_high", row.ratio_high, 1e-9..=MOST, "above 0 and finite"),
        ("ratio", row.ratio, low..=high, "within `ratio_low` and `ratio_high`"),
        ("neighbours", row.neighbours.unwrap_or(0.0), 0.0..=1.0, "0 to 1"),
        ("predicted_ratio", row.predicted_ratio, 1e-9..=MOST, "above 0 and finite"),
        ("original_multiply_adds", row.original_multiply_adds as f64, 1.0..=f64::MAX, "at least 1"),
        ("original_parameters", row.original_parameters as f64, 1.0..=f64::MAX, "at least 1"),
    ];
    let fault = limits.into_iter().find(|(_, value, allowed, _)| !allowed.contains(value));
    fault.map_or(Ok(()), |(column, found, _, range)| {
        Err(Error::Range { path: path.to_owned(), head: name(row), column, found, range })
    })
}

/// What messages call a row: `36 removed heads in batches of 4`.
fn name(row: &SpeedRow) -> String {
    format!("{} removed heads in batches of {}", row.removed, row.batch_size)
}

#[cfg(test)]
pub(crate) mod tests {
    use records::Identity;

    use super::*;
    use crate::origin::tests::origin;
    use crate::test_rows::file;

    /// A row of 9 segments in 5 passes: 100 a second, without `removed` of 72 heads 10 % more.
    pub(crate) fn row(removed: usize, batch_size: usize) -> SpeedRow {
        SpeedRow {
            removed,
            heads: 72,
            batch_size,
            segments: 9,
            tokens: 45,
            repeats: 5,
            original_per_second: 100.0,
            original_deviation: 2.0,
            pruned_per_second: 110.0,
            pruned_deviation: 3.0,
            ratio: 1.1,
            ratio_low: 1.05,
            ratio_high: 1.15,
            neighbours: Some(0.0),
            predicted_ratio: 1.25,
            original_multiply_adds: 9_000_000,
            pruned_multiply_adds: 7_200_000,
            original_parameters: 4_000_000,
            pruned_parameters: 3_000_000,
            original_peak_bytes: None,
            pruned_peak_bytes: None,
            removed_heads: String::new(),
        }
    }

    pub(crate) fn speed(rows: Vec<SpeedRow>) -> Speed {
        Speed::from_rows(file(), rows).unwrap()
    }

    fn message(rows: Vec<SpeedRow>) -> String {
        Speed::from_rows(file(), rows).unwrap_err().to_string()
    }

    #[test]
    fn rows_come_by_share_and_batch_size() {
        let speed = speed(vec![row(36, 4), row(18, 4), row(36, 1)]);
        let found: Vec<Vec<_>> = speed
            .shares()
            .map(|rows| rows.iter().map(|row| (row.removed, row.batch_size)).collect())
            .collect();
        assert_eq!(found, [vec![(18, 4)], vec![(36, 1), (36, 4)]]);
    }

    #[test]
    fn shares_without_all_batch_sizes_are_not_finished() {
        assert!(speed(vec![row(36, 1), row(36, 4)]).is_finished());
        assert!(!speed(vec![row(36, 1), row(36, 4), row(18, 1)]).is_finished());
        assert!(!speed(vec![row(36, 1), row(18, 4)]).is_finished());
        let run = |is_finished| {
            let origin = origin(Identity::new(EXPERIMENT, "demo-x"), is_finished);
            let mut speed = speed(vec![row(36, 1)]);
            speed.file.origin = origin;
            speed.is_finished()
        };
        assert!(run(true) && !run(false));
    }

    #[test]
    fn rows_of_two_models_are_refused() {
        let other = SpeedRow { heads: 144, ..row(36, 4) };
        let expected = "`a.csv` mixes runs: heads is 72 for 36 removed heads in batches of 1 but 144 for \
                        36 removed heads in batches of 4";
        assert_eq!(message(vec![row(36, 1), other]), expected);
        let other = SpeedRow { original_parameters: 5, ..row(18, 4) };
        assert!(message(vec![row(36, 1), other]).contains("original_parameters is 4000000 for 36 removed"));
        let smaller = |removed, batch_size| SpeedRow { pruned_parameters: 2, ..row(removed, batch_size) };
        let found = message(vec![row(18, 1), smaller(36, 1), row(36, 4)]);
        assert!(found.contains("pruned_parameters is 2 for 36 removed heads in batches of 1 but"), "{found}");
        assert_eq!(speed(vec![row(18, 1), smaller(36, 1)]).shares().count(), 2);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let faulty = |change: fn(&mut SpeedRow)| {
            let mut row = row(36, 4);
            change(&mut row);
            message(vec![row])
        };
        let found = faulty(|row| row.ratio = f64::NAN);
        let expected = "`a.csv`: ratio of 36 removed heads in batches of 4 is NaN, but it must be within `ratio_low` and \
                        `ratio_high`";
        assert_eq!(found, expected);
        assert!(faulty(|row| row.ratio = 1.2).contains("ratio of 36 removed heads in batches of 4 is 1.2"));
        assert!(faulty(|row| row.original_per_second = f64::INFINITY).contains("must be above 0 and finite"));
        assert!(faulty(|row| row.pruned_per_second = 0.0).contains("pruned_per_second"));
        assert!(faulty(|row| row.pruned_deviation = -1.0).contains("must be 0 or above and finite"));
        assert!(faulty(|row| row.original_deviation = f64::NAN).contains("original_deviation"));
        assert!(faulty(|row| row.ratio_low = f64::NAN).contains("ratio_low"));
        assert!(faulty(|row| row.ratio_high = f64::NAN).contains("ratio_high"));
        assert!(faulty(|row| row.predicted_ratio = f64::INFINITY).contains("predicted_ratio"));
        assert!(faulty(|row| row.removed = 73).contains("is 73, but it must be at most `heads`"));
        assert!(faulty(|row| row.heads = 0).contains("must be 1 to 100000"));
        assert!(faulty(|row| row.batch_size = 0).contains("batch_size"));
        assert!(faulty(|row| row.segments = 0).contains("segments"));
        assert!(faulty(|row| row.tokens = 0).contains("tokens"));
        assert!(faulty(|row| row.repeats = 0).contains("repeats"));
        assert!(faulty(|row| row.neighbours = Some(1.5)).contains("neighbours"));
        assert!(faulty(|row| row.neighbours = Some(f64::NAN)).contains("must be 0 to 1"));
        assert!(faulty(|row| row.original_multiply_adds = 0).contains("original_multiply_adds"));
        assert!(faulty(|row| row.original_parameters = 0).contains("original_parameters"));
        assert!(message(vec![]).contains("holds no rows yet"));
    }

    /// A mean of logarithms may round to just above an interval of no length.
    #[test]
    fn an_interval_without_length_holds_its_middle() {
        let equal = SpeedRow { ratio: 1.0 + f64::EPSILON, ratio_low: 1.0, ratio_high: 1.0, ..row(36, 1) };
        assert_eq!(speed(vec![equal]).shares().count(), 1);
    }
}
