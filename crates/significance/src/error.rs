//! What can go wrong with tests and shards.

use std::path::PathBuf;

use records::MetricName;

/// Why rows could not be tested, or shards not be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Rows that shards were to measure are not there.
    #[error("`{}` cannot be made yet, {rows} rows are missing: {described}", path.display())]
    Incomplete {
        /// The CSV file that the shards are to become.
        path: PathBuf,
        /// How many.
        rows: usize,
        /// Which, of which shards.
        described: String,
    },

    /// The signature has F1 without its positive class, or another metric with one.
    #[error(
        "the signature has `{metric}` with the wrong `positive`: f1 has a positive class there, no other metric has"
    )]
    Positive {
        /// The metric.
        metric: MetricName,
    },

    /// A head of one split has no row on the other.
    #[error("there is no row for `{row}` on the second split")]
    NoRow {
        /// Name of the row.
        row: String,
    },

    /// A file has the name of a shard, but is none.
    #[error("`{}` has the name of a shard, but its signature does not say so: move it away", path.display())]
    NoShard {
        /// The CSV file.
        path: PathBuf,
    },

    /// Rows of a shard that would be lost.
    #[error("rows of `{}` cannot be joined with those of other shards: they were compared with another base", path.display())]
    NotJoined {
        /// The CSV file.
        path: PathBuf,
    },

    /// There is nothing to join.
    #[error("there are no shards of `{}` with rows", path.display())]
    NoShards {
        /// The CSV file that they would become.
        path: PathBuf,
    },

    /// Steps of a curve mask heads by different orders.
    #[error(
        "row `{row}` does not mask all heads of `{before}`: the shards ordered them differently, on different machines or with \
         different libraries; measure the curve again"
    )]
    OtherOrder {
        /// Name of the row.
        row: String,
        /// Name of an earlier step.
        before: String,
    },

    /// Two files are of different runs.
    #[error(
        "`{}` and `{}` are of different runs ({differences}): remove those that are not wanted, or merge them elsewhere",
        other.display(), path.display()
    )]
    OtherRun {
        /// A CSV file.
        path: PathBuf,
        /// The one before it.
        other: PathBuf,
        /// How they differ; the file is the other one, now is this.
        differences: String,
    },

    /// Two shards are to be tested differently.
    #[error(
        "`{}` and `{}` are to be tested with different --resamples, --margin or --seed: give one of the commands again with \
         those of the other",
        other.display(), path.display()
    )]
    OtherTests {
        /// A CSV file.
        path: PathBuf,
        /// The one before it.
        other: PathBuf,
    },

    /// The file of one shard, where those of all are needed.
    #[error("`{}` is one shard: `merge` joins it with the others, and tests them together", path.display())]
    Shard {
        /// The CSV file.
        path: PathBuf,
    },

    /// A shard is being written.
    #[error("shard {shard} is still being written (`{}`): merge when its run has ended", path.display())]
    ShardInUse {
        /// Which.
        shard: records::Shard,
        /// Its growing CSV file.
        path: PathBuf,
    },

    /// Two sweeps are not of one model, or not those that were compared.
    #[error(
        "`{}` is of another model, other data or other settings than `{}`: --again measures it",
        path.display(), other.display()
    )]
    OtherSweep {
        /// The CSV file of a sweep.
        path: PathBuf,
        /// What it does not fit.
        other: PathBuf,
    },

    /// A comparison does not lie beside the sweeps that it was made of.
    #[error(
        "`{}` compares `{}`, which is not beside it: move it there, or give the command that made it again",
        path.display(), sweep.display()
    )]
    SweepElsewhere {
        /// The CSV file of the comparison.
        path: PathBuf,
        /// Name of the CSV file of a sweep.
        sweep: PathBuf,
    },

    /// A result file has no statistics of segments.
    #[error("`{}` has no statistics of segments: --again measures them", path.display())]
    NotMeasured {
        /// The CSV file.
        path: PathBuf,
    },

    /// A row has no statistics, or broken ones.
    #[error("row `{row}` cannot be tested: {fault}")]
    Row {
        /// Name of the row.
        row: String,
        /// What is wrong.
        fault: String,
    },

    /// A stored score is not that of the stored segments.
    #[error("row `{row}` has the score {stored}, but its segments make {found}")]
    Score {
        /// Name of the row.
        row: String,
        /// In the CSV file.
        stored: f64,
        /// From the segments.
        found: f64,
    },

    /// A file could not be read or written.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// A statistic could not be computed.
    #[error(transparent)]
    Stats(#[from] stats::Error),
}
