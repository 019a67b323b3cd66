//! The whole command in shards, and merged, on a setup that trains in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use records::Signature;
use test_support::{TRANSLATOR, program, refuses, signal_when, with_model};

const TESTS: [&str; 2] = ["--resamples", "99"];

fn command(folder: &Path, arguments: &[&str]) -> Command {
    test_support::command_with("ablate-one", folder, &[&TESTS[..], arguments].concat())
}

fn merge(folder: &Path) -> Command {
    let mut command = program("merge", folder);
    command.args(["tiny", "--experiment", "ablate-one"]);
    command
}

/// Returns the path of a result file with an ending such as `csv` or `shard-1-of-8.csv`.
fn file(folder: &Path, ending: &str) -> PathBuf {
    folder.join("results/tiny/ablate-one").with_extension(ending)
}

/// Returns the contents of the files with the rows and with the segment statistics.
fn bytes(folder: &Path) -> [Vec<u8>; 2] {
    ["csv", "segments.csv.gz"].map(|ending| fs::read(file(folder, ending)).unwrap())
}

fn unsharded() -> [Vec<u8>; 2] {
    let folder = with_model(TRANSLATOR);
    command(folder.path(), &[]).assert().success();
    bytes(folder.path())
}

#[test]
fn eight_shards_merge_into_the_file_of_an_unsharded_run() {
    let folder = with_model(TRANSLATOR);
    for number in 1..=8 {
        let shard = format!("{number}/8");
        let own = format!("results/tiny/ablate-one.shard-{number}-of-8.csv\n");
        command(folder.path(), &["--shard", &shard]).assert().success().stdout(own);
        if number == 7 {
            // indices 7 and 15 of 18 heads, six per attention type
            refuses(&mut merge(folder.path()), "2 rows are missing: enc-dec:1:2, dec-dec:2:1 of shard 8/8");
            assert!(!file(folder.path(), "csv").exists());
        }
    }
    merge(folder.path()).assert().success().stdout("results/tiny/ablate-one.csv: 18 rows of 8 shards\n");
    assert_eq!(bytes(folder.path()), unsharded());
    let files = fs::read_dir(folder.path().join("results/tiny")).unwrap();
    assert_eq!(files.count(), 3, "rows, statistics, signature");
    let signature = Signature::read(&file(folder.path(), "json")).unwrap().unwrap();
    let rows: BTreeSet<&String> = signature.runs.iter().flat_map(|run| &run.rows).collect();
    assert_eq!((signature.runs.len(), rows.len()), (8, 18));
    // other commands treat the results as those of one run
    command(folder.path(), &[]).assert().success();
    assert_eq!(bytes(folder.path()), unsharded());
}

#[cfg(unix)]
#[test]
fn a_signal_stops_a_run_after_the_rows_in_progress() {
    for signal in ["USR1", "TERM"] {
        loop {
            let folder = with_model(TRANSLATOR);
            let growing = file(folder.path(), "partial.csv");
            let has_row = || fs::read_to_string(&growing).is_ok_and(|text| text.lines().count() > 1);
            let arguments = [&TESTS[..], &["--threads", "1"]].concat();
            match signal_when(signal, "ablate-one", &arguments, folder.path(), has_row) {
                Some(0) => continue, // finished before the signal
                code => assert_eq!(code, Some(75), "{signal}"),
            }
            let text = fs::read_to_string(&growing).unwrap();
            assert!(text.ends_with('\n') && (2..=18).contains(&text.lines().count()), "{text}");
            command(folder.path(), &[]).assert().success();
            assert_eq!(bytes(folder.path()), unsharded());
            break;
        }
    }
}
