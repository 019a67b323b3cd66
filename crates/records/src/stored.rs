//! Rows of result files, with their signature and the statistics of their segments, read and checked together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::place::{Place, bytes};
use crate::segments::{Block, Blocks, check_segments, is_predicted, row_of};
use crate::signature::{Identity, Provenance, Signature};
use crate::table::{Table, check_complete, parse};
use crate::{BASE, Error, Row};

/// Rows of a result file, complete or not.
#[derive(Debug, Clone)]
pub struct Stored<R: Row> {
    /// The CSV file.
    pub path: PathBuf,
    /// The rows, by key.
    pub rows: BTreeMap<R::Key, R>,
    /// Statistics of their segments.
    pub blocks: Blocks,
    /// Inputs of the numbers, and the runs that wrote the rows.
    pub signature: Signature,
}

impl<R: Row> Stored<R> {
    pub(crate) fn empty(path: &Path, signature: Signature) -> Self {
        Self { path: path.to_owned(), rows: BTreeMap::new(), blocks: Blocks::default(), signature }
    }

    /// Reads complete results; `None` without rows.
    ///
    /// # Errors
    /// If a file cannot be read, or rows or statistics are not the ones that the signature was completed with.
    pub fn complete(csv: &Path) -> Result<Option<Self>, Error> {
        Self::complete_of(&Place::of(csv), None)
    }

    /// Reads the complete results that the run with the signature `now` adds to.
    ///
    /// - `again`: ignore results of this experiment and setup that do not fit, since they will be replaced
    ///
    /// # Errors
    /// As for [`complete`](Self::complete), or if they belong to another run or lack statistics that this run stores.
    pub fn earlier(csv: &Path, now: &Signature, again: bool) -> Result<Option<Self>, Error> {
        let place = Place::of(csv);
        let found = Self::complete_of(&place, Some(&now.identity));
        Self::fitting(found, &place, (now, again))
    }

    /// Refuses rows that do not fit a run, as [`earlier`](Self::earlier) does.
    pub(crate) fn fitting(
        found: Result<Option<Self>, Error>,
        place: &Place,
        (now, again): (&Signature, bool),
    ) -> Result<Option<Self>, Error> {
        let fits = |stored: &Self| {
            stored.check_identity(&now.identity)?;
            if now.measured.is_none() || stored.signature.measured.is_some() {
                return Ok(());
            }
            let fault = "has no statistics of segments, which tests require: --again measures it again";
            Err(Error::of(&stored.path, fault))
        };
        let is_same = |old: &Identity| {
            (&old.experiment, &old.subject) == (&now.identity.experiment, &now.identity.subject)
        };
        match found.and_then(|found| found.map(|stored| fits(&stored).map(|()| stored)).transpose()) {
            Err(Error::Invalid(_))
                if again && Signature::read(&place.signature)?.is_some_and(|old| is_same(&old.identity)) =>
            {
                Ok(None)
            }
            found => found,
        }
    }

    /// - `identity`: inputs that the rows must have been measured with; `None` for any
    pub(crate) fn complete_of(place: &Place, identity: Option<&Identity>) -> Result<Option<Self>, Error> {
        let Some((signature, table, bytes)) = signed(place, false)? else { return Ok(None) };
        let mut stored = Self { rows: table.rows, ..Self::empty(&place.csv, signature) };
        identity.map_or(Ok(()), |identity| stored.check_identity(identity))?;
        check_complete(&place.csv, &bytes, stored.rows.len(), Some(&stored.signature))?;
        let blocks = Blocks::beside(&place.csv, &stored.signature)?;
        if blocks.is_none() {
            check_segments(&place.segments, None, &stored.signature)?;
        }
        stored.blocks = blocks.unwrap_or_default();
        stored.name_rows();
        Ok(Some(stored))
    }

    /// Reads the rows of an unfinished run, without torn ends; `None` without rows.
    pub(crate) fn unfinished(place: &Place) -> Result<Option<Self>, Error> {
        let Some((signature, table, _)) = signed(place, true)? else { return Ok(None) };
        let mut stored = Self { rows: table.rows, ..Self::empty(&place.csv, signature) };
        let mut blocks = Blocks::read_untorn(&place.segments)?.unwrap_or_default();
        if stored.signature.measured.is_some() {
            stored.rows.retain(|_, row| blocks.get(&row.name()).is_some());
        }
        // A kill can prevent a row from being written after its statistics.
        let names: BTreeSet<String> = stored.rows.values().map(Row::name).collect();
        blocks.retain(|name| names.contains(name) || is_base(name) || is_predicted(name));
        stored.blocks = blocks;
        stored.name_rows();
        Ok(Some(stored).filter(|stored| !stored.rows.is_empty()))
    }

    /// Reads the rows that a run of the result file `csv` would continue with: unfinished ones, and complete ones that are not measured
    /// again. `None` without rows.
    ///
    /// # Errors
    /// As for [`complete`](Self::complete), or if a file is not a result.
    pub fn read(csv: &Path) -> Result<Option<Self>, Error> {
        let Some(mut unfinished) = Self::unfinished(&Place::partial(csv))? else {
            return Self::complete(csv);
        };
        if !unfinished.signature.again
            && let Some(complete) = Self::complete_of(&Place::of(csv), Some(&unfinished.signature.identity))?
        {
            unfinished.add(complete)?;
        }
        Ok(Some(unfinished))
    }

    /// Assigns rows that no run names to the last run, and leaves out runs without rows.
    fn name_rows(&mut self) {
        let names: BTreeSet<String> = self.rows.values().map(Row::name).collect();
        let runs = &mut self.signature.runs;
        let is_named = |name: &&String| runs.iter().any(|run| run.rows.contains(name));
        let unnamed: Vec<String> = names.iter().filter(|name| !is_named(name)).cloned().collect();
        if let Some(last) = runs.last_mut() {
            last.rows.extend(unnamed);
        }
        keep_rows_of(runs, |name| names.contains(name));
    }

    fn check_identity(&self, now: &Identity) -> Result<(), Error> {
        let differences = now.differences(&self.signature.identity);
        if differences.is_empty() {
            return Ok(());
        }
        let differences = differences.join("; ");
        let fault = format!(
            "belongs to another run ({differences}): replace it with the experiment's --again, or choose another file with its --output"
        );
        Err(Error::of(&self.path, fault))
    }

    /// Refuses a base other than the one that the rows are compared with.
    pub(crate) fn check_base(&self, base: &Block) -> Result<(), Error> {
        match self.blocks.get(&base.name) {
            Some(stored) if stored != base && !self.rows.is_empty() => Err(Error::Invalid(format!(
                "the full model differs in {} of {} segments from `{}`, which was begun on another machine or with other \
                 libraries: measure all rows with --again, remove the file, or choose another with --output",
                stored.differences(base),
                base.segments.len(),
                self.path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Leaves out rows, with their statistics and the runs that measured only them, and returns their names; if no rows remain, leaves out
    /// bases too.
    pub(crate) fn leave_out(&mut self, unwanted: impl Fn(&R) -> bool) -> BTreeSet<String> {
        let gone: BTreeSet<String> = self.rows.values().filter(|row| unwanted(row)).map(Row::name).collect();
        self.rows.retain(|_, row| !gone.contains(&row.name()));
        self.blocks.retain(|name| !gone.contains(row_of(name)) && !self.rows.is_empty());
        keep_rows_of(&mut self.signature.runs, |name| !gone.contains(name));
        gone
    }

    /// Adds earlier rows that are missing here, like [`add`](Self::add).
    ///
    /// - `again`: the rows here replace all rows of their [series](Row::series)
    pub fn add_earlier(&mut self, mut earlier: Self, again: bool) -> Result<(), Error> {
        let series: BTreeSet<String> = self.rows.values().filter(|_| again).map(Row::series).collect();
        earlier.leave_out(|row| series.contains(&row.series()));
        self.add(earlier)
    }

    /// Adds the rows of others that are missing here, with their statistics and runs.
    ///
    /// # Errors
    /// If they are compared with another base.
    pub fn add(&mut self, mut others: Self) -> Result<(), Error> {
        others.leave_out(|row| self.rows.contains_key(&row.key()));
        if others.blocks.iter().any(|block| self.check_base(block).is_err()) {
            let (path, other) = (self.path.display(), others.path.display());
            return Err(Error::Invalid(format!(
                "the full model differs between `{path}` and `{other}`, which come from different machines or libraries: measure \
                 one of them again with the experiment's --again"
            )));
        }
        if self.rows.is_empty() {
            self.path.clone_from(&others.path);
        }
        self.rows.append(&mut others.rows);
        self.blocks.add(others.blocks);
        self.signature.inherit(others.signature);
        Ok(())
    }
}

type Signed<R> = (Signature, Table<R>, Vec<u8>);

/// Reads a file with rows; `None` without rows.
///
/// - `is_growing`: if several rows have one key, the last one counts
fn signed<R: Row>(place: &Place, is_growing: bool) -> Result<Option<Signed<R>>, Error> {
    let Some(bytes) = bytes(&place.csv)? else { return Ok(None) };
    let signature = Signature::read(&place.signature)?;
    let table = parse::<R>(&place.csv, &bytes, is_growing)?;
    if table.rows.is_empty() {
        return Ok(None);
    }
    let signature = signature.ok_or_else(|| {
        let beside = place.signature.display();
        let fault = format!(
            "has rows, but its signature `{beside}` is missing: move the file away, or choose another with --output"
        );
        Error::of(&place.csv, fault)
    })?;
    Ok(Some((signature, table, bytes)))
}

/// Removes all other rows, and runs without remaining rows.
fn keep_rows_of(runs: &mut Vec<Provenance>, keep: impl Fn(&String) -> bool) {
    runs.iter_mut().for_each(|run| run.rows.retain(&keep));
    runs.retain(|run| !run.rows.is_empty());
}

/// Returns true for the name of a full model's statistics: `base`, or `1200/base` for a checkpoint.
fn is_base(name: &str) -> bool {
    name.rsplit('/').next() == Some(BASE)
}
