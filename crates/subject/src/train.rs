//! Training of a setup's model, for any task.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::weight_files;
use heads::experiment::TRAIN_SUBJECT;
use records::{Identity, sha256_file};
use tch::{Device, Kind};
use training::{
    Ingredient, Learner, Machine, Material, Objective, Recipe, TrainingPlan, Workplace, write_once,
};

use crate::checkpoint::{Checkpoint, checksums, sha256_of_weights};
use crate::dynamics::DynamicsSpec;
use crate::error::Error;
use crate::subject_file::SubjectFile;
use crate::task::{ExamplesOf, Spec, Task};

/// Tokeniser file of a model whose tokeniser is trained with it.
pub(crate) const TOKENIZER: &str = "tokenizer.json";
const CONFIG: &str = "config.json";

pub(crate) type Load<M> = fn(&Path, (Kind, Device)) -> Result<M, core_masking::Error>;

/// A task whose models can be trained or fine-tuned.
pub(crate) trait Trained: Task {
    type Tokenizer;

    /// Loss, batches and learning rates of the training.
    type Objective: Objective<Model = Self::Model, Examples = Self::Encoded, Error = Error>;

    /// Loads the model in a folder.
    const LOAD: Load<Self::Model>;

    /// Settings of the recipe that signatures contain.
    const ARGUMENTS: &'static [&'static str];

    /// Returns the recipe in the file; `None` without a `[training]` section.
    fn recipe(spec: &Self::Spec) -> Result<Option<Recipe>, Error>;

    /// Returns the name of the file that [`save_tokenizer`](Self::save_tokenizer) writes.
    fn tokenizer_file(_: &Self::Spec) -> &'static str {
        TOKENIZER
    }

    fn train_tokenizer(spec: &Self::Spec, train: &ExamplesOf<Self>) -> Result<Self::Tokenizer, Error>;

    fn load_tokenizer(spec: &Self::Spec, folder: &Path) -> Result<Self::Tokenizer, Error>;

    fn save_tokenizer(tokenizer: &Self::Tokenizer, path: &Path) -> Result<(), Error>;

    /// Encodes the segments that the model can read; reports the number of others on stderr, unless `quiet`.
    fn encode_split(
        spec: &Self::Spec,
        tokenizer: &Self::Tokenizer,
        split: (&str, &ExamplesOf<Self>),
        quiet: bool,
    ) -> Result<Self::Encoded, Error>;

    fn objective(file: &SubjectFile<Self>) -> Result<Self::Objective, Error>;

    /// Returns the initial model: a checkpoint, or a new model as `[model]` specifies.
    fn start(
        file: &SubjectFile<Self>,
        base: Option<&Checkpoint>,
        tokenizer: &Self::Tokenizer,
        machine: &Machine,
    ) -> Result<Self::Model, Error>;
}

/// The parts of a setup file that describe training.
struct Training<'a, T: Trained> {
    file: &'a SubjectFile<T>,
    recipe: Recipe,
    machine: &'a Machine,
}

/// Trains the model unless that was done already, and returns its folder.
pub(crate) fn train<T: Trained>(
    file: &SubjectFile<T>,
    machine: &Machine,
    results: &Path,
    again: bool,
) -> Result<PathBuf, Error> {
    let recipe = T::recipe(&file.spec)?;
    let recipe = recipe.ok_or_else(|| Error::not_trained(&file.name))?;
    let training = Training { file, recipe, machine };
    let plan = training.plan(results);
    let base = file.spec.outline().checkpoint.and_then(|checkpoint| checkpoint.at_hand(machine));
    if again || !plan.is_finished(&training.ingredients(None, base.as_deref()))? {
        training.run(&plan, again)?;
    }
    Ok(plan.folder())
}

impl<T: Trained> Training<'_, T> {
    fn run(&self, plan: &TrainingPlan<'_>, again: bool) -> Result<(), Error> {
        let Self { file, machine, .. } = self;
        let (spec, outline) = (&file.spec, file.spec.outline());
        let base = outline.checkpoint.map(|checkpoint| checkpoint.find(machine)).transpose()?;
        if base.is_some_and(|base| same_folder(&base.folder, &plan.folder())) {
            let fault = "is both the checkpoint and the folder of the trained model: copy it elsewhere";
            return Err(Error::Invalid(format!("`{}` {fault}", plan.folder().display())));
        }
        let read = |split: &str| {
            let examples = file.read(machine, split)?;
            T::check(file, machine, split, &examples)?;
            Ok::<_, Error>(examples)
        };
        let (train, dev) = (read(outline.train)?, read(outline.dev)?);
        let splits = [&train, &dev];
        let ingredients = self.ingredients(Some(splits), base.map(|base| base.folder.as_path()));
        let Some(workplace) = plan.begin(again, &ingredients)? else { return Ok(()) };
        let tokenizer = self.tokenizer(&workplace, base, &train)?;
        let encode = |split, examples| T::encode_split(spec, &tokenizer, (split, examples), machine.quiet);
        let material = Material {
            train: encode(outline.train, &train)?,
            dev: encode(outline.dev, &dev)?,
            identity: self.identity(base, splits)?,
        };
        let save = |folder: &Path| save_tokenizer::<T>(spec, base, &tokenizer, folder);
        let start = || learner(file, &T::start(file, base, &tokenizer, machine)?);
        let resume = |folder: &Path| learner(file, &T::LOAD(folder, (Kind::Float, machine.device))?);
        plan.run(&workplace, &material, save, start, resume)
    }

    /// Returns the data that the weights depend on: train and dev split, read on demand unless given as `read`, and the files of the
    /// checkpoint in the folder `base`.
    fn ingredients<'a>(
        &'a self,
        read: Option<[&'a ExamplesOf<T>; 2]>,
        base: Option<&'a Path>,
    ) -> Vec<Ingredient<'a, Error>> {
        let SubjectFile { spec, .. } = self.file;
        let outline = spec.outline();
        let split = |split: &'a str, read: Option<&'a ExamplesOf<T>>| Ingredient {
            name: format!("split `{split}`"),
            files: spec.files(&self.machine.data, split),
            sha256: Box::new(move || match read {
                Some(examples) => Ok(T::Spec::sha256(examples)),
                None => Ok(T::Spec::sha256(&self.file.read(self.machine, split)?)),
            }),
        };
        let splits = [
            split(outline.train, read.map(|[train, _]| train)),
            split(outline.dev, read.map(|[_, dev]| dev)),
        ];
        let of_base = base.into_iter().flat_map(|base| {
            let own = T::FILES.iter().map(|name| base.join(name)).filter(|path| path.exists()).map(|path| {
                Ingredient {
                    name: of_checkpoint(&path),
                    files: vec![path.clone()],
                    sha256: Box::new(move || Ok(sha256_file(&path)?)) as Box<_>,
                }
            });
            // Missing weights are reported when they are read.
            let weights = weight_files(base).ok().filter(|files| files.iter().all(|file| file.exists()));
            own.chain(weights.map(|files| Ingredient {
                name: of_checkpoint(&files[0]),
                files,
                sha256: Box::new(|| sha256_of_weights(base)),
            }))
        });
        splits.into_iter().chain(of_base).collect()
    }

    fn plan<'a>(&'a self, results: &Path) -> TrainingPlan<'a> {
        let SubjectFile { name, path, spec } = self.file;
        TrainingPlan {
            name,
            path,
            machine: self.machine,
            curve: results.join(name).join("training.csv"),
            recipe: self.recipe.clone(),
            stay: spec.outline().dynamics.map(DynamicsSpec::stay),
        }
    }

    fn identity(
        &self,
        base: Option<&Checkpoint>,
        [train, dev]: [&ExamplesOf<T>; 2],
    ) -> Result<Identity, Error> {
        let outline = self.file.spec.outline();
        let mut identity = Identity::new(TRAIN_SUBJECT.name, &self.file.name);
        outline.train.clone_into(&mut identity.split);
        identity.seed = Some(self.recipe.seed);
        identity.precision = "f32".to_owned();
        identity.metric.clone_from(&self.recipe.curve);
        let told = T::ARGUMENTS.iter().map(|&name| (name.to_owned(), self.recipe.settings[name].clone()));
        identity.arguments = told.collect();
        identity.data = BTreeMap::from([
            (outline.train.to_owned(), T::Spec::sha256(train)),
            (outline.dev.to_owned(), T::Spec::sha256(dev)),
        ]);
        if let Some(base) = base {
            identity.arguments.insert("checkpoint".to_owned(), base.name.clone().into());
            identity.weights = Some(sha256_of_weights(&base.folder)?);
            identity.data.extend(checksums(&base.folder, T::FILES)?);
        }
        Ok(identity)
    }

    /// Returns the tokeniser of the checkpoint or of an interrupted run, or trains a new one.
    fn tokenizer(
        &self,
        workplace: &Workplace,
        base: Option<&Checkpoint>,
        train: &ExamplesOf<T>,
    ) -> Result<T::Tokenizer, Error> {
        let SubjectFile { spec, .. } = self.file;
        match base {
            Some(base) => T::load_tokenizer(spec, &base.folder),
            None if workplace.folder.join(T::tokenizer_file(spec)).exists() => {
                Ok(workplace.undamaged(T::load_tokenizer(spec, &workplace.folder))?)
            }
            None => T::train_tokenizer(spec, train),
        }
    }
}

pub(crate) fn learner<T: Trained>(
    file: &SubjectFile<T>,
    model: &T::Model,
) -> Result<Learner<T::Objective>, Error> {
    Ok(Learner::new(model, T::objective(file)?)?)
}

/// Returns the name of a checkpoint file for messages and the record.
fn of_checkpoint(path: &Path) -> String {
    format!("`{}` of the checkpoint", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Copies the checkpoint's files unchanged, so that other tools can load the model like the checkpoint. Permissions are not copied, since a
/// checkpoint may be read-only.
fn save_tokenizer<T: Trained>(
    spec: &T::Spec,
    base: Option<&Checkpoint>,
    tokenizer: &T::Tokenizer,
    folder: &Path,
) -> Result<(), Error> {
    let Some(base) = base else {
        return write_once(&folder.join(T::tokenizer_file(spec)), |path| T::save_tokenizer(tokenizer, path));
    };
    for name in T::FILES.iter().filter(|name| **name != CONFIG) {
        let from = base.folder.join(name);
        if from.exists() {
            let bytes = fs::read(&from).map_err(|source| Error::read(&from, source))?;
            durable::write(&folder.join(name), bytes)?;
        }
    }
    Ok(())
}

fn same_folder(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}
