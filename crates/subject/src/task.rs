//! The one interface of tasks: what a model does with its data, and how that is scored.
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use core_masking::importance::Measured;
use core_masking::{Gates, HeadLayout, Measure, Relevance, Rule};
use corpus::placed::PlacedToken;
use corpus::trees::Tree;
use records::Identity;
use serde::de::DeserializeOwned;
use stats::{Metric, Segments};
use training::Machine;

use crate::checkpoint::{CheckpointSpec, Places};
use crate::dynamics::DynamicsSpec;
use crate::error::Error;
use crate::evaluation::{Load, Plan, Scorer};
use crate::functions::FunctionsSpec;
use crate::model::Model;
use crate::reading::Reading;
use crate::subject::Scored;

/// A task. What is the same for all of them, such as opening, training and evaluating, is written once, over this trait.
///
/// A value is what a loaded model needs besides its weights: a tokeniser, a search, names of classes.
pub(crate) trait Task: Clone + Debug + Sync + Sized + 'static {
    /// The entries of the TOML file.
    type Spec: Clone + Debug + DeserializeOwned + 'static;

    /// The model, of any family that can do the task.
    type Model: Model;

    /// Segments as they are read.
    type Examples;

    /// Segments as token ids, to be scored.
    type Prepared;

    /// Segments as token ids, with what a loss is computed from; those that the model cannot take are left out.
    type Encoded: Sync;

    /// Segments as tensors, to be timed.
    type Batch;

    /// One evaluation under many head sets.
    type Scorer<'a>: Scorer<Model = Self::Model>;

    /// Files of a model's folder that scores depend on, as far as they are there.
    const FILES: &'static [&'static str];

    /// Refuses values that make no sense: the fault, in words.
    fn validate(spec: &Self::Spec) -> Result<(), String>;

    /// What a description has in common with those of other tasks.
    fn outline(spec: &Self::Spec) -> Outline<'_>;

    /// The heads of a model that is made as `[model]` says, if there is that section.
    fn layout(spec: &Self::Spec) -> Option<HeadLayout>;

    /// Reads one of the splits; `data` is the folder of data sets.
    fn read(spec: &Self::Spec, data: &Path, split: &str) -> Result<Self::Examples, Error>;

    /// The files of a split; none if it is made up, or there is no such split.
    fn files(spec: &Self::Spec, data: &Path, split: &str) -> Vec<PathBuf>;

    /// Refuses a split that the model could not be scored on, as far as that is known without it.
    fn check(_: &Described<Self>, _: &Machine, _split: &str, _: &Self::Examples) -> Result<(), Error> {
        Ok(())
    }

    /// Number of segments.
    fn count(examples: &Self::Examples) -> usize;

    /// How many segments each group has, in their order; all are one group unless the task knows of others.
    fn groups(examples: &Self::Examples) -> Vec<usize> {
        vec![Self::count(examples)]
    }

    /// The segments at these places.
    fn select(examples: &Self::Examples, places: &[usize]) -> Self::Examples;

    /// A text of each segment, such as what is translated; of a pair the first.
    fn sentences(examples: &Self::Examples) -> Vec<String>;

    /// The sentences of a split with their trees, if a grammar makes them, or sentences of its language.
    fn trees(spec: &Self::Spec, split: &str) -> Option<Vec<Tree>>;

    /// SHA-256 of the segments, in lower-case hexadecimal, however the files are laid out.
    fn sha256(examples: &Self::Examples) -> String;

    /// Loads what is in `places`; `is_given`: a checkpoint that is taken as it is, not a model that was trained here.
    fn load(
        described: &Described<Self>,
        machine: &Machine,
        places: Places<'_>,
        is_given: bool,
    ) -> Result<(Self, Self::Model), Error>;

    /// How a split is scored.
    fn metric(&self, split: &str) -> Metric;

    /// Adds to an identity how segments are scored: the metric, and settings such as those of a search.
    fn describe(&self, identity: &mut Identity, examples: &Self::Examples);

    /// The segments of a split, to be scored.
    fn prepare(
        &self,
        model: &Self::Model,
        examples: Self::Examples,
        split: &str,
    ) -> Result<Self::Prepared, Error>;

    /// Tokens of each segment.
    fn lengths(prepared: &Self::Prepared) -> Vec<usize>;

    /// Number of texts that the model reads, several of a segment where that is a question.
    fn texts(prepared: &Self::Prepared) -> usize {
        Self::lengths(prepared).len()
    }

    /// What segments take of the memory while they are scored.
    fn load_of<'a>(&'a self, model: &'a Self::Model, prepared: &Self::Prepared) -> Load<'a>;

    /// What the longest segment that the model takes needs while it is scored, and its tokens, for a model that is yet to be
    /// trained, of the sizes that `[model]` says or that its checkpoint has.
    ///
    /// # Errors
    /// If the checkpoint is missing or at fault.
    fn load_ahead(
        described: &Described<Self>,
        machine: &Machine,
    ) -> Result<Option<(Load<'static>, usize)>, Error>;

    /// Begins an evaluation.
    fn scorer<'a>(
        &'a self,
        model: &Self::Model,
        plan: &Plan,
        prepared: &'a Self::Prepared,
        scored: &Scored,
    ) -> Result<Self::Scorer<'a>, Error>;

    /// What tests need of the segments.
    ///
    /// # Errors
    /// If what was found is no statistic.
    fn segments(
        &self,
        prepared: &Self::Prepared,
        found: Vec<<Self::Scorer<'_> as Scorer>::Segment>,
    ) -> Result<Segments, Error>;

    /// The segments of a split, to compute losses of.
    fn encode(
        &self,
        model: &Self::Model,
        examples: &Self::Examples,
        split: &str,
    ) -> Result<Self::Encoded, Error>;

    /// What segments take of the memory while heads are measured; those that stay together are one.
    fn measuring_load<'a>(
        model: &'a Self::Model,
        encoded: &Self::Encoded,
        measures: &BTreeSet<Measure>,
    ) -> Load<'a>;

    /// Measures all heads on these segments.
    fn measure(
        model: &Self::Model,
        encoded: &Self::Encoded,
        rows: &[usize],
        gates: &Gates,
        measures: &BTreeSet<Measure>,
    ) -> Result<Measured, Error>;

    /// The same model in double precision, if relevance can be followed through it.
    fn exact(_: &Self::Model) -> Result<Self::Model, Error> {
        Err(Error::NoRelevance)
    }

    /// What segments take of the memory while relevance is followed through one after another.
    fn relevance_load<'a>(_: &'a Self::Model, _: &Self::Encoded) -> Result<Load<'a>, Error> {
        Err(Error::NoRelevance)
    }

    /// The relevance of all heads for what the model says of a segment.
    fn relevance(_: &Self::Model, _: &Self::Encoded, _row: usize, _: Rule) -> Result<Relevance, Error> {
        Err(Error::NoRelevance)
    }

    /// What the model says of each of these segments before anything is decided.
    fn outputs(
        model: &Self::Model,
        encoded: &Self::Encoded,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Vec<Vec<f64>>, Error>;

    /// These segments, to be timed.
    fn batch(model: &Self::Model, prepared: &Self::Prepared, rows: &[usize]) -> Result<Self::Batch, Error>;

    /// Computes a batch; returns the number of multiply-adds that this takes, padding included.
    fn pass(&self, model: &Self::Model, batch: &Self::Batch, open: &Gates) -> Result<u64, Error>;

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
        Err(Error::NoContinuation)
    }

    /// How the heads of the model read a text.
    fn reading(&self, model: &Self::Model) -> Reading;

    /// The tokens of a text as the model reads it, with their places; `None` if the tokeniser does not know these.
    fn place(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error>;

    /// What texts of this many tokens take of the memory while they are read and attention weights are written down.
    fn reading_load<'a>(model: &'a Self::Model, lengths: Vec<usize>) -> Load<'a>;

    /// Reads texts under gates that write attention weights down.
    fn read_texts(model: &Self::Model, texts: &[&[u32]], gates: &Gates) -> Result<(), Error>;

    /// What the model makes of a text: its translation, its class, or the text that follows, of at most this many tokens.
    fn say(&self, model: &Self::Model, text: &str, tokens: usize, gates: &Gates) -> Result<String, Error>;
}

/// What descriptions of all tasks say.
#[derive(Debug)]
pub(crate) struct Outline<'a> {
    /// A model that is there already, to be used or to be fine-tuned.
    pub checkpoint: Option<&'a CheckpointSpec>,
    /// Passes over the training split; none if a checkpoint is taken as it is.
    pub epochs: Option<usize>,
    /// Checkpoints of the training that stay; those of all epochs if absent.
    pub dynamics: Option<&'a DynamicsSpec>,
    /// Whether relevance can be followed through its models.
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
    /// The split that importance is measured on.
    pub estimate: &'a str,
    /// The names of all splits.
    pub splits: Vec<String>,
}

/// A subject of one task, as its file describes it.
#[derive(Debug, Clone)]
pub(crate) struct Described<T: Task> {
    /// What it is called.
    pub name: String,
    /// The file that describes it.
    pub path: PathBuf,
    /// What that file says.
    pub spec: T::Spec,
}

impl<T: Task> Described<T> {
    /// Reads a split.
    ///
    /// # Errors
    /// If there is none of that name, and the message lists those that there are; or its files are missing, torn or empty.
    pub(crate) fn read(&self, machine: &Machine, split: &str) -> Result<T::Examples, Error> {
        let known = T::outline(&self.spec).splits;
        if !known.iter().any(|name| name == split) {
            return Err(Error::NoSuchSplit { split: split.to_owned(), known });
        }
        let examples = T::read(&self.spec, &machine.data, split)?;
        if T::count(&examples) == 0 {
            return Err(Error::EmptySplit { split: split.to_owned() });
        }
        Ok(examples)
    }
}
