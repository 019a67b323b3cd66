//! How a translator is trained from nothing.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use core_masking::marian::Marian;
use corpus::parallel::ParallelText;
use corpus::tokenizer::SubwordTokenizer;
use records::Identity;
use serde_json::json;
use tch::Kind;
use training::{AdamSettings, Ingredient, Keep, Machine, Material, Plan, Workplace, write_once};

use super::data;
use super::learner::Translator;
use super::pairs::Pairs;
use crate::spec::{DynamicsSpec, ModelSpec, TrainingSpec, TranslationSpec};
use crate::{Error, Naming};

/// Added to the denominator of Adam; the value of Vaswani et al. (2017), Section 5.3.
const EPSILON: f64 = 1e-9;

/// The parts of a subject's file that describe a training.
struct Training<'a> {
    naming: Naming<'a>,
    spec: &'a TranslationSpec,
    model: ModelSpec,
    vocabulary: usize,
    settings: TrainingSpec,
    machine: &'a Machine,
}

/// Trains the model unless it is there, and returns its folder.
///
/// # Errors
/// If data is missing or at fault, the model there was trained from other settings or data, a file cannot be written, or the
/// loss is no longer a number.
pub(crate) fn train(
    naming: Naming<'_>,
    spec: &TranslationSpec,
    machine: &Machine,
    results: &Path,
    again: bool,
) -> Result<PathBuf, Error> {
    let (Some(model), Some(tokenizer), Some(settings)) = (spec.model, spec.tokenizer, spec.training) else {
        return Err(Error::NotTrained { name: naming.name.to_owned() });
    };
    let training = Training { naming, spec, model, vocabulary: tokenizer.vocabulary, settings, machine };
    let plan = training.plan(results);
    if again || !plan.is_finished(&training.ingredients(None))? {
        training.run(&plan, again)?;
    }
    Ok(plan.folder())
}

impl Training<'_> {
    fn run(&self, plan: &Plan<'_>, again: bool) -> Result<(), Error> {
        let data = &self.spec.data;
        let read = |split: &str| data::read_split(data, &self.machine.data, split);
        let (train, dev) = (read(&data.train)?, read(&data.dev)?);
        let Some(workplace) = plan.begin(again, &self.ingredients(Some([&train, &dev])))? else {
            return Ok(());
        };
        let tokenizer = self.tokenizer(&workplace, &train)?;
        let material = Material {
            train: self.encode(&tokenizer, &train, &data.train)?,
            dev: self.encode(&tokenizer, &dev, &data.dev)?,
            identity: self.identity(&train, &dev),
        };
        let save =
            |folder: &Path| write_once(&folder.join("tokenizer.json"), |path| Ok(tokenizer.save(path)?));
        let load = |folder: &Path| Translator::load(folder, self.machine.device, self.settings);
        plan.run(&workplace, &material, save, || self.start(&tokenizer), load)
    }

    /// What the weights depend on besides the settings: train and dev split, if they have been read already, or as they
    /// are read when they are needed.
    fn ingredients<'a>(&'a self, read: Option<[&'a ParallelText; 2]>) -> Vec<Ingredient<'a, Error>> {
        let (spec, folder) = (&self.spec.data, &self.machine.data);
        let ingredient = |(place, split): (usize, &'a String)| Ingredient {
            name: format!("split `{split}`"),
            files: data::files(spec, folder, split),
            sha256: Box::new(move || match read {
                Some(texts) => Ok(data::sha256(texts[place])),
                None => Ok(data::sha256(&data::read_split(spec, folder, split)?)),
            }),
        };
        [&spec.train, &spec.dev].into_iter().enumerate().map(ingredient).collect()
    }

    fn plan<'a>(&'a self, results: &'a Path) -> Plan<'a> {
        let TranslationSpec { data, tokenizer, model, training, .. } = self.spec;
        let files = [&data.train, &data.dev].map(|split| data.splits.get(split));
        Plan {
            name: self.naming.name,
            path: self.naming.path,
            machine: self.machine,
            curve: results.join(self.naming.name).join("training.csv"),
            settings: json!({
                "grammar": data.grammar, "files": files, "train": data.train, "dev": data.dev,
                "tokenizer": tokenizer, "model": model, "training": training,
            }),
            seed: self.settings.seed,
            epochs: self.settings.epochs,
            clip_norm: self.settings.clip_norm,
            adam: AdamSettings {
                betas: self.settings.adam_betas,
                epsilon: EPSILON,
                weight_decay: self.settings.weight_decay,
            },
            keep: Keep::Best,
            stay: self.spec.dynamics.as_ref().map(DynamicsSpec::stay),
        }
    }

    fn identity(&self, train: &ParallelText, dev: &ParallelText) -> Identity {
        let data = &self.spec.data;
        let mut identity = Identity::new("train-subject", self.naming.name);
        identity.split.clone_from(&data.train);
        identity.seed = Some(self.settings.seed);
        identity.precision = "f32".to_owned();
        identity.metric = "cross-entropy, nats per target token".to_owned();
        identity.arguments = BTreeMap::from([
            ("model".to_owned(), json!(self.spec.model)),
            ("tokenizer".to_owned(), json!(self.spec.tokenizer)),
            ("training".to_owned(), json!(self.spec.training)),
        ]);
        identity.data = BTreeMap::from([
            (data.train.clone(), data::sha256(train)),
            (data.dev.clone(), data::sha256(dev)),
        ]);
        identity
    }

    /// The tokeniser of a run that was begun, or a new one.
    fn tokenizer(&self, workplace: &Workplace, train: &ParallelText) -> Result<SubwordTokenizer, Error> {
        let path = workplace.folder.join("tokenizer.json");
        if path.exists() {
            return Ok(workplace.undamaged(SubwordTokenizer::load(&path))?);
        }
        Ok(SubwordTokenizer::train(train.source.iter().chain(&train.target), self.vocabulary)?)
    }

    /// Token ids of the pairs that fit the model; says how many do not.
    fn encode(&self, tokenizer: &SubwordTokenizer, text: &ParallelText, split: &str) -> Result<Pairs, Error> {
        let positions = self.model.positions;
        let encode = |text: &str| tokenizer.encode(text);
        let pairs = Pairs::encode(text, [&encode, &encode], positions);
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

    fn start(&self, tokenizer: &SubwordTokenizer) -> Result<Translator, Error> {
        let config = self.model.config(tokenizer);
        let model = Marian::random(config, self.settings.seed, (Kind::Float, self.machine.device))?;
        Translator::new(&model, self.settings)
    }
}
