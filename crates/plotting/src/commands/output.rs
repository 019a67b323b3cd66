//! What is printed and written, and said of both.
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use plotting::figure::canvas::write_file;
use plotting::left_out::LeftOut;
use plotting::table::Table;
use records::visible::one_line;

/// The folder of the paper's numbers; a table or figure without them is better than none, so a missing one is a warning.
pub fn paper_folder(paper: &Path) -> Option<&Path> {
    if paper.is_dir() {
        return Some(paper);
    }
    let folder = one_line(&paper.display().to_string());
    anstream::eprintln!("warning: no folder `{folder}`: leaving out the published numbers");
    None
}

/// Prints tables one after the other.
pub fn print_tables(tables: &[Table]) -> Result<()> {
    print_all(&join(tables, Table::terminal))
}

/// Writes tables into one Markdown and one LaTeX file.
pub fn write_tables(folder: &Path, stem: &str, tables: &[Table]) -> Result<()> {
    let write = |extension, text: String| write_file(folder, &format!("{stem}.{extension}"), text.as_bytes());
    report(&[write("md", join(tables, Table::markdown))?, write("tex", join(tables, Table::latex))?]);
    Ok(())
}

fn join(tables: &[Table], render: impl Fn(&Table) -> String) -> String {
    tables.iter().map(render).collect::<Vec<_>>().join("\n")
}

/// Prints to a terminal with styles, to anything else without; `NO_COLOR` is honoured. A reader
/// that stops early, such as `head`, is no error. An empty line stands between two texts.
pub fn print_all(text: &str) -> Result<()> {
    static IS_SECOND: AtomicBool = AtomicBool::new(false);
    let gap = if IS_SECOND.swap(true, Ordering::Relaxed) { "\n" } else { "" };
    match anstream::stdout().write_all(format!("{gap}{text}").as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print the table"),
        _ => Ok(()),
    }
}

/// Says what was written.
pub fn report(paths: &[PathBuf]) {
    for path in paths {
        anstream::eprintln!("wrote {}", one_line(&path.display().to_string()));
    }
}

/// Says what was left out and why, a line for each file; returns whether anything was.
pub fn warn(left_out: &mut LeftOut) -> bool {
    let errors = left_out.take();
    let has_any = !errors.is_empty();
    for error in errors {
        anstream::eprintln!("warning: left out: {}", one_line(&format!("{:#}", anyhow::Error::from(error))));
    }
    has_any
}
