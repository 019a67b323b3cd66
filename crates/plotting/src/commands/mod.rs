//! What each command does: read, draw, write, and say what was written.
mod agreement;
mod best_head;
mod dynamics;
mod figure2;
mod groups;
mod output;
mod pruning;
mod single_head;
mod speed;
mod summary;

use std::path::PathBuf;

use anyhow::Result;
use plotting::figure::canvas::Format;
use plotting::left_out::LeftOut;
use plotting::result_file::Source;
use plotting::significance::Criterion;
use plotting::sweep::EXPERIMENT;

use crate::args::{AllArgs, Args, Command};
use output::{paper_folder, warn};

/// What to draw everything from, and how.
pub struct Setting {
    source: Source,
    /// The folder of the paper's numbers, if it is there.
    paper: Option<PathBuf>,
    criterion: Criterion,
    formats: Vec<Format>,
}

/// Runs one command.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Table1(args) => single_head::run_table1(args),
        Command::Figure1(args) => single_head::run_figure1(args),
        Command::Figure2(args) => figure2::run(args),
        Command::Agreement(args) => agreement::run(args),
        Command::Groups(args) => groups::run(args),
        Command::Table2(args) => best_head::run_same(args),
        Command::Table5(args) => best_head::run_selected(args),
        Command::Figure3(args) => pruning::run_figure3(args),
        Command::Figure4(args) => pruning::run_figure4(args),
        Command::Table4(args) => speed::run(args),
        Command::Figure5(args) => dynamics::run(args),
        Command::Summary(args) => summary::run(args),
        Command::All(args) => run_all(args),
    }
}

/// Whatever there are results for. Without any, the message is that on the first experiment.
fn run_all(args: &AllArgs) -> Result<()> {
    let setting = Setting {
        source: args.source.source(),
        paper: paper_folder(&args.paper.paper).map(PathBuf::from),
        criterion: args.criterion.criterion(),
        formats: args.format.format.clone(),
    };
    let mut left_out = LeftOut::default();
    let drawn = draw_present(&setting, &mut left_out);
    let has_left_out = warn(&mut left_out);
    if !drawn? && !has_left_out {
        setting.source.one(EXPERIMENT)?.rows::<records::AblationRow>()?;
    }
    Ok(())
}

/// Draws what is there; says whether anything was.
fn draw_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let mut has_any = single_head::run_present(setting, left_out)?;
    has_any |= best_head::run_present(setting, left_out)?;
    has_any |= pruning::run_present(setting, left_out)?;
    has_any |= figure2::run_present(setting, left_out)?;
    has_any |= speed::run_present(setting, left_out)?;
    has_any |= dynamics::run_present(setting, left_out)?;
    has_any |= agreement::run_present(setting, left_out)?;
    has_any |= groups::run_present(setting, left_out)?;
    Ok(has_any)
}
