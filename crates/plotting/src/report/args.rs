//! The command line.
use std::path::PathBuf;

use crate::findings::source::subject_named;
use crate::findings::{Folders, parse_alpha};
use clap::Parser;

/// Writes the report of a subject: one HTML file that needs no network.
///
/// Everything that `plotting` draws, a card for each head, and the paper's numbers beside ours. What cannot be read is named in
/// the report and on stderr.
#[derive(Debug, Parser)]
#[command(name = "report", version)]
pub struct Args {
    /// Subject, a folder in the results, or the file that describes it
    #[arg(value_name = "SETUP", default_value = "demo-translation")]
    subject: String,

    /// Report on all subjects, with an index, `report.html`, and all beside each other, `comparison.html`
    #[arg(long, conflicts_with_all = ["subject", "out"])]
    pub all: bool,

    /// File to write, which ends in `.html`; by default `<RESULTS>/<SETUP>/report.html`
    #[arg(long, value_name = "FILE", value_parser = html_file)]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub folders: Folders,

    /// Also show texts of your own files, with the heads that change them most; the page then contains these texts. Texts of the
    /// demos are always shown, texts of fetched data never
    #[arg(long)]
    pub texts: bool,

    /// Folder with the data sets, for --texts
    #[arg(long, value_name = "FOLDER", default_value = "data")]
    pub data: PathBuf,

    /// A p-value below this is significant
    #[arg(long, value_name = "P", default_value_t = records::rules::ALPHA, value_parser = parse_alpha)]
    pub alpha: f64,
}

/// A name that no result file has, so that none is overwritten.
///
/// # Errors
/// If it does not end in `.html`.
pub fn html_file(name: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(name);
    let is_html = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"));
    if is_html { Ok(path) } else { Err("this is an HTML file: its name must end in `.html`") }
}

impl Args {
    /// Folders to read.
    pub fn folders(&self) -> Folders {
        self.folders.beside(&self.subject)
    }

    /// The name of the subject.
    pub fn subject(&self) -> &str {
        subject_named(&self.subject)
    }
}
