//! The command line.
use std::path::PathBuf;

use clap::Parser;

/// Writes the report of a subject: one HTML file that needs no network.
///
/// Everything that `plotting` draws, a card for each head, and the paper's numbers beside ours. What cannot be read is named in
/// the report and on stderr.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    /// Subject, a folder in the results, or the file that describes it
    #[arg(value_name = "SUBJECT", default_value = "demo-translation")]
    subject: String,

    /// Report on all subjects, with an index, `report.html`, and all beside each other, `comparison.html`
    #[arg(long, conflicts_with_all = ["subject", "out"])]
    pub all: bool,

    /// File to write; by default `<RESULTS>/<SUBJECT>/report.html`
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Folder with the results of all subjects
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    pub results: PathBuf,

    /// Folder with the files that describe subjects
    #[arg(long, value_name = "FOLDER", default_value = "experiments")]
    pub experiments: PathBuf,

    /// Folder with the published numbers
    #[arg(long, value_name = "FOLDER", default_value = "data/paper")]
    pub paper: PathBuf,

    /// A p-value below this is significant
    #[arg(long, value_name = "P", default_value_t = records::rules::ALPHA, value_parser = parse_alpha)]
    pub alpha: f64,
}

impl Args {
    /// The name of the subject.
    pub fn subject(&self) -> String {
        let file = self.subject.strip_suffix(".toml").and_then(|path| path.rsplit(['/', '\\']).next());
        file.unwrap_or(&self.subject).to_owned()
    }
}

fn parse_alpha(text: &str) -> Result<f64, String> {
    let alpha = text.parse().ok().filter(|alpha| *alpha > 0.0 && *alpha < 1.0);
    alpha.ok_or_else(|| "it must be a number between 0 and 1".to_owned())
}
