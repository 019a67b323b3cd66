//! Tests of the whole command on synthetic results.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use records::{
    AblationRow, BASE, CorrelationRow, CurveRow, Identity, MetricName, Provenance, Row, RowWriter, Signature,
    TestedRow, Testing, read_rows,
};
use stats::Segments;
use stats::bleu::BleuStatistics;
use stats::family::Comparison;

const TESTING: Testing = Testing { resamples: 99, seed: 1, margin_percent: 2.0, block: 1 };

/// Returns 30 sentences of 10 words; higher values of `worse` have fewer matching n-grams.
fn translated(worse: u32) -> Segments {
    let segment = |n: u32| BleuStatistics::new(10, 10, [9, 7, 5, 4].map(|right| right - (n * worse) % 4));
    Segments::Bleu((0..30).map(segment).collect())
}

/// Writes tested results: rows with their segments.
fn write<R: TestedRow>(
    (path, again): (&Path, bool),
    families: &[(&str, usize)],
    base: &Segments,
    rows: impl IntoIterator<Item = (R, Segments)>,
) {
    let families = families.iter().map(|(name, rows)| ((*name).to_owned(), *rows)).collect();
    let measured = significance::measured(base.metric(), families);
    let experiment = path.file_stem().unwrap().to_str().unwrap();
    let run = Provenance::collect("cpu", 1, BTreeMap::new());
    let signature = Signature::new(Identity::new(experiment, "demo"), run).tested(measured, TESTING);
    let mut writer = RowWriter::open(path, &signature, again).unwrap();
    writer.add_base(base.metric().columns(), significance::block(BASE.to_owned(), base, None)).unwrap();
    for (mut row, variant) in rows {
        row.record(&Comparison::untested(base.score().unwrap(), variant.score().unwrap()));
        let block = significance::block(row.name(), &variant, Some(base));
        writer.append(row, Some(block)).unwrap();
    }
    writer.publish(significance::test_rows).unwrap();
}

/// Writes `results/demo/ablate-one.csv` with two heads.
fn measured(folder: &Path, worse: u32, again: bool) -> PathBuf {
    let path = folder.join("results/demo/ablate-one.csv");
    let row = |head: u32| {
        let id = format!("self:1:{head}").parse().unwrap();
        (AblationRow::untested(id, MetricName::Bleu, 0.0, 0.0), translated(head + worse))
    };
    write((&path, again), &[("self", 2)], &translated(0), [1, 2].map(row));
    path
}

fn retest(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("retest").unwrap();
    command.current_dir(folder).args(arguments);
    command
}

#[test]
fn results_are_retested_by_setup_by_file_and_all_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = measured(folder.path(), 0, false);
    let fresh = fs::read(&path).unwrap();
    let file = "results/demo/ablate-one.csv";
    for target in [&["demo"][..], &[file], &[]] {
        let other = [target, &["--resamples", "199", "--seed", "3", "--margin", "1"]].concat();
        retest(folder.path(), &other).assert().success().stdout(contains("ablate-one.csv: 2 rows"));
        assert_ne!(fs::read(&path).unwrap(), fresh);
        let signature = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
        let expected = Testing { resamples: 199, seed: 3, margin_percent: 1.0, block: 1 };
        assert_eq!(signature.testing, Some(expected));
        // settings that are not given stay unchanged
        retest(folder.path(), target).assert().success();
        let rows: Vec<AblationRow> = read_rows(&path).unwrap();
        assert!(rows.iter().all(|row| row.p_adjusted.is_some_and(|p| p >= 0.005)));
        let back = [target, &["--resamples", "99", "--seed", "1", "--margin", "2"]].concat();
        retest(folder.path(), &back).assert().success();
        assert_eq!(fs::read(&path).unwrap(), fresh);
    }
}

/// A run with --again was killed before it renamed its signature. The retest first finishes publishing this run.
#[test]
fn a_retest_does_not_mix_old_and_new_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = measured(folder.path(), 0, false);
    let files = || ["segments.csv.gz", "csv", "json"].map(|end| fs::read(path.with_extension(end)).unwrap());
    let old = files();
    measured(folder.path(), 1, true);
    let new = files();
    assert!(old.iter().zip(&new).all(|(old, new)| old != new));
    fs::rename(path.with_extension("json"), path.with_extension("partial.json")).unwrap();
    fs::write(path.with_extension("json"), &old[2]).unwrap();
    retest(folder.path(), &["demo"]).assert().success().stdout(contains("ablate-one.csv: 2 rows"));
    assert_eq!(files(), new);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 3);
}

#[test]
fn results_that_cannot_be_tested_are_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |arguments: &[&str]| {
        let output = retest(folder.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refusal(&["demo"]).contains("cannot read `results/demo`: "));
    let path = measured(folder.path(), 0, false);
    retest(folder.path(), &["--resamples", "100000"]).assert().code(2);
    retest(folder.path(), &["--margin", "101"]).assert().code(2);
    fs::write(path.with_extension("segments.csv.gz"), "torn").unwrap();
    let message = refusal(&["demo"]);
    assert!(message.contains("ablate-one.segments.csv.gz` was edited"), "{message}");
    assert!(message.lines().all(|line| line.starts_with("error: ")), "{message}");
    let missing = refusal(&["results/demo/missing.csv"]);
    assert!(missing.contains("cannot read `results/demo/missing.csv`"), "{missing}");
}

#[test]
fn the_results_of_all_tested_experiments_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results/demo");
    fs::create_dir_all(&results).unwrap();
    let tested = ["ablate-all-but-one-on-dev", "prune-and-retrain", "train-gates-all", "joint-search"];
    let others = ["training", "importance", "ablate-one.partial", "ablate-one.shard-1-of-2"];
    for name in tested.iter().chain(&others) {
        fs::write(results.join(format!("{name}.csv")), "row\n").unwrap();
    }
    let output = retest(folder.path(), &["demo"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(tested.iter().all(|name| said.contains(&format!("demo/{name}.csv"))), "{said}");
    assert!(!others.iter().any(|name| said.contains(name)), "{said}");
}

/// They are skipped, unless the command line names them.
#[test]
fn results_without_statistics_are_not_tested() {
    let folder = tempfile::tempdir().unwrap();
    let path = measured(folder.path(), 0, false);
    let stored = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
    Signature { measured: None, ..stored }.write(&Signature::path_beside(&path)).unwrap();
    let before = fs::read(&path).unwrap();
    retest(folder.path(), &["demo"]).assert().success().stderr(contains("no statistics of segments"));
    let message = "`results/demo/ablate-one.csv` has no statistics of segments: --again measures them";
    retest(folder.path(), &["results/demo/ablate-one.csv"]).assert().code(1).stderr(contains(message));
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Two curves of two steps. The second step improves every sentence, so it is reached on every resample; the full model is not a step to
/// reach. A ranking on the tested segments proves nothing about other segments.
#[test]
fn steps_record_how_often_they_are_reached_and_shares_of_the_oracle_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results/demo/iterative-prune.csv");
    let row = |(order, step): (&str, usize)| {
        let (order, metric) = (order.parse().unwrap(), MetricName::Bleu);
        let row = CurveRow { order, step, masked: step, heads: 4, metric, ..CurveRow::default() };
        (row, translated(u32::from(step == 0)))
    };
    let rows = [("importance", 0), ("importance", 1), ("oracle", 0), ("oracle", 1)].map(row);
    write((&path, false), &[], &translated(1), rows);
    for row in read_rows::<CurveRow>(&path).unwrap() {
        let reached = (row.step == 1).then_some(1.0);
        assert_eq!((row.reached_dispensable, row.reached_without_loss), (reached, reached), "{}", row.name());
    }
    let output = retest(folder.path(), &["demo"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let marked: Vec<(bool, bool)> = text
        .lines()
        .filter(|line| line.contains("dispensable heads: 25.0%"))
        .map(|line| (line.contains("oracle"), line.contains("ranked on the segments that are tested")))
        .collect();
    assert_eq!(marked, [(false, false), (true, true)], "{text}");
}

/// Writes a comparison of the sweep with itself, as if there were two splits.
fn comparison(path: &Path) {
    let mut identity = Identity::new("cross-domain", "demo");
    let own = "ablate-one.csv";
    for (name, value) in [("first_file", own), ("second_file", own), ("against", "")] {
        identity.arguments.insert(name.to_owned(), value.into());
    }
    let run = Provenance::collect("cpu", 1, BTreeMap::new());
    let signature = Signature { testing: Some(TESTING), ..Signature::new(identity, run) };
    let mut writer = RowWriter::open(path, &signature, false).unwrap();
    for attention in ["all", "self"] {
        let attention = attention.parse().unwrap();
        writer.append(CorrelationRow { attention, ..CorrelationRow::default() }, None).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_comparison_is_retested_only_next_to_its_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let beside = measured(folder.path(), 0, false).with_file_name("cross-domain-a-b.csv");
    comparison(&beside);
    retest(folder.path(), &["results/demo/cross-domain-a-b.csv"]).assert().success();
    let rows: Vec<CorrelationRow> = read_rows(&beside).unwrap();
    assert!(rows.iter().all(|row| row.heads == 2), "they are computed from the sweeps");

    comparison(&folder.path().join("elsewhere/c.csv"));
    let message = "`elsewhere/c.csv` compares `ablate-one.csv`, which is not in its folder";
    let refused = retest(folder.path(), &["elsewhere/c.csv"]).assert().code(1);
    refused.stderr(contains(message).and(contains("cannot read").not()));
}
