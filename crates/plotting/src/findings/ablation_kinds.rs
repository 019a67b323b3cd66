//! Heads masked under several kinds of ablation: the output is replaced by zeros, by its mean, or by its value in another text.
use records::{Attention, Order, Row, Scope};
use serde_json::Value;
use significance::SEED;
use stats::Segments;
use stats::correlation::spearman;
use stats::family::{Comparison, Pair, test_pairs};
use stats::reliability::{SweepSegments, across_halves, ceiling};

use crate::findings::ablations::Ablations;
use crate::findings::contrasts::adjust;
use crate::findings::error::{LeftOut, Result, faulty, incomparable};
use crate::findings::judge::Judge;
use crate::findings::metric::Metric;
use crate::findings::pruning::{Pruning, order_entries};
use crate::findings::replicates::{HeadAcrossRuns, of_replicates};
use crate::findings::results::Results;
use crate::findings::same_model::{beside, model_entries};
use crate::findings::segments::stored_if_there;
use crate::findings::source::{ResultFile, experiment};

/// Number of random divisions of the segments into halves.
const SPLITS: usize = 50;

/// A sweep under several kinds of ablation.
#[derive(Debug)]
pub struct Kinds {
    /// At least two kinds, zero ablation first.
    pub all: Vec<Kind>,
}

/// Sweeps under one kind of ablation.
#[derive(Debug)]
pub struct Kind {
    /// `zero`, `mean` or `resample`.
    pub name: &'static str,
    /// One sweep, or one per draw of other texts.
    pub draws: Vec<Ablations>,
}

/// Agreement of two kinds on the costs of the heads of one attention type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KindAgreement {
    /// The attention type.
    pub attention: Attention,
    /// Indices of both in [`Kinds::all`].
    pub kinds: [usize; 2],
    /// Spearman's rho of the costs; `None` if all heads cost the same.
    pub spearman: Option<f64>,
    /// Spearman's rho between one kind on a random half of the segments and the other on the rest, averaged; `None` without segments.
    pub across_halves: Option<f64>,
    /// Maximum of `across_halves` that the noise of halves allows; `None` if one kind is only noise.
    pub ceiling: Option<f64>,
}

/// Pruning curves under at least two kinds of ablation, zero ablation first, with the names of the kinds.
#[derive(Debug)]
pub struct KindsOfCurves {
    /// Each has a curve over all heads by importance.
    pub all: Vec<(&'static str, Pruning)>,
}

/// Tests for each head whether masking it costs the same under two kinds of ablation, on shared segments.
#[derive(Debug, Clone, PartialEq)]
pub struct KindContrast {
    /// Index in [`Kinds::all`] of the kind compared with zero ablation.
    pub kind: usize,
    /// For each head in row order, the kind's score minus the score under zero ablation; adjusted by Holm over the heads.
    pub tests: Vec<Comparison>,
}

impl KindContrast {
    /// Counts the heads that cost more under zero ablation, and those that cost more under the other kind, with a p-value below alpha.
    pub fn counts(
        &self,
        metric: Metric,
        alpha: f64,
        p_value: impl Fn(&Comparison) -> Option<f64>,
    ) -> [usize; 2] {
        let differs = |test: &&Comparison| p_value(test).is_some_and(|p| p < alpha);
        let gain = |test: &Comparison| metric.direction().gain(test.delta);
        let count =
            |sign: f64| self.tests.iter().filter(differs).filter(|test| gain(test) * sign > 0.0).count();
        [count(1.0), count(-1.0)]
    }
}

impl KindsOfCurves {
    /// Reads the curves next to those under zero ablation, with the first draw of other texts, from the run that [`Kinds::read`] would use.
    pub fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Option<Self>> {
        first_run(file, experiment::PRUNING, |file| {
            let (mut all, mut reference) = (Vec::new(), None);
            for (name, suffix) in [("mean", "mean"), ("resample", "resample-1")] {
                if let Some(found) = other_kind(&file, suffix, experiment::PRUNING, &mut reference)? {
                    all.push((name, Pruning::read(found, left_out)?));
                }
            }
            if !all.is_empty() {
                all.insert(0, ("zero", Pruning::read(file, left_out)?));
            }
            all.retain(|(_, curves)| curves.find(Scope::All, Order::Importance).is_some());
            let has_zero = all.first().is_some_and(|(name, _)| *name == "zero");
            Ok((has_zero && all.len() > 1).then_some(Self { all }))
        })
    }
}

/// Returns the curves of the same run under mean ablation, if measured; an output bias can hold the means.
pub fn folded(curves: &Pruning, left_out: &mut LeftOut) -> Result<Option<Pruning>> {
    let file = &curves.results.file;
    let of_zeros = file.ablation().is_empty();
    let found = of_zeros.then(|| other_kind(file, "mean", experiment::PRUNING, &mut None)).transpose()?;
    found.flatten().map(|file| Pruning::read(file, left_out)).transpose()
}

/// Returns what `beside` finds for the setup's own run, or else for the first other run; `None` unless `file` is of zero ablation.
fn first_run<T>(
    file: ResultFile,
    experiment: &str,
    beside: impl FnMut(ResultFile) -> Result<Option<T>>,
) -> Result<Option<T>> {
    if !file.ablation().is_empty() {
        return Ok(None);
    }
    let replicates = of_replicates(&file, experiment)?;
    std::iter::once(file).chain(replicates).map(beside).find_map(Result::transpose).transpose()
}

/// Source of the replacement texts, as stored in signatures.
type Reference = [Option<Value>; 3];

/// Returns results of another kind of ablation next to those under zero ablation; `None` if not measured. `reference` holds the texts of
/// those found before, which must be equal.
pub(crate) fn other_kind(
    zero: &ResultFile,
    suffix: &str,
    experiment: &str,
    reference: &mut Option<Reference>,
) -> Result<Option<ResultFile>> {
    let name = zero.stem(&format!("{experiment}-{suffix}"));
    let Some(found) = beside(zero, &name, experiment, &[model_entries, order_entries])? else {
        return Ok(None);
    };
    let texts = ["reference_on", "reference_limit", "reference_seed"];
    let texts = texts.map(|name| found.argument(name).cloned());
    if found.ablation() != format!("-{suffix}") || *reference.get_or_insert(texts.clone()) != texts {
        let fault = "has another kind of ablation than its name suggests, or other reference texts than the files next to it";
        return Err(faulty(&found.path, fault));
    }
    Ok(Some(found))
}

impl Kind {
    /// Returns the effect of masking each head of a type, averaged over draws.
    pub fn changes(&self, attention: Attention) -> Vec<f64> {
        let families: Vec<_> = self.draws.iter().map(|sweep| sweep.family(attention)).collect();
        let sum = |place: usize| families.iter().map(|family| family[place].score_delta).sum::<f64>();
        (0..families[0].len()).map(|place| sum(place) / families.len() as f64).collect()
    }

    /// Returns each head of a type under all draws.
    pub fn heads(&self, attention: Attention, judge: Judge) -> Vec<HeadAcrossRuns> {
        HeadAcrossRuns::of_type(&self.draws, attention, judge)
    }
}

impl Kinds {
    /// Reads the kinds of the setup's own run, or else of another run; `None` if only one was measured, or `file` is not of zero ablation.
    pub fn read(file: ResultFile) -> Result<Option<Self>> {
        first_run(file, experiment::SWEEP, Self::beside)
    }

    fn beside(file: ResultFile) -> Result<Option<Self>> {
        let zero: Ablations = Results::read(file)?;
        let mut reference = None;
        let mut of_kind = |suffix: &str| -> Result<Option<Ablations>> {
            let file = other_kind(&zero.file, suffix, experiment::SWEEP, &mut reference)?;
            let found: Option<Ablations> = file.map(Results::read).transpose()?;
            let names = |sweep: &Ablations| sweep.rows.iter().map(Row::name).collect::<Vec<_>>();
            if let Some(found) = found.as_ref().filter(|found| names(&zero) != names(found)) {
                let fault = format!("has other heads than `{}`", zero.file.path.display());
                return Err(faulty(&found.file.path, fault));
            }
            Ok(found)
        };
        let mean = of_kind("mean")?;
        let mut draws = Vec::new();
        while let Some(draw) = of_kind(&format!("resample-{}", draws.len() + 1))? {
            draws.push(draw);
        }
        let others = [("mean", mean.into_iter().collect()), ("resample", draws)];
        let mut all = vec![Kind { name: "zero", draws: vec![zero] }];
        all.extend(
            others
                .map(|(name, draws)| Kind { name, draws })
                .into_iter()
                .filter(|kind| !kind.draws.is_empty()),
        );
        Ok((all.len() > 1).then_some(Self { all }))
    }

    /// Returns the sweep under zero ablation.
    pub fn zero(&self) -> &Ablations {
        &self.all[0].draws[0]
    }

    /// Compares each two kinds on the heads of each type.
    pub fn agreements(&self) -> Result<Vec<KindAgreement>> {
        let sweeps = self.all.iter().flat_map(|kind| &kind.draws);
        let segments = sweeps.map(stored_if_there).collect::<Result<Option<Vec<_>>>>()?;
        let mut found = Vec::new();
        for attention in self.zero().attentions() {
            let changes: Vec<Vec<f64>> = self.all.iter().map(|kind| kind.changes(attention)).collect();
            let halves =
                segments.as_ref().map(|segments| self.across_halves(attention, segments)).transpose()?;
            let of_halves = |one: usize, other: usize| halves.as_ref().and_then(|all| all[one][other]);
            for second in 1..self.all.len() {
                for first in 0..second {
                    let rho = spearman(&changes[first], &changes[second]).ok();
                    found.push(KindAgreement {
                        attention,
                        kinds: [first, second],
                        spearman: rho.map(|found| found.coefficient),
                        across_halves: of_halves(first, second),
                        ceiling: ceiling(of_halves(first, first), of_halves(second, second)),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Tests each kind with a single draw against zero ablation, head by head; empty without statistics of segments.
    pub fn contrasts_with_zero(&self) -> Result<Vec<KindContrast>> {
        let zero = self.zero();
        let (Some((_, zeros)), Some(testing)) = (stored_if_there(zero)?, zero.file.testing()) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for (kind, own) in self.all.iter().enumerate().skip(1) {
            let [sweep] = &own.draws[..] else { continue };
            let Some((_, others)) = stored_if_there(sweep)? else { continue };
            let systems: Vec<&Segments> = zeros.iter().chain(&others).collect();
            let pairs: Vec<Pair> =
                (0..zeros.len()).map(|base| Pair { base, variant: zeros.len() + base }).collect();
            let tests = test_pairs(&systems, &pairs, testing.of_segments());
            let mut tests = tests.map_err(incomparable(&sweep.file))?;
            adjust(tests.iter_mut().collect());
            found.push(KindContrast { kind, tests });
        }
        Ok(found)
    }

    /// `segments`: base and rows, for each draw of each kind
    fn across_halves(
        &self,
        attention: Attention,
        segments: &[(Segments, Vec<Segments>)],
    ) -> Result<Vec<Vec<Option<f64>>>> {
        let rows = &self.zero().rows; // those of all sweeps are of the same heads
        let own = |all: &'_ [Segments]| -> Vec<usize> {
            (0..all.len()).filter(|&row| rows[row].attention == attention).collect()
        };
        let variants: Vec<Vec<&Segments>> = segments
            .iter()
            .map(|(_, variants)| own(variants).into_iter().map(|row| &variants[row]).collect())
            .collect();
        let mut sweeps =
            segments.iter().zip(&variants).map(|((base, _), variants)| SweepSegments { base, variants });
        let kinds: Vec<Vec<SweepSegments<'_>>> =
            self.all.iter().map(|kind| sweeps.by_ref().take(kind.draws.len()).collect()).collect();
        across_halves(&kinds, SPLITS, SEED).map_err(incomparable(&self.zero().file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Change, Source, copied};

    /// Reads a setup with copies of a sweep as other kinds, whose signatures are edited.
    fn read(kinds: &[(&str, Change<'_>)]) -> Result<Option<Kinds>> {
        let sign = |name: &str, change: Change<'_>, identity: &mut Value| {
            let (replicate, name_alone) = name.split_once("/ablate-one").unwrap_or(("", name));
            if !replicate.is_empty() {
                identity["subject"] = format!("tiny-inference/{replicate}").into();
            }
            let kind: Vec<&str> = name_alone.trim_start_matches("ablate-one").split('-').skip(1).collect();
            if let [kind, draw @ ..] = &kind[..] {
                identity["arguments"]["ablation"] = (*kind).into();
                if let [draw] = draw {
                    identity["arguments"]["draw"] = draw.parse::<u64>().unwrap().into();
                }
            }
            change(identity);
        };
        let all = std::iter::once(&("ablate-one", UNCHANGED)).chain(kinds);
        let signed: Vec<_> =
            all.map(|&(name, change)| (name, move |own: &mut Value| sign(name, change, own))).collect();
        let files: Vec<_> =
            signed.iter().map(|(name, change)| ("ablate-one", *name, change as Change<'_>)).collect();
        let (_folder, folders) = copied("tiny-inference", &files);
        Kinds::read(Source::subject(&folders, "tiny-inference").one(experiment::SWEEP)?)
    }

    const UNCHANGED: Change<'_> = &|_| ();

    /// Two draws are one kind, whose changes are averaged; equal changes have a rho of 1.
    #[test]
    fn equal_sweeps_of_other_kinds_agree() {
        let names = ["ablate-one-mean", "ablate-one-resample-1", "ablate-one-resample-2"];
        let found = read(&names.map(|name| (name, UNCHANGED))).unwrap().unwrap();
        let shape: Vec<_> = found.all.iter().map(|kind| (kind.name, kind.draws.len())).collect();
        assert_eq!(shape, [("zero", 1), ("mean", 1), ("resample", 2)]);
        let [zero, resample] = [0, 2].map(|kind| found.all[kind].changes(Attention::SelfAttention));
        assert_eq!(zero, resample);
        let agreements = found.agreements().unwrap();
        assert_eq!(agreements.iter().map(|one| one.kinds).collect::<Vec<_>>(), [[0, 1], [0, 2], [1, 2]]);
        assert!(agreements.iter().all(|one| (one.spearman.unwrap() - 1.0).abs() < 1e-12));
    }

    /// The setup's own run is preferred to other runs, which the title names.
    #[test]
    fn kinds_of_a_replicate_stand_for_those_of_its_subject() {
        let title = |names: &[&'static str]| {
            let found = read(&names.iter().map(|&name| (name, UNCHANGED)).collect::<Vec<_>>()).unwrap();
            found.map(|found| found.zero().file.title())
        };
        let replicate = ["replicate-6/ablate-one", "replicate-6/ablate-one-mean", "ablate-one-mean"];
        assert_eq!(title(&replicate[..1]), None);
        assert_eq!(title(&replicate[..2]).unwrap(), "tiny-inference, run 6, matched");
        assert_eq!(title(&replicate).unwrap(), "tiny-inference, matched");
    }

    #[test]
    fn another_model_or_kind_is_not_compared() {
        assert!(read(&[]).unwrap().is_none());
        let other = |identity: &mut Value| identity["weights"] = "1".repeat(64).into();
        let unlike = |identity: &mut Value| identity["arguments"]["ablation"] = "resample".into();
        let faults = [(&other as Change<'_>, "does not match"), (&unlike, "has another kind of ablation")];
        for (change, fault) in faults {
            let message = read(&[("ablate-one-mean", change)]).unwrap_err().to_string();
            assert!(message.contains("ablate-one-mean.csv` ") && message.contains(fault), "{message}");
        }
    }

    #[test]
    fn curves_whose_orders_were_made_otherwise_are_not_compared() {
        let recomputed = |is_so: bool| move |own: &mut Value| own["arguments"]["recompute"] = is_so.into();
        let [first, second] = [recomputed(false), recomputed(true)];
        let [zero, mean] = ["iterative-prune", "iterative-prune-mean"];
        let (_folder, folders) = copied("tiny-language", &[(zero, zero, &first), (mean, mean, &second)]);
        let file = Source::subject(&folders, "tiny-language").one(experiment::PRUNING).unwrap();
        let message = KindsOfCurves::read(file, &mut LeftOut::default()).unwrap_err().to_string();
        assert!(message.ends_with("recompute is true here but false there"), "{message}");
    }
}
