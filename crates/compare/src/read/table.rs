//! Tables with one row per document: CSV, TSV, JSON lines, Parquet and Arrow.
use std::path::Path;

use corpus::labelled::RowKind;
use corpus::tables::{self, Header, TableColumn};

use super::fields::{Lines, at, cluster, fields, named, number, root};
use super::outcomes::{Outcomes, Sample};
use crate::Error;
use crate::args::Args;

/// Default column of scores.
const SCORE: &str = "score";

pub(super) fn read_separated(path: &Path, delimiter: u8, args: &Args) -> Result<Outcomes, Error> {
    let file = durable::open_regular(path).map_err(Error::reading(path))?;
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).quoting(delimiter == b',').from_reader(file);
    let fault = |error: csv::Error| Error::of(path, format!("not a table: {error}"));
    let headers = reader.headers().map_err(fault)?.clone();
    let column = |name: &str| {
        let is_named = |place: &usize| headers[*place].trim_start_matches('\u{feff}') == name;
        match (0..headers.len()).filter(is_named).collect::<Vec<_>>()[..] {
            [place] => Ok(place),
            [] => Err(no_column(path, name, &headers.iter().collect::<Vec<_>>())),
            _ => Err(Error::of(path, format!("several columns are named `{}`", words::excerpt(name)))),
        }
    };
    let metric = args.score.as_deref().unwrap_or(SCORE);
    let (id, score) = (column(args.id())?, column(metric)?);
    let cluster = args.cluster.as_deref().map(column).transpose()?;
    let mut outcomes = Outcomes::new(metric);
    for row in reader.records() {
        let row = row.map_err(fault)?;
        let line = row.position().map_or(0, |place| place.line() as usize);
        let added = add(&mut outcomes, [&row[id], &row[score]], cluster.map(|column| &row[column]));
        added.map_err(|fault| Error::of_line(path, line, fault))?;
    }
    outcomes.checked(path, true)
}

pub(super) fn read_columns(path: &Path, kind: RowKind, args: &Args) -> Result<Outcomes, Error> {
    let table = tables::read(path, kind, Header::Likely).map_err(|error| {
        let source = std::error::Error::source(&error).map_or(String::new(), |source| format!(": {source}"));
        Error::Invalid(format!("{error}{source}"))
    })?;
    let names: Vec<String> = table.columns.iter().map(TableColumn::name).collect();
    let column = |name: &str| {
        let place = names.iter().position(|own| own == name);
        let names = || names.iter().map(String::as_str).collect::<Vec<_>>();
        place.map(|place| &table.columns[place].cells).ok_or_else(|| no_column(path, name, &names()))
    };
    let metric = args.score.as_deref().unwrap_or(SCORE);
    let (id, score) = (column(args.id())?, column(metric)?);
    let cluster = args.cluster.as_deref().map(column).transpose()?;
    let mut outcomes = Outcomes::new(metric);
    for row in 0..score.len() {
        let added = add(&mut outcomes, [&id[row], &score[row]], cluster.map(|cells| &*cells[row]));
        added.map_err(|fault| Error::of(path, format!("row {}: {fault}", row + 1)))?;
    }
    outcomes.checked(path, true)
}

fn no_column(path: &Path, name: &str, names: &[&str]) -> Error {
    let all = words::excerpt(&names.join(", "));
    Error::of(path, format!("no column `{}`: expected one of {all}", words::excerpt(name)))
}

/// Adds a row.
fn add(outcomes: &mut Outcomes, [id, text]: [&str; 2], cluster: Option<&str>) -> Result<(), String> {
    let score = match text.trim() {
        "True" | "true" => Ok(1.0),
        "False" | "false" => Ok(0.0),
        other => other.parse::<f64>(),
    };
    let score =
        score.map_err(|_| format!("`{}` is `{}`, not a number", outcomes.metric, words::excerpt(text)))?;
    let (id, cluster) = (id.to_owned(), cluster.map(str::to_owned));
    outcomes.add(Sample { id, repeat: None, score, content: None, prompt: None, cluster })
}

pub(super) fn read_json(path: &Path, args: &Args) -> Result<Outcomes, Error> {
    let metric = args.score.as_deref().unwrap_or(SCORE);
    let wanted = [args.id(), metric].into_iter().chain(args.cluster.as_deref());
    // a key may contain dots or be a path
    let wanted: Vec<&str> = wanted.flat_map(|key| [key, root(key)]).collect();
    let mut outcomes = Outcomes::new(metric);
    for line in Lines::open(path)? {
        let (line, text) = line?;
        let mut add = || -> Result<(), String> {
            let fields = fields(&text, Some(&wanted))?;
            let lacking = |key: &str| format!("no `{}`", words::excerpt(key));
            let id = at(&fields, args.id()).and_then(named).ok_or_else(|| lacking(args.id()))?;
            let value = at(&fields, metric).ok_or_else(|| lacking(metric))?;
            let shown = || words::excerpt(&value.to_string());
            let score = number(value).ok_or_else(|| format!("`{metric}` is {}, not a number", shown()))?;
            let cluster = cluster(&fields, args.cluster.as_deref())?;
            outcomes.add(Sample { id, repeat: None, score, content: None, prompt: None, cluster })
        };
        add().map_err(|fault| Error::of_line(path, line, fault))?;
    }
    outcomes.checked(path, true)
}
