//! Rows of other files of the same run: what other shards have, and what the shards of a result file make together.

use std::fs;
use std::path::{Path, PathBuf};

use super::opening::locked;
use super::{Existing, RowWriter};
use crate::file::LockedFile;
use crate::place::Place;
use crate::segments::SegmentsWriter;
use crate::signature::Signature;
use crate::stored::{Stored, untested};
use crate::table::{header, line};
use crate::{Error, Part, Shard, TestedRow, shards_of};

impl<R: TestedRow> RowWriter<R> {
    /// Opens the results at `path` to put rows of shards into them; no run is added to their signature.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn join(path: &Path, signature: &Signature, existing: Existing) -> Result<Self, Error> {
        let signature = Signature { runs: Vec::new(), part: None, ..signature.clone() };
        let mut writer = Self::open(path, &signature, existing)?;
        writer.is_revision = true;
        Ok(writer)
    }

    /// Takes over those rows of a shard that other shards of the results at `results` have, finished or not, or that are among
    /// these already; how the latter are tested is then known too. What cannot be read is left out: another process may be
    /// replacing it, and the rows can be measured again.
    ///
    /// # Errors
    /// If the folder cannot be read, or the file not be written.
    pub fn adopt_part(&mut self, results: &Path, part: &Part) -> Result<(), Error> {
        let others = shards_of(results)?.into_iter().filter(|&shard| shard != part.shard);
        let files = others.map(|shard| shard.path(results)).chain([results.to_owned()]);
        for stored in files.flat_map(|path| Stored::<R>::read(&path).unwrap_or_default()) {
            if stored.signature.is_renewal || stored.signature.identity != self.signature.identity {
                continue;
            }
            if stored.path == results {
                self.tested = self.tested.or(stored.signature.testing);
            }
            self.adopt(stored, |row| part.holds(&row.name()))?;
        }
        Ok(())
    }

    /// Takes over those rows that are wanted and not there, with their statistics and the runs that wrote them, but nothing
    /// that tests said; says how many. None are, if they were compared with another base than the rows that are there.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn adopt(&mut self, stored: Stored<R>, is_wanted: impl Fn(&R) -> bool) -> Result<usize, Error> {
        let rows = self.take_over(stored, is_wanted);
        let adopted = rows.len();
        self.rows.extend(rows.into_iter().map(|(key, row)| (key, untested(row))));
        if adopted > 0 && self.is_resumed {
            self.write_all()?;
        }
        Ok(adopted)
    }

    /// Replaces all growing files, the rows last: none is there without its statistics.
    fn write_all(&mut self) -> Result<(), Error> {
        self.segments = None;
        durable::write(&self.partial.segments, self.blocks.bytes())?;
        self.segments = Some(SegmentsWriter::open(&self.partial.segments)?);
        self.signature.write(&self.partial.signature)?;
        let rows: String = self.rows.values().map(line).collect();
        self.rewrite(&(header::<R>() + &rows))?;
        self.is_begun = true;
        Ok(())
    }
}

/// Gives results their names that a killed process was publishing.
///
/// # Errors
/// [`Error::InUse`] if a run is writing them, or if a file cannot be read or written.
pub fn finish_publishing(csv: &Path) -> Result<(), Error> {
    ShardLock::at(csv).map(drop)
}

/// A shard that no run is writing, nor can begin to as long as this lives.
#[derive(Debug)]
pub struct ShardLock {
    place: Place,
    partial: Place,
    _file: LockedFile,
}

impl ShardLock {
    /// Takes hold of a shard of the result file `csv`; what a killed run was about to publish is there then.
    ///
    /// # Errors
    /// [`Error::InUse`] if a run is writing it, or if its files cannot be read or written.
    pub fn take(csv: &Path, shard: Shard) -> Result<Self, Error> {
        Self::at(&shard.path(csv))
    }

    fn at(csv: &Path) -> Result<Self, Error> {
        let (place, partial) = (Place::of(csv), Place::partial(csv));
        let file = locked(&place, &partial)?;
        Ok(Self { place, partial, _file: file })
    }

    /// Its CSV file, which need not be there.
    pub fn path(&self) -> &Path {
        &self.place.csv
    }

    /// Removes all files of the shard.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        let places = [&self.place, &self.partial];
        places.into_iter().try_for_each(Place::remove)
    }
}

impl Drop for ShardLock {
    fn drop(&mut self) {
        let csv: &PathBuf = &self.partial.csv;
        if fs::metadata(csv).is_ok_and(|metadata| metadata.len() == 0) {
            let _ = fs::remove_file(csv); // it was there for its lock
        }
    }
}
