//! Joins the shards of results, without the model.
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::start_threads;
use crate::merge;
use anyhow::{Context, bail};
use clap::Parser;
use records::{is_shard, shards_in};
use words::{exit_code, print_error, print_line};

/// Joins the results of runs with --shard into the results of a single run, and tests them.
///
/// All rows assigned to the shards must be present; otherwise the missing rows are listed and nothing is changed. Rows of unfinished shards
/// count too, but a shard that is being written is refused. The files of the shards are removed once the results are complete. Neither the
/// model nor its data is needed.
#[derive(Debug, Parser)]
#[command(name = "merge", version)]
struct Args {
    /// Setup whose shards are all joined, or the result file to join shards into, such as results/demo-translation/ablate-one.csv
    #[arg(value_name = "SETUP or FILE.csv")]
    target: PathBuf,

    /// Join the shards of this experiment only, such as ablate-one
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,

    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,

    /// Threads of the tests [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    start_threads(args.threads)?;
    let files = files(args)?;
    let mut faults = 0;
    for path in &files {
        match merge(path) {
            Ok(merged) => {
                print_line(format!("{}: {} rows of {} shards", path.display(), merged.rows, merged.shards))?;
            }
            Err(error) if files.len() == 1 => return Err(error.into()),
            Err(error) => {
                faults += 1;
                print_error(&anyhow::Error::from(error));
            }
        }
    }
    if faults > 0 {
        bail!("the shards of {faults} of {} results could not be joined", files.len());
    }
    Ok(())
}

fn files(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    let target = &args.target;
    if is_shard(target) {
        bail!("`{}` is a single shard: name the setup, or the result file of all shards", target.display());
    }
    if target.extension().is_some_and(|extension| extension == "csv") {
        return Ok(vec![target.clone()]);
    }
    let is_description = target.extension().is_some_and(|extension| extension == "toml");
    let subject = if is_description { target.file_stem().map(Path::new) } else { Some(target.as_path()) };
    let folder = args.results.join(subject.context("a setup must have a name")?);
    if !folder.is_dir() {
        bail!("there are no results in `{}`: name another folder with --results", folder.display());
    }
    let is_meant = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let rest = args.experiment.as_ref().map(|name| stem.strip_prefix(name.as_str()));
        rest.is_none_or(|rest| rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
    };
    let files: Vec<PathBuf> = shards_in(&folder)?.into_keys().filter(is_meant).collect();
    if files.is_empty() {
        bail!("there are no shards to join in `{}`: runs with --shard create them", folder.display());
    }
    Ok(files)
}
