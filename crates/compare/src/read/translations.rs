//! Translations, one per line, and their references.
use std::io::{BufRead, BufReader};
use std::path::Path;

use stats::bleu::Bleu;
use stats::text::TextMetric;
use stats::{Metric, Segments};

use super::UNNAMED;
use crate::Error;
use crate::args::{Args, of_task};

/// Segments of all runs, in the same order, with their statistics for the metric.
pub(crate) struct Counted {
    pub metric: String,
    pub runs: Vec<Segments>,
    /// Number of consecutive segments in each text; empty if segments are independent.
    pub clusters: Vec<usize>,
    /// Number of consecutive segments that are resampled and swapped as one block; 1 if segments are independent.
    pub block: usize,
}

impl Counted {
    pub(super) fn read(args: &Args) -> Result<Self, Error> {
        let metric = metric(args)?;
        let references: Vec<Vec<String>> =
            args.reference.iter().map(|path| lines(path)).collect::<Result<_, _>>()?;
        let lengths = references.iter().map(Vec::len);
        for (path, length) in args.reference.iter().zip(lengths) {
            same_length(path, length, &args.reference[0], references[0].len())?;
        }
        let counted = |path: &std::path::PathBuf| {
            let own = lines(path)?;
            same_length(path, own.len(), &args.reference[0], references[0].len())?;
            Ok(counted(&own, &references, metric))
        };
        let runs = args.runs.iter().map(counted).collect::<Result<_, Error>>()?;
        let signature = match metric {
            Metric::Texts(own) => own.signature(),
            _ => Bleu::new().signature(),
        };
        let several = format!("nrefs:{}|", references.len());
        let metric = signature.replace("nrefs:1|", &several);
        Ok(Self { metric, runs, clusters: Vec::new(), block: 1 })
    }
}

fn metric(args: &Args) -> Result<Metric, Error> {
    if let Some(named) = args.metric.iter().find(|name| name.contains('=')) {
        let named = words::excerpt(named);
        return Err(Error::Invalid(format!(
            "--metric {named}: translations have no tasks, so name the metric alone"
        )));
    }
    match of_task(&args.metric, UNNAMED).unwrap_or("bleu") {
        "bleu" => Ok(Metric::Bleu),
        "chrf" => Ok(Metric::Texts(TextMetric::Chrf)),
        "ter" => Ok(Metric::Texts(TextMetric::Ter)),
        other => {
            let shown = words::excerpt(other);
            Err(Error::Invalid(format!(
                "unknown metric `{shown}` of translations: expected bleu, chrf or ter"
            )))
        }
    }
}

fn lines(path: &Path) -> Result<Vec<String>, Error> {
    let file = durable::open_regular(path).map_err(Error::reading(path))?;
    let lines =
        BufReader::new(file).lines().collect::<std::io::Result<Vec<_>>>().map_err(Error::reading(path))?;
    if lines.is_empty() { Err(Error::of(path, "the file is empty")) } else { Ok(lines) }
}

fn same_length(path: &Path, lines: usize, other: &Path, expected: usize) -> Result<(), Error> {
    if lines == expected {
        return Ok(());
    }
    let [own, wanted] = [lines, expected].map(|lines| words::count(lines, "line"));
    Err(Error::of(
        path,
        format!("{own}, but `{}` has {wanted}: a translation needs one line per segment", other.display()),
    ))
}

/// Counts the statistics of each segment. `references`: `[reference, segment]`.
fn counted(own: &[String], references: &[Vec<String>], metric: Metric) -> Segments {
    let of = |place: usize| references.iter().map(|all| all[place].as_str()).collect::<Vec<_>>();
    let both = own.iter().enumerate().map(|(place, text)| (text.as_str(), of(place)));
    match metric {
        Metric::Texts(metric) => Segments::Texts(
            both.map(|(text, references)| metric.segment_of(text, &references)).collect(),
            metric,
        ),
        _ => {
            let bleu = Bleu::new();
            Segments::Bleu(both.map(|(text, references)| bleu.segment_of(text, &references)).collect())
        }
    }
}
