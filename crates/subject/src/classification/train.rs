//! Fine-tuning a classifier, or training it from scratch.
use std::path::Path;

use core_masking::{Classifier, ClassifierConfig};
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::labelled::Example;
use serde_json::json;
use stats::Metric;
use tch::{Device, Kind};
use training::{AdamSettings, Machine, Recipe};

use super::objective::FineTuningObjective;
use super::outputs::metric;
use super::spec::ClassificationSpec;
use super::texts::Texts;
use super::{Classification, check_tokenizer, encode};
use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::subject_file::SubjectFile;
use crate::train::Trained;

/// Decay rates of AdamW's moments, and what is added to its denominator: PyTorch's defaults, as in BERT's own code.
pub(super) const BETAS: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;

impl Trained for Classification {
    type Tokenizer = ClassifierTokenizer;
    type Objective = FineTuningObjective;

    const ARGUMENTS: &'static [&'static str] = &["model", "tokenizer", "training", "labels", "score"];

    fn recipe(spec: &ClassificationSpec) -> Result<Option<Recipe>, Error> {
        let ClassificationSpec { data, score, checkpoint, model, tokenizer, training, .. } = spec;
        let Some(settings) = training else { return Ok(None) };
        let loss = match metric(spec, &spec.outputs())? {
            Metric::Estimates(_) => "squared error per text",
            Metric::Texts(_) => "cross-entropy, nats per word",
            _ => "cross-entropy, nats per text",
        };
        let files = [&data.train, &data.dev].map(|split| data.splits.get(split));
        Ok(Some(Recipe {
            settings: json!({
                "grammar": data.grammar, "files": files, "format": data.format, "holdout": data.holdout,
                "train": data.train, "dev": data.dev, "labels": data.labels, "rename": data.rename, "score": score,
                "checkpoint": checkpoint, "tokenizer": tokenizer, "model": model, "training": training,
            }),
            curve: format!("{loss}; dev_score: {}", score.metric.name()),
            seed: settings.seed,
            epochs: settings.epochs,
            clip_norm: settings.clip_norm,
            adam: AdamSettings { betas: BETAS, epsilon: EPSILON, weight_decay: settings.weight_decay },
            keep: settings.keep,
        }))
    }

    fn train_tokenizer(
        spec: &ClassificationSpec,
        train: &Vec<Example>,
    ) -> Result<ClassifierTokenizer, Error> {
        let texts = train.iter().flat_map(|example| std::iter::once(&example.text).chain(&example.pair));
        let vocabulary = spec.tokenizer.vocabulary.unwrap_or_default();
        Ok(ClassifierTokenizer::train(texts, vocabulary, spec.tokenizer.max_length(None))?)
    }

    fn load_tokenizer(spec: &ClassificationSpec, folder: &Path) -> Result<ClassifierTokenizer, Error> {
        let base =
            spec.checkpoint.as_ref().map(|_| ClassifierConfig::read_pretrained(&folder.join("config.json")));
        let positions = base.transpose()?.map(|config| config.longest_text());
        Ok(ClassifierTokenizer::load(folder, spec.tokenizer.max_length(positions))?)
    }

    fn save_tokenizer(tokenizer: &ClassifierTokenizer, path: &Path) -> Result<(), Error> {
        Ok(tokenizer.save(path)?)
    }

    fn encode_split(
        spec: &ClassificationSpec,
        tokenizer: &ClassifierTokenizer,
        (split, examples): (&str, &Vec<Example>),
        _quiet: bool,
    ) -> Result<Texts, Error> {
        encode(tokenizer, (examples, split), (&spec.outputs(), spec.score.metric.of_tags()))
    }

    fn objective(file: &SubjectFile<Self>) -> Result<FineTuningObjective, Error> {
        let SubjectFile { name, spec, .. } = file;
        let settings = spec.training.ok_or_else(|| Error::not_trained(name))?;
        Ok(FineTuningObjective { settings, metric: metric(spec, &spec.outputs())? })
    }

    fn start(
        file: &SubjectFile<Self>,
        base: Option<&Checkpoint>,
        tokenizer: &ClassifierTokenizer,
        machine: &Machine,
    ) -> Result<Classifier, Error> {
        let (spec, objective) = (&file.spec, Self::objective(file)?);
        let seed = objective.settings.seed;
        let (labels, options) = (&spec.outputs(), (Kind::Float, machine.device));
        match (base, &spec.model) {
            (Some(base), _) => {
                let pretrained =
                    Classifier::load_pretrained(&base.folder, (labels, spec.classified()), seed, options)?;
                check_tokenizer(&base.folder, tokenizer, &pretrained.model)?;
                if !pretrained.new.is_empty() && !machine.quiet {
                    words::say!(
                        "newly initialised, since `{}` has none that fits: {}",
                        base.name,
                        pretrained.new.join(", ")
                    );
                }
                Ok(pretrained.model)
            }
            (None, Some(model)) => {
                let config =
                    model.config(spec.tokenizer, (labels, spec.classified()), tokenizer.vocabulary_size());
                Ok(model.open_heads.of_model(Classifier::random(config, seed, options)?)?)
            }
            (None, None) => Err(Error::not_trained(&file.name)),
        }
    }

    fn load_model(folder: &Path, device: Device) -> Result<Classifier, core_masking::Error> {
        Classifier::load(folder, (Kind::Float, device))
    }
}
