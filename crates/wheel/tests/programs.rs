//! All programs in one file, called by their names.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use headcount::GROUPS;

fn called(name: &str) -> Output {
    Command::new(cargo_bin("headcount-programs")).arg0(name).arg("--version").output().unwrap()
}

#[test]
fn it_is_every_program_that_headcount_names() {
    let alone = GROUPS.iter().flat_map(|group| group.programs).map(|program| program.name);
    let recipes = GROUPS.iter().flat_map(|group| group.recipes);
    let in_recipes = recipes.flat_map(|recipe| recipe.run.split(' ').take(1).chain(recipe.before));
    for name in alone.chain(in_recipes) {
        let said = String::from_utf8(called(name).stdout).unwrap();
        assert_eq!(said, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn under_another_name_it_is_none() {
    let output = called("table1");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`table1` is no program"));
}
