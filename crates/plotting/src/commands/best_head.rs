//! Tables 2, 3, 5 and 6.
use std::path::Path;

use anyhow::Result;
use plotting::best_head::{BestHeads, best_head_table};
use plotting::left_out::LeftOut;
use plotting::significance::Criterion;

use super::output::{figures_folder, paper_folder, print_tables, write_tables};
use crate::args::{BestHeadArgs, SourceArgs};

/// Heads chosen and reported on one split.
pub fn run_same(args: &BestHeadArgs) -> Result<()> {
    let best = BestHeads::read(&args.source.results, &args.source.subject)?;
    draw(&[best], &args.source, paper_folder(&args.paper.paper), args.criterion.criterion())
}

/// Heads chosen on another split.
pub fn run_selected(args: &BestHeadArgs) -> Result<()> {
    let SourceArgs { subject, results } = &args.source;
    let files = BestHeads::selected_files(results, subject)?.into_iter();
    let best: Vec<_> = files.map(|path| BestHeads::read_selected(path, subject)).collect::<Result<_, _>>()?;
    draw(&best, &args.source, paper_folder(&args.paper.paper), args.criterion.criterion())
}

/// Both, as far as they are there; says whether any was.
pub fn run_present(
    source: &SourceArgs,
    paper: Option<&Path>,
    criterion: Criterion,
    left_out: &mut LeftOut,
) -> Result<bool> {
    let SourceArgs { subject, results } = source;
    let same = left_out.keep_if_there(BestHeads::read(results, subject))?;
    let same: Vec<_> = same.into_iter().collect();
    let mut selected = Vec::new();
    for path in left_out.keep_if_there(BestHeads::selected_files(results, subject))?.into_iter().flatten() {
        selected.extend(left_out.keep(BestHeads::read_selected(path, subject))?);
    }
    draw(&same, source, paper, criterion)?;
    draw(&selected, source, paper, criterion)?;
    Ok(!same.is_empty() || !selected.is_empty())
}

/// One file for all, which are the same table with heads chosen on several splits.
fn draw(best: &[BestHeads], source: &SourceArgs, paper: Option<&Path>, criterion: Criterion) -> Result<()> {
    let Some(first) = best.first() else { return Ok(()) };
    let table = |best: &BestHeads| {
        let published = paper.map(|paper| best.published(paper)).transpose()?.unwrap_or_default();
        best_head_table(best, criterion, &published)
    };
    let tables = best.iter().map(table).collect::<Result<Vec<_>, _>>()?;
    print_tables(&tables)?;
    write_tables(&figures_folder(source), first.file_stem(), &tables)
}
