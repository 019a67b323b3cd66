//! HTML reports of results: one self-contained page for a subject, an index of all, and all beside each other.
//!
//! The registry of `plotting` makes tables and figures of results, and the views here what only a report shows; they become pages by
//! the templates in `templates/`. Nothing is computed twice, and a page needs no network.
mod args;
mod gather;
#[cfg(test)]
mod golden;
mod pages;
mod samples;
mod tables;
mod view;
mod write;

use std::process::ExitCode;

use anyhow::{Result, bail};
use args::Args;
use clap::Parser;
use findings::source::subjects;
use words::one_line;
use write::Writer;

use crate::gather::{Gathered, Reader};

fn main() -> ExitCode {
    let mut warnings = Vec::new();
    let finished = run(&Args::parse(), &mut warnings);
    for warning in warnings {
        anstream::eprintln!("warning: {}", one_line(&warning));
    }
    match finished {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {}", one_line(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, warnings: &mut Vec<String>) -> Result<()> {
    let reader = Reader::new(args.folders(), &args.paper, args.alpha)?;
    if reader.paper.is_none() {
        let paper = args.paper.display();
        warnings.push(format!("the published numbers are not shown: there is no folder `{paper}`"));
    }
    let writer = Writer::new(args)?;
    if !args.all {
        let gathered = reader.gather(args.subject())?;
        if !gathered.has_any() {
            bail!("nothing of `{}` can be read: {}", gathered.subject.name, reasons(&gathered));
        }
        warn(&gathered, warnings);
        return writer.subject(&gathered, args.out.as_deref());
    }
    let mut all = Vec::new();
    for name in subjects(&args.results)? {
        let gathered = reader.gather(&name)?;
        warn(&gathered, warnings);
        if gathered.has_any() {
            writer.subject(&gathered, None)?;
            all.push(gathered);
        }
    }
    if all.is_empty() {
        bail!("`{}` has no results that can be read", args.results.display());
    }
    writer.index(&reader, &all)?;
    let (comparisons, faults) = reader.comparison(all)?;
    writer.comparison(&comparisons, &faults)?;
    warnings.extend(faults);
    Ok(())
}

fn reasons(gathered: &Gathered) -> String {
    if gathered.faults.is_empty() { "there are no results".to_owned() } else { gathered.faults.join("; ") }
}

fn warn(gathered: &Gathered, warnings: &mut Vec<String>) {
    warnings.extend(gathered.faults.iter().map(|fault| format!("{}: {fault}", gathered.subject.name)));
}
