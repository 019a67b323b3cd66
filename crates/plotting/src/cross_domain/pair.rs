//! Which files compare two splits, and the sweeps that belong to them.
use std::path::Path;

use records::{CorrelationRow, Identity};

use super::EXPERIMENT;
use crate::Error;
use crate::left_out::LeftOut;
use crate::result_file::{ResultFile, Source, is_plain_name};
use crate::sweep::{self, Sweep};

/// A results file that compares two splits of a subject.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The file.
    pub file: ResultFile,
    /// The split of the x axis.
    pub first: String,
    /// The split of the y axis.
    pub second: String,
}

impl Pair {
    /// All comparisons that the source has, in the order of their names; there may be none.
    ///
    /// # Errors
    /// If the folder cannot be read, or a signature does not name two splits.
    pub fn all(source: &Source) -> Result<Vec<Self>, Error> {
        let files = match source {
            Source::File { .. } => vec![source.one(EXPERIMENT)?],
            Source::Subject { .. } => files(source)?,
        };
        files.into_iter().map(Self::read).collect()
    }

    /// Those that can be read; the others are [left out](LeftOut).
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn present(source: &Source, left_out: &mut LeftOut) -> Result<Vec<Self>, Error> {
        let mut present = Vec::new();
        for file in left_out.keep_if_there(files(source))?.unwrap_or_default() {
            present.extend(left_out.keep(Self::read(file))?);
        }
        Ok(present)
    }

    /// Those with `against` as their second split, or all; each over most segments where there are several.
    ///
    /// # Errors
    /// If there are none.
    pub fn select(all: &[Self], source: &Source, against: Option<&str>) -> Result<Vec<Self>, Error> {
        let subject = match source {
            Source::Subject { subject, .. } => subject.clone(),
            Source::File { .. } => String::new(),
        };
        let folder = source.results().join(&subject);
        if all.is_empty() {
            return Err(Error::NoComparison { folder, subject });
        }
        let is_asked = |pair: &&Self| against.is_none_or(|against| pair.second == against);
        let selected: Vec<Self> = Self::largest(all).into_iter().filter(is_asked).cloned().collect();
        match against {
            Some(against) if selected.is_empty() => {
                let present: Vec<_> = all.iter().map(|pair| pair.second.as_str()).collect();
                let (against, present) = (against.to_owned(), present.join(", "));
                Err(Error::UnknownSplit { against, folder, present })
            }
            _ => Ok(selected),
        }
    }

    /// Of several comparisons of the same splits, that over most segments.
    pub fn largest(all: &[Self]) -> Vec<&Self> {
        let segments = |pair: &Self| pair.file.origin.limit().unwrap_or(usize::MAX);
        let is_largest = |pair: &&Self| {
            let mut same =
                all.iter().filter(|other| (&other.first, &other.second) == (&pair.first, &pair.second));
            same.all(|other| segments(other) <= segments(pair))
        };
        all.iter().filter(is_largest).collect()
    }

    fn read(file: ResultFile) -> Result<Self, Error> {
        let Some((first, second)) = file.origin.identity().and_then(splits) else {
            // Made hours before there is anything to sign.
            let is_empty = file.rows::<CorrelationRow>()?.is_empty();
            let (path, subject) = (file.path, file.subject);
            return Err(if is_empty { Error::Empty { path } } else { Error::NoSplits { path, subject } });
        };
        let file = file.with_standard(&format!("{EXPERIMENT}-{first}-{second}"));
        Ok(Self { file, first, second })
    }

    /// File name of its figure without extension: after the second split, and after both if another of `all` has the
    /// same second one.
    pub fn file_stem(&self, all: &[Self]) -> String {
        let is_unique = all.iter().all(|pair| pair.second != self.second || pair.first == self.first);
        self.file.stem(&match is_unique {
            true => format!("figure2-{}", self.second),
            false => format!("figure2-{}-{}", self.first, self.second),
        })
    }

    /// Reads the sweep on a split: beside the comparison or, where that is elsewhere, among the results of its subject.
    pub(super) fn sweep(&self, results: &Path, split: &str) -> Result<Sweep, Error> {
        let limit = self.file.origin.limit().map_or(String::new(), |limit| format!("-first-{limit}"));
        let stems = [sweep::EXPERIMENT.to_owned() + &limit, format!("{}-{split}{limit}", sweep::EXPERIMENT)];
        let beside = self.file.path.with_file_name("");
        let elsewhere = is_plain_name(&self.file.subject).then(|| results.join(&self.file.subject));
        for folder in [Some(beside.clone()), elsewhere].into_iter().flatten() {
            for (is_named, stem) in [false, true].into_iter().zip(&stems) {
                let path = folder.join(format!("{stem}.csv"));
                if !path.exists() {
                    continue;
                }
                let file = ResultFile::of(path, &self.file.subject, sweep::EXPERIMENT)?;
                if is_named || file.origin.split() == Some(split) {
                    return Sweep::read(file, sweep::EXPERIMENT);
                }
            }
        }
        let path = beside.join(format!("{}.csv", stems[1]));
        Err(Error::NoResults { path, experiment: EXPERIMENT, subject: self.file.subject.clone() })
    }
}

/// All comparisons.
fn files(source: &Source) -> Result<Vec<ResultFile>, Error> {
    source.all(EXPERIMENT, EXPERIMENT)
}

/// First and second split of a comparison; none that could name a folder.
fn splits(identity: &Identity) -> Option<(String, String)> {
    let against = identity.arguments.get("against")?.as_str()?;
    let are_named = is_plain_name(&identity.split) && is_plain_name(against);
    are_named.then(|| (identity.split.clone(), against.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cross_domain::tests::pair;

    #[test]
    fn figures_with_one_second_split_have_names_of_their_own() {
        let other = Pair { first: "dev".to_owned(), ..pair() };
        assert_eq!(pair().file_stem(&[pair()]), "figure2-shifted");
        assert_eq!(pair().file_stem(&[pair(), other.clone()]), "figure2-test-shifted");
        assert_eq!(other.file_stem(&[pair(), other.clone()]), "figure2-dev-shifted");
    }
}
