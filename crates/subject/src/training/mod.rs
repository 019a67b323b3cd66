//! Training a translator from nothing: Vaswani et al. (2017), Section 5, with a peak learning rate of its own.
//!
//! An epoch's batches and dropout are functions of the seed and its number, and it is saved whole, so a run that is
//! killed goes on from its last epoch with the losses of an unbroken run.
mod adam;
mod pairs;
mod run;
mod state;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use core_masking::marian::Marian;
use corpus::parallel::ParallelText;
use corpus::tokenizer::SubwordTokenizer;
use records::{Existing, Identity, Provenance, Row, RowWriter, Signature, TrainingRow};
use serde_json::{Value, json};
use tch::{Device, Kind};

use crate::args::Machine;
use crate::progress::Progress;
use crate::spec::Spec;
use crate::{Error, data};
use adam::Adam;
use pairs::Pairs;
use run::{Run, batches, learning_rate};
use state::{Checkpoints, EpochState, replace, trainable};

/// The settings that a model was trained from, beside it.
const SETTINGS: &str = "settings.json";

/// A subject whose model is to be trained.
#[derive(Debug)]
pub struct Training<'a> {
    /// Name of the subject.
    pub name: &'a str,
    /// Its TOML file, for messages.
    pub path: &'a Path,
    /// What the file says.
    pub spec: &'a Spec,
    /// Where to compute and to keep the model.
    pub machine: &'a Machine,
    /// Folder of the results; the training curve goes to `<results>/<subject>/training.csv`.
    pub results: &'a Path,
}

impl Training<'_> {
    /// Trains the model unless it is there; goes on where a killed run stopped. Returns the model's folder.
    ///
    /// With `overwrite` the model is trained anew, and what is there is removed when training can begin. A model
    /// without a record of its settings was not trained here and is taken as it is.
    ///
    /// # Errors
    /// If data is missing or at fault, the model there was trained from other settings, a file cannot be written,
    /// or the loss is no longer a number.
    pub fn run(&self, overwrite: bool) -> Result<PathBuf, Error> {
        let folder = self.machine.model_folder(self.name);
        if !overwrite {
            self.check_settings(&folder)?;
        }
        if overwrite || !folder.join("model.safetensors").exists() {
            self.train(&folder, overwrite)?;
        }
        Ok(folder)
    }

    /// All that the weights depend on, as far as the subject's file says.
    fn settings(&self) -> Value {
        let Spec { data, tokenizer, model, training, .. } = self.spec;
        let files = [&data.train, &data.dev].map(|split| data.splits.get(split));
        json!({
            "grammar": data.grammar, "files": files,
            "tokenizer": tokenizer, "model": model, "training": training,
        })
    }

    /// Refuses to mix two settings in one folder.
    fn check_settings(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(SETTINGS);
        let stored = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice::<Value>(&bytes).ok(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(Error::Read { path, source }),
        };
        if stored == Some(self.settings()) {
            return Ok(());
        }
        Err(Error::OtherSettings { folder: folder.to_owned(), spec: self.path.to_owned() })
    }

    fn train(&self, folder: &Path, overwrite: bool) -> Result<(), Error> {
        tch::set_num_threads(1); // each shard computes alone, see `Run`
        let data = &self.spec.data;
        let train = data::read_split(data, &self.machine.data, &data.train)?;
        let dev = data::read_split(data, &self.machine.data, &data.dev)?;
        let checkpoints = Checkpoints::new(folder);
        let states = if overwrite { Vec::new() } else { checkpoints.states()? };
        let mut curve = self.open_curve(&train, &dev, &states, overwrite)?;
        if overwrite && folder.exists() {
            fs::remove_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        }
        let tokenizer = self.tokenizer(folder, &train)?;
        let (train, dev) =
            (self.encode(&tokenizer, &train, &data.train)?, self.encode(&tokenizer, &dev, &data.dev)?);
        replace(&folder.join(SETTINGS), &format!("{:#}\n", self.settings()))?;

        let last = states.last();
        let (model, adam) = match last {
            Some(last) => checkpoints.load(last, self.spec.training.adam_betas, self.machine.device)?,
            None => self.start(&tokenizer)?,
        };
        let mut run = self.begin(&model, adam, &train, last)?;
        let mut best = last.map_or((0, f64::INFINITY), |state| (state.best_epoch, state.best_loss));
        for epoch in states.len() + 1..=self.spec.training.epochs {
            let state = self.epoch(&mut run, epoch, [&train, &dev], &mut best)?;
            checkpoints.save(&model, &run.adam, &state)?;
            curve.push(state.row)?;
        }
        curve.finish(|_| ())?;
        run.progress.line(&format!("epoch {} is the best: dev loss {:.4} nats a token", best.0, best.1));
        checkpoints.publish(best.0, folder)
    }

    /// The training loop after the epoch `last`, with as many shards as it had.
    fn begin(
        &self,
        model: &Marian,
        adam: Adam,
        train: &Pairs,
        last: Option<&EpochState>,
    ) -> Result<Run, Error> {
        let settings = self.spec.training;
        let done = last.map_or(0, |state| state.row.epoch);
        let steps = (done + 1..=settings.epochs).map(|epoch| batches(&settings, train, epoch).len()).sum();
        let progress = Progress::new(steps, self.machine.quiet);
        progress.line(&format!(
            "training `{}`: {} sentence pairs, {} epochs, {steps} steps to go",
            self.name,
            train.len(),
            settings.epochs
        ));
        let threads = if self.machine.device == Device::Cpu { self.machine.threads } else { 1 };
        Run::new(model, adam, settings, last.map_or(threads, |state| state.shards), progress)
    }

    /// Trains one epoch; `best` is the epoch with the lowest dev loss and that loss.
    fn epoch(
        &self,
        run: &mut Run,
        epoch: usize,
        [train, dev]: [&Pairs; 2],
        best: &mut (usize, f64),
    ) -> Result<EpochState, Error> {
        let train_loss = run.epoch(epoch, train)?;
        let dev_loss = run.dev_loss(dev);
        let step = run.adam.steps();
        if !dev_loss.is_finite() {
            return Err(Error::Diverged { epoch, step });
        }
        let is_best = dev_loss < best.1;
        if is_best {
            *best = (epoch, dev_loss);
        }
        let learning_rate = learning_rate(&self.spec.training, step);
        let row = TrainingRow { epoch, step, train_loss, dev_loss, learning_rate, best: is_best };
        Ok(EpochState { row, best_epoch: best.0, best_loss: best.1, shards: run.shards() })
    }

    /// The training curve, with the rows of the epochs that are there.
    fn open_curve(
        &self,
        train: &ParallelText,
        dev: &ParallelText,
        states: &[EpochState],
        overwrite: bool,
    ) -> Result<RowWriter<TrainingRow>, Error> {
        let run = Provenance::collect(&self.machine.device_name(), self.machine.threads, crate::libraries());
        let signature = Signature::new(self.identity(train, dev), run);
        let path = self.results.join(self.name).join("training.csv");
        let open = |existing| RowWriter::<TrainingRow>::open(&path, &signature, existing);
        let mut curve = open(if overwrite { Existing::Overwrite } else { Existing::Continue })?;
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

    fn identity(&self, train: &ParallelText, dev: &ParallelText) -> Identity {
        let spec = self.spec;
        let mut identity = Identity::new("train-subject", self.name);
        identity.split.clone_from(&spec.data.train);
        identity.seed = spec.training.seed;
        identity.precision = "f32".to_owned();
        identity.metric = "cross-entropy, nats per target token".to_owned();
        identity.arguments = BTreeMap::from([
            ("model".to_owned(), json!(spec.model)),
            ("tokenizer".to_owned(), json!(spec.tokenizer)),
            ("training".to_owned(), json!(spec.training)),
        ]);
        identity.data = BTreeMap::from([
            (spec.data.train.clone(), data::sha256(train)),
            (spec.data.dev.clone(), data::sha256(dev)),
        ]);
        identity
    }

    /// The tokeniser of a run that was begun, or a new one.
    fn tokenizer(&self, folder: &Path, train: &ParallelText) -> Result<SubwordTokenizer, Error> {
        let path = folder.join("tokenizer.json");
        if path.exists() {
            return Ok(SubwordTokenizer::load(&path)?);
        }
        let lines = train.source.iter().chain(&train.target);
        let tokenizer = SubwordTokenizer::train(lines, self.spec.tokenizer.vocabulary)?;
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        let partial = folder.join("tokenizer.json.partial");
        tokenizer.save(&partial)?;
        fs::rename(&partial, &path).map_err(|source| Error::Write { path, source })?;
        Ok(tokenizer)
    }

    /// Token ids of the pairs that fit the model; says how many do not.
    fn encode(&self, tokenizer: &SubwordTokenizer, text: &ParallelText, split: &str) -> Result<Pairs, Error> {
        let positions = self.spec.model.positions;
        let pairs = Pairs::encode(tokenizer, text, positions);
        let left_out = text.len() - pairs.len();
        if pairs.len() == 0 {
            return Err(Error::AllTooLong { split: split.to_owned(), positions });
        }
        if left_out > 0 && !self.machine.quiet {
            eprintln!(
                "split `{split}`: left out {left_out} of {} pairs longer than {positions} tokens",
                text.len()
            );
        }
        Ok(pairs)
    }

    fn start(&self, tokenizer: &SubwordTokenizer) -> Result<(Marian, Adam), Error> {
        let config = self.spec.config(tokenizer);
        let options = (Kind::Float, self.machine.device);
        let model = trainable(&Marian::random(config, self.spec.training.seed, options)?)?;
        let adam = Adam::new(model.weights(), self.spec.training.adam_betas);
        Ok((model, adam))
    }
}
