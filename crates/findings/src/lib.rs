//! What the results of experiments say: rows that `records` has checked, with what can be asked of them. Nothing is drawn here.
//!
//! [`source`] finds result files, [`results::Results`] has the rows of one, and a module for each experiment says what its rows
//! mean: which curve is which, which head of a layer is the best one, whether two files are of the same model. [`judge`] decides
//! which heads matter and which can go, [`paper`] has all published numbers, and [`subject::Subject`] everything that was measured
//! on one subject. A fault in one file does not keep others from being shown: [`error::LeftOut`].
pub mod best_heads;
pub mod contrasts;
pub mod described;
pub mod dynamics;
pub mod error;
pub mod functions;
pub mod gates;
pub mod groups;
pub mod importance;
pub mod judge;
pub mod metric;
pub mod orders;
pub mod origin;
pub mod pair;
pub mod paper;
pub mod pruning;
pub mod results;
pub mod retrained;
pub mod same_model;
pub mod segments;
pub mod source;
pub mod speed;
pub mod subject;
pub mod sweep;
pub mod tasks;
pub mod time;

pub use error::{Error, Result};

/// Made-up results, which tests read.
#[cfg(test)]
fn tiny() -> source::Folders {
    let folder = |name| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support").join(name);
    source::Folders { results: folder("results"), experiments: folder("experiments") }
}
