//! The files of one result: their paths, and how they are published.

use std::path::{Path, PathBuf};

use durable::Lock;

use crate::file::{read_if_there, remove};
use crate::segments::Blocks;
use crate::shard::shards_of;
use crate::signature::{Complete, Identity, Signature, sha256};
use crate::table::{header, line};
use crate::{Error, Row, Stored, file};

/// Paths of a result file, its signature and its statistics, complete or growing.
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

    /// Returns the files that grow until they replace the result: `ablate-one.partial.csv`.
    pub(crate) fn partial(csv: &Path) -> Self {
        Self::of(&csv.with_extension("partial.csv"))
    }

    /// Replaces the statistics of segments and returns their checksum.
    pub(crate) fn write_segments(&self, blocks: &Blocks) -> Result<Option<String>, Error> {
        if blocks.is_empty() {
            return remove(&self.segments).map(|()| None);
        }
        let bytes = blocks.bytes();
        file::write(&self.segments, &bytes)?;
        Ok(Some(sha256(&bytes)))
    }

    /// Gives these complete files their final names. The signature comes last: once it exists, all files do.
    pub(crate) fn publish(&self, to: &Self, complete: &Complete) -> Result<(), Error> {
        if complete.segments_sha256.is_none() {
            remove(&to.segments)?;
        }
        let files = [(&self.segments, &to.segments), (&self.csv, &to.csv), (&self.signature, &to.signature)];
        for (from, to) in files.into_iter().filter(|(from, _)| from.exists()) {
            file::publish(from, to)?;
        }
        Ok(())
    }

    /// Finishes the publishing that a killed process began.
    fn finish_publishing(&self, to: &Self) -> Result<(), Error> {
        let signature = Signature::read(&self.signature)?;
        let Some(complete) = signature.and_then(|signature| signature.complete) else { return Ok(()) };
        if !holds(&self.csv, &complete.sha256)? {
            if !holds(&to.csv, &complete.sha256)? {
                return Ok(()); // not all of its rows were written
            }
            remove(&self.csv)?;
        }
        self.publish(to, &complete)
    }

    /// Removes all files, rows first: without rows the others are meaningless.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        [&self.csv, &self.signature, &self.segments].into_iter().try_for_each(|path| remove(path))
    }
}

pub(crate) fn holds(path: &Path, expected: &str) -> Result<bool, Error> {
    Ok(read_if_there(path)?.is_some_and(|bytes| sha256(&bytes) == expected))
}

/// The files of a result, locked against other writers while this lives.
#[derive(Debug)]
pub struct Held {
    pub(crate) place: Place,
    pub(crate) partial: Place,
    _lock: Lock,
}

impl Held {
    /// Locks the result file `csv`, which need not exist, and finishes the publishing that a killed process began.
    ///
    /// # Errors
    /// [`Error::InUse`] if another run is writing it; or if the name is not a result's, or a file cannot be read or written.
    pub fn take(csv: &Path) -> Result<Self, Error> {
        let name = csv.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".csv") || name.ends_with(".partial.csv") || csv.is_dir() {
            let fault =
                "cannot hold results: expected a file whose name ends in `.csv` but not in `.partial.csv`";
            return Err(Error::of(csv, fault));
        }
        let lock = Lock::take(csv)?.ok_or_else(|| Error::InUse { path: csv.to_owned() })?;
        let (place, partial) = (Place::of(csv), Place::partial(csv));
        partial.finish_publishing(&place)?;
        Ok(Self { place, partial, _lock: lock })
    }

    /// Makes these rows the complete results, in place of unfinished ones.
    ///
    /// # Errors
    /// If a file cannot be written; [`Held::take`] then finishes what was written.
    pub fn publish<R: Row>(
        &self,
        rows: &[R],
        blocks: &Blocks,
        mut signature: Signature,
    ) -> Result<(), Error> {
        let text = text(rows);
        if let [only] = signature.runs.as_mut_slice() {
            only.rows.clear();
        }
        let segments_sha256 = self.partial.write_segments(blocks)?;
        let complete = Complete { rows: rows.len(), sha256: sha256(text.as_bytes()), segments_sha256 };
        signature.complete = Some(complete.clone());
        // Before the rows, which would otherwise look like an unfinished run.
        signature.write(&self.partial.signature)?;
        file::write(&self.partial.csv, text)?;
        // Only now, since a run whose last write failed must continue with the rows that it has measured again.
        if signature.part.is_none() && std::mem::take(&mut signature.again) {
            signature.write(&self.partial.signature)?;
        }
        self.partial.publish(&self.place, &complete)
    }

    /// Returns true if these are already the complete results.
    pub fn has<R: Row>(&self, rows: &[R], now: &Signature) -> Result<bool, Error> {
        let Some(stored) = Signature::read(&self.place.signature)? else { return Ok(false) };
        let is_same =
            (&stored.measured, &stored.testing, &stored.part) == (&now.measured, &now.testing, &now.part);
        let sha256 = sha256(text(rows).as_bytes());
        let is_complete = stored.complete.is_some_and(|complete| complete.sha256 == sha256);
        Ok(is_same && is_complete && holds(&self.place.csv, &sha256)?)
    }

    /// Refuses an unfinished run of results that are about to be replaced; removes it if it has no rows.
    pub fn check_finished<R: Row>(&self) -> Result<(), Error> {
        match Stored::<R>::unfinished(&self.partial)? {
            Some(unfinished) => {
                let fault = "is an unfinished run: repeat its command to finish it, or remove the file";
                Err(Error::of(&unfinished.path, fault))
            }
            None => remove(&self.partial.csv),
        }
    }

    /// Removes all files of the result, complete or unfinished.
    pub fn remove(self) -> Result<(), Error> {
        [&self.place, &self.partial].into_iter().try_for_each(Place::remove)
    }
}

fn text<R: Row>(rows: &[R]) -> String {
    header::<R>() + &rows.iter().map(line).collect::<String>()
}

/// Results of another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The CSV file.
    pub path: PathBuf,
    /// Differences in the identity of the other run.
    pub differences: String,
}

/// Returns the results of another run at `path`, complete or not, or its shards. This run then writes to a [separate
/// path](Identity::own_path).
pub fn taken(path: &Path, identity: &Identity) -> Result<Option<Taken>, Error> {
    let shards = shards_of(path)?.into_iter().map(|shard| shard.path(path));
    let files = [path.to_owned()].into_iter().chain(shards);
    for place in files.flat_map(|csv| [Place::of(&csv), Place::partial(&csv)]) {
        if let Some(stored) = Signature::read(&place.signature)?.filter(|_| place.csv.exists()) {
            let differences = identity.differences(&stored.identity).join("; ");
            return Ok((!differences.is_empty()).then_some(Taken { path: place.csv, differences }));
        }
    }
    Ok(None)
}

/// Reads a file; `None` if it is missing or empty.
pub(crate) fn bytes(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    Ok(file::read_if_there(path)?.filter(|bytes| !bytes.is_empty()))
}
