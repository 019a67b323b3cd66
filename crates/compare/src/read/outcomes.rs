//! Scores of the documents of one task in one run.
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use crate::Error;

/// Documents with their scores, in file order.
#[derive(Debug)]
pub(crate) struct Outcomes {
    pub metric: String,
    pub documents: Vec<Document>,
    places: HashMap<String, usize>,
    /// Named samples read so far, each with the index of its document.
    repeats: HashSet<(usize, Repeat)>,
}

/// Name of one of several samples of a document.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Repeat {
    /// Epoch of Inspect.
    Epoch(u64),
    /// Filter of lm-evaluation-harness; empty if the log does not name it.
    Filter(String),
}

impl Outcomes {
    pub(crate) fn filters(&self) -> BTreeSet<&str> {
        let filters = self.repeats.iter().filter_map(|(_, repeat)| match repeat {
            Repeat::Epoch(_) => None,
            Repeat::Filter(filter) => Some(filter.as_str()),
        });
        filters.collect()
    }
}

/// A document with its score, averaged over samples.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub id: String,
    sum: f64,
    samples: u32,
    /// Checksum of the document's content; `None` if the file has none.
    pub content: Option<u64>,
    /// Checksum of the prompt; `None` if the file has none.
    pub prompt: Option<u64>,
    /// Cluster; `None` without `--cluster`.
    pub cluster: Option<String>,
}

/// One scored answer.
pub(crate) struct Sample {
    pub id: String,
    /// `None` if samples are unnamed.
    pub repeat: Option<Repeat>,
    pub score: f64,
    pub content: Option<u64>,
    pub prompt: Option<u64>,
    pub cluster: Option<String>,
}

impl Document {
    pub(crate) fn score(&self) -> f64 {
        self.sum / f64::from(self.samples)
    }
}

impl Outcomes {
    pub(crate) fn new(metric: impl Into<String>) -> Self {
        let (places, repeats) = (HashMap::new(), HashSet::new());
        Self { metric: metric.into(), documents: Vec::new(), places, repeats }
    }

    /// Adds a sample to its document. Fails if the score is not finite, the sample is a duplicate, or the document's clusters disagree.
    /// Also fails if the name or the cluster is empty, since all documents with an empty one would count as one.
    pub(crate) fn add(&mut self, sample: Sample) -> Result<(), String> {
        let shown = words::excerpt(&sample.id);
        if !sample.score.is_finite() {
            return Err(format!("the score of document `{shown}` is {}, not a finite number", sample.score));
        }
        if sample.id.is_empty() {
            return Err("a document has an empty name".to_owned());
        }
        if sample.cluster.as_deref() == Some("") {
            return Err(format!(
                "document `{shown}` has an empty cluster: give each document that shares none a cluster of its own"
            ));
        }
        let place = *self.places.entry(sample.id.clone()).or_insert(self.documents.len());
        if let Some(repeat) = sample.repeat {
            let named = match &repeat {
                Repeat::Epoch(epoch) => format!(" in epoch {epoch}"),
                Repeat::Filter(filter) if filter.is_empty() => String::new(),
                Repeat::Filter(filter) => format!(" with filter `{}`", words::excerpt(filter)),
            };
            if !self.repeats.insert((place, repeat)) {
                return Err(format!("document `{shown}` occurs twice{named}: keep one of the two"));
            }
        }
        match self.documents.get_mut(place) {
            Some(document) if document.cluster != sample.cluster => {
                Err(format!("document `{shown}` is in two clusters"))
            }
            Some(document) => {
                document.sum += sample.score;
                document.samples += 1;
                Ok(())
            }
            None => {
                let Sample { id, score: sum, content, prompt, cluster, .. } = sample;
                self.documents.push(Document { id, sum, samples: 1, content, prompt, cluster });
                Ok(())
            }
        }
    }

    /// Refuses a file without scored documents. Warns if a document has several `unnamed` samples, which may be an accident.
    pub(crate) fn checked(self, path: &Path, unnamed: bool) -> Result<Self, Error> {
        if self.documents.is_empty() {
            return Err(Error::of(path, "no document has a score"));
        }
        let several = self.documents.iter().filter(|document| document.samples > 1).count();
        if unnamed && several > 0 {
            let count = words::count(several, "document");
            words::warn(&format!("`{}`: {count} with several rows, which are averaged", path.display()));
        }
        Ok(self)
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<&Document> {
        self.places.get(id).map(|&place| &self.documents[place])
    }
}

/// Returns a checksum that is the same in every run of the program.
pub(crate) fn checksum(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
