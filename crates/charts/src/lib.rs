//! Describes charts and tables as plain values and writes them to files. Knows nothing of heads, experiments or result files.
//!
//! A [`chart::Chart`] has panels with axes, layers of data and a legend; a [`table::Table`] has rows of cells with a caption and
//! remarks. [`svg`] draws a chart, and [`write`](mod@write) turns a [`write::Sheet`] of a chart and tables into SVG, PNG, Markdown, LaTeX
//! and text for a terminal. Equal values give byte-identical files on every machine: text is measured and drawn with the embedded font.
//!
//! ```
//! use charts::chart::{Axis, Chart, Layer, Panel, Style};
//! use charts::palette::BLUE;
//!
//! let line = Layer::Line(vec![(0.0, 30.0), (50.0, 29.5), (100.0, 1.0)], Style::line(BLUE, 0.9));
//! let panel = Panel::new([Axis::percent("masked (%)"), Axis::around("BLEU", 0.0, 30.0)], 100.0, vec![line]);
//! let chart = Chart::new("Figure 3", "figure3", "BLEU over the share of masked heads").panels(1, vec![panel]);
//! assert!(charts::svg(&chart).starts_with("<svg"));
//! ```
pub mod chart;
mod error;
pub mod legible;
mod paint;
pub mod palette;
pub mod scale;
mod sentences;
pub mod table;
pub mod write;

pub use error::Error;
pub use paint::canvas::FONT;
pub use paint::svg;
pub use sentences::Sentences;
