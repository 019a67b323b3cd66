//! How the trained model of a subject is trained further under gates, whatever its task.
use std::path::{Path, PathBuf};

use core_masking::HardConcrete;
use records::{Attention, Identity, Scope, TrainingRow, read_complete};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use training::{
    GateStart, GateTraining, Gated, Gating, Keep, Machine, Material, Pull, Stay, TrainingCheckpoint,
    TrainingPlan, gate_history,
};

use crate::checkpoint::sha256_of_weights;
use crate::error::Error;
use crate::task::Described;
use crate::train::Trained;

/// The weights that are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainedPart {
    /// All of them.
    All,
    /// Those of a translator's encoder. What it shares with the decoder, such as embeddings, stays as it is.
    ///
    /// Differs from the paper, whose source embeddings are trained too: they are a table of their own there.
    Encoder,
}

impl TrainedPart {
    /// What is trained where these heads may be closed, unless something else is asked for: the encoder if they are all in
    /// it, as in Voita et al. (2019).
    pub fn usual(scope: Scope) -> Self {
        if scope == Scope::One(Attention::EncEnc) { Self::Encoder } else { Self::All }
    }

    fn holds(self, name: &str) -> bool {
        self == Self::All || name.contains(".encoder.")
    }
}

/// The weights that further training begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialWeights {
    /// Those of the trained model.
    Trained,
    /// New ones, as those of the trained model were before its first step: for models that were trained from scratch.
    New,
}

/// How a trained model is trained further. All else, such as batches, dropout and schedule, is as in its training, begun anew.
#[derive(Debug, Clone, PartialEq)]
pub struct FineTuning {
    /// What it is called among those of the subject.
    pub name: String,
    /// The weights that it begins with.
    pub initial: InitialWeights,
    /// What is done to heads.
    pub gating: Gating,
    /// The weights that are trained.
    pub part: TrainedPart,
    /// Passes over the training split.
    pub epochs: usize,
    /// Seed of batches and dropout.
    pub seed: u64,
}

/// A model that was trained further.
#[derive(Debug)]
pub struct FineTuned {
    /// The epoch that counts, which was chosen on the development split unless the subject keeps the last, or a number of heads
    /// was wanted of gates.
    pub row: TrainingRow,
    /// Updates until the end.
    pub steps: usize,
    /// Where it is.
    pub checkpoint: TrainingCheckpoint,
    /// Its gates before the first epoch and after each; empty if they were fixed.
    pub history: Vec<HardConcrete>,
}

impl FineTuning {
    /// All that the weights depend on besides those that they begin with.
    fn settings(&self) -> Value {
        let gating = match &self.gating {
            Gating::Fixed(closed) => json!({ "closed": closed.names() }),
            Gating::Trained(plan) => {
                let GateTraining { heads, start, learning_rate, multiplier_rate, pull, seed } = plan;
                let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
                let start = match start {
                    GateStart::Open => "open",
                    GateStart::Authors => "authors",
                };
                let pull = match pull {
                    Pull::Lambda(lambda) => json!({ "lambda": lambda }),
                    Pull::Heads(open) => json!({ "open": open }),
                };
                json!({
                    "heads": heads, "start": start, "learning_rate": learning_rate,
                    "multiplier_rate": multiplier_rate, "pull": pull, "seed": seed,
                })
            }
        };
        let is_all = self.part == TrainedPart::All;
        let mut settings =
            json!({ "gating": gating, "all": is_all, "epochs": self.epochs, "seed": self.seed });
        if self.initial == InitialWeights::New {
            settings["scratch"] = true.into();
        }
        settings
    }
}

/// Trains the model further, unless that was done already.
///
/// # Errors
/// If the model is not there or not trained here, data is missing, a file cannot be written, or the loss is no longer a number.
pub(crate) fn fine_tune<T: Trained>(
    described: &Described<T>,
    machine: &Machine,
    tuning: &FineTuning,
) -> Result<FineTuned, Error> {
    let recipe = T::recipe(&described.spec)?;
    let recipe = recipe.ok_or_else(|| Error::NotTrained { name: described.name.clone() })?;
    let base = machine.model_folder(&described.name);
    let weights = sha256_of_weights(&base)?;
    let settings = json!({ "training": recipe.settings, "weights": weights, "tuning": tuning.settings() });
    let digest = format!("{:x}", Sha256::digest(settings.to_string()));
    let name = format!("{}.tuned/{}-{}", described.name, tuning.name, &digest[..12]);
    let curve = curve_of(&machine.model_folder(&name));
    let (keep, stay) = match &tuning.gating {
        // before the last epoch the gates are on their way to the number that is wanted
        Gating::Trained(GateTraining { pull: Pull::Heads(_), .. }) => (Keep::Last, vec![tuning.epochs]),
        Gating::Trained(_) => (recipe.keep, vec![tuning.epochs]),
        Gating::Fixed(_) => (recipe.keep, Vec::new()),
    };
    let plan = TrainingPlan {
        name: &name,
        path: &described.path,
        machine,
        curve: curve.clone(),
        settings,
        seed: tuning.seed,
        epochs: tuning.epochs,
        clip_norm: recipe.clip_norm,
        adam: recipe.adam,
        keep,
        stay: Some(Stay { epochs: &stay, steps: &[] }),
    };
    if !plan.is_finished::<Error>(&[])? {
        run(described, machine, &plan, (tuning, &base))?;
    }
    let rows: Vec<TrainingRow> = read_complete(&curve)?;
    let kept = match keep {
        Keep::Best => rows.iter().rfind(|row| row.best),
        Keep::Last => rows.last(),
    };
    let fault = || Error::NoEpoch { path: curve.clone() };
    let (row, last) = kept.cloned().zip(rows.last()).ok_or_else(fault)?;
    let folder = plan.folder();
    let history = match &tuning.gating {
        Gating::Fixed(_) => Vec::new(),
        Gating::Trained(plan) => {
            gate_history(&folder.join("epochs").join(last.epoch.to_string()), &plan.heads)?
        }
    };
    let checkpoint = TrainingCheckpoint { epoch: Some(row.epoch), updates: row.step, folder };
    Ok(FineTuned { steps: last.step, row, checkpoint, history })
}

fn run<T: Trained>(
    described: &Described<T>,
    machine: &Machine,
    plan: &TrainingPlan<'_>,
    (tuning, base): (&FineTuning, &Path),
) -> Result<(), Error> {
    let (spec, outline) = (&described.spec, T::outline(&described.spec));
    let tokenizer = T::load_tokenizer(spec, base)?;
    let (train, dev) = (described.read(machine, outline.train)?, described.read(machine, outline.dev)?);
    let Some(workplace) = plan.begin::<Error>(false, &[])? else { return Ok(()) };
    let encode = |split, examples| T::encode_split(spec, &tokenizer, (split, examples), machine.quiet);
    let mut identity = Identity::new("fine-tuning", &described.name);
    outline.train.clone_into(&mut identity.split);
    identity.seed = Some(tuning.seed);
    identity.arguments.insert("tuning".to_owned(), tuning.settings());
    let material =
        Material { train: encode(outline.train, &train)?, dev: encode(outline.dev, &dev)?, identity };
    let is_trained = |name: &str| tuning.part.holds(name);
    let start = || {
        let learner = match tuning.initial {
            InitialWeights::Trained => T::resume(described, base, machine)?,
            InitialWeights::New => T::start(described, None, &tokenizer, machine)?,
        };
        Ok(Gated::start(learner, &tuning.gating, is_trained))
    };
    let resume = |folder: &Path| {
        let model = T::resume(described, folder, machine)?;
        Ok(Gated::resume(model, &tuning.gating, is_trained, folder)?)
    };
    plan.run(&workplace, &material, |_| Ok(()), start, resume)
}

/// The training curve of a model, beside its folder.
fn curve_of(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}.training.csv"))
}
