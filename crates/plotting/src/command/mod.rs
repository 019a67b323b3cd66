//! Commands: read results, draw them, write files, and report what was written.
mod args;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::findings::error::command;
use crate::findings::{Criterion, Folders, LeftOut, Source, SubjectFile, SubjectResults, experiment, source};
use anyhow::Result;
use args::{CommonArgs, DrawArgs, given};
use charts::write::{Format, Sheet, write_file};
use clap::{ArgMatches, FromArgMatches};
use rayon::prelude::{IntoParallelRefIterator as _, ParallelIterator as _};
use words::{exit_code, one_line, print, warn};

use crate::artefacts::ARTEFACTS;
use crate::view::{Request, summary};

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let mut left_out = LeftOut::default();
    let done = run(&args::command().get_matches(), &mut left_out);
    for fault in left_out.faults {
        warn(&format!("left out: {fault}"));
    }
    exit_code(done)
}

fn run(matches: &ArgMatches, left_out: &mut LeftOut) -> Result<()> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let common = CommonArgs::from_arg_matches(matches)?;
    if name == "summary" {
        sum_up(&common.folders, common.criterion, left_out)
    } else {
        draw_all(name, matches, common.criterion, left_out)
    }
}

/// Draws the artefact with this name, or all.
fn draw_all(name: &str, matches: &ArgMatches, criterion: Criterion, left_out: &mut LeftOut) -> Result<()> {
    let args = DrawArgs::from_arg_matches(matches)?;
    let artefact = ARTEFACTS.iter().find(|artefact| artefact.name == name);
    let (folders, source) = (args.folders(), args.source());
    let against = given::<String>(matches, "against");
    let mut slips = 0;
    if let Source::Subject { subject, .. } = &source {
        if artefact.is_none() {
            source::folder(&folders.results, subject, experiment::SWEEP)?;
        }
        left_out.faults.extend(SubjectFile::read(&folders.experiments, subject).fault);
        slips = left_out.faults.len();
    }
    let request = Request {
        criterion,
        folders: &folders,
        attention: given(matches, "attention").unwrap_or_default(),
        with_figure: given(matches, "with_figure").unwrap_or_default(),
        against: against.as_deref(),
        is_all: artefact.is_none(),
    };
    let (mut has_any, mut sheets) = (false, Vec::new());
    let drawn =
        artefact.map_or(ARTEFACTS, std::slice::from_ref).iter().try_for_each(|artefact| -> Result<()> {
            let drawn = artefact.sheets(&source, &request, left_out)?;
            has_any |= drawn.is_some();
            let mut drawn = drawn.unwrap_or_default();
            drawn.sort_by(|(one, a), (other, b)| (one, &a.stem).cmp(&(other, &b.stem)));
            sheets.append(&mut drawn);
            Ok(())
        });
    // before any fault, so that what was drawn is not lost
    write(&sheets, &args.format)?;
    drawn?;
    if has_any {
        return Ok(());
    }
    if left_out.faults.len() == slips {
        // without any results, report that the first experiment is missing
        source.one(experiment::SWEEP)?;
    }
    anyhow::bail!("nothing can be drawn")
}

/// Prints tables and writes all files, in parallel, since rendering is slow.
fn write(sheets: &[(PathBuf, Sheet)], formats: &[Format]) -> Result<()> {
    let written: Vec<_> = sheets.par_iter().map(|(folder, sheet)| sheet.write(folder, formats)).collect();
    for ((_, sheet), paths) in sheets.iter().zip(written) {
        if sheet.is_printed && !sheet.tables.is_empty() {
            print(&format!("{}\n", sheet.terminal()))?;
        }
        paths?.iter().for_each(|path| report(path));
    }
    Ok(())
}

/// Prints and writes a Markdown page with a table for each claim of the paper.
fn sum_up(folders: &Folders, criterion: Criterion, left_out: &mut LeftOut) -> Result<()> {
    let results = &folders.results;
    let names = source::subjects(results)?.into_iter();
    let subject = |name: String| {
        left_out.faults.extend(SubjectFile::read(&folders.experiments, &name).fault);
        SubjectResults::read(folders, &name, left_out)
    };
    let all: Vec<_> = names.map(subject).collect();
    let Some(page) = summary::page(&all, criterion)? else {
        let results = results.display();
        if !left_out.faults.is_empty() {
            anyhow::bail!("no results in `{results}` can be summarised");
        }
        let command = command(experiment::SWEEP, "<setup>");
        anyhow::bail!("`{results}` has no results to summarise: measure some with `{command}`");
    };
    report(&write_file(results, "summary.md", page.as_bytes())?);
    Ok(print(&page)?)
}

fn report(path: &Path) {
    words::say!("wrote {}", one_line(&path.display().to_string()));
}
