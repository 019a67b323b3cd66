//! Rows of JSON: an object per line, or as Python and pandas write them: a list of objects, or a list for each column.
use std::borrow::Cow;
use std::path::Path;

use serde_json::{Map, Value};

use super::record::{Record, type_of};
use crate::Error;

/// Returns the objects of `text`; blank lines do not count.
pub(super) fn objects(text: &str, path: &Path) -> Vec<Result<Record, Error>> {
    let lines: Vec<(&str, usize)> =
        text.split('\n').zip(1..).filter(|(text, _)| !text.trim().is_empty()).collect();
    let is_whole = match lines.first() {
        Some((first, _)) => lines.len() == 1 || first.trim() == "[" || parse(first).is_err(),
        None => false,
    };
    let whole = if is_whole { parse(text).map(all) } else { Ok(None) };
    // the first line of a torn list over several lines is not a row
    let is_list = |(line, _): &(&str, usize)| line.trim_start().starts_with('[') && parse(line).is_err();
    if let Err(error) = &whole
        && lines.first().is_some_and(is_list)
    {
        return vec![Err(invalid(path, error.line(), error))];
    }
    match whole.ok().flatten() {
        Some(rows) => (1..).zip(rows).map(|(number, row)| row_of(path, number, row)).collect(),
        None => lines.into_iter().map(|(text, line)| object(text, path, line)).collect(),
    }
}

/// Returns the rows of a whole file; `None` if the file is a single row.
fn all(whole: Value) -> Option<Vec<Value>> {
    let is_object_list =
        |value: &Value| matches!(value, Value::Array(rows) if rows.iter().all(Value::is_object));
    match whole {
        Value::Array(rows) => Some(rows),
        // `{"data": [{…}, …]}`
        Value::Object(fields) if fields.len() == 1 && fields.values().all(is_object_list) => {
            all(fields.into_iter().next()?.1)
        }
        Value::Object(columns) => transposed(columns),
        _ => None,
    }
}

/// Returns the rows of lists of equal length, or of pandas' objects with a number for each row. Lists in which no text has white space are
/// the words and tags of one row.
fn transposed(columns: Map<String, Value>) -> Option<Vec<Value>> {
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    let has_space =
        |cell: &Value| cell.as_str().is_some_and(|text| text.trim().contains(char::is_whitespace));
    let mut has_texts = false;
    for (name, column) in columns {
        let cells: Vec<Value> = match column {
            Value::Array(cells) => cells,
            Value::Object(cells) => {
                let mut numbered = cells
                    .into_iter()
                    .map(|(number, cell)| Some((number.parse::<u64>().ok()?, cell)))
                    .collect::<Option<Vec<_>>>()?;
                numbered.sort_by_key(|(number, _)| *number);
                numbered.into_iter().map(|(_, cell)| cell).collect()
            }
            _ => return None,
        };
        has_texts |= cells.iter().any(has_space);
        if rows.is_empty() {
            rows.resize(cells.len(), Map::new());
        }
        if rows.len() != cells.len() || rows.len() < 2 {
            return None; // a single object
        }
        rows.iter_mut().zip(cells).for_each(|(row, cell)| drop(row.insert(name.clone(), cell)));
    }
    has_texts.then(|| rows.into_iter().map(Value::Object).collect())
}

fn row_of(path: &Path, number: usize, row: Value) -> Result<Record, Error> {
    match row {
        Value::Object(fields) => Ok(Record::numbered(number, fields)),
        other => {
            let fault = format!("{} instead of a JSON object", type_of(&other));
            Err(Record::numbered(number, Map::new()).fault(path, fault))
        }
    }
}

fn object(text: &str, path: &Path, line: usize) -> Result<Record, Error> {
    match parse(text) {
        Ok(Value::Object(fields)) => Ok(Record::new(line, fields)),
        Ok(other) => Err(Error::of_line(path, line, format!("{} instead of a JSON object", type_of(&other)))),
        Err(_) if text.trim_start().starts_with("{'") => {
            let reason = "a dictionary as Python prints it, not JSON: write it with `json.dumps`";
            Err(Error::of_line(path, line, reason))
        }
        Err(error) => Err(invalid(path, line, &error)),
    }
}

/// Returns the error for a line that is not JSON, without the number that the line has in the parsed text.
fn invalid(path: &Path, line: usize, error: &serde_json::Error) -> Error {
    let reason = error.to_string().replace(&format!(" at line {} column ", error.line()), " at column ");
    Error::of_line(path, line, format!("not valid JSON ({reason})"))
}

/// Parses JSON, including what Python's `json.dumps` writes.
fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match of_python(text) {
        Cow::Owned(text) => serde_json::from_str(&text),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Replaces `NaN` and infinities with null, and halves of surrogate pairs with U+FFFD; Python writes both. Borrowed if there are none.
fn of_python(text: &str) -> Cow<'_, str> {
    let (mut out, mut rest, mut is_text) = (String::new(), text, false);
    let mut has_changed = false;
    while let Some(letter) = rest.chars().next() {
        let (taken, written) = match letter {
            '"' => {
                is_text = !is_text;
                (1, None)
            }
            '\\' if is_text => match (unit(rest), rest.get(6..).and_then(unit)) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, None),
                (Some(0xD800..=0xDFFF), _) => (6, Some("\\ufffd")),
                (Some(_), _) => (6, None),
                // with the letter after it, such as a quotation mark
                (None, _) => (1 + rest[1..].chars().next().map_or(0, char::len_utf8), None),
            },
            _ if is_text => (letter.len_utf8(), None),
            _ => match ["NaN", "-Infinity", "Infinity"].into_iter().find(|name| rest.starts_with(name)) {
                Some(name) => (name.len(), Some("null")),
                None => (letter.len_utf8(), None),
            },
        };
        let (begin, after) = rest.split_at(taken);
        has_changed |= written.is_some();
        out.push_str(written.unwrap_or(begin));
        rest = after;
    }
    if has_changed { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

/// Returns the UTF-16 unit of the escape, such as `\ud83d`, that `text` begins with.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}
