//! Figures 3, 4 and 6, and the table of heads that can go.
use std::path::Path;

use anyhow::Result;
use plotting::figure::canvas::{Figure, Format};
use plotting::figure3::{self, figure3};
use plotting::figure4::{self, figure4};
use plotting::left_out::LeftOut;
use plotting::pruning::order::Scope;
use plotting::pruning::{EXPERIMENT, Pruning};
use plotting::pruning_table::{self, pruning_table};
use plotting::significance::Criterion;

use super::Setting;
use super::output::{paper_folder, print_tables, report, warn, write_tables};
use crate::args::{CurveArgs, SourceArgs};

/// The table, printed, and the figure over all heads.
pub fn run_figure3(args: &CurveArgs) -> Result<()> {
    let pruning = read(&args.source)?;
    let criterion = args.criterion.criterion();
    draw_table(&pruning, paper_folder(&args.paper.paper), criterion)?;
    write(&pruning, &figure3(&pruning, criterion)?, figure3::file_stem(&pruning), &args.format.format)
}

/// The figure by attention type.
pub fn run_figure4(args: &CurveArgs) -> Result<()> {
    let pruning = read(&args.source)?;
    let figure = figure4(&pruning, args.criterion.criterion())?;
    write(&pruning, &figure, figure4::FILE_STEM, &args.format.format)
}

/// All of them, as far as there are rows; says whether there were any.
pub fn run_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let mut has_any = false;
    for file in setting.source.all(EXPERIMENT, EXPERIMENT)? {
        let pruning = Pruning::read(file, left_out);
        let Some(pruning) = left_out.keep(pruning)? else { continue };
        draw_table(&pruning, setting.paper.as_deref(), setting.criterion)?;
        if pruning.of(Scope::All).is_ok() {
            let figure = figure3(&pruning, setting.criterion)?;
            write(&pruning, &figure, figure3::file_stem(&pruning), &setting.formats)?;
        }
        if pruning.types().is_ok() {
            let figure = figure4(&pruning, setting.criterion)?;
            write(&pruning, &figure, figure4::FILE_STEM, &setting.formats)?;
        }
        has_any = true;
    }
    Ok(has_any)
}

fn read(source: &SourceArgs) -> Result<Pruning> {
    let mut left_out = LeftOut::default();
    let pruning = Pruning::read(source.source().one(EXPERIMENT)?, &mut left_out)?;
    warn(&mut left_out);
    Ok(pruning)
}

fn draw_table(pruning: &Pruning, paper: Option<&Path>, criterion: Criterion) -> Result<()> {
    let published = paper.map(pruning_table::published).transpose()?.unwrap_or_default();
    let tables = [pruning_table(pruning, criterion, &published)];
    print_tables(&tables)?;
    write_tables(&pruning.file.figures(), &pruning.file.stem(pruning_table::FILE_STEM), &tables)
}

fn write(pruning: &Pruning, figure: &Figure, name: &str, formats: &[Format]) -> Result<()> {
    report(&figure.write(&pruning.file.figures(), &pruning.file.stem(name), formats)?);
    Ok(())
}
