//! What can go wrong between a results file and a figure.
use std::fmt;
use std::path::PathBuf;

use crate::attention::UnknownAttention;

/// Why a table or figure could not be made. Heads are named like `enc-enc:6:13`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A row names an attention type that does not exist.
    #[error("`{}` is not what `{experiment}` writes", path.display())]
    Attention {
        /// The CSV file.
        path: PathBuf,
        /// The experiment whose file it should be.
        experiment: &'static str,
        /// The name and what is allowed.
        source: UnknownAttention,
    },

    /// Lists of numbers could not be compared.
    #[error("cannot compare the numbers of `{}`", path.display())]
    Compare {
        /// The CSV file.
        path: PathBuf,
        /// Why not.
        source: stats::Error,
    },

    /// The figure could not be drawn.
    #[error("cannot draw the figure: {0}")]
    Draw(String),

    /// The file is not what its runs wrote.
    #[error("`{}` was edited or mixed since it was complete: {found}", path.display())]
    Edited {
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
        /// Value and head of the first row.
        expected: String,
        /// Value and head of the row that differs.
        found: String,
    },

    /// A row names something that does not exist.
    #[error("`{}` is not what `{experiment}` writes: unknown {column} `{found}`: it is one of {allowed}", path.display())]
    Name {
        /// The CSV file.
        path: PathBuf,
        /// The experiment whose file it should be.
        experiment: &'static str,
        /// The column in question.
        column: &'static str,
        /// The name.
        found: String,
        /// What is allowed.
        allowed: String,
    },

    /// No two splits of the subject have been compared.
    #[error("`{}` has no `cross-domain-*.csv`: make one with `cross-domain experiments/{subject}.toml`", folder.display())]
    NoComparison {
        /// The folder of the subject.
        folder: PathBuf,
        /// The subject.
        subject: String,
    },

    /// No checkpoint has a score that others could be percentages of.
    #[error("`{}` has no checkpoint with a score above 0, of which others could be percentages", path.display())]
    NoPercentage {
        /// The CSV file.
        path: PathBuf,
    },

    /// A sweep has no groups of segments, or is of no choices that could be counted in them.
    #[error("`{}` has no groups of choices: its signature must name them, and `ablate-one` store its segments", path.display())]
    NoGroups {
        /// The CSV file.
        path: PathBuf,
    },

    /// The experiment has not been run on this subject.
    #[error("`{}` does not exist: make it with `{experiment} experiments/{subject}.toml`", path.display())]
    NoResults {
        /// The CSV file.
        path: PathBuf,
        /// The command that makes it.
        experiment: &'static str,
        /// The subject.
        subject: String,
    },

    /// The asked attention type has no rows.
    #[error("no rows for attention type {asked}: `{}` has {present}", path.display())]
    NoRows {
        /// The CSV file.
        path: PathBuf,
        /// The type that was asked for.
        asked: &'static str,
        /// The types that are there.
        present: String,
    },

    /// A comparison has no signature that names two splits.
    #[error(
        "the signature of `{}` does not name two splits: make both again with `cross-domain experiments/{subject}.toml`",
        path.display()
    )]
    NoSplits {
        /// The CSV file.
        path: PathBuf,
        /// The subject.
        subject: String,
    },

    /// A file that was named is of another experiment.
    #[error("`{}` is of `{found}`, but this is drawn from results of `{experiment}`", path.display())]
    OtherExperiment {
        /// The CSV file.
        path: PathBuf,
        /// What its signature says.
        found: String,
        /// What was expected.
        experiment: &'static str,
    },

    /// The groups in a signature are not those of the segments.
    #[error("the groups of `{}` have {named} segments, but there are {segments}", path.display())]
    OtherGroups {
        /// The CSV file.
        path: PathBuf,
        /// How many segments the groups have.
        named: usize,
        /// How many there are.
        segments: usize,
    },

    /// A file holds numbers of another run than those beside it.
    #[error(
        "`{}` does not go with {other}: {difference}: make it again with `{command} experiments/{subject}.toml`",
        path.display()
    )]
    OtherRun {
        /// The CSV file.
        path: PathBuf,
        /// The file, or files, beside it.
        other: String,
        /// What is not the same.
        difference: Box<Difference>,
        /// The command that makes the file.
        command: &'static str,
        /// The subject.
        subject: String,
    },

    /// There are no results at all.
    #[error("`{}` has no results to sum up: make some with `ablate-one experiments/<subject>.toml`", results.display())]
    NothingMeasured {
        /// The results folder.
        results: PathBuf,
    },

    /// Rows of one shard, of which nothing can be said without the others.
    #[error("`{}` has the rows of shard {shard} only: `just merge` joins it with the others", path.display())]
    Shard {
        /// The CSV file.
        path: PathBuf,
        /// Which.
        shard: records::Shard,
    },

    /// A published number is missing.
    #[error("`{}` has no row `{what}`", path.display())]
    Published {
        /// The file of published numbers.
        path: PathBuf,
        /// What the number is about.
        what: &'static str,
    },

    /// A number lies outside of what it can be.
    #[error("`{}`: {column} of {head} is {found}, but it must be {range}", path.display())]
    Range {
        /// The CSV file.
        path: PathBuf,
        /// The head of the row.
        head: String,
        /// The column in question.
        column: &'static str,
        /// Its value.
        found: f64,
        /// What is allowed.
        range: &'static str,
    },

    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },

    /// A result file or its signature could not be read; the message is that of `records`.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// A file of published numbers is not a table of them.
    #[error("cannot read `{}`", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Where and why reading it failed.
        source: csv::Error,
    },

    /// The statistics of segments beside a file are damaged.
    #[error("the segments of `{}` cannot be read", path.display())]
    Segments {
        /// The CSV file.
        path: PathBuf,
        /// What is wrong.
        source: Box<significance::Error>,
    },

    /// A subject that is no plain name.
    #[error(
        "`{0}` is not the name of a subject: it is the name of a folder in the results, such as `demo-translation`"
    )]
    SubjectName(String),

    /// One of two sweeps lacks a head of the other.
    #[error(
        "`{}` has no row for {head}, but `{}` has: make both with `cross-domain experiments/{subject}.toml`",
        path.display(), other.display()
    )]
    UnmatchedHead {
        /// The CSV file without the row.
        path: PathBuf,
        /// The head.
        head: String,
        /// The CSV file with the row.
        other: PathBuf,
        /// The subject.
        subject: String,
    },

    /// The split was not compared with another.
    #[error("no comparison with split `{against}`: `{}` has {present}", folder.display())]
    UnknownSplit {
        /// The split that was asked for.
        against: String,
        /// The folder of the subject.
        folder: PathBuf,
        /// The splits that there are.
        present: String,
    },

    /// No folder for the subject.
    #[error("unknown subject `{subject}`: `{}` has {known}; make it with `{experiment} experiments/{subject}.toml`", results.display())]
    UnknownSubject {
        /// The subject that was asked for.
        subject: String,
        /// The results folder.
        results: PathBuf,
        /// The subjects in it.
        known: String,
        /// The command that makes results.
        experiment: &'static str,
    },

    /// A file of one chosen head for each layer has more of a layer.
    #[error("`{}` has {first} and {second}: it must have one head of each layer, the chosen one", path.display())]
    Unchosen {
        /// The CSV file.
        path: PathBuf,
        /// A head.
        first: String,
        /// Another head of its layer.
        second: String,
    },

    /// A file or folder could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
}

impl Error {
    /// Whether it says nothing about other files: what a job leaves behind that is running, was killed or has been done
    /// again in part, and what was edited or is of another version.
    pub fn leaves_others_alone(&self) -> bool {
        match self {
            Self::Edited { .. }
            | Self::Empty { .. }
            | Self::NoGroups { .. }
            | Self::NoPercentage { .. }
            | Self::NoResults { .. }
            | Self::NoSplits { .. }
            | Self::OtherRun { .. }
            | Self::Records(records::Error::Header { .. })
            | Self::UnmatchedHead { .. } => true,
            Self::Compare { source, .. } => *source == stats::Error::TooFew,
            _ => false,
        }
    }
}

/// A value that is another one in the files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What the value is.
    pub entry: String,
    /// The value itself.
    pub found: String,
    /// The value in the other files.
    pub expected: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, found, expected } = self;
        write!(formatter, "{entry} is {found} but {expected} there")
    }
}
