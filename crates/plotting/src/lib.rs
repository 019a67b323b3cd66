//! Tables and figures from `results/`: Markdown, LaTeX and terminal tables, SVG and PNG figures. Links no libtorch.
//!
//! One way through: a [`source`] finds result files, `records` reads and checks their rows and signatures, [`data`] holds what
//! can be asked of them, and [`paper`] all published numbers. A [`view`] makes of these plain values, a [`table::Table`] or a
//! [`chart::Chart`], and [`write`] turns these into files; charts by one painter, [`paint`]. The [`registry`] says which
//! artefacts there are, what each reads and which view it has.
pub mod chart;
pub mod data;
pub mod error;
pub mod judge;
pub mod origin;
pub mod paint;
pub mod palette;
pub mod paper;
pub mod registry;
pub mod scale;
pub mod source;
pub mod table;
pub mod view;
pub mod words;
pub mod write;

pub use error::Error;
