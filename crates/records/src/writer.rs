//! Writer of a CSV file that grows row by row, survives being killed, and replaces an earlier file when it is complete.
//!
//! New rows go to `ablate-one.partial.csv`. `ablate-one.csv`, its signature and the statistics of its segments stay unchanged until the new
//! files are complete, with the new rows and the earlier ones that were not measured again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::file::{self, GrowingFile, remove};
use crate::place::Held;
use crate::segments::{Block, Blocks, first_order_name};
use crate::signature::{Provenance, Signature, Testing};
use crate::stored::Stored;
use crate::table::{header, line};
use crate::{Error, Row};

/// Writer of a result file, its signature and the statistics of its segments, which continues an earlier run.
///
/// Other processes can read the file but not write it while the writer lives.
#[derive(Debug)]
pub struct RowWriter<R: Row> {
    files: Held,
    /// Rows of this run, and of the unfinished run that it continues.
    new: Stored<R>,
    /// Earlier rows, which are published unless new rows have their keys.
    old: Option<Stored<R>>,
    run: Provenance,
    /// `true` if the growing files contain rows of this run, or of the unfinished run that it continues.
    is_begun: bool,
    /// Error about an unfinished run with other inputs, which new rows would overwrite.
    obstacle: Option<Error>,
    tested: Option<Testing>,
    /// Growing files of rows and of statistics, opened with the first addition.
    growing: Option<[GrowingFile; 2]>,
    added: Vec<String>,
    started: Instant,
}

impl<R: Row> RowWriter<R> {
    /// Opens the results at `path`, a CSV file that need not exist, and continues an unfinished run with an equal identity.
    ///
    /// - `again`: treat complete rows as missing and replace results that do not fit; all stay until the new ones are complete. A killed
    ///   run that was opened with `again` continues with it.
    ///
    /// # Errors
    /// If existing rows belong to another run, were edited, or lack the statistics that this run stores (unless `again`), are not results,
    /// or are being written by another process; or if the folder cannot be written.
    pub fn open(path: &Path, signature: &Signature, again: bool) -> Result<Self, Error> {
        let files = Held::take(path)?;
        let unfinished = Stored::unfinished(&files.partial);
        if matches!(unfinished, Ok(None)) {
            files.partial.remove()?; // left by a run that was killed before its first row
        }
        let unfinished = Stored::fitting(unfinished, &files.partial, (signature, again));
        let mut old = Stored::earlier(path, signature, again)?;
        let (mut unfinished, obstacle) = match unfinished {
            Err(error @ Error::Invalid(_)) if old.is_some() => (None, Some(error)),
            found => (found?, None),
        };
        let tested = unfinished.iter().chain(&old).find_map(|stored| stored.signature.testing);
        // Rows measured before --again are not new.
        if let Some(mut early) = unfinished.take_if(|unfinished| again && !unfinished.signature.again) {
            old.take().map_or(Ok(()), |old| early.add(old))?;
            old = Some(early);
        }

        let mut runs = signature.runs.clone();
        let run = runs.pop().expect("a signature of the run that starts");
        let mut new =
            Stored::empty(&files.partial.csv, Signature { runs, complete: None, again, ..signature.clone() });
        let is_begun = unfinished.is_some();
        if let Some(unfinished) = unfinished {
            new.signature.again = unfinished.signature.again;
            new.add(unfinished)?;
        }
        let (growing, added, started) = (None, Vec::new(), Instant::now());
        Ok(Self { files, new, old, run, is_begun, obstacle, tested, growing, added, started })
    }

    /// Returns the earlier rows that need not be measured again.
    fn kept(&self) -> Option<&Stored<R>> {
        self.old.as_ref().filter(|_| !self.new.signature.again)
    }

    /// Returns the rows that need not be measured, in the order of their keys.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &R> {
        let mut rows: BTreeMap<&R::Key, &R> = self.kept().iter().flat_map(|old| &old.rows).collect();
        rows.extend(&self.new.rows);
        rows.into_values()
    }

    fn get(&self, key: &R::Key) -> Option<&R> {
        self.new.rows.get(key).or_else(|| self.kept()?.rows.get(key))
    }

    /// Returns true if the row with this key need not be measured.
    pub fn contains(&self, key: &R::Key) -> bool {
        self.get(key).is_some()
    }

    /// Returns true if an unfinished run is continued, or this run has added rows.
    pub fn continues(&self) -> bool {
        self.is_begun
    }

    /// Returns the settings of the last test of earlier rows; `None` if they were not tested.
    pub fn tested(&self) -> Option<Testing> {
        self.tested
    }

    /// Returns the signature without the record of this run.
    pub fn signature(&self) -> &Signature {
        &self.new.signature
    }

    /// Returns the signature, for settings of tests and sizes of families.
    pub fn signature_mut(&mut self) -> &mut Signature {
        &mut self.new.signature
    }

    /// Returns the record of this run.
    pub fn run_mut(&mut self) -> &mut Provenance {
        &mut self.run
    }

    /// Leaves out earlier rows that no longer fit. Complete results stay until this run is complete.
    pub fn leave_out(&mut self, unwanted: impl Fn(&R) -> bool) {
        for stored in self.old.iter_mut().chain([&mut self.new]) {
            let gone = stored.leave_out(&unwanted);
            if let Some(part) = &mut stored.signature.part {
                part.rows.retain(|name, _| !gone.contains(name));
            }
        }
        self.growing = None; // rewritten with the next row
    }

    /// Stores the statistics of a base, unless they are stored already.
    ///
    /// - `columns`: names of the numbers of a segment
    ///
    /// # Errors
    /// If the rows are compared with other statistics of this base, or the file cannot be written.
    pub fn add_base(&mut self, columns: &[&str], base: Block) -> Result<(), Error> {
        self.kept().into_iter().chain([&self.new]).try_for_each(|stored| stored.check_base(&base))?;
        if self.new.blocks.get(&base.name) == Some(&base) {
            return Ok(());
        }
        self.growing()?;
        self.new.blocks.columns = columns.iter().map(|&column| column.to_owned()).collect();
        self.store(base)
    }

    /// Adds a row after the statistics of its segments, and waits until both are on the disk. The row replaces an earlier one with its key,
    /// unless they are equal.
    ///
    /// # Errors
    /// If the file cannot be written; earlier rows stay.
    ///
    /// # Panics
    /// If text in the row has a line break.
    pub fn append(&mut self, row: R, block: Option<Block>) -> Result<(), Error> {
        let key = row.key();
        if self.get(&key) == Some(&row) {
            return Ok(());
        }
        let predictions = first_order_name(&row.name());
        if self.new.blocks.get(&predictions).is_none()
            && let Some(earlier) = self.block(&predictions).cloned()
        {
            self.store(earlier)?; // keeps the predictions for the replaced row
        }
        // Statistics come first, so that every row has them.
        block.map_or(Ok(()), |block| self.store(block))?;
        let [rows, _] = self.growing()?;
        rows.append(line(&row).as_bytes())?;
        if !self.added.contains(&row.name()) {
            self.added.push(row.name());
        }
        self.new.rows.insert(key, row);
        Ok(())
    }

    /// Returns stored statistics: of a row or base that need not be measured, or predictions for a row.
    pub fn block(&self, name: &str) -> Option<&Block> {
        self.new.blocks.get(name).or_else(|| self.kept()?.blocks.get(name))
    }

    /// Stores statistics that do not belong to a row alone, such as predictions for it.
    pub fn store(&mut self, block: Block) -> Result<(), Error> {
        let bytes = self.new.blocks.addition(&block);
        let [_, segments] = self.growing()?;
        segments.append(&bytes)?;
        self.new.blocks.insert(block);
        Ok(())
    }

    /// Returns the growing files of rows and of statistics, which begin with the new rows. A run that adds nothing writes nothing.
    fn growing(&mut self) -> Result<&mut [GrowingFile; 2], Error> {
        if self.growing.is_none() {
            self.begin()?;
            let partial = &self.files.partial;
            self.growing = Some([GrowingFile::open(&partial.csv)?, GrowingFile::open(&partial.segments)?]);
        }
        Ok(self.growing.as_mut().expect("it was just opened"))
    }

    /// Replaces the growing files. A kill in between may leave rows without statistics, which the next run measures again, but never rows
    /// under the signature of another run.
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
        file::write(&partial.csv, header::<R>() + &rows)?;
        self.run.add_warnings();
        let mut signature = self.new.signature.clone();
        signature.runs.push(self.run.clone());
        signature.write(&partial.signature)?;
        self.is_begun = true;
        Ok(())
    }

    /// [Publishes](Self::publish) rows that need no completion.
    pub fn finish(self) -> Result<Vec<R>, Error> {
        self.publish(|_, _, _| Ok(()))
    }

    /// Lets `complete` fill in what depends on all rows and their signature, such as tests. Then publishes the rows as the results, sorted
    /// by key, and returns them. Complete results can be opened again to add rows.
    ///
    /// # Errors
    /// If earlier rows are compared with another base than the new ones, `complete` fails, or a file cannot be written; new rows stay in
    /// the growing file.
    ///
    /// # Panics
    /// If `complete` changes a key.
    pub fn publish<E: From<Error>>(
        mut self,
        complete: impl FnOnce(&mut [R], &mut Blocks, &mut Signature) -> Result<(), E>,
    ) -> Result<Vec<R>, E> {
        let rest = Stored::empty(&self.new.path, self.new.signature.clone());
        let mut all = std::mem::replace(&mut self.new, rest);
        let again = all.signature.again;
        self.old.take().map_or(Ok(()), |old| all.add_earlier(old, again))?;
        let (keys, mut rows): (Vec<_>, Vec<_>) = all.rows.into_iter().unzip();
        complete(&mut rows, &mut all.blocks, &mut all.signature)?;
        let has_its_key = |(row, key): (&R, &R::Key)| row.key() == *key;
        assert!(rows.iter().zip(&keys).all(has_its_key), "completing rows must not change their keys");
        let signature = self.signed_off(all.signature);
        if self.is_begun || !self.files.has(&rows, &signature)? {
            self.obstacle.take().map_or(Ok(()), Err)?;
            if !self.is_begun {
                remove(&self.files.partial.csv)?;
            }
            self.files.publish(&rows, &all.blocks, signature)?;
        }
        Ok(rows)
    }

    /// Returns the signature with the warnings and the duration of this run, if it added rows.
    fn signed_off(&mut self, mut signature: Signature) -> Signature {
        if !self.added.is_empty() || signature.runs.is_empty() {
            self.run.add_warnings();
            signature.runs.push(Provenance {
                duration_seconds: Some(self.started.elapsed().as_secs_f64()),
                rows: std::mem::take(&mut self.added),
                ..self.run.clone()
            });
        }
        signature
    }
}

/// Checks that a result file can be written, before any long work.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    Held::take(path).map(drop)
}

#[cfg(test)]
mod tests;
