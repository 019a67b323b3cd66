//! A CSV file that grows row by row, survives being killed, and takes the place of an earlier one when it is complete.
//!
//! Rows go to `ablate-one.partial.csv`; `ablate-one.csv`, its signature and the statistics of its segments stay as they are
//! until their successors are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

use crate::file::{LockedFile, replace, write_error};
use crate::place::Place;
use crate::segments::{Block, Blocks, SegmentsWriter};
use crate::signature::{Complete, Signature, Testing, sha256};
use crate::table::{header, line};
use crate::{Error, Row};

pub use joining::{ShardLock, finish_publishing};

/// What to do with complete results that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Keep their rows, which must be of a run with the same identity, and add those that are missing.
    Use,
    /// As [`Use`](Self::Use), but [`RowWriter::renew`] takes rows out, to be computed again, and rows of another run are no
    /// obstacle, nor are those that cannot be used any more. The old ones stay until the new ones are complete; what has no
    /// successor then is kept under another name.
    Again,
}

/// Writes a result file and what belongs to it, continuing where an earlier run stopped.
///
/// Other processes cannot write the file as long as the writer lives; reading it is possible.
#[derive(Debug)]
pub struct RowWriter<R: Row> {
    place: Place,
    partial: Place,
    /// The growing CSV file.
    file: LockedFile,
    rows: BTreeMap<R::Key, R>,
    /// Statistics of the rows.
    blocks: Blocks,
    /// Where those of further rows are appended, from the first one on.
    segments: Option<SegmentsWriter>,
    signature: Signature,
    /// Whether the growing files have all that is known so far.
    is_begun: bool,
    /// Whether the growing files are those of an unfinished run that this one continues.
    is_resumed: bool,
    /// Whether complete rows are to be computed again.
    is_again: bool,
    /// Whether the rows are only tested again or joined, by no run of their own.
    is_revision: bool,
    /// Why nothing can be added: an unfinished run of other numbers is in the way.
    obstacle: Option<Error>,
    /// How complete rows that are kept were tested.
    tested: Option<Testing>,
    /// The complete rows that this run started from.
    kept: Vec<String>,
    added: Vec<String>,
    started: Instant,
}

impl<R: Row> RowWriter<R> {
    /// The rows that are there, in the order of their keys.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &R> {
        self.rows.values()
    }

    /// Whether the row with this key is there.
    pub fn contains(&self, key: &R::Key) -> bool {
        self.rows.contains_key(key)
    }

    /// How complete rows that are kept were tested.
    pub fn tested(&self) -> Option<Testing> {
        self.tested
    }

    /// How rows are tested, and how many make a family, as the signature is to have it.
    pub fn signature_mut(&mut self) -> &mut Signature {
        &mut self.signature
    }

    /// Takes rows out that do not fit any more. Complete results that are there stay as they are until this run is complete;
    /// then these rows are gone, whether they have successors or not.
    ///
    /// # Errors
    /// If the file cannot be written; it is then as it was.
    pub fn discard(&mut self, unwanted: impl Fn(&R) -> bool) -> Result<(), Error> {
        if self.is_resumed {
            self.begin()?;
        }
        let discarded = self.names(unwanted);
        self.signature.discarded.extend(discarded.iter().cloned());
        if let Some(part) = &mut self.signature.part {
            part.rows.retain(|name, _| !discarded.contains(name));
        }
        if self.is_begun {
            // First of all, lest a kill brings them back.
            self.signature.write(&self.partial.signature)?;
            let kept = self.rows.values().filter(|row| !discarded.contains(&row.name()));
            let kept: String = kept.map(line).collect();
            self.rewrite(&(header::<R>() + &kept))?;
        }
        self.take_out(&discarded);
        if self.is_begun { self.signature.write(&self.partial.signature) } else { Ok(()) }
    }

    /// Takes out complete rows that are to be computed again, if this run is to do so. Those that an unfinished run has
    /// computed again already stay.
    pub fn renew(&mut self, unwanted: impl Fn(&R) -> bool) {
        if !self.is_again {
            return;
        }
        let renewed = self.names(|row| self.signature.old.contains(&row.name()) && unwanted(row));
        if !renewed.is_empty() {
            self.is_begun = false;
            self.take_out(&renewed);
        }
    }

    fn names(&self, of: impl Fn(&R) -> bool) -> BTreeSet<String> {
        self.rows.values().filter(|row| of(row)).map(Row::name).collect()
    }

    /// Takes out rows and their statistics; the runs that wrote them then no longer name them. An earlier run of which no row
    /// is left is forgotten, and so are bases when there are no rows.
    fn take_out(&mut self, unwanted: &BTreeSet<String>) {
        self.rows.retain(|_, row| !unwanted.contains(&row.name()));
        if self.rows.is_empty() {
            self.blocks = Blocks::default();
        } else {
            self.blocks.retain(|name| !unwanted.contains(name));
        }
        self.added.retain(|name| !unwanted.contains(name));
        self.signature.old.retain(|name| !unwanted.contains(name));
        let this = if self.is_revision { None } else { self.signature.runs.pop() };
        for run in &mut self.signature.runs {
            run.rows.retain(|name| !unwanted.contains(name));
        }
        self.signature.runs.retain(|run| !run.rows.is_empty());
        self.signature.runs.extend(this);
    }

    /// Replaces the growing CSV file.
    fn rewrite(&mut self, text: &str) -> Result<(), Error> {
        replace(&self.partial.csv, text)?;
        self.file = LockedFile::open(&self.partial.csv)?;
        Ok(())
    }

    /// Stores the statistics of a base, unless they are there.
    ///
    /// - `columns`: names of a segment's numbers
    ///
    /// # Errors
    /// If the base that is there has others: the rows would not be of one model. Or if the file cannot be written.
    pub fn add_base(&mut self, columns: &[&str], base: Block) -> Result<(), Error> {
        match self.blocks.get(&base.name) {
            None => self.store(columns, base),
            Some(stored) if *stored == base => Ok(()),
            Some(stored) => Err(Error::OtherBase {
                path: if self.is_begun { self.partial.csv.clone() } else { self.place.csv.clone() },
                segments: stored.differences(&base),
                of: base.segments.len(),
            }),
        }
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
        self.begin()?;
        if self.segments.is_none() {
            self.segments = Some(SegmentsWriter::open(&self.partial.segments)?);
        }
        self.blocks.name_columns(columns);
        self.blocks.insert(block.clone());
        match &mut self.segments {
            Some(segments) => segments.append(columns, block),
            None => Ok(()),
        }
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
        self.begin()?;
        self.file.append(line(&row)).map_err(|source| write_error(&self.partial.csv, source))?;
        self.added.push(row.name());
        self.rows.insert(row.key(), row);
        Ok(())
    }

    fn check_missing(&self, row: &R) -> Result<(), Error> {
        let key = row.key();
        if self.contains(&key) {
            return Err(Error::DuplicateRow { path: self.place.csv.clone(), key: format!("{key:?}") });
        }
        Ok(())
    }

    /// Puts what is known into the growing files before anything is added, the rows last: a run that was killed before has
    /// left nothing that another would take for its work. A run that adds nothing leaves no trace.
    fn begin(&mut self) -> Result<(), Error> {
        if self.is_begun {
            return Ok(());
        }
        if let Some(obstacle) = self.obstacle.take() {
            return Err(obstacle);
        }
        if !self.is_resumed {
            self.clear_way()?;
        }
        let rows: String = self.rows.values().map(line).collect();
        self.rewrite(&(header::<R>() + &rows))?;
        if self.is_resumed {
            // Rows that are out are missing, whatever the signature says; those of its list that are there are old.
            self.signature.write(&self.partial.signature)?;
        }
        self.is_begun = true;
        Ok(())
    }

    /// Puts all but the rows in the place of an unfinished run that is replaced.
    fn clear_way(&mut self) -> Result<(), Error> {
        // Its rows must never stand beside this signature.
        self.file.truncate(0).map_err(|source| write_error(&self.partial.csv, source))?;
        self.signature.write(&self.partial.signature)?;
        if self.blocks.is_empty() {
            self.partial.remove_segments()
        } else {
            Ok(durable::write(&self.partial.segments, self.blocks.bytes())?)
        }
    }

    /// Lets `complete` fill in what needs all rows, such as tests, then makes these rows, in the order of their keys, the
    /// results, and returns them. Rows of the complete results that were neither computed again nor discarded are among them.
    ///
    /// Complete results can be opened again for more rows.
    ///
    /// # Errors
    /// If `complete` fails, or a file cannot be written; the rows that were pushed stay in the growing file.
    ///
    /// # Panics
    /// If `complete` changes a key.
    pub fn finish<E: From<Error>>(
        mut self,
        complete: impl FnOnce(&mut [R], &mut Blocks) -> Result<(), E>,
    ) -> Result<Vec<R>, E> {
        self.carry_over()?;
        let (keys, mut rows): (Vec<_>, Vec<_>) = std::mem::take(&mut self.rows).into_iter().unzip();
        complete(&mut rows, &mut self.blocks)?;
        let has_its_key = |(row, key): (&R, &R::Key)| row.key() == *key;
        assert!(rows.iter().zip(&keys).all(has_its_key), "completing rows must not change their keys");
        let lines: Vec<String> = rows.iter().map(line).collect();
        if !self.is_begun && !self.is_resumed && self.has_nothing_new(&lines)? {
            return Ok(rows);
        }
        self.publish(&lines, &keys)?;
        Ok(rows)
    }

    /// Whether the complete results are all that there would be.
    fn has_nothing_new(&self, lines: &[String]) -> Result<bool, Error> {
        let Some(stored) = Signature::read(&self.place.signature)? else { return Ok(false) };
        let is_same = |now: &Signature| {
            stored.measured == now.measured && stored.testing == now.testing && stored.part == now.part
        };
        Ok(self.kept == lines && stored.complete.is_some() && is_same(&self.signature))
    }

    fn publish(&mut self, lines: &[String], keys: &[R::Key]) -> Result<(), Error> {
        self.begin()?;
        let text = header::<R>() + &lines.concat();
        let segments = (!self.blocks.is_empty()).then(|| self.blocks.bytes());
        self.segments = None;
        match &segments {
            Some(bytes) => durable::write(&self.partial.segments, bytes)?,
            None => self.partial.remove_segments()?,
        }
        self.rewrite(&text)?;
        self.spare_rows_without_successors(keys)?;
        if !self.is_revision {
            self.sign_off();
        }
        let complete = Complete {
            rows: lines.len(),
            sha256: sha256(text.as_bytes()),
            segments_sha256: segments.as_deref().map(sha256),
        };
        self.signature.close(complete.clone());
        self.signature.write(&self.partial.signature)?;
        self.partial.publish(&self.place, &complete)
    }

    /// Says in the signature how long this run took and, where there were others, what it wrote. A run that added nothing is
    /// left out.
    fn sign_off(&mut self) {
        let runs = &mut self.signature.runs;
        if self.added.is_empty() {
            if runs.len() > 1 {
                runs.pop();
            }
        } else if let Some(run) = runs.last_mut() {
            run.duration_seconds = Some(self.started.elapsed().as_secs_f64());
            run.rows = std::mem::take(&mut self.added);
        }
    }
}

impl<R: Row> Drop for RowWriter<R> {
    fn drop(&mut self) {
        let is_empty = fs::metadata(&self.partial.csv).is_ok_and(|metadata| metadata.len() == 0);
        if !self.is_begun && is_empty {
            let _ = fs::remove_file(&self.partial.csv); // it was there for its lock
        }
    }
}

mod complete;
mod joining;
mod opening;
#[cfg(test)]
mod tests;
