//! The description of a language model.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use core_masking::{HeadLayout, ModelConfig};
use corpus::repeats::Repeats;
use corpus::splits::check;
use corpus::splits::language::{ChoiceRule, Grammar, SplitFiles, Texts};
use corpus::splits::{BadRowRule, BadRows};
use corpus::trees::Tree;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::data::{files, read_split};
use super::model::{DecoderSpec, PretrainingSpec, Symbols, TokenKind, TokenizerSpec};
use crate::checkpoint::CheckpointSpec;
use crate::dynamics::DynamicsSpec;
use crate::error::{Error, quoted};
use crate::functions::FunctionsSpec;
use crate::spec::{check_sources, check_split_names};
use crate::task::{Outline, Spec};

/// A language model as its TOML file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LanguageSpec {
    /// Known by now.
    #[serde(rename = "task")]
    _task: IgnoredAny,
    /// One sentence for people.
    #[serde(rename = "description")]
    _description: String,
    /// Source of the texts.
    pub data: LanguageData,
    /// Windows that documents are cut into.
    #[serde(default)]
    pub windows: WindowSpec,
    /// Rule of choices.
    #[serde(default)]
    pub score: ScoreSpec,
    /// A model that is there already.
    pub checkpoint: Option<CheckpointSpec>,
    /// Size of a model that is trained from scratch.
    pub model: Option<DecoderSpec>,
    /// Tokeniser of the texts, if the model is trained from scratch.
    pub tokenizer: Option<TokenizerSpec>,
    /// Recipe of its training.
    pub training: Option<PretrainingSpec>,
    /// Checkpoints of the training that stay; those of all epochs if absent.
    pub dynamics: Option<DynamicsSpec>,
    /// Sentences with trees, for `head-functions`.
    pub functions: Option<FunctionsSpec>,
}

/// Source of the texts: files, or the demo grammar.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LanguageData {
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
    /// Treatment of rows at fault.
    #[serde(default)]
    pub bad_rows: BadRowRule,
    /// The split that importance is measured on; the training split if absent.
    pub estimate: Option<String>,
    /// The demo language, made when needed; its splits are train, dev, test, shifted, agreement and agreement-shifted.
    pub grammar: Option<Grammar>,
    /// Blocks of random symbols said twice, made when needed; its splits are train, dev and test.
    pub repeats: Option<Repeats>,
    /// Documents or questions by the name of their split.
    #[serde(default, deserialize_with = "corpus::splits::language::splits")]
    pub splits: BTreeMap<String, SplitFiles>,
}

/// Windows that documents are cut into, which the model reads at once.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WindowSpec {
    /// Tokens that the model reads at once; all its positions if absent.
    pub length: Option<usize>,
    /// Tokens that each window predicts behind those of the one before; without overlap if absent.
    pub stride: Option<usize>,
    /// True if the end of a document is predicted too.
    #[serde(default)]
    pub end: bool,
    /// True if windows behind the first of a document begin with the symbol that texts begin with.
    #[serde(default)]
    pub begin: bool,
    /// Units that are drawn in resampling, and counted.
    #[serde(default)]
    pub segments: SegmentKind,
}

/// Unit that is drawn in resampling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SegmentKind {
    /// Documents.
    #[default]
    Documents,
    /// Windows, for a split that is one long text.
    Windows,
}

/// Rule of choices.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScoreSpec {
    /// `acc`, `acc_norm` or `log_odds`.
    pub choices: ChoiceRule,
    /// True if BOS precedes the context of a question wherever the tokenizer adds it to texts.
    pub context_bos: bool,
}

impl Default for ScoreSpec {
    fn default() -> Self {
        Self { choices: ChoiceRule::default(), context_bos: true }
    }
}

impl Spec for LanguageSpec {
    type Examples = Texts;

    fn seed(&mut self) -> Option<&mut u64> {
        self.training.as_mut().map(|training| &mut training.seed)
    }

    fn complete(&mut self, folder: &Path) -> Result<(), String> {
        let mut splits = self.data.splits.iter_mut();
        splits.try_for_each(|(name, split)| {
            split.translate(folder).map_err(|fault| format!("data.splits.{name}: {}", words::in_full(&fault)))
        })
    }

    fn outline(&self) -> Outline<'_> {
        let LanguageData { train, dev, test, shifted, estimate, grammar, .. } = &self.data;
        Outline {
            checkpoint: self.checkpoint.as_ref(),
            epochs: self.training.map(|training| training.epochs),
            replicates: self.training.map_or(1, |training| training.replicates.get()),
            dynamics: self.dynamics.as_ref(),
            follows_relevance: false,
            functions: self.functions.as_ref(),
            train,
            dev,
            test,
            shifted: shifted.as_deref().or(grammar.map(|_| "shifted")),
            bad_rows: self.data.bad_rows,
            estimate: estimate.as_ref().unwrap_or(train),
            splits: self.data.split_names(),
        }
    }

    fn validate(&self) -> Result<(), String> {
        let data = &self.data;
        check_sources(
            [data.grammar.is_some() || data.repeats.is_some(), !data.splits.is_empty()],
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

    fn layout(&self) -> Option<HeadLayout> {
        // the size of the vocabulary does not matter
        let config = |model: &DecoderSpec| model.open_heads.of_config(model.config(1, Symbols::default()));
        self.model.as_ref().map(|model| config(model).layout())
    }

    fn read(&self, data: &Path, split: &str, bad: &mut BadRows) -> Result<Texts, Error> {
        read_split(&self.data, data, split, bad)
    }

    fn files(&self, data: &Path, split: &str) -> Vec<PathBuf> {
        files(&self.data, data, split)
    }

    fn trees(&self, split: &str) -> Option<Vec<Tree>> {
        self.data.grammar?.trees(split)
    }

    fn groups(texts: &Texts) -> Vec<usize> {
        texts.group_sizes()
    }

    fn select(texts: &Texts, places: &[usize]) -> Texts {
        texts.select(places)
    }

    fn sentences(texts: &Texts) -> Vec<String> {
        texts.sentences()
    }

    fn sha256(texts: &Texts) -> String {
        texts.sha256()
    }
}

impl LanguageSpec {
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
        if let Some(repeats) = self.repeats {
            check(&[("[data] has both a grammar and repeats: choose one", self.grammar.is_none())])?;
            repeats.validate()?;
        }
        for (name, split) in &self.splits {
            split.validate().map_err(|fault| format!("data.splits.{name}: {fault}"))?;
        }
        Ok(())
    }

    /// The names of all splits.
    pub(super) fn split_names(&self) -> Vec<String> {
        match (self.grammar, self.repeats) {
            (Some(_), _) => Grammar::SPLITS.map(str::to_owned).to_vec(),
            (_, Some(_)) => Repeats::SPLITS.map(str::to_owned).to_vec(),
            _ => self.splits.keys().cloned().collect(),
        }
    }

    /// Returns true for a split that is scored by choices.
    pub(super) fn is_of_questions(&self, split: &str) -> bool {
        match self.grammar {
            Some(_) => split.starts_with("agreement"),
            None => self.splits.get(split).is_some_and(|split| split.choices.is_some()),
        }
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
