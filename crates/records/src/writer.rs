//! A CSV file that grows row by row, survives being killed, and takes the place of an earlier one when it is complete.
//!
//! New rows go to `ablate-one.partial.csv`; `ablate-one.csv`, its signature and the statistics of its segments stay as they
//! are until their successors are complete. These have the new rows, and those of the old ones that are not computed again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::file::{GrowingFile, remove};
use crate::place::{Held, holds};
use crate::segments::{Block, Blocks};
use crate::signature::{Complete, Identity, Provenance, Signature, Testing, sha256};
use crate::stored::Stored;
use crate::table::{header, line};
use crate::{Error, Row};

/// Writer of a result file and what belongs to it, which continues where an earlier run stopped.
///
/// Other processes cannot write the file as long as the writer lives; reading it is possible.
#[derive(Debug)]
pub struct RowWriter<R: Row> {
    files: Held,
    /// New rows, those of an unfinished run among them.
    new: Stored<R>,
    /// Complete rows that are not computed again.
    old: Option<Stored<R>>,
    /// The run that adds rows; absent where they are only tested or joined.
    run: Option<Provenance>,
    /// `true` if complete rows are to be computed again.
    is_again: bool,
    /// `true` if the growing files hold rows of this run, or of the unfinished one that it continues.
    is_begun: bool,
    /// Fault of an unfinished run of other numbers, which is in the way of new rows.
    obstacle: Option<Error>,
    /// Settings of the tests of rows that were there.
    tested: Option<Testing>,
    /// The growing files of rows and of statistics, once there is something to add.
    growing: Option<[GrowingFile; 2]>,
    /// Names of the rows that this run has added.
    added: Vec<String>,
    started: Instant,
}

impl<R: Row> RowWriter<R> {
    /// Opens the results at `path`, a CSV file that need not be there.
    ///
    /// The rows of an unfinished run with the same identity are kept, and so are complete ones.
    ///
    /// - `again`: rows that [`renew`](Self::renew) names are computed again, and results of another run, or that cannot be
    ///   used any more, are no obstacle; they stay until the new ones are complete
    ///
    /// # Errors
    /// If the rows that are there belong to another run, were edited, or lack the statistics that this run stores (unless
    /// they are to be computed again), are no results at all, or are being written by another process; or if the folder
    /// cannot be written.
    pub fn open(path: &Path, signature: &Signature, again: bool) -> Result<Self, Error> {
        let files = Held::take(path)?;
        let is_of_kind = |path: &Path| {
            let now = &signature.identity;
            let is_same = |old: &Identity| (&old.experiment, &old.subject) == (&now.experiment, &now.subject);
            Signature::read(path).ok().flatten().is_some_and(|stored| is_same(&stored.identity))
        };
        let usable = |found: Result<Option<Stored<R>>, Error>, path: &Path| match found {
            Err(Error::Invalid(_)) if again && is_of_kind(path) => Ok(None),
            found => found,
        };
        let fits = |stored: Stored<R>| {
            stored.check_identity(&signature.identity)?;
            let lacks_segments = signature.measured.is_some() && stored.signature.measured.is_none();
            let fault = "has no statistics of segments, without which nothing can be tested: --again measures it anew";
            if lacks_segments { Err(Error::of(&stored.path, fault)) } else { Ok(stored) }
        };
        let unfinished = Stored::unfinished(&files.partial).and_then(|found| found.map(fits).transpose());
        let unfinished = usable(unfinished, &files.partial.signature);
        let old = Stored::complete(&files.place, Some(&signature.identity));
        let old = usable(old.and_then(|found| found.map(fits).transpose()), &files.place.signature)?;
        let (unfinished, obstacle) = match unfinished {
            Err(error @ Error::Invalid(_)) if old.is_some() => (None, Some(error)),
            found => (found?, None),
        };

        let mut runs = signature.runs.clone();
        let run = runs.pop();
        let now = Signature { runs, complete: None, again, ..signature.clone() };
        let mut new = Stored::empty(&files.partial.csv, now);
        let is_begun = unfinished.is_some();
        let tested = unfinished.iter().chain(&old).find_map(|stored| stored.signature.testing);
        let mut is_again = again;
        if let Some(unfinished) = unfinished {
            new.signature.again = unfinished.signature.again;
            is_again |= unfinished.signature.again;
            new.add(unfinished)?;
        }
        let (growing, added, started) = (None, Vec::new(), Instant::now());
        Ok(Self { files, new, old, run, is_again, is_begun, obstacle, tested, growing, added, started })
    }

    /// Opens results, which need not be there, to put the rows of others into them; no run is added to their signature.
    ///
    /// # Errors
    /// As for [`open`](Self::open), or if an unfinished run stands beside them.
    pub fn join(path: &Path, signature: &Signature, again: bool) -> Result<Self, Error> {
        let signature = Signature { runs: Vec::new(), part: None, ..signature.clone() };
        let writer = Self::open(path, &signature, again)?;
        if writer.is_begun || writer.obstacle.is_some() {
            let fault = "is an unfinished run: give its command again to finish it, or remove the file";
            return Err(Error::of(&writer.new.path, fault));
        }
        Ok(writer)
    }

    /// Opens complete results to test them again; no run is added to their signature.
    ///
    /// # Errors
    /// If there are none, or an unfinished run stands beside them.
    pub fn revise(path: &Path) -> Result<Self, Error> {
        let signature = Signature::read(&Signature::path_beside(path))?;
        let signature = signature.ok_or_else(|| Error::of(path, "has no signature"))?;
        Self::join(path, &signature, false)
    }

    /// The rows that are there, in the order of their keys.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &R> {
        let mut rows: BTreeMap<&R::Key, &R> = self.old.iter().flat_map(|old| &old.rows).collect();
        rows.extend(&self.new.rows);
        rows.into_values()
    }

    /// Returns true if the row with this key is there.
    pub fn contains(&self, key: &R::Key) -> bool {
        self.new.rows.contains_key(key) || self.old.as_ref().is_some_and(|old| old.rows.contains_key(key))
    }

    /// Returns true if an unfinished run is continued, such as a killed `--again`, or this one has added rows.
    pub fn continues(&self) -> bool {
        self.is_begun
    }

    /// Settings of the tests of rows that are there; absent where there are none.
    pub fn tested(&self) -> Option<Testing> {
        self.tested
    }

    /// The signature, for settings of tests and the size of families.
    pub fn signature_mut(&mut self) -> &mut Signature {
        &mut self.new.signature
    }

    /// What is recorded of this run.
    pub fn run_mut(&mut self) -> Option<&mut Provenance> {
        self.run.as_mut()
    }

    /// Takes out complete rows that are to be computed again, if this run is to do so. Those that an unfinished run has
    /// computed again already stay.
    pub fn renew(&mut self, asked_for: impl Fn(&R) -> bool) {
        if !self.is_again {
            return;
        }
        if let Some(old) = &mut self.old {
            old.take_out(&asked_for);
        }
        if !self.new.signature.again {
            self.new.signature.again = true;
            self.new.take_out(&asked_for);
        }
    }

    /// Takes rows out that do not fit any more. Complete results that are there stay as they are until this run is complete.
    pub fn discard(&mut self, unwanted: impl Fn(&R) -> bool) {
        for stored in self.old.iter_mut().chain([&mut self.new]) {
            stored.give_up(&unwanted);
        }
        self.growing = None; // which is written anew
    }

    /// Takes over rows of other results, such as a shard, unless they are there.
    ///
    /// # Errors
    /// If they are compared with another base.
    pub fn adopt(&mut self, others: Stored<R>) -> Result<(), Error> {
        self.new.add(others)
    }

    /// Stores the statistics of a base, unless they are there.
    ///
    /// - `columns`: names of a segment's numbers
    ///
    /// # Errors
    /// If the base that is there has others: the rows would not be of one model. Or if the file cannot be written.
    pub fn add_base(&mut self, columns: &[&str], base: Block) -> Result<(), Error> {
        self.old.iter().chain([&self.new]).try_for_each(|stored| stored.check_base(&base))?;
        if self.new.blocks.get(&base.name) == Some(&base) { Ok(()) } else { self.store(columns, base) }
    }

    /// Adds a row and the statistics of its segments, and waits until they are on the disk.
    ///
    /// # Errors
    /// If a row with this key is there already, or the file cannot be written; rows that were there stay.
    ///
    /// # Panics
    /// If text in the row has a line break.
    pub fn push_measured(&mut self, row: R, columns: &[&str], block: Block) -> Result<(), Error> {
        self.check_missing(&row)?;
        // The statistics come first, so that no row is without.
        self.store(columns, block)?;
        self.push(row)
    }

    fn store(&mut self, columns: &[&str], block: Block) -> Result<(), Error> {
        let bytes = self.new.blocks.addition(columns, &block);
        let [_, segments] = self.growing()?;
        segments.append(&bytes)?;
        self.new.blocks.insert(block);
        Ok(())
    }

    /// Adds a row and waits until it is on the disk.
    ///
    /// # Errors
    /// As for [`push_measured`](Self::push_measured).
    ///
    /// # Panics
    /// If text in the row has a line break.
    pub fn push(&mut self, row: R) -> Result<(), Error> {
        self.check_missing(&row)?;
        let [rows, _] = self.growing()?;
        rows.append(line(&row).as_bytes())?;
        self.added.push(row.name());
        self.new.rows.insert(row.key(), row);
        Ok(())
    }

    fn check_missing(&self, row: &R) -> Result<(), Error> {
        if self.contains(&row.key()) {
            let fault = format!("has a row for {} already: each row is written once", row.title());
            return Err(Error::of(&self.files.place.csv, fault));
        }
        Ok(())
    }

    /// The growing files of rows and of statistics. They begin with the new rows that are there; a run that adds nothing
    /// leaves no trace.
    fn growing(&mut self) -> Result<&mut [GrowingFile; 2], Error> {
        if self.growing.is_none() {
            self.begin()?;
            let partial = &self.files.partial;
            self.growing = Some([GrowingFile::open(&partial.csv)?, GrowingFile::open(&partial.segments)?]);
        }
        Ok(self.growing.as_mut().expect("it was just opened"))
    }

    /// Replaces the growing files by what is known. A kill in between leaves rows without statistics, which the next run
    /// measures, but no rows under the signature of another run.
    fn begin(&mut self) -> Result<(), Error> {
        if let Some(obstacle) = self.obstacle.take() {
            return Err(obstacle);
        }
        let partial = &self.files.partial;
        if !self.is_begun {
            remove(&partial.csv)?;
        }
        partial.write_segments(&self.new.blocks)?;
        let rows: String = self.new.rows.values().map(line).collect();
        durable::write(&partial.csv, header::<R>() + &rows)?;
        let mut signature = self.new.signature.clone();
        self.run.iter_mut().for_each(Provenance::add_warnings);
        signature.runs.extend(self.run.clone());
        signature.write(&partial.signature)?;
        self.is_begun = true;
        Ok(())
    }

    /// Makes the rows, in the order of their keys, the results, and returns them.
    ///
    /// # Errors
    /// As for [`finish_with`](Self::finish_with).
    pub fn finish(self) -> Result<Vec<R>, Error> {
        self.finish_with(|_, _, _| Ok(()))
    }

    /// Lets `complete` fill in what needs all rows and their signature, such as tests, then makes these rows, in the order of
    /// their keys, the results, and returns them.
    ///
    /// Complete results can be opened again for more rows.
    ///
    /// # Errors
    /// If `complete` fails, or a file cannot be written; the rows that were pushed stay in the growing file.
    ///
    /// # Panics
    /// If `complete` changes a key.
    pub fn finish_with<E: From<Error>>(
        mut self,
        complete: impl FnOnce(&mut [R], &mut Blocks, &mut Signature) -> Result<(), E>,
    ) -> Result<Vec<R>, E> {
        let rest = Stored::empty(&self.new.path, self.new.signature.clone());
        let mut all = std::mem::replace(&mut self.new, rest);
        self.old.take().map_or(Ok(()), |old| all.add(old))?;
        let (keys, mut rows): (Vec<_>, Vec<_>) = all.rows.into_iter().unzip();
        complete(&mut rows, &mut all.blocks, &mut all.signature)?;
        let has_its_key = |(row, key): (&R, &R::Key)| row.key() == *key;
        assert!(rows.iter().zip(&keys).all(has_its_key), "completing rows must not change their keys");
        let signature = self.sign_off(all.signature);
        self.publish(&rows, &all.blocks, signature)?;
        Ok(rows)
    }

    /// The signature with the warnings and the duration of this run and, where there were others, what it wrote. A run that added nothing
    /// is left out.
    fn sign_off(&mut self, mut signature: Signature) -> Signature {
        let run = self.run.take().filter(|_| !self.added.is_empty() || signature.runs.is_empty());
        signature.runs.extend(run.map(|mut run| {
            run.add_warnings();
            Provenance {
                duration_seconds: Some(self.started.elapsed().as_secs_f64()),
                rows: std::mem::take(&mut self.added),
                ..run
            }
        }));
        if let [only] = signature.runs.as_mut_slice() {
            only.rows.clear();
        }
        signature
    }

    fn publish(&mut self, rows: &[R], blocks: &Blocks, mut signature: Signature) -> Result<(), Error> {
        let text = header::<R>() + &rows.iter().map(line).collect::<String>();
        let sha256 = sha256(text.as_bytes());
        if !self.is_begun && self.is_there(&sha256, &signature)? {
            return Ok(());
        }
        if !self.is_begun {
            self.begin()?;
        }
        let Held { place, partial, .. } = &self.files;
        let segments_sha256 = partial.write_segments(blocks)?;
        let complete = Complete { rows: rows.len(), sha256, segments_sha256 };
        signature.complete = Some(complete.clone());
        // Before the rows, which would pass for those of an unfinished run.
        signature.write(&partial.signature)?;
        durable::write(&partial.csv, text)?;
        // Not before: a run whose last write failed goes on with the rows that it has measured again.
        if signature.part.is_none() && std::mem::take(&mut signature.again) {
            signature.write(&partial.signature)?;
        }
        partial.publish(place, &complete)
    }

    /// Returns true if these are the results already.
    fn is_there(&self, sha256: &str, now: &Signature) -> Result<bool, Error> {
        let Some(stored) = Signature::read(&self.files.place.signature)? else { return Ok(false) };
        let is_same =
            (&stored.measured, &stored.testing, &stored.part) == (&now.measured, &now.testing, &now.part);
        let is_complete = stored.complete.is_some_and(|complete| complete.sha256 == sha256);
        Ok(is_same && is_complete && holds(&self.files.place.csv, sha256)?)
    }
}

/// Refuses a result file that could not be written, before any long work.
///
/// # Errors
/// As for [`Held::take`].
pub fn check_writable(path: &Path) -> Result<(), Error> {
    Held::take(path).map(drop)
}

#[cfg(test)]
mod tests;
