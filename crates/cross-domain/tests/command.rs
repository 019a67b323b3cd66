//! The whole command on a setup that trains in a second.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, CorrelationRow};
use test_support::{CLASSIFIER, TRANSLATOR, pearson, program, read, refuses, rows, with_model};

const FILE: &str = "cross-domain-test-shifted.csv";

fn command(folder: &Path) -> Command {
    test_support::command_with("cross-domain", folder, &["--resamples", "9"])
}

#[test]
fn the_rows_are_about_the_sweeps_beside_them() {
    let folder = with_model(TRANSLATOR);
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
        let pairs = scores(&sweeps[0]).into_iter().zip(scores(&sweeps[1])).map(<[f64; 2]>::from);
        let pairs: Vec<[f64; 2]> = pairs.collect();
        assert_eq!(row.heads, pairs.len());
        assert_eq!(row.first_base_score, sweeps[0][0].base_score);
        assert_eq!(row.second_base_score, sweeps[1][0].base_score);
        let r = pearson(&pairs);
        assert!((row.pearson.unwrap() - r).abs() < 1e-9, "{}: {r}", row.attention);
        assert_eq!(row.top, row.heads.min(10));
        assert!((0.0..=row.top as f64).contains(&row.top_overlap));
    }
    // existing sweeps are used
    let files = [FILE, "ablate-one.csv", "ablate-one-shifted.csv"].map(|file| format!("results/tiny/{file}"));
    let before = files.each_ref().map(|file| read(folder.path(), file));
    command(folder.path()).assert().success();
    assert_eq!(files.each_ref().map(|file| read(folder.path(), file)), before);
    // `retest` compares the stored sweeps
    let path = files[0].as_str();
    program("retest", folder.path()).args(["tiny", "--resamples", "50", "--seed", "4"]).assert().success();
    assert_ne!(read(folder.path(), path), before[0]);
    let found: Vec<CorrelationRow> = rows(folder.path(), FILE);
    assert!(found.iter().all(|row| row.pearson_low.is_some() == row.pearson_high.is_some()));
    program("retest", folder.path()).args([path, "--resamples", "9", "--seed", "1"]).assert().success();
    assert_eq!(read(folder.path(), path), before[0]);
    let limited = "results/tiny/cross-domain-test-shifted-first-2.csv\n";
    command(folder.path()).args(["--limit", "first:2"]).assert().success().stdout(limited);
}

#[test]
fn with_again_the_sweep_of_an_earlier_model_is_replaced() {
    let folder = with_model(TRANSLATOR);
    command(folder.path()).assert().success();
    let results = folder.path().join("results/tiny");
    let signature = results.join("ablate-one-shifted.json");
    let text = fs::read_to_string(&signature).unwrap();
    let weights = &text.split("\"weights\": \"").nth(1).unwrap()[..64];
    fs::write(&signature, text.replace(weights, &"0".repeat(64))).unwrap();
    command(folder.path()).arg("--again").assert().success();
    let names =
        fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let sweeps = names.filter(|name| name.starts_with("ablate-one-shifted") && name.ends_with(".csv"));
    assert_eq!((sweeps.count(), fs::read_to_string(&signature).unwrap().contains(weights)), (1, true));
}

#[test]
fn two_different_splits_are_needed() {
    let folder = with_model(TRANSLATOR);
    refuses(command(folder.path()).args(["--against", "test"]), "split `test` is given twice");
    let reviews = with_model(CLASSIFIER);
    refuses(&mut command(reviews.path()), "no split to compare with");
    let shifted = CLASSIFIER.replace("test = \"test\"", "test = \"test\"\nshifted = \"dev\"");
    fs::write(reviews.path().join("tiny.toml"), shifted).unwrap();
    command(reviews.path()).assert().success().stdout("results/tiny/cross-domain-test-dev.csv\n");
}
