//! Table 4.
use std::path::Path;

use anyhow::Result;
use plotting::left_out::LeftOut;
use plotting::paper::table4_rows;
use plotting::speed::Speed;
use plotting::table4::{FILE_STEM, tables};

use super::output::{figures_folder, paper_folder, print_tables, write_tables};
use crate::args::{SourceArgs, Table4Args};

/// Prints and writes it.
pub fn run(args: &Table4Args) -> Result<()> {
    let speed = Speed::read(&args.source.results, &args.source.subject)?;
    draw(&speed, &args.source, paper_folder(&args.paper.paper))
}

/// The same if there are results; says whether there are.
pub fn run_present(source: &SourceArgs, paper: Option<&Path>, left_out: &mut LeftOut) -> Result<bool> {
    let speed = Speed::read(&source.results, &source.subject);
    let Some(speed) = left_out.keep_if_there(speed)? else { return Ok(false) };
    draw(&speed, source, paper)?;
    Ok(true)
}

fn draw(speed: &Speed, source: &SourceArgs, paper: Option<&Path>) -> Result<()> {
    let published = paper.map(table4_rows).transpose()?.unwrap_or_default();
    let tables = tables(speed, &published);
    print_tables(&tables)?;
    write_tables(&figures_folder(source), FILE_STEM, &tables)
}
