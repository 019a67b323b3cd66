//! How the model of a subject is trained from its files, whatever its task.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::weight_files;
use records::{Identity, sha256_file};
use serde_json::Value;
use training::{AdamSettings, Ingredient, Keep, Machine, Material, TrainingPlan, Workplace, write_once};

use crate::checkpoint::{Checkpoint, checksums, sha256_of_weights};
use crate::dynamics::DynamicsSpec;
use crate::error::Error;
use crate::learner::{Objective, TaskLearner};
use crate::task::{Described, Task};

/// The file of a tokeniser that is trained with its model.
const TOKENIZER: &str = "tokenizer.json";
const CONFIG: &str = "config.json";

/// A task whose models can be trained or fine-tuned.
pub(crate) trait Trained: Task {
    /// What makes tokens of the segments.
    type Tokenizer;

    /// What the training minimises, and how.
    type Objective: Objective<Examples = Self::Encoded>;

    /// Settings of the recipe that signatures tell.
    const ARGUMENTS: &'static [&'static str];

    /// What the file says of the training, if it does.
    fn recipe(spec: &Self::Spec) -> Result<Option<Recipe>, Error>;

    fn train_tokenizer(spec: &Self::Spec, train: &Self::Examples) -> Result<Self::Tokenizer, Error>;

    fn load_tokenizer(spec: &Self::Spec, folder: &Path) -> Result<Self::Tokenizer, Error>;

    fn save_tokenizer(tokenizer: &Self::Tokenizer, path: &Path) -> Result<(), Error>;

    /// The segments of a split that the model can take; says on stderr how many it cannot, unless `quiet`.
    fn encode_split(
        spec: &Self::Spec,
        tokenizer: &Self::Tokenizer,
        split: (&str, &Self::Examples),
        quiet: bool,
    ) -> Result<Self::Encoded, Error>;

    /// The model before the first step: on top of a checkpoint, or as `[model]` says.
    fn start(
        described: &Described<Self>,
        base: Option<&Checkpoint>,
        tokenizer: &Self::Tokenizer,
        machine: &Machine,
    ) -> Result<TaskLearner<Self::Objective>, Error>;

    /// The model in the folder of an epoch.
    fn resume(
        described: &Described<Self>,
        folder: &Path,
        machine: &Machine,
    ) -> Result<TaskLearner<Self::Objective>, Error>;
}

/// What a file says of a training.
pub(crate) struct Recipe {
    /// All that the weights depend on, as far as the file says.
    pub settings: Value,
    /// What the training curve is of.
    pub curve: String,
    /// Seed of new weights, batches and dropout.
    pub seed: u64,
    /// Passes over the training split.
    pub epochs: usize,
    /// Greatest l2 norm of the gradient of all weights together.
    pub clip_norm: f64,
    /// Of the optimiser.
    pub adam: AdamSettings,
    /// Which epoch becomes the model.
    pub keep: Keep,
}

/// The parts of a subject's file that describe a training.
struct Training<'a, T: Trained> {
    described: &'a Described<T>,
    recipe: Recipe,
    machine: &'a Machine,
}

/// The train and the dev split.
struct Splits<'a, E> {
    train: &'a E,
    dev: &'a E,
}

/// Trains the model unless it is there, and returns its folder.
///
/// # Errors
/// If data or the checkpoint is missing or at fault, the model there was trained from other settings or data, a file
/// cannot be written, or the loss is no longer a number.
pub(crate) fn train<T: Trained>(
    described: &Described<T>,
    machine: &Machine,
    results: &Path,
    again: bool,
) -> Result<PathBuf, Error> {
    let recipe = T::recipe(&described.spec)?;
    let recipe = recipe.ok_or_else(|| Error::NotTrained { name: described.name.clone() })?;
    let training = Training { described, recipe, machine };
    let plan = training.plan(results);
    let base = T::outline(&described.spec).checkpoint.and_then(|checkpoint| checkpoint.at_hand(machine));
    if again || !plan.is_finished(&training.ingredients(None, base.as_deref()))? {
        training.run(&plan, again)?;
    }
    Ok(plan.folder())
}

impl<T: Trained> Training<'_, T> {
    fn run(&self, plan: &TrainingPlan<'_>, again: bool) -> Result<(), Error> {
        let Self { described, machine, .. } = self;
        let (spec, outline) = (&described.spec, T::outline(&described.spec));
        let base = outline.checkpoint.map(|checkpoint| checkpoint.find(machine)).transpose()?;
        if base.is_some_and(|base| same_folder(&base.folder, &plan.folder())) {
            return Err(Error::OwnBase { folder: plan.folder() });
        }
        let read = |split: &str| {
            let examples = described.read(machine, split)?;
            T::check(described, machine, split, &examples)?;
            Ok::<_, Error>(examples)
        };
        let (train, dev) = (read(outline.train)?, read(outline.dev)?);
        let splits = Splits { train: &train, dev: &dev };
        let ingredients = self.ingredients(Some(&splits), base.map(|base| base.folder.as_path()));
        let Some(workplace) = plan.begin(again, &ingredients)? else { return Ok(()) };
        let tokenizer = self.tokenizer(&workplace, base, &train)?;
        let encode = |split, examples| T::encode_split(spec, &tokenizer, (split, examples), machine.quiet);
        let material = Material {
            train: encode(outline.train, &train)?,
            dev: encode(outline.dev, &dev)?,
            identity: self.identity(base, &splits)?,
        };
        let save = |folder: &Path| save_tokenizer::<T>(base, &tokenizer, folder);
        let start = || T::start(described, base, &tokenizer, machine);
        plan.run(&workplace, &material, save, start, |folder| T::resume(described, folder, machine))
    }

    /// What the weights depend on besides the settings: train and dev split, if they have been read already, or as they
    /// are read when they are needed, and the files of the checkpoint in the folder `base`.
    fn ingredients<'a>(
        &'a self,
        read: Option<&Splits<'a, T::Examples>>,
        base: Option<&'a Path>,
    ) -> Vec<Ingredient<'a, Error>> {
        let Described { spec, .. } = self.described;
        let outline = T::outline(spec);
        let split = |split: &'a str, read: Option<&'a T::Examples>| Ingredient {
            name: format!("split `{split}`"),
            files: T::files(spec, &self.machine.data, split),
            sha256: Box::new(move || match read {
                Some(examples) => Ok(T::sha256(examples)),
                None => Ok(T::sha256(&self.described.read(self.machine, split)?)),
            }),
        };
        let splits = [
            split(outline.train, read.map(|read| read.train)),
            split(outline.dev, read.map(|read| read.dev)),
        ];
        let of_base = base.into_iter().flat_map(|base| {
            let own = T::FILES.iter().map(|name| base.join(name)).filter(|path| path.exists()).map(|path| {
                Ingredient {
                    name: of_checkpoint(&path),
                    files: vec![path.clone()],
                    sha256: Box::new(move || Ok(sha256_file(&path)?)) as Box<_>,
                }
            });
            // Without weights nothing can be fine-tuned, which is said when they are read.
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
        let Described { name, path, spec } = self.described;
        TrainingPlan {
            name,
            path,
            machine: self.machine,
            curve: results.join(name).join("training.csv"),
            settings: self.recipe.settings.clone(),
            seed: self.recipe.seed,
            epochs: self.recipe.epochs,
            clip_norm: self.recipe.clip_norm,
            adam: self.recipe.adam,
            keep: self.recipe.keep,
            stay: T::outline(spec).dynamics.map(DynamicsSpec::stay),
        }
    }

    fn identity(
        &self,
        base: Option<&Checkpoint>,
        splits: &Splits<'_, T::Examples>,
    ) -> Result<Identity, Error> {
        let outline = T::outline(&self.described.spec);
        let mut identity = Identity::new("train-subject", &self.described.name);
        outline.train.clone_into(&mut identity.split);
        identity.seed = Some(self.recipe.seed);
        identity.precision = "f32".to_owned();
        identity.metric.clone_from(&self.recipe.curve);
        let told = T::ARGUMENTS.iter().map(|&name| (name.to_owned(), self.recipe.settings[name].clone()));
        identity.arguments = told.collect();
        identity.data = BTreeMap::from([
            (outline.train.to_owned(), T::sha256(splits.train)),
            (outline.dev.to_owned(), T::sha256(splits.dev)),
        ]);
        if let Some(base) = base {
            identity.arguments.insert("checkpoint".to_owned(), base.name.clone().into());
            identity.weights = Some(sha256_of_weights(&base.folder)?);
            identity.data.extend(checksums(&base.folder, T::FILES)?);
        }
        Ok(identity)
    }

    /// The tokeniser of the checkpoint, of a run that was begun, or a new one.
    fn tokenizer(
        &self,
        workplace: &Workplace,
        base: Option<&Checkpoint>,
        train: &T::Examples,
    ) -> Result<T::Tokenizer, Error> {
        let Described { spec, .. } = self.described;
        match base {
            Some(base) => T::load_tokenizer(spec, &base.folder),
            None if workplace.folder.join(TOKENIZER).exists() => {
                Ok(workplace.undamaged(T::load_tokenizer(spec, &workplace.folder))?)
            }
            None => T::train_tokenizer(spec, train),
        }
    }
}

/// What messages and the record call a file of the checkpoint.
fn of_checkpoint(path: &Path) -> String {
    format!("`{}` of the checkpoint", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Writes the checkpoint's files as they are, so that other tools read the model as they read the checkpoint. Their
/// permissions stay behind: a checkpoint may be read-only.
fn save_tokenizer<T: Trained>(
    base: Option<&Checkpoint>,
    tokenizer: &T::Tokenizer,
    folder: &Path,
) -> Result<(), Error> {
    let Some(base) = base else {
        return write_once(&folder.join(TOKENIZER), |path| T::save_tokenizer(tokenizer, path));
    };
    for name in T::FILES.iter().filter(|name| **name != CONFIG) {
        let from = base.folder.join(name);
        if from.exists() {
            let bytes = fs::read(&from).map_err(|source| Error::Read { path: from, source })?;
            durable::write(&folder.join(name), bytes)?;
        }
    }
    Ok(())
}

fn same_folder(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}
