//! How a classifier is fine-tuned, or trained from nothing.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::bert::BertClassifier;
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::hub::PREFIX;
use corpus::labelled::Example;
use records::{Identity, sha256_file};
use serde_json::json;
use stats::classification::ClassificationMetric;
use tch::Kind;
use training::{AdamSettings, Ingredient, Machine, Material, Plan, Workplace, write_once};

use super::learner::Classifier;
use super::texts::Texts;
use super::{check_vocabulary, data, metric};
use crate::checkpoint::{Checkpoint, checksums};
use crate::spec::{ClassificationSpec, DynamicsSpec, FineTuningSpec};
use crate::{Error, Naming};

/// Decay rates of AdamW's moments, and what is added to its denominator: PyTorch's defaults, as in BERT's own code.
const BETAS: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;

/// Files of a tokeniser that a checkpoint may have.
const TOKENIZER_FILES: [&str; 4] =
    ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"];

/// Files of a checkpoint that a fine-tuned model depends on, as far as they are there.
const BASE_FILES: [&str; 6] = [
    "config.json",
    "model.safetensors",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
];

/// The parts of a subject's file that describe a training.
struct Training<'a> {
    naming: Naming<'a>,
    spec: &'a ClassificationSpec,
    settings: FineTuningSpec,
    metric: ClassificationMetric,
    machine: &'a Machine,
}

/// Trains the model unless it is there, and returns its folder.
///
/// # Errors
/// If data or the checkpoint is missing or at fault, the model there was trained from other settings or data, a file
/// cannot be written, or the loss is no longer a number.
pub(crate) fn train(
    naming: Naming<'_>,
    spec: &ClassificationSpec,
    machine: &Machine,
    results: &Path,
    again: bool,
) -> Result<PathBuf, Error> {
    let Some(settings) = spec.training else {
        return Err(Error::NotTrained { name: naming.name.to_owned() });
    };
    let training = Training { naming, spec, settings, metric: metric(spec, &spec.data.labels)?, machine };
    let plan = training.plan(results);
    if again || !plan.is_finished(&training.ingredients(None, training.base_at_hand().as_deref()))? {
        training.run(&plan, again)?;
    }
    Ok(plan.folder())
}

impl Training<'_> {
    fn run(&self, plan: &Plan<'_>, again: bool) -> Result<(), Error> {
        let base =
            self.spec.checkpoint.as_ref().map(|checkpoint| checkpoint.find(self.machine)).transpose()?;
        if base.is_some_and(|base| same_folder(&base.folder, &plan.folder())) {
            return Err(Error::OwnBase { folder: plan.folder() });
        }
        let data = &self.spec.data;
        let read = |split: &str| {
            let examples = data::read_split(data, &self.machine.data, split)?;
            let classes = data::classes(&examples, &data.labels, split)?;
            Ok::<_, Error>((examples, classes))
        };
        let ((train, train_classes), (dev, dev_classes)) = (read(&data.train)?, read(&data.dev)?);
        let ingredients = self.ingredients(Some([&train, &dev]), base.map(|base| base.folder.as_path()));
        let Some(workplace) = plan.begin(again, &ingredients)? else { return Ok(()) };
        let tokenizer = self.tokenizer(&workplace, base, &train)?;
        let material = Material {
            train: Texts::encode(&tokenizer, &train, train_classes),
            dev: Texts::encode(&tokenizer, &dev, dev_classes),
            identity: self.identity(base, &train, &dev)?,
        };
        let save = |folder: &Path| save_tokenizer(base, &tokenizer, folder);
        let load = |folder: &Path| Classifier::load(folder, self.machine.device, self.settings, self.metric);
        plan.run(&workplace, &material, save, || self.start(base, &tokenizer), load)
    }

    /// The folder that is fine-tuned, if that can be said without asking a hub.
    fn base_at_hand(&self) -> Option<PathBuf> {
        let spec = self.spec.checkpoint.as_ref().filter(|checkpoint| !checkpoint.from.starts_with(PREFIX));
        spec.map(|checkpoint| self.machine.data.join(&checkpoint.from))
    }

    /// What the weights depend on besides the settings: train and dev split, if they have been read already, or as they
    /// are read when they are needed, and the files of the checkpoint in the folder `base`.
    fn ingredients<'a>(
        &'a self,
        read: Option<[&'a [Example]; 2]>,
        base: Option<&Path>,
    ) -> Vec<Ingredient<'a, Error>> {
        let (spec, folder) = (&self.spec.data, &self.machine.data);
        let split = |(place, split): (usize, &'a String)| Ingredient {
            name: format!("split `{split}`"),
            files: data::files(spec, folder, split),
            sha256: Box::new(move || match read {
                Some(examples) => Ok(data::sha256(examples[place])),
                None => Ok(data::sha256(&data::read_split(spec, folder, split)?)),
            }),
        };
        let file = |(path, name): (PathBuf, &str)| Ingredient {
            name: format!("`{name}` of the checkpoint"),
            files: vec![path.clone()],
            sha256: Box::new(move || Ok(sha256_file(&path)?)),
        };
        let splits = [&spec.train, &spec.dev].into_iter().enumerate().map(split);
        let names = base.into_iter().flat_map(|base| BASE_FILES.map(|name| (base.join(name), name)));
        splits.chain(names.filter(|(path, _)| path.exists()).map(file)).collect()
    }

    fn plan<'a>(&'a self, results: &'a Path) -> Plan<'a> {
        let ClassificationSpec { data, score, checkpoint, model, tokenizer, training, .. } = self.spec;
        let files = [&data.train, &data.dev].map(|split| data.splits.get(split));
        let settings = self.settings;
        Plan {
            name: self.naming.name,
            path: self.naming.path,
            machine: self.machine,
            curve: results.join(self.naming.name).join("training.csv"),
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
            stay: self.spec.dynamics.as_ref().map(DynamicsSpec::stay),
        }
    }

    fn identity(
        &self,
        base: Option<&Checkpoint>,
        train: &[Example],
        dev: &[Example],
    ) -> Result<Identity, Error> {
        let ClassificationSpec { data, model, tokenizer, training, score, .. } = self.spec;
        let mut identity = Identity::new("train-subject", self.naming.name);
        identity.split.clone_from(&data.train);
        identity.seed = Some(self.settings.seed);
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
        if let Some(base) = base {
            identity.arguments.insert("checkpoint".to_owned(), base.name.clone().into());
            identity.weights = Some(sha256_file(&base.folder.join("model.safetensors"))?);
            identity.data.extend(checksums(&base.folder, &super::FILES)?);
        }
        Ok(identity)
    }

    /// The tokeniser of the checkpoint, of a run that was begun, or a new one.
    fn tokenizer(
        &self,
        workplace: &Workplace,
        base: Option<&Checkpoint>,
        train: &[Example],
    ) -> Result<ClassifierTokenizer, Error> {
        let max_length = self.spec.tokenizer.max_length;
        if let Some(base) = base {
            return Ok(ClassifierTokenizer::load(&base.folder, max_length)?);
        }
        if workplace.folder.join("tokenizer.json").exists() {
            return Ok(workplace.undamaged(ClassifierTokenizer::load(&workplace.folder, max_length))?);
        }
        let texts = train.iter().flat_map(|example| std::iter::once(&example.text).chain(&example.pair));
        Ok(ClassifierTokenizer::train(texts, self.spec.tokenizer.vocabulary.unwrap_or_default(), max_length)?)
    }

    fn start(&self, base: Option<&Checkpoint>, tokenizer: &ClassifierTokenizer) -> Result<Classifier, Error> {
        let (seed, options) = (self.settings.seed, (Kind::Float, self.machine.device));
        let labels = &self.spec.data.labels;
        let model = match (base, self.spec.model) {
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

/// Writes the checkpoint's files as they are, so that other tools read the model as they read the checkpoint. Their
/// permissions stay behind: a checkpoint may be read-only.
fn save_tokenizer(
    base: Option<&Checkpoint>,
    tokenizer: &ClassifierTokenizer,
    folder: &Path,
) -> Result<(), Error> {
    let Some(base) = base else {
        return write_once(&folder.join("tokenizer.json"), |path| Ok(tokenizer.save(path)?));
    };
    for from in TOKENIZER_FILES.map(|name| base.folder.join(name)).iter().filter(|from| from.exists()) {
        let bytes = fs::read(from).map_err(|source| Error::Read { path: from.clone(), source })?;
        durable::write(&folder.join(from.file_name().unwrap_or_default()), bytes)?;
    }
    Ok(())
}

fn same_folder(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}
