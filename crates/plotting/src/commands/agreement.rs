//! How orders of heads agree.
use anyhow::Result;
use plotting::agreement::{self, Agreement};
use plotting::figure::canvas::Format;
use plotting::importance::{EXPERIMENT, Importance};
use plotting::left_out::LeftOut;
use plotting::result_file::ResultFile;

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
        let Some(agreement) = left_out.keep(read(&file))? else { continue };
        draw(&file, &agreement, &setting.formats)?;
        has_any = true;
    }
    Ok(has_any)
}

fn read(file: &ResultFile) -> Result<Agreement, plotting::Error> {
    Agreement::of(&Importance::read(file.clone())?)
}

fn draw(file: &ResultFile, agreement: &Agreement, formats: &[Format]) -> Result<()> {
    let (stem, tables) = (file.stem(agreement::FILE_STEM), [agreement::table(agreement)]);
    print_tables(&tables)?;
    write_tables(&file.figures(), &stem, &tables)?;
    report(&agreement::figure(agreement)?.write(&file.figures(), &stem, formats)?);
    Ok(())
}
