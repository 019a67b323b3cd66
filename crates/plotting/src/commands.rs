//! What each command does: read, draw, write, and say what was written.
mod best_head;
mod pruning;
mod summary;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use plotting::attention::Selection;
use plotting::figure::canvas::{Format, write_file};
use plotting::figure1::{self, figure1};
use plotting::paper::Published;
use plotting::significance::Criterion;
use plotting::sweep::{EXPERIMENT, Sweep};
use plotting::table::Table;
use plotting::table1::{self, table1};

use crate::args::{AllArgs, Args, Command, FigureArgs, SourceArgs, TableArgs};
use crate::comparisons;

/// Runs one command.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Table1(args) => run_table1(args),
        Command::Figure1(args) => run_figure1(args),
        Command::Figure2(args) => comparisons::run_figure2(args),
        Command::Agreement(args) => comparisons::run_agreement(args),
        Command::Table2(args) => best_head::run_same(args),
        Command::Table5(args) => best_head::run_selected(args),
        Command::Figure3(args) => pruning::run_figure3(args),
        Command::Figure4(args) => pruning::run_figure4(args),
        Command::Summary(args) => summary::run(args),
        Command::All(args) => run_all(args),
    }
}

fn run_table1(args: &TableArgs) -> Result<()> {
    let drawing = Drawing::read(&args.source, paper_folder(&args.paper.paper))?;
    let selection = args.selection.attention.unwrap_or_default();
    report(&drawing.write_table1(args.criterion.criterion(), selection, true)?);
    Ok(())
}

fn run_figure1(args: &FigureArgs) -> Result<()> {
    let drawing = Drawing::read(&args.source, paper_folder(&args.paper.paper))?;
    let selection = args.selection.attention.unwrap_or_default();
    report(&drawing.write_figure1(&args.format.format, selection)?);
    Ok(())
}

/// Whatever there are results for. Without any, the message is that on the first experiment.
fn run_all(args: &AllArgs) -> Result<()> {
    let paper = paper_folder(&args.paper.paper);
    let (source, criterion) = (&args.source, args.criterion.criterion());
    let has_single_heads = has_rows(source, EXPERIMENT);
    if has_single_heads {
        run_single_heads(args, paper)?;
    }
    let mut has_any = has_single_heads;
    has_any |= best_head::run_present(source, paper, criterion)?;
    has_any |= pruning::run_present(source, paper, &args.format.format, criterion)?;
    has_any |= comparisons::run_present(source, paper, &args.format.format)?;
    if has_any { Ok(()) } else { run_single_heads(args, paper) }
}

/// The paper's table and figure, and those of all attention types where there are several.
fn run_single_heads(args: &AllArgs, paper: Option<&Path>) -> Result<()> {
    let drawing = Drawing::read(&args.source, paper)?;
    let present = drawing.sweep.attentions();
    let shows_all = Selection::Paper.of(&present) == present;
    let selections = if shows_all { vec![Selection::Paper] } else { vec![Selection::Paper, Selection::All] };
    if shows_all {
        remove_all_types(&drawing.folder)?;
    }
    for (index, &selection) in selections.iter().enumerate() {
        let is_last = index + 1 == selections.len();
        report(&drawing.write_table1(args.criterion.criterion(), selection, is_last)?);
        report(&drawing.write_figure1(&args.format.format, selection)?);
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

/// What tables and figures are made of, and where they go.
struct Drawing {
    sweep: Sweep,
    published: Option<Published>,
    folder: PathBuf,
}

impl Drawing {
    fn read(source: &SourceArgs, paper: Option<&Path>) -> Result<Self> {
        let sweep = Sweep::read(&source.results, &source.subject)?;
        let published = paper.map(Published::read).transpose()?;
        Ok(Self { sweep, published, folder: figures_folder(source) })
    }

    fn write_table1(&self, criterion: Criterion, selection: Selection, print: bool) -> Result<Vec<PathBuf>> {
        let present = self.sweep.attentions();
        let tables = selection
            .of(&present)
            .into_iter()
            .map(|attention| table1(&self.sweep, attention, criterion, self.published.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        if print {
            print_all(&join(&tables, Table::terminal))?;
        }
        let stem = selection.file_stem(table1::FILE_NAMES, &present);
        let write = |extension, text: String| {
            write_file(&self.folder, &format!("{stem}.{extension}"), text.as_bytes())
        };
        Ok(vec![write("md", join(&tables, Table::markdown))?, write("tex", join(&tables, Table::latex))?])
    }

    fn write_figure1(&self, formats: &[Format], selection: Selection) -> Result<Vec<PathBuf>> {
        let figure = figure1(&self.sweep, selection, self.published.as_ref())?;
        let stem = selection.file_stem(figure1::FILE_NAMES, &self.sweep.attentions());
        Ok(figure.write(&self.folder, &stem, formats)?)
    }
}

/// The folder of the paper's numbers; a table or figure without them is better than none, so a missing one is a warning.
pub(crate) fn paper_folder(paper: &Path) -> Option<&Path> {
    if paper.is_dir() {
        return Some(paper);
    }
    anstream::eprintln!("warning: no folder `{}`: leaving out the published numbers", paper.display());
    None
}

fn figures_folder(source: &SourceArgs) -> PathBuf {
    source.results.join(&source.subject).join("figures")
}

/// Whether `experiment` has written a file.
fn has_rows(source: &SourceArgs, experiment: &str) -> bool {
    source.results.join(&source.subject).join(format!("{experiment}.csv")).exists()
}

fn join(tables: &[Table], render: impl Fn(&Table) -> String) -> String {
    tables.iter().map(render).collect::<Vec<_>>().join("\n")
}

/// Prints to a terminal with styles, to anything else without; `NO_COLOR` is honoured. A reader
/// that stops early, such as `head`, is no error. An empty line stands between two texts.
pub(crate) fn print_all(text: &str) -> Result<()> {
    static IS_SECOND: AtomicBool = AtomicBool::new(false);
    let gap = if IS_SECOND.swap(true, Ordering::Relaxed) { "\n" } else { "" };
    match anstream::stdout().write_all(format!("{gap}{text}").as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print the table"),
        _ => Ok(()),
    }
}

pub(crate) fn report(paths: &[PathBuf]) {
    for path in paths {
        anstream::eprintln!("wrote {}", path.display());
    }
}
