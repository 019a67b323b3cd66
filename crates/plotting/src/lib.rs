//! Tables and figures from `results/`: Markdown, LaTeX and terminal tables, SVG and PNG figures. Links no libtorch.
//!
//! The crate `findings` reads results and says what can be asked of them. A [`view`] makes of these plain values, a `Table` or a
//! `Chart` of the crate `charts`, which makes files of them. The [`registry`] says which artefacts there are, what each reads
//! and which view it has; the commands, and reports, go through it.
pub mod artefact;
mod command;
#[cfg(test)]
mod golden;
pub mod registry;
pub mod view;

pub use command::main;
