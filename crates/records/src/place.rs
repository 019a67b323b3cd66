//! The files of one result: where they are, and how they get their names.

use std::path::{Path, PathBuf};

use durable::Lock;

use crate::file::{read_if_there, remove};
use crate::segments::Blocks;
use crate::shard::shards_of;
use crate::signature::{Complete, Identity, Signature, sha256};
use crate::{Error, file};

/// Fault of a file that is not the one that its signature was completed with.
pub(crate) const EDITED: &str =
    "was edited, or mixed with another file, since it was complete: --again computes it anew";

/// A result file and what lies beside it, complete or on the way there.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) csv: PathBuf,
    pub(crate) signature: PathBuf,
    pub(crate) segments: PathBuf,
}

impl Place {
    pub(crate) fn of(csv: &Path) -> Self {
        Self {
            csv: csv.to_owned(),
            signature: Signature::path_beside(csv),
            segments: Blocks::path_beside(csv),
        }
    }

    /// Where the successor of a result file grows: `ablate-one.partial.csv`.
    pub(crate) fn partial(csv: &Path) -> Self {
        Self::of(&csv.with_extension("partial.csv"))
    }

    /// Replaces the statistics of segments.
    pub(crate) fn write_segments(&self, blocks: &Blocks) -> Result<Option<String>, Error> {
        if blocks.is_empty() {
            return remove(&self.segments).map(|()| None);
        }
        let bytes = blocks.bytes();
        durable::write(&self.segments, &bytes)?;
        Ok(Some(sha256(&bytes)))
    }

    /// Gives these complete files their names. The signature comes last: where it is, all is.
    pub(crate) fn publish(&self, to: &Self, complete: &Complete) -> Result<(), Error> {
        if complete.segments_sha256.is_none() {
            remove(&to.segments)?;
        }
        let files = [(&self.segments, &to.segments), (&self.csv, &to.csv), (&self.signature, &to.signature)];
        for (from, to) in files.into_iter().filter(|(from, _)| from.exists()) {
            durable::publish_file(from, to)?;
        }
        Ok(())
    }

    /// Goes on with publishing where a killed process was.
    fn finish_publishing(&self, to: &Self) -> Result<(), Error> {
        let signature = Signature::read(&self.signature)?;
        let Some(complete) = signature.and_then(|signature| signature.complete) else { return Ok(()) };
        if !holds(&self.csv, &complete.sha256)? {
            if !holds(&to.csv, &complete.sha256)? {
                return Ok(()); // its rows were not all written
            }
            remove(&self.csv)?;
        }
        self.publish(to, &complete)
    }

    /// Removes all files, the rows first: without them the others are nothing.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        [&self.csv, &self.signature, &self.segments].into_iter().try_for_each(|path| remove(path))
    }

    /// Refuses rows or statistics that are not those that the signature was completed with.
    ///
    /// - `csv`: the content of the CSV file
    pub(crate) fn check_complete(&self, signature: &Signature, csv: &[u8]) -> Result<(), Error> {
        let Some(complete) = &signature.complete else { return Ok(()) };
        if sha256(csv) != complete.sha256 {
            return Err(Error::of(&self.csv, EDITED));
        }
        match &complete.segments_sha256 {
            Some(expected) if !holds(&self.segments, expected)? => Err(Error::of(&self.segments, EDITED)),
            _ => Ok(()),
        }
    }
}

/// Returns true if there is a file with this checksum.
pub(crate) fn holds(path: &Path, expected: &str) -> Result<bool, Error> {
    Ok(read_if_there(path)?.is_some_and(|bytes| sha256(&bytes) == expected))
}

/// The files of a result that no other process writes as long as this lives.
#[derive(Debug)]
pub struct Held {
    pub(crate) place: Place,
    pub(crate) partial: Place,
    _lock: Lock,
}

impl Held {
    /// Takes hold of the result file `csv`, which need not be there. What a killed process was publishing is there then.
    ///
    /// # Errors
    /// [`Error::InUse`] if a run is writing it, or if the name is none of results, or a file cannot be read or written.
    pub fn take(csv: &Path) -> Result<Self, Error> {
        let name = csv.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".csv") || name.ends_with(".partial.csv") || csv.is_dir() {
            let fault =
                "cannot hold results: it must be a file whose name ends in `.csv`, and not in `.partial.csv`";
            return Err(Error::of(csv, fault));
        }
        let lock = Lock::take(csv)?.ok_or_else(|| Error::InUse { path: csv.to_owned() })?;
        let (place, partial) = (Place::of(csv), Place::partial(csv));
        partial.finish_publishing(&place)?;
        Ok(Self { place, partial, _lock: lock })
    }

    /// Removes all files of the result, finished or not.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        [&self.place, &self.partial].into_iter().try_for_each(Place::remove)
    }
}

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The CSV file.
    pub path: PathBuf,
    /// The results in its place, if it is not the one that was asked for.
    pub taken: Option<Taken>,
}

/// Results of another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Their CSV file.
    pub path: PathBuf,
    /// Differences of the other run.
    pub differences: String,
}

/// Where the results of a run go: to `path`, or beside it to a [name of their own](Identity::own_path) where results of
/// another run are, complete or not, or its shards.
///
/// # Errors
/// If a signature that is there cannot be read, or the folder cannot.
pub fn place_of(path: &Path, identity: &Identity) -> Result<Destination, Error> {
    let shards = shards_of(path)?.into_iter().map(|shard| shard.path(path));
    for csv in [path.to_owned()].into_iter().chain(shards) {
        for place in [Place::of(&csv), Place::partial(&csv)] {
            let Some(stored) = Signature::read(&place.signature)?.filter(|_| place.csv.exists()) else {
                continue;
            };
            let differences = identity.differences(&stored.identity);
            if differences.is_empty() {
                return Ok(Destination { path: path.to_owned(), taken: None });
            }
            let taken = Taken { path: place.csv, differences: differences.join("; ") };
            return Ok(Destination { path: identity.own_path(path), taken: Some(taken) });
        }
    }
    Ok(Destination { path: path.to_owned(), taken: None })
}

/// The file, if there is one that is not empty.
pub(crate) fn bytes(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    Ok(file::read_if_there(path)?.filter(|bytes| !bytes.is_empty()))
}
