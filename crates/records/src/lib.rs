//! Result files: CSV rows, a writer that survives being killed, and the signature of a run.
//!
//! Each experiment writes one CSV file of one [row type](rows), through a [`RowWriter`], with a [`Signature`] in JSON and the [statistics
//! of its segments](segments) next to it. A finished CSV file does not depend on the order of work or on interruptions: equal runs give
//! equal bytes. Therefore times are in the signature, and speeds in [separate files](SpeedRow).

pub mod check;
mod error;
mod file;
mod order;
mod place;
pub mod rows;
pub mod segments;
mod shard;
pub mod signature;
mod stands_for;
mod stored;
mod sum;
mod table;
pub mod verdicts;
pub mod writer;

pub use check::{Checked, read_checked};
pub use error::Error;
pub use heads::{Attention, AttentionMaps, HeadId, HeadSet, Measure, Scope, UnknownName};
pub use order::{FLOOR, Order};
pub use place::{Held, Taken, taken};
pub use rows::{
    AblationRow, AuditRow, BASE, CorrelationRow, Cost, CurveId, CurveRow, DynamicsRow, GateRow,
    HeadFunctionRow, LlamaCppRow, Method, RelevanceRow, Repair, Row, ScoreRow, SpeedRow, TestedRow,
    TrainingRow,
};
pub use segments::{Block, Blocks, first_order_name, row_of};
pub use shard::{Part, Shard, is_shard, shards_in, shards_of};
/// Metric of the scores of rows.
pub use stats::MetricName;
pub use verdicts::{Rule, Verdict, Verdicts};

pub use signature::{
    CLUSTERS, Complete, Identity, Measured, Provenance, Signature, Testing, UNTIL_DECIDED, UntilDecided,
    limit_suffix, sha256_file,
};
pub use stands_for::StandsFor;
pub use stored::Stored;
pub use sum::Sum;
pub use table::{columns, read_complete, read_rows, read_signed};
pub use writer::{RowWriter, check_writable};
