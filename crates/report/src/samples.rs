//! The texts of segments that a page may show: those of the demos, whose languages are made up, and, where the reader asks for
//! them, those of files of their own. What is fetched belongs to others, whose licences need not allow it.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use corpus::checksum;
use corpus::choices::{self, Choice, ChoiceFormat};
use corpus::documents::{self, Document, DocumentFormat};
use corpus::grammar::{
    Domain, InferenceSizes, SplitSizes, agreement_pairs, demo_splits, inference_splits, language_splits,
};
use corpus::labelled::{self, Example, Format};
use corpus::parallel::ParallelText;
use serde::Deserialize;

/// What the file of a subject says of its data.
#[derive(Debug, Deserialize)]
struct DataOf {
    #[serde(default)]
    task: Task,
    data: Data,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Task {
    #[default]
    Translation,
    Classification,
    LanguageModelling,
}

#[derive(Debug, Deserialize)]
struct Data {
    grammar: Option<Grammar>,
    /// Whose texts they are, where they are fetched.
    fetch: Option<String>,
    format: Option<Format>,
    #[serde(default)]
    rename: BTreeMap<String, String>,
    #[serde(default)]
    splits: BTreeMap<String, toml::Value>,
}

/// Seed and sizes of all demo grammars; those of other tasks are 0.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Grammar {
    seed: u64,
    train: usize,
    dev: usize,
    #[serde(default)]
    test: usize,
    #[serde(default)]
    shifted: usize,
    #[serde(default)]
    matched: usize,
    #[serde(default)]
    mismatched: usize,
    #[serde(default)]
    pairs: usize,
}

/// Two files of as many lines.
#[derive(Debug, Deserialize)]
struct Pair {
    source: PathBuf,
    target: PathBuf,
}

/// A file, with a format of its own or the common one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Table {
    Plain(PathBuf),
    Formatted { file: PathBuf, format: Format },
}

/// Files of documents or of questions.
#[derive(Debug, Deserialize)]
struct Files {
    files: Vec<PathBuf>,
    documents: Option<DocumentFormat>,
    choices: Option<ChoiceFormat>,
}

/// A split as it is read.
enum Split {
    Pairs(ParallelText),
    Examples(Vec<Example>),
    Documents(Vec<Document>),
    Questions(Vec<Choice>),
}

impl Split {
    fn sha256(&self) -> String {
        match self {
            Self::Pairs(text) => checksum::of_pairs(text),
            Self::Examples(examples) => checksum::of_examples(examples),
            Self::Documents(documents) => checksum::of_documents(documents),
            Self::Questions(questions) => checksum::of_questions(questions),
        }
    }

    /// Each segment as a reader should see it.
    fn texts(self) -> Vec<String> {
        let example = |Example { text, pair, label }| {
            let pair = pair.map_or(String::new(), |pair| format!(" | {pair}"));
            format!("{text}{pair} ({label})")
        };
        match self {
            Self::Pairs(ParallelText { source, target }) => {
                let both = source.into_iter().zip(target);
                both.map(|(source, target)| format!("{source} \u{2192} {target}")).collect()
            }
            Self::Examples(examples) => examples.into_iter().map(example).collect(),
            Self::Documents(documents) => documents.into_iter().map(|document| document.text).collect(),
            Self::Questions(questions) => {
                questions.into_iter().map(|own| own.context + &own.choices.join(" | ")).collect()
            }
        }
    }
}

/// The texts of a split, by the file that describes its subject and, where its own files may be shown, the folder of these; none
/// that are fetched or are not there, that take more than reading files, such as a sample, or if `sha256`, the checksum in the
/// signature, is that of others.
pub fn texts(description: &str, data: Option<&Path>, split: &str, sha256: &str) -> Option<Vec<String>> {
    let described: DataOf = toml::from_str(description).ok()?;
    let split = match described.data.grammar {
        Some(grammar) => made_up(described.task, grammar, split)?,
        None => own(described, data?, split)?,
    };
    (split.sha256() == sha256).then(|| split.texts())
}

fn own(described: DataOf, folder: &Path, name: &str) -> Option<Split> {
    let DataOf { task, data: Data { fetch, format, rename, mut splits, .. } } = described;
    let split = splits.remove(name)?;
    if fetch.is_some() || split.get("fetch").is_some() {
        return None;
    }
    Some(match task {
        Task::Translation => {
            let Pair { source, target } = split.try_into().ok()?;
            Split::Pairs(ParallelText::read(&folder.join(source), &folder.join(target)).ok()?)
        }
        Task::Classification => {
            let (file, format) = match split.try_into().ok()? {
                Table::Plain(file) => (file, format?),
                Table::Formatted { file, format } => (file, format),
            };
            let mut examples = labelled::read(&folder.join(file), &format).ok()?;
            for example in &mut examples {
                if let Some(name) = rename.get(&example.label) {
                    example.label.clone_from(name);
                }
            }
            Split::Examples(examples)
        }
        Task::LanguageModelling => {
            let Files { files, documents, choices } = split.try_into().ok()?;
            let files: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
            match (documents, choices) {
                (Some(format), _) => Split::Documents(documents::read(&files, &format).ok()?),
                (None, Some(format)) => {
                    let read = files.iter().map(|file| choices::read(file, &format));
                    Split::Questions(read.collect::<Result<Vec<_>, _>>().ok()?.concat())
                }
                (None, None) => return None,
            }
        }
    })
}

fn made_up(task: Task, grammar: Grammar, split: &str) -> Option<Split> {
    let Grammar { seed, train, dev, test, shifted, matched, mismatched, pairs } = grammar;
    let sizes = SplitSizes { train, dev, test, shifted };
    Some(match task {
        Task::Translation => {
            let splits = demo_splits(sizes, seed);
            let samples = match split {
                "dev" => splits.dev,
                "test" => splits.test,
                "shifted" => splits.shifted,
                _ => return None,
            };
            let (source, target) = samples.into_iter().map(|sample| (sample.source, sample.target)).unzip();
            Split::Pairs(ParallelText { source, target })
        }
        Task::Classification => {
            let splits = inference_splits(InferenceSizes { train, dev, matched, mismatched }, seed);
            Split::Examples(match split {
                "dev" => splits.dev,
                "matched" => splits.matched,
                "mismatched" => splits.mismatched,
                _ => return None,
            })
        }
        Task::LanguageModelling => match split {
            "dev" => Split::Documents(language_splits(sizes, seed).dev),
            "test" => Split::Documents(language_splits(sizes, seed).test),
            "shifted" => Split::Documents(language_splits(sizes, seed).shifted),
            "agreement" => questions(Domain::Standard, pairs, seed),
            "agreement-shifted" => questions(Domain::Shifted, pairs, seed),
            _ => return None,
        },
    })
}

/// By group, as subjects have them.
fn questions(domain: Domain, pairs: usize, seed: u64) -> Split {
    let mut all = agreement_pairs(domain, pairs, seed);
    all.sort_by(|one, other| one.group.cmp(&other.group));
    Split::Questions(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMO: &str = include_str!("../../../experiments/demo-translation.toml");

    /// The checksum is that in the signature of the committed `results/demo-translation/ablate-one.json`.
    #[test]
    fn the_texts_of_a_demo_are_those_that_were_measured() {
        let sha256 = "9b3f4168085f86e3cc597c98aacec642c242b00f3d347d5bd0f560dcb10e7320";
        assert_eq!(texts(DEMO, None, "test", sha256).unwrap().len(), 400);
        assert!(texts(DEMO, None, "shifted", sha256).is_none(), "another split has other texts");
        let no_splits = "task = \"classification\"\n[data]\nsplits = {}";
        assert!(texts(no_splits, None, "test", sha256).is_none());
    }

    /// Whoever can read the files has the texts; what is fetched stays where it is.
    #[test]
    fn own_files_are_shown_and_fetched_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.en", "one\ntwo\n");
        write("a.fr", "un\ndeux\n");
        write("b.tsv", "text\tlabel\nfine\t1\n");
        write("c.txt", "a text\n");
        let pairs = "[data]\n[data.splits]\ntest = { source = 'a.en', target = 'a.fr' }";
        let table = "task = 'classification'\n[data]\nrename = { '1' = 'good' }\n\
                     format = { kind = 'tsv', text = 'text', label = 'label' }\n[data.splits]\ntest = 'b.tsv'";
        let documents = "task = 'language-modelling'\n[data]\n[data.splits]\n\
                         test = { files = ['c.txt'], documents = { kind = 'lines' } }";
        let text = |text: &str| text.to_owned();
        let both =
            ParallelText { source: vec![text("one"), text("two")], target: vec![text("un"), text("deux")] };
        let example = Example { text: text("fine"), pair: None, label: text("good") };
        for (toml, sha256, expected) in [
            (pairs, checksum::of_pairs(&both), "one \u{2192} un"),
            (table, checksum::of_examples(&[example]), "fine (good)"),
            (documents, checksum::of_documents(&[Document { text: text("a text") }]), "a text"),
        ] {
            let found = |toml: &str, sha256: &str| texts(toml, Some(folder.path()), "test", sha256);
            assert_eq!(found(toml, &sha256).expect(toml)[0], expected);
            assert!(found(toml, "other").is_none());
            assert!(texts(toml, None, "test", &sha256).is_none(), "nobody has asked for them");
            let fetched = toml.replacen("[data]", "[data]\nfetch = 'x'", 1);
            assert!(found(&fetched, &sha256).is_none(), "{fetched}");
        }
    }
}
