//! Reads scores per document from files of other programs.
mod fields;
mod inspect;
mod lm_eval;
mod outcomes;
mod stored;
mod table;
mod translations;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use corpus::labelled::RowKind;
pub(crate) use outcomes::{Document, Outcomes};
pub(crate) use stored::file_and_row;
pub(crate) use translations::Counted;

use crate::Error;
use crate::args::{Args, of_task};

/// Measurements of all runs.
pub(crate) enum Runs {
    /// Per run, the scores of each task's documents, by task name.
    Scores(Vec<BTreeMap<String, Outcomes>>),
    /// Segments of translations or of headcount's result files.
    Counted(Counted),
}

/// Task name for files that do not name one.
const UNNAMED: &str = "";

/// Files that can be runs, for error messages.
const ALLOWED: &str = "expected a folder of logs, samples_*.jsonl of lm-evaluation-harness, .eval or .json of Inspect, or a table in \
                       .csv, .tsv, .jsonl, .parquet or .arrow; FILE.csv#ROW names a row of a result file of headcount; plain translations \
                       need --reference";

/// Reads all runs. The first run chooses the metric of each task.
pub(crate) fn runs(args: &Args) -> Result<Runs, Error> {
    if !args.reference.is_empty() {
        return Ok(Runs::Counted(Counted::read(args)?));
    }
    let stored = args.runs.iter().map(|run| stored::place(run).filter(|_| args.score.is_none()));
    if let Some(stored) = stored.collect::<Option<Vec<_>>>() {
        if let Some(option) = args.unfit_for_results() {
            return Err(Error::of(stored[0].0, format!("a result file of headcount takes no {option}")));
        }
        return Ok(Runs::Counted(stored::read(&stored)?));
    }
    let mut all: Vec<BTreeMap<String, Outcomes>> = Vec::new();
    for path in &args.runs {
        let run = run(path, all.first(), args)?;
        all.push(run);
    }
    for (task, _) in args.metric.iter().chain(&args.filter).filter_map(|name| name.split_once('=')) {
        if !all[0].contains_key(task) {
            let known = words::excerpt(&all[0].keys().map(String::as_str).collect::<Vec<_>>().join(", "));
            let fault = format!(
                "no task `{}`, which --metric or --filter names: expected one of {known}",
                words::excerpt(task)
            );
            return Err(Error::of(&args.runs[0], fault));
        }
    }
    Ok(Runs::Scores(all))
}

/// Reads one run. `first` contains the tasks of the first run; `None` if this is the first.
fn run(
    path: &Path,
    first: Option<&BTreeMap<String, Outcomes>>,
    args: &Args,
) -> Result<BTreeMap<String, Outcomes>, Error> {
    let mut tasks: BTreeMap<String, (Outcomes, PathBuf)> = BTreeMap::new();
    for file in files(path)? {
        let (task, outcomes) = Kind::of(&file, args)?.read(&file, args)?;
        if !args.tasks.is_empty() && !args.tasks.contains(&task) {
            continue;
        }
        if let Some((_, other)) = tasks.get(&task) {
            let fault = format!(
                "task `{}` also occurs in `{}`: keep one of the two files",
                words::excerpt(&task),
                other.display()
            );
            return Err(Error::of(&file, fault));
        }
        let metric = first.and_then(|tasks| only_or_named(tasks, &task)).map(|own| own.metric.as_str());
        let outcomes = outcomes(metric.or(of_task(&args.metric, &task)))?;
        tasks.insert(task, (outcomes, file));
    }
    if tasks.is_empty() {
        let asked =
            if args.tasks.is_empty() { String::new() } else { format!(" of task {}", args.tasks.join(", ")) };
        return Err(Error::of(path, format!("no log{asked}: {ALLOWED}")));
    }
    Ok(tasks.into_iter().map(|(task, (outcomes, _))| (task, outcomes)).collect())
}

/// Returns the task with this name. If the run has only one task and either side is unnamed, returns that task.
pub(crate) fn only_or_named<'a, T>(tasks: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    tasks.get(name).or_else(|| {
        let (only, outcomes) = tasks.iter().next().filter(|_| tasks.len() == 1)?;
        (only == UNNAMED || name == UNNAMED).then_some(outcomes)
    })
}

/// Returns the logs of a run: the file itself, or those in the folder and its direct subfolders.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !fs::metadata(path).map_err(Error::reading(path))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(Error::reading(path))? {
        let entry = entry.map_err(Error::reading(path))?.path();
        if entry.is_dir() {
            files.extend(files_of_folder(&entry)?);
        } else if is_log(&entry) {
            files.push(entry);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the logs in a subfolder: lm-evaluation-harness creates one per model.
fn files_of_folder(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::reading(folder))?;
    let paths = entries.map(|entry| Ok(entry.map_err(Error::reading(folder))?.path()));
    let paths: Vec<PathBuf> = paths.collect::<Result<_, Error>>()?;
    Ok(paths.into_iter().filter(|path| path.is_file() && is_log(path)).collect())
}

/// Returns true for the logs to read in folders; lm-evaluation-harness also puts `results_*.json` there.
fn is_log(path: &Path) -> bool {
    let name = name(path);
    match extension(path).as_str() {
        "jsonl" => name.starts_with("samples_"),
        "eval" => true,
        "json" => !name.starts_with("results_") && name != "logs.json",
        _ => false,
    }
}

pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn extension(path: &Path) -> String {
    path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    LmEval,
    InspectJson,
    InspectZip,
    Separated(u8),
    Columns(RowKind),
    JsonTable,
}

impl Kind {
    fn of(path: &Path, args: &Args) -> Result<Self, Error> {
        Ok(match extension(path).as_str() {
            "jsonl" if args.score.is_none() && lm_eval::is_log(path)? => Self::LmEval,
            "jsonl" => Self::JsonTable,
            "eval" => Self::InspectZip,
            "json" => Self::InspectJson,
            "csv" => Self::Separated(b','),
            "tsv" => Self::Separated(b'\t'),
            "parquet" => Self::Columns(RowKind::Parquet),
            "arrow" | "feather" => Self::Columns(RowKind::Arrow),
            _ => return Err(Error::of(path, ALLOWED)),
        })
    }

    /// Returns the task name, and a function that reads the outcomes for a metric or scorer.
    fn read<'a>(self, path: &'a Path, args: &'a Args) -> Result<(String, ReadOutcomes<'a>), Error> {
        let is_table = matches!(self, Self::Separated(_) | Self::Columns(_) | Self::JsonTable);
        if is_table && !(args.metric.is_empty() && args.filter.is_empty()) {
            let fault = "--metric and --filter apply to logs; for a table, --score names the column";
            return Err(Error::of(path, fault));
        }
        let unnamed = || UNNAMED.to_owned();
        Ok(match self {
            Self::LmEval => (
                lm_eval::task(path).unwrap_or_else(unnamed),
                Box::new(move |metric| lm_eval::read(path, metric, args)),
            ),
            Self::InspectJson => {
                let log = inspect::log(path)?;
                (log.task(), Box::new(move |metric| log.outcomes(path, metric, args)))
            }
            Self::InspectZip => {
                (inspect::task(path)?, Box::new(move |metric| inspect::read_zip(path, metric, args)))
            }
            Self::Separated(delimiter) => {
                (unnamed(), Box::new(move |_| table::read_separated(path, delimiter, args)))
            }
            Self::Columns(kind) => (unnamed(), Box::new(move |_| table::read_columns(path, kind, args))),
            Self::JsonTable => (unnamed(), Box::new(move |_| table::read_json(path, args))),
        })
    }
}

/// Reads the outcomes for a metric or scorer; `None` chooses the first in the file.
type ReadOutcomes<'a> = Box<dyn FnOnce(Option<&str>) -> Result<Outcomes, Error> + 'a>;
