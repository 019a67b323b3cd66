//! What each command does: read, draw, write, and say what was written.
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use plotting::attention::Selection;
use plotting::figure::canvas::{Format, write_file};
use plotting::figure1::figure1;
use plotting::paper::PublishedTable1;
use plotting::sweep::Sweep;
use plotting::table::Table;
use plotting::table1::table1;

use crate::args::{AllArgs, Args, Command, CriterionArgs, FigureArgs, SourceArgs, TableArgs};

/// Runs one command.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Table1(args) => run_table1(args),
        Command::Figure1(args) => run_figure1(args),
        Command::All(args) => run_all(args),
    }
}

fn run_table1(args: &TableArgs) -> Result<()> {
    let sweep = read(&args.source)?;
    let selection = args.selection.attention.unwrap_or_default();
    report(&write_table1(&sweep, &args.source, &args.criterion, selection, true)?);
    Ok(())
}

fn run_figure1(args: &FigureArgs) -> Result<()> {
    let sweep = read(&args.source)?;
    let selection = args.selection.attention.unwrap_or_default();
    report(&write_figure1(&sweep, &args.source, &args.format.format, selection)?);
    Ok(())
}

/// The paper's table and figure, and those of all attention types where there are several.
fn run_all(args: &AllArgs) -> Result<()> {
    let sweep = read(&args.source)?;
    let shows_all = Selection::Paper.of(&sweep.attentions()) == sweep.attentions();
    let selections = if shows_all { vec![Selection::Paper] } else { vec![Selection::Paper, Selection::All] };
    if shows_all {
        remove_all_types(&figures_folder(&args.source))?;
    }
    for (index, &selection) in selections.iter().enumerate() {
        let is_last = index + 1 == selections.len();
        report(&write_table1(&sweep, &args.source, &args.criterion, selection, is_last)?);
        report(&write_figure1(&sweep, &args.source, &args.format.format, selection)?);
    }
    Ok(())
}

/// Takes away what an earlier run drew of attention types that are no longer among the rows.
fn remove_all_types(folder: &Path) -> Result<()> {
    for file in ["table1-all.md", "table1-all.tex", "figure1-all.svg", "figure1-all.png"] {
        match std::fs::remove_file(folder.join(file)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("cannot remove `{}`", folder.join(file).display()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn read(source: &SourceArgs) -> Result<Sweep> {
    Ok(Sweep::read(&source.results, &source.subject)?)
}

fn figures_folder(source: &SourceArgs) -> PathBuf {
    source.results.join(&source.subject).join("figures")
}

fn write_table1(
    sweep: &Sweep,
    source: &SourceArgs,
    criterion: &CriterionArgs,
    selection: Selection,
    print: bool,
) -> Result<Vec<PathBuf>> {
    let published = published(&criterion.paper)?;
    let attentions = selection.of(&sweep.attentions());
    let tables = attentions
        .into_iter()
        .map(|attention| table1(sweep, attention, criterion.criterion(), published.as_ref()))
        .collect::<Result<Vec<_>, _>>()?;
    if print {
        print_all(&join(&tables, Table::terminal))?;
    }
    let (folder, stem) = (figures_folder(source), selection.file_stem("table1"));
    let markdown = write_file(&folder, &format!("{stem}.md"), join(&tables, Table::markdown).as_bytes())?;
    let latex = write_file(&folder, &format!("{stem}.tex"), join(&tables, Table::latex).as_bytes())?;
    Ok(vec![markdown, latex])
}

fn write_figure1(
    sweep: &Sweep,
    source: &SourceArgs,
    formats: &[Format],
    selection: Selection,
) -> Result<Vec<PathBuf>> {
    let figure = figure1(sweep, selection)?;
    Ok(figure.write(&figures_folder(source), &selection.file_stem("figure1"), formats)?)
}

/// The paper's numbers; a table without them is better than none, so a missing folder is a warning.
fn published(paper: &Path) -> Result<Option<PublishedTable1>> {
    if !paper.is_dir() {
        anstream::eprintln!("warning: no folder `{}`: leaving out the published numbers", paper.display());
        return Ok(None);
    }
    Ok(Some(PublishedTable1::read(paper)?))
}

fn join(tables: &[Table], render: impl Fn(&Table) -> String) -> String {
    tables.iter().map(render).collect::<Vec<_>>().join("\n")
}

/// Prints to a terminal with styles, to anything else without; `NO_COLOR` is honoured. A reader
/// that stops early, such as `head`, is no error.
fn print_all(text: &str) -> Result<()> {
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print the table"),
        _ => Ok(()),
    }
}

fn report(paths: &[PathBuf]) {
    for path in paths {
        anstream::eprintln!("wrote {}", path.display());
    }
}
