//! Tests results again, without the model.
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::start_threads;
use crate::{Retested, Share, TestArgs, retest};
use anyhow::{Context, bail};
use clap::Parser;
use records::is_shard;
use records::signature::Testing;
use words::{exit_code, print_error, print_line};

/// Recomputes all p-values, intervals, adjustments and shares of dispensable heads from the stored statistics of segments.
///
/// Settings that are not given stay as they were. Neither the model nor its data is needed.
#[derive(Debug, Parser)]
#[command(name = "retest", version)]
struct Args {
    /// Setup whose results are all tested, or a result file [default: all setups]
    #[arg(value_name = "SETUP or FILE.csv")]
    target: Option<PathBuf>,

    /// Seed of the swaps and resamples
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,

    /// Threads of the computation [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    test: TestArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    start_threads(args.threads)?;
    let change = |before: Testing| args.test.testing(Some(before), args.seed);
    let files = files(args)?;
    if let [path] = files.as_slice() {
        let retested = retest(path, change).map_err(|error| named(path, error))?;
        if matches!(retested, Retested::NotMeasured { .. }) && args.target.as_ref() == Some(path) {
            bail!("`{}` has no statistics of segments: --again measures them", path.display());
        }
        return print(&retested);
    }
    let mut faults = 0;
    for path in &files {
        match retest(path, change) {
            Ok(retested) => print(&retested)?,
            Err(error) => {
                faults += 1;
                print_error(&named(path, error));
            }
        }
    }
    if faults > 0 {
        bail!("{faults} of {} files could not be tested", files.len());
    }
    Ok(())
}

/// Adds the name of the file to an error that does not contain it.
fn named(path: &Path, error: crate::Error) -> anyhow::Error {
    let name = format!("`{}`", path.display());
    let is_named = error.to_string().contains(&name);
    let error = anyhow::Error::from(error);
    if is_named { error } else { error.context(name) }
}

fn print(retested: &Retested) -> anyhow::Result<()> {
    match retested {
        Retested::Tested { path, rows, shares } => {
            print_line(format!("{}: {rows} rows", path.display()))?;
            for share in shares {
                print_line(format!("  {}", described(share)))?;
            }
        }
        Retested::NotMeasured { path } => {
            words::say!("{}: not tested, because it has no statistics of segments", path.display());
        }
    }
    Ok(())
}

fn described(share: &Share) -> String {
    let percent = |masked: Option<usize>| match masked {
        Some(masked) => format!("{:.1}%", 100.0 * masked as f64 / share.heads as f64),
        None => "unknown".to_owned(),
    };
    let remark = if share.is_ordered_by_tested_segments {
        " (optimistic: heads were ranked on the segments that are tested)"
    } else {
        ""
    };
    format!(
        "{}: dispensable heads: {}; heads without a significant loss: {}{remark}",
        share.curve,
        percent(share.dispensable),
        percent(share.without_loss)
    )
}

fn files(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    let folders = match &args.target {
        Some(file) if file.extension().is_some_and(|extension| extension == "csv") => {
            return Ok(vec![file.clone()]);
        }
        Some(subject) => vec![args.results.join(subject)],
        None => listed(&args.results)?.into_iter().filter(|path| path.is_dir()).collect(),
    };
    let mut files = Vec::new();
    let replicates = |folder: PathBuf| -> anyhow::Result<Vec<PathBuf>> {
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of_folder = listed(&folder)?;
        let is_replicate = |path: &PathBuf| path.is_dir() && name(path).starts_with("replicate-");
        Ok(std::iter::once(folder).chain(of_folder.into_iter().filter(is_replicate)).collect())
    };
    let folders = folders.into_iter().map(replicates).collect::<anyhow::Result<Vec<_>>>()?;
    for folder in folders.into_iter().flatten() {
        let is_result = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".csv")
                && !name.ends_with(".partial.csv")
                && !is_shard(path)
                && crate::tested().any(|experiment| name.starts_with(experiment))
        };
        files.extend(listed(&folder)?.into_iter().filter(is_result));
    }
    if files.is_empty() {
        bail!("there are no results to test in `{}`", args.results.display());
    }
    Ok(files)
}

fn listed(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let allowed = "expected a result file, or a setup with a folder of results";
    let fault = || format!("cannot read `{}`: {allowed}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(fault)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
