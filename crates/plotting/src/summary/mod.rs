//! The paper's claims beside what was measured on other data: one Markdown table for each claim.
mod claims;
mod language;
mod training;

use std::path::Path;

use crate::Error;
use crate::best_head::{self, BestHeads};
use crate::cross_domain::{CrossDomain, Pair};
use crate::dynamics::{self, Dynamics};
use crate::left_out::LeftOut;
use crate::metric::Metric;
use crate::paper::Published;
use crate::pruning::{self, Pruning};
use crate::result_file::{ResultFile, Source, subjects};
use crate::significance::Criterion;
use crate::sweep::{self, Sweep};
use records::visible::visible;

/// Name of the file, in the folder of all results.
pub const FILE_NAME: &str = "summary.md";

/// All that was measured on one subject.
struct Subject {
    sweep: Option<Sweep>,
    best: Vec<BestHeads>,
    agreements: Vec<CrossDomain>,
    pruning: Option<Pruning>,
    dynamics: Option<Dynamics>,
}

impl Subject {
    /// The standard files or, where there is none, that of the run over most segments.
    fn read(results: &Path, name: &str, left_out: &mut LeftOut) -> Result<Self, Error> {
        let source = Source::subject(results, name);
        let sweep = source.one(sweep::EXPERIMENT).and_then(|file| Sweep::read(file, sweep::EXPERIMENT));
        let sweep = left_out.keep_if_there(sweep)?;
        let mut best = Vec::new();
        let same = source.one(best_head::EXPERIMENT).and_then(BestHeads::read);
        best.extend(left_out.keep_if_there(same)?);
        let mut selected = Vec::new();
        for file in BestHeads::selected_files(&source)? {
            selected.extend(left_out.keep(BestHeads::read(file))?);
        }
        best.extend(BestHeads::largest(&selected).into_iter().cloned());
        let mut agreements = Vec::new();
        for pair in Pair::largest(&Pair::present(&source, left_out)?) {
            agreements.extend(left_out.keep(CrossDomain::read(results, pair))?);
        }
        let pruning = source.one(pruning::EXPERIMENT).and_then(|file| Pruning::read(file, left_out));
        let pruning = left_out.keep_if_there(pruning)?;
        let dynamics = source.one(dynamics::EXPERIMENT).and_then(Dynamics::read);
        let dynamics = left_out.keep_if_there(dynamics)?;
        Ok(Self { sweep, best, agreements, pruning, dynamics })
    }

    /// Whether its scores are nats a token, and no points.
    fn has_nats(&self) -> bool {
        let sweeps = self.sweep.iter().map(|sweep| &sweep.metric);
        sweeps.chain(self.pruning.iter().map(|pruning| &pruning.metric)).any(Metric::is_nats)
    }

    /// The files that were read.
    fn files(&self) -> impl Iterator<Item = &ResultFile> {
        let sweeps =
            self.sweep.iter().chain(self.best.iter().map(|best| &best.sweep)).map(|sweep| &sweep.file);
        let pairs = self.agreements.iter().map(|agreement| &agreement.pair.file);
        let curves = self.pruning.iter().map(|pruning| &pruning.file);
        sweeps.chain(pairs).chain(curves).chain(self.dynamics.iter().map(|dynamics| &dynamics.file))
    }
}

/// One claim of the paper.
struct Section {
    title: &'static str,
    note: String,
    columns: &'static [&'static str],
    /// What the paper has.
    published: Vec<Vec<String>>,
    /// What was measured.
    measured: Vec<Vec<String>>,
    /// What must be said of single rows.
    remarks: Vec<String>,
}

impl Section {
    /// As Markdown; nothing if nothing was measured.
    fn markdown(&self) -> Option<String> {
        if self.measured.is_empty() {
            return None;
        }
        let line = |cells: &[String]| {
            let cells: Vec<_> =
                cells.iter().map(|cell| cell.replace('|', "\\|").replace('<', "\\<")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let names: Vec<_> = self.columns.iter().map(|&name| name.to_owned()).collect();
        let rules: Vec<_> =
            (0..self.columns.len()).map(|column| if column < 2 { "---" } else { "--:" }).collect();
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.note.replace('<', "\\<"));
        text += &line(&names);
        text += &format!("|{}|\n", rules.join("|"));
        for row in self.published.iter().chain(&self.measured) {
            text += &line(row);
        }
        if !self.remarks.is_empty() {
            text.push('\n');
        }
        for remark in &self.remarks {
            text += &format!("- {}\n", remark.replace('<', "\\<"));
        }
        Some(text)
    }
}

/// Everything in `results` beside the numbers in the folder `paper`, if there is one; what cannot be shown yet is left out.
///
/// # Errors
/// If a file is damaged, or there is nothing to show.
pub fn summary(
    results: &Path,
    paper: Option<&Path>,
    criterion: Criterion,
    left_out: &mut LeftOut,
) -> Result<String, Error> {
    let names = subjects(results)?.into_iter().filter(|name| !name.starts_with('.'));
    let all: Vec<_> = names.map(|name| Subject::read(results, &name, left_out)).collect::<Result<_, _>>()?;
    let published = paper.map(Published::read).transpose()?;
    let sections = [
        claims::single_heads(&all, published.as_ref(), criterion),
        claims::best_heads(&all, paper, criterion)?,
        claims::across_domains(&all, published.as_ref()),
        claims::removable(&all, paper, criterion)?,
        claims::by_type(&all, paper, criterion)?,
        training::during_training(&all, paper)?,
        language::question(&all, criterion, left_out)?,
    ];
    let sections: Vec<_> = sections.iter().filter_map(Section::markdown).collect();
    if sections.is_empty() {
        return Err(Error::NothingMeasured { results: results.to_owned() });
    }
    let nats = if all.iter().any(Subject::has_nats) { NATS } else { "" };
    Ok(visible(&format!("{HEAD}{nats}\n{}{}", sections.join("\n"), unchecked(&all))))
}

/// The files whose signatures cannot vouch for their rows.
fn unchecked(all: &[Subject]) -> String {
    let remark = |file: &ResultFile| Some(format!("- {}: {}\n", file.subject, file.remark()?));
    let remarks: String = all.iter().flat_map(Subject::files).filter_map(remark).collect();
    if remarks.is_empty() { remarks } else { format!("\n## Files that could not be checked\n\n{remarks}") }
}

const HEAD: &str = "\
# The paper's claims beside what we measured on other data

Made by `plotting summary` from the files in this folder. M19 is Michel, Levy and Neubig (2019), as published; all other
rows are other models on other data, so numbers are there to compare patterns, not values. Demo subjects are made-up
languages. Scores are in points.
";

/// What the head says besides, where it is so.
const NATS: &str = "Nats a token are no points: the less the better.\n";

#[cfg(test)]
mod tests;
