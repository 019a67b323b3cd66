//! The one interface between experiments and models.
use std::collections::BTreeSet;
use std::path::Path;

use core_masking::{GatedModel, HeadLayout, HeadMeans, HeadSet, Measure, Measured, Removal};
use corpus::placed::PlacedToken;
use records::Identity;
use stats::{Cells, Metric, Segments};

use crate::classification::Classification;
use crate::error::Error;
use crate::language::LanguageModelling;
use crate::reading::{Input, ReadText, Reading, TextAttention, Vocabulary};
use crate::relevant::SegmentRelevance;
use crate::scored::{Ablation, Scored};
use crate::task::Task;
use crate::task_subject::{SplitEvaluator, TaskSubject};
use crate::tasks::{OfTask, in_task, map_task};
use crate::translation::Translation;

/// The object of an experiment: a model, its data, its loss and its score.
///
/// An experiment never knows whether it looks at a translator or at a classifier.
#[derive(Debug)]
pub struct Subject(
    pub(crate) OfTask<TaskSubject<Translation>, TaskSubject<Classification>, TaskSubject<LanguageModelling>>,
);

impl Subject {
    /// The heads of the model.
    pub fn layout(&self) -> HeadLayout {
        in_task!(&self.0, |own| own.models.layout())
    }

    /// All that a score depends on besides the experiment: subject, split, data, weights, decoding, metric.
    pub fn identity(&self, experiment: &str, scored: &Scored) -> Result<Identity, Error> {
        in_task!(&self.0, |own| own.identity(experiment, scored))
    }

    /// The part of an identity that depends on the model alone, whatever text it reads.
    pub fn identity_of_model(&self, experiment: &str) -> Identity {
        in_task!(&self.0, |own| {
            let mut identity = Identity::new(experiment, &own.file.name);
            identity.precision = own.machine.precision.name().to_owned();
            own.origin.describe(&mut identity);
            identity
        })
    }

    /// The metric of a split.
    pub fn metric(&self, split: &str) -> Metric {
        in_task!(&self.0, |own| own.task.metric(split))
    }

    /// Reads a split, to be scored under any number of head sets.
    ///
    /// - `beside`: other splits that are held at the same time, with which this one shares the memory
    pub fn evaluator(&self, scored: &Scored, beside: u64) -> Result<Evaluator<'_>, Error> {
        Ok(Evaluator(map_task!(&self.0, |own| own.evaluator(scored, beside)?)))
    }

    /// Scores the model without each of these sets of heads, and hands each result to `each` with its place in
    /// `sets`, in order, as soon as it is there. Many sets in one call share what they can.
    ///
    /// # Errors
    /// If a set names a head that the model does not have, the split is at fault, or `each` fails.
    pub fn evaluate(
        &self,
        scored: &Scored,
        sets: &[HeadSet],
        each: &mut dyn FnMut(usize, Evaluation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.evaluator(scored, 0)?.evaluate(sets, each)
    }

    /// Measures that passes over a split can give.
    pub fn measures(&self, on: &Scored) -> Result<BTreeSet<Measure>, Error> {
        in_task!(&self.0, |own| own.measures(on))
    }

    /// Measures all heads on a split by gradients of the loss and by attention weights, with those of `masked` masked.
    ///
    /// # Errors
    /// If `masked` names a head that the model does not have, the split is at fault or does not give one of the
    /// [`measures`](Self::measures), or a score is no number.
    pub fn measure(
        &self,
        on: &Scored,
        masked: &HeadSet,
        measures: &BTreeSet<Measure>,
    ) -> Result<Measured, Error> {
        let total = in_task!(&self.0, |own| own.measured(on, masked, measures))?;
        let is_finite = |means: &HeadMeans| means.means().iter().all(|(_, score)| score.is_finite());
        if total.values().all(is_finite) { Ok(total) } else { Err(Error::not_finite()) }
    }

    /// The segments of a split under each of `sets` as they would be if the loss were linear in the gates: nats change by the
    /// derivatives, classes and choices as the derivatives move the lead of the right one. One backward pass gives all derivatives. `None`
    /// for metrics that the gradient does not predict.
    ///
    /// - `base`: segments of the full model
    pub fn first_order(
        &self,
        on: &Scored,
        base: &Segments,
        sets: &[HeadSet],
    ) -> Result<Option<Vec<Vec<Cells>>>, Error> {
        in_task!(&self.0, |own| own.first_order(on, base, sets))
    }

    /// The relevance of all heads for what the intact model says of each segment of a split, in double precision.
    ///
    /// # Errors
    /// If relevance cannot be followed through the model, the split is at fault, or a number is NaN or infinite.
    pub fn relevance(&self, on: &Scored) -> Result<Vec<SegmentRelevance>, Error> {
        in_task!(&self.0, |own| own.relevance(on))
    }

    /// The model's raw outputs for the segments, before anything is decided, with the heads of `masked` masked: the logits of
    /// each text, or the loss of each reference per token in nats.
    ///
    /// # Errors
    /// If `masked` names a head that the model does not have, or the split is at fault.
    pub fn outputs(&self, scored: &Scored, masked: &HeadSet) -> Result<Vec<f64>, Error> {
        in_task!(&self.0, |own| own.outputs(scored, masked))
    }

    /// The way in which its heads read texts by themselves.
    pub fn reading(&self) -> Reading {
        in_task!(&self.0, |own| own.reading())
    }

    /// The tokens of a language model; `None` of other models.
    pub fn vocabulary(&self) -> Option<Vocabulary> {
        in_task!(&self.0, |own| own.task.vocabulary())
    }

    /// The tokens of a text as the model reads it, with their places in it.
    ///
    /// # Errors
    /// If the tokeniser cannot take the text, or does not know where tokens stand.
    pub fn place(&self, text: &str) -> Result<Vec<PlacedToken>, Error> {
        let tokens = in_task!(&self.0, |own| own.task.place(text))?;
        tokens.ok_or_else(|| {
            Error::Invalid(format!(
                "the tokeniser in `{}` does not say where in a text its tokens stand, so that words cannot be told from \
                 pieces: this takes byte-level BPE, WordPiece or another `tokenizer.json`",
                self.folder().display()
            ))
        })
    }

    /// Lets the model read texts, and hands the attention weights of each to `each` with its place in `texts`; texts of
    /// like length one after another.
    ///
    /// - `texts`: none longer than [`Reading::longest`]
    ///
    /// # Errors
    /// If the memory is too small for a text, a weight is no number, or `each` fails.
    pub fn look(
        &self,
        texts: &[&[u32]],
        each: &mut dyn FnMut(usize, TextAttention) -> Result<(), Error>,
    ) -> Result<(), Error> {
        in_task!(&self.0, |own| own.look(texts, each))
    }

    /// Attention of all heads in one text, of a translator in its translation too, and the model's answer, with these heads masked.
    ///
    /// # Errors
    /// If `masked` names a head that the model does not have, the model cannot take the text, or a weight is no number.
    pub fn read(&self, input: &Input<'_>, masked: &HeadSet) -> Result<ReadText, Error> {
        in_task!(&self.0, |own| own.read_text(input, masked))
    }

    /// The same subject with these heads removed for real, but for what stays of them under `ablation`: nothing, or their mean contexts,
    /// folded into biases.
    ///
    /// # Errors
    /// If the model does not have one of them, no head would be left, or it cannot hold what stays of them.
    pub fn without_heads(&self, heads: &HeadSet, ablation: &Ablation) -> Result<Self, Error> {
        Ok(Self(map_task!(&self.0, |own| own.without_heads(heads, ablation)?)))
    }

    /// The same subject, in which the heads that are not `masked` are multiplied so that each module writes what is closest to what
    /// it writes in the intact model, module by module from below: Kwon et al. (2022), Section 4.3. The others are there to be masked.
    ///
    /// - `on`: segments on which it is closest
    ///
    /// # Errors
    /// If the model does not have one of the heads, its layers share their weights, or the split is at fault.
    pub fn refitted(&self, masked: &HeadSet, on: &Scored) -> Result<Self, Error> {
        Ok(Self(map_task!(&self.0, |own| own.refitted(masked, on)?)))
    }

    /// The Hugging Face folder that the model came from, with its tokeniser.
    pub fn folder(&self) -> &Path {
        in_task!(&self.0, |own| &own.origin.folder)
    }

    /// Writes configuration and weights of the model that [`without_heads`](Self::without_heads) makes into a folder.
    ///
    /// # Errors
    /// If the model does not have one of the heads, no head would be left, a file cannot be written, zeros are asked
    /// for and the model has heads cut out already, or what stays of them cannot be written.
    pub fn save_without_heads(
        &self,
        heads: &HeadSet,
        removal: Removal,
        ablation: &Ablation,
        folder: &Path,
    ) -> Result<(), Error> {
        in_task!(&self.0, |own| {
            own.origin.check_removal(removal, &own.models.layout())?;
            Ok(own.removed(heads, removal, ablation)?.save(folder)?)
        })
    }

    /// Number of parameters of the model.
    pub fn parameters(&self) -> u64 {
        in_task!(&self.0, |own| own.models.exact.weights().parameters())
    }

    /// The segments of a split in batches of `batch_size`, ready to be computed again and again by all threads together.
    ///
    /// # Errors
    /// If the split is at fault, or segments are to be continued and the model does not continue texts.
    pub fn pass(&self, scored: &Scored, batch_size: usize, work: Work) -> Result<Pass<'_>, Error> {
        in_task!(&self.0, |own| own.pass(scored, batch_size, work))
    }

    /// The model's answer to a text with these heads masked: its translation, its class, or the text that follows, of at
    /// most this many tokens.
    ///
    /// # Errors
    /// If `masked` names a head that the model does not have, the model cannot take the text, or the split that replacements
    /// come from is at fault.
    pub fn say(
        &self,
        text: &str,
        tokens: usize,
        masked: &HeadSet,
        ablation: &Ablation,
    ) -> Result<String, Error> {
        in_task!(&self.0, |own| own.say(text, tokens, masked, ablation))
    }
}
/// A split, read and cut into batches once, with what earlier evaluations left of them.
pub struct Evaluator<'a>(
    OfTask<
        SplitEvaluator<'a, Translation>,
        SplitEvaluator<'a, Classification>,
        SplitEvaluator<'a, LanguageModelling>,
    >,
);

impl Evaluator<'_> {
    /// Number of segments that are scored.
    pub fn segments(&self) -> usize {
        in_task!(&self.0, |own| own.segments())
    }

    /// [`Subject::evaluate`] on this split.
    ///
    /// # Errors
    /// If a set names a head that the model does not have, or `each` fails.
    pub fn evaluate(
        &mut self,
        sets: &[HeadSet],
        each: &mut dyn FnMut(usize, Evaluation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        in_task!(&mut self.0, |own| own.evaluate(sets, each))
    }
}

/// Work on segments that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// They are scored: read, classified, translated.
    Score,
    /// They are continued by this many tokens, greedily and with a cache.
    Continue(usize),
}

/// Work of a model on a split, to be timed.
pub struct Pass<'a> {
    /// Number of segments.
    pub segments: usize,
    /// Number of tokens that are read, of a translator those of the source, or that are produced if segments are continued.
    pub tokens: u64,
    /// Computes all of them once; returns the number of multiply-adds that this takes, padding included. Fails if the model
    /// cannot take a segment.
    pub run: Box<dyn Fn() -> Result<u64, Error> + 'a>,
}
/// A score with what significance tests need.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// In points: BLEU, accuracy and F1 from 0 to 100, Matthews correlation from -100 to 100.
    pub score: f64,
    /// Results of each segment.
    pub segments: Segments,
}

impl Evaluation {
    /// From what is known of each segment.
    ///
    /// # Errors
    /// If there is no segment, or a class is beyond what the metric is for.
    pub fn new(segments: Segments) -> Result<Self, Error> {
        Ok(Self { score: segments.score()?, segments })
    }
}
