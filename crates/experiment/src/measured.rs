//! Rows that are measured together with the statistics of every segment, and tested once all are complete.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use core_masking::HeadSet;
use records::{BASE, Identity, Part, RowWriter, Signature, TestedRow};
use significance::{TestArgs, block, measured, test_rows};
use stats::Segments;
use stats::classification::{Reordered, reordered};
use subject::{Ablation, Evaluation, Evaluator, Scored, Subject};
use training::Machine;
use training::stop::Unbroken;

use crate::args::{OpenRows, SharedArgs};
use crate::error::Error;

/// A head set to mask, and the rows that its score will complete.
#[derive(Debug, Clone, PartialEq)]
pub struct RowSet<R> {
    /// Masked heads.
    pub masked: HeadSet,
    /// Its rows, at least one.
    pub rows: Vec<R>,
}

impl<R> RowSet<R> {
    /// Adds a row to the set in `sets` that masks these heads, or adds a new set: equal sets are measured once.
    pub fn add(sets: &mut Vec<Self>, masked: HeadSet, row: R) {
        match sets.iter_mut().find(|set| set.masked == masked) {
            Some(set) => set.rows.push(row),
            None => sets.push(Self { masked, rows: vec![row] }),
        }
    }
}

/// The rows of an experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowPlan {
    /// Number of rows of each complete family of tests; 0 if any number is complete.
    pub families: BTreeMap<String, usize>,
    /// Rows requested, by name, with their index in the full plan, which decides the shard.
    pub places: BTreeMap<String, usize>,
}

/// Results to which measured rows are added.
#[derive(Debug)]
pub struct MeasuredRows<R: TestedRow> {
    pub(crate) path: PathBuf,
    /// Rows requested; `None` unless this run is a shard.
    pub(crate) part: Option<Part>,
    pub(crate) writer: RowWriter<R>,
    pub(crate) bases: BTreeMap<String, Segments>,
    pub(crate) quiet: bool,
}

impl<R: TestedRow> MeasuredRows<R> {
    /// Opens the results at `path`, or at a new name next to it if `path` holds results of another run.
    ///
    /// - `test`: settings that are not given keep their values from existing results
    pub fn open(
        path: &Path,
        identity: Identity,
        subject: &Subject,
        RowPlan { families, places }: RowPlan,
        (shared, machine, test): (&SharedArgs, &Machine, &TestArgs),
    ) -> Result<Self, Error> {
        let run = machine.provenance();
        let testing = test.testing(None, shared.seed);
        let measured = measured(subject.metric(&identity.split), families);
        let part = shared.shard.map(|shard| Part { shard, rows: places });
        let signature =
            Signature { part: part.clone(), ..Signature::new(identity, run).tested(measured, testing) };
        let of_whole = || {
            let whole = Signature::read(&Signature::path_beside(path)).ok().flatten()?;
            let is_same = signature.identity.differences(&whole.identity).is_empty();
            whole.testing.filter(|_| is_same)
        };
        let of_whole = part.as_ref().and_then(|_| of_whole()); // a shard's own file may not exist yet
        let OpenRows { path, mut writer } = shared.open_rows(path, &signature)?;
        let tested = writer.tested().or(of_whole);
        writer.signature_mut().testing = Some(test.testing(tested, shared.seed));
        Ok(Self { path, part, writer, bases: BTreeMap::new(), quiet: machine.quiet })
    }

    /// Returns the rows that need not be measured.
    pub fn rows(&self) -> impl Iterator<Item = &R> {
        self.writer.rows()
    }

    /// Returns true if the row with this key need not be measured.
    pub fn contains(&self, key: &R::Key) -> bool {
        self.writer.contains(key)
    }

    /// Returns true if this row must be measured: it is missing or --again is given, and it does not belong to another shard.
    pub fn is_due(&self, row: &R) -> bool {
        !self.contains(&row.key()) && self.part.as_ref().is_none_or(|part| part.holds(&row.name()))
    }

    /// Records how long this run took to choose the heads of a ranking or search.
    pub fn note_choosing(&mut self, method: &str, seconds: f64) {
        self.writer.run_mut().choosing_seconds.insert(method.to_owned(), seconds);
    }

    /// Leaves out earlier rows that no longer apply.
    pub fn leave_out(&mut self, unwanted: impl Fn(&R) -> bool) {
        self.writer.leave_out(unwanted);
    }

    /// Scores the subject under each of `sets` and stores its rows as soon as they are scored.
    ///
    /// - `base`: name of the statistics of the full model
    ///
    /// # Errors
    /// If the full model's statistics differ from those stored with earlier rows, or a signal has stopped the run.
    pub fn measure(
        &mut self,
        subject: &Subject,
        scored: &Scored,
        base: &str,
        sets: Vec<RowSet<R>>,
    ) -> Result<(), Error> {
        if sets.is_empty() {
            return Ok(());
        }
        let mut evaluator = subject.evaluator(scored, 0)?;
        if !self.quiet && sets.len() > 1 {
            announce(scored, evaluator.segments(), sets.len());
        }
        self.measure_on(&mut evaluator, base, sets)
    }

    /// Does the work of [`measure`](Self::measure) on an opened split.
    pub fn measure_on(
        &mut self,
        evaluator: &mut Evaluator<'_>,
        base: &str,
        sets: Vec<RowSet<R>>,
    ) -> Result<(), Error> {
        let _unbroken = Unbroken::begin()?;
        let full = (!self.bases.contains_key(base)).then(HeadSet::none);
        let masked: Vec<HeadSet> =
            full.into_iter().chain(sets.iter().map(|set| set.masked.clone())).collect();
        let mut sets = sets.into_iter();
        let mut each = |_, evaluation: Evaluation| {
            if !self.bases.contains_key(base) {
                let columns = evaluation.segments.metric().columns();
                if let Some(doubt) = doubt_of_labels(&evaluation.segments, &self.writer.signature().identity)
                {
                    words::warn(&doubt);
                }
                self.writer.add_base(columns, block(base.to_owned(), &evaluation.segments, None))?;
                self.bases.insert(base.to_owned(), evaluation.segments);
                return Ok(());
            }
            let rows = sets.next().into_iter().flat_map(|set| set.rows);
            rows.into_iter().try_for_each(|row| self.add(row, base, &evaluation.segments))
        };
        Ok(evaluator.evaluate(&masked, &mut each)?)
    }

    /// Scores `other`, a model derived from `base` such as by further training, under one set. Its rows are compared with the full model of
    /// `base`.
    pub fn measure_other(
        &mut self,
        other: &Subject,
        base: &Subject,
        scored: &Scored,
        set: RowSet<R>,
    ) -> Result<(), Error> {
        self.measure_on(&mut base.evaluator(scored, 0)?, BASE, Vec::new())?;
        self.measure_on(&mut other.evaluator(scored, 0)?, BASE, vec![set])
    }

    fn add(&mut self, mut row: R, base: &str, segments: &Segments) -> Result<(), subject::Error> {
        let base = &self.bases[base];
        row.record(&stats::family::Comparison::untested(base.score()?, segments.score()?));
        let block = block(row.name(), segments, Some(base));
        Ok(self.writer.append(row, Some(block))?)
    }

    /// Tests all rows and publishes the results. Rows of a shard are not tested, since families of tests need the rows of all shards.
    pub fn finish(self) -> Result<Finished<R>, Error> {
        let Self { path, part, writer, .. } = self;
        let rows =
            writer.publish(
                |rows, blocks, signature| {
                    if part.is_some() { Ok(()) } else { test_rows(rows, blocks, signature) }
                },
            )?;
        Ok(Finished { path, rows })
    }
}

/// Prints what will be measured and how to resume it.
fn announce(scored: &Scored, segments: usize, sets: usize) {
    let which = match (scored.limit, scored.sample) {
        (None, _) => "all",
        (Some(limit), _) if limit > segments => "all",
        (_, Some(_)) => "a random sample of",
        _ => "the first",
    };
    let kind = match &scored.ablation {
        Ablation::Zero => String::new(),
        other => format!(" ({} ablation)", other.name()),
    };
    words::say!(
        "masking {}{kind} on {which} {} of split `{}`: {} of the split; if stopped, resume with `{}`",
        words::count(sets, "head set"),
        words::count(segments, "segment"),
        scored.split,
        words::count(sets + 1, "evaluation"),
        words::command_line()
    );
}

/// Returns a warning if another order of the labels would make the classifier right far more often.
fn doubt_of_labels(segments: &Segments, identity: &Identity) -> Option<String> {
    let Segments::Classes(outcomes, _) = segments else { return None };
    let labels = identity.arguments.get("labels")?.as_array()?;
    let Reordered { order, right: [given, other] } = reordered(outcomes, labels.len())?;
    let order: Vec<&str> = order.iter().map(|&class| labels.get(class)?.as_str()).collect::<Option<_>>()?;
    let chance = if given < 100.0 / labels.len() as f64 { "is below chance: it is" } else { "is" };
    Some(format!(
        "the full model {chance} right in {given:.1} % of the segments of split `{}`, and would be in {other:.1} % with the \
         labels {order:?}: the order of `labels`, or data.rename, may be wrong",
        identity.split
    ))
}

/// Complete results.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished<R> {
    /// File of the results.
    pub path: PathBuf,
    /// Rows in the order of their keys.
    pub rows: Vec<R>,
}
