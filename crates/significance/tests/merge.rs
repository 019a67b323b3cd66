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
    let segment = |n: u32| BleuStatistics::new(10, 10, [9, 7, 5, 4].map(|all| all - (n * worse as u32) % 4));
    Segments::Bleu((0..12).map(segment).collect())
}

fn row(place: usize) -> AblationRow {
    let attention = if place < HEADS / 2 { "enc-enc" } else { "dec-dec" };
    let [base, score] = [0, place].map(|worse| translated(worse).score().unwrap());
    let head = format!("{attention}:{}:{}", 1 + place % 2, 1 + place / 2 % 5).parse().unwrap();
    AblationRow::untested(head, MetricName::Bleu, base, score)
}

fn signed(identity: Identity, families: BTreeMap<String, usize>, testing: Testing) -> Signature {
    let measured = significance::measured(translated(0).metric(), families);
    Signature::new(identity, Provenance::collect("cpu", 1, BTreeMap::new())).tested(measured, testing)
}

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
        let families = ["enc-enc", "dec-dec"].map(|family| (family.to_owned(), HEADS / 2));
        let identity = Identity { seed: Some(self.seed), ..Identity::new("ablate-one", "demo") };
        let signature = signed(identity, families.into(), self.testing);
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
        match self.shard {
            Some(_) => drop(writer.finish().unwrap()),
            None => drop(writer.publish(test_rows).unwrap()),
        }
        measured
    }

    /// Runs until it is killed while writing after this many rows: `torn / 2` bytes are missing at the end of a growing file.
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

/// One attention type after the other, also with --again in place of results from another machine, or next to results of one type.
#[test]
fn shards_grow_and_add_to_results_or_replace_them() {
    let (first, last) = (0..HEADS / 2, HEADS / 2..HEADS);
    for (again, types) in [(false, vec![&last, &first]), (true, vec![&last, &first]), (false, vec![&last])] {
        let folder = tempfile::tempdir().unwrap();
        let path = Run::of(folder.path()).path;
        if again {
            Run { machine: 1, ..Run::of(folder.path()) }.go();
        } else if types == [&last] {
            Run { places: first.clone().collect(), ..Run::of(folder.path()) }.go();
        }
        for places in types {
            for shard in ["1/2", "2/2"] {
                let run = Run { again, places: places.clone().collect(), ..Run::shard(folder.path(), shard) };
                assert!((2..=3).contains(&run.go()));
                let rows: Vec<AblationRow> = records::read_rows(&run.own_path()).unwrap();
                assert!(rows.iter().all(|row| row.p_value.is_none()), "tested before all are there");
            }
        }
        merge(&path).unwrap();
        assert_eq!(bytes(&path), unsharded());
    }
}

/// Killed before the last files of shards were removed; kills between renames are tested in `records`.
#[test]
fn a_merge_waits_for_all_shards_and_is_repeated_if_it_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = Run::of(folder.path()).path;
    all_shards(folder.path(), 2);
    let shards = everything(folder.path());
    let lock = Held::take(&Run::shard(folder.path(), "2/2").own_path()).unwrap();
    let message = merge(&path).unwrap_err().to_string();
    assert!(message.contains("shard-2-of-2.csv` is being written by another process"), "{message}");
    drop(lock);
    merge(&path).unwrap();
    for (file, bytes) in shards.iter().filter(|(file, _)| !file.ends_with("ablate-one.shard-1-of-2.csv")) {
        fs::write(file, bytes).unwrap();
    }
    assert_eq!(merge(&path).unwrap().rows, HEADS);
    assert_eq!(bytes(&path), unsharded());
    assert_eq!(everything(folder.path()).len(), 3);
}

/// Shards with a fault, and parts of the message. Missing rows and different test settings can be repaired afterwards.
#[test]
fn incompatible_shards_are_refused() {
    type Spoil = fn(&Path, Run);
    const OTHER: Testing = Testing { resamples: 29, ..TESTING };
    let name = |place| row(place).name();
    let unfinished = format!("{}, {} of shard 2/4, which is unfinished", name(5), name(9));
    let missing = format!("{}, {} of shard 3/4, which has no file", name(2), name(6));
    let cases: [(Spoil, &[&str]); 7] = [
        (|_, second| assert!(Run { seed: 2, ..second }.go() > 0), &["come from different runs (seed: "]),
        (|_, second| assert!(Run { testing: OTHER, ..second }.go() > 0), &["their --resamples,"]),
        (
            |_, second| assert!(Run { machine: 1, ..second }.go() > 0),
            &["the full model differs between ", "one.shard-1-of-2.csv`", "one.shard-2-of-2.csv`"],
        ),
        (
            |folder, second| assert!(second.go() + Run { slip: 1, ..Run::shard(folder, "1/1") }.go() > 0),
            &[" scores ", "shard-1-of-1.csv`"],
        ),
        (
            |folder, second| {
                let whole = Run::of(folder);
                whole.go();
                for ending in ["csv", "json", "segments.csv.gz"] {
                    let [whole, second] = [&whole, &second].map(|run| run.own_path().with_extension(ending));
                    fs::copy(whole, second).unwrap();
                }
            },
            &["its signature names no shard"],
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
            &["5 rows are missing", "of shard 2/2, which has no file"],
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
    let (base, columns) = (translated(0), translated(0).metric().columns());
    let rows: BTreeMap<String, usize> = (0..3).map(|step| (format!("all/importance/{step}"), step)).collect();
    for (number, steps) in [("1/2", vec![(0, ""), (2, "b+c")]), ("2/2", vec![(1, "a")])] {
        let shard: Shard = number.parse().unwrap();
        let signature = signed(Identity::new("iterative-prune", "demo"), BTreeMap::new(), TESTING);
        let signature = Signature { part: Some(Part { shard, rows: rows.clone() }), ..signature };
        let mut writer = RowWriter::open(&shard.path(&path), &signature, false).unwrap();
        writer.add_base(columns, block(BASE.to_owned(), &base, None)).unwrap();
        for (step, masked_heads) in steps {
            let (masked_heads, score) = (masked_heads.to_owned(), base.score().unwrap());
            let row = CurveRow { step, masked: step, metric: MetricName::Bleu, ..CurveRow::default() };
            let row = CurveRow { base_score: score, score, masked_heads, ..row };
            let statistics = block(row.name(), &base, Some(&base));
            writer.append(row, Some(statistics)).unwrap();
        }
        writer.finish().unwrap();
    }
    let message = merge(&path).unwrap_err().to_string();
    assert!(message.starts_with("row `all/importance/2` does not mask all heads of"), "{message}");
}

fn command(folder: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin(program).unwrap();
    command.current_dir(folder).args(arguments);
    command
}

#[test]
fn the_command_joins_the_shards_of_a_setup_and_prints_the_path() {
    let folder = tempfile::tempdir().unwrap();
    all_shards(folder.path(), 2);
    let other = folder.path().join("results/demo/ablate-one-first-9.csv");
    Run { path: other.clone(), ..Run::shard(folder.path(), "1/2") }.go();
    let merge = |arguments: &[&str]| command(folder.path(), "merge", arguments);
    let shard = "results/demo/ablate-one.shard-1-of-2.csv";
    for (mut refused, message) in [
        (merge(&["nobody"]), "there are no results in `results/nobody`"),
        (merge(&["demo", "--experiment", "cross-domain"]), "there are no shards to join"),
        (merge(&[shard]), "is a single shard: name the setup"),
        (command(folder.path(), "retest", &[shard]), "is a single shard: `merge` joins all"),
    ] {
        refused.assert().code(1).stderr(contains(message));
    }
    // one can be joined, the other cannot
    merge(&["experiments/demo.toml"])
        .assert()
        .code(1)
        .stdout("results/demo/ablate-one.csv: 10 rows of 2 shards\n")
        .stderr(contains("`results/demo/ablate-one-first-9.csv` is still incomplete, 5 rows are missing"))
        .stderr(contains("the shards of 1 of 2 results could not be joined"));
    Run { path: other, ..Run::shard(folder.path(), "2/2") }.go();
    merge(&["--results", "results", "results/demo/ablate-one-first-9.csv"]).assert().success();
    merge(&["demo"]).assert().code(1).stderr(contains("there are no shards to join"));
    command(folder.path(), "retest", &["demo"]).assert().success();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    /// Also with more shards than heads, with 25 kills: after any row, in the middle of a line or of statistics.
    #[test]
    fn shards_of_any_number_that_were_killed_at_random_end_in_the_file_of_one_run(
        of in 1..HEADS + 4,
        kills in proptest::collection::vec((0..HEADS + 4, 0usize..3, 0u64..60), 25),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for (place, rows, torn) in kills {
            Run::shard(folder.path(), &Shard::at(place, of).to_string()).killed(rows, torn);
        }
        all_shards(folder.path(), of);
        let path = Run::of(folder.path()).path;
        let merged = merge(&path).unwrap();
        prop_assert_eq!((merged.rows, merged.shards), (HEADS, of));
        prop_assert_eq!(bytes(&path), unsharded());
        prop_assert_eq!(everything(folder.path()).len(), 3, "the files of shards are gone");
        let signature = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
        prop_assert!(signature.part.is_none() && signature.complete.is_some());
        prop_assert_eq!(signature.testing, Some(TESTING));
    }
}
