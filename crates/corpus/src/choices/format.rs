//! Layout of files of questions with several answers.
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use words::excerpt;

use super::Choice;
use super::jinja::{Filled, Jinja, digits};
use super::template::Template;
use crate::Error;
use crate::foreign::listed;
use crate::names::is_file_name;
use crate::rows::{Column, Layout, Record, RowKind};

/// Layout of a file of questions with several answers; part of a setup's TOML.
///
/// A field is the name of a column or of a JSON field, `a.b` a field `b` in a field `a`; in a table without a header it is
/// the number of the column, counted from 1, in quotation marks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceFormat {
    /// Kind of rows.
    pub kind: RowKind,
    /// True if the first row of a table names its columns; true if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// True if cells of a table may be quoted; if not given, only in CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoting: Option<bool>,
    /// The text before each choice. Empty if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// A text before each choice for that choice alone, after `context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contexts: Option<Vec<Text>>,
    /// Where the choices are.
    pub choices: Choices,
    /// The right choice; not given for `choices = { target = "..." }`, which has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The text between context and choice; a space if not given, and nothing without a context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// The text before the context and the examples that precede it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Context>,
    /// The field that names the subject of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Number of rows of each file that count, from its beginning; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// True if WikiHow's marks in brackets are removed from contexts and choices, as HellaSwag needs; false if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wikihow: Option<bool>,
}

/// The text before the choices of a row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "`context` must be a text with fields in braces, or { jinja = \"...\" }"
)]
pub enum Context {
    /// With fields in braces: `Question: {goal}\nAnswer:`.
    Braces(String),
    /// From a template of lm-evaluation-harness.
    Jinja {
        /// The template. If it yields a number, the choices are separate contexts, and the answer is the text that follows each.
        jinja: String,
    },
}

/// A text of a row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged, deny_unknown_fields, expecting = "a choice must be a field, or { text = \"...\" }")]
pub enum Text {
    /// The text of a field.
    Field(String),
    /// A text that is equal in all rows.
    Literal {
        /// The text. It may begin with the space that separates it from the context.
        text: String,
    },
}

/// Where the choices of a row are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "`choices` must be a list of fields and literals { text = \"...\" }, a field that contains a list, \
                 { jinja = \"...\" } or { target = \"...\" }"
)]
pub enum Choices {
    /// In a field that contains a list.
    List(String),
    /// Each in a separate field, or a literal that is equal in all rows.
    Each(Vec<Text>),
    /// In the list that a template of lm-evaluation-harness yields.
    Jinja {
        /// The template.
        jinja: String,
    },
    /// A single text from such a template, which is right if the model finds each of its tokens most probable (LAMBADA).
    Target {
        /// The template.
        target: String,
    },
}

/// The right choice.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "`answer` must be { always = 1 }, { field = \"...\", first = 0 }, { field = \"...\", within = \"...\" }, \
                 { file = \"...\", first = 0 } or { jinja = \"...\" }"
)]
pub enum Answer {
    /// Equal in all rows.
    Always {
        /// Counted from 1.
        always: usize,
    },
    /// By number, from a field.
    Numbered {
        /// The field.
        field: String,
        /// The number of the first choice, 0 or 1.
        first: usize,
    },
    /// By name, from a field.
    Named {
        /// The field, such as `answerKey`.
        field: String,
        /// The list of all names, such as `choices.label`.
        within: String,
    },
    /// By number, from a file with a line for each row.
    File {
        /// Name of the file, which is in the folder of the questions.
        file: String,
        /// The number of the first choice, 0 or 1.
        first: usize,
    },
    /// By number, counted from 0, or by text, from a template of lm-evaluation-harness.
    Jinja {
        /// The template.
        jinja: String,
    },
}

impl ChoiceFormat {
    /// Checks the description before any file is read.
    pub fn validate(&self) -> Result<(), Error> {
        self.templates().map(drop)
    }

    /// Returns the templates of a valid description.
    pub(super) fn templates(&self) -> Result<Templates<'_>, Error> {
        let templates = Templates::parse(self).map_err(Error::of_format)?;
        self.fault(&templates).map_or(Ok(templates), |reason| Err(Error::of_format(reason)))
    }

    fn fault(&self, templates: &Templates<'_>) -> Option<String> {
        let has_lists =
            matches!(self.choices, Choices::List(_)) || matches!(self.answer, Some(Answer::Named { .. }));
        if has_lists && !self.kind.has_lists() {
            return Some(
                "a table has no lists: `choices` must be a list of columns, and `answer` a number".to_owned(),
            );
        }
        if let Some(fault) = self.layout().fault(self.columns(templates).iter()) {
            return Some(fault);
        }
        let is_single = matches!(self.choices, Choices::Target { .. });
        match (&self.choices, &self.answer) {
            (_, Some(_)) if is_single => {
                Some("`choices.target` is the only choice: `answer` is not allowed".to_owned())
            }
            (_, None) if !is_single => Some("`answer` is missing: it must name the right choice".to_owned()),
            (Choices::Each(fields), _) if fields.len() < 2 => {
                Some(format!("`choices` needs at least 2 fields, found {}", fields.len()))
            }
            (Choices::Each(fields), _)
                if self.contexts.as_ref().is_some_and(|own| own.len() != fields.len()) =>
            {
                Some(format!("`contexts` must have as many entries as `choices`, which has {}", fields.len()))
            }
            (Choices::Each(fields), Some(Answer::Always { always }))
                if !(1..=fields.len()).contains(always) =>
            {
                Some(format!("the answer is always {always}, but must be from 1 to {}", fields.len()))
            }
            (_, Some(Answer::Always { always: 0 })) => {
                Some("the answer is always 0: choices are counted from 1".to_owned())
            }
            (_, Some(Answer::Numbered { first, .. } | Answer::File { first, .. })) if *first > 1 => {
                Some(format!("`first`, the number of the first choice, is {first}, but must be 0 or 1"))
            }
            (_, Some(Answer::File { file, .. })) if !is_file_name(file) => {
                Some(format!("`{}` is not the name of a file in the folder of the questions", excerpt(file)))
            }
            _ => None,
        }
    }

    /// Returns the fields that each row must have, except those of templates.
    fn named_fields(&self) -> impl Iterator<Item = &str> {
        let list = match &self.choices {
            Choices::List(field) => Some(field),
            _ => None,
        };
        let each = match &self.choices {
            Choices::Each(texts) => texts.as_slice(),
            _ => &[],
        };
        let each = each.iter().chain(self.contexts.iter().flatten()).filter_map(|text| match text {
            Text::Field(field) => Some(field),
            Text::Literal { .. } => None,
        });
        let answer = match &self.answer {
            Some(Answer::Numbered { field, .. } | Answer::Named { field, .. }) => Some(field),
            _ => None,
        };
        list.into_iter().chain(each).chain(answer).chain(&self.group).map(String::as_str)
    }

    /// Returns the columns that a table must have, each once; empty if templates may name any.
    pub(super) fn columns(&self, templates: &Templates<'_>) -> Vec<Column> {
        let Templates {
            choices: None,
            answer: None,
            context: Part::Braces(context),
            description: Part::Braces(description),
        } = templates
        else {
            return Vec::new();
        };
        let fields = self.named_fields().chain(context.fields()).chain(description.fields());
        let mut fields: Vec<&str> = fields.collect();
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

    /// Returns the question of a row, without its description; `from_file` is its line in the file of answers. The error describes
    /// what is wrong with it.
    pub(super) fn choice(
        &self,
        record: &Record,
        templates: &Templates<'_>,
        from_file: Option<&str>,
    ) -> Result<Choice, String> {
        let mut choices = self.choices(record, templates)?;
        let mut context = templates.context.fill(record)?;
        if matches!(self.choices, Choices::Target { .. }) {
            let context = text_of_context(context)?;
            return Ok(Choice { context, choices, delimiter: self.delimiter.clone(), ..Choice::default() });
        }
        if self.wikihow == Some(true) {
            context = Filled::Text(without_brackets(&text_of_context(context)?));
            choices.iter_mut().for_each(|choice| *choice = without_brackets(choice));
        }
        if choices.len() < 2 {
            return Err(format!("it needs at least 2 choices, found {}", choices.len()));
        }
        if let Some(place) = choices.iter().position(|choice| choice.trim().is_empty()) {
            return Err(format!("its choice {} is blank", place + 1));
        }
        let group = self.group.as_ref().map(|field| record.text(field)).transpose()?;
        let delimiter = self.delimiter.clone();
        if let (Filled::Number(answer), Some(jinja)) = (&context, &templates.answer) {
            let ending = jinja.fill(record)?.text().map_err(|fault| format!("its answer {fault}"))?;
            let answer = within(*answer, 0, choices.len())?;
            let endings = vec![ending; choices.len()];
            return Ok(Choice {
                contexts: choices,
                choices: endings,
                answer,
                group,
                delimiter,
                ..Choice::default()
            });
        }
        let contexts = self.contexts.iter().flatten().map(|text| self.text(text, record));
        let contexts = contexts.collect::<Result<_, _>>()?;
        let answer = match &templates.answer {
            Some(jinja) => answer_by(jinja, record, &choices)?,
            None => self.answer(record, from_file, &choices)?,
        };
        Ok(Choice { context: text_of_context(context)?, contexts, choices, answer, group, delimiter })
    }

    fn choices(&self, record: &Record, templates: &Templates<'_>) -> Result<Vec<String>, String> {
        let text = |filled: Filled| filled.text().map_err(|fault| format!("a choice {fault}"));
        let jinja = || templates.choices.as_ref().expect("parsed with the others");
        match &self.choices {
            Choices::List(field) => record.texts(field),
            Choices::Each(texts) => texts.iter().map(|text| self.text(text, record)).collect(),
            Choices::Target { .. } => {
                let target = jinja().fill_text(record)?;
                if target.trim().is_empty() {
                    Err("its target is blank".to_owned())
                } else {
                    Ok(vec![target])
                }
            }
            Choices::Jinja { .. } => match jinja().fill(record)? {
                Filled::List(members) => members.into_iter().map(text).collect(),
                other => Err(format!(
                    "its choices are `{}`, but a list of texts is needed",
                    excerpt(&text(other)?)
                )),
            },
        }
    }

    fn text(&self, text: &Text, record: &Record) -> Result<String, String> {
        match text {
            Text::Field(field) => record.text(field).map_err(|fault| match field.trim() == field {
                true => fault,
                false => format!("{fault}; a literal choice is {{ text = \"{}\" }}", excerpt(field)),
            }),
            Text::Literal { text } if self.delimiter.is_some() => Ok(text.clone()),
            Text::Literal { text } => Ok(text.strip_prefix(' ').unwrap_or(text).to_owned()),
        }
    }

    /// Returns the right choice, counted from 0.
    fn answer(&self, record: &Record, from_file: Option<&str>, choices: &[String]) -> Result<usize, String> {
        let (given, first) = match self.answer.as_ref().expect("validated") {
            Answer::Always { always } => (always.to_string(), 1),
            Answer::Numbered { field, first } => {
                let truth = record.truth(field).filter(|_| *first == 0);
                (
                    truth.map_or_else(|| record.text(field), |truth| Ok(usize::from(truth).to_string()))?,
                    *first,
                )
            }
            Answer::File { first, .. } => (from_file.unwrap_or_default().to_owned(), *first),
            Answer::Named { field, within } => {
                return position(&record.text(field)?, &record.texts(within)?, choices.len());
            }
            Answer::Jinja { .. } => unreachable!("templates give answers themselves"),
        };
        let number = given.trim().parse::<usize>().ok().filter(|number| *number >= first);
        number.map_or_else(
            || Err(beyond(&given, first, choices.len())),
            |number| within(number, first, choices.len()),
        )
    }
}

/// Returns the right choice that a template yields, by its number or its text.
fn answer_by(jinja: &Jinja<'_>, record: &Record, choices: &[String]) -> Result<usize, String> {
    let given = match jinja.fill(record)? {
        Filled::List(mut members) if members.len() == 1 => members.remove(0),
        Filled::List(members) => {
            return Err(format!("it has {} right answers, but 1 is needed", members.len()));
        }
        other => other,
    };
    let text = match given {
        Filled::Number(number) => return within(number, 0, choices.len()),
        other => other.text()?,
    };
    match (choices.iter().position(|choice| *choice == text), digits(&text)) {
        (Some(place), _) => Ok(place),
        (None, Some(number)) => within(number, 0, choices.len()), // of a table, whose cells are texts
        (None, None) => {
            Err(format!("its answer is `{}`, expected one of {}", excerpt(&text), listed(choices)))
        }
    }
}

/// Returns the text of a context.
pub(super) fn text_of_context(context: Filled) -> Result<String, String> {
    context.text().map_err(|fault| format!("its context {fault}"))
}

/// Converts the number of a choice to an index, counted from 0.
fn within(number: usize, first: usize, choices: usize) -> Result<usize, String> {
    let place = number.checked_sub(first).filter(|place| *place < choices);
    place.ok_or_else(|| beyond(&number.to_string(), first, choices))
}

fn beyond(given: &str, first: usize, choices: usize) -> String {
    let last = choices - 1 + first;
    format!("its answer is `{}`, expected a number from {first} to {last}", excerpt(given))
}

/// The templates of a format, parsed.
pub(super) struct Templates<'a> {
    context: Part<'a>,
    pub(super) description: Part<'a>,
    choices: Option<Jinja<'a>>,
    answer: Option<Jinja<'a>>,
}

impl<'a> Templates<'a> {
    fn parse(format: &'a ChoiceFormat) -> Result<Self, String> {
        let choices = match &format.choices {
            Choices::Jinja { jinja } | Choices::Target { target: jinja } => Some(Jinja::parse(jinja)?),
            Choices::List(_) | Choices::Each(_) => None,
        };
        let answer = match &format.answer {
            Some(Answer::Jinja { jinja }) => Some(Jinja::parse(jinja)?),
            _ => None,
        };
        let [context, description] =
            [&format.context, &format.description].map(|part| Part::parse(part.as_ref()));
        Ok(Self { context: context?, description: description?, choices, answer })
    }
}

/// What precedes the choices.
pub(super) enum Part<'a> {
    Braces(Template),
    Jinja(Jinja<'a>),
}

impl<'a> Part<'a> {
    fn parse(context: Option<&'a Context>) -> Result<Self, String> {
        match context {
            None => Template::parse("").map(Self::Braces),
            Some(Context::Braces(text)) => Template::parse(text).map(Self::Braces),
            Some(Context::Jinja { jinja }) => Jinja::parse(jinja).map(Self::Jinja),
        }
    }

    pub(super) fn fill(&self, record: &Record) -> Result<Filled, String> {
        match self {
            Self::Braces(template) => template.fill(record).map(Filled::Text),
            Self::Jinja(jinja) => jinja.fill_line(record),
        }
    }
}

fn position(name: &str, names: &[String], choices: usize) -> Result<usize, String> {
    if names.len() != choices {
        return Err(format!("it has {choices} choices, but {} names of choices", names.len()));
    }
    let found: Vec<usize> = (0..names.len()).filter(|&place| names[place] == name).collect();
    match found[..] {
        [place] => Ok(place),
        _ => Err(format!("its answer is `{}`, expected one of {}", excerpt(name), listed(names))),
    }
}

/// Removes WikiHow's marks from a text:
/// <https://github.com/EleutherAI/lm-evaluation-harness/blob/0a9cc282801e4d5d1c978b099f7d0bc5bd00e09d/lm_eval/tasks/hellaswag/utils.py#L6>.
fn without_brackets(text: &str) -> String {
    static MARKS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[.*?\]").expect("a pattern of ours"));
    let text = text.trim().replace(" [title]", ". ");
    MARKS.replace_all(&text, "").replace("  ", " ")
}
