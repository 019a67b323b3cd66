//! What the file that describes a subject says of it, as far as readers of its results care.
use std::io::{self, ErrorKind};
use std::path::Path;

use records::StandsFor;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What the file of a subject says. All is absent where there is no such file.
#[derive(Debug, Clone, Default)]
pub struct Described {
    /// The file as it is.
    pub text: Option<String>,
    /// One sentence on model and data.
    pub description: Option<String>,
    /// What readers of any of its results see.
    pub kind: Kind,
    /// Why a file that is there could not be read, or not understood.
    pub fault: Option<String>,
}

/// What tables and captions say of all results of a subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kind {
    /// Whose published numbers stand beside its own.
    pub stands_for: Option<StandsFor>,
    /// Whether its data is a made-up language, which a grammar writes.
    pub is_demo: bool,
}

/// The part of the file that counts here; `subject` checks all of it before an experiment.
#[derive(Deserialize)]
struct File {
    description: Option<String>,
    stands_for: Option<StandsFor>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    grammar: Option<IgnoredAny>,
}

impl Described {
    /// Reads `<subject>.toml` in the folder of experiments.
    pub fn read(experiments: &Path, subject: &str) -> Self {
        let path = experiments.join(format!("{subject}.toml"));
        let text = match durable::open_regular(&path).and_then(io::read_to_string) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                let fault = Some(format!("cannot read `{}`: {error}", path.display()));
                return Self { fault, ..Self::default() };
            }
        };
        let read = toml::from_str::<File>(&text);
        let fault = read.as_ref().err().map(|error| format!("`{}`: {}", path.display(), error.message()));
        let (description, kind) = read.map_or_else(
            |_| Default::default(),
            |File { description, stands_for, data }| {
                let is_demo = data.is_some_and(|data| data.grammar.is_some());
                (description, Kind { stands_for, is_demo })
            },
        );
        Self { text: Some(text), description, kind, fault }
    }
}

impl Kind {
    /// The name of a subject as a reader should see it.
    pub fn shown(self, subject: &str) -> String {
        format!("{subject}{}", if self.is_demo { " (demo language)" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Described {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.toml"), text).unwrap();
        Described::read(folder.path(), "a")
    }

    #[test]
    fn the_file_of_a_subject_says_what_it_stands_for_and_whether_its_language_is_made_up() {
        let kind = read("stands_for = \"mnli\"\n[data]\ngrammar = { seed = 1 }").kind;
        assert_eq!(kind, Kind { stands_for: Some(StandsFor::Mnli), is_demo: true });
        assert_eq!(kind.shown("a"), "a (demo language)");
        assert_eq!(read("description = \"x\"\n[data]").kind, Kind::default());
    }

    #[test]
    fn a_slip_in_the_file_is_named_and_a_missing_file_is_absent() {
        let slip = read("stands_for = \"bert\"");
        let fault = slip.fault.unwrap();
        assert!(fault.contains("a.toml`: unknown variant `bert`") && !fault.contains('\n'), "{fault}");
        assert!(slip.text.is_some());
        let missing = Described::read(Path::new("no such folder"), "a");
        assert!(missing.text.is_none() && missing.fault.is_none());
    }
}
