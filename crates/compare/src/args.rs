//! Command-line arguments.
use std::path::PathBuf;

use clap::Parser;
use records::verdicts::MARGIN_PERCENT;
use stats::swaps::SWAPS;

/// Compares runs of an evaluation document by document: is B worse than A, no worse, or undecided?
///
/// A run is a log of lm-evaluation-harness (samples_*.jsonl, or a folder of them), a log of Inspect (.eval or .json, or a folder), a table
/// (.csv, .tsv, .jsonl, .parquet) with one score per document, a plain translation with --reference, or a result file of headcount:
/// FILE.csv is the full model, FILE.csv#ROW one of its rows, such as ablate-one.csv#self:2:4. No model is run.
#[derive(Debug, Parser)]
#[command(name = "compare", version)]
pub(crate) struct Args {
    /// Two or more runs; each is compared with the first
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    pub runs: Vec<PathBuf>,

    /// Metric of lm-evaluation-harness, such as acc or exact_match, or scorer of Inspect [default: the first]; for translations bleu, chrf
    /// or ter [default: bleu]. Comma-separated; TASK=NAME applies to one task
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub metric: Vec<String>,

    /// Filter of lm-evaluation-harness, such as strict-match [default: mean over all]. Comma-separated; TASK=NAME applies to one task
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub filter: Vec<String>,

    /// Tasks to compare, comma-separated [default: all]
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    pub tasks: Vec<String>,

    /// Table column with the name of each document; rows with equal names are averaged [default: id]
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,

    /// Table column with the score of each document [default: score]
    #[arg(long, value_name = "COLUMN", conflicts_with = "metric")]
    pub score: Option<String>,

    /// Column or key, such as doc.subject or metadata.page, that groups documents into clusters, which are resampled as a whole
    #[arg(long, value_name = "COLUMN")]
    pub cluster: Option<String>,

    /// Reference translations, one per line; repeat the option for several references
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_NAMED_DOCUMENTS)]
    pub reference: Vec<PathBuf>,

    /// Lower scores are better
    #[arg(long)]
    pub lower_is_better: bool,

    /// Documents per task that some runs may lack; they are left out
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub allow_missing: usize,

    /// Compare runs even if their prompts differ
    #[arg(long)]
    pub other_prompts: bool,

    /// Margin: the largest acceptable loss, in percent of the first run's score
    #[arg(long, value_name = "PERCENT", default_value_t = MARGIN_PERCENT, value_parser = significance::margin)]
    pub margin: f64,

    /// Margin in the unit of the score, instead of --margin
    #[arg(long, value_name = "LOSS", conflicts_with = "margin", value_parser = positive)]
    pub margin_absolute: Option<f64>,

    /// Swaps of documents between runs, at most 99,999; intervals use the same number of bootstrap resamples, but at most 10,000
    #[arg(long, value_name = "N", default_value_t = SWAPS, value_parser = resamples)]
    pub resamples: usize,

    /// Seed of the swaps and resamples
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Write an HTML page with a forest plot of the tasks
    #[arg(long, value_name = "FILE.html")]
    pub html: Option<PathBuf>,

    /// Exit with 0 if every run is no worse than the first, 3 if one is worse, 4 if undecided; with several tasks, their mean
    /// decides, or the worst task if they have no common unit
    #[arg(long)]
    pub gate: bool,
}

/// Options that do not apply to translations, whose lines have no names.
const OF_NAMED_DOCUMENTS: [&str; 8] =
    ["filter", "tasks", "id", "score", "cluster", "lower_is_better", "allow_missing", "other_prompts"];

impl Args {
    /// Returns the column with the name of each document.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("id")
    }

    /// Returns a given option that does not apply to result files of headcount: their metric is stored, and their segments have no names.
    pub fn unfit_for_results(&self) -> Option<&'static str> {
        let options = [
            ("--metric", !self.metric.is_empty()),
            ("--filter", !self.filter.is_empty()),
            ("--tasks", !self.tasks.is_empty()),
            ("--id", self.id.is_some()),
            ("--cluster", self.cluster.is_some()),
            ("--lower-is-better", self.lower_is_better),
            ("--allow-missing", self.allow_missing > 0),
            ("--other-prompts", self.other_prompts),
        ];
        options.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// Returns the `NAME` of `TASK=NAME` for this task, otherwise the first name that applies to all tasks.
pub(crate) fn of_task<'a>(names: &'a [String], task: &str) -> Option<&'a str> {
    let own = names.iter().find_map(|name| name.split_once('=').filter(|(named, _)| *named == task));
    own.map(|(_, name)| name).or_else(|| names.iter().map(String::as_str).find(|name| !name.contains('=')))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "must be a number above 0".to_owned())
}

fn resamples(text: &str) -> Result<usize, String> {
    let resamples = text.parse().ok().filter(|resamples| (39..=SWAPS).contains(resamples));
    resamples.ok_or_else(|| format!("must be a whole number from 39 to {SWAPS}"))
}
