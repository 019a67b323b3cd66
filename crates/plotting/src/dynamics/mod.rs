//! The rows of `training-dynamics`, read and checked (Michel et al. 2019, Section 6).
use std::collections::BTreeMap;
use std::path::Path;

use records::{DynamicsRow, PruningRow};

use crate::Error;
use crate::check;
use crate::metric::Metric;
use crate::number;
use crate::pruning::Pruning;
use crate::pruning::curve::percent;
use crate::result_file::ResultFile;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "training-dynamics";

/// A score below this is printed as 0.0, and nothing can be a percentage of it.
const LEAST: f64 = 0.05;

/// What masking more and more heads does to the score of a model while it is trained.
#[derive(Debug, Clone)]
pub struct Dynamics {
    /// The file that the rows are from.
    pub file: ResultFile,
    /// What the scores measure.
    pub metric: Metric,
    /// In the order of training; at least one.
    checkpoints: Vec<Checkpoint>,
}

/// One state of the training: a curve by importance over all heads.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The epoch that ends here, counted from 1; absent within an epoch.
    pub epoch: Option<usize>,
    /// Parameter updates so far.
    pub updates: usize,
    curve: Pruning,
}

/// The largest share of heads that can go with some of the score kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Removable {
    /// In percent.
    pub percent: f64,
    /// Whether the curve ends here, so that more might go.
    pub is_open: bool,
}

impl Checkpoint {
    /// Score with all heads, in the unit of the metric.
    pub fn base(&self) -> f64 {
        self.curve.base
    }

    /// The rows, from the first step on; `masked` never falls.
    pub fn steps(&self) -> &[PruningRow] {
        // Rows of one key are one curve of one run.
        &self.curve.series()[0].runs[0].steps
    }

    /// The first step that masks as many heads.
    pub fn step(&self, masked: usize) -> Option<&PruningRow> {
        self.steps().iter().find(|row| row.masked == masked)
    }

    /// A score in percent of that with all heads; absent if the latter is 0 as printed, or below.
    ///
    /// Differs from the paper, which has BLEU alone: nats count as 1/perplexity = exp(-nats), the geometric mean of the
    /// probabilities of tokens. It falls as the model gets worse and ends at 0, as other scores do; a percentage of nats
    /// means nothing, and one of perplexities knows no bound.
    pub fn kept(&self, score: f64) -> Option<f64> {
        if self.curve.metric.is_nats() {
            return Some(100.0 * (self.base() - score).exp());
        }
        (self.base() >= LEAST).then(|| 100.0 * score / self.base())
    }

    /// The last step before the first one that keeps less than `least` percent of the score; a later one that keeps more
    /// does not count. Absent if nothing is a percentage of the score, a step on the way is missing, or none masks a head.
    pub fn removable(&self, least: f64) -> Option<Removable> {
        let mut last = None;
        for (index, row) in self.steps().iter().enumerate() {
            let kept = self.kept(row.score)?;
            if row.step != index {
                return None;
            }
            if kept < least {
                return Some(Removable { percent: last.map_or(0.0, percent), is_open: false });
            }
            last = Some(row);
        }
        let last = last.filter(|row| row.masked > 0)?;
        Some(Removable { percent: percent(last), is_open: last.masked < last.heads })
    }
}

impl Dynamics {
    /// Reads a file of `training-dynamics`.
    ///
    /// # Errors
    /// If the file is missing or damaged, or its rows are not of one training.
    pub fn read(file: ResultFile) -> Result<Self, Error> {
        let rows = file.rows()?;
        Self::from_rows(file, rows)
    }

    /// Checks rows that come from `file`.
    ///
    /// # Errors
    /// If there are none or they are not of one training.
    pub fn from_rows(file: ResultFile, mut rows: Vec<DynamicsRow>) -> Result<Self, Error> {
        let path = &file.path;
        let Some(first) = rows.first().cloned() else { return Err(Error::Empty { path: path.clone() }) };
        rows.sort_by_key(|row| (row.updates, row.step));
        let checkpoints = rows.chunk_by(|left, right| left.updates == right.updates);
        let checkpoints: Vec<_> =
            checkpoints.map(|rows| checkpoint(&file, rows)).collect::<Result<_, _>>()?;
        let metric = |row: &DynamicsRow| format!("`{}`", row.metric);
        let heads = |row: &DynamicsRow| row.heads.to_string();
        for row in &rows {
            check::same(path, [&first, row], ("metric", metric), name)?;
            check::same(path, [&first, row], ("heads", heads), name)?;
        }
        check_epochs(path, &checkpoints)?;
        Ok(Self { file, metric: Metric::new(&first.metric), checkpoints })
    }

    /// All checkpoints, in the order of training.
    pub fn checkpoints(&self) -> &[Checkpoint] {
        &self.checkpoints
    }

    /// What stands for the unpruned score of a checkpoint: `20.1`, or `3.217` nats a token.
    pub fn unpruned(&self, checkpoint: &Checkpoint) -> String {
        match self.metric.is_nats() {
            true => self.metric.amount(checkpoint.base()),
            false => format!("{:.1}", checkpoint.base()),
        }
    }

    /// Those whose score is above 0, so that others can be percentages of it.
    ///
    /// # Errors
    /// If there are none.
    pub fn comparable(&self) -> Result<Vec<&Checkpoint>, Error> {
        let found: Vec<_> =
            self.checkpoints.iter().filter(|checkpoint| checkpoint.kept(0.0).is_some()).collect();
        if found.is_empty() { Err(Error::NoPercentage { path: self.file.path.clone() }) } else { Ok(found) }
    }

    /// Shares of masked heads that any checkpoint has, above 0: number of heads and percent. Of more than ten, those nearest
    /// to 10, 20, .. 100 %, as the paper has them.
    pub fn shares(&self) -> Vec<(usize, f64)> {
        let steps = self.checkpoints.iter().flat_map(Checkpoint::steps).filter(|row| row.masked > 0);
        let all: BTreeMap<_, _> = steps.map(|row| (row.masked, percent(row))).collect();
        if all.len() <= 10 {
            return all.into_iter().collect();
        }
        let nearest = |ten: u8| {
            let gap = |percent: f64| (percent - 10.0 * f64::from(ten)).abs();
            all.iter().min_by(|one, other| gap(*one.1).total_cmp(&gap(*other.1)))
        };
        let tens: BTreeMap<_, _> = (1..=10).filter_map(nearest).collect();
        tens.into_iter().map(|(&masked, &percent)| (masked, percent)).collect()
    }

    /// Whether every checkpoint ends an epoch, so that epochs can number them; else updates do.
    pub fn is_by_epoch(&self) -> bool {
        self.checkpoints.iter().all(|checkpoint| checkpoint.epoch.is_some())
    }

    /// What checkpoints are numbered by: `epoch` or `updates`.
    pub fn unit(&self) -> &'static str {
        if self.is_by_epoch() { "epoch" } else { "updates" }
    }

    /// The number of a checkpoint, in that unit.
    pub fn number(&self, checkpoint: &Checkpoint) -> usize {
        checkpoint.epoch.filter(|_| self.is_by_epoch()).unwrap_or(checkpoint.updates)
    }

    /// What a checkpoint is called: `epoch 3`, `252 updates`.
    pub fn name(&self, checkpoint: &Checkpoint) -> String {
        match self.is_by_epoch() {
            true => format!("epoch {}", self.number(checkpoint)),
            false => format!("{} updates", checkpoint.updates),
        }
    }

    /// Subject and split as a reader should see them.
    pub fn title(&self) -> String {
        self.file.title()
    }

    /// Whether a checkpoint has as many steps as the longest one, and their tests.
    pub fn is_finished(&self, checkpoint: &Checkpoint) -> bool {
        let most = self.checkpoints.iter().map(|other| other.steps().len()).max().unwrap_or(0);
        let series = &checkpoint.curve.series()[0];
        checkpoint.steps().len() == most && series.is_finished(false)
    }

    /// What the name of a checkpoint ends with: whether it is not finished.
    pub fn state(&self, checkpoint: &Checkpoint) -> &'static str {
        if self.is_finished(checkpoint) { "" } else { ", not finished" }
    }

    /// Sentences on what is not there.
    pub fn notes(&self) -> Vec<String> {
        let names = |is_meant: &dyn Fn(&Checkpoint) -> bool| {
            let meant = self.checkpoints.iter().filter(|checkpoint| is_meant(checkpoint));
            let names: Vec<_> = meant.map(|checkpoint| self.name(checkpoint)).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let left_out = names(&|checkpoint| checkpoint.kept(0.0).is_none())
            .map(|names| format!("no percentages of a score of 0.0 or below: {names}"));
        let unfinished = names(&|checkpoint| !self.is_finished(checkpoint));
        let unfinished =
            unfinished.map(|names| format!("not finished, steps or their tests are missing: {names}"));
        let killed = self
            .file
            .origin
            .is_unfinished()
            .then(|| "the run was killed or is still going, so checkpoints may be missing".to_owned());
        left_out.into_iter().chain(unfinished).chain(killed).collect()
    }
}

/// The share as printed: `20`, `≥ 90` where the curve ends, `?` where it is not known.
pub fn share_of(removable: Option<Removable>) -> String {
    removable.map_or("?".to_owned(), |found| number::share(found.percent, found.is_open))
}

/// Checks the rows with one number of updates as a curve of `iterative-prune`, which they are.
fn checkpoint(file: &ResultFile, rows: &[DynamicsRow]) -> Result<Checkpoint, Error> {
    let (epoch, updates) = (rows[0].epoch, rows[0].updates);
    for row in rows {
        let epoch = |row: &DynamicsRow| row.epoch.map_or("empty".to_owned(), |epoch| epoch.to_string());
        check::same(&file.path, [&rows[0], row], ("epoch", epoch), name)?;
    }
    let curve = Pruning::from_rows(file.clone(), rows.iter().map(curve_row).collect());
    // Errors on a curve do not know of which checkpoint it is.
    let curve = curve.map_err(|error| match error {
        Error::Range { path, head, column, found, range } => {
            Error::Range { path, head: format!("{head} after {updates} updates"), column, found, range }
        }
        Error::Mixed { path, column, expected, found } => {
            Error::Mixed { path, column, expected, found: format!("{found} after {updates} updates") }
        }
        Error::Name { path, column, found, allowed, .. } => {
            Error::Name { path, experiment: EXPERIMENT, column, found, allowed }
        }
        other => other,
    })?;
    Ok(Checkpoint { epoch, updates, curve })
}

/// A row as one of `iterative-prune`.
fn curve_row(row: &DynamicsRow) -> PruningRow {
    PruningRow {
        attention: "all".to_owned(),
        order: "importance".to_owned(),
        order_seed: None,
        complement: false,
        step: row.step,
        masked: row.masked,
        heads: row.heads,
        metric: row.metric.clone(),
        base_score: row.base_score,
        score: row.score,
        score_delta: row.score_delta,
        delta_low: row.delta_low,
        delta_high: row.delta_high,
        p_value: row.p_value,
        p_koehn: row.p_koehn,
        p_adjusted: row.p_adjusted,
        p_benjamini_hochberg: row.p_benjamini_hochberg,
        p_unpaired_t: row.p_unpaired_t,
        p_mcnemar: row.p_mcnemar,
        search_score: None,
        masked_heads: row.masked_heads.clone(),
    }
}

/// What messages call a row: `step 2 after 252 updates`.
fn name(row: &DynamicsRow) -> String {
    format!("step {} after {} updates", row.step, row.updates)
}

/// Epochs count from 1 and rise with the updates.
fn check_epochs(path: &Path, checkpoints: &[Checkpoint]) -> Result<(), Error> {
    let mut last = 0;
    for checkpoint in checkpoints {
        let Some(epoch) = checkpoint.epoch else { continue };
        if epoch <= last {
            return Err(Error::Range {
                path: path.to_owned(),
                head: format!("the checkpoint after {} updates", checkpoint.updates),
                column: "epoch",
                found: epoch as f64,
                range: "at least 1 and more than that of the checkpoint before",
            });
        }
        last = epoch;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
