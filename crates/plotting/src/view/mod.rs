//! Views: data and published numbers in, tables and charts out. No file, no drawing.
pub mod agreement;
pub mod all_heads;
pub mod best_heads;
pub mod claim;
pub mod comparison;
pub mod contrasts;
pub mod cross_domain;
pub mod curve;
pub mod dynamics;
pub mod film;
pub mod functions;
pub mod gates;
pub mod groups;
pub mod heat_map;
pub mod histogram;
pub mod pruning_curves;
pub mod pruning_table;
pub mod retrained;
pub mod single_heads;
pub mod speed;
pub mod summary;
pub mod training_log;
pub mod verdicts;

use records::TestedRow;

use crate::judge::Criterion;
use crate::paper::Paper;
use crate::table::Cell;
use crate::words::Metric;

/// What views need beside the results: when a difference is significant, and what the paper has, if it is at hand.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub criterion: Criterion,
    pub paper: Option<&'a Paper>,
}

/// What bands around curves are of.
const BANDS: &str =
    "bands: 95 % intervals of the change from the base, drawn around the score, each step by itself";

/// The sentences that hold.
fn that_hold<const N: usize>(sentences: [(bool, String); N]) -> impl Iterator<Item = String> {
    sentences.into_iter().filter(|(holds, _)| *holds).map(|(_, sentence)| sentence)
}

/// `35.91 [-0.35, +0.08]`: a score with the 95 % interval of its change, marked where it is significantly worse.
fn scored(metric: &Metric, row: &impl TestedRow, context: Context<'_>) -> Cell {
    let tests = row.tests();
    let ends = tests.delta_low.zip(tests.delta_high);
    let ends = ends.map(|(low, high)| format!(" [{}, {}]", metric.change(low), metric.change(high)));
    let text = metric.amount(tests.score) + &ends.unwrap_or_default();
    Cell::number(text, tests.score).marked(context.criterion.is_loss(row))
}
