//! Logs of lm-evaluation-harness (`--log_samples`): `samples_<task>_<time>.jsonl`, one line per document and filter.
use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::fields::{Fields, Lines, cluster, fields, named, number, root};
use super::name;
use super::outcomes::{Outcomes, Repeat, Sample, checksum};
use crate::Error;
use crate::args::{Args, of_task};

/// Keys of a line that are not metrics.
const OTHERS: [&str; 10] = [
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "doc_hash",
    "prompt_hash",
    "target_hash",
];

/// Returns true if the first line has keys that the harness writes.
pub(super) fn is_log(path: &Path) -> Result<bool, Error> {
    let first = Lines::open(path)?.next().transpose()?;
    let keys = first.and_then(|(_, line)| fields(&line, None).ok());
    Ok(keys.is_some_and(|keys| {
        ["doc_id", "doc_hash"].iter().any(|key| keys.contains_key(*key))
            && OTHERS[3..].iter().any(|key| keys.contains_key(*key))
    }))
}

/// Returns the task in a file name, such as `arc_easy` in `samples_arc_easy_2024-05-29T12-38-43.123456.jsonl`.
pub(super) fn task(path: &Path) -> Option<String> {
    let name = name(path);
    let stem = name.strip_prefix("samples_")?.strip_suffix(".jsonl")?;
    let is_time = |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('T');
    let task = match stem.rsplit_once('_') {
        Some((task, time)) if is_time(time) => task,
        _ => stem,
    };
    Some(task.to_owned())
}

pub(super) fn read(path: &Path, metric: Option<&str>, args: &Args) -> Result<Outcomes, Error> {
    let first = Lines::open(path)?.next().transpose()?;
    let (line, text) = first.ok_or_else(|| Error::of(path, "the file is empty"))?;
    let keys = fields(&text, None).map_err(|fault| Error::of_line(path, line, fault))?;
    let metric = chosen(path, &keys, metric)?;
    let cluster_root = args.cluster.as_deref().map(root);
    let wanted =
        ["doc_id", "doc_hash", "prompt_hash", "filter", metric.as_str()].into_iter().chain(cluster_root);
    let wanted: Vec<&str> = wanted.collect();
    if metric.ends_with("perplexity") && args.lower_is_better {
        let fault = format!("`{metric}` of a document is its log-likelihood: omit --lower-is-better");
        return Err(Error::of(path, fault));
    }
    let only = of_task(&args.filter, &task(path).unwrap_or_default());
    let (mut outcomes, mut filters) = (Outcomes::new(&metric), BTreeSet::new());
    for line in Lines::open(path)? {
        let (line, text) = line?;
        let add = || -> Result<(), String> {
            let fields = fields(&text, Some(&wanted))?;
            let filter = fields.get("filter").and_then(named).unwrap_or_default();
            filters.insert(filter.clone());
            if only.is_none_or(|wanted| wanted == filter) {
                outcomes.add(sample(&fields, &metric, filter, args)?)?;
            }
            Ok(())
        };
        let mut add = add;
        add().map_err(|fault| Error::of_line(path, line, fault))?;
    }
    let all = filters.into_iter().collect::<Vec<_>>().join(", ");
    match only {
        Some(filter) if outcomes.documents.is_empty() => {
            return Err(Error::of(
                path,
                format!("no filter `{filter}`: expected one of {}", words::excerpt(&all)),
            ));
        }
        None if all.contains(", ") => {
            words::warn(&format!(
                "`{}`: scores are means over the filters {}; --filter selects one",
                path.display(),
                words::excerpt(&all)
            ));
        }
        _ => {}
    }
    outcomes.checked(path, false)
}

fn sample(fields: &Fields, metric: &str, filter: String, args: &Args) -> Result<Sample, String> {
    let id = ["doc_id", "doc_hash"].iter().find_map(|key| fields.get(*key).and_then(named));
    let id = id.ok_or("neither `doc_id` nor `doc_hash`")?;
    let value = fields.get(metric).ok_or_else(|| format!("no `{metric}`"))?;
    let score = number(value).ok_or_else(|| {
        let shown = words::excerpt(&value.to_string());
        format!(
            "`{metric}` of document `{id}` is {shown}, not a number: only metrics with one number per document can be compared"
        )
    })?;
    let hash = |key: &str| fields.get(key).and_then(Value::as_str).map(checksum);
    let cluster = cluster(fields, args.cluster.as_deref())?;
    Ok(Sample {
        id,
        repeat: Some(Repeat::Filter(filter)),
        score,
        content: hash("doc_hash"),
        prompt: hash("prompt_hash"),
        cluster,
    })
}

/// Returns the metric that was asked for, otherwise the first that is not a perplexity, otherwise the first.
fn chosen(path: &Path, keys: &Fields, asked: Option<&str>) -> Result<String, Error> {
    let listed = keys.get("metrics").and_then(Value::as_array);
    let has_number = |key: &&str| keys.get(*key).and_then(number).is_some();
    let all: Vec<&str> = match listed {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => keys.keys().map(String::as_str).filter(|key| !OTHERS.contains(key)).collect(),
    };
    let mut numbers: Vec<&str> = all.into_iter().filter(has_number).collect();
    // for a document these are log-likelihoods, from which the harness later computes a perplexity
    numbers.sort_by_key(|name| name.ends_with("perplexity"));
    choose(path, &numbers, asked, "metric")
}

/// Returns the name that was asked for, or the first, with a warning if there are several.
pub(super) fn choose(path: &Path, all: &[&str], asked: Option<&str>, what: &str) -> Result<String, Error> {
    let listed = || words::excerpt(&all.join(", "));
    match (asked, all) {
        (_, []) => Err(Error::of(path, format!("no {what} with one number per document"))),
        (Some(name), _) if all.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Error::of(
            path,
            format!("no {what} `{}`: expected one of {}", words::excerpt(name), listed()),
        )),
        (None, [only]) => Ok((*only).to_owned()),
        (None, [first, ..]) => {
            words::warn(&format!("comparing `{first}`, the first of {}: --metric selects another", listed()));
            Ok((*first).to_owned())
        }
    }
}
