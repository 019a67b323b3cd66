//! Figure 5 and its tables.
use std::path::Path;

use anyhow::Result;
use plotting::dynamics::{Dynamics, EXPERIMENT};
use plotting::dynamics_table::tables;
use plotting::figure::canvas::{Figure, Format};
use plotting::figure5::{FILE_STEM, figure5};
use plotting::left_out::LeftOut;
use plotting::paper;

use super::Setting;
use super::output::{paper_folder, print_tables, report, write_tables};
use crate::args::Figure5Args;

/// The tables, printed, and the figure.
pub fn run(args: &Figure5Args) -> Result<()> {
    let dynamics = Dynamics::read(args.source.source().one(EXPERIMENT)?)?;
    draw_tables(&dynamics, paper_folder(&args.paper.paper))?;
    write_figure(&dynamics, &figure5(&dynamics)?, &args.format.format)
}

/// The same as far as there are results; says whether there are any.
pub fn run_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let mut has_any = false;
    for file in setting.source.all(EXPERIMENT, EXPERIMENT)? {
        let Some(dynamics) = left_out.keep(Dynamics::read(file))? else { continue };
        draw_tables(&dynamics, setting.paper.as_deref())?;
        if let Some(figure) = left_out.keep(figure5(&dynamics))? {
            write_figure(&dynamics, &figure, &setting.formats)?;
        }
        has_any = true;
    }
    Ok(has_any)
}

fn draw_tables(dynamics: &Dynamics, paper: Option<&Path>) -> Result<()> {
    let published = paper.map(paper::figure5).transpose()?;
    let tables = tables(dynamics, published.as_ref());
    print_tables(&tables)?;
    write_tables(&dynamics.file.figures(), &dynamics.file.stem(FILE_STEM), &tables)
}

fn write_figure(dynamics: &Dynamics, figure: &Figure, formats: &[Format]) -> Result<()> {
    report(&figure.write(&dynamics.file.figures(), &dynamics.file.stem(FILE_STEM), formats)?);
    Ok(())
}
