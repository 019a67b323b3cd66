//! Views: data and published numbers in, tables and charts out. No file, no drawing.
pub mod agreement;
pub mod best_heads;
pub mod cross_domain;
pub mod dynamics;
pub mod gates;
pub mod groups;
pub mod heat_map;
pub mod histogram;
pub mod pruning_curves;
pub mod pruning_table;
pub mod single_heads;
pub mod speed;
pub mod summary;

use crate::judge::Criterion;
use crate::paper::Paper;

/// What views need beside the results: when a difference is significant, and what the paper has, if it is at hand.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub criterion: Criterion,
    pub paper: Option<&'a Paper>,
}

/// The sentences that hold.
fn that_hold<const N: usize>(sentences: [(bool, String); N]) -> impl Iterator<Item = String> {
    sentences.into_iter().filter(|(holds, _)| *holds).map(|(_, sentence)| sentence)
}
