//! Plan and execution of a training run.
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use durable::Lock;
use records::{Identity, RowWriter, Signature, TrainingRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adam::{Adam, AdamSettings};
use crate::error::Error;
use crate::learner::{Learner, Objective};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::record::{self, Ingredient, Record};
use crate::run::{Run, diverged, epoch_seed, padded, shards};
use crate::state::{Checkpoints, EpochState, Stay, TrainingCheckpoint};

/// Which epoch becomes the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Epoch with the best development score or, without a score, the lowest development loss.
    Best,
    /// Last epoch, for data sets whose results are reported on the development set.
    Last,
}

/// Settings of a training run.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// All settings in the description that the weights depend on.
    pub settings: Value,
    /// Metric of the training curve.
    pub curve: String,
    /// Seed of batches and dropout.
    pub seed: u64,
    /// Passes over the training split.
    pub epochs: usize,
    /// Maximum l2 norm of the gradient of all weights together.
    pub clip_norm: f64,
    /// Settings of the optimiser.
    pub adam: AdamSettings,
    /// The epoch that becomes the model.
    pub keep: Keep,
}

/// Plan of a model's training.
#[derive(Debug)]
pub struct TrainingPlan<'a> {
    /// Name of the model.
    pub name: &'a str,
    /// File that describes the training, for messages.
    pub path: &'a Path,
    /// The machine, with the folder of models.
    pub machine: &'a Machine,
    /// File of the training curve.
    pub curve: PathBuf,
    /// Settings of the training.
    pub recipe: Recipe,
    /// Checkpoints to keep; `None` for all epochs.
    pub stay: Option<Stay<'a>>,
}

/// Data of a training run, and its identity.
pub struct Material<E> {
    /// Examples to train on.
    pub train: E,
    /// Examples to choose the best epoch on.
    pub dev: E,
    /// Identity of the training curve.
    pub identity: Identity,
}

/// Folder in which a model is trained, locked against other processes.
#[derive(Debug)]
pub struct Workplace {
    /// Folder of the incomplete model.
    pub folder: PathBuf,
    record: Record,
    _lock: Lock,
}

impl Workplace {
    /// Adds to an error in the files of a killed run the advice to remove their folder.
    pub fn undamaged<T, E: Display>(&self, rest: Result<T, E>) -> Result<T, Error> {
        rest.map_err(|fault| {
            let what = "contains an interrupted training that is damaged: remove it";
            Error::Invalid(format!("`{}` {what} ({fault})", self.folder.display()))
        })
    }
}

impl TrainingPlan<'_> {
    /// Returns the folder of the model.
    pub fn folder(&self) -> PathBuf {
        self.machine.model_folder(self.name)
    }

    /// Returns true if the model exists. A model without a record was not trained here and is always accepted.
    ///
    /// # Errors
    /// If it was trained from other settings, or from other contents of `ingredients`; missing ingredients are not checked.
    pub fn is_finished<E: From<Error>>(&self, ingredients: &[Ingredient<'_, E>]) -> Result<bool, E> {
        let folder = self.folder();
        self.check(&folder, ingredients)?;
        Ok(folder.join("model.safetensors").exists())
    }

    fn check<E: From<Error>>(&self, folder: &Path, ingredients: &[Ingredient<'_, E>]) -> Result<(), E> {
        let Some(fault) = Record::fault(folder, &self.recipe.settings, ingredients)? else { return Ok(()) };
        let replicate =
            self.name.rsplit_once("/replicate-").map_or(String::new(), |(_, n)| format!(" --replicate {n}"));
        let again = format!("train it again with `train-subject {}{replicate} --again`", self.path.display());
        Err(Error::Invalid(format!("`{}` {fault}: {again}", folder.display())).into())
    }

    /// Locks the folder to train in, which may contain the epochs of a killed run; `None` if another process has just finished the model.
    /// With `again` an existing model is ignored, and the remains of a different training run are removed.
    ///
    /// # Errors
    /// If another process is training the model, or the folder contains a different training run.
    pub fn begin<E: From<Error>>(
        &self,
        again: bool,
        ingredients: &[Ingredient<'_, E>],
    ) -> Result<Option<Workplace>, E> {
        let place = self.folder();
        let lock = Lock::take(&place).map_err(Error::from)?;
        let fault = |fault| Error::Invalid(format!("`{}` is {fault}", place.display()));
        let lock = lock.ok_or_else(|| fault("being trained by another process: wait for it"))?;
        durable::restore_folder(&place).map_err(Error::from)?;
        if !again && self.is_finished(ingredients)? {
            return Ok(None);
        }
        if !is_ours(&place) {
            return Err(fault("the folder of the model, but contains other files: move them away").into());
        }
        let folder = durable::partial(&place);
        if again && Record::fault(&folder, &self.recipe.settings, ingredients)?.is_some() {
            let path = folder.clone();
            fs::remove_dir_all(&folder).map_err(|source| Error::from(durable::Error { path, source }))?;
        }
        self.check(&folder, ingredients)?;
        let record = Record::new(&self.recipe.settings, ingredients)?;
        Ok(Some(Workplace { folder, record, _lock: lock }))
    }

    /// Trains the model, or resumes a killed run. An existing model stays in use until the new one is complete.
    ///
    /// - `save_tokenizer`: writes the tokenizer into the model's folder
    /// - `start`: creates the model before the first step
    /// - `load`: loads the model in the folder of an epoch
    ///
    /// # Errors
    /// If files of a killed run are damaged, or the loss is no longer finite.
    pub fn run<O: Objective>(
        &self,
        workplace: &Workplace,
        material: &Material<O::Examples>,
        save_tokenizer: impl FnOnce(&Path) -> Result<(), O::Error>,
        start: impl FnOnce() -> Result<Learner<O>, O::Error>,
        load: impl FnOnce(&Path) -> Result<Learner<O>, O::Error>,
    ) -> Result<(), O::Error> {
        tch::set_num_threads(1); // each shard uses one thread, see `Run`
        let folder = &workplace.folder;
        let checkpoints = Checkpoints::new(folder);
        let mut states = workplace.undamaged(checkpoints.states())?;
        let (learner, adam) = match states.last() {
            Some(last) => workplace.undamaged(self.restore(&checkpoints, last, load))?,
            None => {
                let learner = start()?;
                let adam = Adam::of(&learner, &self.recipe.adam);
                (learner, adam)
            }
        };
        let mut run = self.begin_loop(learner, adam, &material.train, states.last())?;
        self.check_stay(&run, &checkpoints, states.len())?;
        let mut curve = self.open_curve(material.identity.clone(), &states)?;
        workplace.record.write(folder)?;
        save_tokenizer(folder)?;
        for epoch in states.len() + 1..=self.recipe.epochs {
            let state = self.epoch(&mut run, epoch, (material, &checkpoints), best(&states))?;
            checkpoints.save(run.learner(), &run.adam, &state)?;
            curve.append(state.row.clone(), None).map_err(Error::from)?;
            states.push(state);
            self.drop_weights(&checkpoints, &states);
        }
        curve.finish().map_err(Error::from)?;
        let Some(kept) = self.kept(&states) else { return Ok(()) };
        run.progress.line(&format!("epoch {} is the model: {}", kept.epoch, described(kept)));
        checkpoints.publish(kept.epoch)?;
        durable::publish_folder(folder, &self.folder())?;
        if let Some(stay) = self.stay {
            Checkpoints::new(&self.folder()).thin(self.recipe.epochs, stay.epochs);
        }
        Ok(())
    }

    /// Returns the epoch that becomes the model, among those done.
    fn kept<'s>(&self, states: &'s [EpochState]) -> Option<&'s TrainingRow> {
        match self.recipe.keep {
            Keep::Best => best(states),
            Keep::Last => states.last().map(|state| &state.row),
        }
    }

    /// Removes the weights of epochs that are not to be kept, are not the model, and are not needed to resume.
    fn drop_weights(&self, checkpoints: &Checkpoints, states: &[EpochState]) {
        if let (Some(stay), Some(kept)) = (self.stay, self.kept(states)) {
            unneeded(states.len(), kept.epoch, stay).for_each(|epoch| checkpoints.drop_weights(epoch));
        }
    }

    /// Restores the model and optimiser after an epoch.
    fn restore<O: Objective>(
        &self,
        checkpoints: &Checkpoints,
        last: &EpochState,
        load: impl FnOnce(&Path) -> Result<Learner<O>, O::Error>,
    ) -> Result<(Learner<O>, Adam), O::Error> {
        let learner = load(&checkpoints.epoch(last.row.epoch))?;
        let mut adam = Adam::of(&learner, &self.recipe.adam);
        checkpoints.restore(&mut adam, last, self.machine.device)?;
        Ok((learner, adam))
    }

    /// Refuses checkpoints of `[dynamics]` that this training cannot provide after `done` epochs.
    fn check_stay<O: Objective>(
        &self,
        run: &Run<O>,
        checkpoints: &Checkpoints,
        done: usize,
    ) -> Result<(), Error> {
        let Some(stay) = self.stay else { return Ok(()) };
        if let Some(&step) = stay.steps.iter().find(|&&step| step > run.steps()) {
            let (spec, steps) = (self.path.display(), run.steps());
            return Err(Error::Invalid(format!(
                "`{spec}`: dynamics.steps has {step}, but training ends after {steps} updates"
            )));
        }
        let passed: Vec<usize> =
            stay.steps.iter().copied().filter(|&step| step <= run.adam.steps()).collect();
        let epochs: Vec<usize> = stay.epochs.iter().copied().filter(|&epoch| epoch <= done).collect();
        checkpoints.kept(self.path, Stay { epochs: &epochs, steps: &passed }).map(drop)
    }

    /// Prepares the training loop after the epoch `last`, with its number of shards.
    fn begin_loop<O: Objective>(
        &self,
        learner: Learner<O>,
        adam: Adam,
        train: &O::Examples,
        last: Option<&EpochState>,
    ) -> Result<Run<O>, O::Error> {
        let done = last.map_or(0, |state| state.row.epoch);
        let in_epoch = |epoch| learner.objective().batches(train, epoch_seed(self.recipe.seed, epoch)).len();
        let to_go: usize = (done + 1..=self.recipe.epochs).map(in_epoch).sum();
        let progress = Progress::new(to_go, self.machine.quiet);
        progress.line(&format!(
            "training `{}`: {} epochs in all, {to_go} steps to go",
            self.name, self.recipe.epochs
        ));
        let threads = self.machine.workers();
        let shards = last.map_or_else(
            || {
                shards(
                    threads,
                    mean_tokens::<O>(
                        train,
                        &learner.objective().batches(train, epoch_seed(self.recipe.seed, 1)),
                    ),
                )
            },
            |state| state.shards.get(),
        );
        // Threads that have no shard speed up the products of the others.
        tch::set_num_threads((threads / shards).max(1) as i32);
        let steps = adam.steps() + to_go;
        Run::new(learner, adam, shards, (self.recipe.seed, self.recipe.clip_norm), steps, progress)
    }

    /// Trains one epoch.
    fn epoch<O: Objective>(
        &self,
        run: &mut Run<O>,
        epoch: usize,
        (material, checkpoints): (&Material<O::Examples>, &Checkpoints),
        best: Option<&TrainingRow>,
    ) -> Result<EpochState, O::Error> {
        let wanted = |step| self.stay.is_some_and(|stay| stay.steps.contains(&step));
        let after_step = |learner: &Learner<O>, step| {
            if wanted(step) { checkpoints.save_step(learner, step) } else { Ok(()) }
        };
        let train_loss = run.epoch(epoch, &material.train, after_step)?;
        let dev = run.dev_score(&material.dev)?;
        let step = run.adam.steps();
        if !dev.loss.is_finite() {
            return Err(diverged(epoch, step).into());
        }
        let mut row = TrainingRow {
            epoch,
            step,
            train_loss,
            dev_loss: dev.loss,
            dev_score: dev.score,
            learning_rate: run.learning_rate(step),
            best: false,
        };
        row.best = best.is_none_or(|best| is_better(&row, best));
        run.progress.line(&format!("epoch {epoch}: training loss {train_loss:.4}, {}", described(&row)));
        Ok(EpochState { row, shards: run.shards() })
    }

    /// Opens the training curve with the rows of completed epochs.
    fn open_curve(&self, identity: Identity, states: &[EpochState]) -> Result<RowWriter<TrainingRow>, Error> {
        let run = self.machine.provenance();
        let signature = Signature::new(identity, run);
        // All rows are in `states`. An existing curve, such as a reference result, stays until this one is complete.
        let mut curve = RowWriter::<TrainingRow>::open(&self.curve, &signature, true)?;
        curve.leave_out(|row| !states.iter().any(|state| state.row == *row));
        for state in states {
            curve.append(state.row.clone(), None)?;
        }
        Ok(curve)
    }
}

/// Returns the checkpoints kept with the trained model in `folder`, in the order of training; `spec` is the file that describes it, for
/// messages.
///
/// # Errors
/// If a checkpoint is missing, because it was not requested when the model was trained.
pub fn checkpoints(folder: &Path, spec: &Path, stay: Stay<'_>) -> Result<Vec<TrainingCheckpoint>, Error> {
    Checkpoints::new(folder).kept(spec, stay)
}

/// Returns true if a folder may be replaced by a model: it contains one or its record, is empty, or does not exist.
fn is_ours(folder: &Path) -> bool {
    let is_empty = || fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    ["model.safetensors", record::FILE].iter().any(|name| folder.join(name).exists()) || is_empty()
}

/// Returns the epochs before `last`, from which training resumes, that are neither `kept` as the model nor in `stay`.
fn unneeded(last: usize, kept: usize, stay: Stay<'_>) -> impl Iterator<Item = usize> {
    (1..last).filter(move |epoch| *epoch != kept && !stay.epochs.contains(epoch))
}

/// Returns the mean number of tokens per batch, including padding.
fn mean_tokens<O: Objective>(train: &O::Examples, batches: &[Vec<usize>]) -> usize {
    batches.iter().map(|rows| padded::<O>(train, rows)).sum::<usize>() / batches.len().max(1)
}

/// Returns the best epoch so far, the first of those that tie.
fn best(states: &[EpochState]) -> Option<&TrainingRow> {
    let rows = states.iter().map(|state| &state.row);
    rows.reduce(|best, row| if is_better(row, best) { row } else { best })
}

/// Compares by development score or, without one, by development loss.
fn is_better(row: &TrainingRow, than: &TrainingRow) -> bool {
    match (row.dev_score, than.dev_score) {
        (Some(score), Some(other)) => score > other,
        _ => row.dev_loss < than.dev_loss,
    }
}

fn described(row: &TrainingRow) -> String {
    let score = row.dev_score.map_or(String::new(), |score| format!(", score {score:.2}"));
    format!("dev loss {:.4}{score}", row.dev_loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_epoch_the_best_and_those_that_stay_are_needed() {
        let stay = Stay { epochs: &[2, 9], steps: &[] };
        assert!(unneeded(6, 4, stay).eq([1, 3, 5]));
        assert!(unneeded(6, 6, stay).eq([1, 3, 4, 5]));
        assert_eq!(unneeded(1, 1, stay).count(), 0);
    }
}
