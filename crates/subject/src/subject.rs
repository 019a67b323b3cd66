//! The interface between experiments and models.
use std::collections::BTreeSet;
use std::path::Path;

use core_masking::{GatedModel, HeadLayout, HeadMeans, HeadSet, Measure, Measured, Removal};
use corpus::placed::PlacedToken;
use records::Identity;
use stats::{Cells, Metric, Segments};

use crate::classification::Classification;
use crate::error::Error;
use crate::language::LanguageModelling;
use crate::outcome::{Evaluation, Pass, Work};
use crate::relevant::SegmentRelevance;
use crate::scored::{Ablation, Scored};
use crate::task::Task;
use crate::task_subject::{SplitEvaluator, TaskSubject};
use crate::tasks::{OfTask, in_task, map_task};
use crate::text_input::{Input, ReadText, TextAttention, TextInput, Vocabulary};
use crate::translation::Translation;

/// A model with its data, loss and metric. Experiments do not know which task it has.
#[derive(Debug)]
pub struct Subject(
    pub(crate) OfTask<TaskSubject<Translation>, TaskSubject<Classification>, TaskSubject<LanguageModelling>>,
);

impl Subject {
    /// Returns the layout of the model's heads.
    pub fn layout(&self) -> HeadLayout {
        in_task!(&self.0, |own| own.models.layout())
    }

    /// Returns everything that a score depends on in addition to the experiment: setup, split, data, weights, decoding, metric.
    pub fn identity(&self, experiment: &str, scored: &Scored) -> Result<Identity, Error> {
        in_task!(&self.0, |own| own.identity(experiment, scored))
    }

    /// Returns the part of an identity that depends only on the model.
    pub fn identity_of_model(&self, experiment: &str) -> Identity {
        in_task!(&self.0, |own| {
            let mut identity = Identity::new(experiment, &own.file.name);
            identity.precision = own.machine.precision.name().to_owned();
            own.origin.describe(&mut identity);
            identity
        })
    }

    /// Returns the metric of a split.
    pub fn metric(&self, split: &str) -> Metric {
        in_task!(&self.0, |own| own.task.metric(split))
    }

    /// Reads a split, to be scored under any number of head sets.
    ///
    /// - `beside`: number of other splits that are held at the same time and share the memory
    pub fn evaluator(&self, scored: &Scored, beside: u64) -> Result<Evaluator<'_>, Error> {
        Ok(Evaluator(map_task!(&self.0, |own| own.evaluator(scored, beside)?)))
    }

    /// Scores the model with each of these head sets masked. Calls `each` with the index in `sets` and the result, in order, as soon as a
    /// result is available. Head sets in one call share computations.
    ///
    /// # Errors
    /// If the model lacks one of the heads, the split is invalid, or `each` fails.
    pub fn evaluate(
        &self,
        scored: &Scored,
        sets: &[HeadSet],
        each: &mut dyn FnMut(usize, Evaluation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.evaluator(scored, 0)?.evaluate(sets, each)
    }

    /// Returns the measures that passes over a split can compute.
    pub fn measures(&self, on: &Scored) -> Result<BTreeSet<Measure>, Error> {
        in_task!(&self.0, |own| own.measures(on))
    }

    /// Computes measures of all heads from gradients of the loss and attention weights, with `masked` heads masked.
    ///
    /// # Errors
    /// If the model lacks one of `masked`, the split is invalid or does not support one of the [`measures`](Self::measures), or a value is
    /// NaN or infinite.
    pub fn measure(
        &self,
        on: &Scored,
        masked: &HeadSet,
        measures: &BTreeSet<Measure>,
    ) -> Result<Measured, Error> {
        let total = in_task!(&self.0, |own| own.measured((on, &own.encode(on)?), masked, measures))?;
        let is_finite = |means: &HeadMeans| means.means().iter().all(|(_, score)| score.is_finite());
        if total.values().all(is_finite) { Ok(total) } else { Err(Error::not_finite()) }
    }

    /// Predicts a split's segments under each of `sets` as if the loss were linear in the gates. Nats change by the derivatives; classes
    /// and choices change if the derivatives reverse the lead of the right one. One backward pass gives all derivatives. `None` if
    /// gradients do not predict the metric.
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

    /// Returns, for each segment of a split, the relevance of all heads for the full model's prediction, in double precision.
    ///
    /// # Errors
    /// If the model does not support relevance propagation, the split is invalid, or a number is NaN or infinite.
    pub fn relevance(&self, on: &Scored) -> Result<Vec<SegmentRelevance>, Error> {
        in_task!(&self.0, |own| own.relevance(on))
    }

    /// Returns the model's raw outputs for the segments with `masked` heads masked: the logits of each text, or the loss of each reference
    /// per token in nats.
    ///
    /// # Errors
    /// If the model lacks one of `masked`, or the split is invalid.
    pub fn outputs(&self, scored: &Scored, masked: &HeadSet) -> Result<Vec<f64>, Error> {
        in_task!(&self.0, |own| own.outputs(scored, masked))
    }

    /// Returns how the heads read a text.
    pub fn text_input(&self) -> TextInput {
        in_task!(&self.0, |own| own.text_input())
    }

    /// Returns the vocabulary of a language model; `None` for other models.
    pub fn vocabulary(&self) -> Option<Vocabulary> {
        in_task!(&self.0, |own| own.task.vocabulary())
    }

    /// Returns the tokens of a text as the model reads it, with their positions in the text.
    ///
    /// # Errors
    /// If the tokeniser cannot encode the text or does not provide token positions.
    pub fn place(&self, text: &str) -> Result<Vec<PlacedToken>, Error> {
        let tokens = in_task!(&self.0, |own| own.task.place(text))?;
        tokens.ok_or_else(|| {
            Error::Invalid(format!(
                "the tokenizer in `{}` does not give the positions of tokens in a text, so words cannot be told from \
                 subwords: this needs byte-level BPE, WordPiece or another `tokenizer.json`",
                self.folder().display()
            ))
        })
    }

    /// Runs the model on texts, sorted by length, and calls `each` with the index in `texts` and the attention weights.
    ///
    /// - `texts`: none longer than [`TextInput::longest`]
    ///
    /// # Errors
    /// If a text does not fit into memory, a weight is NaN or infinite, or `each` fails.
    pub fn look(
        &self,
        texts: &[&[u32]],
        each: &mut dyn FnMut(usize, TextAttention) -> Result<(), Error>,
    ) -> Result<(), Error> {
        in_task!(&self.0, |own| own.look(texts, each))
    }

    /// Returns the model's answer and the attention patterns of all heads, in a translator also for the translation, with `masked` masked.
    ///
    /// # Errors
    /// If the model lacks one of `masked` or cannot read the text, or a weight is NaN or infinite.
    pub fn read(&self, input: &Input<'_>, masked: &HeadSet) -> Result<ReadText, Error> {
        in_task!(&self.0, |own| own.read_text(input, masked))
    }

    /// Removes heads from the weights. With mean ablation, their mean outputs are folded into biases.
    ///
    /// # Errors
    /// If the model lacks one of the heads, no head would be left, or the model has no bias for the means.
    pub fn without_heads(&self, heads: &HeadSet, ablation: &Ablation) -> Result<Self, Error> {
        Ok(Self(map_task!(&self.0, |own| own.without_heads(heads, ablation)?)))
    }

    /// Scales the heads that are not `masked` so that each module's output is closest to its output in the full model, from the lowest
    /// module upwards: Kwon et al. (2022), Section 4.3. The masked heads remain in the model.
    ///
    /// - `on`: segments on which the distance is minimised
    ///
    /// # Errors
    /// If the model lacks one of the heads, its layers share weights, or the split is invalid.
    pub fn refitted(&self, masked: &HeadSet, on: &Scored) -> Result<Self, Error> {
        Ok(Self(map_task!(&self.0, |own| own.refitted(masked, on)?)))
    }

    /// Returns the Hugging Face folder that the model was loaded from, with its tokeniser.
    pub fn folder(&self) -> &Path {
        in_task!(&self.0, |own| &own.origin.folder)
    }

    /// Writes configuration and weights of the model that [`without_heads`](Self::without_heads) returns.
    ///
    /// # Errors
    /// As for [`without_heads`](Self::without_heads), or if zeros are requested and the model already lacks some heads.
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

    /// Returns the number of parameters of the model.
    pub fn parameters(&self) -> u64 {
        in_task!(&self.0, |own| own.models.exact.weights().parameters())
    }

    /// Prepares a split in batches of `batch_size`, for timing repeated passes by all threads together.
    ///
    /// # Errors
    /// If the split is invalid, or segments are to be continued and the model is not generative.
    pub fn pass(&self, scored: &Scored, batch_size: usize, work: Work) -> Result<Pass<'_>, Error> {
        in_task!(&self.0, |own| own.pass(scored, batch_size, work))
    }

    /// Returns the model's answer to a text with these heads masked: its translation, its class, or a continuation of at most `tokens`
    /// tokens.
    ///
    /// # Errors
    /// If the model lacks one of `masked` or cannot read the text, or the split that replacements come from is invalid.
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

/// A split in batches, with a cache of results that later evaluations reuse.
pub struct Evaluator<'a>(
    OfTask<
        SplitEvaluator<'a, Translation>,
        SplitEvaluator<'a, Classification>,
        SplitEvaluator<'a, LanguageModelling>,
    >,
);

impl Evaluator<'_> {
    /// Returns the number of segments that are scored.
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
