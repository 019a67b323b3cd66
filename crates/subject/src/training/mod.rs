//! Training of any model family, from nothing or from a pretrained checkpoint.
//!
//! An epoch's batches and dropout are functions of the seed and its number, and it is saved whole, so a run that is
//! killed goes on from its last epoch with the losses of an unbroken run.
mod adam;
mod learner;
mod run;
mod state;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use records::{Existing, Identity, Provenance, Row, RowWriter, Signature, TrainingRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::Machine;
use crate::progress::Progress;
use crate::spec::DynamicsSpec;
use crate::{Error, Naming};
use adam::Adam;
pub(crate) use adam::AdamSettings;
pub(crate) use learner::{Learner, Validation, trainable};
use run::{Run, epoch_seed};
pub use state::TrainingCheckpoint;
pub(crate) use state::write_once;
use state::{Checkpoints, EpochState, replace};

/// The settings that a model was trained from, beside it.
const SETTINGS: &str = "settings.json";

/// Which epoch becomes the model of the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// The one with the best development score or, without a score, the lowest development loss.
    Best,
    /// The last one, for data sets whose development set is also what is reported.
    Last,
}

/// How the model of a subject is trained, whatever its family.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// Name of the subject.
    pub name: &'a str,
    /// Its TOML file, for messages.
    pub path: &'a Path,
    /// Where to compute and to keep the model.
    pub machine: &'a Machine,
    /// Folder of the results; the training curve goes to `<results>/<subject>/training.csv`.
    pub results: &'a Path,
    /// All that the weights depend on, as far as the subject's file says.
    pub settings: Value,
    /// Seed of batches and dropout.
    pub seed: u64,
    /// Passes over the training split.
    pub epochs: usize,
    /// Greatest l2 norm of the gradient of all weights together.
    pub clip_norm: f64,
    /// Of the optimiser.
    pub adam: AdamSettings,
    /// Which epoch becomes the model.
    pub keep: Keep,
    /// Checkpoints that stay when training has ended; those of all epochs if absent.
    pub dynamics: Option<&'a DynamicsSpec>,
}

/// What there is to train on, and how its run is described.
pub(crate) struct Material<E> {
    /// Examples to train on.
    pub train: E,
    /// Examples to choose the best epoch on.
    pub dev: E,
    /// What the training curve depends on.
    pub identity: Identity,
}

impl Plan<'_> {
    /// Where the model is or will be.
    pub(crate) fn folder(&self) -> PathBuf {
        self.machine.model_folder(self.name)
    }

    /// Whether the model must be trained, or trained to the end. A model without a record of its settings was not
    /// trained here and is taken as it is.
    ///
    /// # Errors
    /// If what is there was trained from other settings.
    pub(crate) fn is_due(&self, overwrite: bool) -> Result<bool, Error> {
        if !overwrite {
            self.check_settings(&self.folder())?;
        }
        Ok(overwrite || !self.folder().join("model.safetensors").exists())
    }

    /// Refuses to mix two settings in one folder.
    fn check_settings(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(SETTINGS);
        let stored = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice::<Value>(&bytes).ok(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(Error::Read { path, source }),
        };
        if stored.as_ref() == Some(&self.settings) {
            return Ok(());
        }
        Err(Error::OtherSettings { folder: folder.to_owned(), spec: self.path.to_owned() })
    }

    /// Trains the model; goes on where a killed run stopped.
    ///
    /// - `save_tokenizer`: writes the tokeniser into the model's folder
    /// - `start`: the model before the first step
    /// - `load`: the model in the folder of an epoch
    ///
    /// With `overwrite` what is there is removed when all that can fail early has not.
    ///
    /// # Errors
    /// If a file cannot be written, what is there is torn, or the loss is no longer a number.
    pub(crate) fn run<L: Learner>(
        &self,
        material: &Material<L::Examples>,
        overwrite: bool,
        save_tokenizer: impl FnOnce(&Path) -> Result<(), Error>,
        start: impl FnOnce() -> Result<L, Error>,
        load: impl FnOnce(&Path) -> Result<L, Error>,
    ) -> Result<(), Error> {
        tch::set_num_threads(1); // each shard computes alone, see `Run`
        let folder = self.folder();
        let checkpoints = Checkpoints::new(&folder);
        let mut states = if overwrite { Vec::new() } else { checkpoints.states()? };
        let learner = match states.last() {
            Some(last) => load(&checkpoints.epoch(last.row.epoch))?,
            None => start()?,
        };
        let mut adam = Adam::new(learner.weights(), &self.adam);
        if let Some(last) = states.last() {
            checkpoints.restore(&mut adam, last, self.machine.device)?;
        }
        let mut run = self.begin(learner, adam, &material.train, states.last())?;
        self.check_steps(&run, &checkpoints)?;
        let mut curve = self.open_curve(material.identity.clone(), &states)?;
        self.prepare(&folder, overwrite)?;
        save_tokenizer(&folder)?;
        for epoch in states.len() + 1..=self.epochs {
            let state = self.epoch(&mut run, epoch, (material, &checkpoints), best(&states))?;
            checkpoints.save(run.learner(), &run.adam, &state)?;
            curve.push(state.row.clone())?;
            states.push(state);
        }
        curve.finish(|_| ())?;
        let kept = match self.keep {
            Keep::Best => best(&states),
            Keep::Last => states.last().map(|state| &state.row),
        };
        let Some(kept) = kept else { return Ok(()) };
        run.progress.line(&format!("epoch {} is the model: {}", kept.epoch, described(kept)));
        checkpoints.publish(kept.epoch)?;
        if let Some(dynamics) = self.dynamics {
            checkpoints.thin(self.epochs, &dynamics.epochs);
        }
        Ok(())
    }

    /// Refuses checkpoints of `[dynamics]` that this training would not leave.
    fn check_steps<L: Learner>(&self, run: &Run<L>, checkpoints: &Checkpoints) -> Result<(), Error> {
        let Some(dynamics) = self.dynamics else { return Ok(()) };
        if let Some(&step) = dynamics.steps.iter().find(|&&step| step > run.steps()) {
            return Err(Error::NoSuchStep { spec: self.path.to_owned(), step, steps: run.steps() });
        }
        let passed: Vec<usize> =
            dynamics.steps.iter().copied().filter(|&step| step <= run.adam.steps()).collect();
        let missing = |folder| Error::NoTrainingCheckpoint { folder, spec: self.path.to_owned() };
        checkpoints.kept(&[], &passed).map(drop).map_err(missing)
    }

    /// Makes the model's folder, anew with `overwrite`.
    fn prepare(&self, folder: &Path, overwrite: bool) -> Result<(), Error> {
        let fault = |source| Error::Write { path: folder.to_owned(), source };
        if overwrite && folder.exists() {
            fs::remove_dir_all(folder).map_err(fault)?;
        }
        fs::create_dir_all(folder).map_err(fault)?;
        replace(&folder.join(SETTINGS), &format!("{:#}\n", self.settings))
    }

    /// The training loop after the epoch `last`, with as many shards as it had.
    fn begin<L: Learner>(
        &self,
        learner: L,
        adam: Adam,
        train: &L::Examples,
        last: Option<&EpochState>,
    ) -> Result<Run<L>, Error> {
        let done = last.map_or(0, |state| state.row.epoch);
        let in_epoch = |epoch| learner.batches(train, epoch_seed(self.seed, epoch)).len();
        let to_go: usize = (done + 1..=self.epochs).map(in_epoch).sum();
        let progress = Progress::new(to_go, self.machine.quiet);
        progress
            .line(&format!("training `{}`: {} epochs in all, {to_go} steps to go", self.name, self.epochs));
        let shards = last.map_or(self.machine.workers(), |state| state.shards);
        let steps = adam.steps() + to_go;
        Run::new(learner, adam, shards, (self.seed, self.clip_norm), steps, progress)
    }

    /// Trains one epoch.
    fn epoch<L: Learner>(
        &self,
        run: &mut Run<L>,
        epoch: usize,
        (material, checkpoints): (&Material<L::Examples>, &Checkpoints),
        best: Option<&TrainingRow>,
    ) -> Result<EpochState, Error> {
        let wanted = |step| self.dynamics.is_some_and(|dynamics| dynamics.steps.contains(&step));
        let after_step = |learner: &L, step| match wanted(step) {
            true => checkpoints.save_step(learner, step),
            false => Ok(()),
        };
        let train_loss = run.epoch(epoch, &material.train, after_step)?;
        let dev = run.dev_score(&material.dev)?;
        let step = run.adam.steps();
        if !dev.loss.is_finite() {
            return Err(Error::Diverged { epoch, step });
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

    /// The training curve, with the rows of the epochs that are there.
    fn open_curve(&self, identity: Identity, states: &[EpochState]) -> Result<RowWriter<TrainingRow>, Error> {
        let run = Provenance::collect(&self.machine.device_name(), self.machine.threads, crate::libraries());
        let signature = Signature::new(identity, run);
        let path = self.results.join(self.name).join("training.csv");
        let open = |existing| RowWriter::<TrainingRow>::open(&path, &signature, existing);
        // The curve of a model that is not there, such as a reference result, is replaced by that of its successor.
        let mut curve = open(if states.is_empty() { Existing::Overwrite } else { Existing::Continue })?;
        if curve.rows().any(|row| row.epoch > states.len()) {
            // Rows of a run whose checkpoints are not there, on another machine perhaps.
            drop(curve);
            curve = open(Existing::Overwrite)?;
        }
        for state in states {
            if !curve.contains(&state.row.key()) {
                curve.push(state.row.clone())?;
            }
        }
        Ok(curve)
    }
}

/// The checkpoints of a trained model that the subject's file asks for, in the order of training.
///
/// # Errors
/// If one is not there: it was not asked for when the model was trained.
pub(crate) fn checkpoints(
    naming: Naming<'_>,
    machine: &Machine,
    (epochs, dynamics): (usize, Option<&DynamicsSpec>),
) -> Result<Vec<TrainingCheckpoint>, Error> {
    let every: Vec<usize> = (1..=epochs).collect();
    let (epochs, steps): (&[usize], &[usize]) =
        dynamics.map_or((&every, &[]), |dynamics| (&dynamics.epochs, &dynamics.steps));
    let missing = |folder| Error::NoTrainingCheckpoint { folder, spec: naming.path.to_owned() };
    Checkpoints::new(&machine.model_folder(naming.name)).kept(epochs, steps).map_err(missing)
}

/// The best epoch so far; the first of equals.
fn best(states: &[EpochState]) -> Option<&TrainingRow> {
    let rows = states.iter().map(|state| &state.row);
    rows.reduce(|best, row| if is_better(row, best) { row } else { best })
}

/// By development score or, without one, by development loss.
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
