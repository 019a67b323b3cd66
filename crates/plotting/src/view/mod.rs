//! Views: data and published numbers in, tables and charts out. No file, no drawing.
pub mod agreement;
pub mod all_heads;
pub mod best_heads;
pub mod claim;
pub mod comparison;
pub mod cross_domain;
pub mod curve;
pub mod dynamics;
pub mod film;
pub mod functions;
pub mod gates;
pub mod groups;
pub mod heat_map;
pub mod pruning_curves;
pub mod pruning_table;
pub mod single_heads;
pub mod speed;
pub mod summary;
pub mod training_log;
pub mod verdicts;

use records::TestedRow;

use crate::judge::Criterion;
use crate::paper::Paper;
use crate::table::Cell;
use crate::words::{Metric, short};

/// What views need beside the results: when a difference is significant, and what the papers have.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub criterion: Criterion,
    pub paper: &'a Paper,
}

/// What bands around curves are of.
const BANDS: &str =
    "bands: 95 % intervals of the change from the base, drawn around the score, each step by itself";

/// `35.91 [-0.35, +0.08]`: a score with the 95 % interval of its change, marked where it is significantly worse.
fn scored(row: &impl TestedRow, context: Context<'_>) -> Cell {
    let (metric, tests) = (Metric::new(row.metric()), row.tests());
    let ends = metric.brackets(row.delta_interval());
    Cell::number(metric.amount(tests.score) + &ends, tests.score).marked(context.criterion.is_loss(row))
}

/// What a mark on such a score means; `than` is what it is compared with.
fn significantly_worse(metric: &Metric, than: &str, context: Context<'_>) -> String {
    format!("significantly {} {than} (p < {})", metric.worse_side(), short(context.criterion.alpha))
}
