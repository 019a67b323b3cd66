//! Tables and figures from `results/`: Markdown, LaTeX and terminal tables, SVG and PNG figures.
//!
//! Each table and each figure of the papers is one small module ([`table1`], [`best_head`], [`table4`], [`figure1`],
//! [`figure2`], [`figure3`], [`figure4`], [`figure5`]), and so is what the papers do not have ([`pruning_table`],
//! [`dynamics_table`], [`agreement`], [`groups`], [`summary`]). What they share: [`sweep`], [`cross_domain`], [`pruning`],
//! [`dynamics`], [`speed`] and [`importance`] check the rows of a [`result_file`], [`origin`] and [`estimate`] read the
//! signature,
//! [`left_out`] notes what cannot be shown yet, [`paper`] reads the published numbers, [`table`] renders one abstract
//! table in three ways, and [`figure`] holds fonts, axes, bins and file formats. Links no libtorch.
pub mod agreement;
pub mod attention;
pub mod best_head;
mod check;
pub mod cross_domain;
pub mod dynamics;
pub mod dynamics_table;
pub mod error;
pub mod estimate;
pub mod figure;
pub mod figure1;
pub mod figure2;
pub mod figure3;
pub mod figure4;
pub mod figure5;
pub mod groups;
pub mod importance;
pub mod importance_by_group;
pub mod left_out;
pub mod metric;
pub mod number;
pub mod origin;
pub mod paper;
pub mod pruning;
pub mod pruning_table;
pub mod result_file;
pub mod significance;
pub mod speed;
pub mod summary;
pub mod sweep;
pub mod table;
pub mod table1;
pub mod table4;
#[cfg(test)]
mod test_rows;
pub mod tested;

pub use error::Error;
