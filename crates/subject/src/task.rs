//! The one interface of tasks: their data, what a model does with it, and how that is scored.
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
use crate::reading::{Input, Reading, Vocabulary};
use crate::subject_file::SubjectFile;

/// The entries of a subject's TOML file.
pub(crate) trait Spec: Clone + Debug + DeserializeOwned + 'static {
    /// Segments as they are read.
    type Examples;

    /// Refuses values that make no sense: the fault, in words.
    fn validate(&self) -> Result<(), String>;

    /// Reads the files that it names, relative to its own folder, for what they say: the fault, in words.
    fn complete(&mut self, _folder: &Path) -> Result<(), String> {
        Ok(())
    }

    /// The entries that the files of all tasks have.
    fn outline(&self) -> Outline<'_>;

    /// Seed of the training, if there is one.
    fn seed(&mut self) -> Option<&mut u64>;

    /// The heads of a model that is made as `[model]` says, if there is that section.
    fn layout(&self) -> Option<HeadLayout>;

    /// Reads one of the splits; `data` is the folder of data sets.
    fn read(&self, data: &Path, split: &str, bad: &mut BadRows) -> Result<Self::Examples, Error>;

    /// The files of a split; none if it is made up, or there is no such split.
    fn files(&self, data: &Path, split: &str) -> Vec<PathBuf>;

    /// The sentences of a split with their trees, if a grammar makes them, or sentences of its language.
    fn trees(&self, split: &str) -> Option<Vec<Tree>>;

    /// Number of segments of each group, in their order; all are one group unless the task knows of others.
    fn groups(examples: &Self::Examples) -> Vec<usize>;

    /// The segments at these places.
    fn select(examples: &Self::Examples, places: &[usize]) -> Self::Examples;

    /// A text of each segment, such as what is translated; of a pair the first.
    fn sentences(examples: &Self::Examples) -> Vec<String>;

    /// SHA-256 of the segments, in lower-case hexadecimal, however the files are laid out.
    fn sha256(examples: &Self::Examples) -> String;
}

/// Segments of a task as they are read.
pub(crate) type ExamplesOf<T> = <<T as Task>::Spec as Spec>::Examples;

/// What a first-order change of the losses predicts.
pub(crate) enum PredictedBy<T: Task> {
    /// Sums of losses, which are the first numbers of segments: the segment of each loss.
    Losses(Vec<usize>),
    /// Decisions between classes or choices, one for each loss, by these scores.
    Decisions(Scores<T>),
    /// Log-odds of the right choice, one for each loss.
    LogOdds,
}

/// The scores of the classes or choices of each of these segments, the best of which is the decision: `[segment][class]`.
pub(crate) type Scores<T> =
    fn(&<T as Task>::Model, &<T as Task>::Encoded, &[usize]) -> Result<Vec<Vec<f64>>, Error>;

/// Work that is timed.
pub(crate) type Timed<'a> = Box<dyn Fn(&Gates) -> Result<u64, Error> + 'a>;

/// Sizes of segments that are scored.
pub(crate) struct Sizes {
    /// Number of segments that are resampled.
    pub count: usize,
    /// Number of texts that the model reads, several of a segment where that is a question.
    pub texts: usize,
    /// Tokens of each segment.
    pub tokens: Vec<usize>,
    /// Tokens that memory is needed for while a segment is scored, of each.
    pub in_memory: Vec<usize>,
    /// Tokens of the text of each segment, of a question those of its longest choice.
    pub of_text: Vec<usize>,
}

impl Sizes {
    /// Where each segment is one text.
    pub(crate) fn of_texts(tokens: Vec<usize>) -> Self {
        let count = tokens.len();
        Self { count, texts: count, in_memory: tokens.clone(), of_text: tokens.clone(), tokens }
    }
}

/// A task. What is the same for all of them, such as opening, training and evaluating, is written once, over this trait.
///
/// A value is what a loaded model needs besides its weights: a tokeniser, a search, names of classes.
pub(crate) trait Task: Clone + Debug + Sync + Sized + 'static {
    /// The entries of the TOML file.
    type Spec: Spec;

    /// The model, of any family that can do the task.
    type Model: GatedModel;

    /// Segments as token ids, to be scored.
    type Prepared;

    /// Segments as token ids, with what a loss is computed from; those that the model cannot take are left out.
    type Encoded: Sync;

    /// One evaluation under many head sets.
    type Scorer<'a>: Scorer<Model = Self::Model>;

    /// Files of a model's folder that scores depend on, as far as they are there.
    const FILES: &'static [&'static str];

    /// Refuses a split that the model could not be scored on, as far as that is known without it.
    fn check(_: &SubjectFile<Self>, _: &Machine, _split: &str, _: &ExamplesOf<Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Loads the model in `places`; `is_given`: a checkpoint that is taken as it is, not a model that was trained here.
    fn load(
        file: &SubjectFile<Self>,
        machine: &Machine,
        places: Places<'_>,
        is_given: bool,
    ) -> Result<(Self, Models<Self::Model>), Error>;

    /// The metric of a split.
    fn metric(&self, split: &str) -> Metric;

    /// Adds to an identity how segments are scored: the metric, and settings such as those of a search.
    fn describe(&self, identity: &mut Identity, examples: &ExamplesOf<Self>);

    /// The segments of a split, to be scored.
    fn prepare(
        &self,
        model: &Self::Model,
        examples: ExamplesOf<Self>,
        split: &str,
    ) -> Result<Self::Prepared, Error>;

    /// Sizes of the segments.
    fn sizes(prepared: &Self::Prepared) -> Sizes;

    /// Memory that the model needs.
    fn need<'a>(&'a self, models: &'a Models<Self::Model>, purpose: Purpose<'a>) -> Need<'a>;

    /// Begins an evaluation.
    fn scorer<'a>(&'a self, prepared: &'a Self::Prepared) -> Self::Scorer<'a>;

    /// The results of segments as tests need them.
    fn segments(
        &self,
        prepared: &Self::Prepared,
        found: Vec<<Self::Scorer<'_> as Scorer>::Segment>,
    ) -> Result<Segments, Error>;

    /// The segments of a split, to compute losses of.
    fn encode(
        &self,
        model: &Self::Model,
        examples: &ExamplesOf<Self>,
        split: &str,
    ) -> Result<Self::Encoded, Error>;

    /// Tokens of each encoded segment; those that stay together are one.
    fn encoded_lengths(encoded: &Self::Encoded) -> Vec<usize>;

    /// Tokens of the text of each encoded segment: of a pair those of the source, of a question those of its first choice.
    fn encoded_text_lengths(encoded: &Self::Encoded) -> Vec<usize> {
        Self::encoded_lengths(encoded)
    }

    /// Returns true if there are choices of two that differ in a token, whose logits can be attributed to heads.
    fn has_contrasts(_: &Self::Encoded) -> bool {
        false
    }

    /// What the losses of the encoded segments predict; `None` for metrics that losses do not predict.
    fn predicts(&self, _: &Self::Encoded) -> Option<PredictedBy<Self>> {
        None
    }

    /// These segments as the model takes them.
    fn examples(
        model: &Self::Model,
        encoded: &Self::Encoded,
        rows: &[usize],
    ) -> Result<<Self::Model as GatedModel>::Examples, Error>;

    /// The relevance of all heads for the model's decision on one segment, if the task's models can be followed.
    fn relevance(
        _: &Self::Model,
        _segment: &<Self::Model as GatedModel>::Examples,
    ) -> Result<Relevance, Error> {
        Err(Error::no_relevance())
    }

    /// The model's raw outputs for each of these segments, before anything is decided.
    fn outputs(
        model: &Self::Model,
        encoded: &Self::Encoded,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Vec<Vec<f64>>, Error>;

    /// These segments as tensors, to be timed: a function that computes them and returns the number of multiply-adds that this takes,
    /// padding included.
    fn pass<'a>(
        &'a self,
        model: &'a Self::Model,
        prepared: &Self::Prepared,
        rows: &[usize],
    ) -> Result<Timed<'a>, Error>;

    /// Continues these segments greedily by this many tokens, as far as the shortest of them goes; returns the number of
    /// multiply-adds. For tasks whose models continue texts.
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

    /// The way in which the heads of the model read a text.
    fn reading(&self, model: &Self::Model) -> Reading;

    /// The tokens of a language model; `None` of other models.
    fn vocabulary(&self) -> Option<Vocabulary> {
        None
    }

    /// The tokens of a text as the model reads it, with their places; `None` if the tokeniser does not know these.
    fn place(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error>;

    /// Tokens of a text as the model reads it, or positions of an image; 0 if the tokeniser does not know the places of tokens.
    fn length(&self, text: &str) -> Result<usize, Error> {
        Ok(self.place(text)?.map_or(0, |tokens| tokens.len()))
    }

    /// Reads texts under gates that write attention weights down.
    fn read_texts(model: &Self::Model, texts: &[&[u32]], gates: &Gates) -> Result<(), Error>;

    /// Reads one text: the model's answer, and maps that have all but their weights, which the second gates write down.
    ///
    /// - `gates`: the same twice; the second write attention weights down
    fn read(
        &self,
        model: &Self::Model,
        input: &Input<'_>,
        gates: [&Gates; 2],
    ) -> Result<(String, Vec<AttentionMaps>), Error>;

    /// The model's answer to a text: its translation, its class, or the text that follows, of at most this many tokens.
    fn say(&self, model: &Self::Model, text: &str, tokens: usize, gates: &Gates) -> Result<String, Error>;
}

/// Entries that the files of all tasks have.
#[derive(Debug)]
pub(crate) struct Outline<'a> {
    /// A model that is there already, to be used or to be fine-tuned.
    pub checkpoint: Option<&'a CheckpointSpec>,
    /// Passes over the training split; none if a checkpoint is taken as it is.
    pub epochs: Option<usize>,
    /// Number of models that are trained, which differ in their seeds; 1 of a checkpoint that is taken as it is.
    pub replicates: usize,
    /// Checkpoints of the training that stay; those of all epochs if absent.
    pub dynamics: Option<&'a DynamicsSpec>,
    /// True if relevance can be followed through its models.
    pub follows_relevance: bool,
    /// Sentences with trees, if there are any.
    pub functions: Option<&'a FunctionsSpec>,
    /// The split that the model is trained on.
    pub train: &'a str,
    /// The split that choices are made on, such as that of the best epoch.
    pub dev: &'a str,
    /// The split that experiments score unless told otherwise.
    pub test: &'a str,
    /// The split of another domain, if there is one.
    pub shifted: Option<&'a str>,
    /// Treatment of rows at fault.
    pub bad_rows: BadRowRule,
    /// The split that importance is measured on.
    pub estimate: &'a str,
    /// The names of all splits.
    pub splits: Vec<String>,
}
