//! Questions with several answers, and minimal pairs: which answer a language model prefers.
//!
//! A [`ChoiceFormat`] describes how a file stores them. Scoring follows the rules of EleutherAI's
//! lm-evaluation-harness, <https://github.com/EleutherAI/lm-evaluation-harness>: the answer is the choice with the greatest
//! log-probability after the context (`acc`), or with the highest log-probability per character (`acc_norm`).
mod format;
mod jinja;
mod shots;
mod template;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use self::format::{Answer, ChoiceFormat, Choices, Context, Text};
pub use self::shots::{Fewshot, Shots};
use words::excerpt;

use crate::Error;
use crate::parallel;
use crate::rows::{BadRows, Column, Record, Source};

/// A question, its possible answers, and the right one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The text before each choice; empty in minimal pairs.
    pub context: String,
    /// The text after `context` for each choice alone; empty if the choices share one context.
    pub contexts: Vec<String>,
    /// The possible answers, none of them blank. A single one is right if the model finds each of its tokens most probable.
    pub choices: Vec<String>,
    /// The text between context and choice; if not given, a space, or nothing without a context.
    pub delimiter: Option<String>,
    /// The right choice, counted from 0.
    pub answer: usize,
    /// The subject of the question, such as the paradigm of a minimal pair; `None` if the data have none.
    pub group: Option<String>,
}

/// A choice as a model scores it: by the log-probability of the continuation after the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The text that is given; empty if the whole continuation is scored.
    pub context: String,
    /// The text that is scored.
    pub continuation: String,
    /// Number of characters of the choice, by which `acc_norm` divides; at least 1.
    pub characters: usize,
}

impl Choice {
    /// Returns true if a context has more than whitespace, which moves to the continuation.
    pub fn has_context(&self) -> bool {
        (0..self.choices.len()).any(|place| !self.before(place).trim_end().is_empty())
    }

    /// Returns the parts of each choice that are given and scored.
    ///
    /// As in lm-evaluation-harness, a space separates context and choice, and whitespace at the end of the context
    /// moves to the continuation, since tokens begin with spaces and do not end with them (`_encode_pair` of
    /// <https://github.com/EleutherAI/lm-evaluation-harness/blob/04e74420b0000ea417f1d44b23c6e298b04b7977/lm_eval/api/model.py>);
    /// characters are counted without either.
    ///
    /// Differs from it: without a context, no space precedes the choice, which is then a whole sentence, unless a delimiter is
    /// given; and characters are those of the choice even if each choice has its own context.
    pub fn parts(&self) -> Vec<Continuation> {
        let part = |(place, choice): (usize, &String)| {
            let whole = self.before(place);
            let context = whole.trim_end();
            let (spaces, delimiter) = (&whole[context.len()..], self.between(&whole));
            let continuation = format!("{spaces}{delimiter}{choice}");
            Continuation { context: context.to_owned(), continuation, characters: choice.chars().count() }
        };
        self.choices.iter().enumerate().map(part).collect()
    }

    /// Returns the context of a choice.
    fn before(&self, place: usize) -> String {
        format!("{}{}", self.context, self.contexts.get(place).map_or("", String::as_str))
    }

    fn between(&self, context: &str) -> &str {
        self.delimiter.as_deref().unwrap_or(if context.is_empty() { "" } else { " " })
    }

    /// Returns the question with its answer, as an example for others.
    fn answered(&self) -> String {
        let context = self.before(self.answer);
        format!("{context}{}{}", self.between(&context), self.choices[self.answer])
    }
}

/// Reads the questions of a file: UTF-8, plain or gzip (`.gz`), with or without byte-order mark and carriage returns. Examples from
/// `shots` precede each.
///
/// # Errors
/// If the description contradicts itself; if a file is missing, torn, empty or not UTF-8; if a row lacks a field or its
/// answer, has fewer than two choices, a blank one, or an answer that is not one of them. Each error names the file and the row.
/// If there are too few examples.
pub fn read(
    path: &Path,
    format: &ChoiceFormat,
    shots: &mut Shots,
    bad: &mut BadRows,
) -> Result<Vec<Choice>, Error> {
    let templates = format.templates()?;
    let columns = format.columns(&templates);
    let columns: Vec<&Column> = columns.iter().collect();
    let open = || Source::open(path).and_then(|source| format.layout().read(&source, path, &columns));
    let mut records = open()?.peekable();
    if records.peek().is_none() {
        return Err(Error::no_examples(path));
    }
    let answers = answers(path, format, || Ok(open()?.count()))?;
    let choice = |(place, record): (usize, Result<Record, Error>)| {
        let (record, answer) = (record?, answers.as_ref().map(|answers| answers[place].as_str()));
        let mut question = || {
            let mut choice = format.choice(&record, &templates, answer)?;
            let description = format::text_of_context(templates.description.fill(&record)?)?;
            choice.context = description + &shots.before(&choice)? + &choice.context;
            Ok(choice)
        };
        question().map_err(|reason: String| record.fault(path, reason))
    };
    let first = format.first.unwrap_or(usize::MAX);
    bad.sift_all(records.enumerate().take(first).map(choice))
}

/// Returns the lines of the file of answers next to the questions, if the format names one.
fn answers(
    path: &Path,
    format: &ChoiceFormat,
    questions: impl Fn() -> Result<usize, Error>,
) -> Result<Option<Vec<String>>, Error> {
    let Some(Answer::File { file, .. }) = &format.answer else { return Ok(None) };
    let beside = path.with_file_name(file);
    let lines = parallel::read_lines(&beside)?;
    parallel::check_lengths((path, questions()?), (&beside, lines.len()))?;
    // checked here, since the fault is not in the file of the questions
    if let Some((line, place)) = lines.iter().zip(1..).find(|(line, _)| line.trim().parse::<usize>().is_err())
    {
        return Err(Error::of_line(&beside, place, format!("`{}` is not a choice number", excerpt(line))));
    }
    Ok(Some(lines))
}
