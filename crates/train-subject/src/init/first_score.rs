//! The score of a few segments, estimated durations of experiments, and likely mistakes.
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use core_masking::{HeadLayout, HeadSet};
use indicatif::HumanDuration;
use stats::classification::{Outcome, Reordered, reordered};
use stats::{MetricName, Segments};
use subject::{Description, Evaluation, Scored};
use training::Machine;

/// Number of segments to score.
const SEGMENTS: usize = 20;

/// Number of segments to score if the score decides the order of the classes.
const SEGMENTS_FOR_ORDER: usize = 200;

/// Number of curves that `prune` measures by default: importance and oracle with their complements, and ten random orders.
const CURVES: usize = 14;

/// Default number of segments for importance, and the duration of one gradient in evaluations.
const ESTIMATE: (usize, f64) = (2000, 3.0);

/// Duration from which a sweep should use --until-decided.
const LONG: Duration = Duration::from_secs(30 * 60);

/// Score of generated texts, in points, below which they have nothing in common with the references.
const NO_SCORE: f64 = 2.0;

/// Share of the loss of uniform predictions (the logarithm of the vocabulary size) above which a language model has learned nothing.
const UNIFORM: f64 = 0.75;

/// The score of some segments, with the time that it took.
#[derive(Debug)]
pub(super) struct FirstScore {
    evaluation: Evaluation,
    metric: MetricName,
    layout: HeadLayout,
    split: String,
    /// Number of scored segments, and of all segments.
    segments: [usize; 2],
    /// Seconds per evaluation of these segments without shared layers, and with a masked head on average.
    seconds: [f64; 2],
    vocabulary: Option<usize>,
}

impl FirstScore {
    /// Opens the model and scores a random sample.
    pub(super) fn measure(path: &Path, needs_order: bool, machine: &Machine, results: &Path) -> Result<Self> {
        let description = Description::read(path)?;
        let split = description.split(None, machine)?;
        let all = description.sentences(&split, machine)?.len();
        let subject = description.open(machine, results)?;
        let wanted = if needs_order { SEGMENTS_FOR_ORDER } else { SEGMENTS };
        let scored = Scored::sample(split.clone(), wanted.min(all), 1, false);
        let mut evaluator = subject.evaluator(&scored, 0)?;
        let mut time = |sets: &[HeadSet]| -> Result<(Option<Evaluation>, f64)> {
            let (begun, mut first) = (Instant::now(), None);
            evaluator.evaluate(sets, &mut |_, found| {
                first.get_or_insert(found);
                Ok(())
            })?;
            Ok((first, begun.elapsed().as_secs_f64() / sets.len() as f64))
        };
        let (evaluation, _) = time(&[HeadSet::none()])?; // warm-up
        let layout = subject.layout();
        let heads = some_heads(&layout);
        let (_, full) = time(&heads[..1])?; // a head of the first layer shares no layers
        let (_, masked) = time(&heads)?;
        Ok(Self {
            evaluation: evaluation.context("the full model has a score")?,
            metric: subject.metric(&split).name(),
            vocabulary: subject.vocabulary().map(|vocabulary| vocabulary.of_text.len()),
            layout,
            split,
            segments: [wanted.min(all), all],
            seconds: [full, masked],
        })
    }

    /// Returns the classes in the order in which the model is right far more often, with an explanation; `None` if the order is plausible.
    pub(super) fn better_order(&self, labels: &[String]) -> Option<(Vec<String>, String)> {
        let Segments::Classes(outcomes, _) = &self.evaluation.segments else { return None };
        let Reordered { order, right: [given, other] } = reordered(outcomes, labels.len())?;
        let why = format!(
            "in this order {other:.0}% of {} segments are right, otherwise {given:.0}%",
            outcomes.len()
        );
        Some((order.into_iter().map(|class| labels[class].clone()).collect(), why))
    }

    /// Returns the lines to print.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let [scored, all] = self.segments;
        let (heads, modules) = (self.layout.heads().len(), self.layout.heads_by_module().len());
        let (metric, digits) = (self.metric, self.metric.digits());
        let mut lines = vec![format!(
            "{metric} {:.digits$} on {scored} of {all} segments of split `{}`; {heads} heads in {modules} attention modules",
            self.evaluation.score, self.split
        )];
        lines.extend(self.doubt().map(|doubt| format!("warning: {doubt}")));
        let front = words::front();
        let [heads, curves] = self.times();
        let stopping = if heads < LONG { "" } else { ", --until-decided stops each head at its verdict" };
        lines.push(format!(
            "`{front} heads {name}` takes about {}, `{front} prune {name}` about {}; --limit 200 scores a random sample{stopping}",
            HumanDuration(heads),
            HumanDuration(curves)
        ));
        lines
    }

    /// Estimates the duration of `heads`, and of `prune`, which needs `heads` for the oracle.
    fn times(&self) -> [Duration; 2] {
        let [scored, all] = self.segments;
        let [full, masked] = self.seconds.map(|seconds| seconds / scored.max(1) as f64); // per segment
        let count = self.layout.heads().len();
        // 10% per step for translators, 5% for other models
        let steps = if self.layout.types().count() > 1 { 10 } else { 20 };
        let heads = all as f64 * (full + masked * count as f64);
        let curves = all as f64 * full * (CURVES * steps.min(count)) as f64;
        let estimate = ESTIMATE.0.min(all) as f64 * ESTIMATE.1 * full;
        [heads, heads + curves + estimate].map(Duration::from_secs_f64)
    }

    /// Returns what is probably wrong if the score is no better than chance.
    fn doubt(&self) -> Option<String> {
        let score = self.evaluation.score;
        match &self.evaluation.segments {
            Segments::Classes(outcomes, _) if self.vocabulary.is_some() => {
                let right = outcomes.iter().filter(|outcome| outcome.is_right()).count();
                (2 * right <= outcomes.len()).then(|| {
                    format!(
                        "{right} of {} answers are right: are the right and the wrong choice in the right columns?",
                        outcomes.len()
                    )
                })
            }
            Segments::Classes(outcomes, _) => {
                let recall = mean_recall(outcomes)?;
                (recall <= 0.0).then(|| {
                    "the model is no better than the same answer to every text: is data.labels in the order of the model's \
                     outputs, and are the text and any second text in the right columns?"
                        .to_owned()
                })
            }
            Segments::Means(..) => (score <= 0.0).then(|| {
                "wrong choices are more probable than right ones: are they in the right columns?".to_owned()
            }),
            Segments::Nats(_) => {
                let uniform = (self.vocabulary? as f64).ln();
                (score > UNIFORM * uniform).then(|| {
                    format!(
                        "uniform predictions would cost {uniform:.2} nats: are the texts in a language that the model knows, \
                         and does the tokenizer belong to the model?"
                    )
                })
            }
            Segments::Texts(_, metric) if metric.is_of_tags() => (score < NO_SCORE).then(|| {
                "nearly no tag is right: are words and tags in the right columns, and are the tags those of the model, in \
                 its order?"
                    .to_owned()
            }),
            Segments::Bleu(_) | Segments::Texts(..) => (score < NO_SCORE).then(|| {
                "the output has nothing in common with the references: are source and target exchanged, or does the model \
                 need another data.source_prefix, or language codes?"
                    .to_owned()
            }),
            _ => (score <= 0.0).then(|| {
                "predictions do not correlate with the labels: are text and label in the right columns?".to_owned()
            }),
        }
    }
}

/// Returns the mean recall of the classes, minus the recall of a constant answer; `None` if there is only one class.
fn mean_recall(outcomes: &[Outcome]) -> Option<f64> {
    let classes: BTreeSet<usize> = outcomes.iter().map(|outcome| outcome.gold).collect();
    let recall = |class: &usize| {
        let of_class = || outcomes.iter().filter(|outcome| outcome.gold == *class);
        of_class().filter(|outcome| outcome.is_right()).count() as f64 / of_class().count() as f64
    };
    let count = classes.len() as f64;
    (count > 1.0).then(|| (classes.iter().map(recall).sum::<f64>() - 1.0) / count)
}

/// Returns the first head of the first, middle and last attention module, each as a set.
fn some_heads(layout: &HeadLayout) -> Vec<HeadSet> {
    let modules = layout.heads_by_module();
    let places = [0, modules.len() / 2, modules.len().saturating_sub(1)];
    let heads = places.iter().filter_map(|&place| modules.get(place)?.first());
    heads.map(|&id| HeadSet::from_iter([id])).collect()
}
