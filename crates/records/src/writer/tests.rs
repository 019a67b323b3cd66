mod refusals;
mod renewal;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::*;
use crate::{
    AblationRow, BASE, Destination, Identity, Measured, MetricName, Provenance, Shard, Taken, TrainingRow,
    check_writable, place_of, place_of_shard, read_rows,
};

type Writer = RowWriter<AblationRow>;

fn signature(seed: u64) -> Signature {
    let identity = Identity { seed: Some(seed), ..Identity::new("ablate-one", "demo-translation") };
    static RUN: OnceLock<Provenance> = OnceLock::new();
    let run = RUN.get_or_init(|| Provenance::collect("cpu", 2, BTreeMap::new())).clone();
    let measured = Measured { metric: MetricName::Accuracy, positive: None, families: BTreeMap::new() };
    let testing = Testing { resamples: 9, seed: 1, margin_percent: 2.0 };
    Signature::new(identity, run).tested(measured, testing)
}

/// A row whose numbers depend on its head alone, as those of an experiment do.
fn row(attention: &str, head: usize) -> AblationRow {
    AblationRow {
        delta_low: Some(-1.0 / 3.0),
        p_value: Some(0.01 * head as f64),
        ..AblationRow::untested(
            format!("{attention}:1:{head}").parse().unwrap(),
            MetricName::Bleu,
            36.05,
            36.05 - 0.1 * head as f64,
        )
    }
}

const COLUMNS: [&str; 2] = ["gold", "predicted"];

/// Statistics of 40 segments that depend on the head alone; those of the base are of no head.
fn block(name: &str, head: u32) -> Block {
    let cells = |head: u32| {
        (0..40)
            .map(|n: u32| [1, u32::from(n % 7 < head % 5)].map(stats::Cell::Count).to_vec())
            .collect::<Vec<_>>()
    };
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

/// As films of gates are, whose rows have none.
#[test]
fn a_resumed_run_without_statistics_leaves_no_file_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let signature = Signature { measured: None, testing: None, ..signature(1) };
    for head in [1, 2] {
        let mut writer = Writer::open(&path, &signature, Existing::Use).unwrap();
        writer.push(row("enc-enc", head)).unwrap();
        if head == 2 {
            writer.finish(|_, _| Ok::<_, Error>(())).unwrap();
        }
    }
    assert_eq!(names(folder.path()), ["ablate-one.csv", "ablate-one.json"]);
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
