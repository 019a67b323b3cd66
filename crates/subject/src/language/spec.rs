//! Setup file of a language model.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use core_masking::{HeadLayout, ModelConfig};
use corpus::repeats::Repeats;
use corpus::splits::BadRows;
use corpus::splits::check;
use corpus::splits::language::{ChoiceRule, Grammar, SplitFiles, Texts};
use corpus::trees::Tree;
use serde::{Deserialize, Serialize};

use super::model::{DecoderSpec, PretrainingSpec, Symbols, TokenKind, TokenizerSpec};
use crate::error::Error;
use crate::spec::{check_fetched, check_roles, check_sizes, from_scratch, no_format, no_split, section};
use crate::task::{Outline, Spec};

section! {
    /// A language model as its TOML file describes it.
    setup LanguageSpec: LanguageData, DecoderSpec, PretrainingSpec {
        /// Windows that documents are cut into.
        #[serde(default)]
        pub windows: WindowSpec,
        /// Scoring rule of questions.
        #[serde(default)]
        pub score: ScoreSpec,
        /// Tokeniser of the texts, if the model is trained from scratch.
        pub tokenizer: Option<TokenizerSpec>,
    }
}

section! {
    /// Source of texts: files, the grammar or repeated random tokens.
    data LanguageData {
        /// Synthetic language, generated when needed; the splits are train, dev, test, shifted, agreement and agreement-shifted.
        pub grammar: Option<Grammar>,
        /// Repeated random tokens, generated when needed; the splits are train, dev and test.
        pub repeats: Option<Repeats>,
        /// Documents or questions by split.
        #[serde(default, deserialize_with = "corpus::splits::language::splits")]
        pub splits: BTreeMap<String, SplitFiles>,
    }
}

/// Windows that documents are cut into.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WindowSpec {
    /// Tokens per window; defaults to the model's context length.
    pub length: Option<usize>,
    /// New tokens that each window predicts; by default windows do not overlap.
    pub stride: Option<usize>,
    /// True if the end of a document is predicted too.
    #[serde(default)]
    pub end: bool,
    /// True if the windows of a document after the first begin with BOS too.
    #[serde(default)]
    pub begin: bool,
    /// Unit that is resampled and counted.
    #[serde(default)]
    pub segments: SegmentKind,
}

/// Unit that is resampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SegmentKind {
    #[default]
    Documents,
    /// Windows, for a split that is one long text.
    Windows,
}

/// Scoring rule of questions.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScoreSpec {
    /// `acc`, `acc_norm` or `log_odds`.
    pub choices: ChoiceRule,
    /// True if BOS precedes the context of a question when the tokenizer adds BOS to texts.
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
        Outline { follows_relevance: false, ..self.common_outline("shifted", self.data.split_names()) }
    }

    fn validate(&self) -> Result<(), String> {
        let data = &self.data;
        self.validate_common(data.grammar.is_some() || data.repeats.is_some())?;
        data.validate()?;
        self.windows.validate()?;
        let settings = (self.model.as_ref(), self.tokenizer, self.training);
        let settings = from_scratch(settings, ["language models", "it"])?;
        let Some((model, tokenizer, training)) = settings else { return Ok(()) };
        training.validate()?;
        check(&[
            (
                "tokenizer.vocabulary must be set for tokenizer.kind = \"bytes\", and only for it",
                tokenizer.vocabulary.is_some() == (tokenizer.kind == TokenKind::Bytes),
            ),
            (
                "training.blocks.length must be at most model.positions",
                training.blocks.is_none_or(|blocks| blocks.length as i64 <= model.positions),
            ),
        ])?;
        let roles = [&self.data.train, &self.data.dev];
        check_roles(&self.data.split_names(), roles, "")?;
        if let Some(split) = roles.into_iter().find(|split| self.data.is_of_questions(split)) {
            return Err(format!("[training] needs documents, but split `{split}` contains questions"));
        }
        model.validate()
    }

    fn layout(&self) -> Option<HeadLayout> {
        // the vocabulary size does not matter
        let config = |model: &DecoderSpec| model.open_heads.of_config(model.config(1, Symbols::default()));
        self.model.as_ref().map(|model| config(model).layout())
    }

    fn read(&self, data: &Path, split: &str, bad: &mut BadRows) -> Result<Texts, Error> {
        let no_split = || no_split(split, self.data.split_names());
        if let Some(grammar) = self.data.grammar {
            return grammar.read(split).ok_or_else(no_split);
        }
        if let Some(repeats) = self.data.repeats {
            return repeats.read(split).map(Texts::Documents).ok_or_else(no_split);
        }
        let files = self.data.splits.get(split).ok_or_else(no_split)?;
        check_fetched(&files.paths(data), files.fetch.as_ref().or(self.data.fetch.as_ref()))?;
        Ok(files.read(data, bad).ok_or_else(|| no_format(split))??)
    }

    fn files(&self, data: &Path, split: &str) -> Vec<PathBuf> {
        let split = self.data.splits.get(split).filter(|_| self.data.grammar.is_none());
        split.map_or(Vec::new(), |split| split.paths(data))
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

impl LanguageData {
    fn validate(&self) -> Result<(), String> {
        let sizes = self.grammar.map_or([0; 5], |g| [g.train, g.dev, g.test, g.shifted, g.pairs]);
        check_sizes(&sizes)?;
        // the grammar has only slightly more short sentences
        check(&[("data.grammar.pairs must be at most 10000", sizes[4] <= 10_000)])?;
        if let Some(repeats) = self.repeats {
            check(&[("[data] has both a grammar and repeats: choose one", self.grammar.is_none())])?;
            repeats.validate()?;
        }
        for (name, split) in &self.splits {
            split.validate().map_err(|fault| format!("data.splits.{name}: {fault}"))?;
        }
        Ok(())
    }

    pub(super) fn split_names(&self) -> Vec<String> {
        match (self.grammar, self.repeats) {
            (Some(_), _) => Grammar::SPLITS.map(str::to_owned).to_vec(),
            (_, Some(_)) => Repeats::SPLITS.map(str::to_owned).to_vec(),
            _ => self.splits.keys().cloned().collect(),
        }
    }

    /// Returns true for a split that consists of questions.
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
