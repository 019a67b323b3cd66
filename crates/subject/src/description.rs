//! Subjects that are read but not yet opened.
use std::path::{Path, PathBuf};

use core_masking::HeadLayout;
use corpus::trees::Tree;
use training::{Machine, Stay, TrainingCheckpoint};

use crate::dynamics::DynamicsSpec;
use crate::error::Error;
use crate::locate::locate;
use crate::scored::Scored;
use crate::spec::check_fetched;
use crate::subject::Subject;
use crate::task::{Outline, Spec as _};
use crate::tasks::{self, AnyFile, OfTask, in_task, map_task};
use crate::train::train;
use crate::tune::{FineTuned, FineTuning, InitialWeights, fine_tune};

/// A subject that is read but not yet opened: what can be checked before any long work.
#[derive(Debug)]
pub struct Description(pub(crate) AnyFile);

impl Description {
    /// Reads a subject's TOML file, given as a path or as a name in `experiments/`.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be understood.
    pub fn read(subject: &Path) -> Result<Self, Error> {
        let (path, name) = locate(subject)?;
        Ok(Self(tasks::read(&name, &path)?))
    }

    /// The n-th of the models that training makes of this subject, from 1: the first is the subject itself, and each other a subject
    /// of its own, `<name>/replicate-<n>`, whose results lie in a folder of that name.
    ///
    /// # Errors
    /// If the model is not trained here, or the file asks for fewer replicates.
    pub fn replicate(mut self, n: usize) -> Result<Self, Error> {
        let replicates = self.replicates();
        if n > 1 && n <= replicates {
            in_task!(&mut self.0, |file| file.replicate(n));
        }
        if (1..=replicates).contains(&n) {
            return Ok(self);
        }
        let (file, allowed) = (self.path().display(), words::count(replicates, "replicate"));
        let entry = "`replicates` of its section [training] says how many there are";
        Err(Error::Invalid(format!("`{file}` has {allowed}, and no replicate {n}: {entry}")))
    }

    /// Number of models that training makes of this subject; 1 of a checkpoint that is taken as it is.
    pub fn replicates(&self) -> usize {
        self.outline().replicates
    }

    /// Name of the subject.
    pub fn name(&self) -> &str {
        in_task!(&self.0, |file| &file.name)
    }

    /// The file that describes it.
    pub fn path(&self) -> &Path {
        in_task!(&self.0, |file| &file.path)
    }

    /// The heads that its model has.
    pub fn layout(&self, machine: &Machine) -> Result<HeadLayout, Error> {
        in_task!(&self.0, |file| file.layout(machine))
    }

    /// The split to score: `wanted`, or the subject's test split. `train`, `dev` and `test` are also what the subject
    /// uses as such, if it has no splits of these names.
    ///
    /// # Errors
    /// If it cannot be scored: there is none of that name, and the message lists those that there are; or its files are
    /// missing, torn or empty, or hold a label that the model does not know.
    pub fn split(&self, wanted: Option<&str>, machine: &Machine) -> Result<String, Error> {
        let split = wanted.map_or(self.test_split(), |wanted| self.by_role(wanted));
        in_task!(&self.0, |file| file.check_split(machine, split))?;
        Ok(split.to_owned())
    }

    /// `<results>/<subject>/<experiment>.csv`, with the split in the name unless it is the subject's test split, and the
    /// limit if there is one.
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

    /// The split that is scored unless something else is asked for.
    pub fn test_split(&self) -> &str {
        self.outline().test
    }

    /// The split that the model was trained on, if this subject says how.
    pub fn train_split(&self) -> &str {
        self.outline().train
    }

    /// The split that choices are made on, such as that of the best epoch.
    pub fn dev_split(&self) -> &str {
        self.outline().dev
    }

    /// Passes over the training split that its model is trained for; none if it is a checkpoint that is taken as it is.
    pub fn epochs(&self) -> Option<usize> {
        self.outline().epochs
    }

    /// Refuses a subject whose model is not trained from scratch.
    pub fn check_from_nothing(&self) -> Result<(), Error> {
        if self.outline().checkpoint.is_none() {
            return Ok(());
        }
        let why = "its heads can be trained from scratch only where the whole model is";
        let name = self.name();
        Err(Error::Invalid(format!("subject `{name}` is fine-tuned on top of a checkpoint: {why}")))
    }

    /// The split that importance is measured on unless another is asked for.
    pub fn estimate_split(&self) -> &str {
        self.outline().estimate
    }

    /// The split of another domain, if there is one.
    pub fn shifted_split(&self) -> Option<&str> {
        self.outline().shifted
    }

    /// Refuses a subject through whose model relevance cannot be followed, whatever it is trained to.
    pub fn check_relevance(&self) -> Result<(), Error> {
        if self.outline().follows_relevance { Ok(()) } else { Err(Error::no_relevance()) }
    }

    /// Refuses a second text where the model reads one.
    pub fn check_second_text(&self) -> Result<(), Error> {
        if self.is_language_model() { Err(Error::one_text()) } else { Ok(()) }
    }

    /// Refuses a subject that is no language model.
    pub fn check_language_model(&self) -> Result<(), Error> {
        let fault = || {
            format!("`{}` is no language model, and this is measured of language models alone", self.name())
        };
        if self.is_language_model() { Ok(()) } else { Err(Error::Invalid(fault())) }
    }

    /// Files with gold trees that the subject's file names, in CoNLL-U.
    ///
    /// # Errors
    /// If one is missing that can be fetched.
    pub fn tree_files(&self, machine: &Machine) -> Result<Vec<PathBuf>, Error> {
        let Some(functions) = self.outline().functions else { return Ok(Vec::new()) };
        let files: Vec<PathBuf> =
            functions.trees.iter().flatten().map(|file| machine.data.join(file)).collect();
        check_fetched(&files, functions.fetch.as_ref())?;
        Ok(files)
    }

    /// Number of the most frequent tokens that are not rare, if the subject's file gives it.
    pub fn frequent_tokens(&self) -> Option<usize> {
        self.outline().functions.and_then(|functions| functions.frequent)
    }

    /// The sentences of a split with their trees, if the demo grammar makes the subject's data.
    pub fn trees(&self, split: &str) -> Option<Vec<Tree>> {
        in_task!(&self.0, |file| file.spec.trees(split))
    }

    /// A text of each segment of a split: what is translated or continued, of a pair the first, of a question the right
    /// choice.
    ///
    /// # Errors
    /// If there is no such split, and the message lists those that there are; or its files are missing, torn or empty.
    pub fn sentences(&self, split: &str, machine: &Machine) -> Result<Vec<String>, Error> {
        in_task!(&self.0, |file| file.sentences(machine, split))
    }

    /// The split that is called so, or that plays this part.
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

    /// Trains the model unless it is there, and returns its folder.
    ///
    /// With `again` the model is trained anew; what is there is used until the new one is complete.
    ///
    /// # Errors
    /// If data is missing or at fault, the model there was trained from other settings or data, training fails, or the model is
    /// a checkpoint that is taken as it is.
    pub fn train(&self, machine: &Machine, results: &Path, again: bool) -> Result<PathBuf, Error> {
        in_task!(&self.0, |file| train(file, machine, results, again))
    }

    /// Trains the [trained](Self::train) model on under gates, unless that was done already; a run that was killed goes on.
    ///
    /// # Errors
    /// If the model is not there, not trained here, or not from scratch where it should begin so; data is missing or at fault, a
    /// file cannot be written, or the loss is no longer a number.
    pub fn fine_tune(&self, machine: &Machine, tuning: &FineTuning) -> Result<FineTuned, Error> {
        if tuning.initial == InitialWeights::New {
            self.check_from_nothing()?;
        }
        in_task!(&self.0, |file| fine_tune(file, machine, tuning))
    }

    /// Makes the subject ready, training its model on first use.
    ///
    /// # Errors
    /// As for [`train`](Self::train), or if the model's folder is at fault.
    pub fn open(&self, machine: &Machine, results: &Path) -> Result<Subject, Error> {
        Ok(Subject(map_task!(&self.0, |file| file.open(machine, results)?)))
    }

    /// Checkpoints of the training, in its order: revisions of a model that is taken as it is; or, of one that is trained here on
    /// first use, those that the subject's file names, or else those of all epochs.
    ///
    /// # Errors
    /// As for [`train`](Self::train), or if a checkpoint is not there.
    pub fn checkpoints(&self, machine: &Machine, results: &Path) -> Result<Vec<TrainingCheckpoint>, Error> {
        let outline = self.outline();
        if let Some(checkpoint) = outline.checkpoint.filter(|checkpoint| checkpoint.has_revisions()) {
            return checkpoint.revisions(machine);
        }
        let remedy = "name revisions or folders of it: checkpoint.revisions = [\"step1000\", …]";
        let no_epochs = || Error::Invalid(format!("{}: {remedy}", Error::not_trained(self.name())));
        let epochs = outline.epochs.ok_or_else(no_epochs)?;
        self.train(machine, results, false)?;
        let every: Vec<usize> = (1..=epochs).collect();
        let stay = outline.dynamics.map_or(Stay { epochs: &every, steps: &[] }, DynamicsSpec::stay);
        Ok(training::checkpoints(&machine.model_folder(self.name()), self.path(), stay)?)
    }

    /// Makes the subject ready with its model as it was at a checkpoint of its training.
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
