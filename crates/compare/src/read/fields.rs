//! Reads JSON lines and keeps only some keys, so that files larger than memory can be read.
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::Error;

/// Maximum length of a line, in bytes.
const LONGEST: u64 = 1 << 26;

pub(crate) type Fields = Map<String, Value>;

/// Non-empty lines of a file, numbered from 1.
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    number: usize,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = durable::open_regular(path).map_err(Error::reading(path))?;
        Ok(Self { path: path.to_owned(), reader: BufReader::with_capacity(1 << 20, file), number: 0 })
    }

    fn next_line(&mut self) -> Result<Option<(usize, Vec<u8>)>, Error> {
        loop {
            let mut line = Vec::new();
            let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut line);
            if read.map_err(Error::reading(&self.path))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if line.len() as u64 == LONGEST {
                let most = LONGEST >> 20;
                return Err(Error::of_line(
                    &self.path,
                    self.number,
                    format!("longer than {most} MiB: not a file of JSON lines"),
                ));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some((self.number, line)));
            }
        }
    }
}

impl Iterator for Lines {
    type Item = Result<(usize, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().transpose()
    }
}

/// Reads the `wanted` keys of a JSON object, or all keys; errors are messages without a path.
pub(crate) fn fields(line: &[u8], wanted: Option<&[&str]>) -> Result<Fields, String> {
    let mut parser = serde_json::Deserializer::from_slice(line);
    let fields = Wanted(wanted).deserialize(&mut parser).and_then(|fields| parser.end().map(|()| fields));
    fields.map_err(|error| {
        let text = String::from_utf8_lossy(line);
        let has_constant = ["NaN", "Infinity"].iter().any(|constant| text.contains(constant));
        let hint = if has_constant { " (NaN and Infinity are not valid JSON)" } else { "" };
        format!("not a JSON object: {error}{hint}")
    })
}

struct Wanted<'a>(Option<&'a [&'a str]>);

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = Fields;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Fields, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Wanted<'_> {
    type Value = Fields;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::new();
        while let Some(key) = map.next_key::<String>()? {
            if self.0.is_none_or(|wanted| wanted.contains(&key.as_str())) {
                fields.insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(fields)
    }
}

/// Returns the value at a path such as `doc.subject`, or at a key that contains dots.
pub(crate) fn at<'a>(fields: &'a Fields, path: &str) -> Option<&'a Value> {
    if let Some(value) = fields.get(path) {
        return Some(value);
    }
    let (first, rest) = path.split_once('.')?;
    at(fields.get(first)?.as_object()?, rest)
}

/// Returns the first key of a path.
pub(crate) fn root(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// Returns a string unchanged and any other value as JSON; `None` for null.
pub(crate) fn named(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns a number, or 1 for true and 0 for false; `None` for anything else.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(is_right) => Some(f64::from(u8::from(*is_right))),
        Value::Number(number) => number.as_f64(),
        _ => None,
    }
}

/// Reads the cluster of a document; `None` if no path is given, an error if the document has none.
pub(crate) fn cluster(fields: &Fields, path: Option<&str>) -> Result<Option<String>, String> {
    let Some(path) = path else { return Ok(None) };
    let found = at(fields, path).and_then(named);
    found.map(Some).ok_or_else(|| format!("no `{path}`, which --cluster names"))
}
