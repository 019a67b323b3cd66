//! The best head of each layer when all others of that layer are masked (Michel et al. 2019, Section 3.3, Appendix A).
use std::collections::BTreeMap;

use anyhow::{Result, bail};
use records::{AblationRow, Attention, Row, TestedRow};

use super::sweep::Sweep;
use crate::error::no_results;
use crate::judge::{Judge, Which};
use crate::paper::Published;
use crate::source::{ResultFile, Source};
use crate::words::count;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "ablate-all-but-one";

/// What the files with heads chosen on another split start with; the split follows.
const SELECTED: &str = "ablate-all-but-one-selected-on-";

/// Layers reduced to their best head: one row for each head that was the only one of its layer.
#[derive(Debug, Clone)]
pub struct BestHeads {
    pub sweep: Sweep,
    /// The split on which the best heads were chosen; absent if that is the reported one.
    pub selected_on: Option<String>,
}

impl BestHeads {
    /// Reads a file of `ablate-all-but-one`; of heads that were chosen on another split there is one in each layer.
    pub fn read(file: ResultFile) -> Result<Self> {
        let selected_on = selected_on(&file);
        // A signature knows where the split ends in the name.
        let standard = selected_on.as_ref().map(|split| format!("{SELECTED}{split}"));
        let file = match standard.filter(|standard| file.is_named(standard)) {
            Some(standard) => file.with_standard(&standard),
            None => file,
        };
        let best = Self { sweep: Sweep::read(file, EXPERIMENT)?, selected_on };
        let mut layers = BTreeMap::new();
        for row in best.sweep.rows.iter().filter(|_| best.selected_on.is_some()) {
            if let Some(first) = layers.insert((row.attention, row.layer), row.name()) {
                let (path, second) = (best.sweep.file.path.display(), row.name());
                bail!(
                    "`{path}` has {first} and {second}: it must have one head of each layer, the chosen one"
                );
            }
        }
        Ok(best)
    }

    /// The files with heads that were chosen on the split that is reported.
    pub fn same_split(source: &Source) -> Result<Vec<ResultFile>> {
        let all = source.all(EXPERIMENT)?.into_iter();
        Ok(all.filter(|file| selected_on(file).is_none()).collect())
    }

    /// The files with heads that were chosen on another split; there may be none.
    pub fn other_split(source: &Source) -> Result<Vec<ResultFile>> {
        let all = source.all(EXPERIMENT)?.into_iter();
        Ok(all.filter(|file| selected_on(file).is_some()).collect())
    }

    /// The same of those over most segments for each split; or the one file that was named.
    pub fn largest_files(source: &Source) -> Result<Vec<ResultFile>> {
        let Source::Subject { subject, results, .. } = source else {
            return Ok(vec![source.one(EXPERIMENT)?]);
        };
        let files = Self::other_split(source)?;
        if files.is_empty() {
            let path = results.join(subject).join(format!("{SELECTED}<split>.csv"));
            return Err(no_results(&path, "ablate-all-but-one --select-on <split>", subject));
        }
        Ok(ResultFile::largest(&files, selected_on))
    }

    /// The best head of each layer: the one with the best score and, among equals, the smallest number.
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

    /// Sentences on heads that are not there, without which a layer may lack its best one.
    pub fn missing_heads(&self) -> Vec<String> {
        if self.selected_on.is_some() { Vec::new() } else { self.sweep.missing_heads() }
    }

    /// Name of the table in the paper, and of its files; of language models, that of the table whose layout it has.
    pub fn stem(&self) -> &'static str {
        let same = ["table2", "table3", "table2-self"];
        self.sweep.stem(if self.selected_on.is_some() { ["table5", "table6", "table5-self"] } else { same })
    }
}

/// The split on which heads were chosen, as the signature or else the name says; absent if that is the reported one.
fn selected_on(file: &ResultFile) -> Option<String> {
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    Some(file.text("select_on").or(stem.strip_prefix(SELECTED))?.to_owned())
}

/// How many layers one head is enough for, of those that could tell: `3 of 6 layers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    pub enough: usize,
    pub tested: usize,
}

impl std::fmt::Display for Layers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} of {}", self.enough, count(self.tested, "layer"))
    }
}

/// The layers by one rule; nothing where nothing could tell.
pub fn enough(best: &BTreeMap<usize, &AblationRow>, judge: Judge, which: Which) -> Option<Layers> {
    let tested = best.values().filter(|row| judge.can_tell(which, **row));
    layers(tested.clone().filter(|row| judge.accepts(which, **row)).count(), tested.count())
}

/// The same of the published layers of one attention type, by the paper's rule.
pub fn enough_published(cells: &[Published], attention: Attention) -> Option<Layers> {
    let all = cells.iter().filter(|cell| cell.attention == Some(attention));
    let is_lost = |cell: &&Published| cell.significant == Some(true) && cell.delta < Some(0.0);
    let lost = all.clone().filter(is_lost).count();
    layers(all.clone().count() - lost, all.count())
}

fn layers(enough: usize, tested: usize) -> Option<Layers> {
    (tested > 0).then_some(Layers { enough, tested })
}
