//! The setup file, as far as readers of its results need it.
use std::io::{self, ErrorKind};
use std::path::Path;

use records::StandsFor;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::findings::replicates::FOLDER;

/// Contents of a setup file; empty if the file does not exist.
#[derive(Debug, Clone, Default)]
pub struct SubjectFile {
    /// Text of the file.
    pub text: Option<String>,
    /// One sentence on the model and data.
    pub description: Option<String>,
    /// Facts that apply to all its results.
    pub kind: SubjectKind,
    /// Why an existing file could not be read or parsed.
    pub fault: Option<String>,
}

/// Facts about a setup that tables and captions state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubjectKind {
    /// Model and data in the paper that its results can be compared with.
    pub stands_for: Option<StandsFor>,
    /// `true` if its data is synthetic.
    pub is_demo: bool,
    /// `true` if its data is a synthetic language with a grammar.
    pub has_grammar: bool,
    /// `true` if all runs start from one checkpoint, so that a head number means the same head in all of them.
    pub is_fine_tuned: bool,
}

/// The keys that matter here; the crate `subject` checks the whole file before an experiment.
#[derive(Deserialize)]
struct File {
    description: Option<String>,
    stands_for: Option<StandsFor>,
    data: Option<Data>,
    checkpoint: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Data {
    grammar: Option<IgnoredAny>,
    repeats: Option<IgnoredAny>,
}

impl SubjectFile {
    /// Reads `<subject>.toml` in the folder of setup files.
    pub fn read(experiments: &Path, subject: &str) -> Self {
        let path = durable::bundled(&experiments.join(format!("{subject}.toml")));
        let text = match durable::open_regular(&path).and_then(io::read_to_string) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                let fault = Some(format!("cannot read `{}`: {error}", path.display()));
                return Self { fault, ..Self::default() };
            }
        };
        match toml::from_str(&text) {
            Ok(File { description, stands_for, data, checkpoint }) => {
                let has_grammar = data.as_ref().is_some_and(|data| data.grammar.is_some());
                let is_demo = has_grammar || data.is_some_and(|data| data.repeats.is_some());
                let is_fine_tuned = checkpoint.is_some();
                let kind = SubjectKind { stands_for, is_demo, has_grammar, is_fine_tuned };
                Self { text: Some(text), description, kind, fault: None }
            }
            Err(error) => {
                let fault = format!("`{}`: {}", path.display(), error.message());
                Self { text: Some(text), fault: Some(fault), ..Self::default() }
            }
        }
    }
}

impl SubjectKind {
    /// Returns the displayed name of a setup, with the number of its run if that is not the first.
    pub fn shown(self, subject: &str) -> String {
        let (name, training) = match subject.split_once('/') {
            Some((name, folder)) => (name, format!(", run {}", folder.trim_start_matches(FOLDER))),
            None => (subject, String::new()),
        };
        let demo = match self {
            Self { has_grammar: true, .. } => " (demo language)",
            Self { is_demo: true, .. } => " (demo)",
            _ => "",
        };
        format!("{name}{demo}{training}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_sets_what_its_setup_stands_for_and_a_missing_one_is_empty() {
        let read = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a.toml"), text).unwrap();
            SubjectFile::read(folder.path(), "a")
        };
        let kind = read("stands_for = \"mnli\"\n[data]\ngrammar = { seed = 1 }").kind;
        let expected = SubjectKind {
            stands_for: Some(StandsFor::Mnli),
            is_demo: true,
            has_grammar: true,
            is_fine_tuned: false,
        };
        assert_eq!(kind, expected);
        assert_eq!(kind.shown("a"), "a (demo language)");
        assert_eq!(kind.shown("a/replicate-6"), "a (demo language), run 6");
        assert_eq!(read("[data]\nrepeats = { seed = 1 }").kind.shown("a"), "a (demo)");
        let missing = SubjectFile::read(Path::new("no such folder"), "a");
        assert!(missing.text.is_none() && missing.fault.is_none());
    }
}
