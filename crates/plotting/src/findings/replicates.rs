//! Single heads in several runs of one recipe with different seeds. Only runs that start from one checkpoint can be compared head by head;
//! for models trained from scratch, counts and sorted effects are compared.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use charts::scale::extent;
use records::{AblationRow, Attention, HeadId, Identity, Order, Row, Scope, Verdict};
use significance::SEED;
use stats::Segments;
use stats::reliability::SweepSegments;
use stats::replicates::{Agreement, Heterogeneity, agreement, heterogeneity};

use crate::findings::ablations::Ablations;
use crate::findings::error::{Error, LeftOut, Result, faulty, incomparable};
use crate::findings::judge::{Criterion, Judge, RuleKind};
use crate::findings::pruning::Pruning;
use crate::findings::results::Results;
use crate::findings::segments::stored_if_there;
use crate::findings::source::{ResultFile, experiment};

/// Name of a run's folder, before its number.
pub(crate) const FOLDER: &str = "replicate-";

/// A sweep over all heads for each run.
#[derive(Debug)]
pub struct Replicates {
    /// At least two sweeps in run order; the first is from the setup's own run.
    pub sweeps: Vec<Ablations>,
    /// Pruning curves, if measured and read.
    curves: Vec<Pruning>,
}

/// Shares of the heads that can be masked in one run, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// Shown dispensable.
    pub dispensable: f64,
    /// Without a significant loss, the paper's rule.
    pub without_loss: f64,
}

impl Shares {
    fn of(curves: &Pruning, judge: Judge) -> Option<Self> {
        let curve = curves.find(Scope::All, Order::Importance)?;
        let share = |which| curve.removable(judge, which).map(|found| found.percent);
        Some(Self {
            dispensable: share(RuleKind::Dispensable)?,
            without_loss: share(RuleKind::NoSignificantLoss)?,
        })
    }
}

/// Effects of masking one head in each run.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadAcrossRuns {
    /// The head.
    pub head: HeadId,
    /// Score with the head masked minus score of the full model, in run order.
    pub changes: Vec<f64>,
    /// Verdicts in the order of the runs; `None` if not tested.
    pub verdicts: Vec<Option<Verdict>>,
}

/// Heads that some run needs, by their verdicts in the other runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needed {
    /// Heads that some run needs.
    pub in_some: usize,
    /// Heads among these that all runs need.
    pub in_all: usize,
    /// Heads among these that are undecided in another run.
    pub undecided_in_some: usize,
    /// Heads among these that are dispensable in another run.
    pub dispensable_in_some: usize,
}

impl Needed {
    /// Counts heads over this number of runs.
    pub fn of(heads: &[HeadAcrossRuns], runs: usize) -> Self {
        let needed = || heads.iter().filter(|head| head.count(Verdict::Needed) > 0);
        let with = |verdict| needed().filter(|head| head.count(verdict) > 0).count();
        Self {
            in_some: needed().count(),
            in_all: needed().filter(|head| head.count(Verdict::Needed) == runs).count(),
            undecided_in_some: with(Verdict::Undecided),
            dispensable_in_some: with(Verdict::Dispensable),
        }
    }
}

/// Agreement on the heads of one attention type across runs that start from one checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Correlation of the effects; `None` if it is undefined.
    pub agreement: Option<Agreement>,
    /// Tests for each head whether its effect differs between runs.
    pub heterogeneity: Vec<Heterogeneity>,
}

impl HeadAcrossRuns {
    /// Returns the heads of a type in sweeps over equal heads, in row order.
    pub fn of_type(sweeps: &[Ablations], attention: Attention, judge: Judge) -> Vec<Self> {
        let families: Vec<_> = sweeps.iter().map(|sweep| sweep.family(attention)).collect();
        let of = |place: usize| {
            let rows = families.iter().map(|family| family[place]);
            Self {
                head: families[0][place].head_id(),
                changes: rows.clone().map(|row| row.score_delta).collect(),
                verdicts: rows.map(|row| judge.verdict(row)).collect(),
            }
        };
        (0..families[0].len()).map(of).collect()
    }

    /// Returns the mean change.
    pub fn mean(&self) -> f64 {
        self.changes.iter().sum::<f64>() / self.changes.len() as f64
    }

    /// Returns the minimum and maximum change.
    pub fn range(&self) -> (f64, f64) {
        extent(self.changes.iter().copied())
    }

    /// Returns the verdict on which all runs agree, otherwise undecided; `None` if the first run was not tested.
    pub fn agreed(&self) -> Option<Verdict> {
        let first = self.verdicts[0]?;
        Some(if self.count(first) == self.verdicts.len() { first } else { Verdict::Undecided })
    }

    /// Returns the number of runs with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().filter(|found| **found == Some(verdict)).count()
    }
}

impl Replicates {
    /// Reads the sweeps and pruning curves of all runs of a setup, whose own sweep is `file`; `None` without sweeps of other runs.
    pub fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Option<Self>> {
        let Some(mut found) = Self::beside(Results::read(file)?)? else { return Ok(None) };
        let own = &found.sweeps[0].file;
        let pruning = own.path.with_file_name(format!("{}.csv", own.stem(experiment::PRUNING)));
        if pruning.exists() {
            let first = Pruning::read(own.other(pruning, experiment::PRUNING)?, left_out)?;
            let others = Self::curves(&first, left_out)?;
            found.curves.extend(std::iter::once(first).chain(others));
        }
        Ok(Some(found))
    }

    /// Like [`read`](Self::read), without pruning curves, for a setup whose own sweep has been read.
    pub fn beside(first: Ablations) -> Result<Option<Self>> {
        let own = first.file.clone();
        let mut sweeps = vec![first];
        for sweep in of_replicates(&own, experiment::SWEEP)? {
            let sweep = Ablations::read(sweep)?;
            check(&own, &sweep.file)?;
            check_rows(&sweeps, &sweep)?;
            sweeps.push(sweep);
        }
        Ok((sweeps.len() > 1).then_some(Self { sweeps, curves: Vec::new() }))
    }

    /// Returns the runs to show with a sweep; `None` also if one cannot be read, which is then noted.
    pub fn of_sweep(sweep: &Ablations, left_out: &mut LeftOut) -> Option<Self> {
        left_out.keep_if_there(Self::beside(sweep.clone())).flatten()
    }

    /// Returns the pruning curves of the other runs of a setup.
    pub fn curves(own: &Pruning, left_out: &mut LeftOut) -> Result<Vec<Pruning>> {
        let (own, mut found) = (&own.results.file, Vec::new());
        for curves in of_replicates(own, experiment::PRUNING)? {
            check(own, &curves)?;
            found.push(Pruning::read(curves, left_out)?);
        }
        Ok(found)
    }

    /// Returns the shares of the heads that can be masked by importance, for the runs with curves.
    pub fn shares(&self, criterion: Criterion) -> Vec<Shares> {
        Self::shares_of(&self.curves, criterion)
    }

    /// Returns the shares for these curves.
    pub fn shares_of<'a>(curves: impl IntoIterator<Item = &'a Pruning>, criterion: Criterion) -> Vec<Shares> {
        let of = |curves: &Pruning| Shares::of(curves, curves.results.judge(criterion));
        curves.into_iter().filter_map(of).collect()
    }

    /// Returns the heads of a type, in row order.
    pub fn heads(&self, attention: Attention, judge: Judge) -> Vec<HeadAcrossRuns> {
        HeadAcrossRuns::of_type(&self.sweeps, attention, judge)
    }

    /// Returns true if all runs start from one checkpoint, so that heads can be compared by their numbers.
    pub fn have_same_heads(&self) -> bool {
        self.sweeps[0].file.kind.is_fine_tuned
    }

    /// Compares the heads of each type across runs; empty if runs do not start from one checkpoint, or without statistics of segments.
    pub fn comparisons(&self) -> Result<BTreeMap<Attention, Comparison>> {
        if !self.have_same_heads() {
            return Ok(BTreeMap::new());
        }
        let segments = self.sweeps.iter().map(stored_if_there).collect::<Result<Option<Vec<_>>>>()?;
        let Some(segments) = segments else { return Ok(BTreeMap::new()) };
        let of = |attention: Attention| {
            // all runs have rows of equal heads in equal order
            let is_own = |(row, _): &(&AblationRow, _)| row.attention == attention;
            let own = |variants| -> Vec<&Segments> {
                let rows = self.sweeps[0].rows.iter().zip::<&Vec<Segments>>(variants);
                rows.filter(is_own).map(|(_, variant)| variant).collect()
            };
            let variants: Vec<Vec<&Segments>> = segments.iter().map(|(_, variants)| own(variants)).collect();
            let sweeps =
                segments.iter().zip(&variants).map(|((base, _), variants)| SweepSegments { base, variants });
            let sweeps: Vec<SweepSegments<'_>> = sweeps.collect();
            let compared = agreement(&sweeps, SEED).and_then(|agreement| {
                Ok(Comparison { agreement, heterogeneity: heterogeneity(&sweeps, SEED)? })
            });
            Ok((attention, compared.map_err(incomparable(&self.sweeps[0].file))?))
        };
        self.sweeps[0].attentions().into_iter().map(of).collect()
    }
}

/// Returns the files of other runs with the name of the setup's own file, in run order.
pub(crate) fn of_replicates(own: &ResultFile, experiment: &str) -> Result<Vec<ResultFile>> {
    let of = |number: usize| {
        let folder = format!("{FOLDER}{number}");
        let path = own.path.with_file_name(&folder).join(own.path.file_name().unwrap_or_default());
        let subject = format!("{}/{folder}", own.subject);
        path.exists().then(|| ResultFile::of(path, &subject, experiment, own.kind))
    };
    numbers(own.path.parent().unwrap_or(Path::new("."))).into_iter().filter_map(of).collect()
}

/// Returns results of all other runs; empty if `file` is of a run other than the setup's own and the latter has results.
pub(crate) fn other_runs(file: &ResultFile, experiment: &str) -> Result<Vec<ResultFile>> {
    let Some((subject, _)) = file.subject.rsplit_once('/') else { return of_replicates(file, experiment) };
    let folder = file.path.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let path = folder.join(file.path.file_name().unwrap_or_default());
    if path.exists() {
        return Ok(Vec::new());
    }
    let mut found = of_replicates(&ResultFile::of(path, subject, experiment, file.kind)?, experiment)?;
    found.retain(|other| other.path != file.path);
    Ok(found)
}

/// Returns the numbers of the runs that have a folder in their setup's folder, in ascending order.
fn numbers(folder: &Path) -> Vec<usize> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: String| name.strip_prefix(FOLDER)?.parse().ok().filter(|&number| number > 1);
    let mut numbers: Vec<usize> =
        entries.filter_map(|entry| number(entry.file_name().into_string().ok()?)).collect();
    numbers.sort_unstable();
    numbers
}

/// Refuses results of a run that differ from the setup's own in more than the model.
pub(crate) fn check(own: &ResultFile, other: &ResultFile) -> Result<()> {
    let difference = match (own.identity(), other.identity()) {
        (Some(own), Some(other)) => {
            let model =
                Identity { subject: own.subject.clone(), weights: own.weights.clone(), ..other.clone() };
            own.differences(&model).into_iter().next()
        }
        _ => Some("a signature is missing".to_owned()),
    };
    difference.map_or(Ok(()), |difference| Err(no_replicate(own, other, &difference)))
}

/// Refuses a sweep over different heads, or of a model that is already in `sweeps`.
fn check_rows(sweeps: &[Ablations], other: &Ablations) -> Result<()> {
    let names = |sweep: &Ablations| sweep.rows.iter().map(Row::name).collect::<Vec<_>>();
    if names(&sweeps[0]) != names(other) {
        return Err(no_replicate(&sweeps[0].file, &other.file, "its heads differ"));
    }
    let weights = |sweep: &Ablations| sweep.file.identity().and_then(|identity| identity.weights.clone());
    let same = sweeps.iter().find(|sweep| weights(sweep).is_some() && weights(sweep) == weights(other));
    same.map_or(Ok(()), |same| {
        let fault = format!("it has the same model as `{}`", same.file.path.display());
        Err(no_replicate(&sweeps[0].file, &other.file, &fault))
    })
}

fn no_replicate(own: &ResultFile, other: &ResultFile, difference: &str) -> Error {
    faulty(&other.path, format!("is not another run of `{}`: {difference}", own.path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Change, Source, copied, tiny};
    use serde_json::Value;

    /// Reads a setup with a second run, whose signature is edited.
    fn read_changed(change: Change<'_>) -> Result<Option<Replicates>> {
        let other = |identity: &mut Value| {
            identity["subject"] = "tiny-inference/replicate-2".into();
            identity["weights"] = "1".repeat(64).into();
            change(identity);
        };
        let own = ("ablate-one", "ablate-one", (&|_: &mut Value| ()) as Change<'_>);
        let files = [own, ("ablate-one", "replicate-2/ablate-one", &other)];
        let (_folder, folders) = copied("tiny-inference", &files);
        let file = Source::subject(&folders, "tiny-inference").one(experiment::SWEEP)?;
        Replicates::read(file, &mut LeftOut::default())
    }

    #[test]
    fn unrelated_sweeps_are_not_replicates() {
        let own = |identity: &mut Value| {
            let path = tiny().results.join("tiny-inference/ablate-one.json");
            let signature: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            identity["weights"] = signature["identity"]["weights"].clone();
        };
        let other_split = |identity: &mut Value| identity["split"] = "mismatched".into();
        let faults = [(&own as Change<'_>, "it has the same model as `"), (&other_split, "split: ")];
        for (change, fault) in faults {
            let message = read_changed(change).unwrap_err().to_string();
            assert!(message.contains("is not another run of") && message.contains(fault), "{message}");
        }
    }

    /// Undecided in another run is not dispensable there: of three heads that some run needs, one is dispensable in another.
    #[test]
    fn needed_heads_are_counted_by_their_verdicts_in_other_runs() {
        use Verdict::{Dispensable, Needed as Needs, Undecided};
        let head = |verdicts: [Verdict; 3]| HeadAcrossRuns {
            head: "self:1:2".parse().unwrap(),
            changes: vec![-1.0; 3],
            verdicts: verdicts.map(Some).to_vec(),
        };
        let heads = [
            head([Needs, Needs, Needs]),
            head([Needs, Undecided, Undecided]),
            head([Undecided, Needs, Dispensable]),
            head([Dispensable, Undecided, Dispensable]),
        ];
        let expected = Needed { in_some: 3, in_all: 1, undecided_in_some: 2, dispensable_in_some: 1 };
        assert_eq!(Needed::of(&heads, 3), expected);
    }
}
