//! Pairs the documents of all runs.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use stats::Segments;
use stats::means::{Mean, MeanMetric};

use crate::Error;
use crate::args::Args;
use crate::read::{Counted, Document, Outcomes, Runs, file_and_row, name, only_or_named};

/// A task, restricted to the documents that every run contains.
pub(crate) struct Task {
    /// Empty if the files name no task.
    pub name: String,
    /// Metric, or sacreBLEU's signature.
    pub metric: String,
    pub documents: usize,
    /// Documents left out because some run lacks them.
    pub missing: usize,
    /// Scores per run; a segment is a document or a cluster.
    pub runs: Vec<Segments>,
    pub is_clustered: bool,
    /// Number of consecutive segments in each text; empty if segments are independent.
    pub clusters: Vec<usize>,
    /// Number of consecutive segments that are resampled and swapped as one block; 1 if segments are independent.
    pub block: usize,
}

/// Pairs the documents of all runs, task by task.
///
/// # Errors
/// If runs differ in tasks, in more documents than allowed, or in prompts.
pub(crate) fn aligned(runs: Runs, args: &Args) -> Result<Vec<Task>, Error> {
    let runs = match runs {
        Runs::Counted(Counted { metric, runs, clusters, block }) => {
            let (name, documents) = (String::new(), runs[0].len());
            return Ok(vec![Task {
                name,
                metric,
                documents,
                missing: 0,
                runs,
                is_clustered: false,
                clusters,
                block,
            }]);
        }
        Runs::Scores(runs) => runs,
    };
    same_tasks(&runs, args)?;
    let task = |(name, first): (&String, &Outcomes)| {
        let found = runs[1..].iter().filter_map(|run| only_or_named(run, name));
        let all: Vec<&Outcomes> = [first].into_iter().chain(found).collect();
        Pairing { name, all: &all, args }.task()
    };
    runs[0].iter().map(task).collect()
}

/// Checks that all runs have the tasks of the first.
fn same_tasks(runs: &[BTreeMap<String, Outcomes>], args: &Args) -> Result<(), Error> {
    let first = &runs[0];
    for (run, path) in runs.iter().zip(&args.runs).skip(1) {
        let lacking = |one: &BTreeMap<String, Outcomes>, other: &BTreeMap<String, Outcomes>| {
            let names = one.keys().filter(|task| only_or_named(other, task).is_none());
            names.map(|name| words::excerpt(name)).collect::<Vec<_>>().join(", ")
        };
        for (path, tasks) in [(path, lacking(first, run)), (&args.runs[0], lacking(run, first))] {
            if !tasks.is_empty() {
                let fault =
                    format!("no task {tasks}, which another run has: select common tasks with --tasks");
                return Err(Error::of(path, fault));
            }
        }
    }
    Ok(())
}

/// One task in all runs.
struct Pairing<'a> {
    name: &'a str,
    all: &'a [&'a Outcomes],
    args: &'a Args,
}

impl<'a> Pairing<'a> {
    fn task(&self) -> Result<Task, Error> {
        let in_all = |document: &&Document| self.all.iter().all(|run| run.by_id(&document.id).is_some());
        let common: Vec<&'a Document> = self.all[0].documents.iter().filter(in_all).collect();
        let missing = self.missing(&common)?;
        self.check_contents(&common)?;
        let clusters = self.clusters(&common)?;
        let runs = self.all.iter().map(|run| {
            let scores = common.iter().filter_map(|document| run.by_id(&document.id)).map(Document::score);
            Segments::Means(sums(scores, clusters.as_deref()), MeanMetric::Score)
        });
        Ok(Task {
            name: self.name.to_owned(),
            metric: self.all[0].metric.clone(),
            documents: common.len(),
            missing,
            runs: runs.collect(),
            is_clustered: clusters.is_some(),
            clusters: Vec::new(),
            block: 1,
        })
    }

    fn fault(&self, fault: &str) -> Error {
        Error::Invalid(self.named(fault))
    }

    /// Puts the name of the task before a message.
    fn named(&self, message: &str) -> String {
        match self.name {
            "" => message.to_owned(),
            name => format!("task `{}`: {message}", words::excerpt(name)),
        }
    }

    /// Counts the documents that some run lacks.
    fn missing(&self, common: &[&Document]) -> Result<usize, Error> {
        let lacking = |document: &&Document| self.all.iter().any(|run| run.by_id(&document.id).is_none());
        let others = self.all.iter().flat_map(|run| run.documents.iter().filter(lacking));
        let others: BTreeMap<&str, ()> = others.map(|document| (document.id.as_str(), ())).collect();
        let Some((first, ())) = others.first_key_value() else { return Ok(0) };
        if common.is_empty() {
            return Err(
                self.fault("no document is in all runs: they have different documents or different ids")
            );
        }
        let (missing, rest) = (words::count(others.len(), "document"), common.len());
        if others.len() > self.args.allow_missing {
            let which = words::excerpt(first);
            let number = others.len();
            return Err(self.fault(&format!(
                "{missing} not in all runs, such as `{which}`: --allow-missing {number} compares the other {rest}"
            )));
        }
        words::warn(&self.named(&format!("{missing} not in all runs, left out")));
        Ok(others.len())
    }

    /// Checks that filters, document contents and prompts agree between runs.
    fn check_contents(&self, common: &[&Document]) -> Result<(), Error> {
        let differing = |of: fn(&Document) -> Option<u64>| {
            let differs = |own: &Document, run: &Outcomes| {
                let other = run.by_id(&own.id).and_then(of);
                of(own).zip(other).is_some_and(|(own, other)| own != other)
            };
            let found = common.iter().filter(|own| self.all[1..].iter().any(|run| differs(own, run)));
            let found: Vec<&str> = found.map(|own| own.id.as_str()).collect();
            let all = common.len();
            found.first().map(|first| {
                format!("{} of {all} documents, such as `{}`", found.len(), words::excerpt(first))
            })
        };
        let filters = self.all[0].filters();
        if let Some(other) = self.all[1..].iter().map(|run| run.filters()).find(|other| *other != filters) {
            let listed =
                |all: &BTreeSet<&str>| words::excerpt(&all.iter().copied().collect::<Vec<_>>().join(", "));
            let (own, other) = (listed(&filters), listed(&other));
            return Err(self.fault(&format!(
                "the runs have different filters, {own} and {other}: select one with --filter"
            )));
        }
        if let Some(found) = differing(|document| document.content) {
            return Err(self.fault(&format!("documents with the same id differ (doc_hash differs): {found}")));
        }
        match differing(|document| document.prompt) {
            Some(found) if !self.args.other_prompts => {
                let advice = "--other-prompts compares the runs anyway";
                Err(self.fault(&format!("the prompts differ in {found}: {advice}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the cluster number of each document; `None` if documents are independent.
    fn clusters(&self, common: &[&'a Document]) -> Result<Option<Vec<usize>>, Error> {
        if self.args.cluster.is_none() {
            return Ok(None);
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut number = |own: &&'a Document| {
            let differs =
                |run: &&Outcomes| run.by_id(&own.id).is_none_or(|other| other.cluster != own.cluster);
            if self.all.iter().any(differs) {
                return Err(self.fault(&format!(
                    "document `{}` is in different clusters in different runs",
                    words::excerpt(&own.id)
                )));
            }
            let next = numbers.len();
            Ok(*numbers.entry(own.cluster.as_deref().unwrap_or_default()).or_insert(next))
        };
        common.iter().map(&mut number).collect::<Result<_, _>>().map(Some)
    }
}

/// Returns one mean per document, or one per cluster.
fn sums(scores: impl Iterator<Item = f64>, clusters: Option<&[usize]>) -> Vec<Mean> {
    let Some(clusters) = clusters else { return scores.map(Mean::of).collect() };
    let count = clusters.iter().max().map_or(0, |last| last + 1);
    let mut sums = vec![Mean { sum: 0.0, count: 0.0 }; count];
    for (score, &cluster) in scores.zip(clusters) {
        sums[cluster].sum += score;
        sums[cluster].count += 1.0;
    }
    sums
}

/// Returns the file names of the runs, or full paths if two file names are equal.
pub(crate) fn run_names(paths: &[PathBuf]) -> Vec<String> {
    // rows of result files may contain slashes
    let shown = |path: &PathBuf| match file_and_row(path) {
        (file, "") => name(file),
        (file, row) => format!("{}#{row}", name(file)),
    };
    let names: Vec<String> = paths.iter().map(shown).collect();
    let is_unique = |(place, name): (usize, &String)| !name.is_empty() && !names[..place].contains(name);
    match names.iter().enumerate().all(is_unique) {
        true => names,
        false => paths.iter().map(|path| path.display().to_string()).collect(),
    }
}
