//! Layout of files of questions with several answers.
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use words::excerpt;

use super::Choice;
use super::template::Template;
use crate::Error;
use crate::foreign::listed;
use crate::names::is_file_name;
use crate::rows::{Column, Layout, Record, RowKind};

/// Layout of a file of questions with several answers; part of a subject's TOML.
///
/// A field is the name of a column or of a JSON field, `a.b` a field `b` in a field `a`; in a table without a header it is
/// the number of the column, counted from 1, in quotation marks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceFormat {
    /// Kind of rows.
    pub kind: RowKind,
    /// True if the first row of a table names its columns, or if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// True if cells of a table may stand in quotation marks; if not given, only in CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoting: Option<bool>,
    /// The text before each choice, with fields in braces: `Question: {goal}\nAnswer:`. Empty if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The place of the choices.
    pub choices: Choices,
    /// The right one.
    pub answer: Answer,
    /// The field that names the subject of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Rows of each file that count, from its beginning; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// True if contexts and choices are to be rid of WikiHow's marks in brackets, as HellaSwag needs it; false if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wikihow: Option<bool>,
}

/// The place of the choices of a row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged, expecting = "`choices` is a list of fields, or a field that holds a list")]
pub enum Choices {
    /// In a field that holds a list.
    List(String),
    /// Each in a field of its own.
    Fields(Vec<String>),
}

/// The right choice.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "`answer` is { always = 1 }, { field = \"...\", first = 0 }, { field = \"...\", within = \"...\" } or \
                 { file = \"...\", first = 0 }"
)]
pub enum Answer {
    /// The same in all rows.
    Always {
        /// Counted from 1.
        always: usize,
    },
    /// The one that a field numbers.
    Numbered {
        /// The field.
        field: String,
        /// The number of the first choice, 0 or 1.
        first: usize,
    },
    /// The one whose name a field repeats.
    Named {
        /// The field, such as `answerKey`.
        field: String,
        /// The list of all names, such as `choices.label`.
        within: String,
    },
    /// The one that a file numbers, which has a line for each row.
    File {
        /// Its name; it is in the folder of the questions.
        file: String,
        /// The number of the first choice, 0 or 1.
        first: usize,
    },
}

impl ChoiceFormat {
    /// Finds what is wrong with the description itself, before there is a file.
    pub fn validate(&self) -> Result<(), Error> {
        self.template().map(drop)
    }

    /// The template of the context, if nothing is wrong with the description.
    pub(super) fn template(&self) -> Result<Template, Error> {
        let wrong = |reason: String| Error::of_format(reason);
        let template = Template::parse(self.context.as_deref().unwrap_or_default()).map_err(wrong)?;
        self.fault(&template).map_or(Ok(template), |reason| Err(wrong(reason)))
    }

    fn fault(&self, template: &Template) -> Option<String> {
        let has_lists =
            matches!(self.choices, Choices::List(_)) || matches!(self.answer, Answer::Named { .. });
        if has_lists && !self.kind.has_lists() {
            return Some(
                "a table has no lists: `choices` must be a list of columns, and `answer` a number".to_owned(),
            );
        }
        if let Some(fault) = self.layout().fault(self.columns(template).iter()) {
            return Some(fault);
        }
        match (&self.choices, &self.answer) {
            (Choices::Fields(fields), _) if fields.len() < 2 => {
                Some(format!("`choices` names {} of the at least 2 fields", fields.len()))
            }
            (Choices::Fields(fields), Answer::Always { always }) if !(1..=fields.len()).contains(always) => {
                Some(format!("the answer is always {always}, but must be from 1 to {}", fields.len()))
            }
            (_, Answer::Always { always: 0 }) => {
                Some("the answer is always 0: choices are counted from 1".to_owned())
            }
            (_, Answer::Numbered { first, .. } | Answer::File { first, .. }) if *first > 1 => {
                Some(format!("`first`, the number of the first choice, is {first}, but must be 0 or 1"))
            }
            (_, Answer::File { file, .. }) if !is_file_name(file) => {
                Some(format!("`{}` is no name of a file in the folder of the questions", excerpt(file)))
            }
            _ => None,
        }
    }

    /// The fields that are needed of each row but for those of the context.
    fn named_fields(&self) -> impl Iterator<Item = &str> {
        let choices = match &self.choices {
            Choices::List(field) => std::slice::from_ref(field),
            Choices::Fields(fields) => fields,
        };
        let answer = match &self.answer {
            Answer::Numbered { field, .. } | Answer::Named { field, .. } => Some(field),
            Answer::Always { .. } | Answer::File { .. } => None,
        };
        choices.iter().chain(answer).chain(&self.group).map(String::as_str)
    }

    /// The columns that are needed of a table, each once.
    pub(super) fn columns(&self, template: &Template) -> Vec<Column> {
        let mut fields: Vec<&str> = self.named_fields().chain(template.fields()).collect();
        fields.sort_unstable();
        fields.dedup();
        let column = |field: &str| match field.parse() {
            Ok(number) if self.header == Some(false) => Column::Number(number),
            _ => Column::Name(field.to_owned()),
        };
        fields.into_iter().map(column).collect()
    }

    pub(super) fn layout(&self) -> Layout {
        Layout { kind: self.kind, header: self.header, quoting: self.quoting }
    }

    /// The question of a row; `from_file` is its line in the file of answers. The error says what is wrong with it.
    pub(super) fn choice(
        &self,
        record: &Record,
        template: &Template,
        from_file: Option<&str>,
    ) -> Result<Choice, String> {
        let mut choices = match &self.choices {
            Choices::List(field) => record.texts(field)?,
            Choices::Fields(fields) => {
                fields.iter().map(|field| record.text(field)).collect::<Result<_, _>>()?
            }
        };
        let mut context = template.fill(record)?;
        if self.wikihow == Some(true) {
            context = without_brackets(&context);
            choices.iter_mut().for_each(|choice| *choice = without_brackets(choice));
        }
        if choices.len() < 2 {
            return Err(format!("its choices are {}, but at least 2 are needed", choices.len()));
        }
        if let Some(place) = choices.iter().position(|choice| choice.trim().is_empty()) {
            return Err(format!("its choice {} is blank", place + 1));
        }
        let answer = self.answer(record, from_file, choices.len())?;
        let group = self.group.as_ref().map(|field| record.text(field)).transpose()?;
        Ok(Choice { context, choices, answer, group })
    }

    /// The right choice, counted from 0.
    fn answer(&self, record: &Record, from_file: Option<&str>, choices: usize) -> Result<usize, String> {
        let (given, first) = match &self.answer {
            Answer::Always { always } => (always.to_string(), 1),
            Answer::Numbered { field, first } => (record.text(field)?, *first),
            Answer::File { first, .. } => (from_file.unwrap_or_default().to_owned(), *first),
            Answer::Named { field, within } => {
                return position(&record.text(field)?, &record.texts(within)?, choices);
            }
        };
        let number = given.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(first));
        number.filter(|number| *number < choices).ok_or_else(|| {
            let last = choices - 1 + first;
            format!("its answer is `{}`, but must be a number from {first} to {last}", excerpt(&given))
        })
    }
}

fn position(name: &str, names: &[String], choices: usize) -> Result<usize, String> {
    if names.len() != choices {
        return Err(format!("it has {choices} choices, but {} names of choices", names.len()));
    }
    let found: Vec<usize> = (0..names.len()).filter(|&place| names[place] == name).collect();
    match found[..] {
        [place] => Ok(place),
        _ => Err(format!("its answer is `{}`, which must be one of {}", excerpt(name), listed(names))),
    }
}

/// Rids a text of WikiHow's marks:
/// <https://github.com/EleutherAI/lm-evaluation-harness/blob/0a9cc282801e4d5d1c978b099f7d0bc5bd00e09d/lm_eval/tasks/hellaswag/utils.py#L6>.
fn without_brackets(text: &str) -> String {
    static MARKS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[.*?\]").expect("a pattern of ours"));
    let text = text.trim().replace(" [title]", ". ");
    MARKS.replace_all(&text, "").replace("  ", " ")
}
