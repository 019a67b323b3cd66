//! A CSV file that grows row by row, survives being killed, and takes the place of an earlier one when it is complete.
//!
//! Rows go to `ablate-one.partial.csv`; `ablate-one.csv`, its signature and the statistics of its segments stay as they are
//! until their successors are complete.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::file::{LockedFile, read_error, replace, write_error};
use crate::place::Place;
use crate::segments::{Block, Blocks, SegmentsWriter};
use crate::signature::{Complete, Identity, Signature, sha256};
use crate::table::{Table, header, line, parse};
use crate::{Error, Row};

/// What to do with complete results that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Keep their rows, which must be of a run with the same identity, and add those that are missing.
    Use,
    /// As [`Use`](Self::Use), but [`RowWriter::renew`] takes rows out, to be computed again, and rows of another run are no
    /// obstacle. The old ones stay until the new ones are complete.
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
    /// Whether complete rows are to be computed again.
    is_again: bool,
    /// The complete rows that this run started from.
    kept: Vec<String>,
    added: Vec<String>,
    started: Instant,
}

impl<R: Row> RowWriter<R> {
    /// Opens the results at `path`, a CSV file that need not be there.
    ///
    /// An unfinished run with the same identity is continued: its complete rows are kept, and what an interruption has torn
    /// is cut off. Otherwise the rows of complete results are used or computed again, as `existing` says.
    ///
    /// # Errors
    /// If the rows that are there belong to another run (unless they are to be computed again), are no results at all, or
    /// are being written by another process; or if the folder cannot be written.
    pub fn open(path: &Path, signature: &Signature, existing: Existing) -> Result<Self, Error> {
        check_extension(path)?;
        let (place, partial) = (Place::of(path), Place::partial(path));
        let mut file = LockedFile::open(&partial.csv)?;
        if partial.finish_publishing(&place)? {
            drop(file); // of the file that has its name now
            file = LockedFile::open(&partial.csv)?;
        }
        let empty = Self::empty(place, partial, file, signature);
        match empty.unfinished(existing) {
            Ok(Some(unfinished)) => empty.resume(unfinished),
            Ok(None) => empty.start(existing),
            Err(error) => Err(error),
        }
    }

    /// Opens complete results to test them again; no run is added to their signature.
    ///
    /// # Errors
    /// If there are none, or an unfinished run stands beside them.
    pub fn revise(path: &Path) -> Result<Self, Error> {
        let signature = Signature::read(&Signature::path_beside(path))?;
        let signature = signature.ok_or_else(|| no_signature(path))?;
        let writer = Self::open(path, &signature, Existing::Use)?;
        if writer.is_begun {
            return Err(Error::Unfinished { path: writer.partial.csv.clone() });
        }
        let runs = signature.runs.clone();
        let mut writer = writer;
        writer.signature.runs = runs;
        Ok(writer)
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
            is_again: false,
            kept: Vec::new(),
            added: Vec::new(),
            started: Instant::now(),
        }
    }

    /// What an earlier run has left of its work, if it is of use now.
    fn unfinished(&self, existing: Existing) -> Result<Option<Unfinished<R>>, Error> {
        let csv = &self.partial.csv;
        let bytes = fs::read(csv).map_err(|source| read_error(csv, source))?;
        let signature = Signature::read(&self.partial.signature)?;
        if bytes.is_empty() && signature.is_none() {
            return Ok(None);
        }
        let table = parse(csv, &bytes)?;
        let signature = match signature {
            Some(signature) => signature,
            None if table.rows.is_empty() => return Ok(None),
            None => return Err(no_signature(csv)),
        };
        match check_identity(csv, &signature.identity, &self.signature.identity) {
            Ok(()) => Ok(Some(Unfinished { table, signature })),
            Err(_) if existing == Existing::Again || table.rows.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Continues an unfinished run.
    fn resume(mut self, unfinished: Unfinished<R>) -> Result<Self, Error> {
        let Unfinished { table, signature } = unfinished;
        self.file.truncate(table.complete).map_err(|source| write_error(&self.partial.csv, source))?;
        let segments = SegmentsWriter::open(&self.partial.segments)?;
        self.blocks = segments.blocks.clone();
        self.segments = Some(segments);
        self.is_begun = table.complete > 0;
        self.inherit(table.rows, signature);
        if self.is_begun {
            self.signature.write(&self.partial.signature)?;
        }
        Ok(self)
    }

    /// Starts from complete results, if there are any that are to be kept.
    fn start(mut self, existing: Existing) -> Result<Self, Error> {
        self.file.truncate(0).map_err(|source| write_error(&self.partial.csv, source))?;
        self.partial.remove_beside_csv()?;
        let csv = &self.place.csv;
        let bytes = match fs::read(csv) {
            Ok(bytes) if !bytes.is_empty() => bytes,
            Err(source) if source.kind() != ErrorKind::NotFound => return Err(read_error(csv, source)),
            _ => return Ok(self),
        };
        let stored = Signature::read(&self.place.signature)?;
        self.is_again = existing == Existing::Again;
        // Whatever has such a signature was written here, if perhaps by another run, or since edited.
        if let Some(stored) = stored.as_ref().filter(|_| self.is_again)
            && (stored.identity != self.signature.identity
                || self.place.check_complete(stored, &bytes).is_err())
        {
            return Ok(self);
        }
        let table: Table<R> = match parse(csv, &bytes) {
            // Columns of an older version.
            Err(Error::Header { .. }) if self.is_again && stored.is_some() => return Ok(self),
            table => table?,
        };
        if table.rows.is_empty() {
            return Ok(self);
        }
        let stored = stored.ok_or_else(|| no_signature(csv))?;
        check_identity(csv, &stored.identity, &self.signature.identity)?;
        self.place.check_complete(&stored, &bytes)?;
        self.blocks = Blocks::read(&self.place.segments)?.unwrap_or_default();
        self.kept = table.rows.values().map(line).collect();
        self.inherit(table.rows, stored);
        Ok(self)
    }

    /// Takes over the rows of earlier runs, and the families that they belong to. Rows that no run names were written by the
    /// last one.
    fn inherit(&mut self, rows: BTreeMap<R::Key, R>, stored: Signature) {
        let mut runs = stored.runs;
        if let (Some(now), Some(stored)) = (&mut self.signature.measured, stored.measured) {
            for (family, rows) in stored.families {
                now.families.entry(family).or_insert(rows);
            }
        }
        let mut unnamed: Vec<String> = rows.values().map(Row::name).collect();
        unnamed.retain(|name| !runs.iter().any(|run| run.rows.contains(name)));
        if let Some(last) = runs.last_mut() {
            last.rows.extend(unnamed);
        }
        runs.append(&mut self.signature.runs);
        self.signature.runs = runs;
        self.rows = rows;
    }

    /// The rows that are there, in the order of their keys.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &R> {
        self.rows.values()
    }

    /// Whether the row with this key is there.
    pub fn contains(&self, key: &R::Key) -> bool {
        self.rows.contains_key(key)
    }

    /// How rows are tested, and how many make a family, as the signature is to have it.
    pub fn signature_mut(&mut self) -> &mut Signature {
        &mut self.signature
    }

    /// Takes rows out, to be computed again. Complete results that are there stay as they are.
    ///
    /// # Errors
    /// If the file cannot be written; it is then as it was.
    pub fn discard(&mut self, unwanted: impl Fn(&R) -> bool) -> Result<(), Error> {
        if self.is_begun {
            let kept: String = self.rows.values().filter(|row| !unwanted(row)).map(line).collect();
            self.rewrite(&(header::<R>() + &kept))?;
        }
        self.rows.retain(|_, row| !unwanted(row));
        Ok(())
    }

    /// Takes out complete rows that are to be computed again, if this run is to do so. Those that an unfinished run has
    /// computed already stay.
    pub fn renew(&mut self, unwanted: impl Fn(&R) -> bool) {
        if !self.is_again {
            return;
        }
        let discarded: Vec<String> = self.rows.values().filter(|row| unwanted(row)).map(Row::name).collect();
        self.rows.retain(|_, row| !unwanted(row));
        if self.rows.is_empty() {
            self.blocks = Blocks::default();
            self.signature.runs.drain(..self.signature.runs.len() - 1);
        } else {
            self.blocks.retain(|name| !discarded.iter().any(|discarded| discarded == name));
        }
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
                path: self.place.csv.clone(),
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

    /// Puts what is known into the growing files before anything is added, the signature first, so that no row is without
    /// one. A run that adds nothing leaves no trace.
    fn begin(&mut self) -> Result<(), Error> {
        if self.is_begun {
            return Ok(());
        }
        self.signature.write(&self.partial.signature)?;
        if !self.blocks.is_empty() {
            let bytes = self.blocks.bytes();
            durable::write(&self.partial.segments, bytes)?;
        }
        let rows: String = self.rows.values().map(line).collect();
        let text = header::<R>() + &rows;
        self.file.append(&text).map_err(|source| write_error(&self.partial.csv, source))?;
        self.is_begun = true;
        Ok(())
    }

    /// Lets `complete` fill in what needs all rows, such as tests, then makes these rows, in the order of their keys, the
    /// results, and returns them.
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
        let (keys, mut rows): (Vec<_>, Vec<_>) = std::mem::take(&mut self.rows).into_iter().unzip();
        complete(&mut rows, &mut self.blocks)?;
        assert!(rows.iter().map(R::key).eq(keys), "completing rows must not change their keys");
        let lines: Vec<String> = rows.iter().map(line).collect();
        if !self.is_begun && self.has_nothing_new(&lines)? {
            return Ok(rows);
        }
        self.publish(&lines)?;
        Ok(rows)
    }

    /// Whether the complete results are all that there would be.
    fn has_nothing_new(&self, lines: &[String]) -> Result<bool, Error> {
        let Some(stored) = Signature::read(&self.place.signature)? else { return Ok(false) };
        let is_same = |now: &Signature| stored.measured == now.measured && stored.testing == now.testing;
        Ok(self.kept == lines && stored.complete.is_some() && is_same(&self.signature))
    }

    fn publish(&mut self, lines: &[String]) -> Result<(), Error> {
        self.begin()?;
        let text = header::<R>() + &lines.concat();
        let segments = (!self.blocks.is_empty()).then(|| self.blocks.bytes());
        self.segments = None;
        if let Some(bytes) = &segments {
            durable::write(&self.partial.segments, bytes)?;
        }
        self.rewrite(&text)?;
        self.sign_off();
        let complete = Complete {
            rows: lines.len(),
            sha256: sha256(text.as_bytes()),
            segments_sha256: segments.as_deref().map(sha256),
        };
        self.signature.complete = Some(complete.clone());
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
        if let [only] = runs.as_mut_slice() {
            only.rows.clear();
        }
    }
}

impl<R: Row> Drop for RowWriter<R> {
    fn drop(&mut self) {
        if !self.is_begun {
            let _ = fs::remove_file(&self.partial.csv); // an empty file, there for its lock
        }
    }
}

/// What a killed run has left.
struct Unfinished<R: Row> {
    table: Table<R>,
    signature: Signature,
}

/// Where the results of a run go: to `path`, or beside it to a [name of their own](Identity::own_path) where that holds
/// results of another run. The latter comes with what differs.
///
/// # Errors
/// If a signature that is there cannot be read.
pub fn place_of(path: &Path, identity: &Identity) -> Result<(PathBuf, Option<String>), Error> {
    for place in [Place::of(path), Place::partial(path)] {
        let stored = Signature::read(&place.signature)?;
        let differences = stored.map_or(Vec::new(), |stored| identity.differences(&stored.identity));
        if !differences.is_empty() && place.csv.exists() {
            return Ok((identity.own_path(path), Some(differences.join("; "))));
        }
    }
    Ok((path.to_owned(), None))
}

/// Refuses a result file that could not be written, before any long work.
///
/// # Errors
/// If the name does not end in `.csv`, or the file cannot be opened or is being written.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    check_extension(path)?;
    if path.is_dir() {
        return Err(Error::NotAFile { path: path.to_owned() });
    }
    let partial = Place::partial(path);
    let was_there = partial.csv.exists();
    let file = LockedFile::open(&partial.csv)?;
    if !was_there {
        let _ = fs::remove_file(&partial.csv); // it was made to see whether it can be
    }
    drop(file);
    Ok(())
}

fn check_extension(path: &Path) -> Result<(), Error> {
    if path.extension().is_some_and(|extension| extension == "csv") {
        Ok(())
    } else {
        Err(Error::Extension { path: path.to_owned() })
    }
}

fn check_identity(path: &Path, stored: &Identity, now: &Identity) -> Result<(), Error> {
    let differences = now.differences(stored);
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::Identity { path: path.to_owned(), differences: differences.join("; ") })
}

fn no_signature(csv: &Path) -> Error {
    Error::NoSignature { path: csv.to_owned(), signature: Signature::path_beside(csv) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::*;
    use crate::{AblationRow, BASE, Provenance, TrainingRow, read_rows};

    type Writer = RowWriter<AblationRow>;

    fn signature(seed: u64) -> Signature {
        let identity = Identity { seed: Some(seed), ..Identity::new("ablate-one", "demo-translation") };
        Signature::new(identity, Provenance::collect("cpu", 2, BTreeMap::new()))
    }

    /// A row whose numbers depend on its head alone, as those of an experiment do.
    fn row(attention: &str, head: usize) -> AblationRow {
        AblationRow {
            delta_low: Some(-1.0 / 3.0),
            p_value: Some(0.01 * head as f64),
            ..AblationRow::untested(attention, (1, head), "bleu", 36.05, 36.05 - 0.1 * head as f64)
        }
    }

    const COLUMNS: [&str; 2] = ["gold", "predicted"];

    /// Statistics of 40 segments that depend on the head alone; those of the base are of no head.
    fn block(name: &str, head: u32) -> Block {
        let cells =
            |head: u32| (0..40).map(|n: u32| vec![1, u32::from(n % 7 < head % 5)]).collect::<Vec<_>>();
        Block::new(name.to_owned(), &cells(head), (name != BASE).then(|| cells(0)).as_deref())
    }

    fn add(writer: &mut Writer, row: AblationRow) -> Result<(), Error> {
        let block = block(&row.name(), row.head as u32);
        writer.push_measured(row, &COLUMNS, block)
    }

    fn finish(writer: Writer) -> Vec<AblationRow> {
        writer.finish(test).unwrap()
    }

    fn test(rows: &mut [AblationRow], blocks: &mut Blocks) -> Result<(), Error> {
        let names: BTreeSet<String> = rows.iter().map(Row::name).chain([BASE.to_owned()]).collect();
        assert!(names.iter().all(|name| blocks.get(name).is_some()), "a row has no statistics");
        blocks.retain(|name| names.contains(name));
        adjust(rows);
        Ok(())
    }

    /// Stands for the tests: looks at all rows of the attention type.
    fn adjust(rows: &mut [AblationRow]) {
        for index in 0..rows.len() {
            let family = rows.iter().filter(|row| row.attention == rows[index].attention).count();
            rows[index].p_adjusted = rows[index].p_value.map(|p| p * family as f64);
        }
    }

    /// The rows of an experiment, in the order of its work.
    fn work() -> Vec<AblationRow> {
        vec![row("enc-enc", 1), row("enc-enc", 2), row("enc-dec", 1), row("enc-dec", 2)]
    }

    /// What every experiment does: open, measure what is not there yet, finish.
    fn run(path: &Path, rows: &[AblationRow]) {
        let mut writer = opened(path, 1, Existing::Use);
        push_missing(&mut writer, rows);
        finish(writer);
    }

    fn opened(path: &Path, seed: u64, existing: Existing) -> Writer {
        Writer::open(path, &signature(seed), existing).unwrap()
    }

    fn push_missing(writer: &mut Writer, rows: &[AblationRow]) {
        writer.add_base(&COLUMNS, block(BASE, 0)).unwrap();
        for row in rows {
            if !writer.contains(&row.key()) {
                add(writer, row.clone()).unwrap();
            }
        }
    }

    /// Rows and statistics of results.
    fn bytes(path: &Path) -> [Vec<u8>; 2] {
        [fs::read(path).unwrap(), fs::read(Blocks::path_beside(path)).unwrap()]
    }

    /// The files of a run that is never interrupted.
    fn unbroken() -> [Vec<u8>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results/ablate-one.csv");
        run(&path, &work());
        bytes(&path)
    }

    fn growing(path: &Path) -> std::path::PathBuf {
        Place::partial(path).csv
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn refusal(path: &Path, signature: &Signature) -> String {
        let error = Writer::open(path, signature, Existing::Use).unwrap_err().to_string();
        assert!(!error.contains('\n'), "not one line: {error}");
        error
    }

    #[test]
    fn finished_file_has_the_completed_rows_in_key_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let mut expected = [row("enc-dec", 1), row("enc-dec", 2), row("enc-enc", 1), row("enc-enc", 2)];
        adjust(&mut expected);
        assert_eq!(read_rows::<AblationRow>(&path).unwrap(), expected);
        assert_eq!(bytes(&path), unbroken());
        assert_eq!(names(folder.path()), ["ablate-one.csv", "ablate-one.json", "ablate-one.segments.csv.gz"]);
        let complete = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap().complete.unwrap();
        assert_eq!((complete.rows, complete.sha256), (4, sha256(&fs::read(&path).unwrap())));
    }

    /// Killed at every byte of the last line, and at every seventh byte before it; with the statistics torn too.
    #[test]
    fn interrupted_file_ends_like_an_unbroken_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut writer = opened(&path, 1, Existing::Use);
        push_missing(&mut writer, &work());
        drop(writer);
        let partial = Place::partial(&path);
        let (whole, segments) = (fs::read(&partial.csv).unwrap(), fs::read(&partial.segments).unwrap());
        let signature = fs::read(&partial.signature).unwrap();
        let expected = unbroken();
        let last_line = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
        for length in (0..last_line).step_by(7).chain(last_line..=whole.len()) {
            fs::write(&partial.csv, &whole[..length]).unwrap();
            fs::write(&partial.segments, &segments).unwrap();
            fs::write(&partial.signature, &signature).unwrap();
            let _ = fs::remove_file(&path);
            run(&path, &work());
            assert_eq!(bytes(&path), expected, "torn after {length} bytes");
        }
    }

    #[test]
    fn torn_statistics_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut writer = opened(&path, 1, Existing::Use);
        push_missing(&mut writer, &work()[..2]);
        let before = fs::read(&Place::partial(&path).segments).unwrap();
        writer.store(&COLUMNS, block("enc-dec:1:1", 1)).unwrap(); // killed before its row
        drop(writer);
        let segments = Place::partial(&path).segments;
        let whole = fs::read(&segments).unwrap();
        for length in before.len()..=whole.len() {
            fs::write(&segments, &whole[..length]).unwrap();
            let mut writer = opened(&path, 1, Existing::Use);
            push_missing(&mut writer, &work()[..2]);
            assert_eq!(writer.rows().len(), 2);
        }
        run(&path, &work());
        assert_eq!(bytes(&path), unbroken());
    }

    #[test]
    fn torn_line_is_cut_off_and_complete_rows_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut writer = opened(&path, 1, Existing::Use);
        push_missing(&mut writer, &work()[..2]);
        drop(writer);
        let whole = fs::read(growing(&path)).unwrap();
        fs::write(growing(&path), &whole[..whole.len() - 1]).unwrap(); // every cell is there, but not the line break
        let mut writer = opened(&path, 1, Existing::Use);
        assert_eq!(writer.rows().collect::<Vec<_>>(), [&row("enc-enc", 1)]);
        add(&mut writer, row("enc-enc", 2)).unwrap();
        assert_eq!(fs::read(growing(&path)).unwrap(), whole);
    }

    #[test]
    fn finished_file_takes_further_families() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work()[..2]);
        run(&path, &work());
        assert_eq!(bytes(&path), unbroken());
    }

    #[test]
    fn complete_results_stay_until_their_successors_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let before = (bytes(&path), fs::read(Signature::path_beside(&path)).unwrap());
        let mut again = opened(&path, 2, Existing::Again);
        assert_eq!(again.rows().len(), 0);
        push_missing(&mut again, &work()[..2]);
        drop(again); // interrupted
        let now = (bytes(&path), fs::read(Signature::path_beside(&path)).unwrap());
        assert_eq!(now, before);
        let mut again = opened(&path, 2, Existing::Again);
        assert_eq!(again.rows().len(), 2, "an unfinished run is continued");
        push_missing(&mut again, &work()[..3]);
        finish(again);
        assert_eq!(read_rows::<AblationRow>(&path).unwrap().len(), 3);
        assert!(!growing(&path).exists());
    }

    /// Between any two of the renames that publish results.
    #[test]
    fn a_kill_while_publishing_is_made_up_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let (place, partial) = (Place::of(&path), Place::partial(&path));
        for renamed in 0..3 {
            run(&path, &work());
            let files = [(&partial.segments, &place.segments), (&partial.csv, &place.csv)];
            fs::rename(&place.signature, &partial.signature).unwrap();
            for (growing, complete) in &files[renamed.min(2)..] {
                fs::rename(complete, growing).unwrap();
            }
            let writer = opened(&path, 1, Existing::Use);
            assert_eq!(writer.rows().len(), 4, "killed after {renamed} renames");
            finish(writer);
            assert_eq!(bytes(&path), unbroken());
            assert_eq!(names(folder.path()).len(), 3, "killed after {renamed} renames");
        }
    }

    #[test]
    fn rows_of_other_families_survive_when_one_is_computed_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let renewed = |existing| {
            let mut writer = opened(&path, 1, existing);
            writer.renew(|row| row.attention == "enc-enc");
            writer
        };
        assert_eq!(renewed(Existing::Use).rows().len(), 4);
        let mut writer = renewed(Existing::Again);
        assert_eq!(writer.rows().len(), 2);
        push_missing(&mut writer, &work()[..1]);
        drop(writer); // interrupted
        let mut writer = renewed(Existing::Again);
        assert_eq!(writer.rows().len(), 3, "what is computed again already stays");
        push_missing(&mut writer, &work());
        finish(writer);
        assert_eq!(bytes(&path), unbroken());

        let mut writer = opened(&path, 1, Existing::Again);
        writer.renew(|_| true);
        writer.add_base(&COLUMNS, block(BASE, 3)).unwrap(); // nothing is left that another base would contradict
        assert_eq!(writer.signature_mut().runs.len(), 1);
    }

    #[test]
    fn signature_names_the_rows_of_each_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut interrupted = opened(&path, 1, Existing::Use);
        push_missing(&mut interrupted, &work()[..1]);
        drop(interrupted);
        run(&path, &work()[..2]);
        run(&path, &work());
        let runs = || Signature::read(&Signature::path_beside(&path)).unwrap().unwrap().runs;
        let finished: Vec<bool> = runs().iter().map(|run| run.duration_seconds.is_some()).collect();
        assert_eq!(finished, [false, true, true]);
        let rows: Vec<Vec<String>> = runs().into_iter().map(|run| run.rows).collect();
        assert_eq!(rows, [vec!["enc-enc:1:1"], vec!["enc-enc:1:2"], vec!["enc-dec:1:1", "enc-dec:1:2"]]);
        let before = runs();
        run(&path, &work());
        assert_eq!(runs(), before, "a run that added nothing left a trace");
    }

    #[test]
    fn testing_again_adds_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let stored = || Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
        let before = stored();
        let mut writer = Writer::revise(&path).unwrap();
        let testing = crate::Testing { resamples: 5, seed: 3, margin_percent: 2.0 };
        writer.signature_mut().testing = Some(testing);
        writer
            .finish(|rows, _| {
                rows.iter_mut().for_each(|row| row.p_value = Some(0.5));
                Ok::<(), Error>(())
            })
            .unwrap();
        assert_eq!(stored().runs, before.runs);
        assert_eq!(stored().testing, Some(testing));
        assert_ne!(stored().complete, before.complete);
        assert!(read_rows::<AblationRow>(&path).unwrap().iter().all(|row| row.p_value == Some(0.5)));

        let mut unfinished = opened(&path, 1, Existing::Use);
        add(&mut unfinished, row("dec-dec", 1)).unwrap();
        drop(unfinished);
        let error = Writer::revise(&path).unwrap_err().to_string();
        assert!(error.contains("partial.csv` is an unfinished run"), "{error}");
    }

    #[test]
    fn edited_results_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let [rows, segments] = bytes(&path);
        fs::write(&path, String::from_utf8(rows.clone()).unwrap().replace("36.05", "37.05")).unwrap();
        assert!(refusal(&path, &signature(1)).contains("ablate-one.csv` was edited"));
        fs::write(&path, rows).unwrap();
        fs::write(Blocks::path_beside(&path), &segments[..segments.len() - 1]).unwrap();
        assert!(refusal(&path, &signature(1)).contains("segments.csv.gz` was edited"));
    }

    #[test]
    fn another_base_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work()[..2]);
        let mut writer = opened(&path, 1, Existing::Use);
        let error = writer.add_base(&COLUMNS, block(BASE, 1)).unwrap_err().to_string();
        assert!(error.contains("differs in 6 of 40 segments"), "{error}");
    }

    #[test]
    fn duplicates_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut writer = opened(&path, 1, Existing::Use);
        push_missing(&mut writer, &[row("enc-enc", 1)]);
        let error = add(&mut writer, row("enc-enc", 1)).unwrap_err().to_string();
        assert!(error.contains("has a row for (\"enc-enc\", 1, 1, \"bleu\") already"), "{error}");
        assert_eq!(finish(writer).len(), 1);
    }

    #[test]
    fn rows_of_another_run_are_refused_unless_computed_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let error = refusal(&path, &signature(2));
        assert!(error.contains("belongs to another run (seed: 1 in the file, 2 now)"), "{error}");
        assert_eq!(bytes(&path), unbroken(), "a refused file was changed");
        assert_eq!(names(folder.path()).len(), 3, "a refusal left a file");

        let mut unfinished = opened(&path, 2, Existing::Again);
        push_missing(&mut unfinished, &work()[..1]);
        drop(unfinished);
        assert!(refusal(&path, &signature(1)).contains("partial.csv` belongs to another run"));
        let mut again = opened(&path, 1, Existing::Again);
        again.renew(|_| true);
        assert_eq!(again.rows().len(), 0);
    }

    #[test]
    fn rows_without_a_signature_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        fs::remove_file(Signature::path_beside(&path)).unwrap();
        for existing in [Existing::Use, Existing::Again] {
            let error = Writer::open(&path, &signature(1), existing).unwrap_err().to_string();
            assert!(error.contains("has rows, but its signature `"), "{error}");
        }
        assert!(Writer::revise(&path).is_err());
    }

    #[test]
    fn without_rows_there_is_nothing_to_protect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        drop(opened(&path, 1, Existing::Use));
        assert!(names(folder.path()).is_empty(), "a run that added nothing left a trace");
        fs::write(&path, header::<AblationRow>()).unwrap();
        signature(2).write(&Signature::path_beside(&path)).unwrap();
        assert_eq!(opened(&path, 1, Existing::Use).rows().len(), 0);
    }

    #[test]
    fn results_of_an_older_version_can_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        fs::write(&path, "attention,layer,head,p_holm\nself,1,1,0.5\n").unwrap();
        signature(1).write(&Signature::path_beside(&path)).unwrap();
        assert!(refusal(&path, &signature(1)).contains("holds other columns"));
        let mut writer = opened(&path, 1, Existing::Again);
        push_missing(&mut writer, &work());
        finish(writer);
        assert_eq!(bytes(&path), unbroken());
    }

    #[test]
    fn other_files_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes.csv");
        for content in ["milk, eggs", "milk\neggs\n", "day,note\n1,keep me\n"] {
            fs::write(&notes, content).unwrap();
            for existing in [Existing::Use, Existing::Again] {
                let error = Writer::open(&notes, &signature(1), existing).unwrap_err().to_string();
                assert!(error.contains("holds other columns: expected `attention,layer"), "{error}");
            }
            assert_eq!(fs::read_to_string(&notes).unwrap(), content);
        }
        let json = folder.path().join("package.json");
        fs::write(&json, "{}").unwrap();
        fs::write(folder.path().join("package.csv"), header::<AblationRow>()).unwrap();
        let error = refusal(&folder.path().join("package.csv"), &signature(1));
        assert!(error.contains("package.json` is not the signature of a run"), "{error}");
        assert_eq!(fs::read_to_string(&json).unwrap(), "{}");
        assert!(refusal(&json, &signature(1)).contains("the name must end in `.csv`"));
    }

    #[test]
    fn other_kinds_of_rows_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let error =
            RowWriter::<TrainingRow>::open(&path, &signature(1), Existing::Use).unwrap_err().to_string();
        assert!(error.contains("expected `epoch,step,"), "{error}");
    }

    #[test]
    fn only_one_writer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let first = opened(&path, 1, Existing::Use);
        assert!(refusal(&path, &signature(1)).contains("is being written by another process"));
        assert!(check_writable(&path).is_err());
        assert!(Writer::open(&path, &signature(1), Existing::Again).is_err());
        drop(first);
        check_writable(&path).unwrap();
        assert!(Writer::open(&path, &signature(1), Existing::Use).is_ok());
    }

    #[test]
    fn another_run_gets_a_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let place = |seed| place_of(&path, &signature(seed).identity).unwrap();
        assert_eq!(place(2), (path.clone(), None));
        run(&path, &work());
        assert_eq!(place(1), (path.clone(), None));
        let (own, differences) = place(2);
        assert_eq!(differences.unwrap(), "seed: 1 in the file, 2 now");
        let name = own.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("ablate-one-") && name.len() == "ablate-one-12345678.csv".len(), "{name}");
        assert_ne!(own, place(3).0);
    }

    /// Permissions do not bind the superuser, but nobody can put a file below a file.
    #[test]
    fn unusable_folders_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = refusal(&file.join("ablate-one.csv"), &signature(1));
        assert!(error.starts_with("cannot write `") && error.contains("file`"), "{error}");
        let directory = folder.path().join("directory.csv");
        fs::create_dir(&directory).unwrap();
        assert!(refusal(&directory, &signature(1)).starts_with("cannot read `"));
        assert!(check_writable(&directory).unwrap_err().to_string().ends_with("not a regular file"));
    }

    const CROWDED: &str = "RECORDS_TEST_CROWDED_FOLDER";

    /// Runs `crowded_folder` in a process that may write no more than a few kilobytes to a file.
    #[cfg(target_os = "linux")]
    #[test]
    fn row_that_does_not_fit_leaves_the_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact writer::tests::crowded_folder"])
            .arg(std::env::current_exe().unwrap())
            .env(CROWDED, folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let path = folder.path().join("ablate-one.csv");
        let rows = read_rows::<AblationRow>(&growing(&path)).unwrap();
        assert!(rows.len() > 10, "only {} rows", rows.len());
        assert!(
            fs::read(growing(&path)).unwrap().ends_with(b"\n"),
            "the row that did not fit left a torn line"
        );
    }

    /// The other half of the test above; by itself it does nothing.
    #[test]
    fn crowded_folder() {
        let Some(folder) = std::env::var_os(CROWDED) else { return };
        let path = Path::new(&folder).join("ablate-one.csv");
        let mut writer = opened(&path, 1, Existing::Use);
        let error = (1..1000).find_map(|head| writer.push(row("self", head)).err()).unwrap();
        assert!(error.to_string().ends_with("ablate-one.partial.csv`"), "{error}");
        let kept = writer.rows().cloned().collect::<Vec<_>>();
        assert_eq!(read_rows::<AblationRow>(&growing(&path)).unwrap(), kept);
    }

    #[test]
    #[should_panic(expected = "completing rows must not change their keys")]
    fn changed_keys_panic() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = opened(&folder.path().join("a.csv"), 1, Existing::Use);
        writer.push(row("self", 1)).unwrap();
        let _ = writer.finish(|rows, _| {
            rows[0].head = 2;
            Ok::<(), Error>(())
        });
    }

    #[test]
    fn discarded_rows_are_computed_again_and_complete_results_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let mut writer = opened(&path, 1, Existing::Use);
        writer.discard(|row| row.attention == "enc-enc").unwrap();
        assert_eq!(writer.rows().len(), 2);
        push_missing(&mut writer, &[row("enc-enc", 2)]);
        writer.discard(|row| row.attention == "enc-dec").unwrap();
        assert_eq!(bytes(&path), unbroken());
        drop(writer); // interrupted: the next one goes on
        let mut writer = opened(&path, 1, Existing::Use);
        assert_eq!(writer.rows().collect::<Vec<_>>(), [&row("enc-enc", 2)]);
        push_missing(&mut writer, &work());
        finish(writer);
        assert_eq!(bytes(&path), unbroken());
    }
}
