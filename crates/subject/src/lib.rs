//! What an experiment is done to: a model, its data, its loss and its score.
//!
//! A TOML file in `experiments/` describes a subject; [`Description::open`] makes it ready, training its model on first use.
//! Experiments see it through the [`Subject`] trait alone.
mod checkpoint;
mod classification;
mod error;
mod groups;
mod locate;
mod measuring;
mod plan;
mod spec;
mod subject;
#[cfg(test)]
mod test_machine;
mod translation;

use std::path::{Path, PathBuf};

use core_masking::{BeamSearch, HeadLayout};
use corpus::parallel::ParallelText;

use checkpoint::Places;
use classification::ClassificationSubject;
use translation::TranslationSubject;

pub use error::Error;
use spec::{DynamicsSpec, Spec};
pub use subject::{Evaluation, Pass, Scored, Subject};
use training::{Machine, Stay, TrainingCheckpoint};

/// A subject that is read but not yet opened: what can be checked before any long work.
#[derive(Debug)]
pub struct Description {
    name: String,
    path: PathBuf,
    spec: Spec,
}

/// What a subject is called, and the file that describes it.
#[derive(Debug, Clone, Copy)]
struct Naming<'a> {
    name: &'a str,
    path: &'a Path,
}

impl Description {
    /// Reads a subject's TOML file, given as a path or as a name in `experiments/`.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be understood.
    pub fn read(subject: &Path) -> Result<Self, Error> {
        let (path, name) = locate::locate(subject)?;
        Ok(Self { spec: Spec::read(&path)?, name, path })
    }

    /// Name of the subject.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that describes it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The heads that its model has.
    ///
    /// # Errors
    /// If the model is a checkpoint that cannot be found.
    pub fn layout(&self, machine: &Machine) -> Result<HeadLayout, Error> {
        match &self.spec {
            Spec::Translation(spec) => translation::layout(spec, machine),
            Spec::Classification(spec) => classification::layout(&self.name, spec, machine),
        }
    }

    /// The split to score: `wanted`, or the subject's test split. `train`, `dev` and `test` are also what the subject
    /// uses as such, if it has no splits of these names.
    ///
    /// # Errors
    /// If it cannot be scored: there is none of that name, and the message lists those that there are; or its files are
    /// missing, torn or empty, or hold a label that the model does not know.
    pub fn split(&self, wanted: Option<&str>, machine: &Machine) -> Result<String, Error> {
        let split = wanted.map_or(self.test_split(), |wanted| self.by_role(wanted));
        match &self.spec {
            Spec::Translation(spec) => drop(translation::read_split(spec, machine, split)?),
            Spec::Classification(spec) => classification::check_split(spec, machine, split)?,
        }
        Ok(split.to_owned())
    }

    /// `<results>/<subject>/<experiment>.csv`, with the split in the name unless it is the subject's test split, and the
    /// limit if there is one.
    pub fn result_path(&self, results: &Path, experiment: &str, scored: &Scored) -> PathBuf {
        let Scored { split, limit, sample, .. } = scored;
        let split = if self.is_test_split(split) { String::new() } else { format!("-{split}") };
        let which = if sample.is_some() { "sample" } else { "first" };
        let limit = limit.map_or(String::new(), |limit| format!("-{which}-{limit}"));
        results.join(&self.name).join(format!("{experiment}{split}{limit}.csv"))
    }

    /// Whether a split is the subject's test split.
    pub fn is_test_split(&self, split: &str) -> bool {
        split == self.test_split()
    }

    fn test_split(&self) -> &str {
        self.named_splits()[2]
    }

    /// The split that the model was trained on, if this subject says how.
    pub fn train_split(&self) -> &str {
        self.named_splits()[0]
    }

    /// The split that choices are made on, such as that of the best epoch.
    pub fn dev_split(&self) -> &str {
        self.named_splits()[1]
    }

    /// The split that is called so, or that plays this part.
    fn by_role<'a>(&'a self, wanted: &'a str) -> &'a str {
        let is_known = match &self.spec {
            Spec::Translation(spec) => translation::has_split(spec, wanted),
            Spec::Classification(spec) => classification::has_split(spec, wanted),
        };
        let role = ["train", "dev", "test"].iter().position(|role| *role == wanted);
        match role {
            Some(role) if !is_known => self.named_splits()[role],
            _ => wanted,
        }
    }

    /// Train, dev and test.
    fn named_splits(&self) -> [&str; 3] {
        match &self.spec {
            Spec::Translation(spec) => [&spec.data.train, &spec.data.dev, &spec.data.test],
            Spec::Classification(spec) => [&spec.data.train, &spec.data.dev, &spec.data.test],
        }
    }

    /// The split of another domain, if there is one.
    pub fn shifted_split(&self) -> Option<&str> {
        let (named, of_grammar) = match &self.spec {
            Spec::Translation(spec) => (&spec.data.shifted, spec.data.grammar.map(|_| "shifted")),
            Spec::Classification(spec) => (&spec.data.shifted, spec.data.grammar.map(|_| "mismatched")),
        };
        named.as_deref().or(of_grammar)
    }

    /// The sentence pairs of a translator's split, and how it is searched; for benchmarks of decoding.
    ///
    /// # Errors
    /// If the split is at fault, or the subject is no translator.
    pub fn translation(
        &self,
        split: Option<&str>,
        machine: &Machine,
    ) -> Result<(ParallelText, BeamSearch), Error> {
        let Spec::Translation(spec) = &self.spec else {
            return Err(Error::NoTranslator { name: self.name.clone() });
        };
        let split = split.unwrap_or(self.test_split());
        Ok((translation::read_split(spec, machine, split)?, translation::search(spec)))
    }

    /// Trains the model unless it is there, and returns its folder.
    ///
    /// With `again` the model is trained anew; what is there is used until the new one is complete.
    ///
    /// # Errors
    /// If data is missing or at fault, the model there was trained from other settings or data, training fails, or the model is
    /// a checkpoint that is taken as it is.
    pub fn train(&self, machine: &Machine, results: &Path, again: bool) -> Result<PathBuf, Error> {
        match &self.spec {
            Spec::Translation(spec) => translation::train(self.naming(), spec, machine, results, again),
            Spec::Classification(spec) => classification::train(self.naming(), spec, machine, results, again),
        }
    }

    /// Makes the subject ready, training its model on first use.
    ///
    /// # Errors
    /// As for [`train`](Self::train), or if the model's folder is at fault.
    pub fn open(&self, machine: &Machine, results: &Path) -> Result<Box<dyn Subject>, Error> {
        Ok(match &self.spec {
            Spec::Translation(spec) => Box::new(translation::open(self.naming(), spec, machine, results)?),
            Spec::Classification(spec) => {
                Box::new(classification::open(self.naming(), spec, machine, results)?)
            }
        })
    }

    /// Checkpoints of the training, in its order: those that the subject's file names, or else those of all epochs. The
    /// model must be [trained](Self::train).
    ///
    /// # Errors
    /// If the model is not trained here, or one is not there.
    pub fn checkpoints(&self, machine: &Machine) -> Result<Vec<TrainingCheckpoint>, Error> {
        let (epochs, dynamics) = match &self.spec {
            Spec::Translation(spec) => (spec.training.map(|training| training.epochs), &spec.dynamics),
            Spec::Classification(spec) => (spec.training.map(|training| training.epochs), &spec.dynamics),
        };
        let epochs = epochs.ok_or_else(|| Error::NotTrained { name: self.name.clone() })?;
        let every: Vec<usize> = (1..=epochs).collect();
        let stay = dynamics.as_ref().map_or(Stay { epochs: &every, steps: &[] }, DynamicsSpec::stay);
        Ok(training::checkpoints(&machine.model_folder(&self.name), &self.path, stay)?)
    }

    /// Makes the subject ready with its model as it was at a checkpoint of its training.
    ///
    /// # Errors
    /// If the model's folder is at fault.
    pub fn open_at(
        &self,
        checkpoint: &TrainingCheckpoint,
        machine: &Machine,
    ) -> Result<Box<dyn Subject>, Error> {
        let places = Places { model: &checkpoint.folder, tokenizer: &machine.model_folder(&self.name) };
        Ok(match &self.spec {
            Spec::Translation(spec) => Box::new(TranslationSubject::load(&self.name, spec, machine, places)?),
            Spec::Classification(spec) => {
                Box::new(ClassificationSubject::load(&self.name, spec, machine, places, None)?)
            }
        })
    }

    fn naming(&self) -> Naming<'_> {
        Naming { name: &self.name, path: &self.path }
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

    #[test]
    fn demos_have_a_shifted_domain() {
        assert_eq!(shipped("demo-translation").shifted_split(), Some("shifted"));
        assert_eq!(shipped("demo-inference").shifted_split(), Some("mismatched"));
        assert_eq!(shipped("minilm-sst2").shifted_split(), None);
    }
}
