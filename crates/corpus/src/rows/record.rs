//! A row with named fields, from a table or JSON.
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Column;
use crate::Error;
use crate::foreign::listed;

pub(crate) struct Record {
    /// Line, or number of the row in a format without lines; counted from 1.
    pub(super) line: usize,
    /// Unit of `line` in messages.
    pub(super) unit: &'static str,
    pub(super) fields: Map<String, Value>,
    /// Feature descriptions by Hugging Face datasets; `None` if the file has none.
    pub(super) features: Option<Arc<Map<String, Value>>>,
}

impl Record {
    pub(crate) fn new(line: usize, fields: Map<String, Value>) -> Self {
        Self { line, unit: "line", fields, features: None }
    }

    /// Makes a row of a file without lines.
    pub(super) fn numbered(number: usize, fields: Map<String, Value>) -> Self {
        Self { unit: "row", ..Self::new(number, fields) }
    }

    pub(crate) fn fault(&self, path: &Path, reason: impl std::fmt::Display) -> Error {
        Error::Invalid(format!("`{}`, {} {}: {reason}", path.display(), self.unit, self.line))
    }

    pub(crate) fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Returns the text of a field; numbers and booleans are converted to text.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        text(name, &*self.value(name)?)
    }

    /// Returns the text of a column; fails if it is blank.
    pub(crate) fn filled(&self, column: &Column) -> Result<String, String> {
        let text = self.text(&column.key())?;
        match column {
            _ if !text.trim().is_empty() => Ok(text),
            Column::Number(number) => Err(format!("column {number} is empty")),
            Column::Name(_) => Err(format!("{column} is empty")),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        match &*self.value(name)? {
            Value::Array(members) => members.iter().map(|member| text(name, member)).collect(),
            other => Err(format!("field `{name}` is {}, but a list is needed", type_of(other))),
        }
    }

    /// Returns the class name for a numeric label if the file stores class names; otherwise the label itself.
    pub(crate) fn class(&self, name: &str, label: String) -> String {
        let all = self.features.as_ref().and_then(|features| class_names(features, name));
        let own = all.and_then(|names| names.get(label.parse::<usize>().ok()?)?.as_str());
        own.map_or(label, str::to_owned)
    }

    /// Returns the value of a boolean field; `None` if it is missing or not boolean.
    pub(crate) fn truth(&self, name: &str) -> Option<bool> {
        self.value(name).ok()?.as_bool()
    }

    pub(crate) fn is_list(&self, name: &str) -> bool {
        self.value(name).is_ok_and(|value| value.is_array())
    }

    /// Returns the field `name`. Dots in a name select a field of an object, or that field of every object in a list.
    fn value(&self, name: &str) -> Result<Cow<'_, Value>, String> {
        if let Some(value) = self.fields.get(name) {
            return Ok(Cow::Borrowed(value));
        }
        let mut keys = name.split('.');
        let first = keys.next().and_then(|key| self.fields.get(key)).map(Cow::Borrowed);
        let found = keys.try_fold(first, |value, key| Some(Some(inside(value?, key)?))).flatten();
        found.ok_or_else(|| format!("no field `{name}`: the row has {}", listed(self.fields.keys())))
    }
}

/// Returns the class names of a field or, for a list field, of its members.
fn class_names<'a>(features: &'a Map<String, Value>, name: &str) -> Option<&'a Vec<Value>> {
    let mut keys = name.split('.');
    let whole = features.get(name);
    let mut feature = whole.or_else(|| features.get(keys.next()?))?;
    let mut keys = keys.filter(|_| whole.is_none());
    loop {
        let inner = feature.get("feature").or_else(|| feature.get(0));
        feature = match inner.or_else(|| feature.get(keys.next()?)) {
            Some(inner) => inner,
            None => return feature.get("names")?.as_array(),
        };
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
        Value::Bool(value) => Ok(value.to_string()),
        other => Err(format!("field `{name}` is {}, but text is needed", type_of(other))),
    }
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "missing (null or NaN)",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
