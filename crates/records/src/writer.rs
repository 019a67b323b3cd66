//! A CSV file that grows row by row and survives being killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::file::{LockedFile, read_error, replace, write_error};
use crate::signature::{Identity, Signature};
use crate::table::{Table, header, line, parse};
use crate::{Error, Row};

/// What to do with a result file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Add to its rows, which must be of a run with the same identity.
    Continue,
    /// Add to its rows, of which [`RowWriter::discard`] may take some to be computed again; start anew if they are
    /// of a run with another identity.
    Restart,
    /// Start anew.
    Overwrite,
}

/// Writes a result file and its signature, continuing where an earlier run stopped.
///
/// Other processes cannot write the file as long as the writer lives; reading it is possible.
#[derive(Debug)]
pub struct RowWriter<R: Row> {
    path: PathBuf,
    file: LockedFile,
    rows: BTreeMap<R::Key, R>,
    signature: Signature,
    /// Whether this run stands in the signature file.
    signed: bool,
    started: Instant,
}

impl<R: Row> RowWriter<R> {
    /// Opens the CSV file `path`, or creates it with its folders.
    ///
    /// Complete rows of a run with the same identity are kept, and a last line torn by an
    /// interruption is cut off. Rows of another run, or rows without a signature, are refused. A
    /// file without rows, or a signature without its file, protects nothing and is written anew.
    /// That is [`Existing::Continue`]; the others start the file empty.
    ///
    /// # Errors
    /// If the file belongs to another run or is being written by one, does not hold such rows, or
    /// cannot be written.
    pub fn open(path: &Path, signature: &Signature, existing: Existing) -> Result<Self, Error> {
        check_extension(path)?;
        let mut file = LockedFile::open(path)?;
        if existing == Existing::Overwrite {
            file.truncate(0).map_err(|source| write_error(path, source))?;
            return Self::create(path, file, signature);
        }
        let bytes = file.read().map_err(|source| read_error(path, source))?;
        let table = parse(path, &bytes)?;
        let stored = Signature::read(&Signature::path_beside(path))?;
        let is_other = stored.as_ref().is_some_and(|stored| stored.identity != signature.identity);
        if table.rows.is_empty() || existing == Existing::Restart && is_other {
            file.truncate(0).map_err(|source| write_error(path, source))?;
            return Self::create(path, file, signature);
        }
        Self::resume(path, file, table, stored, signature)
    }

    /// Starts an empty file.
    fn create(path: &Path, mut file: LockedFile, signature: &Signature) -> Result<Self, Error> {
        signature.write(&Signature::path_beside(path))?;
        file.append(&header::<R>()).map_err(|source| write_error(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            rows: BTreeMap::new(),
            signature: signature.clone(),
            signed: true,
            started: Instant::now(),
        })
    }

    /// Continues a file that has rows.
    fn resume(
        path: &Path,
        mut file: LockedFile,
        table: Table<R>,
        stored: Option<Signature>,
        signature: &Signature,
    ) -> Result<Self, Error> {
        let beside = Signature::path_beside(path);
        let stored = stored.ok_or(Error::NoSignature { path: path.to_owned(), signature: beside })?;
        check_identity(path, &stored.identity, &signature.identity)?;
        file.truncate(table.complete).map_err(|source| write_error(path, source))?;
        let runs = stored.runs.into_iter().chain(signature.runs.clone()).collect();
        Ok(Self {
            path: path.to_owned(),
            file,
            rows: table.rows,
            signature: Signature { runs, ..stored },
            signed: false,
            started: Instant::now(),
        })
    }

    /// The rows that are there, in the order of their keys.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &R> {
        self.rows.values()
    }

    /// Whether the row with this key is there.
    pub fn contains(&self, key: &R::Key) -> bool {
        self.rows.contains_key(key)
    }

    /// Takes rows out of the file, to be computed again.
    ///
    /// # Errors
    /// If the file cannot be written; it is then as it was.
    pub fn discard(&mut self, unwanted: impl Fn(&R) -> bool) -> Result<(), Error> {
        let kept: String = self.rows.values().filter(|row| !unwanted(row)).map(line).collect();
        self.sign()?;
        replace(&self.path, &(header::<R>() + &kept))?;
        self.file = LockedFile::open(&self.path)?;
        self.rows.retain(|_, row| !unwanted(row));
        Ok(())
    }

    /// Adds a row and waits until it is on the disk.
    ///
    /// # Errors
    /// If a row with this key is there already, or the file cannot be written; rows that were
    /// there stay.
    ///
    /// # Panics
    /// If text in the row has a line break.
    pub fn push(&mut self, row: R) -> Result<(), Error> {
        let key = row.key();
        if self.contains(&key) {
            return Err(Error::DuplicateRow { path: self.path.clone(), key: format!("{key:?}") });
        }
        self.sign()?;
        self.file.append(&line(&row)).map_err(|source| write_error(&self.path, source))?;
        self.rows.insert(key, row);
        Ok(())
    }

    /// Enters this run into the signature before its first row, so that no row is without one. A
    /// run that adds nothing leaves no trace.
    fn sign(&mut self) -> Result<(), Error> {
        if !self.signed {
            self.signature.write(&Signature::path_beside(&self.path))?;
            self.signed = true;
        }
        Ok(())
    }

    /// Lets `complete` fill in what needs all rows, such as adjusted p-values, then replaces the
    /// file by these rows in the order of their keys, and returns them.
    ///
    /// A finished file can be opened again for more rows.
    ///
    /// # Errors
    /// If the file cannot be written; the rows that were pushed stay.
    ///
    /// # Panics
    /// If `complete` changes a key.
    pub fn finish(mut self, complete: impl FnOnce(&mut [R])) -> Result<Vec<R>, Error> {
        let (keys, mut rows): (Vec<_>, Vec<_>) = std::mem::take(&mut self.rows).into_iter().unzip();
        complete(&mut rows);
        assert!(rows.iter().map(R::key).eq(keys), "completing rows must not change their keys");
        let lines: String = rows.iter().map(line).collect();
        replace(&self.path, &(header::<R>() + &lines))?;
        if let Some(run) = self.signature.runs.last_mut().filter(|_| self.signed) {
            run.duration_seconds = Some(self.started.elapsed().as_secs_f64());
            self.signature.write(&Signature::path_beside(&self.path))?;
        }
        Ok(rows)
    }
}

/// Refuses a result file that could not be written, before any long work. May leave an empty file and its folders.
///
/// # Errors
/// If the name does not end in `.csv`, or the file cannot be opened or is being written.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    check_extension(path)?;
    LockedFile::open(path).map(drop)
}

fn check_extension(path: &Path) -> Result<(), Error> {
    match path.extension().is_some_and(|extension| extension == "csv") {
        true => Ok(()),
        false => Err(Error::Extension { path: path.to_owned() }),
    }
}

fn check_identity(path: &Path, stored: &Identity, now: &Identity) -> Result<(), Error> {
    let differences = now.differences(stored);
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::Identity { path: path.to_owned(), differences: differences.join("; ") })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::{AblationRow, Provenance, TrainingRow, read_rows};

    type Writer = RowWriter<AblationRow>;

    fn signature(seed: u64) -> Signature {
        let identity = Identity { seed, ..Identity::new("ablate-one", "demo-translation") };
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

    /// Stands for the adjustment of p-values: looks at all rows of the attention type.
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

    /// What every experiment does: open, compute what is not there yet, finish.
    fn run(path: &Path, rows: &[AblationRow]) {
        let mut writer = Writer::open(path, &signature(1), Existing::Continue).unwrap();
        push_missing(&mut writer, rows);
        writer.finish(adjust).unwrap();
    }

    fn push_missing(writer: &mut Writer, rows: &[AblationRow]) {
        for row in rows {
            if !writer.contains(&row.key()) {
                writer.push(row.clone()).unwrap();
            }
        }
    }

    /// The file of a run that is never interrupted.
    fn unbroken() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results/ablate-one.csv");
        run(&path, &work());
        fs::read(path).unwrap()
    }

    fn refusal(path: &Path, signature: &Signature) -> String {
        let error = Writer::open(path, signature, Existing::Continue).unwrap_err().to_string();
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
        assert_eq!(fs::read(&path).unwrap(), unbroken());
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "more than results and signature: {names:?}");
    }

    /// Killed at every byte of the last line, and at every seventh byte before it.
    #[test]
    fn interrupted_file_ends_like_an_unbroken_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut writer = Writer::open(&path, &signature(1), Existing::Continue).unwrap();
        push_missing(&mut writer, &work());
        drop(writer);
        let whole = fs::read(&path).unwrap();
        let expected = unbroken();
        let last_line = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
        for length in (0..last_line).step_by(7).chain(last_line..=whole.len()) {
            fs::write(&path, &whole[..length]).unwrap();
            run(&path, &work());
            assert_eq!(fs::read(&path).unwrap(), expected, "torn after {length} bytes");
        }
    }

    #[test]
    fn torn_line_is_cut_off_and_complete_rows_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut writer = Writer::open(&path, &signature(1), Existing::Continue).unwrap();
        push_missing(&mut writer, &work()[..2]);
        drop(writer);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap(); // every cell is there, but not the line break
        let mut writer = Writer::open(&path, &signature(1), Existing::Continue).unwrap();
        assert_eq!(writer.rows().collect::<Vec<_>>(), [&row("enc-enc", 1)]);
        writer.push(row("enc-enc", 2)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn finished_file_takes_further_families() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work()[..2]);
        run(&path, &work());
        assert_eq!(fs::read(&path).unwrap(), unbroken());
    }

    #[test]
    fn signature_names_the_runs_that_added_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut interrupted = Writer::open(&path, &signature(1), Existing::Continue).unwrap();
        push_missing(&mut interrupted, &work()[..1]);
        drop(interrupted);
        run(&path, &work());
        let runs = || Signature::read(&Signature::path_beside(&path)).unwrap().unwrap().runs;
        let finished: Vec<bool> = runs().iter().map(|run| run.duration_seconds.is_some()).collect();
        assert_eq!(finished, [false, true]);

        let before = runs();
        run(&path, &work());
        assert_eq!(runs(), before, "a run that added nothing left a trace");
    }

    #[test]
    fn duplicates_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut writer = Writer::open(&path, &signature(1), Existing::Continue).unwrap();
        writer.push(row("enc-enc", 1)).unwrap();
        let error = writer.push(row("enc-enc", 1)).unwrap_err().to_string();
        assert!(error.contains("has a row for (\"enc-enc\", 1, 1, \"bleu\") already"), "{error}");
        assert_eq!(writer.finish(|_| ()).unwrap(), [row("enc-enc", 1)]);
    }

    #[test]
    fn rows_of_another_run_are_refused_unless_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        let error = refusal(&path, &signature(2));
        assert!(error.contains("belongs to another run (seed: 1 in the file, 2 now)"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), unbroken(), "a refused file was changed");

        let writer = Writer::open(&path, &signature(2), Existing::Overwrite).unwrap();
        assert_eq!(writer.rows().len(), 0);
        drop(writer);
        assert!(Writer::open(&path, &signature(2), Existing::Continue).is_ok());
    }

    #[test]
    fn rows_without_a_signature_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        run(&path, &work());
        fs::remove_file(Signature::path_beside(&path)).unwrap();
        let error = refusal(&path, &signature(1));
        assert!(error.contains("has rows, but its signature `"), "{error}");
    }

    #[test]
    fn without_rows_there_is_nothing_to_protect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        drop(Writer::open(&path, &signature(1), Existing::Continue).unwrap());
        drop(Writer::open(&path, &signature(2), Existing::Continue).unwrap()); // a header only
        fs::remove_file(&path).unwrap();
        let writer = Writer::open(&path, &signature(3), Existing::Continue).unwrap(); // a signature only
        let stored = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
        assert_eq!((stored.identity.seed, writer.rows().len()), (3, 0));
    }

    #[test]
    fn other_files_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes.csv");
        for content in ["milk, eggs", "milk\neggs\n"] {
            fs::write(&notes, content).unwrap();
            assert!(
                refusal(&notes, &signature(1)).contains("holds other columns: expected `attention,layer")
            );
            assert_eq!(fs::read_to_string(&notes).unwrap(), content);
        }
        let json = folder.path().join("package.json");
        fs::write(&json, "{}").unwrap();
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
            RowWriter::<TrainingRow>::open(&path, &signature(1), Existing::Continue).unwrap_err().to_string();
        assert!(error.contains("expected `epoch,step,"), "{error}");
    }

    #[test]
    fn only_one_writer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let first = Writer::open(&path, &signature(1), Existing::Continue).unwrap();
        assert!(refusal(&path, &signature(1)).contains("is being written by another process"));
        assert!(
            Writer::open(&path, &signature(1), Existing::Overwrite).is_err(),
            "overwriting must respect the lock"
        );
        drop(first);
        assert!(Writer::open(&path, &signature(1), Existing::Continue).is_ok());
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
        assert!(refusal(&directory, &signature(1)).starts_with("cannot write `"));
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
        let rows = read_rows::<AblationRow>(&path).unwrap();
        assert!(rows.len() > 10, "only {} rows", rows.len());
        assert!(fs::read(&path).unwrap().ends_with(b"\n"), "the row that did not fit left a torn line");
    }

    /// The other half of the test above; by itself it does nothing.
    #[test]
    fn crowded_folder() {
        let Some(folder) = std::env::var_os(CROWDED) else { return };
        let path = Path::new(&folder).join("ablate-one.csv");
        let mut writer = Writer::open(&path, &signature(1), Existing::Continue).unwrap();
        let error = (1..1000).find_map(|head| writer.push(row("self", head)).err()).unwrap();
        assert!(error.to_string().ends_with("ablate-one.csv`"), "{error}");
        let kept = writer.rows().cloned().collect::<Vec<_>>();
        assert_eq!(read_rows::<AblationRow>(&path).unwrap(), kept);
    }

    #[test]
    #[should_panic(expected = "completing rows must not change their keys")]
    fn changed_keys_panic() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer =
            Writer::open(&folder.path().join("a.csv"), &signature(1), Existing::Continue).unwrap();
        writer.push(row("self", 1)).unwrap();
        let _ = writer.finish(|rows| rows[0].head = 2);
    }

    #[test]
    fn a_restart_keeps_rows_of_such_a_run_and_discards_what_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let restarted = |seed| Writer::open(&path, &signature(seed), Existing::Restart).unwrap();
        run(&path, &work());
        let mut writer = restarted(1);
        assert_eq!(writer.rows().len(), 4);
        writer.discard(|row| row.attention == "enc-enc").unwrap();
        assert_eq!(read_rows::<AblationRow>(&path).unwrap().len(), 2);
        assert!(
            Writer::open(&path, &signature(1), Existing::Restart).is_err(),
            "the lock must have moved along"
        );
        writer.push(row("enc-enc", 2)).unwrap();
        drop(writer); // interrupted: the next one goes on
        let mut writer = restarted(1);
        assert_eq!(writer.rows().len(), 3);
        push_missing(&mut writer, &work());
        writer.finish(adjust).unwrap();
        assert_eq!(fs::read(&path).unwrap(), unbroken());
        assert_eq!(restarted(2).rows().len(), 0, "a file of another seed is started anew");
    }

    #[test]
    fn a_restart_spares_what_is_no_result_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.csv");
        fs::write(&path, "day,note\n1,keep me\n").unwrap();
        assert!(Writer::open(&path, &signature(1), Existing::Restart).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "day,note\n1,keep me\n");
    }
}
