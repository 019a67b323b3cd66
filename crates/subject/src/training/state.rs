//! What a training run leaves on disk: a model folder for each epoch, and what an exact resume needs.
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::Weights;
use records::TrainingRow;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind};

use crate::Error;
use crate::training::adam::Adam;
use crate::training::learner::Learner;

const MOMENTS: &str = "optimizer.safetensors";
const STATE: &str = "state.json";

/// Where training stands after an epoch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EpochState {
    /// The epoch's line in the training curve.
    pub row: TrainingRow,
    /// The number of parts that batches were divided into.
    pub shards: usize,
}

/// The folder of a model in training.
#[derive(Debug)]
pub(super) struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.join("epochs") }
    }

    /// The model folder of an epoch.
    pub(super) fn epoch(&self, epoch: usize) -> PathBuf {
        self.folder.join(epoch.to_string())
    }

    /// The states of all epochs there are, in order.
    pub(super) fn states(&self) -> Result<Vec<EpochState>, Error> {
        let mut states = Vec::new();
        loop {
            let path = self.epoch(states.len() + 1).join(STATE);
            match fs::read(&path) {
                Ok(bytes) => states.push(serde_json::from_slice(&bytes).map_err(|error| Error::Spec {
                    path,
                    fault: format!("not the state of a training run: {error}"),
                })?),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(states),
                Err(source) => return Err(Error::Read { path, source }),
            }
        }
    }

    /// Writes an epoch: all of it or, if the process is killed, nothing. The moments of the epoch before go.
    pub(super) fn save(&self, model: &impl Learner, adam: &Adam, state: &EpochState) -> Result<(), Error> {
        let epoch = state.row.epoch;
        let partial = self.folder.join(format!("{epoch}.partial"));
        model.save(&partial)?;
        adam.state().write(&partial.join(MOMENTS))?;
        let json = serde_json::to_string_pretty(state).expect("a state has only text keys");
        replace(&partial.join(STATE), &(json + "\n"))?;
        let place = self.epoch(epoch);
        fs::rename(&partial, &place).map_err(|source| Error::Write { path: place, source })?;
        let _ = fs::remove_file(self.epoch(epoch - 1).join(MOMENTS)); // only saves space
        Ok(())
    }

    /// Gives the optimiser the moments that it had after an epoch.
    pub(super) fn restore(&self, adam: &mut Adam, state: &EpochState, device: Device) -> Result<(), Error> {
        let path = self.epoch(state.row.epoch).join(MOMENTS);
        let moments = Weights::read(&path, (Kind::Float, device))?;
        moments.check(&path, &adam.inventory())?;
        Ok(adam.restore(&moments, state.row.step)?)
    }

    /// Makes an epoch the model of the subject. The weights come last: where they are, all is.
    pub(super) fn publish(&self, epoch: usize, folder: &Path) -> Result<(), Error> {
        for name in ["config.json", "model.safetensors"] {
            let (place, partial) = (folder.join(name), folder.join(format!("{name}.partial")));
            fs::copy(self.epoch(epoch).join(name), &partial)
                .and_then(|_| fs::rename(&partial, &place))
                .map_err(|source| Error::Write { path: place, source })?;
        }
        Ok(())
    }
}

/// Writes a file: all of it or, if the process is killed, nothing.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let partial = path.with_extension("partial");
    fs::write(&partial, text)
        .and_then(|()| fs::rename(&partial, path))
        .map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Writes a file by way of another, unless it is there: a run that is continued has it already.
pub(crate) fn write_once(path: &Path, write: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    if path.exists() {
        return Ok(());
    }
    let partial = path.with_extension("partial");
    write(&partial)?;
    fs::rename(&partial, path).map_err(|source| Error::Write { path: path.to_owned(), source })
}
