//! Tables 2, 3, 5 and 6.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use plotting::best_head::{BestHeads, EXPERIMENT, best_head_table};
use plotting::left_out::LeftOut;
use plotting::significance::Criterion;

use super::Setting;
use super::output::{paper_folder, print_tables, write_tables};
use crate::args::BestHeadArgs;

/// Heads chosen and reported on one split.
pub fn run_same(args: &BestHeadArgs) -> Result<()> {
    let best = BestHeads::read(args.source.source().one(EXPERIMENT)?)?;
    draw(&[best], paper_folder(&args.paper.paper), args.criterion.criterion())
}

/// Heads chosen on another split.
pub fn run_selected(args: &BestHeadArgs) -> Result<()> {
    let best = BestHeads::read_selected(&args.source.source())?;
    draw(&best, paper_folder(&args.paper.paper), args.criterion.criterion())
}

/// Both, as far as they are there; says whether any was.
pub fn run_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let mut all = Vec::new();
    for file in
        BestHeads::files(&setting.source)?.into_iter().chain(BestHeads::selected_files(&setting.source)?)
    {
        all.extend(left_out.keep(BestHeads::read(file))?);
    }
    draw(&all, setting.paper.as_deref(), setting.criterion)?;
    Ok(!all.is_empty())
}

/// One file for those of one name, which are the same table with heads chosen on several splits.
fn draw(best: &[BestHeads], paper: Option<&Path>, criterion: Criterion) -> Result<()> {
    let mut files: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for best in best {
        let published = paper.map(|paper| best.published(paper)).transpose()?.unwrap_or_default();
        let table = best_head_table(best, criterion, &published)?;
        let file = &best.sweep.file;
        files.entry((file.figures(), file.stem(best.file_stem()))).or_default().push(table);
    }
    for ((folder, stem), tables) in files {
        print_tables(&tables)?;
        write_tables(&folder, &stem, &tables)?;
    }
    Ok(())
}
