//! The paper beside all results.
use anyhow::Result;
use plotting::figure::canvas::write_file;
use plotting::left_out::LeftOut;
use plotting::summary::{FILE_NAME, summary};

use super::output::{paper_folder, print_all, report, warn};
use crate::args::SummaryArgs;

/// Prints and writes one Markdown table for each claim.
pub fn run(args: &SummaryArgs) -> Result<()> {
    let mut left_out = LeftOut::default();
    let paper = paper_folder(&args.paper.paper);
    let text = summary(&args.results, paper, args.criterion.criterion(), &mut left_out);
    warn(&mut left_out);
    let text = text?;
    print_all(&text)?;
    report(&[write_file(&args.results, FILE_NAME, text.as_bytes())?]);
    Ok(())
}
