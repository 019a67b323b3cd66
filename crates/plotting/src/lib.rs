//! Turns results into Markdown, LaTeX and terminal tables, SVG and PNG figures, the summary and HTML reports. Does not link libtorch.
//!
//! [`findings`] reads results and answers questions about them. [`artefacts`] has a file per table or figure, which turns answers into a
//! `Table` or `Chart` of the crate `charts`, and lists all of them; [`view`] holds their shared parts. The commands and [`report`] draw
//! what is listed.
pub mod artefact;
pub mod artefacts;
mod command;
pub mod findings;
#[cfg(test)]
mod golden;
pub mod report;
pub mod view;

pub use command::main;
