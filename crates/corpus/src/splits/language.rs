//! Documents or questions of a split: from files or the demo grammar.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::harness;
pub use super::harness::ProcessDocs;
use super::{BadRows, check};
use crate::choices::{self, Choice, ChoiceFormat, Choices, Fewshot, Shots};
use crate::documents::{self, Document, DocumentFormat};
use crate::grammar::{Domain, SplitSizes, agreement_pairs, language_samples, language_splits};
use crate::trees::Tree;
use crate::{Error, checksum};

/// The demo language: the seed of the generator and the size of each split.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grammar {
    /// Seed of the generator.
    pub seed: u64,
    /// Number of training sentences.
    pub train: usize,
    /// Number of sentences on which the best epoch is chosen.
    pub dev: usize,
    /// Number of test sentences.
    pub test: usize,
    /// Number of test sentences from the shifted domain.
    pub shifted: usize,
    /// Number of minimal pairs for agreement in each domain.
    pub pairs: usize,
}

/// A split: files of documents or of questions, read one after another.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitFiles {
    /// The files, relative to the data folder.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Layout of documents in the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<DocumentFormat>,
    /// Layout of multiple-choice questions, or of minimal pairs, in the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<ChoiceFormat>,
    /// A task of lm-evaluation-harness that defines these entries, `lm-eval:task.yaml`, relative to the folder of the setup.
    #[serde(default, skip_serializing)]
    pub from: Option<String>,
    /// Declares that the files contain the output of the task's `process_docs`.
    #[serde(default, skip_serializing)]
    pub process_docs: Option<ProcessDocs>,
    /// Answered examples before each question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewshot: Option<Fewshot>,
    /// Rule for choices, if it differs from `[score]`.
    #[serde(default, skip_serializing)]
    pub rule: Option<ChoiceRule>,
    /// Another split, whose entries except `rule` are taken over.
    #[serde(default, skip_serializing)]
    pub like: Option<String>,
    /// Name for `just fetch`, if it differs from `[data]`; not in the record that a trained model keeps.
    #[serde(default, skip_serializing)]
    pub fetch: Option<String>,
}

/// How choices are scored; the first two rules are named as in lm-evaluation-harness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceRule {
    /// Highest log-probability.
    #[default]
    Acc,
    /// Highest log-probability per character.
    AccNorm,
    /// Log-odds of the right choice: its log-probability minus the log of the summed probabilities of all others.
    LogOdds,
}

impl ChoiceRule {
    /// Returns the name in TOML files and signatures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acc => "acc",
            Self::AccNorm => "acc_norm",
            Self::LogOdds => "log_odds",
        }
    }
}

/// Texts of a split.
#[derive(Debug, Clone)]
pub enum Texts {
    /// Scored in nats per token.
    Documents(Vec<Document>),
    /// Scored by accuracy or by log-odds.
    Questions(Vec<Choice>),
}

impl Texts {
    /// Returns the number of documents or questions.
    pub fn count(&self) -> usize {
        match self {
            Self::Documents(documents) => documents.len(),
            Self::Questions(questions) => questions.len(),
        }
    }

    /// Returns the number of questions in each group; without groups, all texts are one.
    pub fn group_sizes(&self) -> Vec<usize> {
        let groups = match self {
            Self::Documents(_) => Vec::new(),
            Self::Questions(questions) => groups(questions),
        };
        if groups.is_empty() {
            vec![self.count()]
        } else {
            groups.iter().map(|group| group.segments).collect()
        }
    }

    /// Returns the documents, or the right choice of each question with its context.
    pub fn sentences(&self) -> Vec<String> {
        match self {
            Self::Documents(documents) => documents.iter().map(|document| document.text.clone()).collect(),
            Self::Questions(questions) => questions
                .iter()
                .map(|question| {
                    let part = &question.parts()[question.answer];
                    format!("{}{}", part.context, part.continuation)
                })
                .collect(),
        }
    }

    /// Returns the texts at these places.
    pub fn select(&self, places: &[usize]) -> Self {
        fn chosen<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
            places.iter().map(|&place| all[place].clone()).collect()
        }
        match self {
            Self::Documents(documents) => Self::Documents(chosen(documents, places)),
            Self::Questions(questions) => Self::Questions(chosen(questions, places)),
        }
    }

    /// Returns the SHA-256 of the texts.
    pub fn sha256(&self) -> String {
        match self {
            Self::Documents(documents) => checksum::of_documents(documents),
            Self::Questions(questions) => checksum::of_questions(questions),
        }
    }
}

/// Consecutive questions about one thing.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Group<'a> {
    /// What the questions are about.
    pub name: &'a str,
    /// Number of questions.
    pub segments: usize,
}

/// Returns the groups of questions in order; empty unless every question belongs to one.
pub fn groups(questions: &[Choice]) -> Vec<Group<'_>> {
    fn group(questions: &[Choice]) -> Option<Group<'_>> {
        let name = questions[0].group.as_ref()?;
        Some(Group { name, segments: questions.len() })
    }
    let same = questions.chunk_by(|one, next| one.group == next.group);
    same.map(group).collect::<Option<_>>().unwrap_or_default()
}

fn scattered(questions: &[Choice]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    groups(questions).into_iter().map(|group| group.name).find(|name| !seen.insert(*name))
}

/// Deserialises splits, and completes those that are `like` another.
///
/// # Errors
/// If a split is like an unknown one or like one that is itself like another, or has entries other than `rule`.
pub fn splits<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, SplitFiles>, D::Error> {
    let read = BTreeMap::<String, SplitFiles>::deserialize(from)?;
    let whole = |(name, own): (&String, &SplitFiles)| {
        let Some(like) = &own.like else { return Ok((name.clone(), own.clone())) };
        let fault = |fault: &str| D::Error::custom(format!("data.splits.{name} is like `{like}`{fault}"));
        let SplitFiles { files, documents, choices, from, fewshot, fetch, .. } = own;
        let others =
            [documents.is_some(), choices.is_some(), from.is_some(), fewshot.is_some(), fetch.is_some()];
        if !files.is_empty() || others.contains(&true) {
            return Err(fault(": only `rule` can be added"));
        }
        let other = read.get(like).filter(|other| other.like.is_none());
        let other = other.ok_or_else(|| fault(", which is not a split with files"))?;
        Ok((name.clone(), SplitFiles { rule: own.rule.or(other.rule), ..other.clone() }))
    };
    read.iter().map(whole).collect()
}

impl SplitFiles {
    /// Replaces `from` by the entries that it defines; `folder` contains the setup. Fails if the task needs Python.
    pub fn translate(&mut self, folder: &Path) -> Result<(), Error> {
        harness::translate(self, folder)
    }

    /// Returns true if each question has a single choice, which is right if the model finds each of its tokens most probable.
    pub fn has_targets(&self) -> bool {
        self.choices.as_ref().is_some_and(|format| matches!(format.choices, Choices::Target { .. }))
    }

    /// Returns the files in `folder`, the data folder.
    pub fn paths(&self, folder: &Path) -> Vec<PathBuf> {
        self.files.iter().map(|file| folder.join(file)).collect()
    }

    /// Reads the files; `None` if the split has no layout.
    pub fn read(&self, folder: &Path, bad: &mut BadRows) -> Option<Result<Texts, Error>> {
        let paths = self.paths(folder);
        let mut read = |format: &ChoiceFormat| {
            let mut shots = self.shots(folder, format)?;
            let read = paths.iter().map(|path| choices::read(path, format, &mut shots, bad));
            let questions = read.collect::<Result<Vec<_>, _>>()?.concat();
            match scattered(&questions) {
                Some(group) => {
                    let group = words::excerpt(group);
                    let reason = format!("the questions of group `{group}` must be next to each other");
                    Err(Error::of(&paths[0], reason))
                }
                None => Ok(Texts::Questions(questions)),
            }
        };
        match (&self.documents, &self.choices) {
            (Some(format), _) => Some(documents::read(&paths, format, bad).map(Texts::Documents)),
            (None, Some(format)) => Some(read(format)),
            (None, None) => None,
        }
    }

    fn shots(&self, folder: &Path, format: &ChoiceFormat) -> Result<Shots, Error> {
        let Some(rule) = &self.fewshot else { return Ok(Shots::none()) };
        // `first` limits the questions, not the rows that examples are drawn from
        let format = ChoiceFormat { description: None, first: None, ..format.clone() };
        let (mut none, mut bad) = (Shots::none(), BadRows::default());
        let read =
            rule.files.iter().map(|file| choices::read(&folder.join(file), &format, &mut none, &mut bad));
        Ok(Shots::new(rule, read.collect::<Result<Vec<_>, _>>()?.concat()))
    }

    /// Checks that the entries do not contradict each other.
    pub fn validate(&self) -> Result<(), String> {
        let is_usable =
            |rule: &Fewshot| rule.number.is_some_and(|number| number > 0) && !rule.files.is_empty();
        check(&[
            (
                "`fewshot` is for `choices` with an answer",
                self.fewshot.is_none() || self.choices.is_some() && !self.has_targets(),
            ),
            (
                "`fewshot` needs `number`, at least 1, and `files`",
                self.fewshot.as_ref().is_none_or(is_usable),
            ),
            ("`process_docs` is for `from`, tasks of lm-evaluation-harness", self.process_docs.is_none()),
            (
                "`rule` must be `acc` for a target",
                !self.has_targets() || self.rule.is_none_or(|rule| rule == ChoiceRule::Acc),
            ),
            ("`files` is empty", !self.files.is_empty()),
            ("`rule` is for `choices`", self.rule.is_none() || self.choices.is_some()),
            (
                "either `documents` or `choices` must set how its files are read",
                self.documents.is_some() != self.choices.is_some(),
            ),
        ])?;
        let format = self.documents.as_ref().map(DocumentFormat::validate);
        let format = format.or_else(|| self.choices.as_ref().map(ChoiceFormat::validate));
        format.map_or(Ok(()), |valid| valid.map_err(|fault| fault.to_string()))
    }
}

impl Grammar {
    /// Names of the splits.
    pub const SPLITS: [&str; 6] = ["train", "dev", "test", "shifted", "agreement", "agreement-shifted"];

    fn sizes(self) -> SplitSizes {
        SplitSizes { train: self.train, dev: self.dev, test: self.test, shifted: self.shifted }
    }

    /// Returns the documents or questions of a split; `None` if the split does not exist.
    pub fn read(self, split: &str) -> Option<Texts> {
        let questions = |domain: Domain| {
            let mut questions = agreement_pairs(domain, self.pairs, self.seed);
            // Groups must be consecutive.
            questions.sort_by(|one, other| one.group.cmp(&other.group));
            Texts::Questions(questions)
        };
        match split {
            "agreement" => Some(questions(Domain::Standard)),
            "agreement-shifted" => Some(questions(Domain::Shifted)),
            _ => language_splits(self.sizes(), self.seed).named(split).map(Texts::Documents),
        }
    }

    /// Returns the documents of a split with their trees; `None` for questions.
    pub fn trees(self, split: &str) -> Option<Vec<Tree>> {
        let samples = language_samples(self.sizes(), self.seed).named(split)?;
        Some(samples.iter().map(Tree::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_may_be_like_others_but_for_their_rule() {
        #[derive(Debug, Deserialize)]
        struct Data {
            #[serde(deserialize_with = "splits")]
            splits: BTreeMap<String, SplitFiles>,
        }
        let read = |own: &str| {
            let first = "splits.a = { files = ['a.tsv'], rule = 'acc_norm', fetch = 'x' }";
            toml::from_str::<Data>(&format!("{first}\nsplits.b = {{ {own} }}"))
                .map(|data| data.splits["b"].clone())
        };
        let split = read("like = 'a', rule = 'log_odds'").unwrap();
        assert_eq!((split.files, split.fetch), (vec![PathBuf::from("a.tsv")], Some("x".to_owned())));
        assert_eq!(split.rule, Some(ChoiceRule::LogOdds));
        assert_eq!(read("like = 'a'").unwrap().rule, Some(ChoiceRule::AccNorm));
        for (own, fault) in [
            ("like = 'c'", "data.splits.b is like `c`, which is not a split with files"),
            ("like = 'b'", "data.splits.b is like `b`, which is not a split with files"),
            ("like = 'a', files = ['b.tsv']", "data.splits.b is like `a`: only `rule` can be added"),
        ] {
            let message = read(own).unwrap_err().to_string();
            assert!(message.contains(fault), "{message}");
        }
    }

    #[test]
    fn groups_that_do_not_stand_side_by_side_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let split: SplitFiles = toml::from_str(
            "files = ['a.tsv']\nchoices = { kind = 'tsv', choices = ['good', 'bad'], answer = { always = 1 }, group = 'about' }",
        )
        .unwrap();
        let read = |groups: [&str; 3]| {
            let row = |group: &&str| format!("yes\tno\t{group}\n");
            let rows: String = groups.iter().map(row).collect();
            std::fs::write(folder.path().join("a.tsv"), format!("good\tbad\tabout\n{rows}")).unwrap();
            split.read(folder.path(), &mut BadRows::default()).unwrap()
        };
        assert!(read(["x", "x", "y"]).is_ok());
        let message = read(["x", "y", "x"]).unwrap_err().to_string();
        assert!(message.ends_with("the questions of group `x` must be next to each other"), "{message}");
    }
}
