//! Figure 2 and its table, one for each comparison of two splits.
use std::path::Path;

use anyhow::Result;
use plotting::cross_domain::table::figure2_table;
use plotting::cross_domain::{CrossDomain, Pair};
use plotting::figure::canvas::Format;
use plotting::figure2::figure2;
use plotting::left_out::LeftOut;
use plotting::paper::Published;

use super::Setting;
use super::output::{paper_folder, print_tables, report, write_tables};
use crate::args::Figure2Args;

/// Draws one comparison or all.
pub fn run(args: &Figure2Args) -> Result<()> {
    let source = args.source.source();
    let all = Pair::all(&source)?;
    let paper = paper_folder(&args.paper.paper);
    for pair in Pair::select(&all, &source, args.against.as_deref())? {
        let comparison = CrossDomain::read(source.results(), &pair)?;
        draw(&comparison, &all, paper, &args.format.format)?;
    }
    Ok(())
}

/// Draws what there are results for; says whether there were any.
pub fn run_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let all = Pair::present(&setting.source, left_out)?;
    let mut has_any = false;
    for pair in &all {
        let comparison = CrossDomain::read(setting.source.results(), pair);
        let Some(comparison) = left_out.keep(comparison)? else { continue };
        draw(&comparison, &all, setting.paper.as_deref(), &setting.formats)?;
        has_any = true;
    }
    Ok(has_any)
}

/// Figure and table, named so that they are apart from those of `all`.
fn draw(comparison: &CrossDomain, all: &[Pair], paper: Option<&Path>, formats: &[Format]) -> Result<()> {
    let published = paper.map(Published::read).transpose()?;
    let (folder, stem) = (comparison.pair.file.figures(), comparison.pair.file_stem(all));
    let tables = [figure2_table(comparison)];
    print_tables(&tables)?;
    write_tables(&folder, &stem, &tables)?;
    report(&figure2(comparison, published.as_ref())?.write(&folder, &stem, formats)?);
    Ok(())
}
