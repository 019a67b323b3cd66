//! Tests of joining shards, on synthetic rows: complete and killed runs, and what is refused.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::str::contains;
use proptest::prelude::*;
use records::{
    AblationRow, BASE, CurveRow, Held, Identity, MetricName, Part, Provenance, Row, RowWriter, Shard,
    Signature, TestedRow, Testing,
};
use significance::{block, merge, test_rows};
use stats::Segments;
use stats::bleu::BleuStatistics;
use stats::family::Comparison;

const TESTING: Testing = Testing { resamples: 19, seed: 1, margin_percent: 2.0, block: 1 };

/// Number of heads, of two attention types.
const HEADS: usize = 10;

/// Returns 12 sentences of 10 words; higher values of `worse` have fewer matching n-grams.
fn translated(worse: usize) -> Segments {
    let segment =
        |n: u32| BleuStatistics::new(10, 10, [9, 7, 5, 4].map(|right| right - (n * worse as u32) % 4));
    Segments::Bleu((0..12).map(segment).collect())
}

fn row(place: usize) -> AblationRow {
    let attention = if place < HEADS / 2 { "enc-enc" } else { "dec-dec" };
    let [base, score] = [0, place].map(|worse| translated(worse).score().unwrap());
    let head = format!("{attention}:{}:{}", 1 + place % 2, 1 + place / 2 % 5).parse().unwrap();
    AblationRow::untested(head, MetricName::Bleu, base, score)
}

#[derive(Clone)]
struct Run {
    path: PathBuf,
    shard: Option<Shard>,
    places: Vec<usize>,
    seed: u64,
    testing: Testing,
    again: bool,
    /// Number of a machine that computes differently.
    machine: usize,
    /// Number of a machine that computes only masked models differently.
    slip: usize,
}

impl Run {
    /// Returns a run of all rows of `results/demo/ablate-one.csv`.
    fn of(folder: &Path) -> Self {
        Self {
            path: folder.join("results/demo/ablate-one.csv"),
            shard: None,
            places: (0..HEADS).collect(),
            seed: 1,
            testing: TESTING,
            again: false,
            machine: 0,
            slip: 0,
        }
    }

    fn shard(folder: &Path, shard: &str) -> Self {
        Self { shard: Some(shard.parse().unwrap()), ..Self::of(folder) }
    }

    fn part(&self) -> Option<Part> {
        let rows = self.places.iter().map(|&place| (row(place).name(), place)).collect();
        self.shard.map(|shard| Part { shard, rows })
    }

    fn own_path(&self) -> PathBuf {
        self.shard.map_or(self.path.clone(), |shard| shard.path(&self.path))
    }

    fn open(&self) -> RowWriter<AblationRow> {
        let families = BTreeMap::from([("enc-enc".to_owned(), HEADS / 2), ("dec-dec".to_owned(), HEADS / 2)]);
        let measured = significance::measured(translated(0).metric(), families);
        let identity = Identity { seed: Some(self.seed), ..Identity::new("ablate-one", "demo") };
        let run = Provenance::collect("cpu", 1, BTreeMap::new());
        let signature = Signature::new(identity, run).tested(measured, self.testing);
        let signature = Signature { part: self.part(), ..signature };
        RowWriter::open(&self.own_path(), &signature, self.again).unwrap()
    }

    /// Measures missing rows, up to this number; returns how many.
    fn measure(&self, writer: &mut RowWriter<AblationRow>, most: usize) -> usize {
        let (base, columns) = (translated(self.machine), translated(0).metric().columns());
        let part = self.part();
        let is_mine = |row: &AblationRow| part.as_ref().is_none_or(|part| part.holds(&row.name()));
        let rows = self.places.iter().map(|&place| (place, row(place))).filter(|(_, row)| is_mine(row));
        let due: Vec<_> = rows.filter(|(_, row)| !writer.contains(&row.key())).take(most).collect();
        for (place, mut row) in due.iter().cloned() {
            writer.add_base(columns, block(BASE.to_owned(), &base, None)).unwrap();
            let masked = translated(place + self.slip);
            row.record(&Comparison::untested(base.score().unwrap(), masked.score().unwrap()));
            let variant = block(row.name(), &masked, Some(&base));
            writer.append(row, Some(variant)).unwrap();
        }
        due.len()
    }

    /// Runs to the end; returns how many rows were measured.
    fn go(&self) -> usize {
        let mut writer = self.open();
        let measured = self.measure(&mut writer, usize::MAX);
        let is_shard = self.shard.is_some();
        writer
            .publish(
                |rows, blocks, signature| {
                    if is_shard { Ok(()) } else { test_rows(rows, blocks, signature) }
                },
            )
            .unwrap();
        measured
    }

    fn go_to(&self) -> PathBuf {
        self.go();
        self.own_path()
    }

    /// Runs until it is killed while writing after this many rows: `torn` bytes are missing at the end of a growing file.
    fn killed(&self, rows: usize, torn: u64) {
        let mut writer = self.open();
        self.measure(&mut writer, rows);
        drop(writer);
        let ending = if torn.is_multiple_of(2) { "partial.csv" } else { "partial.segments.csv.gz" };
        if let Ok(file) = OpenOptions::new().write(true).open(self.own_path().with_extension(ending)) {
            let length = file.metadata().unwrap().len();
            file.set_len(length.saturating_sub(torn / 2)).unwrap();
        }
    }
}

fn bytes(path: &Path) -> [Vec<u8>; 2] {
    [path.to_owned(), path.with_extension("segments.csv.gz")].map(|path| fs::read(path).unwrap())
}

fn unsharded() -> [Vec<u8>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::of(folder.path());
    run.go();
    bytes(&run.path)
}

fn all_shards(folder: &Path, of: usize) {
    for number in 1..=of {
        Run::shard(folder, &format!("{number}/{of}")).go();
    }
}

fn everything(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder.join("results/demo")).unwrap();
    entries.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Returns the message of a refused merge, which must not change anything.
fn refusal(folder: &Path) -> String {
    let before = everything(folder);
    let message = merge(&Run::of(folder).path).unwrap_err().to_string();
    assert_eq!(everything(folder), before, "{message}");
    assert!(!message.contains('\n'), "not one line: {message}");
    message
}

/// Up to more shards than heads.
#[test]
fn shards_of_any_number_become_the_file_of_one_run() {
    let expected = unsharded();
    for of in [1, 2, 3, 7, HEADS, HEADS + 3] {
        let folder = tempfile::tempdir().unwrap();
        all_shards(folder.path(), of);
        let path = Run::of(folder.path()).path;
        let merged = merge(&path).unwrap();
        assert_eq!((merged.rows, merged.shards), (HEADS, of));
        assert_eq!(bytes(&path), expected, "{of} shards");
        assert_eq!(everything(folder.path()).len(), 3, "the files of shards are gone");
        let signature = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
        let mut named: Vec<String> = signature.runs.iter().flat_map(|run| run.rows.clone()).collect();
        named.sort();
        let mut rows: Vec<String> = (0..HEADS).map(|place| row(place).name()).collect();
        rows.sort();
        assert_eq!(named, if of == 1 { Vec::new() } else { rows }, "each row has its run");
        assert!(signature.part.is_none() && signature.complete.is_some());
        assert_eq!(signature.testing, Some(TESTING));
    }
}

/// Attention types one after the other into existing files, or again in place of results from another machine.
#[test]
fn shards_grow_and_replace_results() {
    for again in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = Run::of(folder.path()).path;
        if again {
            Run { machine: 1, ..Run::of(folder.path()) }.go();
        }
        for places in [HEADS / 2..HEADS, 0..HEADS / 2] {
            for shard in ["1/2", "2/2"] {
                let run = Run { again, places: places.clone().collect(), ..Run::shard(folder.path(), shard) };
                run.go();
                let rows: Vec<AblationRow> = records::read_rows(&run.own_path()).unwrap();
                assert!(rows.iter().all(|row| row.p_value.is_none()), "tested before all are there");
            }
        }
        merge(&path).unwrap();
        assert_eq!(bytes(&path), unsharded());
    }
}

#[test]
fn results_that_are_there_are_part_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    Run { places: (0..HEADS / 2).collect(), ..Run::of(folder.path()) }.go();
    for shard in ["1/2", "2/2"] {
        let measured = Run { places: (HEADS / 2..HEADS).collect(), ..Run::shard(folder.path(), shard) }.go();
        assert!((2..=3).contains(&measured), "{measured}");
    }
    let path = Run::of(folder.path()).path;
    merge(&path).unwrap();
    assert_eq!(bytes(&path), unsharded());
}

/// Killed between any two renames of the results, or before the last files of shards were removed.
#[test]
fn a_merge_that_was_killed_is_made_again() {
    for again in [false, true] {
        for renamed in 0..=4 {
            let folder = tempfile::tempdir().unwrap();
            let path = Run::of(folder.path()).path;
            if again {
                Run { machine: 1, ..Run::of(folder.path()) }.go();
            }
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let old = everything(folder.path());
            for shard in ["1/2", "2/2"] {
                Run { again, ..Run::shard(folder.path(), shard) }.go();
            }
            let shards = everything(folder.path());
            merge(&path).unwrap();
            for (file, bytes) in shards.iter().filter(|(file, _)| !old.contains_key(*file)) {
                fs::write(file, bytes).unwrap();
            }
            for ending in ["segments.csv.gz", "csv", "json"].into_iter().skip(renamed) {
                let [whole, partial] =
                    ["", "partial."].map(|part| path.with_extension(format!("{part}{ending}")));
                fs::rename(&whole, partial).unwrap();
                old.get(&whole).map_or(Ok(()), |bytes| fs::write(&whole, bytes)).unwrap();
            }
            if renamed == 4 {
                fs::remove_file(Shard::at(0, 2).path(&path)).unwrap();
            }
            assert_eq!(merge(&path).unwrap().rows, HEADS, "again: {again}, {renamed} renames");
            assert_eq!(bytes(&path), unsharded());
            assert_eq!(everything(folder.path()).len(), 3);
        }
    }
}

#[test]
fn a_shard_that_is_being_written_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    all_shards(folder.path(), 2);
    let _lock = Held::take(&Run::shard(folder.path(), "2/2").own_path()).unwrap();
    let message = merge(&Run::of(folder.path()).path).unwrap_err().to_string();
    assert!(message.contains("shard-2-of-2.csv` is being written by another process"), "{message}");
}

/// Shards with a fault, and parts of the message. Missing rows and different test settings can be repaired afterwards.
#[test]
fn shards_that_do_not_go_together_are_refused() {
    type Spoil = fn(&Path, Run);
    let name = |place| row(place).name();
    let unfinished = format!("{}, {} of shard 2/4, which is unfinished", name(5), name(9));
    let missing = format!("{}, {} of shard 3/4, of which there is no file", name(2), name(6));
    let cases: [(Spoil, &[&str]); 9] = [
        (|_, second| assert!(Run { seed: 2, ..second }.go() > 0), &["are of different runs (seed: "]),
        (
            |_, second| assert!(Run { testing: Testing { resamples: 29, ..TESTING }, ..second }.go() > 0),
            &["different --resamples, --margin or --seed"],
        ),
        (
            |_, second| assert!(Run { machine: 1, ..second }.go() > 0),
            &["the full model differs between ", "one.shard-1-of-2.csv`", "one.shard-2-of-2.csv`"],
        ),
        (
            |folder, second| {
                second.go();
                Run { slip: 1, ..Run::shard(folder, "1/1") }.go();
            },
            &[" scores ", "shard-1-of-1.csv`"],
        ),
        (
            |_, second| fs::remove_file(second.go_to().with_extension("json")).unwrap(), // only the CSV files were copied
            &["has rows, but its signature"],
        ),
        (
            |_, second| {
                let text = fs::read_to_string(second.go_to()).unwrap();
                fs::write(second.own_path(), text.replacen("0.", "1.", 1)).unwrap();
            },
            &["shard-2-of-2.csv` was edited"],
        ),
        (
            |folder, second| {
                let whole = Run::of(folder).go_to();
                for ending in ["csv", "json", "segments.csv.gz"] {
                    fs::copy(whole.with_extension(ending), second.own_path().with_extension(ending)).unwrap();
                }
            },
            &["its signature does not say so"],
        ),
        (
            |folder, _| {
                fs::remove_file(Run::shard(folder, "1/2").own_path()).unwrap();
                Run::shard(folder, "1/4").go();
                Run::shard(folder, "2/4").killed(1, 0);
                Run::shard(folder, "4/4").go();
            },
            &["4 rows are missing", &unfinished, &missing],
        ),
        (
            |folder, _| {
                Run::of(folder).go(); // old rows do not replace missing new ones
                Run { again: true, ..Run::shard(folder, "1/2") }.go();
            },
            &["5 rows are missing", "of shard 2/2, of which there is no file"],
        ),
    ];
    for (spoil, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        Run::shard(folder.path(), "1/2").go();
        spoil(folder.path(), Run::shard(folder.path(), "2/2"));
        let message = refusal(folder.path());
        assert!(expected.iter().all(|part| message.contains(part)), "{expected:?}: {message}");
        if message.contains("rows are missing") || message.contains("--resamples") {
            Run::shard(folder.path(), "2/2").go();
            Run::shard(folder.path(), "1/1").go();
            merge(&Run::of(folder.path()).path).unwrap();
            assert_eq!(bytes(&Run::of(folder.path()).path), unsharded());
        }
    }
}

/// A step of a curve, measured by a shard that ordered heads `a` and `b` the other way round.
#[test]
fn curves_of_different_orders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("iterative-prune.csv");
    let steps = [("1/2", 0, ""), ("2/2", 1, "a"), ("1/2", 2, "b+c")];
    for number in ["1/2", "2/2"] {
        let part = Part {
            shard: number.parse().unwrap(),
            rows: (0..3).map(|step| (format!("all/importance/{step}"), step)).collect(),
        };
        let measured = significance::measured(translated(0).metric(), BTreeMap::new());
        let run = Provenance::collect("cpu", 1, BTreeMap::new());
        let signature =
            Signature::new(Identity::new("iterative-prune", "demo"), run).tested(measured, TESTING);
        let signature = Signature { part: Some(part.clone()), ..signature };
        let mut writer = RowWriter::open(&part.shard.path(&path), &signature, false).unwrap();
        let (base, columns) = (translated(0), translated(0).metric().columns());
        writer.add_base(columns, block(BASE.to_owned(), &base, None)).unwrap();
        for (_, step, masked) in steps.iter().filter(|(shard, ..)| *shard == number) {
            let score = base.score().unwrap();
            let mut row = CurveRow {
                step: *step,
                masked: *step,
                metric: MetricName::Bleu,
                masked_heads: (*masked).to_owned(),
                ..CurveRow::default()
            };
            row.record(&Comparison::untested(score, score));
            let statistics = block(row.name(), &base, Some(&base));
            writer.append(row, Some(statistics)).unwrap();
        }
        writer.finish().unwrap();
    }
    let message = merge(&path).unwrap_err().to_string();
    assert!(
        message.starts_with("row `all/importance/2` does not mask all heads of `all/importance/1`"),
        "{message}"
    );
}

fn command(folder: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin(program).unwrap();
    command.current_dir(folder).args(arguments);
    command
}

#[test]
fn the_command_joins_the_shards_of_a_subject_and_says_where() {
    let folder = tempfile::tempdir().unwrap();
    all_shards(folder.path(), 2);
    let other = folder.path().join("results/demo/ablate-one-first-9.csv");
    Run { path: other.clone(), ..Run::shard(folder.path(), "1/2") }.go();
    let merge = |arguments: &[&str]| command(folder.path(), "merge", arguments);
    merge(&["nobody"]).assert().code(1).stderr(contains("there are no results in `results/nobody`"));
    merge(&["demo", "--experiment", "cross-domain"])
        .assert()
        .code(1)
        .stderr(contains("there are no shards to join"));
    let shard = "results/demo/ablate-one.shard-1-of-2.csv";
    merge(&[shard]).assert().code(1).stderr(contains("is one shard: name the subject"));
    command(folder.path(), "retest", &[shard])
        .assert()
        .code(1)
        .stderr(contains("is one shard: `merge` joins it"));
    // one can be joined, the other cannot
    merge(&["experiments/demo.toml"])
        .assert()
        .code(1)
        .stdout("results/demo/ablate-one.csv: 10 rows of 2 shards\n")
        .stderr(contains("`results/demo/ablate-one-first-9.csv` cannot be made yet, 5 rows are missing"))
        .stderr(contains("the shards of 1 of 2 results could not be joined"));
    Run { path: other, ..Run::shard(folder.path(), "2/2") }.go();
    merge(&["--results", "results", "results/demo/ablate-one-first-9.csv"]).assert().success();
    merge(&["demo"]).assert().code(1).stderr(contains("there are no shards to join"));
    command(folder.path(), "retest", &["demo"]).assert().success();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    /// 25 kills per case, 100 in total, over four shards: after any row, in the middle of a line or of statistics.
    #[test]
    fn shards_that_were_killed_at_random_end_in_the_file_of_one_run(
        kills in proptest::collection::vec((0usize..4, 0usize..3, 0u64..60), 25),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for (place, rows, torn) in kills {
            Run::shard(folder.path(), &Shard::at(place, 4).to_string()).killed(rows, torn);
        }
        all_shards(folder.path(), 4);
        let path = Run::of(folder.path()).path;
        prop_assert_eq!(merge(&path).unwrap().rows, HEADS);
        prop_assert_eq!(bytes(&path), unsharded());
        prop_assert_eq!(everything(folder.path()).len(), 3);
    }
}
