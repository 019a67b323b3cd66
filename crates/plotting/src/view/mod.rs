//! Views: data and published numbers in, tables and charts out. No file, no drawing.
pub(crate) mod agreement;
pub(crate) mod best_heads;
pub mod cross_domain;
pub(crate) mod curve;
pub(crate) mod dynamics;
pub(crate) mod film;
pub(crate) mod functions;
pub(crate) mod gates;
pub(crate) mod groups;
pub mod heat_map;
pub(crate) mod pruning_curves;
pub(crate) mod pruning_table;
pub(crate) mod single_heads;
pub(crate) mod speed;
pub(crate) mod summary;

use std::fmt::Display;

use charts::chart::{Chart, Mark, Shape};
use charts::palette::{BLUE, GREEN, VERMILLION};
use charts::table::{Cell, Table};
use findings::judge::Criterion;
use findings::metric::Metric;
use findings::paper::Paper;
use findings::source::ResultFile;
use records::{Attention, TestedRow};
use words::short;

/// What views need beside the results.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// When a difference is significant.
    pub criterion: Criterion,
    /// What the papers have.
    pub paper: &'a Paper,
}

/// What has a caption: charts and tables.
pub trait OfFile: Sized {
    /// A caption, and nothing below it yet.
    fn captioned(name: &'static str, label: String, title: String) -> Self;

    /// Of a file: its subject ends the label, what it holds ends the title.
    fn of(file: &ResultFile, name: &'static str, stem: &str, title: impl Display) -> Self {
        Self::captioned(name, format!("{stem}-{}", file.subject), format!("{title}; {}", file.title()))
    }
}

impl OfFile for Chart {
    fn captioned(name: &'static str, label: String, title: String) -> Self {
        Self::new(name, label, title)
    }
}

impl OfFile for Table {
    fn captioned(name: &'static str, label: String, title: String) -> Self {
        Self::new(name, label, title)
    }
}

/// The mark of one attention type.
const fn mark(attention: Attention, radius: f64) -> Mark {
    match attention {
        Attention::EncEnc | Attention::SelfAttention => Mark::new(Shape::Circle, radius, BLUE),
        Attention::EncDec => Mark::new(Shape::Square, radius, VERMILLION),
        Attention::DecDec => Mark::new(Shape::Triangle, radius, GREEN),
    }
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
