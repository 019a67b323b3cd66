//! All programs in one file, called by their names.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use headcount::{GROUPS, PROGRAMS};

fn called(name: &str) -> Output {
    Command::new(cargo_bin("headcount-programs")).arg0(name).arg("--version").output().unwrap()
}

#[test]
fn the_file_runs_every_program_that_headcount_names_and_no_other() {
    let entries = GROUPS.iter().flat_map(|group| group.commands).filter(|entry| entry.name != "bench");
    let runs = entries.flat_map(|entry| [entry.program].into_iter().chain(entry.before));
    for name in runs.chain(PROGRAMS) {
        let said = String::from_utf8(called(name).stdout).unwrap();
        assert_eq!(said, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    }
    let unknown = called("table1");
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("`table1` is not a program"));
}

#[test]
fn headcount_calls_the_file_by_the_name_of_a_missing_program() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["headcount", "headcount-programs"] {
        // copied by another process, because a concurrent test could inherit an open handle, and files open for writing cannot run
        let copied = Command::new("cp").arg(cargo_bin(name)).arg(folder.path()).status().unwrap();
        assert!(copied.success());
    }
    // the copy cannot find libtorch by its own path
    let libraries = cargo_bin("headcount").with_file_name("../../.libtorch/lib");
    let mut command = Command::new(folder.path().join("headcount"));
    let output = command.args(["say", "--version"]).env("LD_LIBRARY_PATH", libraries).output().unwrap();
    let expected = format!("say {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
}
