//! Rows that are there, finished or not, with what belongs to them.

use stats::family::Comparison;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::file;
use crate::place::Place;
use crate::segments::{Block, Blocks};
use crate::signature::Signature;
use crate::table::parse;
use crate::{BASE, Error, Row, TestedRow};

/// The rows of a result file, or of an unfinished one.
#[derive(Debug, Clone)]
pub struct Stored<R: Row> {
    /// The CSV file.
    pub path: PathBuf,
    /// The rows, by key.
    pub rows: BTreeMap<R::Key, R>,
    /// Statistics of their segments.
    pub blocks: Blocks,
    /// What they depend on, and the runs that wrote them.
    pub signature: Signature,
}

impl<R: Row> Stored<R> {
    /// What is at `csv` and what an unfinished run beside it has, either of which may be absent. Other processes may be
    /// writing them.
    ///
    /// # Errors
    /// If a file cannot be read, is no result file, or was edited.
    pub fn read(csv: &Path) -> Result<Vec<Self>, Error> {
        // The unfinished first: what is published in between is then read twice, not missed.
        let unfinished = Self::unfinished(&Place::partial(csv))?;
        let complete = Self::complete(&Place::of(csv), |_| Ok(()))?;
        Ok(complete.into_iter().chain(unfinished).collect())
    }

    /// Complete results; absent where there is no file.
    ///
    /// - `check`: what else a signature must be, asked before anything is read by it
    ///
    /// # Errors
    /// As for [`read`](Self::read), or as `check` says.
    pub(crate) fn complete(
        place: &Place,
        check: impl FnOnce(&Signature) -> Result<(), Error>,
    ) -> Result<Option<Self>, Error> {
        let Some(bytes) = bytes(&place.csv)? else { return Ok(None) };
        let signature = Signature::read(&place.signature)?;
        let rows = parse::<R>(&place.csv, &bytes)?.rows;
        let Some(signature) = signed(&place.csv, signature, &rows)? else { return Ok(None) };
        if !rows.is_empty() {
            check(&signature)?;
            place.check_complete(&signature, &bytes)?;
        }
        let blocks = Blocks::read(&place.segments)?.unwrap_or_default();
        Ok(Some(Self { path: place.csv.clone(), rows, blocks, signature }))
    }

    /// What a run has left that did not finish, or has done so far; absent if that is nothing.
    fn unfinished(place: &Place) -> Result<Option<Self>, Error> {
        let Some(bytes) = bytes(&place.csv)? else { return Ok(None) };
        let mut rows = parse::<R>(&place.csv, &bytes)?.rows;
        let signature = Signature::read(&place.signature)?;
        let Some(signature) = signed(&place.csv, signature, &rows)? else { return Ok(None) };
        let mut blocks = Blocks::read_untorn(&place.segments)?.unwrap_or_default();
        rows.retain(|_, row| signature.measured.is_none() || blocks.get(&row.name()).is_some());
        // Statistics come before their row, which a kill may have prevented.
        let names: BTreeSet<String> = rows.values().map(Row::name).collect();
        blocks.retain(|name| names.contains(name) || is_base(name));
        Ok(Some(Self { path: place.csv.clone(), rows, blocks, signature }))
    }
}

/// Whether statistics are those of an intact model: `base`, or of a checkpoint `1200/base`.
fn is_base(name: &str) -> bool {
    name.rsplit('/').next() == Some(BASE)
}

/// The signature, without which there must be no rows.
fn signed<R: Row>(
    csv: &Path,
    signature: Option<Signature>,
    rows: &BTreeMap<R::Key, R>,
) -> Result<Option<Signature>, Error> {
    if signature.is_none() && !rows.is_empty() {
        return Err(no_signature(csv));
    }
    Ok(signature)
}

pub(crate) fn no_signature(csv: &Path) -> Error {
    Error::NoSignature { path: csv.to_owned(), signature: Signature::path_beside(csv) }
}

/// The file, if there is one that is not empty.
pub(crate) fn bytes(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    Ok(file::read_if_there(path)?.filter(|bytes| !bytes.is_empty()))
}

/// The row without what tests said, which depends on the rows beside it.
pub(crate) fn untested<R: TestedRow>(mut row: R) -> R {
    let tests = row.tests();
    row.record(&Comparison::untested(tests.base, tests.variant));
    row
}

/// Refuses files of which one says otherwise than another: the bases, their scores and the rows that both have must be equal.
///
/// # Errors
/// [`Error::BasesDiffer`] or [`Error::RowsDiffer`], which name the files.
pub fn check_agreement<R: TestedRow + Clone + PartialEq>(files: &[&Stored<R>]) -> Result<(), Error> {
    let mut seen = Seen::default();
    files.iter().try_for_each(|file| {
        file.rows.values().try_for_each(|row| {
            seen.base(file, row)?;
            seen.row(file, row)
        })
    })
}

/// What files have said so far.
struct Seen<'a, R: Row> {
    bases: BTreeMap<String, (&'a Path, f64, Option<&'a Block>)>,
    rows: BTreeMap<String, (&'a Path, R, Option<&'a Block>)>,
}

impl<R: Row> Default for Seen<'_, R> {
    fn default() -> Self {
        Self { bases: BTreeMap::new(), rows: BTreeMap::new() }
    }
}

impl<'a, R: TestedRow + Clone + PartialEq> Seen<'a, R> {
    fn base(&mut self, file: &'a Stored<R>, row: &R) -> Result<(), Error> {
        let (score, block) = (row.tests().base, file.blocks.get(&row.base()));
        let (other, known, stored) = *self.bases.entry(row.base()).or_insert((&file.path, score, block));
        let fault = match (block, stored) {
            _ if known != score => format!("it scores {known} and {score}"),
            (Some(block), Some(stored)) if block != stored => {
                format!("in {} of {} segments", stored.differences(block), stored.segments.len())
            }
            (None, Some(_)) | (Some(_), None) => "one lacks its statistics".to_owned(),
            _ => return Ok(()),
        };
        Err(Error::BasesDiffer { path: file.path.clone(), other: other.to_owned(), fault })
    }

    fn row(&mut self, file: &'a Stored<R>, row: &R) -> Result<(), Error> {
        let now = (untested(row.clone()), file.blocks.get(&row.name()));
        let (other, known, stored) =
            self.rows.entry(row.name()).or_insert_with(|| (&file.path, now.0.clone(), now.1));
        if *known == now.0 && *stored == now.1 {
            return Ok(());
        }
        Err(Error::RowsDiffer { row: row.name(), path: file.path.clone(), other: other.to_path_buf() })
    }
}
