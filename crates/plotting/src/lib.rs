//! From results to pages: Markdown, LaTeX and terminal tables, SVG and PNG figures, the summary and HTML reports. Links no libtorch.
//!
//! [`findings`] reads results and answers questions about them. A [`view`] turns answers into plain values, a `Table` or a `Chart` of
//! the crate `charts`, which writes files. The [`registry`] lists the artefacts: what each reads and which view it has. The commands
//! and [`report`] go through it.
pub mod artefact;
mod command;
pub mod findings;
#[cfg(test)]
mod golden;
pub mod registry;
pub mod report;
pub mod view;

pub use command::main;
