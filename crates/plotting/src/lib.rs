//! From results to pages: Markdown, LaTeX and terminal tables, SVG and PNG figures, the summary and HTML reports. Links no libtorch.
//!
//! [`findings`] reads results and answers questions about them. [`artefacts`] has a file for each table and figure, which turns answers
//! into plain values, a `Table` or a `Chart` of the crate `charts`, and the list of all. The commands and [`report`] draw what is in the
//! list. [`view`] has what artefacts share.
pub mod artefact;
pub mod artefacts;
mod command;
pub mod findings;
#[cfg(test)]
mod golden;
pub mod report;
pub mod view;

pub use command::main;
