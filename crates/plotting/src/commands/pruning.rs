//! Figures 3, 4 and 6, and the table of heads that can go.
use std::path::Path;

use anyhow::Result;
use plotting::figure::canvas::Format;
use plotting::figure3::{self, figure3};
use plotting::figure4::{self, figure4};
use plotting::left_out::LeftOut;
use plotting::pruning::Pruning;
use plotting::pruning::order::Scope;
use plotting::pruning_table::{self, pruning_table};
use plotting::significance::Criterion;

use super::output::{figures_folder, paper_folder, print_tables, report, warn, write_tables};
use crate::args::{CurveArgs, SourceArgs};

/// The table, printed, and the figure over all heads.
pub fn run_figure3(args: &CurveArgs) -> Result<()> {
    let pruning = read(&args.source)?;
    let criterion = args.criterion.criterion();
    draw_table(&pruning, &args.source, paper_folder(&args.paper.paper), criterion)?;
    draw_figure3(&pruning, &args.source, &args.format.format, criterion)
}

/// The figure by attention type.
pub fn run_figure4(args: &CurveArgs) -> Result<()> {
    let pruning = read(&args.source)?;
    draw_figure4(&pruning, &args.source, &args.format.format, args.criterion.criterion())
}

/// All of them, as far as there are rows; says whether there were any.
pub fn run_present(
    source: &SourceArgs,
    paper: Option<&Path>,
    formats: &[Format],
    criterion: Criterion,
    left_out: &mut LeftOut,
) -> Result<bool> {
    let pruning = Pruning::read(&source.results, &source.subject, left_out);
    let Some(pruning) = left_out.keep_if_there(pruning)? else { return Ok(false) };
    draw_table(&pruning, source, paper, criterion)?;
    if pruning.of(Scope::All).is_ok() {
        draw_figure3(&pruning, source, formats, criterion)?;
    }
    if pruning.types().is_ok() {
        draw_figure4(&pruning, source, formats, criterion)?;
    }
    Ok(true)
}

fn read(source: &SourceArgs) -> Result<Pruning> {
    let mut left_out = LeftOut::default();
    let pruning = Pruning::read(&source.results, &source.subject, &mut left_out)?;
    warn(&mut left_out);
    Ok(pruning)
}

fn draw_table(
    pruning: &Pruning,
    source: &SourceArgs,
    paper: Option<&Path>,
    criterion: Criterion,
) -> Result<()> {
    let published = paper.map(pruning_table::published).transpose()?.unwrap_or_default();
    let tables = [pruning_table(pruning, criterion, &published)];
    print_tables(&tables)?;
    write_tables(&figures_folder(source), pruning_table::FILE_STEM, &tables)
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
