//! HTML reports: one self-contained page per setup, an index, and a comparison of all setups.
//!
//! Artefacts provide tables and figures, views add what only reports show, and the templates in `templates/` turn both into pages. A
//! page needs no network. [`look`] writes the page of one text.
mod args;
mod gather;
#[cfg(test)]
mod golden;
pub mod look;
mod pages;
mod samples;
mod tables;
mod view;
mod write;

use std::process::ExitCode;

use crate::findings::source::subjects;
use anyhow::{Result, bail};
use args::Args;
pub use args::html_file;
pub use durable::check_writable;
use words::{exit_code, warn};
use write::Writer;

use crate::report::gather::{Gathered, Reader};

/// Runs the command `report`.
pub fn main() -> ExitCode {
    exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> Result<()> {
    let folders = args.folders();
    let data = args.texts.then(|| args.data.clone());
    let reader = Reader::new(folders.clone(), data, args.alpha);
    let writer = Writer::new(args)?;
    if !args.all {
        let gathered = reader.gather(args.subject())?;
        if !gathered.has_any() {
            bail!("no results of `{}` can be read: {}", gathered.subject.name, reasons(&gathered));
        }
        warn_of(&gathered);
        return writer.subject(&gathered, args.out.as_deref());
    }
    let mut all = Vec::new();
    for name in subjects(&folders.results)? {
        let gathered = reader.gather(&name)?;
        warn_of(&gathered);
        if gathered.has_any() {
            writer.subject(&gathered, None)?;
            all.push(gathered);
        }
    }
    if all.is_empty() {
        bail!("`{}` has no results that can be read", folders.results.display());
    }
    writer.index(&all)?;
    let (comparisons, faults) = reader.comparison(all);
    writer.comparison(&comparisons, &faults)?;
    faults.iter().for_each(|fault| warn(fault));
    Ok(())
}

fn reasons(gathered: &Gathered) -> String {
    if gathered.faults.is_empty() { "there are no results".to_owned() } else { gathered.faults.join("; ") }
}

fn warn_of(gathered: &Gathered) {
    let slip = &gathered.described.fault;
    slip.iter()
        .chain(&gathered.faults)
        .for_each(|fault| warn(&format!("{}: {fault}", gathered.subject.name)));
}
