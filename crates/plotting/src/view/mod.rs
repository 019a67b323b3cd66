//! Views: data and published numbers in, tables and charts out. No file, no drawing.
pub mod agreement;
pub mod best_heads;
pub mod cross_domain;
pub mod dynamics;
pub mod groups;
pub mod heat_map;
pub mod histogram;
pub mod pruning_curves;
pub mod pruning_table;
pub mod single_heads;
pub mod speed;
pub mod summary;

use crate::judge::{Adjustment, Criterion};
use crate::origin::Model;
use crate::paper::Paper;
use crate::words::{Metric, short};

/// What views need beside the results.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// When a difference is significant.
    pub criterion: Criterion,
    /// What the paper has, if it is at hand.
    pub paper: Option<&'a Paper>,
}

/// What is said in the place of numbers from the paper, which has none of language models.
fn open_question(model: Model) -> Option<String> {
    (model == Model::Language)
        .then(|| format!("not compared with Michel et al. (2019), {}", crate::origin::OPEN_QUESTION))
}

/// `significantly below base (p < 0.01)`.
fn worse_than_base(metric: &Metric, criterion: Criterion) -> String {
    let adjustment = match criterion.adjustment {
        Adjustment::None => "",
        Adjustment::Family => ", adjusted",
        Adjustment::Bh => ", BH",
    };
    format!("significantly {} base (p < {}{adjustment})", metric.worse_side(), short(criterion.alpha))
}
