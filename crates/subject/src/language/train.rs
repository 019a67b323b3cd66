//! How a language model is trained from scratch.
use std::path::Path;

use core_masking::LanguageModel;
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::splits::language::Texts;
use serde_json::json;
use tch::Kind;
use training::{AdamSettings, Machine};

use super::LanguageModelling;
use super::model::{DecoderSpec, PretrainingSpec, Symbols, TokenKind, TokenizerSpec};
use super::rows::{Rows, Windowing};
use super::spec::{LanguageSpec, SegmentKind};
use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::learner::TaskLearner;
use crate::task::Described;
use crate::train::{Recipe, Trained};

/// Added to the denominator of Adam: PyTorch's default.
const EPSILON: f64 = 1e-8;

impl Trained for LanguageModelling {
    type Tokenizer = LanguageTokenizer;
    type Objective = PretrainingSpec;

    const ARGUMENTS: &'static [&'static str] = &["model", "tokenizer", "training"];

    fn recipe(spec: &LanguageSpec) -> Result<Option<Recipe>, Error> {
        let LanguageSpec { data, tokenizer, model, training, .. } = spec;
        let files = [&data.train, &data.dev].map(|split| data.splits.get(split));
        let recipe = |settings: &PretrainingSpec| Recipe {
            settings: json!({
                "grammar": data.grammar, "files": files, "train": data.train, "dev": data.dev,
                "tokenizer": tokenizer, "model": model, "training": training,
            }),
            curve: "cross-entropy, nats per token".to_owned(),
            seed: settings.seed,
            epochs: settings.epochs,
            clip_norm: settings.clip_norm,
            adam: AdamSettings {
                betas: settings.adam_betas,
                epsilon: EPSILON,
                weight_decay: settings.weight_decay,
            },
            keep: settings.keep,
        };
        Ok(training.as_ref().map(recipe))
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
                // Stretches that begin anywhere in the text never saw its end.
                let end = blocks.is_none();
                let windowing = Windowing { length, stride: length, end, segments: SegmentKind::Documents };
                Rows::of_documents(tokenizer, documents, windowing, split)
            }
        }
    }

    fn start(
        described: &Described<Self>,
        _: Option<&Checkpoint>,
        tokenizer: &LanguageTokenizer,
        machine: &Machine,
    ) -> Result<TaskLearner<PretrainingSpec>, Error> {
        let (model, settings) = trained(described)?;
        let symbols = Symbols { begin: tokenizer.begin(), end: tokenizer.end() };
        let config = model.config_of_all(tokenizer.vocabulary_size(), symbols);
        let whole = LanguageModel::random(config, settings.seed, (Kind::Float, machine.device))?;
        TaskLearner::new(&model.open_heads.of_model(whole)?, settings)
    }

    fn resume(
        described: &Described<Self>,
        folder: &Path,
        machine: &Machine,
    ) -> Result<TaskLearner<PretrainingSpec>, Error> {
        let model = LanguageModel::load(folder, (Kind::Float, machine.device))?;
        TaskLearner::new(&model, trained(described)?.1)
    }
}

fn no_documents(split: &str) -> Error {
    Error::NoDocuments { split: split.to_owned() }
}

/// What is trained, and how.
fn trained(described: &Described<LanguageModelling>) -> Result<(&DecoderSpec, PretrainingSpec), Error> {
    let LanguageSpec { model, training, .. } = &described.spec;
    model.as_ref().zip(*training).ok_or_else(|| Error::NotTrained { name: described.name.clone() })
}
