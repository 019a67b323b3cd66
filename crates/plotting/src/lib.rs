//! Tables and figures from `results/`: Markdown, LaTeX and terminal tables, SVG and PNG figures.
//!
//! Each table and each figure of the papers is one small module ([`table1`], [`best_head`], [`figure1`], [`figure3`]). What they share:
//! [`sweep`] reads and checks the rows, [`paper`] reads the published numbers, [`table`] renders one abstract
//! table in three ways, and [`figure`] holds fonts, axes, bins and file formats. Links no libtorch.
pub mod attention;
pub mod best_head;
pub mod error;
pub mod figure;
pub mod figure1;
pub mod figure3;
pub mod figure4;
pub mod metric;
pub mod number;
pub mod paper;
pub mod pruning;
pub mod pruning_table;
pub mod significance;
pub mod summary;
pub mod sweep;
pub mod table;
pub mod table1;
#[cfg(test)]
mod test_rows;

pub use error::Error;
