//! Logs of Inspect: `.json`, and `.eval`, a zip archive with one file per sample.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use zip::ZipArchive;

use super::fields::{cluster, named, number};
use super::lm_eval::choose;
use super::outcomes::{Outcomes, Repeat, Sample, checksum};
use crate::Error;
use crate::args::Args;

/// Archive members that name the task: for a finished run, and for one still in progress.
const HEADERS: [&str; 2] = ["header.json", "_journal/start.json"];

/// A log in a single JSON file.
#[derive(Deserialize)]
pub(super) struct Log {
    eval: Description,
    #[serde(default)]
    samples: Vec<Sampled>,
}

/// A log of which only the task name is read.
#[derive(Deserialize)]
struct Header {
    eval: Description,
}

#[derive(Deserialize)]
struct Description {
    task: String,
}

/// One sample of a document with its scores, by scorer.
#[derive(Deserialize)]
struct Sampled {
    id: Value,
    #[serde(default)]
    epoch: u64,
    #[serde(default, deserialize_with = "hashed")]
    input: Option<u64>,
    #[serde(default)]
    scores: Option<BTreeMap<String, Scored>>,
    #[serde(default)]
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct Scored {
    value: Value,
}

/// Reads an input but keeps only its checksum, since inputs may be long. Ids of chat messages, which differ in each run, do not count.
fn hashed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let mut input = Value::deserialize(from)?;
    for message in input.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        message.remove("id");
    }
    Ok(named(&input).map(|text| checksum(&text)))
}

/// Returns the task of a log in a zip archive.
pub(super) fn task(path: &Path) -> Result<String, Error> {
    let mut zip = archive(path)?;
    let member = HEADERS.into_iter().find(|member| zip.index_for_name(member).is_some());
    let member = member.ok_or_else(|| Error::of(path, "not a log of Inspect: it has no header"))?;
    let header: Header = read_member(path, &mut zip, member)?;
    Ok(header.eval.task)
}

pub(super) fn log(path: &Path) -> Result<Log, Error> {
    parsed(path, open(path)?)
}

impl Log {
    pub(super) fn task(&self) -> String {
        self.eval.task.clone()
    }

    pub(super) fn outcomes(self, path: &Path, metric: Option<&str>, args: &Args) -> Result<Outcomes, Error> {
        gathered(path, self.samples.into_iter().map(Ok), metric, args)
    }
}

pub(super) fn read_zip(path: &Path, metric: Option<&str>, args: &Args) -> Result<Outcomes, Error> {
    let mut zip = archive(path)?;
    let names: Vec<String> = zip.file_names().filter_map(|name| Some(String::from(name.ok()?))).collect();
    let is_sample = |name: &&String| name.starts_with("samples/") && name.ends_with(".json");
    let mut members: Vec<&String> = names.iter().filter(is_sample).collect();
    members.sort();
    gathered(path, members.into_iter().map(|member| read_member(path, &mut zip, member)), metric, args)
}

fn open(path: &Path) -> Result<BufReader<File>, Error> {
    Ok(BufReader::with_capacity(1 << 20, durable::open_regular(path).map_err(Error::reading(path))?))
}

fn parsed<T: for<'de> Deserialize<'de>>(path: &Path, from: impl std::io::Read) -> Result<T, Error> {
    serde_json::from_reader(from).map_err(|error| Error::of(path, format!("not a log of Inspect: {error}")))
}

type Archive = ZipArchive<BufReader<File>>;

fn archive(path: &Path) -> Result<Archive, Error> {
    ZipArchive::new(open(path)?)
        .map_err(|error| Error::of(path, format!("not a complete zip archive ({error})")))
}

fn read_member<T: for<'de> Deserialize<'de>>(
    path: &Path,
    zip: &mut Archive,
    member: &str,
) -> Result<T, Error> {
    let fault =
        |error: &dyn std::fmt::Display| Error::of(path, format!("`{}`: {error}", words::excerpt(member)));
    let file = zip.by_name(member).map_err(|error| fault(&error))?;
    serde_json::from_reader(BufReader::new(file)).map_err(|error| fault(&error))
}

fn gathered(
    path: &Path,
    samples: impl Iterator<Item = Result<Sampled, Error>>,
    metric: Option<&str>,
    args: &Args,
) -> Result<Outcomes, Error> {
    let mut outcomes: Option<Outcomes> = None;
    for sampled in samples {
        let sampled = sampled?;
        // a sample that failed or was not scored counts as a missing document
        let Some(scores) = sampled.scores.as_ref().filter(|scores| !scores.is_empty()) else { continue };
        let outcomes = match &mut outcomes {
            Some(outcomes) => outcomes,
            None => {
                let names: Vec<&str> = scores.keys().map(String::as_str).collect();
                outcomes.insert(Outcomes::new(choose(path, &names, metric, "scorer")?))
            }
        };
        let Some(scored) = scores.get(&outcomes.metric) else { continue };
        let sample = sample(&sampled, &scored.value, args).and_then(|sample| outcomes.add(sample));
        sample.map_err(|fault| Error::of(path, fault))?;
    }
    outcomes.unwrap_or_else(|| Outcomes::new("")).checked(path, false)
}

fn sample(sampled: &Sampled, value: &Value, args: &Args) -> Result<Sample, String> {
    let id = named(&sampled.id).ok_or("a sample has no id")?;
    let score = score(value).ok_or_else(|| {
        let shown = words::excerpt(&value.to_string());
        format!("the score of document `{id}` is {shown}: expected a number, true, false, C, P, I or N")
    })?;
    let metadata = sampled.metadata.clone().unwrap_or_default();
    let fields = Map::from_iter([("metadata".to_owned(), metadata)]);
    let cluster =
        cluster(&fields, args.cluster.as_deref()).map_err(|fault| format!("document `{id}` has {fault}"))?;
    Ok(Sample {
        id,
        repeat: Some(Repeat::Epoch(sampled.epoch)),
        score,
        content: None,
        prompt: sampled.input,
        cluster,
    })
}

/// Converts a score: correct 1, partly correct 0.5, incorrect or no answer 0, as Inspect's `value_to_float` does.
fn score(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("C") => Some(1.0),
        Some("P") => Some(0.5),
        Some("I" | "N") => Some(0.0),
        Some(text) => text.parse().ok(),
        None => number(value),
    }
}
