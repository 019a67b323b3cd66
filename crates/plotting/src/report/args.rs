//! The command line.
use std::path::PathBuf;

use crate::findings::source::subject_named;
use crate::findings::{Folders, parse_alpha};
use clap::Parser;

/// Writes the report of a setup: one HTML file that needs no network.
///
/// Contains everything that `plotting` draws, a card for each head, and a comparison with the paper. Files that cannot be read are named in
/// the report and on stderr.
#[derive(Debug, Parser)]
#[command(name = "report", version)]
pub struct Args {
    /// Setup, by the name of its folder in the results or by its file
    #[arg(value_name = "SETUP", default_value = "demo-translation")]
    subject: String,

    /// Report on all setups, with an index, `report.html`, and a comparison of all, `comparison.html`
    #[arg(long, conflicts_with_all = ["subject", "out"])]
    pub all: bool,

    /// File to write, which must end in `.html`; by default `<RESULTS>/<SETUP>/report.html`
    #[arg(long, value_name = "FILE", value_parser = html_file)]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub folders: Folders,

    /// Also show texts from your own files, with the heads that change them most; the page then contains these texts. Texts of the demos
    /// are always shown, texts of downloaded data never
    #[arg(long)]
    pub texts: bool,

    /// Folder with the data sets, for --texts
    #[arg(long, value_name = "FOLDER", default_value = "data")]
    pub data: PathBuf,

    /// Significance level: p-values below it are significant
    #[arg(long, value_name = "P", default_value_t = records::verdicts::ALPHA, value_parser = parse_alpha)]
    pub alpha: f64,
}

/// Parses the name of an HTML file; other endings are refused, so that no result file is overwritten.
pub fn html_file(name: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(name);
    let is_html = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"));
    if is_html { Ok(path) } else { Err("the name of an HTML file must end in `.html`") }
}

impl Args {
    pub fn folders(&self) -> Folders {
        self.folders.beside(&self.subject)
    }

    /// Returns the name of the setup.
    pub fn subject(&self) -> &str {
        subject_named(&self.subject)
    }
}
