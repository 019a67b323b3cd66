//! The whole command on results made by hand.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::str::contains;
use records::{
    AblationRow, BASE, Existing, Identity, Provenance, Row, RowWriter, Signature, Testing, read_rows,
};
use stats::Segments;
use stats::bleu::BleuStatistics;

const TESTING: Testing = Testing { resamples: 99, seed: 1, margin_percent: 2.0 };

/// 30 sentences of 10 words, of whose n-grams fewer are right the more `worse` it is.
fn translated(worse: u32) -> Segments {
    let segment = |n: u32| BleuStatistics::new(10, 10, [9, 7, 5, 4].map(|right| right - (n * worse) % 4));
    Segments::Bleu((0..30).map(segment).collect())
}

/// `results/demo/ablate-one.csv` with two heads, tested.
fn results(folder: &Path) -> PathBuf {
    let path = folder.join("results/demo/ablate-one.csv");
    let (base, columns) = (translated(0), translated(0).metric().columns());
    let families = BTreeMap::from([("self".to_owned(), 2)]);
    let measured = significance::measured(base.metric(), families);
    let run = Provenance::collect("cpu", 1, BTreeMap::new());
    let signature =
        Signature::new(Identity::new("ablate-one", "demo"), run).tested(measured.clone(), TESTING);
    let mut writer = RowWriter::open(&path, &signature, Existing::Use).unwrap();
    writer.add_base(columns, significance::block(BASE.to_owned(), &base, None)).unwrap();
    for head in [1, 2] {
        let variant = translated(head as u32);
        let [base_score, score] = [&base, &variant].map(|segments| segments.score().unwrap());
        let row = AblationRow::untested("self", (1, head), "bleu", base_score, score);
        let block = significance::block(row.name(), &variant, Some(&base));
        writer.push_measured(row, columns, block).unwrap();
    }
    writer.finish(|rows, blocks| significance::test_rows(rows, blocks, &measured, TESTING)).unwrap();
    path
}

fn retest(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("retest").unwrap();
    command.current_dir(folder).args(arguments);
    command
}

#[test]
fn results_are_tested_again_by_subject_by_file_and_all_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = results(folder.path());
    let fresh = fs::read(&path).unwrap();
    let file = "results/demo/ablate-one.csv";
    for target in [&["demo"][..], &[file], &[]] {
        let other = [target, &["--resamples", "199", "--seed", "3", "--margin", "1"]].concat();
        retest(folder.path(), &other).assert().success().stdout(contains("ablate-one.csv: 2 rows"));
        assert_ne!(fs::read(&path).unwrap(), fresh);
        let signature = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
        let expected = Testing { resamples: 199, seed: 3, margin_percent: 1.0 };
        assert_eq!(signature.testing, Some(expected));
        // what is not given stays
        retest(folder.path(), target).assert().success();
        let rows: Vec<AblationRow> = read_rows(&path).unwrap();
        assert!(rows.iter().all(|row| row.p_adjusted.is_some() && row.p_value.unwrap() >= 0.01));
        let back = [target, &["--resamples", "99", "--seed", "1"]].concat();
        retest(folder.path(), &back).assert().success();
        assert_eq!(fs::read(&path).unwrap(), fresh);
    }
}

#[test]
fn what_cannot_be_tested_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |arguments: &[&str]| {
        let output = retest(folder.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refusal(&["demo"]).contains("cannot read `results/demo`: "));
    let path = results(folder.path());
    retest(folder.path(), &["--resamples", "100001"]).assert().code(2);
    retest(folder.path(), &["--margin", "101"]).assert().code(2);
    fs::write(path.with_extension("segments.csv.gz"), "torn").unwrap();
    let message = refusal(&["demo"]);
    assert!(message.contains("ablate-one.segments.csv.gz` was edited"), "{message}");
    assert!(message.lines().all(|line| line.starts_with("error: ")), "{message}");
    fs::write(path.with_extension("json"), "{}").unwrap();
    assert!(refusal(&["demo"]).contains("is not the signature of a run"));
}

#[test]
fn results_without_statistics_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = results(folder.path());
    let stored = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
    Signature { measured: None, ..stored }.write(&Signature::path_beside(&path)).unwrap();
    let before = fs::read(&path).unwrap();
    retest(folder.path(), &["demo"]).assert().success().stderr(contains("no statistics of segments"));
    assert_eq!(fs::read(&path).unwrap(), before);
}
