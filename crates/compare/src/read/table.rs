//! Tables with a row for each document: CSV, TSV and JSON lines.
use std::path::Path;

use super::fields::{Lines, at, cluster, fields, named, number, root};
use super::outcomes::{Outcomes, Sample};
use crate::Error;
use crate::args::Args;

/// Column of scores unless another is named.
const SCORE: &str = "score";

pub(super) fn read_separated(path: &Path, delimiter: u8, args: &Args) -> Result<Outcomes, Error> {
    let file = durable::open_regular(path).map_err(Error::reading(path))?;
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(file);
    let fault = |error: csv::Error| Error::of(path, format!("no table: {error}"));
    let headers = reader.headers().map_err(fault)?.clone();
    let column = |name: &str| {
        headers.iter().position(|header| header.trim_start_matches('\u{feff}') == name).ok_or_else(|| {
            let all = words::excerpt(&headers.iter().collect::<Vec<_>>().join(", "));
            Error::of(path, format!("no column `{}`: it has {all}", words::excerpt(name)))
        })
    };
    let metric = args.score.as_deref().unwrap_or(SCORE);
    let (id, score) = (column(&args.id)?, column(metric)?);
    let cluster = args.cluster.as_deref().map(column).transpose()?;
    let mut outcomes = Outcomes::new(metric);
    for row in reader.records() {
        let row = row.map_err(fault)?;
        let line = row.position().map_or(0, |place| place.line() as usize);
        let text = &row[score];
        let found = match text.trim() {
            "True" | "true" => Ok(1.0),
            "False" | "false" => Ok(0.0),
            other => other.parse::<f64>(),
        };
        let found = found.map_err(|_| format!("`{metric}` is `{}`, not a number", words::excerpt(text)));
        let cluster = cluster.map(|column| row[column].to_owned());
        let sample = |score| Sample {
            id: row[id].to_owned(),
            repeat: None,
            score,
            content: None,
            prompt: None,
            cluster,
        };
        let added = found.and_then(|score| outcomes.add(sample(score)));
        added.map_err(|fault| Error::of_line(path, line, fault))?;
    }
    outcomes.checked(path, true)
}

pub(super) fn read_json(path: &Path, args: &Args) -> Result<Outcomes, Error> {
    let metric = args.score.as_deref().unwrap_or(SCORE);
    let wanted = [&*args.id, metric].into_iter().chain(args.cluster.as_deref());
    // a key may contain points, or be a path
    let wanted: Vec<&str> = wanted.flat_map(|key| [key, root(key)]).collect();
    let mut outcomes = Outcomes::new(metric);
    for line in Lines::open(path)? {
        let (line, text) = line?;
        let mut add = || -> Result<(), String> {
            let fields = fields(&text, Some(&wanted))?;
            let lacking = |key: &str| format!("no `{}`", words::excerpt(key));
            let id = at(&fields, &args.id).and_then(named).ok_or_else(|| lacking(&args.id))?;
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
