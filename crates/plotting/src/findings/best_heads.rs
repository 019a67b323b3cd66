//! The best head of each layer when all other heads of the layer are masked (Michel et al. 2019, Section 3.3, Appendix A).
use std::collections::BTreeMap;
use std::fmt;

use records::{AblationRow, Attention, Row, TestedRow, Verdicts};
use words::count;

use crate::findings::ablations::Ablations;
use crate::findings::error::{Result, faulty, no_results};
use crate::findings::judge::{Judge, RuleKind};
use crate::findings::paper::{Masked, PAPER};
use crate::findings::source::{ResultFile, Source, experiment};

/// Prefix of the names of files with heads chosen on another split; the name of this split follows.
const SELECTED: &str = "ablate-all-but-one-selected-on-";

/// Layers reduced to one head, with a row for each head kept alone.
#[derive(Debug, Clone)]
pub struct BestHeads {
    /// Its rows and their file.
    pub sweep: Ablations,
    /// The split on which the best heads were chosen; `None` if that is the reported split.
    pub selected_on: Option<String>,
}

impl BestHeads {
    /// Reads a file of `ablate-all-but-one`; refuses several heads in a layer if they were chosen on another split.
    pub fn read(file: ResultFile) -> Result<Self> {
        let selected_on = selected_on(&file);
        // the signature tells where the split ends in the name
        let standard = selected_on.as_ref().map(|split| format!("{SELECTED}{split}"));
        let file = match standard.filter(|standard| file.is_named(standard)) {
            Some(standard) => file.with_standard(&standard),
            None => file,
        };
        let best = Self { sweep: Ablations::read(file)?, selected_on };
        let mut layers = BTreeMap::new();
        for row in best.sweep.rows.iter().filter(|_| best.selected_on.is_some()) {
            if let Some(first) = layers.insert((row.attention, row.layer), row.name()) {
                let second = row.name();
                let fault =
                    format!("has {first} and {second}: expected one head of each layer, the chosen one");
                return Err(faulty(&best.sweep.file.path, fault));
            }
        }
        Ok(best)
    }

    /// Returns the files with heads chosen on the reported split, or on another one; may be empty.
    pub fn files(source: &Source, is_other_split: bool) -> Result<Vec<ResultFile>> {
        let mut files = source.all(experiment::BEST_HEADS)?;
        files.retain(|file| selected_on(file).is_some() == is_other_split);
        Ok(files)
    }

    /// Returns, for each other split on which heads were chosen, the file with most segments, or the one file that was named.
    pub fn largest_files(source: &Source) -> Result<Vec<ResultFile>> {
        let Source::Subject { subject, results, .. } = source else {
            return Ok(vec![source.one(experiment::BEST_HEADS)?]);
        };
        let files = Self::files(source, true)?;
        if files.is_empty() {
            let path = results.join(subject).join(format!("{SELECTED}<split>.csv"));
            return Err(no_results(path, "ablate-all-but-one --select-on <split>", subject));
        }
        Ok(ResultFile::largest(&files, selected_on))
    }

    /// Returns the best head of each layer; of heads with equal scores, the one with the smallest number.
    pub fn of(&self, attention: Attention) -> BTreeMap<usize, &AblationRow> {
        let mut best: BTreeMap<usize, &AblationRow> = BTreeMap::new();
        for row in self.sweep.family(attention) {
            let there = best.entry(row.layer).or_insert(row);
            let is_better = row.direction().is_better(row.score, there.score);
            if is_better || row.score == there.score && row.head < there.head {
                *there = row;
            }
        }
        best
    }

    /// Returns verdicts on masking all but the best head of each layer of a type.
    pub fn verdicts(&self, attention: Attention, judge: Judge) -> Option<Verdicts> {
        judge.verdicts(self.of(attention).into_values())
    }

    /// Describes missing heads, one of which may be the best of its layer.
    pub fn missing_heads(&self) -> Vec<String> {
        if self.selected_on.is_some() { Vec::new() } else { self.sweep.missing_heads() }
    }

    /// Returns the published cells of the corresponding table; empty if another metric or task would make them misleading.
    pub fn published(&self) -> &'static [Masked] {
        let is_comparable = self.sweep.beside().is_some_and(|beside| beside.of_both((), ()).is_some());
        if is_comparable { PAPER.best_heads(self.sweep.model(), self.selected_on.is_some()) } else { &[] }
    }
}

/// Returns the split on which heads were chosen, from the signature or else the file name; `None` if it is the reported split.
fn selected_on(file: &ResultFile) -> Option<String> {
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    Some(file.text("select_on").or(stem.strip_prefix(SELECTED))?.to_owned())
}

/// Number of layers that can be reduced to their best head without significant loss, among testable layers: `3 of 6 layers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// Layers for which one head is enough.
    pub enough: usize,
    /// Layers that could be tested.
    pub tested: usize,
}

impl Layers {
    fn of(is_enough: impl Iterator<Item = bool>) -> Option<Self> {
        let each: Vec<bool> = is_enough.collect();
        let enough = each.iter().filter(|&&is_enough| is_enough).count();
        (!each.is_empty()).then_some(Self { enough, tested: each.len() })
    }

    /// Counts layers by the paper's rule.
    pub fn ours(best: &BTreeMap<usize, &AblationRow>, judge: Judge) -> Option<Self> {
        let which = RuleKind::NoSignificantLoss;
        let tested = best.values().filter(|row| judge.can_tell(which, **row));
        Self::of(tested.map(|row| judge.accepts(which, *row)))
    }

    /// Counts published layers of one attention type by the paper's rule.
    pub fn published(cells: &[Masked], attention: Attention) -> Option<Self> {
        let all = cells.iter().filter(|cell| cell.attention == attention);
        Self::of(all.map(|cell| !cell.significant || cell.delta >= 0.0))
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.enough, count(self.tested, "layer"))
    }
}
