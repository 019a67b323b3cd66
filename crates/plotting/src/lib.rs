//! Tables and figures from `results/`: Markdown, LaTeX and terminal tables, SVG and PNG figures. Links no libtorch.
//!
//! One way through: `source` finds result files, `records` reads and checks their rows and signatures, `data` holds what can be
//! asked of them, and `paper` all published numbers. A `view` makes of these plain values, a `table::Table` or a
//! `chart::Chart`, and `write` turns these into files; charts by one painter, `paint`. The `registry` says which artefacts
//! there are, what each reads and which view it has. `gather` has everything of one subject, for reports.
mod chart;
mod command;
mod data;
mod error;
mod gather;
#[cfg(test)]
mod golden;
mod judge;
mod origin;
mod paint;
mod palette;
mod paper;
mod registry;
mod scale;
mod source;
mod table;
mod view;
mod words;
mod write;

pub use command::main;
/// The font of all figures, as TrueType.
pub const FONT: &[u8] = paint::canvas::FONT;

pub use gather::{Fact, Figure, Gathered, Heads, Part, Reader, Section};
pub use table::{Cell, Row, Table};
pub use view::all_heads::{HeadMap, MapCell, Measure};
