//! Rows that are there, finished or not, with all that belongs to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::place::{Place, bytes};
use crate::segments::{Block, Blocks};
use crate::signature::{Identity, Provenance, Signature};
use crate::table::parse;
use crate::{BASE, Error, Row};

/// The rows of a result file, or of an unfinished one.
#[derive(Debug, Clone)]
pub struct Stored<R: Row> {
    /// The CSV file.
    pub path: PathBuf,
    /// The rows, by key.
    pub rows: BTreeMap<R::Key, R>,
    /// Statistics of their segments.
    pub blocks: Blocks,
    /// Inputs of the numbers, and the runs that wrote the rows, each with their names.
    pub signature: Signature,
}

impl<R: Row> Stored<R> {
    pub(crate) fn empty(path: &Path, signature: Signature) -> Self {
        Self { path: path.to_owned(), rows: BTreeMap::new(), blocks: Blocks::default(), signature }
    }

    /// The rows that a run of the result file `csv` would go on with: those of an unfinished run, and complete ones that it
    /// does not compute again. Absent if there are none.
    ///
    /// # Errors
    /// If a file cannot be read, is no result file, or was edited.
    pub fn read(csv: &Path) -> Result<Option<Self>, Error> {
        let Some(mut unfinished) = Self::unfinished(&Place::partial(csv))? else {
            return Self::complete(&Place::of(csv), None);
        };
        if !unfinished.signature.again
            && let Some(complete) = Self::complete(&Place::of(csv), Some(&unfinished.signature.identity))?
        {
            unfinished.add(complete)?;
        }
        Ok(Some(unfinished))
    }

    /// Complete results; absent where there are no rows.
    ///
    /// - `identity`: what they must have been measured with, if it matters
    pub(crate) fn complete(place: &Place, identity: Option<&Identity>) -> Result<Option<Self>, Error> {
        let Some(bytes) = bytes(&place.csv)? else { return Ok(None) };
        let Some(mut stored) = Self::signed(place, &bytes)? else { return Ok(None) };
        identity.map_or(Ok(()), |identity| stored.check_identity(identity))?;
        place.check_complete(&stored.signature, &bytes)?;
        stored.blocks = Blocks::read(&place.segments)?.unwrap_or_default();
        Ok(Some(stored))
    }

    /// Rows of a run that did not finish; absent where there are none. What a kill has torn is left out.
    pub(crate) fn unfinished(place: &Place) -> Result<Option<Self>, Error> {
        let Some(bytes) = bytes(&place.csv)? else { return Ok(None) };
        let Some(mut stored) = Self::signed(place, &bytes)? else { return Ok(None) };
        let mut blocks = Blocks::read_untorn(&place.segments)?.unwrap_or_default();
        if stored.signature.measured.is_some() {
            stored.take_out(|row| blocks.get(&row.name()).is_none());
        }
        // Statistics come before their row, which a kill may have prevented.
        let names: BTreeSet<String> = stored.rows.values().map(Row::name).collect();
        blocks.retain(|name| names.contains(name) || is_base(name));
        stored.blocks = blocks;
        Ok(Some(stored).filter(|stored| !stored.rows.is_empty()))
    }

    /// The rows with their signature, without which there must be none.
    fn signed(place: &Place, bytes: &[u8]) -> Result<Option<Self>, Error> {
        let signature = Signature::read(&place.signature)?;
        let rows = parse::<R>(&place.csv, bytes)?.rows;
        if rows.is_empty() {
            return Ok(None);
        }
        let Some(mut signature) = signature else {
            let beside = place.signature.display();
            let fault = format!(
                "has rows, but its signature `{beside}` is missing: move it away, or name another file by --output"
            );
            return Err(Error::of(&place.csv, fault));
        };
        signature.runs = with_names(signature.runs, &rows);
        Ok(Some(Self { path: place.csv.clone(), rows, blocks: Blocks::default(), signature }))
    }

    /// Refuses rows that were measured with something else than this.
    pub(crate) fn check_identity(&self, now: &Identity) -> Result<(), Error> {
        let differences = now.differences(&self.signature.identity);
        if differences.is_empty() {
            return Ok(());
        }
        let differences = differences.join("; ");
        let fault = format!(
            "belongs to another run ({differences}): the experiment's --again replaces it, its --output names another file"
        );
        Err(Error::of(&self.path, fault))
    }

    /// Refuses a base that is not the one that the rows are compared with.
    pub(crate) fn check_base(&self, base: &Block) -> Result<(), Error> {
        match self.blocks.get(&base.name) {
            Some(stored) if stored != base && !self.rows.is_empty() => Err(Error::Invalid(format!(
                "the intact model differs in {} of {} segments from when `{}` was begun, on another machine or with other \
                 libraries: compute all rows with --again, remove the file, or name another by --output",
                stored.differences(base),
                base.segments.len(),
                self.path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Takes out rows with all that belongs to them, and returns their names; bases too when no row is left.
    pub(crate) fn take_out(&mut self, unwanted: impl Fn(&R) -> bool) -> BTreeSet<String> {
        let gone: BTreeSet<String> = self.rows.values().filter(|row| unwanted(row)).map(Row::name).collect();
        self.rows.retain(|_, row| !gone.contains(&row.name()));
        self.blocks.retain(|name| !gone.contains(name));
        if self.rows.is_empty() {
            self.blocks = Blocks::default();
        }
        self.signature.runs.iter_mut().for_each(|run| run.rows.retain(|name| !gone.contains(name)));
        self.signature.runs.retain(|run| !run.rows.is_empty());
        gone
    }

    /// [Takes rows out](Self::take_out) that nobody is to measure any more.
    pub(crate) fn give_up(&mut self, unwanted: impl Fn(&R) -> bool) {
        let gone = self.take_out(unwanted);
        if let Some(part) = &mut self.signature.part {
            part.rows.retain(|name, _| !gone.contains(name));
        }
    }

    /// Adds the rows of others that are missing here, with all that belongs to them.
    ///
    /// # Errors
    /// If they are compared with another base.
    pub(crate) fn add(&mut self, mut others: Self) -> Result<(), Error> {
        others.take_out(|row| self.rows.contains_key(&row.key()));
        let differs = |block: &Block| self.check_base(block).is_err();
        if others.blocks.iter().any(differs) {
            let (path, other) = (self.path.display(), others.path.display());
            return Err(Error::Invalid(format!(
                "the intact model differs between `{path}` and `{other}`, on other machines or with other libraries: measure one \
                 of them again with the experiment's --again"
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

/// Returns true for the name of an intact model's statistics: `base`, or of a checkpoint `1200/base`.
fn is_base(name: &str) -> bool {
    name.rsplit('/').next() == Some(BASE)
}

/// Runs with the rows that they wrote, as far as these are there; one that wrote none of them is left out. Rows that no run
/// names were written by the last one.
fn with_names<R: Row>(mut runs: Vec<Provenance>, rows: &BTreeMap<R::Key, R>) -> Vec<Provenance> {
    let names: BTreeSet<String> = rows.values().map(Row::name).collect();
    let is_named = |name: &String| runs.iter().any(|run| run.rows.contains(name));
    let unnamed: Vec<String> = names.iter().filter(|name| !is_named(name)).cloned().collect();
    runs.iter_mut().for_each(|run| run.rows.retain(|name| names.contains(name)));
    if let Some(last) = runs.last_mut() {
        last.rows.extend(unnamed);
    }
    runs.retain(|run| !run.rows.is_empty());
    runs
}
