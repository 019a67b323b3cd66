//! Training a translator from nothing: Vaswani et al. (2017), Section 5, with a constant peak learning rate.
//!
//! Each epoch seeds libtorch anew and is saved whole, so a run that is killed goes on from its last epoch with the
//! losses of an unbroken run.
mod adam;
mod state;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use core_masking::loss::{PairBatch, sentence_losses, training_loss};
use core_masking::marian::Marian;
use core_masking::{Dropout, Gates};
use corpus::batches::{length_sorted, shuffled};
use corpus::parallel::ParallelText;
use corpus::tokenizer::SubwordTokenizer;
use rayon::prelude::*;
use records::{Existing, Identity, Provenance, RowWriter, Signature, TrainingRow};
use tch::{Device, Kind, Tensor, no_grad};

use crate::args::Machine;
use crate::progress::Progress;
use crate::spec::{Spec, TrainingSpec};
use crate::{Error, data};
use adam::Adam;
use state::{Checkpoints, EpochState, trainable};

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

/// Sentences as token ids.
struct Pairs {
    sources: Vec<Vec<u32>>,
    targets: Vec<Vec<u32>>,
}

impl Training<'_> {
    /// Trains the model unless it is there; goes on where a killed run stopped. Returns the model's folder.
    ///
    /// With `overwrite`, what is there is removed first.
    ///
    /// # Errors
    /// If data is missing or at fault, the model there was trained from other settings, a file cannot be written,
    /// or the loss is no longer a number.
    pub fn run(&self, overwrite: bool) -> Result<PathBuf, Error> {
        let folder = self.machine.model_folder(self.name);
        if overwrite && folder.exists() {
            fs::remove_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        }
        self.check_settings(&folder)?;
        if !folder.join("model.safetensors").exists() {
            self.train(&folder)?;
        }
        Ok(folder)
    }

    /// Refuses to mix two settings in one folder; the first run writes them down.
    fn check_settings(&self, folder: &Path) -> Result<(), Error> {
        let spec = self.spec;
        let settings = serde_json::json!({
            "data": spec.data, "tokenizer": spec.tokenizer, "model": spec.model, "training": spec.training,
        });
        let path = folder.join(SETTINGS);
        match fs::read(&path) {
            Ok(bytes)
                if serde_json::from_slice::<serde_json::Value>(&bytes).ok().as_ref() == Some(&settings) =>
            {
                Ok(())
            }
            Ok(_) => Err(Error::OtherSettings {
                folder: folder.to_owned(),
                spec: self.path.to_owned(),
                name: self.name.to_owned(),
            }),
            Err(_) => {
                fs::create_dir_all(folder)
                    .map_err(|source| Error::Write { path: folder.to_owned(), source })?;
                state::write(&path, format!("{settings:#}\n"))
            }
        }
    }

    fn train(&self, folder: &Path) -> Result<(), Error> {
        tch::set_num_threads(1); // each thread computes alone, see `Run`
        let data = &self.spec.data;
        let train = data::read_split(data, &self.machine.data, &data.train)?;
        let dev = data::read_split(data, &self.machine.data, &data.dev)?;
        let checkpoints = Checkpoints::new(folder);
        let states = checkpoints.states()?;
        let mut curve = self.open_curve(&train, &dev, &states)?;

        let tokenizer = self.tokenizer(folder, &train)?;
        let (train, dev) = (self.encode(&tokenizer, &train)?, self.encode(&tokenizer, &dev)?);
        let (model, adam) = match states.last() {
            Some(last) => checkpoints.load(last, self.spec.training.adam_betas, self.machine.device)?,
            None => self.start(&tokenizer)?,
        };
        let epochs = self.spec.training.epochs;
        let steps: usize = (states.len() + 1..=epochs).map(|epoch| self.batches(&train, epoch).len()).sum();
        let shards = if self.machine.device == Device::Cpu { self.machine.threads } else { 1 };
        let mut run = Run {
            settings: self.spec.training,
            shards: (0..shards).map(|_| Shard::new(&model)).collect::<Result<_, _>>()?,
            adam,
            progress: Progress::new(steps, self.machine.quiet),
        };
        run.progress.line(&format!(
            "training `{}`: {} sentence pairs, {} epochs, {steps} steps to go",
            self.name,
            train.sources.len(),
            epochs
        ));
        let mut best = states.last().map_or((0, f64::INFINITY), |state| (state.best_epoch, state.best_loss));
        for epoch in states.len() + 1..=epochs {
            let train_loss = run.epoch(epoch, &train, &self.batches(&train, epoch))?;
            let dev_loss = run.dev_loss(&dev);
            let is_best = dev_loss < best.1;
            if is_best {
                best = (epoch, dev_loss);
            }
            let step = run.adam.steps();
            let learning_rate = learning_rate(&self.spec.training, step);
            let row = TrainingRow { epoch, step, train_loss, dev_loss, learning_rate, best: is_best };
            let state = EpochState { row: row.clone(), best_epoch: best.0, best_loss: best.1 };
            checkpoints.save(&model, &run.adam, &state)?;
            curve.push(row)?;
        }
        curve.finish(|_| ())?;
        run.progress.line(&format!("epoch {} is the best: dev loss {:.4} nats a token", best.0, best.1));
        checkpoints.publish(best.0, folder)
    }

    /// The training curve, with the rows of the epochs that are there.
    fn open_curve(
        &self,
        train: &ParallelText,
        dev: &ParallelText,
        states: &[EpochState],
    ) -> Result<RowWriter<TrainingRow>, Error> {
        let spec = self.spec;
        let mut identity = Identity::new("train-subject", self.name);
        identity.split = spec.data.train.clone();
        identity.seed = spec.training.seed;
        identity.precision = "f32".to_owned();
        identity.metric = "cross-entropy, nats per target token".to_owned();
        identity.arguments = BTreeMap::from([
            ("model".to_owned(), serde_json::json!(spec.model)),
            ("tokenizer".to_owned(), serde_json::json!(spec.tokenizer)),
            ("training".to_owned(), serde_json::json!(spec.training)),
        ]);
        identity.data = BTreeMap::from([
            (spec.data.train.clone(), data::sha256(train)),
            (spec.data.dev.clone(), data::sha256(dev)),
        ]);
        let run = Provenance::collect(&self.machine.device_name(), self.machine.threads, crate::libraries());
        let path = self.results.join(self.name).join("training.csv");
        // Without a checkpoint nothing can be continued: rows that are there belong to another run.
        let existing = if states.is_empty() { Existing::Overwrite } else { Existing::Continue };
        let mut curve = RowWriter::open(&path, &Signature::new(identity, run), existing)?;
        for state in states {
            if !curve.contains(&records::Row::key(&state.row)) {
                curve.push(state.row.clone())?;
            }
        }
        Ok(curve)
    }

    /// The tokeniser of a run that was begun, or a new one.
    fn tokenizer(&self, folder: &Path, train: &ParallelText) -> Result<SubwordTokenizer, Error> {
        let path = folder.join("tokenizer.json");
        if path.exists() {
            return Ok(SubwordTokenizer::load(&path)?);
        }
        let lines = train.source.iter().chain(&train.target);
        let tokenizer = SubwordTokenizer::train(lines, self.spec.tokenizer.vocabulary)?;
        tokenizer.save(&path)?;
        Ok(tokenizer)
    }

    /// Token ids of the pairs that fit the model; says how many do not.
    fn encode(&self, tokenizer: &SubwordTokenizer, text: &ParallelText) -> Result<Pairs, Error> {
        let mut pairs = Pairs { sources: Vec::new(), targets: Vec::new() };
        for (source, target) in text.source.iter().zip(&text.target) {
            let (source, target) = (tokenizer.encode(source), tokenizer.encode(target));
            if source.len().max(target.len()) as i64 <= self.spec.model.positions {
                pairs.sources.push(source);
                pairs.targets.push(target);
            }
        }
        let left_out = text.len() - pairs.sources.len();
        if left_out > 0 && !self.machine.quiet {
            let positions = self.spec.model.positions;
            eprintln!("left out: {left_out} of {} pairs are longer than {positions} tokens", text.len());
        }
        if pairs.sources.is_empty() {
            return Err(Error::EmptySplit { split: self.spec.data.train.clone() });
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

    fn batches(&self, pairs: &Pairs, epoch: usize) -> Vec<Vec<usize>> {
        shuffled(&pairs.lengths(), self.spec.training.batch_tokens, epoch_seed(&self.spec.training, epoch))
    }
}

impl Pairs {
    fn lengths(&self) -> Vec<(usize, usize)> {
        self.sources.iter().zip(&self.targets).map(|(source, target)| (source.len(), target.len())).collect()
    }

    fn target_tokens(&self, rows: &[usize]) -> usize {
        rows.iter().map(|&row| self.targets[row].len()).sum()
    }

    fn batch(&self, model: &Marian, rows: &[usize]) -> PairBatch {
        fn side<'a>(sentences: &'a [Vec<u32>], rows: &[usize]) -> Vec<&'a [u32]> {
            rows.iter().map(|&row| sentences[row].as_slice()).collect()
        }
        PairBatch::new(model, &side(&self.sources, rows), &side(&self.targets, rows))
    }
}

/// A model in training. Each thread takes a part of each batch on a model of its own, which shares the weights.
struct Run {
    settings: TrainingSpec,
    shards: Vec<Shard>,
    adam: Adam,
    progress: Progress,
}

/// What one thread works with.
struct Shard {
    model: Marian,
    open: Gates,
    dropout: Dropout,
}

impl Shard {
    fn new(model: &Marian) -> Result<Self, Error> {
        let open = Gates::open(&model.layout(), model.options());
        Ok(Self { model: model.share()?, open, dropout: Dropout::OFF })
    }

    /// The loss of these pairs, in nats, and its gradient; both are sums divided by `tokens`.
    fn gradients(&self, pairs: &Pairs, rows: &[usize], smoothing: f64, tokens: usize) -> (f64, Vec<Tensor>) {
        let batch = pairs.batch(&self.model, rows);
        let loss = training_loss(&self.model, &batch, &self.open, smoothing, &self.dropout) / tokens as f64;
        (loss.double_value(&[]), adam::gradients(&loss, self.model.weights()))
    }

    /// The loss of these pairs in nats, summed, without dropout and label smoothing.
    fn loss(&self, pairs: &Pairs, rows: &[usize]) -> f64 {
        let batch = pairs.batch(&self.model, rows);
        let losses = no_grad(|| sentence_losses(&self.model, &batch, &self.open));
        losses.sum(Kind::Double).double_value(&[])
    }
}

impl Run {
    /// One pass over the training data; returns the mean loss in nats per token.
    fn epoch(&mut self, epoch: usize, train: &Pairs, batches: &[Vec<usize>]) -> Result<f64, Error> {
        let rate = self.shards[0].model.config().dropout;
        for (shard, place) in self.shards.iter_mut().zip(1..) {
            shard.dropout = Dropout::new(rate, epoch_seed(&self.settings, epoch).wrapping_add(place << 32));
        }
        let started = Instant::now();
        let (mut sum, mut seen) = (0.0, 0);
        for rows in batches {
            let tokens = train.target_tokens(rows);
            let loss = self.step(train, rows, tokens);
            if !loss.is_finite() {
                return Err(Error::Diverged { epoch, step: self.adam.steps(), loss });
            }
            sum += loss * tokens as f64;
            seen += tokens;
            let speed = seen as f64 / started.elapsed().as_secs_f64();
            self.progress
                .message(format!("epoch {epoch}  loss {:.3}  {speed:.0} target tokens/s", sum / seen as f64));
            self.progress.advance();
        }
        Ok(sum / seen as f64)
    }

    /// One update; returns the batch's loss in nats per token.
    fn step(&mut self, train: &Pairs, rows: &[usize], tokens: usize) -> f64 {
        let settings = self.settings;
        let parts = rows.chunks(rows.len().div_ceil(self.shards.len()));
        let parts: Vec<&[usize]> = parts.collect();
        let results: Vec<(f64, Vec<Tensor>)> = self
            .shards
            .par_iter_mut()
            .zip(parts)
            .map(|(shard, rows)| shard.gradients(train, rows, settings.label_smoothing, tokens))
            .collect();
        let (losses, gradients): (Vec<f64>, Vec<Vec<Tensor>>) = results.into_iter().unzip();
        let learning_rate = learning_rate(&settings, self.adam.steps() + 1);
        self.adam.update(gradients, learning_rate, settings.clip_norm);
        losses.iter().sum()
    }

    /// Nats per target token, without dropout and label smoothing.
    fn dev_loss(&mut self, dev: &Pairs) -> f64 {
        let batches = length_sorted(&dev.lengths(), self.settings.batch_tokens);
        let threads = self.shards.len();
        let sums: Vec<f64> = self
            .shards
            .par_iter_mut()
            .enumerate()
            .map(|(first, shard)| {
                batches.iter().skip(first).step_by(threads).map(|rows| shard.loss(dev, rows)).sum()
            })
            .collect();
        sums.iter().sum::<f64>() / dev.targets.iter().map(Vec::len).sum::<usize>() as f64
    }
}

/// Linear warm-up, then the inverse square root of the step. `step` counts from 1.
fn learning_rate(settings: &TrainingSpec, step: usize) -> f64 {
    let (step, warmup) = (step as f64, settings.warmup_steps as f64);
    settings.peak_learning_rate * (step / warmup).min((warmup / step).sqrt())
}

/// Seed of an epoch's batches and dropout; the initial weights take epoch 0.
fn epoch_seed(settings: &TrainingSpec, epoch: usize) -> u64 {
    settings.seed.wrapping_mul(1_000_003).wrapping_add(epoch as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peak 1 after 4 steps: 1/4, 2/4, 3/4, 1, and then sqrt(4/16) = 1/2 at step 16.
    #[test]
    fn the_learning_rate_rises_linearly_and_falls_with_the_root() {
        let settings = TrainingSpec {
            seed: 0,
            epochs: 1,
            batch_tokens: 1,
            peak_learning_rate: 1.0,
            warmup_steps: 4,
            label_smoothing: 0.0,
            clip_norm: 1.0,
            adam_betas: [0.9, 0.98],
        };
        let rates = [1, 2, 3, 4, 16].map(|step| learning_rate(&settings, step));
        assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 0.5]);
    }
}
