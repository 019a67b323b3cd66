//! Figure 2, one for each comparison of two splits.
use std::path::Path;

use anyhow::Result;
use plotting::cross_domain::{CrossDomain, Pair};
use plotting::figure::canvas::Format;
use plotting::figure2::figure2;
use plotting::left_out::LeftOut;
use plotting::paper::Published;

use super::output::{figures_folder, paper_folder, report};
use crate::args::{Figure2Args, SourceArgs};

/// Draws one comparison or all.
pub fn run(args: &Figure2Args) -> Result<()> {
    let SourceArgs { subject, results } = &args.source;
    let all = Pair::all(results, subject)?;
    let selected = Pair::select(&all, args.against.as_deref(), results, subject)?;
    let published = paper_folder(&args.paper.paper).map(Published::read).transpose()?;
    for pair in selected {
        let comparison = CrossDomain::read(results, &pair)?;
        draw(&comparison, &all, &args.source, published.as_ref(), &args.format.format)?;
    }
    Ok(())
}

/// Draws what there are results for; says whether there were any.
pub fn run_present(
    source: &SourceArgs,
    paper: Option<&Path>,
    formats: &[Format],
    left_out: &mut LeftOut,
) -> Result<bool> {
    let all = Pair::present(&source.results, &source.subject, left_out)?;
    let mut has_any = false;
    for pair in &all {
        let comparison = CrossDomain::read(&source.results, pair);
        let Some(comparison) = left_out.keep(comparison)? else { continue };
        let published = paper.map(Published::read).transpose()?;
        draw(&comparison, &all, source, published.as_ref(), formats)?;
        has_any = true;
    }
    Ok(has_any)
}

/// The figure, named so that it is apart from those of `all`.
fn draw(
    comparison: &CrossDomain,
    all: &[Pair],
    source: &SourceArgs,
    published: Option<&Published>,
    formats: &[Format],
) -> Result<()> {
    let figure = figure2(comparison, published)?;
    report(&figure.write(&figures_folder(source), &comparison.pair.file_stem(all), formats)?);
    Ok(())
}
