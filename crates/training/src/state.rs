//! Files of a training run: a model folder for each epoch, and the state for an exact resume.
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use core_masking::Weights;
use records::TrainingRow;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind};

use crate::adam::Adam;
use crate::error::Error;
use crate::gates;
use crate::learner::{Learner, Objective};

const MOMENTS: &str = "optimizer.safetensors";
const STATE: &str = "state.json";
const MODEL: &str = "model.safetensors";

/// Upper bound on the steps of any training run.
const MAX_STEPS: usize = 1 << 40;
/// Upper bound on the threads of any machine.
const MAX_SHARDS: usize = 1 << 12;

/// State of a training run after an epoch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EpochState {
    /// The epoch's row in the training curve.
    pub row: TrainingRow,
    /// Number of shards that batches were divided into.
    pub shards: NonZeroUsize,
}

impl EpochState {
    /// Returns the state if it is valid for this epoch.
    fn checked(self, epoch: usize) -> Result<Self, String> {
        let Self { row, shards } = &self;
        if row.epoch == epoch && row.step <= MAX_STEPS && shards.get() <= MAX_SHARDS {
            return Ok(self);
        }
        let (step, shards) = (row.step, self.shards);
        Err(format!("epoch {}, step {step} and {shards} shards where epoch {epoch} is expected", row.epoch))
    }
}

/// Checkpoints to keep when training has ended.
#[derive(Debug, Clone, Copy)]
pub struct Stay<'a> {
    /// At the end of these epochs, counted from 1.
    pub epochs: &'a [usize],
    /// After these parameter updates.
    pub steps: &'a [usize],
}

/// A model at some point of its training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingCheckpoint {
    /// Epoch that ended there, counted from 1; `None` within an epoch.
    pub epoch: Option<usize>,
    /// Parameter updates so far.
    pub updates: usize,
    /// Folder of its configuration and weights.
    pub folder: PathBuf,
}

/// Folder of a model and the checkpoints of its training.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn epochs(&self) -> PathBuf {
        self.folder.join("epochs")
    }

    /// Returns the model folder of an epoch.
    pub(crate) fn epoch(&self, epoch: usize) -> PathBuf {
        self.epochs().join(epoch.to_string())
    }

    /// Returns the model folder of a step within an epoch.
    fn step(&self, step: usize) -> PathBuf {
        self.folder.join("steps").join(step.to_string())
    }

    /// Returns the checkpoints to keep, in the order of training; `spec` is the file that describes the training, for messages.
    ///
    /// # Errors
    /// If a checkpoint is missing, because it was not requested when the model was trained.
    pub(crate) fn kept(&self, spec: &Path, stay: Stay<'_>) -> Result<Vec<TrainingCheckpoint>, Error> {
        let missing = |folder: &Path| {
            let (folder, spec) = (folder.display(), spec.display());
            let again = format!("train again with `train-subject {spec} --again`");
            Error::Invalid(format!("no checkpoint in `{folder}`: {again}, which keeps those in [dynamics]"))
        };
        let mut kept = Vec::new();
        for &epoch in stay.epochs {
            let folder = self.epoch(epoch);
            let state = fs::read(folder.join(STATE)).ok();
            let state: Option<EpochState> = state.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let state = state.filter(|_| folder.join(MODEL).exists()).ok_or_else(|| missing(&folder))?;
            kept.push(TrainingCheckpoint { epoch: Some(epoch), updates: state.row.step, folder });
        }
        for &step in stay.steps {
            let folder = self.step(step);
            if !folder.join(MODEL).exists() {
                return Err(missing(&folder));
            }
            kept.push(TrainingCheckpoint { epoch: None, updates: step, folder });
        }
        kept.sort_by_key(|checkpoint| (checkpoint.updates, checkpoint.epoch));
        kept.dedup_by_key(|checkpoint| checkpoint.updates); // of a step at the end of an epoch
        Ok(kept)
    }

    /// Returns the states of all completed epochs, in order.
    pub(crate) fn states(&self) -> Result<Vec<EpochState>, Error> {
        let mut states = Vec::new();
        loop {
            let epoch = states.len() + 1;
            let path = self.epoch(epoch).join(STATE);
            match fs::read(&path) {
                Ok(bytes) => {
                    let read =
                        serde_json::from_slice::<EpochState>(&bytes).map_err(|error| error.to_string());
                    let state = read.and_then(|state| state.checked(epoch)).map_err(|fault| {
                        Error::Invalid(format!(
                            "`{}`: not the state of a training run: {fault}",
                            path.display()
                        ))
                    })?;
                    states.push(state);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(states),
                Err(source) => return Err(Error::read(&path, source)),
            }
        }
    }

    /// Writes an epoch completely or, if the process is killed, not at all. Removes the moments of the previous epoch.
    pub(crate) fn save<O: Objective>(
        &self,
        model: &Learner<O>,
        adam: &Adam,
        state: &EpochState,
    ) -> Result<(), Error> {
        let epoch = state.row.epoch;
        durable::replace_folder(&self.epoch(epoch), |partial| {
            model.save(partial)?;
            adam.state().write(&partial.join(MOMENTS))?;
            let json = serde_json::to_string_pretty(state).expect("a state has only text keys");
            Ok::<_, Error>(durable::write(&partial.join(STATE), json + "\n")?)
        })?;
        let _ = fs::remove_file(self.epoch(epoch - 1).join(MOMENTS)); // only saves space
        Ok(())
    }

    /// Writes the model after a step within an epoch, replacing what a killed run left.
    pub(crate) fn save_step<O: Objective>(&self, model: &Learner<O>, step: usize) -> Result<(), Error> {
        durable::replace_folder(&self.step(step), |partial| model.save(partial))
    }

    /// Removes the weights of an epoch; its state stays for resuming.
    pub(crate) fn drop_weights(&self, epoch: usize) {
        let _ = fs::remove_file(self.epoch(epoch).join(MODEL)); // only saves space
    }

    /// Removes all epochs up to `last` except `kept`, once none is needed for resuming.
    pub(crate) fn thin(&self, last: usize, kept: &[usize]) {
        for epoch in (1..=last).filter(|epoch| !kept.contains(epoch)) {
            let _ = fs::remove_dir_all(self.epoch(epoch)); // only saves space
        }
        let _ = fs::remove_file(self.epoch(last).join(MOMENTS));
    }

    /// Restores the moments that the optimiser had after an epoch.
    pub(crate) fn restore(&self, adam: &mut Adam, state: &EpochState, device: Device) -> Result<(), Error> {
        let path = self.epoch(state.row.epoch).join(MOMENTS);
        let moments = Weights::read(&path, (Kind::Float, device))?;
        moments.check(&path, &adam.inventory())?;
        Ok(adam.restore(&moments, state.row.step)?)
    }

    /// Makes an epoch the final model of the folder.
    pub(crate) fn publish(&self, epoch: usize) -> Result<(), Error> {
        let is_there = |name: &&str| self.epoch(epoch).join(name).exists();
        for name in ["config.json", MODEL].into_iter().chain([gates::FILE].into_iter().filter(is_there)) {
            let from = self.epoch(epoch).join(name);
            let bytes = fs::read(&from).map_err(|source| Error::read(&from, source))?;
            durable::write(&self.folder.join(name), bytes)?;
        }
        Ok(())
    }
}

/// Writes a file via a temporary file, unless it exists: a resumed run has it already.
pub fn write_once<E: From<durable::Error>>(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    if path.exists() { Ok(()) } else { durable::replace_file(path, write) }
}
