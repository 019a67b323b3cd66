//! The description of a language model.
use std::collections::BTreeMap;
use std::path::PathBuf;

use corpus::choices::ChoiceFormat;
use corpus::documents::DocumentFormat;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::model::{DecoderSpec, PretrainingSpec, TokenKind, TokenizerSpec};
use crate::checkpoint::CheckpointSpec;
use crate::dynamics::DynamicsSpec;
use crate::error::quoted;
use crate::functions::FunctionsSpec;
use crate::spec::{check, check_sources, check_split_names};
use crate::task::Outline;

/// A language model as its TOML file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageSpec {
    /// Known by now.
    #[serde(rename = "task")]
    _task: IgnoredAny,
    /// One sentence for people.
    #[serde(rename = "description")]
    _description: String,
    /// Where the texts come from.
    pub data: LanguageData,
    /// How documents are cut into what the model reads at once.
    #[serde(default)]
    pub windows: WindowSpec,
    /// How choices are made.
    #[serde(default)]
    pub score: ScoreSpec,
    /// A model that is there already.
    pub checkpoint: Option<CheckpointSpec>,
    /// Size of a model that is trained from scratch.
    pub model: Option<DecoderSpec>,
    /// How texts become tokens, if the model is trained from scratch.
    pub tokenizer: Option<TokenizerSpec>,
    /// How it is trained.
    pub training: Option<PretrainingSpec>,
    /// Checkpoints of the training that stay; those of all epochs if absent.
    pub dynamics: Option<DynamicsSpec>,
    /// Sentences with trees, for `head-functions`.
    pub functions: Option<FunctionsSpec>,
}

/// Where the texts come from: files, or the demo grammar.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageData {
    /// Name for `just fetch`, if the files can be fetched.
    pub fetch: Option<String>,
    /// The split that the model is trained on.
    #[serde(default = "crate::spec::train")]
    pub train: String,
    /// The split that the best epoch is chosen on.
    #[serde(default = "crate::spec::dev")]
    pub dev: String,
    /// The split that experiments score unless told otherwise.
    #[serde(default = "crate::spec::test")]
    pub test: String,
    /// The split of another domain, which experiments compare the test split with.
    pub shifted: Option<String>,
    /// The split that importance is measured on; the training split if absent.
    pub estimate: Option<String>,
    /// The demo language, made when needed; its splits are train, dev, test, shifted, agreement and agreement-shifted.
    pub grammar: Option<LanguageGrammar>,
    /// Documents or questions by the name of their split.
    #[serde(default)]
    pub splits: BTreeMap<String, LanguageSplit>,
}

/// The demo language: the seed of its generator and the size of each split.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageGrammar {
    /// Seed of the generator.
    pub seed: u64,
    /// Sentences to train on.
    pub train: usize,
    /// Sentences to choose the best epoch on.
    pub dev: usize,
    /// Sentences to score.
    pub test: usize,
    /// Sentences of the shifted domain.
    pub shifted: usize,
    /// Minimal pairs of agreement, in each domain.
    pub pairs: usize,
}

/// A split: files, which follow each other, of documents or of questions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageSplit {
    /// The files, relative to the data folder.
    pub files: Vec<PathBuf>,
    /// How they hold documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<DocumentFormat>,
    /// How they hold questions with several answers, or minimal pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<ChoiceFormat>,
    /// How choices are made, if not as `[score]` says.
    #[serde(default, skip_serializing)]
    pub rule: Option<ChoiceRule>,
    /// Name for `just fetch`, if it is not that of `[data]`; no part of the record that a trained model keeps.
    #[serde(default, skip_serializing)]
    pub fetch: Option<String>,
}

/// How documents are cut into what the model reads at once.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// Tokens that the model reads at once; all its positions if absent.
    pub length: Option<usize>,
    /// Tokens that each window predicts behind those of the one before; without overlap if absent.
    pub stride: Option<usize>,
    /// Whether the end of a document is predicted too.
    #[serde(default)]
    pub end: bool,
    /// What is drawn in resampling, and counted.
    #[serde(default)]
    pub segments: SegmentKind,
}

/// What is drawn in resampling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SegmentKind {
    /// Documents.
    #[default]
    Documents,
    /// Windows, for a split that is one long text.
    Windows,
}

/// How choices are made.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreSpec {
    /// `acc` or `acc_norm`.
    #[serde(default)]
    pub choices: ChoiceRule,
}

/// How a choice is made, by the names of lm-evaluation-harness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceRule {
    /// The greatest log-probability.
    #[default]
    Acc,
    /// The greatest log-probability divided by the number of characters.
    AccNorm,
}

impl ChoiceRule {
    /// The name in TOML files and signatures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Acc => "acc",
            Self::AccNorm => "acc_norm",
        }
    }
}

/// The splits of the demo language.
pub(super) const GRAMMAR_SPLITS: [&str; 6] =
    ["train", "dev", "test", "shifted", "agreement", "agreement-shifted"];

impl LanguageSpec {
    /// What it has in common with other tasks.
    pub(super) fn outline(&self) -> Outline<'_> {
        let LanguageData { train, dev, test, shifted, estimate, grammar, .. } = &self.data;
        Outline {
            checkpoint: self.checkpoint.as_ref(),
            epochs: self.training.map(|training| training.epochs),
            dynamics: self.dynamics.as_ref(),
            follows_relevance: false,
            functions: self.functions.as_ref(),
            train,
            dev,
            test,
            shifted: shifted.as_deref().or(grammar.map(|_| "shifted")),
            estimate: estimate.as_ref().unwrap_or(train),
            splits: self.data.split_names(),
        }
    }

    /// Refuses values that make no sense: the fault, in words.
    pub(super) fn validate(&self) -> Result<(), String> {
        let data = &self.data;
        check_sources(
            [data.grammar.is_some(), !data.splits.is_empty()],
            [self.checkpoint.is_some(), self.model.is_some()],
        )?;
        data.validate()?;
        self.windows.validate()?;
        if let Some(dynamics) = &self.dynamics {
            dynamics.validate(self.training.map(|training| training.epochs))?;
        }
        self.functions.as_ref().map_or(Ok(()), FunctionsSpec::validate)?;
        match (&self.model, self.tokenizer, self.training) {
            (None, None, None) => Ok(()),
            (Some(model), Some(tokenizer), Some(training)) => {
                self.validate_training(model, tokenizer, training)
            }
            (None, ..) => Err(
                "[checkpoint] takes neither [tokenizer] nor [training]: language models are not fine-tuned"
                    .to_owned(),
            ),
            (Some(_), ..) => {
                Err("[model] needs [tokenizer] and [training]: it is trained from scratch".to_owned())
            }
        }
    }

    fn validate_training(
        &self,
        model: &DecoderSpec,
        tokenizer: TokenizerSpec,
        training: PretrainingSpec,
    ) -> Result<(), String> {
        training.validate()?;
        check(&[
            (
                "tokenizer.vocabulary is for bytes, and they need it",
                tokenizer.vocabulary.is_some() == (tokenizer.kind == TokenKind::Bytes),
            ),
            (
                "training.blocks.length must be at most model.positions",
                training.blocks.is_none_or(|blocks| blocks.length as i64 <= model.positions),
            ),
        ])?;
        let known = self.data.split_names();
        for (role, split) in [("train", &self.data.train), ("dev", &self.data.dev)] {
            if !known.contains(split) {
                return Err(format!(
                    "[training] needs a {role} split, but `{split}` is none of {}: data.{role} names one",
                    quoted(&known)
                ));
            }
            if self.data.is_of_questions(split) {
                return Err(format!("[training] needs documents, but split `{split}` is of questions"));
            }
        }
        model.validate()
    }
}

impl LanguageData {
    fn validate(&self) -> Result<(), String> {
        check_split_names(self.splits.keys())?;
        let sizes = self.grammar.map_or([0; 5], |g| [g.train, g.dev, g.test, g.shifted, g.pairs]);
        check(&[
            ("sizes in data.grammar must be at most 10000000", sizes.iter().all(|&size| size <= 10_000_000)),
            // the grammar has not many more short sentences
            ("data.grammar.pairs must be at most 10000", sizes[4] <= 10_000),
        ])?;
        for (name, split) in &self.splits {
            split.validate().map_err(|fault| format!("data.splits.{name}: {fault}"))?;
        }
        Ok(())
    }

    /// The names of all splits.
    pub(super) fn split_names(&self) -> Vec<String> {
        match self.grammar {
            Some(_) => GRAMMAR_SPLITS.map(str::to_owned).to_vec(),
            None => self.splits.keys().cloned().collect(),
        }
    }

    /// Whether a split is scored by choices.
    pub(super) fn is_of_questions(&self, split: &str) -> bool {
        match self.grammar {
            Some(_) => split.starts_with("agreement"),
            None => self.splits.get(split).is_some_and(|split| split.choices.is_some()),
        }
    }
}

impl LanguageSplit {
    fn validate(&self) -> Result<(), String> {
        check(&[
            ("`files` names none", !self.files.is_empty()),
            ("`rule` is for `choices`", self.rule.is_none() || self.choices.is_some()),
            (
                "either `documents` or `choices` must say how its files are to be read",
                self.documents.is_some() != self.choices.is_some(),
            ),
        ])?;
        let format = self.documents.as_ref().map(DocumentFormat::validate);
        let format = format.or_else(|| self.choices.as_ref().map(ChoiceFormat::validate));
        format.map_or(Ok(()), |valid| valid.map_err(|fault| fault.to_string()))
    }
}

impl WindowSpec {
    fn validate(self) -> Result<(), String> {
        check(&[
            ("windows.length must be at least 1", self.length != Some(0)),
            ("windows.stride must be at least 1", self.stride != Some(0)),
            (
                "windows.stride must be at most windows.length",
                self.stride.is_none_or(|stride| self.length.is_none_or(|length| stride <= length)),
            ),
        ])
    }
}
