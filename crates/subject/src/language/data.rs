//! The splits of a language model.
use std::path::{Path, PathBuf};

use corpus::repeats::Repeats;
use corpus::splits::BadRows;
use corpus::splits::language::{Grammar, Texts};

use super::spec::LanguageData;
use crate::error::Error;
use crate::spec::{check_fetched, no_format};

/// Reads one of the splits; `folder` is where data sets are.
///
/// # Errors
/// If a file is missing, torn, or not as described.
pub(super) fn read_split(
    spec: &LanguageData,
    folder: &Path,
    split: &str,
    bad: &mut BadRows,
) -> Result<Texts, Error> {
    if let Some(grammar) = spec.grammar {
        return grammar.read(split).ok_or_else(|| Error::no_such_split(split, &Grammar::SPLITS));
    }
    if let Some(repeats) = spec.repeats {
        let texts = repeats.read(split).map(Texts::Documents);
        return texts.ok_or_else(|| Error::no_such_split(split, &Repeats::SPLITS));
    }
    let described = &spec.splits[split];
    check_fetched(&files(spec, folder, split), described.fetch.as_ref().or(spec.fetch.as_ref()))?;
    let read = described.read(folder, bad).ok_or_else(|| no_format(split))?;
    Ok(read?)
}

/// The files of a split; none if it is made up, or there is no such split.
pub(super) fn files(spec: &LanguageData, folder: &Path, split: &str) -> Vec<PathBuf> {
    let split = spec.splits.get(split).filter(|_| spec.grammar.is_none());
    split.map_or(Vec::new(), |split| split.paths(folder))
}
