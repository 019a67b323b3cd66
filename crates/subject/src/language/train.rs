//! Training a language model from scratch.
use std::path::Path;

use core_masking::LanguageModel;
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::splits::language::Texts;
use serde_json::json;
use tch::Kind;
use training::{AdamSettings, Machine, Recipe};

use super::LanguageModelling;
use super::model::{PretrainingSpec, Symbols, TokenKind, TokenizerSpec};
use super::rows::{Rows, Windowing};
use super::spec::{LanguageSpec, SegmentKind};
use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::subject_file::SubjectFile;
use crate::train::{Load, Trained};

/// Added to the denominator of Adam: PyTorch's default.
const EPSILON: f64 = 1e-8;

impl Trained for LanguageModelling {
    type Tokenizer = LanguageTokenizer;
    type Objective = PretrainingSpec;

    const LOAD: Load<LanguageModel> = LanguageModel::load;
    const ARGUMENTS: &'static [&'static str] = &["model", "tokenizer", "training"];

    fn recipe(spec: &LanguageSpec) -> Result<Option<Recipe>, Error> {
        let LanguageSpec { data, tokenizer, model, training, .. } = spec;
        let files = [&data.train, &data.dev].map(|split| data.splits.get(split));
        let mut described = json!({
            "grammar": data.grammar, "files": files, "train": data.train, "dev": data.dev,
            "tokenizer": tokenizer, "model": model, "training": training,
        });
        // Omitted if unset: older models do not record it.
        if let Some(repeats) = data.repeats {
            described["repeats"] = json!(repeats);
        }
        let described = (described, "cross-entropy, nats per token".to_owned());
        let recipe = |training: PretrainingSpec| {
            let PretrainingSpec { adam_betas: betas, clip_norm, weight_decay, keep, .. } = training;
            let adam = AdamSettings { betas, epsilon: EPSILON, weight_decay };
            training.recipe(described, (adam, clip_norm), keep)
        };
        Ok(training.map(recipe))
    }

    fn train_tokenizer(spec: &LanguageSpec, train: &Texts) -> Result<LanguageTokenizer, Error> {
        let Texts::Documents(documents) = train else { return Err(no_documents(&spec.data.train)) };
        let texts = documents.iter().map(|document| document.text.as_str());
        match spec.tokenizer {
            Some(TokenizerSpec { kind: TokenKind::Bytes, vocabulary }) => {
                Ok(LanguageTokenizer::train_bytes(texts, vocabulary.unwrap_or_default())?)
            }
            _ => Ok(LanguageTokenizer::characters(texts)),
        }
    }

    fn load_tokenizer(_: &LanguageSpec, folder: &Path) -> Result<LanguageTokenizer, Error> {
        Ok(LanguageTokenizer::load(folder)?)
    }

    fn save_tokenizer(tokenizer: &LanguageTokenizer, path: &Path) -> Result<(), Error> {
        Ok(tokenizer.save(path)?)
    }

    fn encode_split(
        spec: &LanguageSpec,
        tokenizer: &LanguageTokenizer,
        (split, texts): (&str, &Texts),
        _quiet: bool,
    ) -> Result<Rows, Error> {
        let Texts::Documents(documents) = texts else { return Err(no_documents(split)) };
        let positions = spec.model.as_ref().map_or(1, |model| model.positions as usize);
        match spec.training.and_then(|training| training.blocks) {
            Some(blocks) if split == spec.data.train => {
                Rows::of_blocks(tokenizer, documents, blocks.length, split)
            }
            blocks => {
                let length = blocks.map_or(positions, |blocks| blocks.length);
                // Blocks that begin anywhere never included the end of a document in training.
                let end = blocks.is_none();
                let windowing =
                    Windowing { length, stride: length, end, begin: None, segments: SegmentKind::Documents };
                Rows::of_documents(tokenizer, documents, windowing, split)
            }
        }
    }

    fn objective(file: &SubjectFile<Self>) -> Result<PretrainingSpec, Error> {
        file.spec.training.ok_or_else(|| Error::not_trained(&file.name))
    }

    fn start(
        file: &SubjectFile<Self>,
        _: Option<&Checkpoint>,
        tokenizer: &LanguageTokenizer,
        machine: &Machine,
    ) -> Result<LanguageModel, Error> {
        let PretrainingSpec { seed, .. } = Self::objective(file)?;
        let model = file.spec.model.as_ref().ok_or_else(|| Error::not_trained(&file.name))?;
        let symbols = Symbols { begin: tokenizer.begin(), end: tokenizer.end() };
        let config = model.config(tokenizer.vocabulary_size(), symbols);
        let whole = LanguageModel::random(config, seed, (Kind::Float, machine.device))?;
        Ok(model.open_heads.of_model(whole)?)
    }
}

fn no_documents(split: &str) -> Error {
    let allowed = "a language model is trained on documents";
    Error::Invalid(format!("split `{split}` contains questions, but {allowed}"))
}
