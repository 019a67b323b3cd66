//! How orders of heads agree.
use anyhow::Result;
use plotting::agreement::{self, Agreement};
use plotting::figure::canvas::Format;
use plotting::importance::Importance;
use plotting::left_out::LeftOut;

use super::output::{figures_folder, print_tables, report, write_tables};
use crate::args::{AgreementArgs, SourceArgs};

/// Draws and prints how they agree.
pub fn run(args: &AgreementArgs) -> Result<()> {
    draw(&read(&args.source)?, &args.source, &args.format.format)
}

/// The same if there are results; says whether there are.
pub fn run_present(source: &SourceArgs, formats: &[Format], left_out: &mut LeftOut) -> Result<bool> {
    let Some(agreement) = left_out.keep_if_there(read(source))? else { return Ok(false) };
    draw(&agreement, source, formats)?;
    Ok(true)
}

fn read(source: &SourceArgs) -> Result<Agreement, plotting::Error> {
    Agreement::of(&Importance::read(&source.results, &source.subject)?)
}

fn draw(agreement: &Agreement, source: &SourceArgs, formats: &[Format]) -> Result<()> {
    let (folder, tables) = (figures_folder(source), [agreement::table(agreement)]);
    print_tables(&tables)?;
    write_tables(&folder, agreement::FILE_STEM, &tables)?;
    report(&agreement::figure(agreement)?.write(&folder, agreement::FILE_STEM, formats)?);
    Ok(())
}
