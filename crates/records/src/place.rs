//! The files of one result: rows, signature and statistics of segments.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::file::{self, write_error};
use crate::segments::Blocks;
use crate::signature::{Complete, Signature, sha256};

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

    /// The first of `csv`, `<stem>-2.csv`, `<stem>-3.csv` and so on that no file of any results has.
    pub(crate) fn free(csv: &Path) -> Self {
        let stem = csv.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut place = Self::of(csv);
        let mut number = 1;
        while place.is_taken() {
            number += 1;
            place = Self::of(&csv.with_file_name(format!("{stem}-{number}.csv")));
        }
        place
    }

    fn is_taken(&self) -> bool {
        let growing = Self::partial(&self.csv);
        [&self.csv, &self.signature, &self.segments, &growing.csv].into_iter().any(|path| path.exists())
    }

    /// Gives these complete files their names. The signature comes last: where it is, all is.
    pub(crate) fn publish(&self, to: &Self, complete: &Complete) -> Result<(), Error> {
        if complete.segments_sha256.is_none() {
            remove(&to.segments)?;
        } else if self.segments.exists() {
            durable::publish_file(&self.segments, &to.segments)?;
        }
        durable::publish_file(&self.csv, &to.csv)?;
        Ok(durable::publish_file(&self.signature, &to.signature)?)
    }

    /// Goes on with publishing where a killed process was; says whether there was anything to do.
    pub(crate) fn finish_publishing(&self, to: &Self) -> Result<bool, Error> {
        let signature = Signature::read(&self.signature)?;
        let Some(complete) = signature.and_then(|signature| signature.complete) else { return Ok(false) };
        if holds(&self.csv, &complete.sha256)? {
            self.publish(to, &complete)?;
        } else if holds(&to.csv, &complete.sha256)? {
            durable::publish_file(&self.signature, &to.signature)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Gives these files other names, which must be [free](Self::free), the signature first: rows without one are refused,
    /// not taken for those of another run.
    pub(crate) fn move_to(&self, to: &Self) -> Result<(), Error> {
        for (from, to) in
            [(&self.signature, &to.signature), (&self.segments, &to.segments), (&self.csv, &to.csv)]
        {
            if from.exists() {
                durable::publish_file(from, to)?;
            }
        }
        Ok(())
    }

    /// Removes all files, the rows first: without them the others are nothing.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        [&self.csv, &self.signature, &self.segments].into_iter().try_for_each(|path| remove(path))
    }

    /// Removes statistics that belong to no rows.
    pub(crate) fn remove_segments(&self) -> Result<(), Error> {
        remove(&self.segments)
    }

    /// Refuses rows or statistics that are not those that the signature was completed with.
    ///
    /// - `csv`: the content of the CSV file
    pub(crate) fn check_complete(&self, signature: &Signature, csv: &[u8]) -> Result<(), Error> {
        let Some(Complete { sha256: expected, segments_sha256, .. }) = &signature.complete else {
            return Ok(());
        };
        if sha256(csv) != *expected {
            return Err(Error::Edited { path: self.csv.clone() });
        }
        if let Some(expected) = segments_sha256
            && !holds(&self.segments, expected)?
        {
            return Err(Error::Edited { path: self.segments.clone() });
        }
        Ok(())
    }
}

/// Whether there is a file with this checksum.
fn holds(path: &Path, expected: &str) -> Result<bool, Error> {
    Ok(file::read_if_there(path)?.is_some_and(|bytes| sha256(&bytes) == expected))
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(write_error(path, source)),
        _ => Ok(()),
    }
}
