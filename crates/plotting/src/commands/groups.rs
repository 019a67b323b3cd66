//! Heads by group of segments.
use anyhow::Result;
use plotting::figure::canvas::Format;
use plotting::groups::{FILE_STEM, Groups, figure, tables};
use plotting::left_out::LeftOut;
use plotting::sweep::{EXPERIMENT, Sweep};

use super::Setting;
use super::output::{print_tables, report, write_tables};
use crate::args::GroupsArgs;

/// The tables, printed, and the heat map.
pub fn run(args: &GroupsArgs) -> Result<()> {
    let sweep = Sweep::read(args.source.source().one(EXPERIMENT)?, EXPERIMENT)?;
    draw(&Groups::read(sweep)?, args.alpha, &args.format.format)
}

/// The same for each file whose signature names groups; says whether any does.
pub fn run_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let mut has_any = false;
    for file in setting.source.all(EXPERIMENT, EXPERIMENT)? {
        if file.origin.groups().is_none() {
            continue;
        }
        let groups = Sweep::read(file, EXPERIMENT).and_then(Groups::read);
        let Some(groups) = left_out.keep(groups)? else { continue };
        draw(&groups, setting.criterion.alpha, &setting.formats)?;
        has_any = true;
    }
    Ok(has_any)
}

fn draw(groups: &Groups, alpha: f64, formats: &[Format]) -> Result<()> {
    let (file, tables) = (&groups.sweep.file, tables(groups, alpha));
    print_tables(&tables)?;
    write_tables(&file.figures(), &file.stem(FILE_STEM), &tables)?;
    report(&figure(groups, alpha)?.write(&file.figures(), &file.stem(FILE_STEM), formats)?);
    Ok(())
}
