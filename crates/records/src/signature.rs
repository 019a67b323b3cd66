//! Signature of a result file: where its numbers come from.

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

use crate::verdicts::is_margin;
use crate::{Error, Part, file};

/// Inputs of the numbers in a result file, and the runs that wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Inputs of the measured numbers; only a run with equal inputs may continue the file.
    pub identity: Identity,
    /// Kind of the statistics of segments; absent if none are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Settings of the last test, or for a shard of the tests to come; absent if nothing was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testing: Option<Testing>,
    /// `true` if the rows of an unfinished run, or of a shard, will replace complete rows, also from another run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The complete result that a shard is a part of; absent for other results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The runs that added rows, oldest first. For information only, never compared.
    pub runs: Vec<Provenance>,
    /// Content of the complete file; absent until it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<Complete>,
}

/// Properties of the statistics of segments that tests need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Metric of the scores.
    pub metric: MetricName,
    /// Index of the positive class of F1; absent for other metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<usize>,
    /// Number of rows of each complete family of tests; 0 if any number is complete. P-values of incomplete families are not adjusted.
    pub families: BTreeMap<String, usize>,
}

/// Settings of tests, which do not need the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testing {
    /// Number of swaps, and maximum number of resamples: [`stats::family::Testing`]; 0 tests nothing. In results from before swaps were
    /// introduced, the number of resamples.
    pub resamples: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// Margin: the loss that is accepted, in percent of the full model's score.
    pub margin_percent: f64,
    /// Neighbouring segments drawn and swapped together because they are windows of one text; 1 if segments are independent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: usize,
}

impl Testing {
    /// Returns the settings for the tests of segments, which do not include a margin.
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

/// Maximum number of resamples in any result; results from before swaps were introduced may have this many.
const MAX_RESAMPLES: usize = 1_000_000;

/// Content of a complete file, to detect edited or mixed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    /// Number of rows.
    pub rows: usize,
    /// SHA-256 of the CSV file.
    pub sha256: String,
    /// SHA-256 of the statistics of segments; absent if none are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_sha256: Option<String>,
}

/// Name of the argument with the number of neighbouring segments in each text, text by text.
pub const CLUSTERS: &str = "clusters";

/// Name of the argument with the rules for measuring rows on a growing sample.
pub const UNTIL_DECIDED: &str = "until_decided";

/// Rules for measuring rows on a growing sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UntilDecided {
    /// Spending function: distributes the error over the looks.
    pub bounds: Spending,
    /// Seed of the sampling order of segments.
    pub seed: u64,
    /// `true` if first-order effects on all segments are a control variate.
    pub control_variate: bool,
}

/// Everything that the numbers of a result file depend on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name of the experiment, such as `ablate-one`.
    pub experiment: String,
    /// Name of the setup, such as `demo-translation`.
    pub subject: String,
    /// Split that is scored, such as `test`.
    pub split: String,
    /// Number of segments that are scored; absent if all are.
    pub limit: Option<usize>,
    /// Arguments that change the numbers, by name. Arguments that only choose which rows to compute are left out, so that a later run can
    /// add other rows.
    pub arguments: BTreeMap<String, Value>,
    /// Seed of every random choice of the measurement; absent if nothing is random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Number format of the model, such as `f32`.
    pub precision: String,
    /// Signature of the metric, such as sacreBLEU's.
    pub metric: String,
    /// SHA-256 of the model's weights; absent if a run starts without weights.
    pub weights: Option<String>,
    /// SHA-256 of each data file, by name.
    pub data: BTreeMap<String, String>,
}

/// Returns the suffix for names of result files with a limit, such as `-sample-200` or `-first-200`; empty without a limit.
///
/// - `seed`: seed of a random sample; `None` if the first segments are scored
pub fn limit_suffix(limit: Option<usize>, seed: Option<u64>) -> String {
    let which = if seed.is_some() { "sample" } else { "first" };
    limit.map_or_else(String::new, |limit| format!("-{which}-{limit}"))
}

impl Identity {
    /// Returns an identity whose other fields are empty, to be filled in.
    pub fn new(experiment: &str, subject: &str) -> Self {
        Self { experiment: experiment.to_owned(), subject: subject.to_owned(), ..Self::default() }
    }

    /// Returns the number of neighbouring segments in each text; empty if segments are independent.
    pub fn clusters(&self) -> Vec<usize> {
        let clusters = self.arguments.get(CLUSTERS);
        clusters.and_then(|sizes| serde_json::from_value(sizes.clone()).ok()).unwrap_or_default()
    }

    /// Returns the rules for measuring rows until they are decided; `None` if all segments are measured.
    pub fn until_decided(&self) -> Option<UntilDecided> {
        serde_json::from_value(self.arguments.get(UNTIL_DECIDED)?.clone()).ok()
    }

    /// Returns the entries that differ from those in `stored`: `seed: 1 in the file, 2 now`.
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

    /// Returns a separate path for the results of this run: `ablate-one-3f2a9c1b.csv`.
    pub fn own_path(&self, path: &Path) -> PathBuf {
        let json = serde_json::to_vec(self).expect("an identity has only text keys");
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!("{stem}-{}.csv", &sha256(&json)[..8]))
    }

    /// Returns all entries by name; entries of maps as `arguments.beam`.
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

/// Circumstances of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Command line, program first; absolute paths are shortened because they depend on the machine.
    pub command: Vec<String>,
    /// Version of this project.
    pub version: String,
    /// Git commit of the current folder; absent outside a repository.
    pub commit: Option<String>,
    /// `true` if tracked files outside `results/`, which runs write, differed from the commit.
    pub modified: Option<bool>,
    /// Libraries that the numbers depend on: versions by name, such as `libtorch`; `products` names the one that multiplies matrices.
    pub libraries: BTreeMap<String, String>,
    /// Device of the model, such as `cpu` or `cuda:0`.
    pub device: String,
    /// Number of threads.
    pub threads: usize,
    /// Operating system and processor, such as `linux x86_64`.
    pub platform: String,
    /// Start of the run, in seconds since 1970-01-01 UTC.
    pub started_unix_seconds: u64,
    /// Duration of the run, in seconds; absent if it was interrupted.
    pub duration_seconds: Option<f64>,
    /// Seconds that each method of `compare-methods` took to choose its heads; empty for other experiments.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub choosing_seconds: BTreeMap<String, f64>,
    /// Rows that this run wrote, if other runs wrote rows too; empty for the only run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
    /// Warnings of this run, oldest first. For information only, never compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Provenance {
    /// Describes the run that starts now in the current folder.
    pub fn collect(device: &str, threads: usize, libraries: BTreeMap<String, String>) -> Self {
        let folder = Path::new(".");
        let built = durable::installed_commit();
        let commit = built.clone().or_else(|| git(folder, &["rev-parse", "HEAD"]));
        Self {
            command: command(std::env::args_os()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // a wheel is built from a commit
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

/// Returns a text without folders of the machine in quoted paths.
fn without_folders(text: &str, here: &Path) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(place, part)| match place % 2 {
        1 => without_machine(part, here),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Returns the command line without private details of the machine: the program by name, and absolute paths relative to the current folder
/// or, outside it, as their last part.
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

/// Returns true if tracked files of the repository around `folder` are modified, apart from results.
fn modified(folder: &Path) -> Option<bool> {
    let scope = [":(top)", ":(top,exclude)results"];
    let changes = git(folder, &["status", "--porcelain", "--untracked-files=no", "--", scope[0], scope[1]])?;
    Some(!changes.is_empty())
}

/// Returns the output of git in `folder`; `None` if git is missing or fails.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

impl Signature {
    /// Signs an identity with what is known of the run.
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

    /// Returns the signature with the information that tests need.
    pub fn tested(self, measured: Measured, testing: Testing) -> Self {
        Self { measured: Some(measured), testing: Some(testing), ..self }
    }

    /// Adds the families, the requested rows and the runs of rows that another run measured.
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

    /// Returns the path of the signature of a CSV file: `ablate-one.json` for `ablate-one.csv`.
    pub fn path_beside(csv: &Path) -> PathBuf {
        csv.with_extension("json")
    }

    /// Reads a signature; `None` if the file does not exist.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let Some(bytes) = file::read_if_there(path)? else { return Ok(None) };
        let signature: Self = serde_json::from_slice(&bytes)
            .map_err(|source| Error::of(path, format!("is not the signature of a run: {source}")))?;
        match signature.testing {
            Some(Testing { resamples, margin_percent, block, .. })
                if resamples > MAX_RESAMPLES || block == 0 || !is_margin(margin_percent) =>
            {
                let fault = format!(
                    "asks for {resamples} resamples, blocks of {block} and a margin of {margin_percent}%: allowed are at most \
                     {MAX_RESAMPLES} resamples, blocks of at least 1, and a margin above 0 and at most 100%"
                );
                Err(Error::of(path, fault))
            }
            _ => Ok(Some(signature)),
        }
    }

    /// Writes the signature completely or, on error, not at all.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(self).expect("a signature has only text keys");
        file::write(path, json + "\n")
    }
}

/// Returns the SHA-256 of a file in lower-case hexadecimal.
pub fn sha256_file(path: &Path) -> Result<String, Error> {
    let mut hasher = Sha256::new();
    durable::open_regular(path)
        .and_then(|mut file| io::copy(&mut file, &mut hasher))
        .map_err(|source| file::read_error(path, source))?;
    Ok(format!("{:x}", hasher.finalize()))
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;
