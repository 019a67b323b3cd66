use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::*;
use crate::{
    AblationRow, BASE, Destination, Identity, Measured, Provenance, Taken, TrainingRow, check_writable,
    place_of, read_rows,
};

type Writer = RowWriter<AblationRow>;

fn signature(seed: u64) -> Signature {
    let identity = Identity { seed: Some(seed), ..Identity::new("ablate-one", "demo-translation") };
    static RUN: OnceLock<Provenance> = OnceLock::new();
    let run = RUN.get_or_init(|| Provenance::collect("cpu", 2, BTreeMap::new())).clone();
    let measured = Measured { metric: "accuracy".to_owned(), positive: None, families: BTreeMap::new() };
    let testing = Testing { resamples: 9, seed: 1, margin_percent: 2.0 };
    Signature::new(identity, run).tested(measured, testing)
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
    let cells = |head: u32| (0..40).map(|n: u32| vec![1, u32::from(n % 7 < head % 5)]).collect::<Vec<_>>();
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
fn rows_computed_again_belong_to_the_run_that_did_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let rows = || -> Vec<Vec<String>> {
        let signature = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
        signature.runs.into_iter().map(|run| run.rows).collect()
    };
    for _ in 0..2 {
        // the first is interrupted when it has one of the two rows
        let mut writer = opened(&path, 1, Existing::Again);
        writer.renew(|row| row.attention == "enc-enc");
        let missing = work().into_iter().find(|row| !writer.contains(&row.key())).unwrap();
        push_missing(&mut writer, &[missing]);
        if writer.rows().len() == 4 {
            finish(writer);
        }
    }
    assert_eq!(rows(), [vec!["enc-dec:1:1", "enc-dec:1:2"], vec!["enc-enc:1:1"], vec!["enc-enc:1:2"]]);

    let mut writer = opened(&path, 1, Existing::Use);
    writer.discard(|_| true).unwrap();
    push_missing(&mut writer, &work());
    finish(writer);
    assert_eq!(rows(), [Vec::<String>::new()], "one run that wrote all rows needs no names");
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
    let error = RowWriter::<TrainingRow>::open(&path, &signature(1), Existing::Use).unwrap_err().to_string();
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
    let here = Destination { path: path.clone(), taken: None };
    assert_eq!(place(2), here);
    run(&path, &work());
    assert_eq!(place(1), here);
    let Destination { path: own, taken } = place(2);
    assert_eq!(
        taken.unwrap(),
        Taken { path: path.clone(), differences: "seed: 1 in the file, 2 now".to_owned() }
    );
    let name = own.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("ablate-one-") && name.len() == "ablate-one-12345678.csv".len(), "{name}");
    assert_ne!(own, place(3).path);
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
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" --ignored --exact writer::tests::crowded_folder",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(CROWDED, folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let path = folder.path().join("ablate-one.csv");
    let rows = read_rows::<AblationRow>(&growing(&path)).unwrap();
    assert!(rows.len() > 10, "only {} rows", rows.len());
    assert!(fs::read(growing(&path)).unwrap().ends_with(b"\n"), "the row that did not fit left a torn line");
}

/// The other half of the test above, which runs it.
#[test]
#[ignore = "another test runs it with little room on the disk"]
fn crowded_folder() {
    let folder = std::env::var_os(CROWDED).expect("the other test says where");
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

/// Killed after each of the files that a run begins with, or stopped by a full disk.
#[test]
fn a_kill_while_beginning_loses_no_complete_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work()[..2]);
    let partial = Place::partial(&path);
    for begun in 0..3 {
        signature(1).write(&partial.signature).unwrap();
        if begun > 0 {
            fs::copy(Blocks::path_beside(&path), &partial.segments).unwrap();
        }
        if begun > 1 {
            fs::write(&partial.csv, "").unwrap();
        }
        assert_eq!(Writer::revise(&path).unwrap().rows().len(), 2, "after {begun} files");
        assert_eq!(opened(&path, 1, Existing::Use).rows().len(), 2, "after {begun} files");
    }
    run(&path, &work());
    assert_eq!(bytes(&path), unbroken());
}

#[test]
fn a_refusal_leaves_the_unfinished_run_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let mut unfinished = opened(&path, 2, Existing::Use);
    push_missing(&mut unfinished, &work()[..1]);
    drop(unfinished);
    let before = fs::read(growing(&path)).unwrap();
    assert!(refusal(&path, &signature(1)).contains("partial.csv` belongs to another run"));
    assert_eq!(fs::read(growing(&path)).unwrap(), before);

    // beside complete rows that fit it only stands in the way of others
    let other = folder.path().join("other.csv");
    run(&other, &work());
    let (from, to) = (Place::partial(&path), Place::partial(&other));
    fs::copy(from.csv, to.csv).unwrap();
    fs::copy(from.signature, to.signature).unwrap();
    let mut writer = opened(&other, 1, Existing::Use);
    assert_eq!(writer.rows().len(), 4);
    let error = add(&mut writer, row("dec-dec", 1)).unwrap_err().to_string();
    assert!(error.contains("partial.csv` belongs to another run"), "{error}");
    drop(writer);
    assert_eq!(finish(opened(&other, 1, Existing::Use)).len(), 4);
    assert_eq!(fs::read(growing(&other)).unwrap(), before);
}

/// Until a run has something to put in its place, an unfinished one stays; then not a row of it does.
#[test]
fn an_unfinished_run_is_replaced_by_the_first_row_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let mut unfinished = opened(&path, 2, Existing::Use);
    push_missing(&mut unfinished, &work()[..2]);
    drop(unfinished);
    let before = fs::read(growing(&path)).unwrap();
    drop(opened(&path, 1, Existing::Again));
    assert_eq!(fs::read(growing(&path)).unwrap(), before);
    let mut again = opened(&path, 1, Existing::Again);
    push_missing(&mut again, &work());
    finish(again);
    assert_eq!(bytes(&path), unbroken());
}

/// Rows that were begun by a run that used old ones are not taken for new ones, and what was not asked for stays.
#[test]
fn computing_again_takes_no_row_of_a_run_that_used_old_ones_for_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work()[..2]);
    let mut used = opened(&path, 1, Existing::Use);
    push_missing(&mut used, &work()[..3]);
    drop(used); // interrupted
    let mut again = opened(&path, 1, Existing::Again);
    again.renew(|row| row.attention == "enc-enc");
    assert_eq!(again.rows().collect::<Vec<_>>(), [&row("enc-dec", 1)]);
    assert!(again.add_base(&COLUMNS, block(BASE, 4)).is_err());
    again.renew(|_| true);
    assert_eq!(again.rows().len(), 0);
    again.add_base(&COLUMNS, block(BASE, 4)).unwrap(); // as on another machine
    drop(again); // killed before its first row
    let mut elsewhere = opened(&path, 1, Existing::Use);
    elsewhere.add_base(&COLUMNS, block(BASE, 0)).unwrap();
}

#[test]
fn rows_without_statistics_are_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let mut writer = opened(&path, 1, Existing::Use);
    push_missing(&mut writer, &work()[..2]);
    let before = fs::read(&Place::partial(&path).segments).unwrap();
    push_missing(&mut writer, &work()[..3]);
    drop(writer);
    fs::write(Place::partial(&path).segments, before).unwrap();
    assert_eq!(opened(&path, 1, Existing::Use).rows().len(), 2);
    run(&path, &work());
    assert_eq!(bytes(&path), unbroken());
}

/// The new model's rows are of one family; those of the other, of the old model, get a name of their own.
#[test]
fn replacing_results_of_another_run_keeps_rows_that_have_no_successor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let old = bytes(&path);
    let mut again = opened(&path, 2, Existing::Again);
    push_missing(&mut again, &work()[..2]);
    finish(again);
    assert_eq!(read_rows::<AblationRow>(&path).unwrap().len(), 2);
    let own = signature(1).identity.own_path(&path);
    assert_eq!(bytes(&own), old);
    assert!(Signature::read(&Signature::path_beside(&own)).unwrap().is_some());
    fs::remove_file(&own).unwrap();

    let mut again = opened(&path, 3, Existing::Again);
    push_missing(&mut again, &work());
    finish(again);
    assert!(!signature(2).identity.own_path(&path).exists(), "all its rows have successors");
}

#[test]
fn a_growing_file_is_no_result_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.partial.csv");
    assert!(refusal(&path, &signature(1)).contains("not in `.partial.csv`"));
}

#[test]
fn testing_again_keeps_the_names_of_all_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work()[..2]);
    run(&path, &work());
    let runs = || Signature::read(&Signature::path_beside(&path)).unwrap().unwrap().runs;
    let before = runs();
    assert_eq!(before.len(), 2);
    for seed in [3, 4] {
        let mut writer = Writer::revise(&path).unwrap();
        let testing = crate::Testing { resamples: 5, seed, margin_percent: 2.0 };
        writer.signature_mut().testing = Some(testing);
        writer.finish(|_, _| Ok::<(), Error>(())).unwrap();
        assert_eq!(runs(), before);
    }
    let forged = Signature::path_beside(&path);
    let text = fs::read_to_string(&forged).unwrap().replace("\"resamples\": 5", "\"resamples\": 100001");
    fs::write(&forged, text).unwrap();
    let error = Writer::revise(&path).unwrap_err().to_string();
    assert!(error.contains("asks for 100001 resamples") && error.contains("at most 100000"), "{error}");
}

fn interrupted_renewal(path: &Path) {
    run(path, &work());
    let mut again = opened(path, 1, Existing::Again);
    again.renew(|row| row.attention == "enc-enc");
    push_missing(&mut again, &work()[..1]);
}

/// The rows that the unfinished run was to compute again have no successors yet.
#[test]
fn a_plain_run_after_an_interrupted_renewal_loses_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    interrupted_renewal(&path);
    let mut plain = opened(&path, 1, Existing::Use);
    push_missing(&mut plain, &[row("enc-dec", 1)]);
    assert_eq!(finish(plain).len(), 4);
    assert_eq!(bytes(&path), unbroken());
    let runs = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap().runs;
    let rows: Vec<Vec<String>> = runs.into_iter().map(|run| run.rows).collect();
    assert_eq!(rows, [vec!["enc-dec:1:1", "enc-dec:1:2", "enc-enc:1:2"], vec!["enc-enc:1:1"]]);
}

#[test]
fn a_second_renewal_computes_what_it_was_asked_for_and_keeps_what_the_first_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    interrupted_renewal(&path);
    let mut again = opened(&path, 1, Existing::Again);
    again.renew(|row| row.attention == "enc-dec");
    assert_eq!(again.rows().collect::<Vec<_>>(), [&row("enc-enc", 1)]);
    push_missing(&mut again, &work()[2..]);
    assert_eq!(finish(again).len(), 4);
    assert_eq!(bytes(&path), unbroken());
}

/// Rows of two bases cannot be tested together.
#[test]
fn rows_of_another_base_are_kept_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let mut again = opened(&path, 1, Existing::Again);
    again.renew(|_| true);
    again.add_base(&COLUMNS, block(BASE, 4)).unwrap(); // as on another machine
    add(&mut again, row("enc-enc", 1)).unwrap();
    assert_eq!(finish(again).len(), 1);
    assert_eq!(bytes(&folder.path().join("ablate-one.old.csv")), unbroken());
}

/// A discarded row must not come back, wherever the run that discarded it was killed.
#[test]
fn discarded_rows_stay_away_without_a_successor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let mut writer = opened(&path, 1, Existing::Use);
    writer.discard(|row| row.head == 2).unwrap();
    push_missing(&mut writer, &[row("dec-dec", 1)]);
    drop(writer); // interrupted
    let mut writer = opened(&path, 1, Existing::Use);
    writer.discard(|row| row.attention == "enc-dec").unwrap();
    drop(writer); // interrupted
    assert_eq!(finish(opened(&path, 1, Existing::Use)).len(), 2);
    assert_eq!(names(folder.path()).len(), 3, "nothing is spared that was discarded");
}

#[test]
fn no_spared_file_replaces_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let own = signature(1).identity.own_path(&path);
    run(&own, &work()[..1]);
    let there = bytes(&own);
    run(&path, &work());
    let mut again = opened(&path, 2, Existing::Again);
    push_missing(&mut again, &work()[..2]);
    finish(again);
    assert_eq!(bytes(&own), there);
    let second = own.with_file_name(format!("{}-2.csv", own.file_stem().unwrap().to_str().unwrap()));
    assert_eq!(bytes(&second), unbroken());
    assert!(Signature::path_beside(&second).exists());
}

/// Edited, of an older version, without its statistics, or without any: what is not computed again is kept.
#[test]
fn results_that_cannot_be_used_any_more_are_kept_under_another_name() {
    let edits: [fn(&Path); 4] = [
        |path| {
            let text = fs::read_to_string(path).unwrap();
            fs::write(path, text.replacen("36.05", "37.05", 1)).unwrap();
        },
        |path| fs::write(path, "attention,layer\nself,1\n").unwrap(),
        |path| fs::remove_file(Blocks::path_beside(path)).unwrap(),
        |path| {
            let stored = Signature::read(&Signature::path_beside(path)).unwrap().unwrap();
            Signature { measured: None, ..stored }.write(&Signature::path_beside(path)).unwrap();
        },
    ];
    for (number, edit) in edits.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let old = folder.path().join("ablate-one.old.csv");
        fs::write(&old, "another").unwrap();
        run(&path, &work());
        edit(&path);
        let before = fs::read(&path).unwrap();
        let mut again = opened(&path, 1, Existing::Again);
        again.renew(|row| row.attention == "enc-enc");
        push_missing(&mut again, &work()[..2]);
        assert_eq!(finish(again).len(), 2, "edit {number}");
        assert_eq!(fs::read(folder.path().join("ablate-one.old-2.csv")).unwrap(), before, "edit {number}");
        assert!(folder.path().join("ablate-one.old-2.json").exists(), "edit {number}");
        assert_eq!(fs::read(&old).unwrap(), b"another");
        run(&path, &work());
        assert_eq!(bytes(&path), unbroken(), "edit {number}");
    }
}

#[test]
fn results_without_statistics_are_refused_where_they_are_to_be_tested() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let unmeasured = |path: &Path| {
        let stored = Signature::read(path).unwrap().unwrap();
        Signature { measured: None, ..stored }.write(path).unwrap();
    };
    let mut unfinished = opened(&path, 1, Existing::Use);
    push_missing(&mut unfinished, &work()[..1]);
    drop(unfinished);
    unmeasured(&Place::partial(&path).signature);
    let error = refusal(&path, &signature(1));
    assert!(error.contains("ablate-one.partial.csv` has no statistics of segments"), "{error}");
    let mut again = opened(&path, 1, Existing::Again);
    push_missing(&mut again, &work());
    finish(again);
    unmeasured(&Signature::path_beside(&path));
    let error = refusal(&path, &signature(1));
    assert!(error.contains("ablate-one.csv` has no statistics of segments"), "{error}");
    assert!(error.ends_with("--again measures it anew"), "{error}");
}

/// One command: what it computes, and after how many rows it is killed, if it is.
#[derive(Debug, Clone)]
struct Invocation {
    existing: Existing,
    attention: Vec<&'static str>,
    killed_after: Option<usize>,
}

/// What is known of the growing file.
#[derive(Debug, Clone, Default)]
struct Growing {
    is_renewal: bool,
    there: BTreeSet<String>,
    new: BTreeSet<String>,
}

/// Carries a command out and checks that it computes what it must, and not more.
fn carry_out(command: &Invocation, path: &Path, growing: &mut Option<Growing>) {
    let stored = || read_rows::<AblationRow>(path).unwrap_or_default();
    let complete: BTreeSet<String> = stored().iter().map(Row::name).collect();
    let is_again = command.existing == Existing::Again;
    let is_asked_for = |row: &AblationRow| command.attention.contains(&row.attention.as_str());
    let mut now = growing.clone().unwrap_or(Growing { there: complete.clone(), ..Growing::default() });
    if is_again && !now.is_renewal {
        now = Growing { is_renewal: true, new: BTreeSet::new(), ..now };
    }
    let untouched = now.clone();
    let work: Vec<AblationRow> = work().into_iter().filter(is_asked_for).collect();
    if is_again {
        now.there.retain(|name| now.new.contains(name) || !work.iter().any(|row| row.name() == *name));
    }
    let missing: Vec<AblationRow> = work.into_iter().filter(|row| !now.there.contains(&row.name())).collect();
    let killed_after = command.killed_after.unwrap_or(missing.len());

    let mut writer = opened(path, 1, command.existing);
    writer.renew(is_asked_for);
    for row in missing.iter().take(killed_after) {
        assert!(!writer.contains(&row.key()), "{command:?} does not compute {}", row.name());
        writer.add_base(&COLUMNS, block(BASE, 0)).unwrap();
        add(&mut writer, row.clone()).unwrap();
        now.there.insert(row.name());
        now.new.insert(row.name());
    }
    let there: BTreeSet<String> = writer.rows().map(Row::name).collect();
    assert_eq!(there, now.there, "{command:?}");
    if command.killed_after.is_none() {
        if !there.is_empty() || !complete.is_empty() {
            finish(writer);
        }
        *growing = None;
    } else if killed_after.min(missing.len()) > 0 {
        *growing = Some(now);
    } else if growing.is_some() {
        *growing = Some(untouched);
    }
    let left: BTreeSet<String> = stored().iter().map(Row::name).collect();
    assert!(complete.is_subset(&left), "{command:?} lost a row");
}

fn commands() -> impl proptest::strategy::Strategy<Value = Vec<Invocation>> {
    use proptest::prelude::*;
    let attention = proptest::sample::subsequence(vec!["enc-enc", "enc-dec"], 1..=2);
    let one = (any::<bool>(), attention, proptest::option::of(0..4_usize));
    let command = one.prop_map(|(is_again, attention, killed_after)| Invocation {
        existing: if is_again { Existing::Again } else { Existing::Use },
        attention,
        killed_after,
    });
    proptest::collection::vec(command, 1..8)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]

    #[test]
    fn no_sequence_of_commands_loses_a_row(commands in commands()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut growing = None;
        for command in &commands {
            carry_out(command, &path, &mut growing);
        }
        run(&path, &work());
        assert_eq!(bytes(&path), unbroken());
        assert_eq!(names(folder.path()).len(), 3, "{:?}", names(folder.path()));
    }
}
