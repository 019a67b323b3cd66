//! Fine-tuning a classifier, or training it from scratch.
use std::path::Path;

use core_masking::{Classifier, ClassifierConfig};
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::images::ImageProcessor;
use corpus::labelled::Example;
use serde_json::json;
use stats::Metric;
use tch::Kind;
use training::{AdamSettings, Machine, Recipe};

use super::inputs::Texts;
use super::objective::FineTuningObjective;
use super::outputs::metric;
use super::reader::Reader;
use super::spec::ClassificationSpec;
use super::{Classification, encode};
use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::subject_file::SubjectFile;
use crate::train::{Load, TOKENIZER, Trained};

/// Decay rates and ε of AdamW: PyTorch's defaults, which BERT's own code uses too.
pub(super) const BETAS: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;

impl Trained for Classification {
    type Tokenizer = Reader;
    type Objective = FineTuningObjective;

    const LOAD: Load<Classifier> = Classifier::load;
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
        let described = json!({
            "grammar": data.grammar, "files": files, "format": data.format, "holdout": data.holdout,
            "train": data.train, "dev": data.dev, "labels": data.labels, "rename": data.rename, "score": score,
            "checkpoint": checkpoint, "tokenizer": tokenizer, "model": model, "training": training,
        });
        let curve = format!("{loss}; dev_score: {}", score.metric);
        let adam = AdamSettings { betas: BETAS, epsilon: EPSILON, weight_decay: settings.weight_decay };
        Ok(Some(settings.recipe((described, curve), (adam, settings.clip_norm), settings.keep)))
    }

    fn tokenizer_file(spec: &ClassificationSpec) -> &'static str {
        if spec.data.reads_images() { ImageProcessor::file_name() } else { TOKENIZER }
    }

    fn train_tokenizer(spec: &ClassificationSpec, train: &Vec<Example>) -> Result<Reader, Error> {
        if let Some(images) = of_images(spec) {
            return Ok(images);
        }
        let texts = train.iter().flat_map(|example| example.input.texts());
        let vocabulary = spec.tokenizer.vocabulary.unwrap_or_default();
        let length = spec.tokenizer.max_length(None);
        Ok(Reader::Texts(ClassifierTokenizer::train(texts, vocabulary, length)?))
    }

    fn load_tokenizer(spec: &ClassificationSpec, folder: &Path) -> Result<Reader, Error> {
        if spec.checkpoint.is_some() {
            let config = ClassifierConfig::read_pretrained(&folder.join("config.json"))?;
            return Reader::load(folder, &config, spec.data.reads_images(), spec.tokenizer);
        }
        match of_images(spec) {
            Some(images) => Ok(images),
            None => Ok(Reader::Texts(ClassifierTokenizer::load(folder, spec.tokenizer.max_length(None))?)),
        }
    }

    fn save_tokenizer(tokenizer: &Reader, path: &Path) -> Result<(), Error> {
        tokenizer.save(path)
    }

    fn encode_split(
        spec: &ClassificationSpec,
        tokenizer: &Reader,
        (split, examples): (&str, &Vec<Example>),
        _quiet: bool,
    ) -> Result<Texts, Error> {
        encode(tokenizer, (examples, split), (&spec.outputs(), spec.score.of_tags()))
    }

    fn objective(file: &SubjectFile<Self>) -> Result<FineTuningObjective, Error> {
        let SubjectFile { name, spec, .. } = file;
        let settings = spec.training.ok_or_else(|| Error::not_trained(name))?;
        Ok(FineTuningObjective { settings, metric: metric(spec, &spec.outputs())? })
    }

    fn start(
        file: &SubjectFile<Self>,
        base: Option<&Checkpoint>,
        tokenizer: &Reader,
        machine: &Machine,
    ) -> Result<Classifier, Error> {
        let (spec, objective) = (&file.spec, Self::objective(file)?);
        let seed = objective.settings.seed;
        let (labels, options) = (&spec.outputs(), (Kind::Float, machine.device));
        match (base, &spec.model) {
            (Some(base), _) => {
                let pretrained =
                    Classifier::load_pretrained(&base.folder, (labels, spec.classified()), seed, options)?;
                tokenizer.check(&base.folder, &pretrained.model)?;
                if !pretrained.new.is_empty() && !machine.quiet {
                    words::say!(
                        "newly initialised, because `{}` has no matching tensors: {}",
                        base.name,
                        pretrained.new.join(", ")
                    );
                }
                Ok(pretrained.model)
            }
            (None, Some(model)) => {
                let texts = tokenizer.tokenizer();
                let vocabulary = texts.map_or(1, ClassifierTokenizer::vocabulary_size); // images have none
                let config = model.config(spec.tokenizer, (labels, spec.classified()), vocabulary);
                Ok(model.open_heads.of_model(Classifier::random(config, seed, options)?)?)
            }
            (None, None) => Err(Error::not_trained(&file.name)),
        }
    }
}

/// Returns the image preprocessing of a new model; `None` if the model reads texts.
fn of_images(spec: &ClassificationSpec) -> Option<Reader> {
    let model = spec.model.as_ref()?;
    let config = model.config(spec.tokenizer, (&spec.outputs(), spec.classified()), 1);
    Some(Reader::plain(&config, model.image?.shape()))
}
