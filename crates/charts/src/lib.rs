//! Charts and tables as plain values, and what makes files of them. Knows nothing of heads, experiments or result files.
//!
//! A [`chart::Chart`] is panels with axes, layers of data and a legend; a [`table::Table`] is rows of cells with what must be said
//! about them. Both are only described: one painter draws charts ([`svg`]), and [`write`](mod@write) turns a [`write::Sheet`] of a
//! chart and tables into SVG, PNG, Markdown, LaTeX and text for a terminal. Equal values give byte-equal files on every
//! machine: text is measured and drawn with the font that is part of the program.
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
