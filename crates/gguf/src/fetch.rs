//! Fetches a data set listed in `data/sources.toml`, or a model from the Hugging Face hub.
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;
use corpus::fetch::{Catalogue, Origin, Source, Upstream, fetch};
use corpus::hub::{self, HubModel, HubOptions};
use corpus::progress::progress_bar;
use indicatif::ProgressBar;
use words::{exit_code, print_line, visible};

/// Fetches a data set and checks its files, or downloads a model from the Hugging Face hub to its cache.
#[derive(Debug, Parser)]
#[command(name = "fetch", version)]
struct Args {
    /// Data set, or hub:owner/name[@revision] for a model, which respects HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,

    /// Folder or URL to fetch from instead of the data set's own, with the file layout of `data/`
    #[arg(long, value_name = "DIR_OR_URL")]
    mirror: Option<String>,

    /// Folder for data sets
    #[arg(long, value_name = "DIR", default_value = "data")]
    data: PathBuf,

    /// List of data sets
    #[arg(long, value_name = "FILE", default_value = "data/sources.toml")]
    sources: PathBuf,

    /// List what can be fetched, without fetching it
    #[arg(long, conflicts_with_all = ["name", "mirror"])]
    list: bool,

    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> Result<()> {
    if let Some(model) = args.name.as_deref().and_then(|name| name.strip_prefix(hub::PREFIX)) {
        return fetch_from_hub(&model.parse()?, args);
    }
    let catalogue = Catalogue::read(&durable::bundled(&args.sources))?;
    match &args.name {
        None => list(&catalogue)?,
        Some(name) => fetch_and_report(name, catalogue.get(name)?, args)?,
    }
    Ok(())
}

fn list(catalogue: &Catalogue) -> io::Result<()> {
    for (name, source) in catalogue.iter() {
        let from = match source.upstream() {
            Upstream::Address(address) | Upstream::Archive(address) => format!("from {address}"),
            Upstream::Package(package) => format!("from the Python package {package}, by pip"),
            Upstream::Elsewhere(hint) => format!("only from a mirror ({hint})"),
        };
        let (title, files, licence) = (&source.title, source.files.len(), &source.licence);
        let described = format!("{name}: {title} ({files} files)\n    {from}\n    licence: {licence}");
        print_line(visible(&described))?;
    }
    Ok(())
}

fn fetch_and_report(name: &str, source: &Source, args: &Args) -> Result<()> {
    // shown even with --quiet, since nobody should accept unseen terms
    words::say!("{}\nLicence: {}\n{}", source.title, source.licence, source.terms);
    let origin = args.mirror.as_deref().map_or(Origin::Upstream, Origin::mirror);
    let bar = if args.quiet { ProgressBar::hidden() } else { progress_bar() };
    let mut progress = |file: &str, done, total: Option<u64>| {
        bar.set_message(file.to_owned());
        bar.set_length(total.unwrap_or(done));
        bar.set_position(done);
    };
    let fetched = fetch(name, source, &origin, &args.data, &mut progress);
    bar.finish_and_clear();
    let fetched = fetched?;
    if !args.quiet {
        let (all, folder) = (source.files.len(), args.data.join(source.folder(name)));
        words::say!("{all} files in `{}`, {fetched} of them new", folder.display());
        let unverified: Vec<&str> = source.unverified().collect();
        if !unverified.is_empty() {
            words::say!("not verified: no checksum is known for {}", unverified.join(", "));
        }
    }
    if let (Some(images), Some(table)) = (&source.images, source.files.keys().next()) {
        let folder = args.data.join(source.folder(name));
        images.unpack(&folder.join(table), &folder)?;
        if !args.quiet {
            words::say!("its images by split and class in `{}`", folder.display());
        }
    }
    match (&source.model_folder, source.gguf()) {
        (Some(model), Some(file)) => {
            import(&args.data.join(source.folder(name)).join(file), &args.data.join(model), args)
        }
        _ => Ok(()),
    }
}

/// Converts a GGUF file to a Hugging Face folder, unless the folder exists.
fn import(file: &Path, folder: &Path, args: &Args) -> Result<()> {
    let kept = folder.exists();
    if !kept {
        crate::import(file, folder, false)?;
    }
    if !args.quiet {
        let ending = if kept { " (exists already; kept)" } else { "" };
        words::say!("its model as a Hugging Face folder in `{}`{ending}", folder.display());
    }
    Ok(())
}

fn fetch_from_hub(model: &HubModel, args: &Args) -> Result<()> {
    ensure!(args.mirror.is_none(), "--mirror is for data sets: set HF_ENDPOINT to use another hub");
    let options = HubOptions::from_env();
    let fetched = model.fetch(&options, args.quiet)?;
    if !args.quiet {
        words::say!("commit {} in `{}`", fetched.commit, fetched.folder.display());
    }
    Ok(())
}
