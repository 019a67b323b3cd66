//! The splits of a language model.
use std::path::{Path, PathBuf};

use corpus::checksum;
use corpus::choices::{self, Choice};
use corpus::documents::{self, Document};
use corpus::grammar::{Domain, SplitSizes, agreement_pairs, language_samples, language_splits};
use corpus::trees::Tree;

use super::spec::{LanguageData, LanguageGrammar};
use crate::error::Error;
use crate::spec::check_fetched;

/// A split as it is read.
#[derive(Debug, Clone)]
pub(crate) enum Texts {
    /// Scored by nats per token.
    Documents(Vec<Document>),
    /// Scored by the share of right choices.
    Questions(Vec<Choice>),
}

impl Texts {
    /// Number of documents or questions.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Documents(documents) => documents.len(),
            Self::Questions(questions) => questions.len(),
        }
    }

    /// How many questions each group has; all texts are one group where there are none.
    pub(super) fn group_sizes(&self) -> Vec<usize> {
        let groups = match self {
            Self::Documents(_) => Vec::new(),
            Self::Questions(questions) => groups(questions),
        };
        if groups.is_empty() { vec![self.len()] } else { groups.iter().map(|group| group.segments).collect() }
    }

    /// The documents, or of each question the right choice in its context.
    pub(super) fn sentences(&self) -> Vec<String> {
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

    /// Those at these places.
    pub(super) fn select(&self, places: &[usize]) -> Self {
        fn chosen<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
            places.iter().map(|&place| all[place].clone()).collect()
        }
        match self {
            Self::Documents(documents) => Self::Documents(chosen(documents, places)),
            Self::Questions(questions) => Self::Questions(chosen(questions, places)),
        }
    }

    /// SHA-256 of the texts.
    pub(super) fn sha256(&self) -> String {
        match self {
            Self::Documents(documents) => checksum::of_documents(documents),
            Self::Questions(questions) => checksum::of_questions(questions),
        }
    }
}

/// Questions that stand together about one thing.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(super) struct Group<'a> {
    name: &'a str,
    /// Their number.
    pub(super) segments: usize,
}

/// The groups of questions in their order; none unless all questions say what they are about.
pub(super) fn groups(questions: &[Choice]) -> Vec<Group<'_>> {
    fn group(questions: &[Choice]) -> Option<Group<'_>> {
        let name = questions[0].group.as_ref()?;
        Some(Group { name, segments: questions.len() })
    }
    let same = questions.chunk_by(|one, next| one.group == next.group);
    same.map(group).collect::<Option<_>>().unwrap_or_default()
}

/// Reads one of the splits; `folder` is where data sets are.
///
/// # Errors
/// If a file is missing, torn, or not as described.
pub(super) fn read_split(spec: &LanguageData, folder: &Path, split: &str) -> Result<Texts, Error> {
    if let Some(grammar) = spec.grammar {
        return Ok(generate(grammar, split));
    }
    let described = &spec.splits[split];
    let paths = files(spec, folder, split);
    check_fetched(&paths, described.fetch.as_ref().or(spec.fetch.as_ref()))?;
    match (&described.documents, &described.choices) {
        (Some(format), _) => Ok(Texts::Documents(documents::read(&paths, format)?)),
        (None, Some(format)) => {
            let read = paths.iter().map(|path| choices::read(path, format)).collect::<Result<Vec<_>, _>>()?;
            Ok(Texts::Questions(read.concat()))
        }
        (None, None) => Err(Error::NoFormat { split: split.to_owned() }), // refused by validation
    }
}

/// The files of a split; none if it is made up, or there is no such split.
pub(super) fn files(spec: &LanguageData, folder: &Path, split: &str) -> Vec<PathBuf> {
    let split = spec.splits.get(split).filter(|_| spec.grammar.is_none());
    split.map_or(Vec::new(), |split| split.files.iter().map(|file| folder.join(file)).collect())
}

fn generate(grammar: LanguageGrammar, split: &str) -> Texts {
    let LanguageGrammar { seed, train, dev, test, shifted, pairs } = grammar;
    let splits = || language_splits(SplitSizes { train, dev, test, shifted }, seed);
    match split {
        "train" => Texts::Documents(splits().train),
        "dev" => Texts::Documents(splits().dev),
        "test" => Texts::Documents(splits().test),
        "shifted" => Texts::Documents(splits().shifted),
        "agreement" => by_group(agreement_pairs(Domain::Standard, pairs, seed)),
        _ => by_group(agreement_pairs(Domain::Shifted, pairs, seed)),
    }
}

/// The documents of a split with their trees; none of questions.
pub(super) fn trees(grammar: LanguageGrammar, split: &str) -> Option<Vec<Tree>> {
    let LanguageGrammar { seed, train, dev, test, shifted, .. } = grammar;
    let splits = language_samples(SplitSizes { train, dev, test, shifted }, seed);
    let samples = match split {
        "train" => splits.train,
        "dev" => splits.dev,
        "test" => splits.test,
        "shifted" => splits.shifted,
        _ => return None,
    };
    Some(samples.iter().map(Tree::from).collect())
}

/// Questions about one thing side by side.
fn by_group(mut questions: Vec<Choice>) -> Texts {
    questions.sort_by(|one, other| one.group.cmp(&other.group));
    Texts::Questions(questions)
}
