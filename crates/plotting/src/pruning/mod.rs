//! The rows of `iterative-prune` and `joint-search`, read and checked (Michel et al. 2019, Section 4.2).
mod check;
pub mod curve;
mod difference;
pub mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use records::{Identity, PruningRow, Signature, read_rows};

use crate::Error;
use crate::attention::Attention;
use crate::error::Difference;
use crate::estimate::Estimate;
use crate::left_out::LeftOut;
use crate::metric::Metric;
use crate::sweep::{csv_path, title_of};
use curve::{Run, Series};
use order::{Order, Scope};

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "iterative-prune";

/// The experiment that adds curves, where it was run.
const SEARCH: &str = "joint-search";

/// What masking more and more heads does to the score of a subject.
#[derive(Debug, Clone)]
pub struct Pruning {
    /// Name of the subject.
    pub subject: String,
    /// What the signature says of the run; absent without one.
    pub identity: Option<Identity>,
    /// What the scores measure.
    pub metric: Metric,
    /// Score of the intact model, in the unit of the metric.
    pub base: f64,
    path: PathBuf,
    /// Attention types that the rows name, as a scope or among the masked heads.
    attentions: BTreeSet<Attention>,
    series: Vec<Series>,
}

impl Pruning {
    /// Reads `<results>/<subject>/iterative-prune.csv` and, where it is there, `joint-search.csv`, which is left out if
    /// it is of another model or test set.
    ///
    /// # Errors
    /// If a file is missing or damaged, or its rows are not of one run.
    pub fn read(results: &Path, subject: &str, left_out: &mut LeftOut) -> Result<Self, Error> {
        let path = csv_path(results, subject, EXPERIMENT, EXPERIMENT)?;
        let mut pruning = Self::from_rows(subject, path.clone(), read_rows(&path)?)?;
        pruning.identity = identity_beside(&path)?;
        let search = results.join(subject).join(format!("{SEARCH}.csv"));
        if search.exists() {
            let with_search = pruning.with_search(&search);
            pruning = left_out.keep(with_search)?.unwrap_or(pruning);
        }
        Ok(pruning)
    }

    /// The same with the curves of a search.
    fn with_search(&self, path: &Path) -> Result<Self, Error> {
        let rows: Vec<PruningRow> = read_rows(path)?;
        if rows.is_empty() {
            return Err(Error::Empty { path: path.to_owned() });
        }
        let other_run = |difference| Error::OtherRun {
            path: path.to_owned(),
            other: format!("`{}`", self.path.display()),
            difference: Box::new(difference),
            command: "iterative-prune --search <method>",
            subject: self.subject.clone(),
        };
        if let (Some(orders), Some(search)) = (&self.identity, identity_beside(path)?)
            && let Some(difference) = difference::between(orders, &search)
        {
            return Err(other_run(difference));
        }
        let mut with_search = self.clone();
        with_search.add(path, SEARCH, rows).map_err(|error| match error {
            Error::Mixed { column, expected, found, .. } => {
                other_run(Difference { entry: column.to_owned(), found, expected })
            }
            error => error,
        })?;
        Ok(with_search)
    }

    /// Checks rows that come from `path`, which only errors mention.
    ///
    /// # Errors
    /// If there are none or they are not of one run.
    pub fn from_rows(subject: &str, path: PathBuf, rows: Vec<PruningRow>) -> Result<Self, Error> {
        let Some(first) = rows.first() else { return Err(Error::Empty { path }) };
        let mut pruning = Self {
            subject: subject.to_owned(),
            identity: None,
            metric: Metric::new(&first.metric),
            base: first.base_score,
            path: path.clone(),
            attentions: BTreeSet::new(),
            series: Vec::new(),
        };
        pruning.add(&path, EXPERIMENT, rows)?;
        Ok(pruning)
    }

    /// Adds curves of the same model on the same test set.
    ///
    /// # Errors
    /// If they are not.
    pub fn add(&mut self, path: &Path, experiment: &'static str, rows: Vec<PruningRow>) -> Result<(), Error> {
        let file = check::File { path, experiment };
        let mut runs: BTreeMap<(Scope, Order, Option<u64>), Vec<PruningRow>> = BTreeMap::new();
        for row in rows {
            file.check_numbers(&row)?;
            file.check_same_run(&row, self.metric.name(), self.base)?;
            let key = (file.scope(&row)?, file.order(&row)?, row.order_seed);
            self.attentions.extend(file.attentions(&row)?);
            runs.entry(key).or_default().push(row);
        }
        for ((scope, order, seed), mut steps) in runs {
            steps.sort_by_key(|row| row.step);
            file.check_steps(&steps)?;
            let run = Run { seed, steps };
            match self.series.iter_mut().find(|series| (series.scope, series.order) == (scope, order)) {
                Some(series) => series.runs.push(run),
                None => self.series.push(Series { scope, order, runs: vec![run] }),
            }
        }
        self.series.sort_by_key(|series| (series.scope, series.order));
        file.check_heads(&self.series)
    }

    /// The curves over these heads, in the order of [`Order::ALL`].
    ///
    /// # Errors
    /// If there are none.
    pub fn of(&self, scope: Scope) -> Result<Vec<&Series>, Error> {
        let found: Vec<_> = self.series.iter().filter(|series| series.scope == scope).collect();
        if found.is_empty() { Err(self.no_rows(scope.name())) } else { Ok(found) }
    }

    /// The curves by importance of single attention types, in the order of the paper.
    ///
    /// # Errors
    /// If there are none of a translator.
    pub fn types(&self) -> Result<Vec<(Attention, &Series)>, Error> {
        let by_type = |series| match series {
            &Series { scope: Scope::One(attention), order: Order::Importance, .. } => {
                Some((attention, series))
            }
            _ => None,
        };
        let types: Vec<_> = self.series.iter().filter_map(by_type).collect();
        let is_translator = types.iter().any(|(attention, _)| *attention != Attention::SelfAttention);
        if is_translator { Ok(types) } else { Err(self.no_rows("enc-enc, enc-dec or dec-dec by importance")) }
    }

    /// All curves, those over all heads first.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// One curve.
    pub fn find(&self, scope: Scope, order: Order) -> Option<&Series> {
        self.series.iter().find(|series| (series.scope, series.order) == (scope, order))
    }

    fn no_rows(&self, asked: &'static str) -> Error {
        let mut present: Vec<_> = self.series.iter().map(|series| series.scope.name()).collect();
        present.dedup();
        Error::NoRows { path: self.path.clone(), asked, present: present.join(", ") }
    }

    /// Whether the model has encoder and decoder. Where no row names a head, the metric tells.
    pub fn is_translator(&self) -> bool {
        if self.attentions.is_empty() {
            return self.metric.name() == "bleu";
        }
        self.attentions.iter().any(|attention| *attention != Attention::SelfAttention)
    }

    /// Subject and split as a reader should see them: `demo-translation (demo language), test`.
    pub fn title(&self) -> String {
        title_of(&self.subject, self.identity.as_ref())
    }

    /// Resamples of the bootstrap, if the signature has them.
    pub fn resamples(&self) -> Option<u64> {
        self.identity.as_ref()?.arguments.get("resamples")?.as_u64()
    }

    /// On what data and how orders were estimated, as far as the signature says.
    pub fn estimate(&self) -> Vec<String> {
        self.identity.as_ref().map_or(Vec::new(), |identity| Estimate::of(identity).of_orders())
    }

    /// Whether all steps of a curve are there, as far as rows and signature say.
    pub fn is_finished(&self, series: &Series) -> bool {
        let kept = self.identity.as_ref().and_then(|identity| identity.arguments.get("keep_at_least"));
        series.is_finished(kept.and_then(|kept| kept.as_u64()) == Some(0))
    }

    /// What the name of a curve ends with: whether it is not finished.
    pub fn state(&self, series: &Series) -> &'static str {
        if self.is_finished(series) { "" } else { ", not finished" }
    }

    /// Whether a step of a model like BERT has no attention left.
    pub fn has_blind_bert(&self) -> bool {
        let is_bert = self.attentions.iter().eq([&Attention::SelfAttention]);
        let mut rows = self.series.iter().flat_map(|series| &series.runs).flat_map(|run| &run.steps);
        is_bert && rows.any(|row| row.masked == row.heads)
    }

    /// What a caption says of the test behind "significantly".
    pub fn test(&self) -> String {
        self.metric.test().description(self.resamples())
    }
}

fn identity_beside(path: &Path) -> Result<Option<Identity>, Error> {
    Ok(Signature::read(&Signature::path_beside(path))?.map(|signature| signature.identity))
}

#[cfg(test)]
mod tests;
