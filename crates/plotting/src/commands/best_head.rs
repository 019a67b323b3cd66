//! Tables 2, 3, 5 and 6.
use std::path::{Path, PathBuf};

use anyhow::Result;
use plotting::best_head::{BestHeads, EXPERIMENT, best_head_table};
use plotting::figure::canvas::write_file;
use plotting::significance::Criterion;
use plotting::table::Table;

use super::{figures_folder, has_rows, join, paper_folder, print_all, report};
use crate::args::{BestHeadArgs, SourceArgs};

/// Heads chosen and reported on one split.
pub fn run_same(args: &BestHeadArgs) -> Result<()> {
    let best = BestHeads::read(&args.source.results, &args.source.subject)?;
    draw(&[best], &args.source, paper_folder(&args.paper.paper), args.criterion.criterion())
}

/// Heads chosen on another split.
pub fn run_selected(args: &BestHeadArgs) -> Result<()> {
    let best = BestHeads::read_selected(&args.source.results, &args.source.subject)?;
    draw(&best, &args.source, paper_folder(&args.paper.paper), args.criterion.criterion())
}

/// Both, as far as they are there; says whether any was.
pub fn run_present(source: &SourceArgs, paper: Option<&Path>, criterion: Criterion) -> Result<bool> {
    let has_same = has_rows(source, EXPERIMENT);
    if has_same {
        draw(&[BestHeads::read(&source.results, &source.subject)?], source, paper, criterion)?;
    }
    let has_selected = BestHeads::has_selected(&source.results, &source.subject)?;
    if has_selected {
        draw(&BestHeads::read_selected(&source.results, &source.subject)?, source, paper, criterion)?;
    }
    Ok(has_same || has_selected)
}

/// One file for all, which are the same table with heads chosen on several splits.
fn draw(best: &[BestHeads], source: &SourceArgs, paper: Option<&Path>, criterion: Criterion) -> Result<()> {
    let Some(first) = best.first() else { return Ok(()) };
    let table = |best: &BestHeads| {
        let published = paper.map(|paper| best.published(paper)).transpose()?.unwrap_or_default();
        best_head_table(best, criterion, &published)
    };
    let tables = best.iter().map(table).collect::<Result<Vec<_>, _>>()?;
    print_all(&join(&tables, Table::terminal))?;
    report(&write_tables(&figures_folder(source), first.file_stem(), &tables)?);
    Ok(())
}

/// Writes tables as Markdown and LaTeX.
pub fn write_tables(folder: &Path, stem: &str, tables: &[Table]) -> Result<Vec<PathBuf>> {
    let write = |extension, text: String| write_file(folder, &format!("{stem}.{extension}"), text.as_bytes());
    Ok(vec![write("md", join(tables, Table::markdown))?, write("tex", join(tables, Table::latex))?])
}
