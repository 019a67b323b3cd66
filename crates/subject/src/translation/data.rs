//! The splits of a subject.
use std::path::Path;

use corpus::grammar::{Sample, demo_splits};
use corpus::parallel::ParallelText;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::spec::{DataSpec, FilePair, GrammarSpec};

/// Reads one split of a subject; `folder` is where data sets are.
///
/// # Errors
/// If there is no such split, or its files are missing, torn, of different length or empty.
pub(super) fn read_split(spec: &DataSpec, folder: &Path, split: &str) -> Result<ParallelText, Error> {
    check_split(spec, split)?;
    let text = match spec.grammar {
        Some(grammar) => generate(grammar, split)?,
        None => read_files(spec, folder, split)?,
    };
    if text.is_empty() { Err(Error::EmptySplit { split: split.to_owned() }) } else { Ok(text) }
}

/// Refuses a split that the subject does not have.
///
/// # Errors
/// If there is none of that name; the message lists those that there are.
pub(super) fn check_split(spec: &DataSpec, split: &str) -> Result<(), Error> {
    let known: Vec<String> = match spec.grammar {
        Some(_) => ["train", "dev", "test", "shifted"].map(str::to_owned).to_vec(),
        None => spec.splits.keys().cloned().collect(),
    };
    if known.iter().any(|name| name == split) {
        return Ok(());
    }
    Err(Error::NoSuchSplit { split: split.to_owned(), known })
}

fn generate(grammar: GrammarSpec, split: &str) -> Result<ParallelText, Error> {
    let splits = demo_splits(grammar.sizes(), grammar.seed);
    let samples: Vec<Sample> = match split {
        "train" => splits.train,
        "dev" => splits.dev,
        "test" => splits.test,
        "shifted" => splits.shifted,
        _ => Vec::new(), // `check_split` refused it
    };
    let (source, target) = samples.into_iter().map(|sample| (sample.source, sample.target)).unzip();
    Ok(ParallelText { source, target })
}

fn read_files(spec: &DataSpec, folder: &Path, split: &str) -> Result<ParallelText, Error> {
    let FilePair { source, target } = &spec.splits[split];
    let paths = [folder.join(source), folder.join(target)];
    if let (Some(fetch), Some(missing)) = (&spec.fetch, paths.iter().find(|path| !path.exists())) {
        return Err(Error::NotFetched { path: missing.clone(), fetch: fetch.clone() });
    }
    Ok(ParallelText::read(&paths[0], &paths[1])?)
}

/// SHA-256 of the sentences of a split, in lower-case hexadecimal; how the files are compressed does not matter.
pub(super) fn sha256(text: &ParallelText) -> String {
    let mut hasher = Sha256::new();
    for (source, target) in text.source.iter().zip(&text.target) {
        for part in [source, "\t", target, "\n"] {
            hasher.update(part);
        }
    }
    format!("{:x}", hasher.finalize())
}
