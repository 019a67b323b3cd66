//! The best head of each layer when all others of that layer are masked (Michel et al. 2019, Section 3.3, Appendix A).
use std::collections::BTreeMap;

use records::{AblationRow, Attention, Row, TestedRow};

use super::sweep::Sweep;
use crate::Error;
use crate::judge::{Judge, Which};
use crate::paper::Best;
use crate::source::{ResultFile, Source};
use crate::words::count;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "ablate-all-but-one";

/// What the files with heads chosen on another split start with; the split follows.
const SELECTED: &str = "ablate-all-but-one-selected-on-";

/// Layers reduced to their best head.
#[derive(Debug, Clone)]
pub struct BestHeads {
    /// One row for each head that was kept; in it, `head` is the only head of its layer that is not masked.
    pub sweep: Sweep,
    /// The split on which the best heads were chosen; absent if that is the reported one.
    pub selected_on: Option<String>,
    /// How many segments of it; all, or unknown, if absent.
    pub selected_limit: Option<u64>,
}

impl BestHeads {
    /// Reads a file of `ablate-all-but-one`; its signature or its name tells on which split the heads were chosen.
    ///
    /// # Errors
    /// If the file is missing or damaged, or has several chosen heads of one layer.
    pub fn read(file: ResultFile) -> Result<Self, Error> {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let signed = file.text("select_on").map(str::to_owned);
        let selected_limit = file.number("select_limit");
        let named = stem.strip_prefix(SELECTED);
        // The signature knows where the split ends in the name.
        let of_split = |split: &String| named.is_some_and(|named| named.starts_with(split.as_str()));
        let standard = signed.as_ref().filter(|split| of_split(split));
        let standard = standard.map(|split| format!("{SELECTED}{split}"));
        let standard = standard.unwrap_or(if named.is_some() { stem.clone() } else { EXPERIMENT.to_owned() });
        let selected_on = signed.or(named.map(str::to_owned));
        let file = if selected_on.is_some() { file.with_standard(&standard) } else { file };
        let best = Self { sweep: Sweep::read(file, EXPERIMENT)?, selected_on, selected_limit };
        if best.selected_on.is_some() {
            best.check_chosen()?;
        }
        Ok(best)
    }

    /// Of chosen heads there is one in each layer.
    fn check_chosen(&self) -> Result<(), Error> {
        let mut layers = BTreeMap::new();
        for row in &self.sweep.rows {
            if let Some(first) = layers.insert((row.attention, row.layer), row.name()) {
                let fault =
                    format!("has {first} and {}: it must have one head of each layer, the chosen one", row.name());
                return Err(Error::fault(&self.sweep.file.path, fault));
            }
        }
        Ok(())
    }

    /// The files with heads that were chosen on the split that is reported.
    ///
    /// # Errors
    /// If the folder or a signature cannot be read.
    pub fn same_split(source: &Source) -> Result<Vec<ResultFile>, Error> {
        let all = source.all(EXPERIMENT, EXPERIMENT)?;
        let is_selected = |file: &ResultFile| file.stem("").starts_with(&SELECTED[EXPERIMENT.len()..]);
        Ok(all.into_iter().filter(|file| !is_selected(file)).collect())
    }

    /// The files with heads that were chosen on another split; there may be none.
    ///
    /// # Errors
    /// As for [`BestHeads::same_split`].
    pub fn other_split(source: &Source) -> Result<Vec<ResultFile>, Error> {
        match source {
            Source::File { .. } => Ok(Vec::new()),
            Source::Subject { .. } => source.all(EXPERIMENT, SELECTED.trim_end_matches('-')),
        }
    }

    /// The same of those over most segments for each split; or the one file that was named.
    ///
    /// # Errors
    /// If there are none, or one cannot be read.
    pub fn largest_files(source: &Source) -> Result<Vec<ResultFile>, Error> {
        let Source::Subject { subject, results, .. } = source else { return Ok(vec![source.one(EXPERIMENT)?]) };
        let files = Self::other_split(source)?;
        if files.is_empty() {
            let path = results.join(subject).join(format!("{SELECTED}<split>.csv"));
            let experiment = "ablate-all-but-one --select-on <split>";
            return Err(Error::NoResults { path, experiment, subject: subject.clone() });
        }
        let segments = |file: &ResultFile| file.limit().unwrap_or(usize::MAX);
        let split = |file: &ResultFile| file.text("select_on").map(str::to_owned);
        let is_largest = |file: &&ResultFile| {
            let mut same = files.iter().filter(|other| split(other) == split(file));
            same.all(|other| segments(other) <= segments(file))
        };
        Ok(files.iter().filter(is_largest).cloned().collect())
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

    /// Sentences on heads that are not there, without which a layer may lack its best one; of chosen heads there is one
    /// for each layer.
    pub fn missing_heads(&self) -> Vec<String> {
        if self.selected_on.is_some() { Vec::new() } else { self.sweep.all_missing_heads() }
    }

    /// Name of the table in the paper, and of its files; of language models, that of the table whose layout it has.
    pub fn stem(&self) -> &'static str {
        self.sweep.stem(if self.selected_on.is_some() {
            ["table5", "table6", "table5-self"]
        } else {
            ["table2", "table3", "table2-self"]
        })
    }
}

/// Layers that one head is enough for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enough {
    /// Layers that a rule accepts with their best head alone.
    pub layers: usize,
    /// Layers that it could tell about.
    pub tested: usize,
}

impl Enough {
    /// Counts our own layers by one rule.
    pub fn of(best: &BTreeMap<usize, &AblationRow>, judge: Judge, which: Which) -> Self {
        let tested = || best.values().filter(|row| judge.can_tell(which, **row));
        Self { layers: tested().filter(|row| judge.accepts(which, **row)).count(), tested: tested().count() }
    }

    /// Counts the published layers of one attention type, by the paper's rule.
    pub fn published(cells: &[Best], attention: Attention) -> Self {
        let layers = cells.iter().filter(|cell| cell.attention == attention);
        let lost = layers.clone().filter(|cell| cell.significant && cell.delta < 0.0).count();
        let tested = layers.count();
        Self { layers: tested - lost, tested }
    }

    /// `3 of 6 layers`, or nothing where nothing was tested.
    pub fn in_words(self) -> Option<String> {
        (self.tested > 0).then(|| format!("{} of {}", self.layers, count(self.tested, "layer")))
    }
}
