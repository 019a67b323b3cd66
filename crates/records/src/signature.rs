//! Where numbers come from: the signature beside each result file.

use stats::MetricName;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use stats::sequential::Spending;
use words::excerpt;

use crate::rules::is_margin;
use crate::{Error, Part, file};

/// Description of a result file: the inputs of its numbers, and the runs that wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Inputs of the measured numbers; a file is only continued by a run with the same.
    pub identity: Identity,
    /// Kind of the statistics of segments; absent where none are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Settings of their last test, or of a shard of those to come; absent where nothing was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testing: Option<Testing>,
    /// `true` if the rows of an unfinished run, or of a shard, are to take the place of complete ones, and of those of
    /// another run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The whole that a shard is a part of; absent for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The runs that added rows, oldest first. Recorded, never compared.
    pub runs: Vec<Provenance>,
    /// Content of the file when it was complete; absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<Complete>,
}

/// Statistics of segments, as far as testing must know them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Metric of the scores.
    pub metric: MetricName,
    /// Index of the class that F1 is about; absent for all other metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<usize>,
    /// Number of rows that a family of tests has when it is whole, by family; 0 where any number does. P-values of other
    /// families are not adjusted.
    pub families: BTreeMap<String, usize>,
}

/// Settings of tests, which need no model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testing {
    /// Swaps, and at most as many resamples: [`stats::family::Testing`]; with 0 nothing is tested. Of results that were tested before
    /// there were swaps, resamples.
    pub resamples: usize,
    /// Seed that draws them.
    pub seed: u64,
    /// The loss that is tolerated, in percent of the score with all heads.
    pub margin_percent: f64,
    /// Segments that were drawn and swapped together, since they are windows of one text; 1 where segments are independent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: usize,
}

impl Testing {
    /// The settings that tests of segments have, which know no margin.
    pub fn of_segments(self) -> stats::family::Testing {
        stats::family::Testing { resamples: self.resamples, seed: self.seed, block: self.block }
    }
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_one(block: &usize) -> bool {
    *block == 1
}

/// More resamples are in no results; those that were tested before there were swaps may have so many.
const MOST_RESAMPLES: usize = 1_000_000;

/// Content of a complete file, so that an edited or mixed one is found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    /// Number of rows.
    pub rows: usize,
    /// SHA-256 of the CSV file.
    pub sha256: String,
    /// SHA-256 of the statistics of segments; absent where none are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_sha256: Option<String>,
}

/// Name of the argument with the number of neighbouring segments that come from one text, text by text.
pub const CLUSTERS: &str = "clusters";

/// Name of the argument with the rules by which rows are measured on a growing sample.
pub const UNTIL_DECIDED: &str = "until_decided";

/// Rules by which rows are measured on a growing sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UntilDecided {
    /// Distribution of the error over the looks.
    pub bounds: Spending,
    /// Seed of the order in which segments are sampled.
    pub seed: u64,
    /// `true` if first-order effects on all segments are a control variate.
    pub control_variate: bool,
}

/// All that the numbers of a result file depend on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name of the experiment, such as `ablate-one`.
    pub experiment: String,
    /// Name of the subject, such as `demo-translation`.
    pub subject: String,
    /// Split that is scored, such as `test`.
    pub split: String,
    /// Number of segments scored from the start of the split; all if absent.
    pub limit: Option<usize>,
    /// Arguments that change the numbers, by name. Those that only choose which rows to compute
    /// do not belong here, so that a later run can add the others.
    pub arguments: BTreeMap<String, Value>,
    /// Seed of every random choice of the measurement; absent where nothing is left to chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Number format of the model, such as `f32`.
    pub precision: String,
    /// Signature of the metric, such as sacreBLEU's.
    pub metric: String,
    /// SHA-256 of the model's weights; absent where a run starts without any.
    pub weights: Option<String>,
    /// SHA-256 of each data file, by name.
    pub data: BTreeMap<String, String>,
}

/// Returns what the names of result files have of a limit, such as `-sample-200` or `-first-200`; empty without one.
///
/// - `seed`: seed of a random sample; `None` if the first segments are scored
pub fn limit_suffix(limit: Option<usize>, seed: Option<u64>) -> String {
    let which = if seed.is_some() { "sample" } else { "first" };
    limit.map_or_else(String::new, |limit| format!("-{which}-{limit}"))
}

impl Identity {
    /// An identity whose other fields are empty, to be filled in.
    pub fn new(experiment: &str, subject: &str) -> Self {
        Self { experiment: experiment.to_owned(), subject: subject.to_owned(), ..Self::default() }
    }

    /// Returns the numbers of neighbouring segments that come from one text; empty if segments are independent.
    pub fn clusters(&self) -> Vec<usize> {
        let clusters = self.arguments.get(CLUSTERS);
        clusters.and_then(|sizes| serde_json::from_value(sizes.clone()).ok()).unwrap_or_default()
    }

    /// Returns the rules of rows that are measured until they are decided; `None` if all segments are measured.
    pub fn until_decided(&self) -> Option<UntilDecided> {
        serde_json::from_value(self.arguments.get(UNTIL_DECIDED)?.clone()).ok()
    }

    /// Each entry that differs from the one in `stored`: `seed: 1 in the file, 2 now`.
    pub fn differences(&self, stored: &Self) -> Vec<String> {
        let (now, stored) = (self.entries(), stored.entries());
        let names: BTreeSet<&String> = now.keys().chain(stored.keys()).collect();
        let show =
            |value: Option<&Value>| value.map_or("absent".to_owned(), |value| excerpt(&value.to_string()));
        names
            .into_iter()
            .filter(|&name| now.get(name) != stored.get(name))
            .map(|name| {
                let (stored, now) = (show(stored.get(name)), show(now.get(name)));
                format!("{}: {stored} in the file, {now} now", excerpt(name))
            })
            .collect()
    }

    /// A file name for results of this run beside those of another: `ablate-one-3f2a9c1b.csv`.
    pub fn own_path(&self, path: &Path) -> PathBuf {
        let json = serde_json::to_vec(self).expect("an identity has only text keys");
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!("{stem}-{}.csv", &sha256(&json)[..8]))
    }

    /// Every entry by name; those of the maps as `arguments.beam`.
    fn entries(&self) -> BTreeMap<String, Value> {
        let value = serde_json::to_value(self).expect("an identity has only text keys");
        let mut entries = BTreeMap::new();
        for (name, value) in value.as_object().into_iter().flatten() {
            match value {
                Value::Object(inner) => {
                    entries.extend(inner.iter().map(|(key, value)| (format!("{name}.{key}"), value.clone())));
                }
                Value::Null => {}
                value => drop(entries.insert(name.clone(), value.clone())),
            }
        }
        entries
    }
}

/// The circumstances of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The command line, program first; absolute paths are shortened, since they belong to a machine.
    pub command: Vec<String>,
    /// Version of this project.
    pub version: String,
    /// Git commit of the current folder; absent outside a repository.
    pub commit: Option<String>,
    /// `true` if tracked files other than those in `results/`, which runs write, differed from that commit.
    pub modified: Option<bool>,
    /// Libraries that the numbers depend on: versions by name, such as `libtorch`, and which one multiplies matrices, `products`.
    pub libraries: BTreeMap<String, String>,
    /// Device of the model, such as `cpu` or `cuda:0`.
    pub device: String,
    /// Threads of the computation.
    pub threads: usize,
    /// Operating system and processor, such as `linux x86_64`.
    pub platform: String,
    /// Start of the run, in seconds since 1970-01-01 UTC.
    pub started_unix_seconds: u64,
    /// Duration of the run, in seconds; absent if it was interrupted.
    pub duration_seconds: Option<f64>,
    /// Seconds that each method of `compare-methods` took to choose its heads; empty for all other experiments.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub choosing_seconds: BTreeMap<String, f64>,
    /// The rows that this run wrote, where others wrote rows too; empty for the only run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
    /// Warnings of this run, oldest first. Recorded, never compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Provenance {
    /// Describes the run that starts now, in the current folder.
    pub fn collect(device: &str, threads: usize, libraries: BTreeMap<String, String>) -> Self {
        let folder = Path::new(".");
        let built = durable::installed_commit();
        let commit = built.clone().or_else(|| git(folder, &["rev-parse", "HEAD"]));
        Self {
            command: command(std::env::args_os()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // a wheel is built of what is committed
            modified: if built.is_some() {
                Some(false)
            } else {
                commit.as_ref().and_then(|_| modified(folder))
            },
            commit,
            libraries,
            device: device.to_owned(),
            threads,
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            started_unix_seconds: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            duration_seconds: None,
            choosing_seconds: BTreeMap::new(),
            rows: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds what this process has warned of until now.
    pub(crate) fn add_warnings(&mut self) {
        let here = std::env::current_dir().unwrap_or_default();
        for warning in words::warnings() {
            let warning = without_folders(&warning, &here);
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

/// Returns a text whose quoted paths name no folder of the machine.
fn without_folders(text: &str, here: &Path) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(place, part)| match place % 2 {
        1 => without_machine(part, here),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The command line without what is private to a machine: the program by its name, and absolute paths relative to the
/// current folder or, outside it, by their last part.
fn command(words: impl Iterator<Item = OsString>) -> Vec<String> {
    let here = std::env::current_dir().unwrap_or_default();
    let words = words.map(|word| word.to_string_lossy().into_owned()).enumerate();
    let public = |(place, word): (usize, String)| {
        if place == 0 { last_part(&word) } else { without_machine(&word, &here) }
    };
    words.map(public).collect()
}

fn without_machine(word: &str, here: &Path) -> String {
    if let Some((option, value)) = word.split_once('=').filter(|(option, _)| option.starts_with('-')) {
        return format!("{option}={}", without_machine(value, here));
    }
    let path = Path::new(word);
    if !path.is_absolute() && !path.starts_with("..") {
        return word.to_owned();
    }
    match path.strip_prefix(here) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => format!(".../{}", last_part(word)),
    }
}

fn last_part(path: &str) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns true if tracked files of the repository around `folder` are changed, results apart.
fn modified(folder: &Path) -> Option<bool> {
    let scope = [":(top)", ":(top,exclude)results"];
    let changes = git(folder, &["status", "--porcelain", "--untracked-files=no", "--", scope[0], scope[1]])?;
    Some(!changes.is_empty())
}

/// Answer of git in `folder`; `None` if it is not there or does not succeed.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

impl Signature {
    /// The signature of one run.
    pub fn new(identity: Identity, run: Provenance) -> Self {
        Self {
            identity,
            measured: None,
            testing: None,
            again: false,
            part: None,
            runs: vec![run],
            complete: None,
        }
    }

    /// The same, with what testing must know.
    pub fn tested(self, measured: Measured, testing: Testing) -> Self {
        Self { measured: Some(measured), testing: Some(testing), ..self }
    }

    /// Adds the families, the rows that are asked for and the runs of rows that another run has measured.
    pub(crate) fn inherit(&mut self, stored: Self) {
        if let (Some(now), Some(stored)) = (&mut self.measured, stored.measured) {
            for (family, rows) in stored.families {
                now.families.entry(family).or_insert(rows);
            }
        }
        if let (Some(now), Some(stored)) = (&mut self.part, stored.part) {
            for (name, place) in stored.rows {
                now.rows.entry(name).or_insert(place);
            }
        }
        self.runs.extend(stored.runs);
        self.runs.sort_by_key(|run| run.started_unix_seconds);
    }

    /// Where the signature of a CSV file stands: `ablate-one.json` beside `ablate-one.csv`.
    pub fn path_beside(csv: &Path) -> PathBuf {
        csv.with_extension("json")
    }

    /// Reads a signature; `None` if there is no such file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a signature.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let Some(bytes) = file::read_if_there(path)? else { return Ok(None) };
        let signature: Self = serde_json::from_slice(&bytes)
            .map_err(|source| Error::of(path, format!("is not the signature of a run: {source}")))?;
        match signature.testing {
            Some(Testing { resamples, margin_percent, block, .. })
                if resamples > MOST_RESAMPLES || block == 0 || !is_margin(margin_percent) =>
            {
                let fault = format!(
                    "asks for {resamples} resamples, blocks of {block} and a margin of {margin_percent} %: at most \
                     {MOST_RESAMPLES}, blocks of at least 1, and a margin above 0 and at most 100 %, are possible"
                );
                Err(Error::of(path, fault))
            }
            _ => Ok(Some(signature)),
        }
    }

    /// Writes the signature: all of it or, on error, nothing.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(self).expect("a signature has only text keys");
        file::write(path, json + "\n")
    }
}

/// SHA-256 of a file, in lower-case hexadecimal.
///
/// # Errors
/// If the file cannot be read.
pub fn sha256_file(path: &Path) -> Result<String, Error> {
    let mut hasher = Sha256::new();
    durable::open_regular(path)
        .and_then(|mut file| io::copy(&mut file, &mut hasher))
        .map_err(|source| file::read_error(path, source))?;
    Ok(format!("{:x}", hasher.finalize()))
}

/// SHA-256 of bytes, likewise.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;
