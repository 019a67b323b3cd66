//! Tests that a killed run continues, and that complete results stay until their successors are complete.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::file::kill;
use crate::place::Place;
use crate::signature::sha256;
use crate::{
    AblationRow, BASE, CurveRow, Identity, Measured, MetricName, Order, Shard, read_checked, read_complete,
    read_rows, taken,
};

type Writer = RowWriter<AblationRow>;

fn signature(seed: u64) -> Signature {
    let identity = Identity { seed: Some(seed), ..Identity::new("ablate-one", "demo-translation") };
    static RUN: OnceLock<Provenance> = OnceLock::new();
    let run = RUN.get_or_init(|| Provenance::collect("cpu", 2, BTreeMap::new())).clone();
    let measured = Measured { metric: MetricName::Bleu, positive: None, families: BTreeMap::new() };
    let testing = Testing { resamples: 9, seed: 1, margin_percent: 2.0, block: 1 };
    Signature::new(identity, run).tested(measured, testing)
}

/// Returns a row whose numbers depend only on its head.
fn row(name: &str) -> AblationRow {
    let head = name.rsplit(':').next().unwrap().parse::<f64>().unwrap();
    AblationRow {
        delta_low: Some(-1.0 / 3.0),
        p_value: Some(0.01 * head),
        ..AblationRow::untested(name.parse().unwrap(), MetricName::Bleu, 36.05, 36.05 - 0.1 * head)
    }
}

const COLUMNS: [&str; 2] = ["gold", "predicted"];

/// Returns statistics of 40 segments that depend only on the head; head 0 is the base.
fn block(name: &str, head: u32) -> Block {
    let cells = |head: u32| {
        let cells = |n: u32| [1, u32::from(n % 7 < head % 5)].map(stats::Cell::Count).to_vec();
        (0..40).map(cells).collect::<Vec<_>>()
    };
    Block::new(name.to_owned(), &cells(head), (name != BASE).then(|| cells(0)).as_deref())
}

/// Rows of the experiment, in working order.
const WORK: [&str; 4] = ["enc-enc:1:1", "enc-enc:1:2", "enc-dec:1:1", "enc-dec:1:2"];

fn opened(path: &Path, seed: u64, again: bool) -> Writer {
    Writer::open(path, &signature(seed), again).unwrap()
}

fn measure(writer: &mut Writer, names: &[&str]) -> Result<(), Error> {
    for row in names.iter().map(|name| row(name)) {
        if !writer.contains(&row.key()) {
            writer.add_base(&COLUMNS, block(BASE, 0))?;
            let block = block(&row.name(), row.head as u32);
            writer.append(row, Some(block))?;
        }
    }
    Ok(())
}

/// Replaces the tests: requires the statistics, and reads all rows of the attention type.
fn finish(writer: Writer) -> Result<(), Error> {
    let test = |rows: &mut [AblationRow], blocks: &mut Blocks, _: &mut Signature| {
        let names: BTreeSet<String> = rows.iter().map(Row::name).chain([BASE.to_owned()]).collect();
        assert!(names.iter().all(|name| blocks.get(name).is_some()), "a row has no statistics");
        blocks.retain(|name| names.contains(name));
        for index in 0..rows.len() {
            let family = rows.iter().filter(|row| row.attention == rows[index].attention).count();
            rows[index].p_adjusted = rows[index].p_value.map(|p| p * family as f64);
        }
        Ok::<(), Error>(())
    };
    writer.publish(test).map(drop)
}

fn run(path: &Path, names: &[&str]) {
    let mut writer = opened(path, 1, false);
    measure(&mut writer, names).unwrap();
    finish(writer).unwrap();
}

/// Starts a run and kills it once it has these rows.
fn killed(path: &Path, seed: u64, again: bool, names: &[&str]) {
    measure(&mut opened(path, seed, again), names).unwrap();
}

/// Runs to the end, or kills the run before the first rename that is not `allowed`; returns true at the end.
fn run_with_renames(allowed: usize, run: impl FnOnce() -> Result<(), Error>) -> bool {
    kill::LEFT.set(allowed);
    let is_whole = run().is_ok();
    kill::LEFT.set(usize::MAX);
    is_whole
}

fn bytes(path: &Path) -> [Vec<u8>; 2] {
    [fs::read(path).unwrap(), fs::read(Blocks::path_beside(path)).unwrap()]
}

/// Returns the files of a run without interruption.
fn unbroken() -> [Vec<u8>; 2] {
    let (_folder, path) = place();
    run(&path, &WORK);
    bytes(&path)
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results/ablate-one.csv");
    fs::create_dir(folder.path().join("results")).unwrap();
    (folder, path)
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn rows(writer: &Writer) -> Vec<String> {
    writer.rows().map(Row::name).collect()
}

fn stored(path: &Path) -> Signature {
    Signature::read(&Signature::path_beside(path)).unwrap().unwrap()
}

fn refusal(path: &Path, seed: u64) -> String {
    let error = Writer::open(path, &signature(seed), false).unwrap_err().to_string();
    assert!(!error.contains('\n'), "not one line: {error}");
    error
}

/// Writes rows with other numbers, as from an earlier version of the code.
fn earlier(path: &Path) {
    let mut writer = opened(path, 1, false);
    for name in WORK {
        writer.add_base(&COLUMNS, block(BASE, 0)).unwrap();
        let row = AblationRow { p_value: Some(0.5), ..row(name) };
        let block = block(name, row.head as u32 + 2);
        writer.append(row, Some(block)).unwrap();
    }
    finish(writer).unwrap();
}

/// Returns what a reader finds for rows and for statistics: the content before, the content after, or an error that suggests a remedy.
fn seen(path: &Path, [before, after]: &[[Vec<u8>; 2]; 2]) -> [&'static str; 2] {
    let signature = stored(path);
    let which = |place: usize, bytes: Vec<u8>| match bytes {
        bytes if bytes == before[place] => "before",
        bytes if bytes == after[place] => "after",
        _ => panic!("neither old nor new"),
    };
    let refused = |error: Error| {
        let message = error.to_string();
        assert!(message.contains("mixed") && message.contains("--again"), "{message}");
        "refused"
    };
    let text = |rows: Vec<AblationRow>| header::<AblationRow>() + &rows.iter().map(line).collect::<String>();
    let rows = read_checked::<AblationRow>(path, Some(&signature));
    let rows = rows.map_or_else(refused, |checked| which(0, text(checked.rows).into_bytes()));
    let blocks = Blocks::beside(path, &signature);
    let blocks = blocks.map_or_else(refused, |blocks| which(1, blocks.unwrap().bytes()));
    let values = |found: Option<Stored<AblationRow>>| found.unwrap().rows.into_values().collect::<Vec<_>>();
    for all in [read_complete::<AblationRow>(path), Stored::complete(path).map(values)] {
        let all = all.map_or_else(refused, |rows| which(0, text(rows).into_bytes()));
        assert_eq!(all, if rows == blocks { rows } else { "refused" });
    }
    [rows, blocks]
}

/// A new run, or one that continues an unfinished one, is killed; then the command is repeated with or without --again.
#[test]
fn a_run_with_again_killed_at_any_rename_mixes_no_files() {
    let after = unbroken();
    for (is_resumed, renames) in [(false, 9), (true, 10)] {
        for (left, is_again) in (0..=renames).flat_map(|left| [(left, false), (left, true)]) {
            let (_folder, path) = place();
            earlier(&path);
            let both = [bytes(&path), after.clone()];
            if is_resumed {
                killed(&path, 1, true, &WORK[..1]);
            }
            let whole = |again: bool| {
                let mut writer = Writer::open(&path, &signature(1), again)?;
                measure(&mut writer, &WORK)?;
                finish(writer)
            };
            let is_whole = run_with_renames(renames - left, || whole(true));
            assert_eq!(is_whole, left == 0, "{renames} renames");
            let expected = match left {
                0 => ["after", "after"],
                1 => ["refused", "refused"],
                2 => ["before", "refused"],
                _ => ["before", "before"],
            };
            assert_eq!(seen(&path, &both), expected, "{left} renames left");
            whole(is_again).unwrap();
            let is_known = is_resumed || left < 8; // before that, nothing shows that rows are to be measured again
            assert_eq!(bytes(&path), both[usize::from(is_again || is_known)], "{left} renames left");
            assert_eq!(names(&path).len(), 3, "{left} renames left");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Killed after any row, before any rename, in the middle of a line or of statistics; with --again or without.
    #[test]
    fn a_run_that_was_killed_at_random_ends_like_an_unbroken_one(
        complete in 0..3_usize,
        kills in vec((0..5_usize, 0..12_usize, 0..90_u64, any::<bool>(), any::<bool>()), 1..8),
    ) {
        let (_folder, path) = place();
        if complete > 0 {
            run(&path, &WORK[..complete]);
        }
        for (rows, allowed, torn, is_of_rows, again) in kills {
            let is_whole = run_with_renames(allowed, || {
                let mut writer = Writer::open(&path, &signature(1), again)?;
                measure(&mut writer, &WORK[..rows.min(4)])?;
                if rows > 3 { finish(writer) } else { Ok(()) }
            });
            let Place { csv, segments, .. } = Place::partial(&path);
            let growing = fs::OpenOptions::new().write(true).open(if is_of_rows { csv } else { segments });
            if let (Ok(file), true, true) = (growing, is_whole, rows < 4) {
                let length = file.metadata().unwrap().len();
                file.set_len(length.saturating_sub(torn)).unwrap();
            }
        }
        run(&path, &WORK);
        prop_assert_eq!(bytes(&path), unbroken());
        prop_assert_eq!(names(&path), ["ablate-one.csv", "ablate-one.json", "ablate-one.segments.csv.gz"]);
    }
}

/// A row replaces the row with its key, a curve the curve with its name. A resumed run without statistics leaves no statistics file.
#[test]
fn rows_are_replaced_by_key_and_series() {
    let (_folder, path) = place();
    let signature = Signature { measured: None, testing: None, ..signature(1) };
    let step = |order: Order, step: usize, score: f64| CurveRow { order, step, score, ..CurveRow::default() };
    let begun = |again: bool, rows: &[CurveRow]| {
        let mut writer = RowWriter::<CurveRow>::open(&path, &signature, again).unwrap();
        rows.iter().for_each(|row| writer.append(row.clone(), None).unwrap());
        writer
    };
    let write = |again: bool, rows: &[CurveRow]| {
        begun(again, rows).finish().unwrap().into_iter().map(|row| (row.step, row.score)).collect::<Vec<_>>()
    };
    let (first, second) = (Order::Importance, Order::Random);
    let rows = [step(first, 0, 9.0), step(first, 1, 8.0), step(second, 0, 7.0), step(first, 1, 6.0)];
    drop(begun(false, &rows[..1]));
    assert_eq!(write(false, &rows), [(0, 9.0), (1, 6.0), (0, 7.0)]);
    assert_eq!(names(&path), ["ablate-one.csv", "ablate-one.json"]);
    assert_eq!(write(false, &[step(second, 0, 5.0)]), [(0, 9.0), (1, 6.0), (0, 5.0)]);
    assert_eq!(write(true, &[step(first, 2, 4.0)]), [(2, 4.0), (0, 5.0)]);
}

/// The run is refused only when rows are to be added, which would replace it.
#[test]
fn an_unfinished_run_with_other_settings_leaves_complete_results_in_use() {
    let (_folder, path) = place();
    run(&path, &WORK);
    killed(&path, 2, true, &WORK[..1]);
    run(&path, &WORK);
    let added = opened(&path, 1, false).add_base(&COLUMNS, block(BASE, 0)).unwrap_err().to_string();
    assert!(added.contains("partial.csv` belongs to another run"), "{added}");
    assert_eq!(bytes(&path), unbroken());
    assert_eq!(rows(&opened(&path, 2, true)), WORK[..1], "it resumes");
}

/// Without further rows, results stay unchanged.
#[test]
fn complete_results_can_be_extended_and_rows_are_in_key_order() {
    let (_folder, path) = place();
    run(&path, &WORK[..2]);
    run(&path, &WORK);
    assert_eq!(bytes(&path), unbroken());
    let rows = read_rows::<AblationRow>(&path).unwrap();
    assert_eq!(rows.iter().map(Row::name).collect::<Vec<_>>(), [WORK[2], WORK[3], WORK[0], WORK[1]]);
    assert_eq!(rows[1], AblationRow { p_adjusted: Some(0.04), ..row("enc-dec:1:2") });
    let complete = stored(&path).complete.unwrap();
    assert_eq!((complete.rows, complete.sha256), (4, sha256(&fs::read(&path).unwrap())));
    let before = (stored(&path), fs::metadata(&path).unwrap().modified().unwrap());
    run(&path, &WORK);
    assert_eq!((stored(&path), fs::metadata(&path).unwrap().modified().unwrap()), before);
}

/// Measured again by a run of equal identity, for one type, or by a run of another identity.
#[test]
fn results_stay_until_new_measurements_are_complete() {
    for (asked, seed) in [(&WORK[..2], 1), (&WORK[..], 2)] {
        let (_folder, path) = place();
        run(&path, &WORK);
        let before = (bytes(&path), stored(&path));
        killed(&path, seed, true, &asked[..1]);
        assert_eq!((bytes(&path), stored(&path)), before);
        let mut writer = opened(&path, seed, seed == 2);
        assert_eq!(rows(&writer), asked[..1], "what is new stays");
        measure(&mut writer, asked).unwrap();
        finish(writer).unwrap();
        assert_eq!(bytes(&path), unbroken(), "what was not asked for stays");
        assert_eq!((stored(&path).identity.seed, stored(&path).again), (Some(seed), false));
    }
}

#[test]
fn another_base_is_refused_unless_all_rows_are_computed_again() {
    let (_folder, path) = place();
    run(&path, &WORK);
    let refused = opened(&path, 1, false).add_base(&COLUMNS, block(BASE, 1)).unwrap_err().to_string();
    assert!(refused.contains("differs in 6 of 40 segments"), "{refused}");
    for (names, is_refused) in [(&WORK[..2], true), (&WORK[..], false)] {
        let mut writer = opened(&path, 1, true);
        writer.add_base(&COLUMNS, block(BASE, 1)).unwrap();
        names.iter().for_each(|name| writer.append(row(name), Some(block(name, 1))).unwrap());
        let published = writer.finish().map_err(|error| error.to_string());
        assert!(published.is_err() == is_refused, "{published:?}");
        assert!(published.err().is_none_or(|error| error.contains("the full model differs between")));
    }
}

#[test]
fn rows_that_are_left_out_are_computed_again() {
    let (_folder, path) = place();
    run(&path, &WORK[..3]);
    killed(&path, 1, false, &WORK);
    let mut writer = opened(&path, 1, false);
    writer.leave_out(|row| row.head == 2);
    assert_eq!(rows(&writer), [WORK[2], WORK[0]]);
    measure(&mut writer, &WORK).unwrap();
    drop(writer);
    run(&path, &WORK);
    assert_eq!(bytes(&path), unbroken());
    let mut writer = opened(&path, 1, false);
    writer.leave_out(|row| row.head == 2);
    finish(writer).unwrap();
    assert_eq!(read_rows::<AblationRow>(&path).unwrap().len(), 2);
}

#[test]
fn a_signature_names_the_rows_of_each_run() {
    let (_folder, path) = place();
    let runs = || stored(&path).runs.into_iter().map(|run| run.rows).collect::<Vec<_>>();
    killed(&path, 1, false, &WORK[..1]);
    run(&path, &WORK[..2]);
    assert_eq!(runs(), [[WORK[0]], [WORK[1]]]);
    run(&path, &WORK);
    assert_eq!(runs(), [vec![WORK[0]], vec![WORK[1]], vec![WORK[2], WORK[3]]]);
    let finished = stored(&path).runs.into_iter().map(|run| run.duration_seconds.is_some());
    assert_eq!(finished.collect::<Vec<_>>(), [false, true, true]);
    for (asked, expected) in
        [(&WORK[2..], vec![vec![WORK[0]], vec![WORK[1]], vec![WORK[2], WORK[3]]]), (&WORK[..], vec![vec![]])]
    {
        let mut writer = opened(&path, 1, true);
        measure(&mut writer, asked).unwrap();
        finish(writer).unwrap();
        assert_eq!(runs(), expected, "one run that wrote all rows needs no names");
    }
}

/// Results and unfinished runs that do not fit, with the expected errors; --again replaces them.
#[test]
fn mismatching_files_are_refused_and_can_be_replaced() {
    let edit = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, text.replace("36.05", "37.05")).unwrap();
    };
    let tear = |path: &Path| fs::write(Blocks::path_beside(path), "torn").unwrap();
    let age = |path: &Path| fs::write(path, "attention,layer,head,p_holm\nself,1,1,0.5\n").unwrap();
    let unmeasured = |path: &Path| {
        Signature { measured: None, ..stored(path) }.write(&Signature::path_beside(path)).unwrap();
    };
    let other = |path: &Path| signature(2).write(&Signature::path_beside(path)).unwrap();
    type Spoil<'a> = &'a dyn Fn(&Path);
    let cases: [(Spoil<'_>, bool, &str); 6] = [
        (&edit, false, "ablate-one.csv` was edited"),
        (&tear, false, "segments.csv.gz` was edited"),
        (&age, true, "`p_holm` is unknown"),
        (&unmeasured, false, "has no statistics of segments"),
        (&other, false, "belongs to another run (seed: 2 in the file, 1 now)"),
        (&other, true, "partial.csv` belongs to another run (seed: 2 in the file, 1 now)"),
    ];
    for (spoil, is_unfinished, expected) in cases {
        let (_folder, path) = place();
        if is_unfinished {
            killed(&path, 1, false, &WORK);
            spoil(&Place::partial(&path).csv);
        } else {
            run(&path, &WORK);
            spoil(&path);
        }
        let before = names(&path);
        let message = refusal(&path, 1);
        assert!(message.contains(expected), "{message}");
        assert_eq!(names(&path), before, "a refusal left a file");
        let mut again = opened(&path, 1, true);
        measure(&mut again, &WORK).unwrap();
        finish(again).unwrap();
        assert_eq!(bytes(&path), unbroken(), "{expected}");
    }
}

#[test]
fn files_that_are_not_results_are_never_touched() {
    let (_folder, path) = place();
    for (content, expected) in [
        ("day,note\n1,keep me\n".to_owned(), "does not begin with the header of these results"),
        (header::<AblationRow>() + &line(&row(WORK[0])), "has rows, but its signature `"),
    ] {
        fs::write(&path, &content).unwrap();
        for again in [false, true] {
            let error = Writer::open(&path, &signature(1), again).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert_eq!(names(&path).len(), 1);
    }
    fs::write(Signature::path_beside(&path), "{}").unwrap();
    assert!(refusal(&path, 1).contains("ablate-one.json` is not the signature of a run: "));
    let folder = path.with_file_name("folder.csv");
    fs::create_dir(&folder).unwrap();
    for other in [path.with_extension("json"), path.with_extension("partial.csv"), folder] {
        assert!(refusal(&other, 1).contains("name ends in `.csv` but not in `.partial.csv`"));
    }
}

/// Without rows there is nothing to protect, and nothing is left.
#[test]
fn one_writer_at_a_time_leaves_nothing_if_it_adds_nothing() {
    let (_folder, path) = place();
    let first = opened(&path, 1, false);
    assert!(refusal(&path, 1).contains("is being written by another process"));
    assert!(check_writable(&path).is_err());
    drop(first);
    check_writable(&path).unwrap();
    assert!(names(&path).is_empty());
    fs::write(&path, header::<AblationRow>()).unwrap();
    signature(2).write(&Signature::path_beside(&path)).unwrap();
    assert_eq!(opened(&path, 1, false).rows().len(), 0);
}

/// Results of another run, complete or not, or of one of its shards.
#[test]
fn another_run_gets_a_name_of_its_own() {
    let shard: Shard = "2/3".parse().unwrap();
    for (is_complete, is_shard) in [(true, false), (false, false), (true, true)] {
        let (_folder, path) = place();
        let identity = |seed| signature(seed).identity;
        let taken = |seed| taken(&path, &identity(seed)).unwrap();
        assert_eq!(taken(2), None);
        let file = if is_shard { shard.path(&path) } else { path.clone() };
        if is_complete {
            run(&file, &WORK)
        } else {
            killed(&file, 1, false, &WORK)
        }
        assert_eq!(taken(1), None);
        let other = taken(2).unwrap();
        assert_eq!(other.path, if is_complete { file } else { Place::partial(&file).csv });
        assert_eq!(other.differences, "seed: 1 in the file, 2 now");
        let own = identity(2).own_path(&path);
        let name = own.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("ablate-one-") && name.len() == "ablate-one-12345678.csv".len(), "{name}");
        assert_ne!(own, identity(3).own_path(&path));
    }
}

const CROWDED: &str = "RECORDS_TEST_CROWDED_FOLDER";

/// Runs `crowded_folder` in a process that may only write a few kilobytes to a file.
#[cfg(target_os = "linux")]
#[test]
fn a_row_that_does_not_fit_leaves_the_earlier_ones() {
    let (folder, path) = place();
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" --ignored --exact writer::tests::crowded_folder",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(CROWDED, folder.path().join("results"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let growing = Place::partial(&path).csv;
    assert!(read_rows::<AblationRow>(&growing).unwrap().len() > 10);
    assert!(fs::read(growing).unwrap().ends_with(b"\n"), "the row that did not fit left a torn line");
}

/// Second half of the preceding test, which runs it.
#[test]
#[ignore = "another test runs it with little room on the disk"]
fn crowded_folder() {
    let folder = std::env::var_os(CROWDED).expect("the other test sets it");
    let path = Path::new(&folder).join("ablate-one.csv");
    let mut writer = opened(&path, 1, false);
    let error = (1..1000).find_map(|head| writer.append(row(&format!("self:1:{head}")), None).err()).unwrap();
    assert!(error.to_string().ends_with("ablate-one.partial.csv`"), "{error}");
    let kept = writer.rows().cloned().collect::<Vec<_>>();
    assert_eq!(read_rows::<AblationRow>(&Place::partial(&path).csv).unwrap(), kept);
}

#[test]
#[should_panic(expected = "completing rows must not change their keys")]
fn changed_keys_panic() {
    let (_folder, path) = place();
    let mut writer = opened(&path, 1, false);
    writer.append(row(WORK[0]), None).unwrap();
    let _ = writer.publish(|rows, _, _| {
        rows[0].head = 2;
        Ok::<(), Error>(())
    });
}
