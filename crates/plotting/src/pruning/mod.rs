//! The rows of `iterative-prune` and `joint-search`, read and checked (Michel et al. 2019, Section 4.2).
mod check;
pub mod curve;
pub mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use records::{Identity, PruningRow, Signature, read_rows};

use crate::Error;
use crate::attention::Attention;
use crate::metric::Metric;
use crate::sweep::{csv_path, title};
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
    /// Reads `<results>/<subject>/iterative-prune.csv` and, where it is there, `joint-search.csv`.
    ///
    /// # Errors
    /// If a file is missing or damaged, or its rows are not of one run.
    pub fn read(results: &Path, subject: &str) -> Result<Self, Error> {
        let path = csv_path(results, subject, EXPERIMENT, EXPERIMENT)?;
        let mut pruning = Self::from_rows(subject, path.clone(), read_rows(&path)?)?;
        pruning.identity =
            Signature::read(&Signature::path_beside(&path))?.map(|signature| signature.identity);
        let search = results.join(subject).join(format!("{SEARCH}.csv"));
        if search.exists() {
            let rows = read_rows(&search)?;
            pruning.add(&search, SEARCH, rows)?;
        }
        Ok(pruning)
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
        let split = self.identity.as_ref().map(|identity| identity.split.as_str());
        let limit = self.identity.as_ref().and_then(|identity| identity.limit);
        title(&self.subject, split.filter(|split| !split.is_empty()), limit)
    }

    /// Resamples of the bootstrap, if the signature has them.
    pub fn resamples(&self) -> Option<u64> {
        self.identity.as_ref()?.arguments.get("resamples")?.as_u64()
    }

    /// On what data and how importance was estimated, as far as the signature says.
    pub fn estimate(&self) -> Option<String> {
        let arguments = &self.identity.as_ref()?.arguments;
        let text = |name| arguments.get(name).and_then(|value| value.as_str());
        let on = text("estimate_on").map(|split| format!("on {split}"));
        let limit = arguments.get("estimate_limit").and_then(|value| value.as_u64());
        let limit = limit.map(|limit| format!("first {limit} segments"));
        let granularity = text("granularity").map(|granularity| format!("by {granularity}"));
        let plain = arguments.get("normalise").and_then(|value| value.as_bool()) == Some(false);
        let plain = plain.then(|| "not normalised".to_owned());
        let parts: Vec<_> = [on, limit, granularity, plain].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("importance {}", parts.join(", ")))
    }

    /// What a caption says of the test behind "significantly".
    pub fn test(&self) -> String {
        self.metric.test().description(self.resamples())
    }
}

#[cfg(test)]
mod tests;
