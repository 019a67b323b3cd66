//! Figures 3, 4 and 6, and the table of heads that can go.
use std::path::Path;

use anyhow::Result;
use plotting::figure::canvas::Format;
use plotting::figure3::{self, figure3};
use plotting::figure4::{self, figure4};
use plotting::pruning::order::Scope;
use plotting::pruning::{EXPERIMENT, Pruning};
use plotting::pruning_table::{self, pruning_table};
use plotting::significance::Criterion;
use plotting::table::Table;

use super::best_head::write_tables;
use super::{figures_folder, has_rows, paper_folder, print_all, report};
use crate::args::{CurveArgs, SourceArgs};

/// The table, printed, and the figure over all heads.
pub fn run_figure3(args: &CurveArgs) -> Result<()> {
    let pruning = Pruning::read(&args.source.results, &args.source.subject)?;
    let criterion = args.criterion.criterion();
    draw_table(&pruning, &args.source, paper_folder(&args.paper.paper), criterion)?;
    draw_figure3(&pruning, &args.source, &args.format.format, criterion)
}

/// The figure by attention type.
pub fn run_figure4(args: &CurveArgs) -> Result<()> {
    let pruning = Pruning::read(&args.source.results, &args.source.subject)?;
    draw_figure4(&pruning, &args.source, &args.format.format, args.criterion.criterion())
}

/// All of them, as far as there are rows; says whether there were any.
pub fn run_present(
    source: &SourceArgs,
    paper: Option<&Path>,
    formats: &[Format],
    criterion: Criterion,
) -> Result<bool> {
    if !has_rows(source, EXPERIMENT) {
        return Ok(false);
    }
    let pruning = Pruning::read(&source.results, &source.subject)?;
    draw_table(&pruning, source, paper, criterion)?;
    if pruning.of(Scope::All).is_ok() {
        draw_figure3(&pruning, source, formats, criterion)?;
    }
    if pruning.types().is_ok() {
        draw_figure4(&pruning, source, formats, criterion)?;
    }
    Ok(true)
}

fn draw_table(
    pruning: &Pruning,
    source: &SourceArgs,
    paper: Option<&Path>,
    criterion: Criterion,
) -> Result<()> {
    let published = paper.map(pruning_table::published).transpose()?.unwrap_or_default();
    let table = pruning_table(pruning, criterion, &published);
    print_all(&Table::terminal(&table))?;
    report(&write_tables(&figures_folder(source), pruning_table::FILE_STEM, &[table])?);
    Ok(())
}

fn draw_figure3(
    pruning: &Pruning,
    source: &SourceArgs,
    formats: &[Format],
    criterion: Criterion,
) -> Result<()> {
    let figure = figure3(pruning, criterion)?;
    report(&figure.write(&figures_folder(source), figure3::file_stem(pruning), formats)?);
    Ok(())
}

fn draw_figure4(
    pruning: &Pruning,
    source: &SourceArgs,
    formats: &[Format],
    criterion: Criterion,
) -> Result<()> {
    let figure = figure4(pruning, criterion)?;
    report(&figure.write(&figures_folder(source), figure4::FILE_STEM, formats)?);
    Ok(())
}
