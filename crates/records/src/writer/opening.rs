//! How a writer begins: with what an unfinished run has left, with complete results, or with nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use super::{Existing, RowWriter};
use crate::destination::check_extension;
use crate::file::{self, LockedFile, write_error};
use crate::place::Place;
use crate::segments::{Blocks, SegmentsWriter};
use crate::signature::{Identity, Measured, Provenance, Signature};
use crate::stored::{Stored, no_signature};
use crate::table::{Table, header, line, parse};
use crate::{Error, Row};

impl<R: Row> RowWriter<R> {
    /// Opens the results at `path`, a CSV file that need not be there.
    ///
    /// An unfinished run with the same identity is continued: its complete rows are kept, and what an interruption has torn
    /// is cut off. Otherwise the rows of complete results are used or computed again, as `existing` says.
    ///
    /// # Errors
    /// If the rows that are there belong to another run, were edited, or lack the statistics that this run stores (unless
    /// they are to be computed again), are no results at all, or are being written by another process; or if the folder
    /// cannot be written.
    pub fn open(path: &Path, signature: &Signature, existing: Existing) -> Result<Self, Error> {
        check_extension(path)?;
        let (place, partial) = (Place::of(path), Place::partial(path));
        let file = locked(&place, &partial)?;
        let mut empty = Self::empty(place, partial, file, signature);
        let unfinished = match empty.unfinished() {
            // of an older version
            Err(Error::Header { .. }) if existing == Existing::Again && empty.partial.signature.exists() => {
                None
            }
            found => found?,
        };
        match unfinished {
            Some(unfinished) if empty.continues(&unfinished, existing)? => empty.resume(unfinished, existing),
            _ => empty.start(existing),
        }
    }

    /// Opens complete results to test them again; no run is added to their signature.
    ///
    /// # Errors
    /// If there are none, or an unfinished run stands beside them.
    pub fn revise(path: &Path) -> Result<Self, Error> {
        check_extension(path)?;
        let (place, partial) = (Place::of(path), Place::partial(path));
        let file = locked(&place, &partial)?;
        let stored = Signature::read(&place.signature)?.ok_or_else(|| no_signature(path))?;
        let now = Signature { runs: Vec::new(), ..stored };
        let mut writer = Self::empty(place, partial, file, &now);
        if writer.unfinished()?.is_some() {
            return Err(Error::Unfinished { path: writer.partial.csv.clone() });
        }
        writer.is_revision = true;
        writer.start(Existing::Use)
    }

    fn empty(place: Place, partial: Place, file: LockedFile, signature: &Signature) -> Self {
        Self {
            place,
            partial,
            file,
            rows: BTreeMap::new(),
            blocks: Blocks::default(),
            segments: None,
            signature: Signature { complete: None, ..signature.clone() },
            is_begun: false,
            is_resumed: false,
            is_again: false,
            is_revision: false,
            obstacle: None,
            tested: None,
            kept: Vec::new(),
            added: Vec::new(),
            started: Instant::now(),
        }
    }

    /// What an earlier run has left of its work.
    fn unfinished(&self) -> Result<Option<Unfinished<R>>, Error> {
        let csv = &self.partial.csv;
        let bytes = file::read(csv)?;
        let table = parse(csv, &bytes)?;
        if table.complete == 0 {
            return Ok(None); // it was killed before it had put anything there
        }
        match Signature::read(&self.partial.signature)? {
            Some(signature) => Ok(Some(Unfinished { table, signature })),
            None if table.rows.is_empty() => Ok(None),
            None => Err(no_signature(csv)),
        }
    }

    /// Whether this run is to continue an unfinished one; otherwise it starts anew, and takes its place.
    fn continues(&mut self, unfinished: &Unfinished<R>, existing: Existing) -> Result<bool, Error> {
        let stored = &unfinished.signature;
        let fits = check_identity(&self.partial.csv, &stored.identity, &self.signature.identity)
            .and_then(|()| check_measured(&self.partial.csv, stored, &self.signature));
        match (fits, existing) {
            (Ok(()), _) => Ok(true),
            (Err(_), Existing::Again) => Ok(false),
            (Err(_), Existing::Use) if unfinished.table.rows.is_empty() => Ok(false),
            (Err(error), Existing::Use) => {
                let complete = Signature::read(&self.place.signature)?;
                if complete.is_some_and(|complete| complete.identity == self.signature.identity) {
                    self.obstacle = Some(error);
                    return Ok(false);
                }
                Err(error)
            }
        }
    }

    /// Continues an unfinished run. What is to be computed again is what it has not computed again yet.
    fn resume(mut self, unfinished: Unfinished<R>, existing: Existing) -> Result<Self, Error> {
        let Unfinished { mut table, signature } = unfinished;
        self.is_begun = true;
        self.is_resumed = true;
        self.is_again = existing == Existing::Again;
        self.file.truncate(table.complete).map_err(|source| write_error(&self.partial.csv, source))?;
        let segments = SegmentsWriter::open(&self.partial.segments)?;
        let blocks = segments.blocks.clone();
        self.segments = Some(segments);
        if signature.measured.is_some() {
            // The statistics are there before their row, unless the file was cut from outside.
            table.rows.retain(|_, row| blocks.get(&row.name()).is_some());
            let kept: String = table.rows.values().map(line).collect();
            self.rewrite(&(header::<R>() + &kept))?;
        }
        if !table.rows.is_empty() {
            self.blocks = blocks; // else they may be of another machine, of which no row is left
        }
        let names = table.rows.values().map(Row::name);
        let is_old = |name: &String| !signature.is_renewal || signature.old.contains(name);
        self.signature.is_renewal = signature.is_renewal || self.is_again;
        if self.signature.is_renewal {
            self.signature.old = names.filter(is_old).collect();
        }
        self.signature.discarded.clone_from(&signature.discarded);
        self.tested = signature.testing;
        self.inherit(table.rows, signature);
        self.signature.write(&self.partial.signature)?;
        Ok(self)
    }

    /// Starts from complete results, if there are any that are to be kept. What an unfinished run has left is replaced by the
    /// first row.
    fn start(mut self, existing: Existing) -> Result<Self, Error> {
        self.is_again = existing == Existing::Again;
        self.signature.is_renewal = self.is_again;
        let there = match self.complete() {
            Err(error) if self.is_again && self.can_be_replaced(&error) => None,
            there => there?,
        };
        let Some(Stored { rows, blocks, signature, .. }) = there else { return Ok(self) };
        self.blocks = blocks;
        self.kept = rows.values().map(line).collect();
        self.tested = signature.testing;
        if self.is_again {
            self.signature.old = rows.values().map(Row::name).collect();
        }
        self.inherit(rows, signature);
        Ok(self)
    }

    /// Whether results that are of no use are results all the same, of another run or of an older version.
    fn can_be_replaced(&self, error: &Error) -> bool {
        match error {
            Error::Header { .. } => self.place.signature.exists(),
            Error::Identity { .. } | Error::Edited { .. } | Error::NotMeasured { .. } => true,
            _ => false,
        }
    }

    /// Takes over the rows of earlier runs, and the families that they belong to.
    fn inherit(&mut self, rows: BTreeMap<R::Key, R>, stored: Signature) {
        self.inherit_families(stored.measured);
        if let (Some(now), Some(mut stored)) = (&mut self.signature.part, stored.part) {
            stored.rows.retain(|name, _| !self.signature.discarded.contains(name));
            now.inherit(stored);
        }
        let mut runs = with_names(stored.runs, &rows);
        runs.append(&mut self.signature.runs);
        self.signature.runs = runs;
        self.rows = rows;
    }

    pub(super) fn inherit_families(&mut self, stored: Option<Measured>) {
        if let (Some(now), Some(stored)) = (&mut self.signature.measured, stored) {
            for (family, rows) in stored.families {
                now.families.entry(family).or_insert(rows);
            }
        }
    }
}

/// Runs with the rows that they wrote, as far as these are there; one that wrote none of them is left out. Rows that no run
/// names were written by the last one.
pub(super) fn with_names<R: Row>(mut runs: Vec<Provenance>, rows: &BTreeMap<R::Key, R>) -> Vec<Provenance> {
    let names: BTreeSet<String> = rows.values().map(Row::name).collect();
    let is_named = |name: &String| runs.iter().any(|run| run.rows.contains(name));
    let unnamed: Vec<String> = rows.values().map(Row::name).filter(|name| !is_named(name)).collect();
    runs.iter_mut().for_each(|run| run.rows.retain(|name| names.contains(name)));
    if let Some(last) = runs.last_mut() {
        last.rows.extend(unnamed);
    }
    runs.retain(|run| !run.rows.is_empty());
    runs
}

/// Takes the lock of the growing file, when what a killed run was publishing has its name.
pub(super) fn locked(place: &Place, partial: &Place) -> Result<LockedFile, Error> {
    let file = LockedFile::open(&partial.csv)?;
    if !partial.finish_publishing(place)? {
        return Ok(file);
    }
    drop(file); // of the file that has its name now
    LockedFile::open(&partial.csv)
}

/// What a killed run has left.
struct Unfinished<R: Row> {
    table: Table<R>,
    signature: Signature,
}

pub(super) fn check_identity(path: &Path, stored: &Identity, now: &Identity) -> Result<(), Error> {
    let differences = now.differences(stored);
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::Identity { path: path.to_owned(), differences: differences.join("; ") })
}

/// Refuses rows without statistics of segments where this run has some: they could not be tested together.
pub(super) fn check_measured(path: &Path, stored: &Signature, now: &Signature) -> Result<(), Error> {
    if now.measured.is_some() && stored.measured.is_none() {
        return Err(Error::NotMeasured { path: path.to_owned() });
    }
    Ok(())
}
