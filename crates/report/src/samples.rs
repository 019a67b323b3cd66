//! The texts of segments that a page may show: those of the demos, whose languages are made up, and, where the reader asks for
//! them, those of files of their own. What is fetched belongs to others, whose licences need not allow it.
use std::collections::BTreeMap;
use std::path::Path;

use corpus::checksum;
use corpus::labelled::{self, Example, Format};
use corpus::parallel::ParallelText;
use corpus::splits::language::Texts;
use corpus::splits::{classification, language, translation};
use serde::Deserialize;
use serde::de::DeserializeOwned;

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
    grammar: Option<toml::Value>,
    /// Whose texts they are, where they are fetched.
    fetch: Option<String>,
    format: Option<Format>,
    #[serde(default)]
    rename: BTreeMap<String, String>,
    #[serde(default)]
    splits: BTreeMap<String, toml::Value>,
}

/// A split as it is read.
enum Split {
    Pairs(ParallelText),
    Examples(Vec<Example>),
    Texts(Texts),
}

impl Split {
    fn sha256(&self) -> String {
        match self {
            Self::Pairs(text) => checksum::of_pairs(text),
            Self::Examples(examples) => checksum::of_examples(examples),
            Self::Texts(texts) => texts.sha256(),
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
            Self::Texts(Texts::Documents(documents)) => {
                documents.into_iter().map(|document| document.text).collect()
            }
            Self::Texts(Texts::Questions(questions)) => {
                questions.into_iter().map(|own| own.context + &own.choices.join(" | ")).collect()
            }
        }
    }
}

/// The texts of a split, by the file that describes its subject and, where its own files may be shown, the folder of these; none
/// that are fetched or are not there, that are taken out of another split, or if `sha256`, the checksum in the signature, is that
/// of others.
pub fn texts(description: &str, data: Option<&Path>, split: &str, sha256: &str) -> Option<Vec<String>> {
    let DataOf { task, data: described } = toml::from_str(description).ok()?;
    let split = match described.grammar {
        Some(grammar) => made_up(task, grammar, split)?,
        None => own(task, described, data?, split)?,
    };
    (split.sha256() == sha256).then(|| split.texts())
}

fn own(task: Task, data: Data, folder: &Path, name: &str) -> Option<Split> {
    let Data { fetch, format, rename, mut splits, .. } = data;
    let split = splits.remove(name)?;
    if fetch.is_some() || split.get("fetch").is_some() {
        return None;
    }
    Some(match task {
        Task::Translation => {
            let pair: translation::FilePair = split.try_into().ok()?;
            pair.validate().ok()?;
            Split::Pairs(pair.read(folder).ok()?)
        }
        Task::Classification => {
            let file: classification::SplitFile = split.try_into().ok()?;
            let mut examples = labelled::read(&file.path(folder), file.format(format.as_ref())?).ok()?;
            for example in &mut examples {
                if let Some(name) = rename.get(&example.label) {
                    example.label.clone_from(name);
                }
            }
            Split::Examples(examples)
        }
        Task::LanguageModelling => {
            let files: language::SplitFiles = split.try_into().ok()?;
            Split::Texts(files.read(folder)?.ok()?)
        }
    })
}

fn made_up(task: Task, grammar: toml::Value, split: &str) -> Option<Split> {
    fn of<T: DeserializeOwned>(grammar: toml::Value) -> Option<T> {
        grammar.try_into().ok()
    }
    match task {
        Task::Translation => of::<translation::Grammar>(grammar)?.read(split).map(Split::Pairs),
        Task::Classification => of::<classification::Grammar>(grammar)?.read(split).map(Split::Examples),
        Task::LanguageModelling => of::<language::Grammar>(grammar)?.read(split).map(Split::Texts),
    }
}

#[cfg(test)]
mod tests {
    use corpus::documents::Document;

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
