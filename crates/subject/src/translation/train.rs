//! Training a translator from scratch.
use std::path::Path;

use core_masking::Translator;
use corpus::parallel::ParallelText;
use corpus::sentence_tokenizer::SentenceTokenizer;
use corpus::tokenizer::SubwordTokenizer;
use serde_json::json;
use tch::Kind;
use training::{AdamSettings, Keep, Machine, Recipe};

use super::Translation;
use super::pairs::Pairs;
use super::spec::{TrainingSpec, TranslationSpec};
use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::subject_file::SubjectFile;
use crate::train::{Load, Trained};

/// ε of Adam: Vaswani et al. (2017), Section 5.3.
const EPSILON: f64 = 1e-9;

impl Trained for Translation {
    type Tokenizer = SubwordTokenizer;
    type Objective = TrainingSpec;

    const LOAD: Load<Translator> = Translator::load;
    const ARGUMENTS: &'static [&'static str] = &["model", "tokenizer", "training"];

    fn recipe(spec: &TranslationSpec) -> Result<Option<Recipe>, Error> {
        let TranslationSpec { data, tokenizer, model, training, .. } = spec;
        let files = [&data.train, &data.dev].map(|split| data.splits.get(split));
        let settings = json!({
            "grammar": data.grammar, "files": files, "train": data.train, "dev": data.dev,
            "tokenizer": tokenizer, "model": model, "training": training,
        });
        let described = (settings, "cross-entropy, nats per target token".to_owned());
        let recipe = |training: TrainingSpec| {
            let TrainingSpec { adam_betas: betas, clip_norm, weight_decay, .. } = training;
            let adam = AdamSettings { betas, epsilon: EPSILON, weight_decay };
            training.recipe(described, (adam, clip_norm), Keep::Best)
        };
        Ok(training.map(recipe))
    }

    fn train_tokenizer(spec: &TranslationSpec, train: &ParallelText) -> Result<SubwordTokenizer, Error> {
        let vocabulary = spec.tokenizer.map_or(0, |tokenizer| tokenizer.vocabulary); // validated to be given
        Ok(SubwordTokenizer::train(train.source.iter().chain(&train.target), vocabulary)?)
    }

    fn load_tokenizer(_: &TranslationSpec, folder: &Path) -> Result<SubwordTokenizer, Error> {
        Ok(SubwordTokenizer::load(&folder.join("tokenizer.json"))?)
    }

    fn save_tokenizer(tokenizer: &SubwordTokenizer, path: &Path) -> Result<(), Error> {
        Ok(tokenizer.save(path)?)
    }

    fn encode_split(
        spec: &TranslationSpec,
        tokenizer: &SubwordTokenizer,
        (split, text): (&str, &ParallelText),
        quiet: bool,
    ) -> Result<Pairs, Error> {
        let positions = spec.model.as_ref().map_or(0, |model| model.positions);
        let encode = |text: &str| Ok(tokenizer.encode(text)?);
        let pairs = Pairs::encode(text, [&encode, &encode], positions, split)?;
        let left_out = text.len() - pairs.len();
        if left_out > 0 && !quiet {
            words::say!(
                "split `{split}`: left out {left_out} of {} pairs: longer than {positions} tokens",
                text.len()
            );
        }
        Ok(pairs)
    }

    fn objective(file: &SubjectFile<Self>) -> Result<TrainingSpec, Error> {
        file.spec.training.ok_or_else(|| Error::not_trained(&file.name))
    }

    fn start(
        file: &SubjectFile<Self>,
        _: Option<&Checkpoint>,
        tokenizer: &SubwordTokenizer,
        machine: &Machine,
    ) -> Result<Translator, Error> {
        let TrainingSpec { seed, .. } = Self::objective(file)?;
        let model = file.spec.model.as_ref().ok_or_else(|| Error::not_trained(&file.name))?;
        let whole = Translator::random(model.config(tokenizer), seed, (Kind::Float, machine.device))?;
        Ok(model.open_heads.of_model(whole)?)
    }
}
