//! Table 4.
use std::path::Path;

use anyhow::Result;
use plotting::left_out::LeftOut;
use plotting::paper::table4_rows;
use plotting::speed::{EXPERIMENT, Speed};
use plotting::table4::{FILE_STEM, tables};

use super::Setting;
use super::output::{paper_folder, print_tables, write_tables};
use crate::args::Table4Args;

/// Prints and writes it.
pub fn run(args: &Table4Args) -> Result<()> {
    draw(&Speed::read(args.source.source().one(EXPERIMENT)?)?, paper_folder(&args.paper.paper))
}

/// The same for each file that is there; says whether any is.
pub fn run_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let mut has_any = false;
    for file in setting.source.all(EXPERIMENT, EXPERIMENT)? {
        let Some(speed) = left_out.keep(Speed::read(file))? else { continue };
        draw(&speed, setting.paper.as_deref())?;
        has_any = true;
    }
    Ok(has_any)
}

fn draw(speed: &Speed, paper: Option<&Path>) -> Result<()> {
    let published = paper.map(table4_rows).transpose()?.unwrap_or_default();
    let tables = tables(speed, &published);
    print_tables(&tables)?;
    write_tables(&speed.file.figures(), &speed.file.stem(FILE_STEM), &tables)
}
