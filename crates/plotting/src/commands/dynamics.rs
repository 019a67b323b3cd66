//! Figure 5 and its tables.
use std::path::Path;

use anyhow::Result;
use plotting::dynamics::Dynamics;
use plotting::dynamics_table::tables;
use plotting::figure::canvas::{Figure, Format};
use plotting::figure5::{FILE_STEM, figure5};
use plotting::left_out::LeftOut;
use plotting::paper;

use super::output::{figures_folder, paper_folder, print_tables, report, write_tables};
use crate::args::{Figure5Args, SourceArgs};

/// The tables, printed, and the figure.
pub fn run(args: &Figure5Args) -> Result<()> {
    let dynamics = Dynamics::read(&args.source.results, &args.source.subject)?;
    draw_tables(&dynamics, &args.source, paper_folder(&args.paper.paper))?;
    write_figure(&figure5(&dynamics)?, &args.source, &args.format.format)
}

/// The same as far as there are results; says whether there are any.
pub fn run_present(
    source: &SourceArgs,
    paper: Option<&Path>,
    formats: &[Format],
    left_out: &mut LeftOut,
) -> Result<bool> {
    let dynamics = Dynamics::read(&source.results, &source.subject);
    let Some(dynamics) = left_out.keep_if_there(dynamics)? else { return Ok(false) };
    draw_tables(&dynamics, source, paper)?;
    if let Some(figure) = left_out.keep(figure5(&dynamics))? {
        write_figure(&figure, source, formats)?;
    }
    Ok(true)
}

fn draw_tables(dynamics: &Dynamics, source: &SourceArgs, paper: Option<&Path>) -> Result<()> {
    let published = paper.map(paper::figure5).transpose()?;
    let tables = tables(dynamics, published.as_ref());
    print_tables(&tables)?;
    write_tables(&figures_folder(source), FILE_STEM, &tables)
}

fn write_figure(figure: &Figure, source: &SourceArgs, formats: &[Format]) -> Result<()> {
    report(&figure.write(&figures_folder(source), FILE_STEM, formats)?);
    Ok(())
}
