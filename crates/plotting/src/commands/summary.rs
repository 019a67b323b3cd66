//! The paper beside all results.
use anyhow::Result;
use plotting::figure::canvas::write_file;
use plotting::summary::{FILE_NAME, summary};

use super::{paper_folder, print_all, report};
use crate::args::SummaryArgs;

/// Prints and writes one Markdown table for each claim.
pub fn run(args: &SummaryArgs) -> Result<()> {
    let text = summary(&args.results, paper_folder(&args.paper.paper), args.criterion.criterion())?;
    print_all(&text)?;
    report(&[write_file(&args.results, FILE_NAME, text.as_bytes())?]);
    Ok(())
}
