//! Recipes of the justfile, with programs that are already built.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the command `just`, or `None` if it is not installed.
pub fn just() -> Option<Command> {
    match Command::new("just").arg("--version").output() {
        Ok(_) => Some(Command::new("just")),
        Err(error) => {
            eprintln!("NOT TESTED: just does not run ({error}); `cargo install just --locked` brings it");
            None
        }
    }
}

/// Returns a stand-in for `cargo run --bin`: a script in `folder`.
pub fn run_without_cargo(folder: &Path) -> String {
    let script = folder.join("run");
    let programs = cargo_bin("ablate-one").parent().unwrap().to_owned();
    let text = format!("program=$1; shift 2; exec '{}'/\"$program\" \"$@\"\n", programs.display());
    fs::write(&script, text).unwrap();
    format!("sh '{}'", script.display())
}

/// Returns arguments that precede the name of a recipe, so that just runs it in `folder`.
pub fn options(folder: &Path) -> Vec<String> {
    let run = run_without_cargo(folder);
    let (folder, file) = (folder.display().to_string(), root().join("justfile").display().to_string());
    let headcount = format!("{run} headcount --");
    let set = ["--set", "headcount", &headcount];
    let place = ["--no-deps", "--justfile", &file, "--working-directory", &folder];
    place.into_iter().chain(set).map(ToOwned::to_owned).collect()
}
