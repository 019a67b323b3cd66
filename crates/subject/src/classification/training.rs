//! How a classifier is fine-tuned, or trained from nothing.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::bert::BertClassifier;
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::labelled::Example;
use records::{Identity, sha256_file};
use serde_json::json;
use stats::classification::ClassificationMetric;
use tch::Kind;

use super::learner::Classifier;
use super::texts::Texts;
use super::{check_vocabulary, data, metric};
use crate::args::Machine;
use crate::checkpoint::{Checkpoint, checksums};
use crate::spec::{ClassificationSpec, FineTuningSpec};
use crate::training::{AdamSettings, Material, Plan, write_once};
use crate::{Error, Naming};

/// Decay rates of AdamW's moments, and what is added to its denominator: PyTorch's defaults, as in BERT's own code.
const BETAS: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;

/// Files of a tokeniser that a checkpoint may have.
const TOKENIZER_FILES: [&str; 4] =
    ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"];

/// The parts of a subject's file that describe a training.
struct Training<'a> {
    naming: Naming<'a>,
    spec: &'a ClassificationSpec,
    settings: FineTuningSpec,
    metric: ClassificationMetric,
    machine: &'a Machine,
    /// What is fine-tuned; absent if the model is trained from nothing.
    base: Option<&'a Checkpoint>,
}

/// Trains the model unless it is there, and returns its folder.
///
/// # Errors
/// If data or the checkpoint is missing or at fault, the model there was trained from other settings, a file cannot be
/// written, or the loss is no longer a number.
pub(crate) fn train(
    naming: Naming<'_>,
    spec: &ClassificationSpec,
    machine: &Machine,
    results: &Path,
    overwrite: bool,
) -> Result<PathBuf, Error> {
    let Some(settings) = spec.training else {
        return Err(Error::NotTrained { name: naming.name.to_owned() });
    };
    let mut training =
        Training { naming, spec, settings, metric: metric(spec, &spec.data.labels)?, machine, base: None };
    let plan = training.plan(results);
    let folder = plan.folder();
    if plan.is_due(overwrite)? {
        let checkpoint = spec.checkpoint.as_ref();
        training.base = checkpoint.map(|checkpoint| checkpoint.find(machine)).transpose()?;
        if training.base.is_some_and(|base| same_folder(&base.folder, &folder)) {
            return Err(Error::OwnBase { folder });
        }
        training.run(results, overwrite)?;
    }
    Ok(folder)
}

impl Training<'_> {
    fn run(&self, results: &Path, overwrite: bool) -> Result<(), Error> {
        let data = &self.spec.data;
        let read = |split: &str| data::read_split(data, &self.machine.data, split);
        let (train, dev) = (read(&data.train)?, read(&data.dev)?);
        let plan = self.plan(results);
        let tokenizer = self.tokenizer(&plan.folder(), &train, overwrite)?;
        let encode = |split: &str, examples: &[Example]| {
            let classes = data::classes(examples, &data.labels, split)?;
            Ok::<_, Error>(Texts::encode(&tokenizer, examples, classes))
        };
        let material = Material {
            train: encode(&data.train, &train)?,
            dev: encode(&data.dev, &dev)?,
            identity: self.identity(&train, &dev)?,
        };
        let save = |folder: &Path| self.save_tokenizer(&tokenizer, folder);
        let load = |folder: &Path| Classifier::load(folder, self.machine.device, self.settings, self.metric);
        plan.run(&material, overwrite, save, || self.start(&tokenizer), load)
    }

    fn plan<'a>(&'a self, results: &'a Path) -> Plan<'a> {
        let ClassificationSpec { data, score, checkpoint, model, tokenizer, training, .. } = self.spec;
        let files = [&data.train, &data.dev].map(|split| data.splits.get(split));
        let settings = self.settings;
        Plan {
            name: self.naming.name,
            path: self.naming.path,
            machine: self.machine,
            results,
            settings: json!({
                "grammar": data.grammar, "files": files, "format": data.format, "holdout": data.holdout,
                "train": data.train, "dev": data.dev, "labels": data.labels, "rename": data.rename, "score": score,
                "checkpoint": checkpoint, "tokenizer": tokenizer, "model": model, "training": training,
            }),
            seed: settings.seed,
            epochs: settings.epochs,
            clip_norm: settings.clip_norm,
            adam: AdamSettings { betas: BETAS, epsilon: EPSILON, weight_decay: settings.weight_decay },
            keep: settings.keep,
            dynamics: self.spec.dynamics.as_ref(),
        }
    }

    fn identity(&self, train: &[Example], dev: &[Example]) -> Result<Identity, Error> {
        let ClassificationSpec { data, model, tokenizer, training, score, .. } = self.spec;
        let mut identity = Identity::new("train-subject", self.naming.name);
        identity.split.clone_from(&data.train);
        identity.seed = self.settings.seed;
        identity.precision = "f32".to_owned();
        identity.metric = format!("cross-entropy, nats per text; dev_score: {}", score.metric.name());
        identity.arguments = BTreeMap::from([
            ("model".to_owned(), json!(model)),
            ("tokenizer".to_owned(), json!(tokenizer)),
            ("training".to_owned(), json!(training)),
            ("labels".to_owned(), json!(data.labels)),
            ("score".to_owned(), json!(score)),
        ]);
        identity.data = BTreeMap::from([
            (data.train.clone(), data::sha256(train)),
            (data.dev.clone(), data::sha256(dev)),
        ]);
        if let Some(base) = &self.base {
            identity.arguments.insert("checkpoint".to_owned(), base.name.clone().into());
            identity.weights = Some(sha256_file(&base.folder.join("model.safetensors"))?);
            identity.data.extend(checksums(&base.folder, &super::FILES)?);
        }
        Ok(identity)
    }

    /// The tokeniser of the checkpoint, of a run that was begun, or a new one.
    fn tokenizer(
        &self,
        folder: &Path,
        train: &[Example],
        overwrite: bool,
    ) -> Result<ClassifierTokenizer, Error> {
        let max_length = self.spec.tokenizer.max_length;
        if let Some(base) = self.base {
            return Ok(ClassifierTokenizer::load(&base.folder, max_length)?);
        }
        if folder.join("tokenizer.json").exists() && !overwrite {
            return Ok(ClassifierTokenizer::load(folder, max_length)?);
        }
        let texts = train.iter().flat_map(|example| std::iter::once(&example.text).chain(&example.pair));
        Ok(ClassifierTokenizer::train(texts, self.spec.tokenizer.vocabulary.unwrap_or_default(), max_length)?)
    }

    /// Copies the checkpoint's files as they are, so that other tools read the model as they read the checkpoint.
    fn save_tokenizer(&self, tokenizer: &ClassifierTokenizer, folder: &Path) -> Result<(), Error> {
        let Some(base) = &self.base else {
            return write_once(&folder.join("tokenizer.json"), |path| Ok(tokenizer.save(path)?));
        };
        for name in TOKENIZER_FILES {
            let (from, to) = (base.folder.join(name), folder.join(name));
            if from.exists() {
                fs::copy(&from, &to).map_err(|source| Error::Write { path: to, source })?;
            }
        }
        Ok(())
    }

    fn start(&self, tokenizer: &ClassifierTokenizer) -> Result<Classifier, Error> {
        let (seed, options) = (self.settings.seed, (Kind::Float, self.machine.device));
        let labels = &self.spec.data.labels;
        let model = match (&self.base, self.spec.model) {
            (Some(base), _) => {
                let pretrained = BertClassifier::load_pretrained(&base.folder, labels, seed, options)?;
                check_vocabulary(&base.folder, tokenizer, &pretrained.model)?;
                if !pretrained.new.is_empty() && !self.machine.quiet {
                    eprintln!(
                        "newly initialised, since `{}` has none that fits: {}",
                        base.name,
                        pretrained.new.join(", ")
                    );
                }
                pretrained.model
            }
            (None, Some(model)) => {
                let config = model.config(self.spec.tokenizer, labels, tokenizer.vocabulary_size());
                BertClassifier::random(config, seed, options)?
            }
            (None, None) => return Err(Error::NotTrained { name: self.naming.name.to_owned() }),
        };
        Classifier::new(&model, self.settings, self.metric)
    }
}

fn same_folder(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}
