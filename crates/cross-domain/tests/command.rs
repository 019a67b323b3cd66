//! The whole command on a setup that trains in a second.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, CorrelationRow};
use tempfile::TempDir;
use test_support::{CLASSIFIER, TRANSLATOR, read, rows, trained};

const FILE: &str = "cross-domain-test-shifted.csv";

fn folder() -> TempDir {
    trained(TRANSLATOR, "cross-domain", &["--limit", "first:3"])
}

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("cross-domain", folder);
    command.args(["--resamples", "9"]);
    command
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    test_support::refusal(command(folder).args(arguments))
}

/// Computes Pearson's r by its definition.
fn correlation(first: &[f64], second: &[f64]) -> f64 {
    let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
    let (mean_first, mean_second) = (mean(first), mean(second));
    let product: f64 = first.iter().zip(second).map(|(a, b)| (a - mean_first) * (b - mean_second)).sum();
    let squares = |side: &[f64], mean: f64| side.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    product / (squares(first, mean_first) * squares(second, mean_second)).sqrt()
}

#[test]
fn the_rows_are_about_the_sweeps_beside_them() {
    let folder = folder();
    command(folder.path()).assert().success().stdout(format!("results/tiny/{FILE}\n"));
    let found: Vec<CorrelationRow> = rows(folder.path(), FILE);
    let names: Vec<&str> = found.iter().map(|row| row.attention.name()).collect();
    assert_eq!(names, ["all", "dec-dec", "enc-dec", "enc-enc"]);
    let sweeps =
        ["ablate-one.csv", "ablate-one-shifted.csv"].map(|file| rows::<AblationRow>(folder.path(), file));
    for row in &found {
        let scores = |sweep: &[AblationRow]| {
            let of_type =
                sweep.iter().filter(|head| row.attention == "all" || row.attention == head.attention.name());
            of_type.map(|head| head.score).collect::<Vec<f64>>()
        };
        let (first, second) = (scores(&sweeps[0]), scores(&sweeps[1]));
        assert_eq!(row.heads, first.len());
        assert_eq!(row.first_base_score, sweeps[0][0].base_score);
        assert_eq!(row.second_base_score, sweeps[1][0].base_score);
        let r = correlation(&first, &second);
        assert!((row.pearson.unwrap() - r).abs() < 1e-9, "{}: {r}", row.attention);
        assert_eq!(row.top, row.heads.min(10));
        assert!((0.0..=row.top as f64).contains(&row.top_overlap));
    }
}

#[test]
fn sweeps_that_are_there_are_used_and_rows_do_not_change() {
    let folder = folder();
    command(folder.path()).assert().success();
    let files = [FILE, "ablate-one.csv", "ablate-one-shifted.csv"].map(|file| format!("results/tiny/{file}"));
    let before = files.each_ref().map(|file| read(folder.path(), file));
    command(folder.path()).assert().success();
    assert_eq!(files.each_ref().map(|file| read(folder.path(), file)), before);
    command(folder.path())
        .args(["--limit", "first:2"])
        .assert()
        .success()
        .stdout("results/tiny/cross-domain-test-shifted-first-2.csv\n");
    assert_eq!(files.each_ref().map(|file| read(folder.path(), file)), before);
}

/// The comparison is repeated from both stored sweeps, unless one was measured with another model.
#[test]
fn comparisons_are_tested_again_from_their_sweeps() {
    let folder = folder();
    command(folder.path()).assert().success();
    let path = format!("results/tiny/{FILE}");
    let fresh = read(folder.path(), &path);
    let retest = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("retest").unwrap();
        command.current_dir(folder.path()).args(arguments);
        command
    };
    retest(&["tiny", "--resamples", "50", "--seed", "4"]).assert().success();
    assert_ne!(read(folder.path(), &path), fresh);
    let found: Vec<CorrelationRow> = rows(folder.path(), FILE);
    assert!(found.iter().all(|row| row.pearson_low.is_some() == row.pearson_high.is_some()));
    retest(&[&path, "--resamples", "9", "--seed", "1"]).assert().success();
    assert_eq!(read(folder.path(), &path), fresh);

    let signature = folder.path().join("results/tiny/ablate-one-shifted.json");
    let text = fs::read_to_string(&signature).unwrap();
    let weights = text.split("\"weights\": \"").nth(1).unwrap();
    fs::write(&signature, text.replace(&weights[..8], "00000000")).unwrap();
    let message = test_support::refusal(&mut retest(&[&path]));
    assert!(message.contains("is of another model, other data or other settings than"), "{message}");
}

/// With --again, the sweep of an earlier model is replaced and not written to a new file.
#[test]
fn sweeps_of_an_earlier_model_are_replaced_only_if_asked_for() {
    let folder = folder();
    command(folder.path()).assert().success();
    let results = folder.path().join("results/tiny");
    let signature = results.join("ablate-one-shifted.json");
    let text = fs::read_to_string(&signature).unwrap();
    let weights = &text.split("\"weights\": \"").nth(1).unwrap()[..64];
    fs::write(&signature, text.replace(weights, &"0".repeat(64))).unwrap();
    let sweeps = || {
        let names =
            fs::read_dir(&results).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("ablate-one-shifted") && name.ends_with(".csv")).count()
    };
    command(folder.path()).arg("--again").assert().success();
    assert_eq!((sweeps(), fs::read_to_string(&signature).unwrap().contains(weights)), (1, true));
}

#[test]
fn two_different_splits_are_needed() {
    let folder = folder();
    let message = refusal(folder.path(), &["--against", "test"]);
    assert_eq!(message, "error: split `test` is given twice: the second must be another\n");
    let message = refusal(folder.path(), &["--against", "newstest"]);
    assert!(message.contains("no split `newstest`: this setup has train, dev, test, shifted"), "{message}");
    let reviews = trained(CLASSIFIER, "cross-domain", &["--limit", "first:3", "--against", "dev"]);
    let message = refusal(reviews.path(), &[]);
    assert_eq!(message, "error: which split to compare with? name it by --against\n");
    let spec = fs::read_to_string(reviews.path().join("tiny.toml")).unwrap();
    fs::write(
        reviews.path().join("tiny.toml"),
        spec.replace("test = \"test\"", "test = \"test\"\nshifted = \"dev\""),
    )
    .unwrap();
    command(reviews.path()).assert().success().stdout("results/tiny/cross-domain-test-dev.csv\n");
}
