//! How orders of heads agree, and what groups of heads add up to.
use anyhow::Result;
use plotting::agreement::{self, Agreement};
use plotting::figure::canvas::Format;
use plotting::importance::{EXPERIMENT, Importance};
use plotting::importance_by_group;
use plotting::left_out::LeftOut;
use plotting::result_file::ResultFile;
use plotting::table::Table;

use super::Setting;
use super::output::{print_tables, report, write_tables};
use crate::args::AgreementArgs;

/// Draws and prints how they agree.
pub fn run(args: &AgreementArgs) -> Result<()> {
    let file = args.source.source().one(EXPERIMENT)?;
    draw(&file, &read(&file)?, &args.format.format)
}

/// The same for each file that is there; says whether any is.
pub fn run_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let mut has_any = false;
    for file in setting.source.all(EXPERIMENT, EXPERIMENT)? {
        let Some(found) = left_out.keep(read(&file))? else { continue };
        draw(&file, &found, &setting.formats)?;
        has_any = true;
    }
    Ok(has_any)
}

/// What one file says.
struct Found {
    agreement: Agreement,
    tables: Vec<Table>,
}

fn read(file: &ResultFile) -> Result<Found, plotting::Error> {
    let importance = Importance::read(file.clone())?;
    let agreement = Agreement::of(&importance)?;
    let groups = importance_by_group::table(&importance);
    Ok(Found { tables: std::iter::once(agreement::table(&agreement)).chain(groups).collect(), agreement })
}

fn draw(file: &ResultFile, found: &Found, formats: &[Format]) -> Result<()> {
    let stem = file.stem(agreement::FILE_STEM);
    print_tables(&found.tables)?;
    write_tables(&file.figures(), &stem, &found.tables)?;
    report(&agreement::figure(&found.agreement)?.write(&file.figures(), &stem, formats)?);
    Ok(())
}
