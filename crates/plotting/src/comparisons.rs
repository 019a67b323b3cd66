//! The commands that compare: two splits (Figure 2), or orders of heads.
use std::path::Path;

use anyhow::Result;
use plotting::agreement::{self, Agreement};
use plotting::cross_domain::{CrossDomain, Pair};
use plotting::figure::canvas::{Format, write_file};
use plotting::figure2::figure2;
use plotting::importance::Importance;
use plotting::paper::Published;

use crate::args::{AgreementArgs, Figure2Args, SourceArgs};
use crate::commands::{paper_folder, print_all, report};

/// Draws Figure 2 of one comparison or all.
pub fn run_figure2(args: &Figure2Args) -> Result<()> {
    let SourceArgs { subject, results } = &args.source;
    let all = Pair::all(results, subject)?;
    let selected = Pair::select(&all, args.against.as_deref(), results, subject)?;
    let published = paper_folder(&args.paper.paper).map(Published::read).transpose()?;
    draw_figure2(&args.source, [&selected, &all], published.as_ref(), &args.format.format)
}

/// Draws and prints how orders agree.
pub fn run_agreement(args: &AgreementArgs) -> Result<()> {
    draw_agreement(&args.source, &args.format.format)
}

/// Draws what there are results for; says whether there were any.
pub fn run_present(source: &SourceArgs, paper: Option<&Path>, formats: &[Format]) -> Result<bool> {
    let SourceArgs { subject, results } = source;
    if !results.join(subject).is_dir() {
        return Ok(false);
    }
    let all = Pair::all(results, subject)?;
    if !all.is_empty() {
        let published = paper.map(Published::read).transpose()?;
        draw_figure2(source, [&all, &all], published.as_ref(), formats)?;
    }
    let has_importance = Importance::exists(results, subject);
    if has_importance {
        draw_agreement(source, formats)?;
    }
    Ok(has_importance || !all.is_empty())
}

/// One figure for each of the `selected`, named so that it is apart from those of `all`.
fn draw_figure2(
    source: &SourceArgs,
    [selected, all]: [&[Pair]; 2],
    published: Option<&Published>,
    formats: &[Format],
) -> Result<()> {
    let folder = source.results.join(&source.subject).join("figures");
    for pair in selected {
        let figure = figure2(&CrossDomain::read(&source.results, pair)?, published)?;
        report(&figure.write(&folder, &pair.file_stem(all), formats)?);
    }
    Ok(())
}

fn draw_agreement(source: &SourceArgs, formats: &[Format]) -> Result<()> {
    let agreement = Agreement::of(&Importance::read(&source.results, &source.subject)?)?;
    let folder = source.results.join(&source.subject).join("figures");
    let table = agreement::table(&agreement);
    print_all(&table.terminal())?;
    let write = |extension, text: String| {
        write_file(&folder, &format!("{}.{extension}", agreement::FILE_STEM), text.as_bytes())
    };
    report(&[write("md", table.markdown())?, write("tex", table.latex())?]);
    report(&agreement::figure(&agreement)?.write(&folder, agreement::FILE_STEM, formats)?);
    Ok(())
}
