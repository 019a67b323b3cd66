//! The interface that each task implements: its data, how a model uses them, and how they are scored.
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use core_masking::{AttentionMaps, GatedModel, Gates, HeadLayout, Relevance};
use corpus::placed::PlacedToken;
use corpus::splits::{BadRowRule, BadRows};
use corpus::trees::Tree;
use records::Identity;
use serde::de::DeserializeOwned;
use stats::{Metric, Segments};
use training::Machine;

use crate::checkpoint::{CheckpointSpec, Places};
use crate::dynamics::DynamicsSpec;
use crate::error::Error;
use crate::evaluation::{Need, Purpose, Scorer};
use crate::functions::FunctionsSpec;
use crate::models::Models;
use crate::subject_file::SubjectFile;
use crate::text_input::{Input, TextInput, Vocabulary};

/// The entries of a setup file.
pub(crate) trait Spec: Clone + Debug + DeserializeOwned + 'static {
    /// Segments as they are read.
    type Examples;

    fn validate(&self) -> Result<(), String>;

    /// Reads the files that the setup refers to, relative to `_folder`.
    fn complete(&mut self, _folder: &Path) -> Result<(), String> {
        Ok(())
    }

    /// Returns the entries that all tasks share.
    fn outline(&self) -> Outline<'_>;

    /// Returns the training seed; `None` if the model is not trained here.
    fn seed(&mut self) -> Option<&mut u64>;

    /// Returns the heads of a new model; `None` without a `[model]` section.
    fn layout(&self) -> Option<HeadLayout>;

    /// Reads a split; `data` is the folder of data sets.
    fn read(&self, data: &Path, split: &str, bad: &mut BadRows) -> Result<Self::Examples, Error>;

    /// Returns the files of a split; empty if it is generated or does not exist.
    fn files(&self, data: &Path, split: &str) -> Vec<PathBuf>;

    /// Returns the sentences of a split with their trees, or sentences of the same language, if a grammar generates them.
    fn trees(&self, split: &str) -> Option<Vec<Tree>>;

    /// Returns the number of segments in each group; one group by default.
    fn groups(examples: &Self::Examples) -> Vec<usize>;

    fn select(examples: &Self::Examples, places: &[usize]) -> Self::Examples;

    /// Returns a text of each segment, such as the source, or the first text of a pair.
    fn sentences(examples: &Self::Examples) -> Vec<String>;

    /// Returns the SHA-256 of the segments in lower-case hexadecimal, independent of the file layout.
    fn sha256(examples: &Self::Examples) -> String;
}

/// Segments of a task as they are read.
pub(crate) type ExamplesOf<T> = <<T as Task>::Spec as Spec>::Examples;

/// What first-order changes of the losses predict.
pub(crate) enum PredictedBy<T: Task> {
    /// Sums of losses (the first number of a segment); for each loss the index of its segment.
    Losses(Vec<usize>),
    /// Decisions between classes or choices, one per loss, from these scores.
    Decisions(Scores<T>),
    /// Log-odds of the right choice, one per loss.
    LogOdds,
}

/// Returns the scores of the classes or choices of these segments, `[segment][class]`; the maximum is the prediction.
pub(crate) type Scores<T> =
    fn(&<T as Task>::Model, &<T as Task>::Encoded, &[usize]) -> Result<Vec<Vec<f64>>, Error>;

/// A timed pass, which returns its multiply-adds.
pub(crate) type Timed<'a> = Box<dyn Fn(&Gates) -> Result<u64, Error> + 'a>;

/// Sizes of segments that are scored.
pub(crate) struct Sizes {
    /// Number of segments for resampling.
    pub count: usize,
    /// Number of texts that the model reads; a question has several.
    pub texts: usize,
    /// Tokens of each segment.
    pub tokens: Vec<usize>,
    /// Tokens of each segment that determine its memory use while it is scored.
    pub in_memory: Vec<usize>,
    /// Tokens of the text of each segment. For a question, of its longest choice: replacements of its head outputs must cover all choices.
    pub of_text: Vec<usize>,
}

impl Sizes {
    /// Returns the sizes if each segment is one text.
    pub(crate) fn of_texts(tokens: Vec<usize>) -> Self {
        let count = tokens.len();
        Self { count, texts: count, in_memory: tokens.clone(), of_text: tokens.clone(), tokens }
    }
}

/// A task. Shared work such as opening, training and evaluating is implemented once, for all tasks.
///
/// A value contains what a loaded model needs in addition to its weights: tokeniser, beam search, class names.
pub(crate) trait Task: Clone + Debug + Sync + Sized + 'static {
    type Spec: Spec;

    /// The model type, which covers all families for the task.
    type Model: GatedModel;

    /// Segments as token ids, for scoring.
    type Prepared;

    /// Segments as token ids with labels, for losses; segments that the model cannot read are left out.
    type Encoded: Sync;

    /// One evaluation under many head sets.
    type Scorer<'a>: Scorer<Model = Self::Model>;

    /// Files in a model's folder that scores depend on; each is optional.
    const FILES: &'static [&'static str];

    /// Refuses a split that the model could not be scored on, if that is known before loading it.
    fn check(_: &SubjectFile<Self>, _: &Machine, _split: &str, _: &ExamplesOf<Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Loads the model in `places`; `is_given`: true for a checkpoint that is used unchanged, false for a model trained here.
    fn load(
        file: &SubjectFile<Self>,
        machine: &Machine,
        places: Places<'_>,
        is_given: bool,
    ) -> Result<(Self, Models<Self::Model>), Error>;

    fn metric(&self, split: &str) -> Metric;

    /// Adds to an identity how segments are scored: the metric, and settings such as beam search.
    fn describe(&self, identity: &mut Identity, examples: &ExamplesOf<Self>);

    /// Prepares the segments of a split for scoring.
    fn prepare(
        &self,
        model: &Self::Model,
        examples: ExamplesOf<Self>,
        split: &str,
    ) -> Result<Self::Prepared, Error>;

    fn sizes(prepared: &Self::Prepared) -> Sizes;

    fn need<'a>(&'a self, models: &'a Models<Self::Model>, purpose: Purpose<'a>) -> Need<'a>;

    fn scorer<'a>(&'a self, prepared: &'a Self::Prepared) -> Self::Scorer<'a>;

    /// Returns the results of segments in the form that tests need.
    fn segments(
        &self,
        prepared: &Self::Prepared,
        found: Vec<<Self::Scorer<'_> as Scorer>::Segment>,
    ) -> Result<Segments, Error>;

    /// Encodes the segments of a split for computing losses.
    fn encode(
        &self,
        model: &Self::Model,
        examples: &ExamplesOf<Self>,
        split: &str,
    ) -> Result<Self::Encoded, Error>;

    /// Returns the tokens of each encoded segment; texts that must stay in one batch are one segment.
    fn encoded_lengths(encoded: &Self::Encoded) -> Vec<usize>;

    /// Returns the tokens of the text of each encoded segment, from which replacements for other segments are read: the source of a pair,
    /// the first choice of a question.
    fn encoded_text_lengths(encoded: &Self::Encoded) -> Vec<usize> {
        Self::encoded_lengths(encoded)
    }

    /// Returns true if a question has two choices that differ in a token, whose logits can be attributed to heads.
    fn has_contrasts(_: &Self::Encoded) -> bool {
        false
    }

    /// Returns what the losses of the encoded segments predict; `None` if losses do not predict the metric.
    fn predicts(&self, _: &Self::Encoded) -> Option<PredictedBy<Self>> {
        None
    }

    fn examples(
        model: &Self::Model,
        encoded: &Self::Encoded,
        rows: &[usize],
    ) -> Result<<Self::Model as GatedModel>::Examples, Error>;

    /// Returns the relevance of all heads for the prediction on one segment.
    fn relevance(
        _: &Self::Model,
        _segment: &<Self::Model as GatedModel>::Examples,
    ) -> Result<Relevance, Error> {
        Err(Error::no_relevance())
    }

    /// Returns the model's raw outputs for each of these segments.
    fn outputs(
        model: &Self::Model,
        encoded: &Self::Encoded,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Vec<Vec<f64>>, Error>;

    /// Prepares these segments for timing; returns a function that computes them and returns the number of multiply-adds, padding included.
    fn pass<'a>(
        &'a self,
        model: &'a Self::Model,
        prepared: &Self::Prepared,
        rows: &[usize],
    ) -> Result<Timed<'a>, Error>;

    /// Continues the prompts greedily by this many tokens, all cut to the shortest one; returns the number of multiply-adds. Only for
    /// generative models.
    fn continue_by(
        &self,
        _: &Self::Model,
        _: &Self::Prepared,
        _rows: &[usize],
        _tokens: usize,
        _open: &Gates,
    ) -> Result<u64, Error> {
        Err(Error::Invalid("only language models continue texts".to_owned()))
    }

    /// Returns how the heads of the model read a text.
    fn text_input(&self, model: &Self::Model) -> TextInput;

    /// Returns the vocabulary of a language model; `None` for other models.
    fn vocabulary(&self) -> Option<Vocabulary> {
        None
    }

    /// Returns the tokens of a text as the model reads it, with their positions; `None` if the tokeniser does not provide positions.
    fn place(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error>;

    /// Returns the tokens of a text as the model reads it, or the positions of an image; 0 if the tokeniser does not provide positions.
    fn length(&self, text: &str) -> Result<usize, Error> {
        Ok(self.place(text)?.map_or(0, |tokens| tokens.len()))
    }

    /// Runs the model on texts, with gates that record attention weights.
    fn read_texts(model: &Self::Model, texts: &[&[u32]], gates: &Gates) -> Result<(), Error>;

    /// Returns the model's answer to a text, and attention maps without weights. The weights are recorded separately.
    ///
    /// - `gates`: equal gates twice; only the second record attention weights
    fn read(
        &self,
        model: &Self::Model,
        input: &Input<'_>,
        gates: [&Gates; 2],
    ) -> Result<(String, Vec<AttentionMaps>), Error>;

    /// Returns the model's answer to a text: its translation, its class, or a continuation of at most `tokens` tokens.
    fn say(&self, model: &Self::Model, text: &str, tokens: usize, gates: &Gates) -> Result<String, Error>;
}

/// Entries that the setup files of all tasks share.
#[derive(Debug)]
pub(crate) struct Outline<'a> {
    /// A model that exists already, to be used unchanged or fine-tuned.
    pub checkpoint: Option<&'a CheckpointSpec>,
    /// Training epochs; `None` for a checkpoint that is used unchanged.
    pub epochs: Option<usize>,
    /// Number of runs, which differ in their seeds; 1 for a checkpoint that is used unchanged.
    pub replicates: usize,
    /// Training checkpoints to keep; by default one per epoch.
    pub dynamics: Option<&'a DynamicsSpec>,
    /// True if the model supports relevance propagation.
    pub follows_relevance: bool,
    /// Optional settings of `head-functions`.
    pub functions: Option<&'a FunctionsSpec>,
    pub train: &'a str,
    /// Split for choices such as the best epoch.
    pub dev: &'a str,
    /// Split that experiments score by default.
    pub test: &'a str,
    /// Optional split from another domain.
    pub shifted: Option<&'a str>,
    /// Treatment of invalid rows.
    pub bad_rows: BadRowRule,
    /// Split on which importance is measured.
    pub estimate: &'a str,
    pub splits: Vec<String>,
}
