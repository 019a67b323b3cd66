//! The whole command in shards, and merged, on a setup that trains in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::Command;
use predicates::str::contains;
use records::Signature;
use tempfile::TempDir;
use test_support::{TRANSLATOR, kill_when, trained};

/// Layers times heads times attention types of [`TRANSLATOR`].
const ROWS: usize = 2 * 3 * 3;

const TESTS: [&str; 2] = ["--resamples", "99"];

fn folder() -> TempDir {
    trained(TRANSLATOR, "ablate-one", &["--limit", "first:1", "--attention", "enc-enc"])
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = test_support::command("ablate-one", folder);
    command.args(TESTS).args(arguments);
    command
}

fn merge(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("merge").unwrap();
    command.current_dir(folder).arg("tiny").args(arguments);
    command
}

/// Returns a result file, such as `csv` or `shard-1-of-8.csv`.
fn file(folder: &Path, ending: &str) -> PathBuf {
    folder.join("results/tiny/ablate-one").with_extension(ending)
}

/// Returns the contents of the rows and the segment statistics.
fn bytes(folder: &Path) -> [Vec<u8>; 2] {
    ["csv", "segments.csv.gz"].map(|ending| fs::read(file(folder, ending)).unwrap())
}

fn unsharded() -> [Vec<u8>; 2] {
    let folder = folder();
    command(folder.path(), &[]).assert().success();
    bytes(folder.path())
}

#[test]
fn eight_shards_become_the_file_of_one_machine() {
    let folder = folder();
    for number in 1..=8 {
        let shard = format!("{number}/8");
        let own = format!("results/tiny/ablate-one.shard-{number}-of-8.csv\n");
        command(folder.path(), &["--shard", &shard]).assert().success().stdout(own);
        if number == 7 {
            let message = test_support::refusal(&mut merge(folder.path(), &[]));
            // places 7 and 15 of 18, with six heads per type
            let missing =
                "2 rows are missing: enc-dec:1:2, dec-dec:2:1 of shard 8/8, of which there is no file";
            assert!(message.contains(missing), "{message}");
            assert!(!file(folder.path(), "csv").exists());
        }
    }
    merge(folder.path(), &[]).assert().success().stdout("results/tiny/ablate-one.csv: 18 rows of 8 shards\n");
    assert_eq!(bytes(folder.path()), unsharded());
    assert_eq!(
        fs::read_dir(folder.path().join("results/tiny")).unwrap().count(),
        3,
        "rows, statistics, signature"
    );
    let signature = Signature::read(&file(folder.path(), "json")).unwrap().unwrap();
    let rows: BTreeSet<&String> = signature.runs.iter().flat_map(|run| &run.rows).collect();
    assert_eq!((signature.runs.len(), rows.len()), (8, ROWS));
    // to all other commands the results are those of one run
    command(folder.path(), &[]).assert().success();
    assert_eq!(bytes(folder.path()), unsharded());
}

#[test]
fn killed_shards_go_on() {
    let folder = folder();
    for shard in ["1/2", "2/2"] {
        let growing = file(folder.path(), &format!("shard-{}.partial.csv", shard.replace('/', "-of-")));
        let lines = || fs::read_to_string(&growing).map_or(0, |text| text.lines().count());
        kill_when("ablate-one", &[&TESTS[..], &["--shard", shard]].concat(), folder.path(), || lines() > 2);
    }
    for shard in ["1/2", "2/2"] {
        command(folder.path(), &["--shard", shard]).assert().success();
    }
    merge(folder.path(), &["--experiment", "ablate-one"]).assert().success();
    assert_eq!(bytes(folder.path()), unsharded());
}

#[test]
fn a_shard_of_some_heads_has_its_part_of_them() {
    let folder = folder();
    for shard in ["1/2", "2/2"] {
        command(folder.path(), &["--attention", "enc-dec", "--shard", shard]).assert().success();
    }
    merge(folder.path(), &[]).assert().success().stdout(contains(": 6 rows of 2 shards"));
    let whole = self::folder();
    command(whole.path(), &["--attention", "enc-dec"]).assert().success();
    assert_eq!(bytes(folder.path()), bytes(whole.path()));
}

#[test]
fn what_is_no_shard_is_a_fault_of_usage() {
    let folder = folder();
    for (wrong, expected) in [
        ("0/4", "there is no shard 0 of 4: they are counted from 1 to 4"),
        ("5/4", "there is no shard 5 of 4: they are counted from 1 to 4"),
        ("a/b", "must be a shard and the number of shards, such as 2/8"),
    ] {
        command(folder.path(), &["--shard", wrong]).assert().code(2).stderr(contains(expected));
    }
}

/// Another run leaves shards alone, and a shard that is being measured is locked.
#[test]
fn shards_of_another_run_have_a_name_of_their_own() {
    let folder = folder();
    command(folder.path(), &["--shard", "1/2"]).assert().success();
    let output = command(folder.path(), &["--shard", "2/2", "--rescale"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("arguments.rescale: false in the file, true now"), "{said}");
    let own = String::from_utf8(output.stdout).unwrap();
    assert!(own.starts_with("results/tiny/ablate-one-") && own.ends_with(".shard-2-of-2.csv\n"), "{own}");
    let lock = records::Held::take(&file(folder.path(), "shard-2-of-2.csv")).unwrap();
    let message = test_support::refusal(&mut command(folder.path(), &["--shard", "2/2"]));
    assert!(message.contains("is being written by another process"), "{message}");
    drop(lock);
}

/// Sends `signal` to a run once it has a row; returns its exit code, or `None` if it had finished by then.
#[cfg(unix)]
fn interrupted(folder: &Path, signal: &str) -> Option<i32> {
    let growing = file(folder, "partial.csv");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("ablate-one"))
        .current_dir(folder)
        .args(["tiny.toml", "--quiet", "--threads", "1"])
        .args(TESTS)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let has_row = || fs::read_to_string(&growing).is_ok_and(|text| text.lines().count() > 1);
    while !has_row() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = std::process::Command::new("kill").args(["-s", signal, &child.id().to_string()]).output();
    assert!(kill.is_ok(), "there is no `kill`");
    let code = child.wait().unwrap().code();
    (code != Some(0)).then_some(code.unwrap_or(-1))
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_run_after_the_rows_it_is_on() {
    for signal in ["USR1", "TERM"] {
        loop {
            let folder = folder();
            let Some(code) = interrupted(folder.path(), signal) else { continue }; // it had finished before
            assert_eq!(code, 75, "{signal}");
            let text = fs::read_to_string(file(folder.path(), "partial.csv")).unwrap();
            assert!(text.ends_with('\n') && (2..=ROWS).contains(&text.lines().count()), "{text}");
            command(folder.path(), &[]).assert().success();
            assert_eq!(bytes(folder.path()), unsharded());
            break;
        }
    }
}
