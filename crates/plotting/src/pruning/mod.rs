//! The rows of `iterative-prune` and `joint-search`, read and checked (Michel et al. 2019, Section 4.2).
mod check;
pub mod curve;
mod difference;
pub mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use records::{FLOOR, Order, PruningRow};

use crate::Error;
use crate::attention::Attention;
use crate::error::Difference;
use crate::left_out::LeftOut;
use crate::metric::Metric;
use crate::origin::Model;
use crate::result_file::ResultFile;
use crate::significance::{Criterion, Rules};
use curve::{Run, Series};
use order::{Curve, Scope};

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "iterative-prune";

/// The experiment that adds curves, where it was run.
const SEARCH: &str = "joint-search";

/// What masking more and more heads does to the score of a subject.
#[derive(Debug, Clone)]
pub struct Pruning {
    /// The file that the rows are from.
    pub file: ResultFile,
    /// What the scores measure.
    pub metric: Metric,
    /// Score of the intact model, in the unit of the metric.
    pub base: f64,
    /// Attention types that the rows name, as a scope or among the masked heads.
    attentions: BTreeSet<Attention>,
    series: Vec<Series>,
    /// The rows in which all heads are masked.
    floors: BTreeMap<Scope, PruningRow>,
}

impl Pruning {
    /// Reads a file of `iterative-prune` and, where it is there, that of `joint-search` beside it, which is left out if it
    /// is of another model or test set.
    ///
    /// # Errors
    /// If a file is missing or damaged, or its rows are not of one run.
    pub fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Self, Error> {
        let rows = file.rows()?;
        let mut pruning = Self::from_rows(file, rows)?;
        let search = pruning.file.path.with_file_name(pruning.file.stem(SEARCH) + ".csv");
        if search.exists() {
            let with_search = ResultFile::of(search, &pruning.file.subject, SEARCH)
                .and_then(|file| pruning.with_search(&file));
            pruning = left_out.keep(with_search)?.unwrap_or(pruning);
        }
        Ok(pruning)
    }

    /// The same with the curves of a search.
    fn with_search(&self, file: &ResultFile) -> Result<Self, Error> {
        let rows: Vec<PruningRow> = file.rows()?;
        if rows.is_empty() {
            return Err(Error::Empty { path: file.path.clone() });
        }
        let other_run = |difference| Error::OtherRun {
            path: file.path.clone(),
            other: format!("`{}`", self.file.path.display()),
            difference: Box::new(difference),
            command: "iterative-prune --search <method>",
            subject: self.file.subject.clone(),
        };
        if let (Some(orders), Some(search)) = (self.file.origin.identity(), file.origin.identity())
            && let Some(difference) = difference::between(orders, search)
        {
            return Err(other_run(difference));
        }
        let mut with_search = self.clone();
        with_search.add(&file.path, SEARCH, rows).map_err(|error| match error {
            Error::Mixed { column, expected, found, .. } => {
                other_run(Difference { entry: column.to_owned(), found, expected })
            }
            error => error,
        })?;
        Ok(with_search)
    }

    /// Checks rows that come from `file`.
    ///
    /// # Errors
    /// If there are none or they are not of one run.
    pub fn from_rows(file: ResultFile, rows: Vec<PruningRow>) -> Result<Self, Error> {
        let path = file.path.clone();
        let Some(first) = rows.first() else { return Err(Error::Empty { path }) };
        let mut pruning = Self {
            file,
            metric: Metric::new(&first.metric),
            base: first.base_score,
            attentions: BTreeSet::new(),
            series: Vec::new(),
            floors: BTreeMap::new(),
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
        let mut runs: BTreeMap<(Curve, Option<u64>), Vec<PruningRow>> = BTreeMap::new();
        for row in rows {
            file.check_numbers(&row)?;
            file.check_same_run(&row, self.metric.name(), self.base)?;
            let scope = file.scope(&row)?;
            self.attentions.extend(file.attentions(&row)?);
            if row.order == FLOOR {
                self.floors.insert(scope, row);
                continue;
            }
            let curve = Curve { scope, order: file.order(&row)?, is_complement: row.complement };
            runs.entry((curve, row.order_seed)).or_default().push(row);
        }
        for ((curve, seed), mut steps) in runs {
            steps.sort_by_key(|row| row.step);
            file.check_steps(&steps)?;
            let run = Run { seed, steps };
            match self.series.iter_mut().find(|series| series.curve == curve) {
                Some(series) => series.runs.push(run),
                None => self.series.push(Series { curve, runs: vec![run] }),
            }
        }
        self.series.sort_by_key(|series| series.curve);
        file.check_heads(&self.series)
    }

    /// The curves over these heads, in the order of [`Order::ALL`].
    ///
    /// # Errors
    /// If there are none.
    pub fn of(&self, scope: Scope) -> Result<Vec<&Series>, Error> {
        let found: Vec<_> = self.series.iter().filter(|series| series.curve.scope == scope).collect();
        if found.is_empty() { Err(self.no_rows(scope.name())) } else { Ok(found) }
    }

    /// The curves by importance of single attention types, in the order of the paper, each before its complement.
    ///
    /// # Errors
    /// If there are none of a translator.
    pub fn types(&self) -> Result<Vec<(Attention, &Series)>, Error> {
        let by_type = |series| match series {
            &Series {
                curve: Curve { scope: Scope::One(attention), order: Order::Importance, .. }, ..
            } => Some((attention, series)),
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
        self.series.iter().find(|series| series.curve == Curve { scope, order, is_complement: false })
    }

    /// The curve over the same heads in the reverse order.
    pub fn complement(&self, series: &Series) -> Option<&Series> {
        let curve = Curve { is_complement: true, ..series.curve };
        self.series.iter().find(|other| other.curve == curve)
    }

    /// The rows in which all heads are masked, by which heads these are.
    pub fn floors(&self) -> &BTreeMap<Scope, PruningRow> {
        &self.floors
    }

    fn no_rows(&self, asked: &'static str) -> Error {
        let mut present: Vec<_> = self.series.iter().map(|series| series.curve.scope.name()).collect();
        present.dedup();
        Error::NoRows { path: self.file.path.clone(), asked, present: present.join(", ") }
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
        self.file.title()
    }

    /// On what data and how orders were estimated, as far as the signature says.
    pub fn estimate(&self) -> Vec<String> {
        self.file.origin.estimate().of_orders()
    }

    /// Whether all steps of a curve are there, as far as rows and signature say.
    pub fn is_finished(&self, series: &Series) -> bool {
        let identity = self.file.origin.identity();
        let kept = identity.and_then(|identity| identity.arguments.get("keep_at_least"));
        series.is_finished(kept.and_then(|kept| kept.as_u64()) == Some(0))
    }

    /// What the name of a curve ends with: whether it is not finished.
    pub fn state(&self, series: &Series) -> &'static str {
        if self.is_finished(series) { "" } else { ", not finished" }
    }

    /// Which model the rows are of.
    pub fn model(&self) -> Model {
        self.file.origin.model()
    }

    /// Whether a step of a model whose only attention type is `self` has no attention left.
    pub fn has_blind_step(&self) -> bool {
        let is_alone = self.attentions.iter().eq([&Attention::SelfAttention]);
        let steps = self.series.iter().flat_map(|series| &series.runs).flat_map(|run| &run.steps);
        is_alone && steps.chain(self.floors.values()).any(|row| row.masked == row.heads)
    }

    /// What decides whether heads can go.
    pub fn rules(&self, criterion: Criterion) -> Rules {
        Rules::of(&self.metric, &self.file.origin, criterion)
    }
}

#[cfg(test)]
mod tests;
