//! Further training of a trained model under gates, for any task.
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use core_masking::HardConcrete;
use records::{Attention, Identity, Scope, Signature, TrainingRow, read_complete};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tch::Kind;
use training::{
    Closing, GateTraining, Gating, Keep, Machine, Material, Penalty, Recipe, Stay, TrainingCheckpoint,
    TrainingPlan, gate_history,
};

use crate::checkpoint::sha256_of_weights;
use crate::error::Error;
use crate::subject_file::SubjectFile;
use crate::task::Spec;
use crate::train::{Trained, learner};

/// Weights to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainedWeights {
    /// Weights of a translator's encoder; all else is frozen, including the embeddings if the decoder shares them
    // Differs from the paper, whose source embeddings are trained too: they have a separate table there.
    Encoder,
    /// All weights
    All,
    /// No weights: only gates are trained
    #[value(skip)]
    None,
}

impl TrainedWeights {
    /// Returns the default weights to train for a scope of heads: the encoder if all these heads are in it, as in Voita et al. (2019).
    pub fn usual(scope: Scope) -> Self {
        if scope == Scope::One(Attention::EncEnc) { Self::Encoder } else { Self::All }
    }

    fn holds(self, name: &str) -> bool {
        self == Self::All || self == Self::Encoder && name.contains(".encoder.")
    }
}

/// Initial weights of further training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialWeights {
    /// The weights of the trained model.
    Trained,
    /// New weights, initialised as for the trained model: only if it was trained from scratch.
    New,
}

/// Settings of further training. Everything else, such as batches and dropout, is as in the first training; the schedule starts anew.
#[derive(Debug, Clone, PartialEq)]
pub struct FineTuning {
    /// Name of the run, unique within the setup.
    pub name: String,
    /// Initial weights.
    pub initial: InitialWeights,
    /// Treatment of the heads.
    pub gating: Gating,
    /// Weights to train.
    pub trained: TrainedWeights,
    /// Training epochs.
    pub epochs: usize,
    /// Seed of batches and dropout.
    pub seed: u64,
}

/// A model that was trained further.
#[derive(Debug)]
pub struct FineTuned {
    /// The chosen epoch: the best on the development split, or the last one if the setup keeps the last or if gates were trained towards a
    /// given number of heads.
    pub row: TrainingRow,
    /// Total number of updates.
    pub steps: usize,
    /// Training time in seconds, including earlier, interrupted runs.
    pub seconds: f64,
    /// Its folder.
    pub checkpoint: TrainingCheckpoint,
    /// Trained gates of the chosen epoch; `None` if the gates were fixed.
    pub gates: Option<HardConcrete>,
}

impl FineTuning {
    /// Returns everything that the weights depend on except the initial weights.
    fn settings(&self) -> Value {
        let gating = match &self.gating {
            Gating::Fixed(closed) => json!({ "closed": closed.names() }),
            Gating::Trained(plan) => {
                let GateTraining { heads, closing, learning_rate, seed } = plan;
                let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
                let mut gating = json!({ "heads": heads, "learning_rate": learning_rate, "seed": seed });
                match closing {
                    Closing::Concrete { start, multiplier_rate, penalty } => {
                        gating["start"] = json!(start);
                        gating["multiplier_rate"] = json!(multiplier_rate);
                        gating["pull"] = match penalty {
                            Penalty::Lambda(lambda) => json!({ "lambda": lambda }),
                            Penalty::Heads(open) => json!({ "open": open }),
                        };
                    }
                    Closing::Subset { open, straight_through } => {
                        gating["subset"] = json!(open);
                        gating["straight_through"] = json!(straight_through);
                    }
                }
                gating
            }
        };
        let is_all = self.trained == TrainedWeights::All;
        let mut settings =
            json!({ "gating": gating, "all": is_all, "epochs": self.epochs, "seed": self.seed });
        if self.initial == InitialWeights::New {
            settings["scratch"] = true.into();
        }
        if self.trained == TrainedWeights::None {
            settings["frozen"] = true.into();
        }
        settings
    }
}

/// Trains the model further, unless that was done already.
pub(crate) fn fine_tune<T: Trained>(
    file: &SubjectFile<T>,
    machine: &Machine,
    tuning: &FineTuning,
) -> Result<FineTuned, Error> {
    let recipe = T::recipe(&file.spec)?;
    let recipe = recipe.ok_or_else(|| Error::not_trained(&file.name))?;
    if let Gating::Trained(GateTraining { heads, closing, .. }) = &tuning.gating
        && let Some(open) = closing.wanted().filter(|open| !(1..=heads.len()).contains(open))
    {
        let fault =
            format!("{open} heads cannot be kept: expected 1 to {}, the heads with gates", heads.len());
        return Err(Error::Invalid(fault));
    }
    let base = machine.model_folder(&file.name);
    let weights = sha256_of_weights(&base)?;
    let settings = json!({ "training": recipe.settings, "weights": weights, "tuning": tuning.settings() });
    let digest = format!("{:x}", Sha256::digest(settings.to_string()));
    let name = format!("{}.tuned/{}-{}", file.name, tuning.name, &digest[..12]);
    let curve = curve_of(&machine.model_folder(&name));
    let (keep, stay) = match &tuning.gating {
        // before the last epoch the gates have not yet reached the requested number of heads
        Gating::Trained(plan) => {
            (if plan.closing.wanted().is_some() { Keep::Last } else { recipe.keep }, vec![tuning.epochs])
        }
        Gating::Fixed(_) => (recipe.keep, Vec::new()),
    };
    let plan = TrainingPlan {
        name: &name,
        path: &file.path,
        machine,
        curve: curve.clone(),
        recipe: Recipe { settings, seed: tuning.seed, epochs: tuning.epochs, keep, ..recipe },
        stay: Some(Stay { epochs: &stay, steps: &[] }),
    };
    if !plan.is_finished::<Error>(&[])? {
        run(file, machine, &plan, (tuning, &base))?;
    }
    let rows: Vec<TrainingRow> = read_complete(&curve)?;
    let kept = match keep {
        Keep::Best => rows.iter().rfind(|row| row.best),
        Keep::Last => rows.last(),
    };
    let fault = || {
        let advice = "remove it and the folder of its model";
        Error::Invalid(format!("`{}` has no epoch that can be used: {advice}", curve.display()))
    };
    let (row, last) = kept.cloned().zip(rows.last()).ok_or_else(fault)?;
    let folder = plan.folder();
    let gates = match &tuning.gating {
        Gating::Fixed(_) => None,
        Gating::Trained(plan) => {
            let epoch = folder.join("epochs").join(last.epoch.to_string());
            gate_history(&epoch, &plan.heads)?.into_iter().nth(row.epoch)
        }
    };
    let checkpoint = TrainingCheckpoint { epoch: Some(row.epoch), updates: row.step, folder };
    let signature = Signature::read(&Signature::path_beside(&curve))?;
    let runs = signature.iter().flat_map(|signature| &signature.runs);
    let seconds = runs.filter_map(|run| run.duration_seconds).sum();
    Ok(FineTuned { steps: last.step, seconds, row, checkpoint, gates })
}

fn run<T: Trained>(
    file: &SubjectFile<T>,
    machine: &Machine,
    plan: &TrainingPlan<'_>,
    (tuning, base): (&FineTuning, &Path),
) -> Result<(), Error> {
    let (spec, outline) = (&file.spec, file.spec.outline());
    let tokenizer = T::load_tokenizer(spec, base)?;
    let (train, dev) = (file.read(machine, outline.train)?, file.read(machine, outline.dev)?);
    let Some(workplace) = plan.begin::<Error>(false, &[])? else { return Ok(()) };
    let encode = |split, examples| T::encode_split(spec, &tokenizer, (split, examples), machine.quiet);
    let mut identity = Identity::new("fine-tuning", &file.name);
    outline.train.clone_into(&mut identity.split);
    identity.seed = Some(tuning.seed);
    identity.arguments.insert("tuning".to_owned(), tuning.settings());
    let material =
        Material { train: encode(outline.train, &train)?, dev: encode(outline.dev, &dev)?, identity };
    let is_trained = |name: &str| tuning.trained.holds(name);
    let options = (Kind::Float, machine.device);
    let start = || {
        let model = match tuning.initial {
            InitialWeights::Trained => T::LOAD(base, options)?,
            InitialWeights::New => T::start(file, None, &tokenizer, machine)?,
        };
        Ok(learner(file, &model)?.gated(&tuning.gating, is_trained, None)?)
    };
    let resume = |folder: &Path| {
        let model = T::LOAD(folder, options)?;
        Ok(learner(file, &model)?.gated(&tuning.gating, is_trained, Some(folder))?)
    };
    plan.run(&workplace, &material, |_| Ok(()), start, resume)
}

/// Returns the path of a model's training curve, next to its folder.
fn curve_of(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}.training.csv"))
}
