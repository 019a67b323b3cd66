//! A row with named fields, of a table or of JSON.
use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Column;
use crate::foreign::listed;

/// A row.
pub(crate) struct Record {
    /// Its line, counted from 1.
    pub(crate) line: usize,
    fields: Map<String, Value>,
}

impl Record {
    pub(crate) fn new(line: usize, fields: Map<String, Value>) -> Self {
        Self { line, fields }
    }

    /// All fields.
    pub(crate) fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The text of a field; a number counts as its digits.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        text(name, &*self.value(name)?)
    }

    /// The text of a column that must not be blank.
    pub(crate) fn filled(&self, column: &Column) -> Result<String, String> {
        let text = self.text(&column.key())?;
        match column {
            _ if !text.trim().is_empty() => Ok(text),
            Column::Number(number) => Err(format!("column {number} is empty")),
            Column::Name(_) => Err(format!("{column} is empty")),
        }
    }

    /// The texts of a field that is a list.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        match &*self.value(name)? {
            Value::Array(members) => members.iter().map(|member| text(name, member)).collect(),
            other => Err(format!("field `{name}` is {}, but a list is needed", type_of(other))),
        }
    }

    /// The value of a field that is true or false.
    pub(crate) fn truth(&self, name: &str) -> Option<bool> {
        self.value(name).ok()?.as_bool()
    }

    /// True if a field is there and is a list.
    pub(crate) fn is_list(&self, name: &str) -> bool {
        self.value(name).is_ok_and(|value| value.is_array())
    }

    /// A field of that name or, at dots, a field in a field; in a list of objects, those of all of them.
    fn value(&self, name: &str) -> Result<Cow<'_, Value>, String> {
        if let Some(value) = self.fields.get(name) {
            return Ok(Cow::Borrowed(value));
        }
        let mut keys = name.split('.');
        let first = keys.next().and_then(|key| self.fields.get(key)).map(Cow::Borrowed);
        let found = keys.try_fold(first, |value, key| Some(Some(inside(value?, key)?))).flatten();
        found.ok_or_else(|| format!("no field `{name}`: there are {}", listed(self.fields.keys())))
    }
}

fn inside<'a>(value: Cow<'a, Value>, key: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(Value::Array(members)) => {
            let values = members.iter().map(|member| member.get(key).cloned());
            Some(Cow::Owned(Value::Array(values.collect::<Option<_>>()?)))
        }
        Cow::Borrowed(value) => value.get(key).map(Cow::Borrowed),
        Cow::Owned(value) => inside(Cow::Borrowed(&value), key).map(|found| Cow::Owned(found.into_owned())),
    }
}

fn text(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(format!("field `{name}` is {}, but text is needed", type_of(other))),
    }
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
