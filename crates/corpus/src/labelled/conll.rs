//! Sentences with one word per line, as in CoNLL-2003 and CoNLL-U.
use std::path::Path;

use serde_json::{Map, Value};

use super::Column;
use crate::Error;
use crate::rows::Record;

const DOCUMENT: &str = "-DOCSTART-";

/// Returns the fault of a column that this format cannot have.
pub(super) fn fault<'a>(mut columns: impl Iterator<Item = &'a Column>) -> Option<String> {
    columns.find_map(|column| match column {
        Column::Name(_) => {
            Some(format!("columns of `conll` are numbers, counted from 1, but {column} is a name"))
        }
        Column::Number(0) => Some("there is no column 0: columns are counted from 1".to_owned()),
        Column::Number(_) => None,
    })
}

/// Returns the sentences of a text as records in which each of `columns` is a list. Cells are separated by tabs if any line has one,
/// otherwise by white space. Skips lines between documents and, with tabs, comments and CoNLL-U's multiword tokens (`1-2`) and empty nodes
/// (`1.1`), the last two only if column 1 is not read.
pub(super) fn sentences(text: &str, path: &Path, columns: &[&Column]) -> Vec<Result<Record, Error>> {
    let has_tabs = text.contains('\t');
    let numbers: Vec<usize> = columns.iter().filter_map(|column| column.key().parse().ok()).collect();
    let lines: Vec<(usize, &str)> =
        (1..).zip(text.split('\n').map(|line| line.trim_end_matches('\r'))).collect();
    let is_blank = |(_, line): &(usize, &str)| line.trim().is_empty();
    let counts = |line: &str| {
        let is_comment = has_tabs && line.starts_with('#') && !line.contains('\t');
        let is_part = has_tabs && !numbers.contains(&1) && is_part(line);
        !is_comment && !is_part && !line.starts_with(DOCUMENT)
    };
    let sentences = lines.split(is_blank).filter_map(|lines| {
        let lines: Vec<(usize, &str)> = lines.iter().copied().filter(|(_, line)| counts(line)).collect();
        Some(
            sentence(lines.first()?.0, &lines, (has_tabs, &numbers))
                .map_err(|(line, fault)| Error::of_line(path, line, fault)),
        )
    });
    sentences.collect()
}

/// Returns true if the first cell is a range of words or the number of an empty node.
fn is_part(line: &str) -> bool {
    let first = line.split('\t').next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    first.split_once(['-', '.']).is_some_and(|(one, other)| is_number(one) && is_number(other))
}

/// Returns the sentence that begins in line `start`, or a line and its fault.
fn sentence(
    start: usize,
    lines: &[(usize, &str)],
    (has_tabs, numbers): (bool, &[usize]),
) -> Result<Record, (usize, String)> {
    let mut fields: Vec<Vec<Value>> = vec![Vec::new(); numbers.len()];
    for &(number, line) in lines {
        let cells: Vec<&str> =
            if has_tabs { line.split('\t').collect() } else { line.split_whitespace().collect() };
        for (field, &column) in fields.iter_mut().zip(numbers) {
            let cell = cells.get(column - 1).filter(|cell| !cell.trim().is_empty()).ok_or_else(|| {
                let found = words::count(cells.len(), "column");
                let hint = if has_tabs && cells.len() == 1 { "; other lines have tabs" } else { "" };
                (number, format!("{found}, but column {column} is needed, and must not be empty{hint}"))
            })?;
            field.push((*cell).into());
        }
    }
    let named = numbers.iter().map(ToString::to_string).zip(fields.into_iter().map(Value::Array));
    Ok(Record::new(start, named.collect::<Map<_, _>>()))
}
