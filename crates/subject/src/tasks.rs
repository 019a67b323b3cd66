//! All tasks: a new one is a module with a [`Task`](crate::task::Task) that is [`Trained`] and a line here.
use std::io;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::classification::Classification;
use crate::error::Error;
use crate::language::LanguageModelling;
use crate::spec::{in_line, parse};
use crate::subject_file::AnySubjectFile;
use crate::subject_file::SubjectFile;
use crate::task::Spec as _;
use crate::train::Trained;
use crate::translation::Translation;

/// The first is the task of files that name none.
const TASKS: [Entry; 3] = [
    Entry { task: "translation", describes: "a translator", read: read_as::<Translation> },
    Entry { task: "classification", describes: "a classifier", read: read_as::<Classification> },
    Entry { task: "language-modelling", describes: "a language model", read: read_as::<LanguageModelling> },
];

/// A task as TOML files name it.
struct Entry {
    task: &'static str,
    /// The model that such a file describes.
    describes: &'static str,
    read: Read,
}

/// Reads a file: name of the subject, path and text.
type Read = fn(&str, &Path, &str) -> Result<Box<dyn AnySubjectFile>, String>;

fn read_as<T: Trained>(name: &str, path: &Path, text: &str) -> Result<Box<dyn AnySubjectFile>, String> {
    let mut spec: T::Spec = parse(text)?;
    spec.complete(path.parent().unwrap_or(Path::new("")))?;
    Ok(Box::new(SubjectFile::<T> { name: name.to_owned(), path: path.to_owned(), spec }))
}

/// The entry that says how the others are to be read.
#[derive(Deserialize)]
struct Header {
    task: Option<Spanned<String>>,
}

/// Reads and validates the TOML file of a subject.
///
/// # Errors
/// If the file is missing, no TOML, has unknown or missing entries, or values that make no sense.
pub(crate) fn read(name: &str, path: &Path) -> Result<Box<dyn AnySubjectFile>, Error> {
    let text = durable::open_regular(path)
        .and_then(io::read_to_string)
        .map_err(|source| Error::read(path, source))?;
    read_text(name, path, &text).map_err(|fault| Error::at(path, fault))
}

fn read_text(name: &str, path: &Path, text: &str) -> Result<Box<dyn AnySubjectFile>, String> {
    let file = match parse::<Header>(text)?.task {
        None => (TASKS[0].read)(name, path, text).map_err(without_task)?,
        Some(task) => {
            let entry = TASKS.iter().find(|entry| entry.task == task.get_ref());
            let entry = entry.ok_or_else(|| in_line(text, task.span().start, &unknown(task.get_ref())))?;
            (entry.read)(name, path, text)?
        }
    };
    file.validate()?;
    Ok(file)
}

fn unknown(task: &str) -> String {
    let known = TASKS.map(|entry| format!("`{}`", entry.task));
    format!("unknown variant `{task}`, expected {}", known.join(" or "))
}

/// Says what a file without `task` was taken for.
fn without_task(fault: String) -> String {
    let others: Vec<String> = TASKS[1..].iter().map(|entry| format!("`task = \"{}\"`", entry.task)).collect();
    format!("{fault}; without {} it describes {}", others.join(" or "), TASKS[0].describes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

    /// Refusal of a subject's file in which `old` is `new`.
    fn refusal(subject: &str, old: &str, new: &str) -> String {
        let path = Path::new(EXPERIMENTS).join(subject);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{subject} has no {old}");
        read_text("changed", &path, &text.replacen(old, new, 1)).unwrap_err()
    }

    #[test]
    fn a_task_that_cannot_be_read_is_refused_with_its_cause() {
        let text = "task = 'language-modelling'\ndescription = 'x'\ncheckpoint.from = 'x'\n\
                    data.splits.test = { from = 'lm-eval:none.yaml', files = ['a.jsonl'] }\n";
        let fault = read_text("x", Path::new("folder/x.toml"), text).err().unwrap();
        assert!(
            fault.starts_with("data.splits.test: cannot read `folder/none.yaml`: No such file"),
            "{fault}"
        );
    }

    #[test]
    fn splits_whose_names_lead_elsewhere_are_refused() {
        let fault =
            |name: &str| format!("a split cannot be called {name}: its name becomes part of file names");
        let renamed = |name: &str| refusal("multi30k-en-fr.toml", "ntrex = ", &format!("{name} = "));
        assert_eq!(renamed("'../../evil'"), fault(r#""../../evil""#));
        assert_eq!(renamed("'/etc/x'"), fault(r#""/etc/x""#));
        assert_eq!(renamed(r#""\u001b[0m""#), fault(r#""\u{1b}[0m""#));
        let holdout =
            refusal("minilm-mnli.toml", r#"holdout = { name = "dev""#, r#"holdout = { name = "../dev""#);
        assert_eq!(holdout, fault(r#""../dev""#));
    }
}
