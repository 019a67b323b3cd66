//! Where numbers come from: the signature beside each result file.

use crate::names::MetricName;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use words::excerpt;

use crate::{Error, Part, file};

/// What a result file holds, and the runs that wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// What the measured numbers depend on; a file is only continued by a run with the same.
    pub identity: Identity,
    /// What the statistics of segments are; absent where none are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// How the rows were tested from them, the last time, or of a shard are to be; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testing: Option<Testing>,
    /// Whether an unfinished run computes rows again that are there already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_renewal: bool,
    /// Rows of such a run that are still the complete ones, by name; all others are computed again already.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub old: BTreeSet<String>,
    /// Complete rows that an unfinished run has discarded, by name: they do not come back, successor or not.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub discarded: BTreeSet<String>,
    /// What a shard's file is a part of; absent for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The runs that added rows, oldest first. Recorded, never compared.
    pub runs: Vec<Provenance>,
    /// What the file held when it was complete; absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<Complete>,
}

/// What the statistics of segments are, as far as testing must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// What scores are counted in.
    pub metric: MetricName,
    /// Index of the class that F1 is about; absent for all other metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<usize>,
    /// Number of rows that a family of tests has when it is whole, by family; 0 where any number does. P-values of other
    /// families are not adjusted.
    pub families: BTreeMap<String, usize>,
}

/// More resamples than this say nothing new, and take long.
pub const MOST_RESAMPLES: usize = 100_000;

/// How rows are tested: nothing of it needs the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testing {
    /// Resamples of the paired bootstrap; with 0 nothing is tested.
    pub resamples: usize,
    /// Seed that draws them.
    pub seed: u64,
    /// The loss that counts as safe, in percent of the score with all heads.
    pub margin_percent: f64,
}

/// What a file held when it was complete, so that an edited or mixed one is found out.
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

impl Identity {
    /// An identity whose other fields are empty, to be filled in.
    pub fn new(experiment: &str, subject: &str) -> Self {
        Self { experiment: experiment.to_owned(), subject: subject.to_owned(), ..Self::default() }
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
    /// Whether tracked files other than those in `results/`, which runs write, differed from that commit.
    pub modified: Option<bool>,
    /// What matters for the numbers of libraries: versions by name, such as `libtorch`, and which one multiplies matrices, `products`.
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
    /// The rows that this run wrote, where others wrote rows too; empty for the only run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
}

impl Provenance {
    /// Describes the run that starts now, in the current folder.
    pub fn collect(device: &str, threads: usize, libraries: BTreeMap<String, String>) -> Self {
        let folder = Path::new(".");
        let commit = git(folder, &["rev-parse", "HEAD"]);
        Self {
            command: command(std::env::args_os()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            modified: commit.as_ref().and_then(|_| modified(folder)),
            commit,
            libraries,
            device: device.to_owned(),
            threads,
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            started_unix_seconds: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            duration_seconds: None,
            rows: Vec::new(),
        }
    }
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

/// Whether tracked files of the repository around `folder` are changed, results apart.
fn modified(folder: &Path) -> Option<bool> {
    let scope = [":(top)", ":(top,exclude)results"];
    let changes = git(folder, &["status", "--porcelain", "--untracked-files=no", "--", scope[0], scope[1]])?;
    Some(!changes.is_empty())
}

/// What git answers in `folder`; `None` if it is not there or does not succeed.
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
            is_renewal: false,
            old: BTreeSet::new(),
            discarded: BTreeSet::new(),
            part: None,
            runs: vec![run],
            complete: None,
        }
    }

    /// The same, with what testing must know.
    pub fn tested(self, measured: Measured, testing: Testing) -> Self {
        Self { measured: Some(measured), testing: Some(testing), ..self }
    }

    /// Takes out what only an unfinished run must know. One run that wrote all rows needs no names.
    pub(crate) fn close(&mut self, complete: Complete) {
        self.is_renewal = false;
        self.old.clear();
        self.discarded.clear();
        if let [only] = self.runs.as_mut_slice() {
            only.rows.clear();
        }
        self.complete = Some(complete);
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
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(file::read_error(path, source)),
        };
        let signature: Self = serde_json::from_slice(&bytes)
            .map_err(|source| Error::Signature { path: path.to_owned(), source })?;
        match signature.testing {
            Some(Testing { resamples, margin_percent, .. })
                if resamples > MOST_RESAMPLES || !(0.0..=100.0).contains(&margin_percent) =>
            {
                Err(Error::Testing { path: path.to_owned(), resamples, margin_percent })
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
        file::replace(path, &(json + "\n"))
    }
}

/// SHA-256 of a file, in lower-case hexadecimal.
///
/// # Errors
/// If the file cannot be read.
pub fn sha256_file(path: &Path) -> Result<String, Error> {
    let mut hasher = Sha256::new();
    File::open(path)
        .and_then(|mut file| io::copy(&mut file, &mut hasher))
        .map_err(|source| file::read_error(path, source))?;
    Ok(format!("{:x}", hasher.finalize()))
}

/// SHA-256 of bytes, likewise.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn identity() -> Identity {
        Identity {
            split: "test".to_owned(),
            limit: Some(100),
            arguments: [("beam", json!(5)), ("length_penalty", json!(1.0)), ("rescale", json!(false))]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            seed: Some(u64::MAX),
            weights: Some("ab12".to_owned()),
            data: [("test.en".to_owned(), "cd34".to_owned())].into(),
            ..Identity::new("ablate-one", "demo-translation")
        }
    }

    #[test]
    fn signature_reads_back_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/ablate-one.json");
        let run = Provenance::collect("cpu", 2, [("libtorch".to_owned(), "2.11.0".to_owned())].into());
        let signature = Signature::new(identity(), run);
        signature.write(&path).unwrap();
        assert_eq!(Signature::read(&path).unwrap(), Some(signature));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a temporary file stayed");
    }

    #[test]
    fn only_differing_entries_are_shown() {
        let mut now = identity();
        assert!(now.differences(&identity()).is_empty());
        now.seed = Some(1);
        now.limit = None;
        now.arguments.insert("beam".to_owned(), json!(4));
        now.data.insert("test.de".to_owned(), "ef56".to_owned());
        assert_eq!(
            now.differences(&identity()),
            [
                "arguments.beam: 5 in the file, 4 now",
                "data.test.de: absent in the file, \"ef56\" now",
                "limit: 100 in the file, absent now",
                "seed: 18446744073709551615 in the file, 1 now",
            ]
        );
    }

    #[test]
    fn differences_repeat_foreign_text_without_control_characters_and_not_at_any_length() {
        let mut stored = identity();
        stored.data.insert("\u{1b}[31m".to_owned(), "\u{202e}".repeat(100_000));
        let differences = identity().differences(&stored);
        assert_eq!(differences.len(), 1);
        assert!(differences[0].starts_with(r"data.\u{1b}[31m: "), "{}", differences[0]);
        assert!(differences[0].len() < 2000 && !differences[0].contains('\u{202e}'), "{}", differences[0]);
    }

    #[test]
    fn other_json_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("package.json");
        assert_eq!(Signature::read(&path).unwrap(), None);
        fs::write(&path, "{\"name\": 1}").unwrap();
        let error = Signature::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("package.json` is not the signature of a run"), "{error}");
    }

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn sha256_is_the_standard_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_file(&path).unwrap(), expected);
        let missing = sha256_file(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read `") && missing.ends_with("none`"), "{missing}");
    }

    #[test]
    fn provenance_describes_this_process() {
        let run = Provenance::collect("cuda:0", 3, BTreeMap::new());
        assert!(!run.command.is_empty() && run.started_unix_seconds > 1_700_000_000);
        assert_eq!(run.commit.is_some(), run.modified.is_some());
        assert_eq!((run.device.as_str(), run.threads, run.duration_seconds), ("cuda:0", 3, None));
    }

    #[test]
    fn commands_name_no_folder_of_the_machine() {
        let here = Path::new("/home/someone/project");
        for (word, public) in [
            ("--results=/tmp/out", "--results=.../out"),
            ("/home/someone/project/data", "data"),
            ("/home/someone/project", "."),
            ("/home/someone/other/model", ".../model"),
            ("data/models", "data/models"),
            ("../../home/someone/results", ".../results"),
            ("enc-enc", "enc-enc"),
            ("--output=results/a.csv", "--output=results/a.csv"),
        ] {
            assert_eq!(without_machine(word, here), public);
        }
        let words = ["/opt/target/release/ablate-one", "demo"].map(OsString::from);
        assert_eq!(command(words.into_iter()), ["ablate-one", "demo"]);
    }

    #[test]
    fn results_that_a_run_replaced_leave_the_code_unmodified() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("results/demo/a.csv", "1");
        write("crates/a/results/a.rs", "1");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        git(folder.path(), &["init"]).unwrap();
        git(folder.path(), &["add", "."]).unwrap();
        git(folder.path(), &[&identity[..], &["commit", "-m", "first"]].concat()).unwrap();
        assert_eq!(modified(folder.path()), Some(false));
        write("results/demo/a.csv", "2");
        assert_eq!(modified(folder.path()), Some(false));
        assert_eq!(modified(&folder.path().join("crates")), Some(false));
        write("crates/a/results/a.rs", "2");
        assert_eq!(modified(folder.path()), Some(true));
        assert_eq!(modified(&folder.path().join("results")), Some(true));
    }

    proptest! {
        /// A reader that took a short cut would change the last bit, and a file its own identity.
        #[test]
        fn numbers_in_arguments_read_back_bit_by_bit(number in proptest::num::f64::NORMAL) {
            let now = Identity { arguments: [("number".to_owned(), json!(number))].into(), ..identity() };
            let stored = serde_json::from_str(&serde_json::to_string(&now).unwrap()).unwrap();
            prop_assert_eq!(now.differences(&stored), Vec::<String>::new());
        }
    }
}
