//! Complete results: what of them is used, and what becomes of them when their successors are complete.

use std::collections::{BTreeMap, BTreeSet};

use super::RowWriter;
use super::opening::{check_identity, check_measured, with_names};
use crate::place::Place;
use crate::segments::Blocks;
use crate::signature::{Provenance, Signature};
use crate::stored::{Stored, bytes};
use crate::table::parse;
use crate::{Error, Row};

impl<R: Row> RowWriter<R> {
    /// The complete results; absent where there are no rows.
    ///
    /// # Errors
    /// If they are of another run, of an older version, edited, or no results.
    pub(super) fn complete(&self) -> Result<Option<Stored<R>>, Error> {
        let csv = &self.place.csv;
        let is_of_this_run =
            |stored: &Signature| check_identity(csv, &stored.identity, &self.signature.identity);
        let there = Stored::complete(&self.place, is_of_this_run)?;
        let Some(there) = there.filter(|there| !there.rows.is_empty()) else { return Ok(None) };
        check_measured(csv, &there.signature, &self.signature)?;
        Ok(Some(there))
    }

    /// Puts complete rows back that are missing: an unfinished run was to compute them again, and this one was not asked to.
    /// Those that cannot be used, or that are of another base than the rows that are there, stay where they are.
    pub(super) fn carry_over(&mut self) -> Result<(), Error> {
        let there = match self.complete() {
            Err(error @ Error::Read { .. }) => return Err(error),
            there => there.ok().flatten(),
        };
        let Some(there) = there else { return Ok(()) };
        let discarded = self.signature.discarded.clone();
        let mut rows = self.take_over(there, |row| !discarded.contains(&row.name()));
        if self.is_resumed && !rows.is_empty() {
            // Lest a kill while publishing makes them pass for new ones.
            self.begin()?;
            self.signature.old.extend(rows.values().map(Row::name));
            self.signature.write(&self.partial.signature)?;
        }
        self.rows.append(&mut rows);
        Ok(())
    }

    /// Rows that are missing here and wanted, to be put among the others; their statistics, families and runs are then known
    /// here. None where the bases are not those of the rows that are there.
    pub(super) fn take_over(
        &mut self,
        stored: Stored<R>,
        is_wanted: impl Fn(&R) -> bool,
    ) -> BTreeMap<R::Key, R> {
        let Stored { mut rows, blocks, signature, .. } = stored;
        let runs = with_names(signature.runs, &rows);
        let names: BTreeSet<String> = rows.values().map(Row::name).collect();
        rows.retain(|key, row| !self.rows.contains_key(key) && is_wanted(row));
        if rows.is_empty() || !self.fit(&blocks, &names) {
            return BTreeMap::new();
        }
        let taken: BTreeSet<String> = rows.values().map(Row::name).collect();
        self.blocks.add(&blocks, |name| taken.contains(name) || !names.contains(name));
        self.inherit_families(signature.measured);
        self.name_again(runs, &taken);
        rows
    }

    /// Whether the bases of complete results, which are blocks that are no row's, are those of the rows that are there.
    fn fit(&self, complete: &Blocks, rows: &BTreeSet<String>) -> bool {
        let mut bases = complete.iter().filter(|block| !rows.contains(&block.name));
        self.rows.is_empty() || bases.all(|base| self.blocks.get(&base.name).is_none_or(|own| own == base))
    }

    /// Lets the runs that wrote rows name them again.
    fn name_again(&mut self, stored: Vec<Provenance>, carried: &BTreeSet<String>) {
        let without_rows = |run: &Provenance| Provenance { rows: Vec::new(), ..run.clone() };
        for mut run in stored {
            run.rows.retain(|name| carried.contains(name));
            // The last one is this run, unless it only revises.
            let earlier = self.signature.runs.len().saturating_sub(usize::from(!self.is_revision));
            let runs = &mut self.signature.runs[..earlier];
            if run.rows.is_empty() {
                continue;
            }
            match runs.iter_mut().find(|known| without_rows(known) == without_rows(&run)) {
                Some(known) => known.rows.append(&mut run.rows),
                None => {
                    let is_later = |known: &Provenance| known.started_unix_seconds > run.started_unix_seconds;
                    let place = runs.iter().position(is_later).unwrap_or(earlier);
                    self.signature.runs.insert(place, run);
                }
            }
        }
    }

    /// Gives complete results that hold rows without a successor another name: those of another run their own, those that
    /// are of no use any more `<stem>.old.csv`.
    ///
    /// - `keys`: of the new results
    pub(super) fn spare_rows_without_successors(&self, keys: &[R::Key]) -> Result<(), Error> {
        let Some(bytes) = bytes(&self.place.csv)? else { return Ok(()) };
        let signature = Signature::read(&self.place.signature).ok().flatten();
        let other = signature.filter(|stored| stored.identity != self.signature.identity);
        let table = parse::<R>(&self.place.csv, &bytes);
        let has_successor = |(key, row): (&R::Key, &R)| {
            let is_discarded = other.is_none() && self.signature.discarded.contains(&row.name());
            is_discarded || keys.binary_search(key).is_ok()
        };
        if table.as_ref().is_ok_and(|table| table.rows.iter().all(has_successor)) {
            return Ok(());
        }
        let is_whole = |stored: &Signature| self.place.check_complete(stored, &bytes).is_ok();
        let name = match other.filter(|stored| table.is_ok() && is_whole(stored)) {
            Some(stored) => stored.identity.own_path(&self.place.csv),
            None => self.place.csv.with_extension("old.csv"),
        };
        self.place.move_to(&Place::free(&name))
    }
}
