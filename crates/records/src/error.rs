//! What can go wrong with a result file.

use std::io;
use std::path::PathBuf;

/// Why a result file could not be read, continued or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two files of one experiment were measured on models that differ, though nothing was masked.
    #[error(
        "the intact model is not the same in `{}` and `{}` ({fault}): shards must be measured on machines of one kind, with \
         the same libraries",
        other.display(), path.display()
    )]
    BasesDiffer {
        /// A CSV file.
        path: PathBuf,
        /// The one before it.
        other: PathBuf,
        /// How they differ.
        fault: String,
    },

    /// A row with this key is in the file already.
    #[error("`{}` has a row for {key} already: each row is written once", path.display())]
    DuplicateRow {
        /// The CSV file.
        path: PathBuf,
        /// The key, as `Debug` prints it.
        key: String,
    },

    /// Rows are not those that the signature was completed with.
    #[error("`{}` was edited or mixed since it was complete: {found}", path.display())]
    Changed {
        /// The CSV file.
        path: PathBuf,
        /// In what it differs.
        found: String,
    },

    /// The file holds no complete row.
    #[error("`{}` holds no rows yet", path.display())]
    Empty {
        /// The CSV file.
        path: PathBuf,
    },

    /// Two rows disagree on what must be the same in the whole file.
    #[error("`{}` mixes runs: {column} is {expected} but {found}", path.display())]
    Mixed {
        /// The CSV file.
        path: PathBuf,
        /// The column in question.
        column: &'static str,
        /// Its value in one row, and the row.
        expected: String,
        /// The same of the row that differs.
        found: String,
    },

    /// A number lies outside of what it can be.
    #[error("`{}`: {column} of {row} is {}, but it must be {range}", path.display(), shown(*found))]
    Range {
        /// The CSV file.
        path: PathBuf,
        /// What the row is called.
        row: String,
        /// The column in question.
        column: &'static str,
        /// Its value.
        found: f64,
        /// What is allowed.
        range: &'static str,
    },

    /// A row contradicts itself.
    #[error("`{}`: {row} cannot be: {fault}", path.display())]
    Row {
        /// The CSV file.
        path: PathBuf,
        /// What the row is called.
        row: String,
        /// What is wrong.
        fault: String,
    },

    /// Rows or statistics are not those that the signature was completed with.
    #[error("`{}` was edited, or mixed with another file, since it was complete: --again computes it anew", path.display())]
    Edited {
        /// The file.
        path: PathBuf,
    },

    /// The results file is not named `*.csv`, so its signature has no name either.
    #[error("cannot write results to `{}`: the name must end in `.csv`, and not in `.partial.csv`", path.display())]
    Extension {
        /// The path that was asked for.
        path: PathBuf,
    },

    /// The file holds another kind of rows.
    #[error("`{}` does not begin with the header of these results: {fault}", path.display())]
    Header {
        /// The CSV file.
        path: PathBuf,
        /// What is wrong with its first line.
        fault: String,
    },

    /// The rows in the file come from a run whose numbers this run cannot continue.
    #[error(
        "`{}` belongs to another run ({differences}): --again replaces it, --output names another file",
        path.display()
    )]
    Identity {
        /// The CSV file.
        path: PathBuf,
        /// Each differing entry with its value in the file and its value now.
        differences: String,
    },

    /// Another process is writing the file.
    #[error("`{}` is being written by another process: wait for it or name another output", path.display())]
    InUse {
        /// The CSV file.
        path: PathBuf,
    },

    /// A line in the file is not a complete row.
    #[error("`{}`, line {line}, is not a row of this file: {reason}", path.display())]
    Line {
        /// The CSV file.
        path: PathBuf,
        /// Line in the file, counted from 1; the header is line 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },

    /// There are rows, but no signature says which run they belong to.
    #[error(
        "`{}` has rows, but its signature `{}` is missing: move it away, or name another file by --output",
        path.display(), signature.display()
    )]
    NoSignature {
        /// The CSV file.
        path: PathBuf,
        /// Where the signature was expected.
        signature: PathBuf,
    },

    /// The path names something that cannot hold results.
    #[error("cannot write results to `{}`: it is not a regular file", path.display())]
    NotAFile {
        /// The path that was asked for.
        path: PathBuf,
    },

    /// Rows of an older version have no statistics of segments, so they could not be tested beside new ones.
    #[error("`{}` has no statistics of segments, without which nothing can be tested: --again measures it anew", path.display())]
    NotMeasured {
        /// The CSV file.
        path: PathBuf,
    },

    /// The intact model scores other than when the rows that are there were measured.
    #[error(
        "the intact model differs in {segments} of {of} segments from when `{}` was begun, on another machine or with other \
         libraries: compute all rows with --again, remove the file, or name another by --output",
        path.display()
    )]
    OtherBase {
        /// The CSV file.
        path: PathBuf,
        /// Segments that differ.
        segments: usize,
        /// Segments in all.
        of: usize,
    },

    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },

    /// A file is not one of statistics of segments, or not a whole one.
    #[error("`{}` does not hold the statistics of segments: {fault}", path.display())]
    Segments {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },

    /// Two files of one experiment have a row that is not the same.
    #[error("row `{row}` is not the same in `{}` and `{}`: remove the one that is wrong", other.display(), path.display())]
    RowsDiffer {
        /// Name of the row.
        row: String,
        /// A CSV file.
        path: PathBuf,
        /// The one before it.
        other: PathBuf,
    },

    /// A signature has settings that no test can be made with.
    #[error(
        "`{}` asks for {resamples} resamples and a margin of {margin_percent} %: at most {most} and 100 % are possible",
        path.display(), most = stats::family::MOST_RESAMPLES
    )]
    Testing {
        /// The JSON file.
        path: PathBuf,
        /// What it says.
        resamples: usize,
        /// What it says.
        margin_percent: f64,
    },

    /// A JSON file is not a signature.
    #[error("`{}` is not the signature of a run", path.display())]
    Signature {
        /// The JSON file.
        path: PathBuf,
        /// Where and why reading it failed.
        source: serde_json::Error,
    },

    /// Results cannot be tested while a run is adding to them.
    #[error("`{}` is an unfinished run: give its command again to finish it, or remove the file", path.display())]
    Unfinished {
        /// The growing CSV file.
        path: PathBuf,
    },

    /// A file or folder could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

/// A number without long rows of zeros.
fn shown(number: f64) -> String {
    let is_plain = number == 0.0 || number.is_nan() || (1e-5..1e16).contains(&number.abs());
    if is_plain { number.to_string() } else { format!("{number:e}") }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, -1.25, 1e15, 1e308, 1e-300, f64::NAN, f64::INFINITY];
        assert_eq!(numbers.map(shown), ["0", "-1.25", "1000000000000000", "1e308", "1e-300", "NaN", "inf"]);
    }
}
