//! All tasks: their names, the type [`OfTask`] with a variant for each, and the macros that match on it. A new task is a module with a
//! [`Task`](crate::task::Task) that is [`Trained`], plus its entries in all items of this file before the tests.
use std::io;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::classification::Classification;
use crate::error::Error;
use crate::language::LanguageModelling;
use crate::spec::{in_line, parse};
use crate::subject_file::SubjectFile;
use crate::task::Spec as _;
use crate::train::Trained;
use crate::translation::Translation;

/// Names of the tasks in TOML files; the first is the default.
const TASKS: [&str; 3] = ["translation", "classification", "language-modelling"];

/// A value whose type depends on the task.
#[derive(Debug)]
pub(crate) enum OfTask<T, C, L> {
    Translation(T),
    Classification(C),
    Language(L),
}

/// The setup file of any task.
pub(crate) type AnyFile =
    OfTask<SubjectFile<Translation>, SubjectFile<Classification>, SubjectFile<LanguageModelling>>;

/// Evaluates an expression on the value of any task.
macro_rules! in_task {
    ($any:expr, |$own:ident| $result:expr) => {
        match $any {
            crate::tasks::OfTask::Translation($own) => $result,
            crate::tasks::OfTask::Classification($own) => $result,
            crate::tasks::OfTask::Language($own) => $result,
        }
    };
}

/// [`in_task`] whose result is again an [`OfTask`] of the same variant.
macro_rules! map_task {
    ($any:expr, |$own:ident| $result:expr) => {
        match $any {
            crate::tasks::OfTask::Translation($own) => crate::tasks::OfTask::Translation($result),
            crate::tasks::OfTask::Classification($own) => crate::tasks::OfTask::Classification($result),
            crate::tasks::OfTask::Language($own) => crate::tasks::OfTask::Language($result),
        }
    };
}
pub(crate) use {in_task, map_task};

/// The entry that determines how the other entries are parsed.
#[derive(Deserialize)]
struct Header {
    task: Option<Spanned<String>>,
}

/// Reads and validates a setup file.
pub(crate) fn read(name: &str, path: &Path) -> Result<AnyFile, Error> {
    let text = durable::open_regular(path)
        .and_then(io::read_to_string)
        .map_err(|source| Error::read(path, source))?;
    read_text(name, path, &text).map_err(|fault| Error::at(path, fault))
}

fn read_text(name: &str, path: &Path, text: &str) -> Result<AnyFile, String> {
    let named = parse::<Header>(text)?.task;
    let task = named.as_ref().map_or(TASKS[0], |task| task.get_ref());
    let file = match task {
        "translation" => read_as(name, path, text).map(OfTask::Translation),
        "classification" => read_as(name, path, text).map(OfTask::Classification),
        "language-modelling" => read_as(name, path, text).map(OfTask::Language),
        unknown => {
            let known = TASKS.map(|task| format!("`{task}`")).join(" or ");
            let start = named.as_ref().map_or(0, |task| task.span().start);
            return Err(in_line(text, start, &format!("unknown variant `{unknown}`, expected {known}")));
        }
    };
    let file = if named.is_none() { file.map_err(without_task) } else { file }?;
    in_task!(&file, |file| file.validate())?;
    Ok(file)
}

fn read_as<T: Trained>(name: &str, path: &Path, text: &str) -> Result<SubjectFile<T>, String> {
    let mut spec: T::Spec = parse(text)?;
    spec.complete(path.parent().unwrap_or(Path::new("")))?;
    Ok(SubjectFile { name: name.to_owned(), path: path.to_owned(), spec })
}

/// Adds to an error message that the task defaults to translation.
fn without_task(fault: String) -> String {
    let others: Vec<String> = TASKS[1..].iter().map(|task| format!("`task = \"{task}\"`")).collect();
    format!("{fault}; without {} a setup describes a translator", others.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

    /// Returns the error for a setup file after replacing `old` by `new`.
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
