//! Setups that are read but whose model is not loaded yet.
use std::path::{Path, PathBuf};

use core_masking::HeadLayout;
use corpus::trees::Tree;
use training::{Machine, Stay, TrainingCheckpoint};

use crate::dynamics::DynamicsSpec;
use crate::error::Error;
use crate::fine_tune::{FineTuned, FineTuning, InitialWeights, fine_tune};
use crate::locate::locate;
use crate::scored::Scored;
use crate::spec::check_fetched;
use crate::subject::Subject;
use crate::task::{Outline, Spec as _};
use crate::tasks::{self, AnyFile, OfTask, in_task, map_task};
use crate::train::train;

/// A setup whose model is not loaded yet: everything that can be checked before long computations.
#[derive(Debug)]
pub struct Description(pub(crate) AnyFile);

impl Description {
    /// Reads a setup, given as the path of a TOML file or as a name in `experiments/`.
    pub fn read(subject: &Path) -> Result<Self, Error> {
        let (path, name) = locate(subject)?;
        Ok(Self(tasks::read(&name, &path)?))
    }

    /// Returns run `n` of the recipe, counted from 1. Run 1 is the setup as it is; each later run is a setup named `<name>/replicate-<n>`,
    /// whose results are in a folder of that name.
    ///
    /// # Errors
    /// If the model is not trained here, or the file specifies fewer runs.
    pub fn replicate(mut self, n: usize) -> Result<Self, Error> {
        let replicates = self.replicates();
        if n > 1 && n <= replicates {
            in_task!(&mut self.0, |file| file.replicate(n));
        }
        if (1..=replicates).contains(&n) {
            return Ok(self);
        }
        let (file, allowed) = (self.path().display(), words::count(replicates, "replicate"));
        let entry = "set `replicates` in its section [training]";
        Err(Error::Invalid(format!("`{file}` has {allowed}, but no replicate {n}: {entry}")))
    }

    /// Returns the number of runs of the recipe; 1 for a checkpoint that is used unchanged.
    pub fn replicates(&self) -> usize {
        self.outline().replicates
    }

    /// Returns the name of the setup.
    pub fn name(&self) -> &str {
        in_task!(&self.0, |file| &file.name)
    }

    /// Returns the path of the setup's TOML file.
    pub fn path(&self) -> &Path {
        in_task!(&self.0, |file| &file.path)
    }

    /// Returns the layout of the model's heads.
    pub fn layout(&self, machine: &Machine) -> Result<HeadLayout, Error> {
        in_task!(&self.0, |file| file.layout(machine))
    }

    /// Returns the split to score: `wanted`, or the test split by default. `train`, `dev` and `test` may also name the splits in these
    /// roles.
    ///
    /// # Errors
    /// If the split does not exist, its files are missing, damaged or empty, or they contain a label that the model does not know.
    pub fn split(&self, wanted: Option<&str>, machine: &Machine) -> Result<String, Error> {
        let split = wanted.map_or(self.test_split(), |wanted| self.by_role(wanted));
        in_task!(&self.0, |file| file.check_split(machine, split))?;
        Ok(split.to_owned())
    }

    /// Returns `<results>/<name>/<experiment>.csv`. The file name also contains the ablation, the split unless it is the test split, and
    /// the limit.
    pub fn result_path(&self, results: &Path, experiment: &str, scored: &Scored) -> PathBuf {
        let (ablation, limit) = (scored.ablation.suffix(), scored.limit_suffix());
        let split =
            if self.is_test_split(&scored.split) { String::new() } else { format!("-{}", scored.split) };
        results.join(self.name()).join(format!("{experiment}{ablation}{split}{limit}.csv"))
    }

    /// Returns true for the subject's test split.
    pub fn is_test_split(&self, split: &str) -> bool {
        split == self.test_split()
    }

    /// Returns the split that is scored by default.
    pub fn test_split(&self) -> &str {
        self.outline().test
    }

    /// Returns the training split.
    pub fn train_split(&self) -> &str {
        self.outline().train
    }

    /// Returns the split for choices such as the best epoch.
    pub fn dev_split(&self) -> &str {
        self.outline().dev
    }

    /// Returns the number of training epochs; `None` for a checkpoint that is used unchanged.
    pub fn epochs(&self) -> Option<usize> {
        self.outline().epochs
    }

    /// Refuses a setup whose model is not trained from scratch.
    pub fn check_from_nothing(&self) -> Result<(), Error> {
        if self.outline().checkpoint.is_none() {
            return Ok(());
        }
        let why = "training from scratch with fewer heads needs a setup with [model]";
        let name = self.name();
        Err(Error::Invalid(format!("the model of setup `{name}` is fine-tuned from a checkpoint: {why}")))
    }

    /// Returns the split on which importance is measured by default.
    pub fn estimate_split(&self) -> &str {
        self.outline().estimate
    }

    /// Returns the split from another domain; `None` if the setup has none.
    pub fn shifted_split(&self) -> Option<&str> {
        self.outline().shifted
    }

    /// Refuses a model that relevance propagation does not support.
    pub fn check_relevance(&self) -> Result<(), Error> {
        if self.outline().follows_relevance { Ok(()) } else { Err(Error::no_relevance()) }
    }

    /// Refuses a second text if the model reads only one.
    pub fn check_second_text(&self) -> Result<(), Error> {
        if self.is_language_model() { Err(Error::one_text()) } else { Ok(()) }
    }

    /// Refuses a setup whose model is not a language model.
    pub fn check_language_model(&self) -> Result<(), Error> {
        let fault = || format!("`{}` is not a language model, which this measurement needs", self.name());
        if self.is_language_model() { Ok(()) } else { Err(Error::Invalid(fault())) }
    }

    /// Returns the CoNLL-U files with gold trees that the setup names.
    ///
    /// # Errors
    /// If a file that can be fetched is missing.
    pub fn tree_files(&self, machine: &Machine) -> Result<Vec<PathBuf>, Error> {
        let Some(functions) = self.outline().functions else { return Ok(Vec::new()) };
        let files: Vec<PathBuf> =
            functions.trees.iter().flatten().map(|file| machine.data.join(file)).collect();
        check_fetched(&files, functions.fetch.as_ref())?;
        Ok(files)
    }

    /// Returns how many of the most frequent tokens do not count as rare, if the setup sets it.
    pub fn frequent_tokens(&self) -> Option<usize> {
        self.outline().functions.and_then(|functions| functions.frequent)
    }

    /// Returns the sentences of a split with their trees, if the demo grammar generates the data.
    pub fn trees(&self, split: &str) -> Option<Vec<Tree>> {
        in_task!(&self.0, |file| file.spec.trees(split))
    }

    /// Returns a text of each segment of a split: the text to translate or continue, the first text of a pair, or the right choice of a
    /// question.
    ///
    /// # Errors
    /// If the split does not exist, or its files are missing, damaged or empty.
    pub fn sentences(&self, split: &str, machine: &Machine) -> Result<Vec<String>, Error> {
        in_task!(&self.0, |file| file.sentences(machine, split))
    }

    /// Returns the split with this name, or else the split in this role.
    fn by_role<'a>(&'a self, wanted: &'a str) -> &'a str {
        let outline = self.outline();
        match wanted {
            _ if outline.splits.iter().any(|name| name == wanted) => wanted,
            "train" => outline.train,
            "dev" => outline.dev,
            "test" => outline.test,
            _ => wanted,
        }
    }

    fn outline(&self) -> Outline<'_> {
        in_task!(&self.0, |file| file.spec.outline())
    }

    fn is_language_model(&self) -> bool {
        matches!(self.0, OfTask::Language(_))
    }

    /// Trains the model unless that was done already, and returns its folder.
    ///
    /// - `again`: trains a new model, which replaces the old one when it is complete
    ///
    /// # Errors
    /// If the existing model was trained with other settings or data, or the model is a checkpoint that is used unchanged.
    pub fn train(&self, machine: &Machine, results: &Path, again: bool) -> Result<PathBuf, Error> {
        in_task!(&self.0, |file| train(file, machine, results, again))
    }

    /// Trains the [trained](Self::train) model further under gates, unless that was done already. An interrupted run is continued.
    ///
    /// # Errors
    /// If the model does not exist, was not trained here, or should start from new weights but was not trained from scratch; or if the loss
    /// diverges.
    pub fn fine_tune(&self, machine: &Machine, tuning: &FineTuning) -> Result<FineTuned, Error> {
        if tuning.initial == InitialWeights::New {
            self.check_from_nothing()?;
        }
        in_task!(&self.0, |file| fine_tune(file, machine, tuning))
    }

    /// Loads the model, training it on first use.
    ///
    /// # Errors
    /// As for [`train`](Self::train), or if the model's folder is invalid.
    pub fn open(&self, machine: &Machine, results: &Path) -> Result<Subject, Error> {
        Ok(Subject(map_task!(&self.0, |file| file.open(machine, results)?)))
    }

    /// Returns training checkpoints in training order: revisions of a checkpoint that is used unchanged, or, for a model that is trained
    /// here on first use, the checkpoints that the setup names (by default one per epoch).
    ///
    /// # Errors
    /// As for [`train`](Self::train), or if a checkpoint does not exist.
    pub fn checkpoints(&self, machine: &Machine, results: &Path) -> Result<Vec<TrainingCheckpoint>, Error> {
        let outline = self.outline();
        if let Some(checkpoint) = outline.checkpoint.filter(|checkpoint| checkpoint.has_revisions()) {
            return checkpoint.revisions(machine);
        }
        let remedy = "name its revisions or folders: checkpoint.revisions = [\"step1000\", …]";
        let no_epochs = || Error::Invalid(format!("{}: {remedy}", Error::not_trained(self.name())));
        let epochs = outline.epochs.ok_or_else(no_epochs)?;
        self.train(machine, results, false)?;
        let every: Vec<usize> = (1..=epochs).collect();
        let stay = outline.dynamics.map_or(Stay { epochs: &every, steps: &[] }, DynamicsSpec::stay);
        Ok(training::checkpoints(&machine.model_folder(self.name()), self.path(), stay)?)
    }

    /// Loads the model from one of its training checkpoints.
    pub fn open_at(&self, checkpoint: &TrainingCheckpoint, machine: &Machine) -> Result<Subject, Error> {
        Ok(Subject(map_task!(&self.0, |file| file.open_at(machine, &checkpoint.folder)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> Description {
        let file = format!("{}/../../experiments/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        Description::read(Path::new(&file)).unwrap()
    }

    #[test]
    fn a_split_can_be_named_by_the_part_it_plays() {
        let multi30k = shipped("multi30k-en-fr");
        let found = ["train", "dev", "test", "ntrex", "newstest"].map(|name| multi30k.by_role(name));
        assert_eq!(found, ["train", "val", "test_2016_flickr", "ntrex", "newstest"]);
        assert_eq!(shipped("minilm-mnli").by_role("test"), "dev_matched");
    }
}
