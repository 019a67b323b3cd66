//! The recipes, run by just. Without just these tests report that they are skipped; CI has it.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
mod recipes;

use std::fs;

use headcount::{GROUPS, PAPERS};
use recipes::{just, options, root};
use test_support::{TRANSLATOR, folder};

/// Returns the output of just in the root of the repository.
fn asked(arguments: &[&str]) -> Option<String> {
    let run = just()?.current_dir(root()).args(arguments).output().unwrap();
    let said = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
    assert!(run.status.success(), "just {}: {said}", arguments.join(" "));
    Some(said)
}

#[test]
fn every_recipe_can_be_run_without_arguments_that_it_does_not_name() {
    let Some(summary) = asked(&["--summary"]) else { return };
    for recipe in summary.split_whitespace() {
        asked(&["--dry-run", recipe]);
    }
}

#[test]
fn what_a_recipe_of_headcount_runs_is_built_first() {
    let Some(summary) = asked(&["--summary"]) else { return };
    for group in GROUPS {
        let reproduce = if PAPERS.contains(&group.title) { "reproduce-" } else { "" };
        for entry in group.commands.iter().filter(|entry| entry.name != "bench") {
            let own = format!("{reproduce}{}", entry.name);
            assert!(summary.split_whitespace().any(|name| name == own), "no recipe `{own}`");
            let said = asked(&["--dry-run", &own]).unwrap();
            let [.., build, run] = said.lines().collect::<Vec<_>>()[..] else { panic!("{own}: {said}") };
            assert!(run.ends_with(&format!("--bin headcount -- {} \"$@\"", entry.name)), "{run}");
            let drawing = entry.views.first().map(|_| "plotting");
            let first_look = entry.views.first().map(|_| "init");
            let run = Some(entry.program);
            for program in run.into_iter().chain(entry.before).chain(drawing).chain(first_look) {
                assert!(format!("{build} ").contains(&format!("--bin {program} ")), "{own}: {build}");
            }
        }
    }
}

#[test]
fn the_list_of_recipes_fits_into_100_columns() {
    let Some(list) = asked(&["--list", "--unsorted"]) else { return };
    let wide: Vec<&str> = list.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:?}");
}

#[test]
fn a_recipe_draws_what_its_experiment_has_just_written_wherever_that_is() {
    let Some(mut just) = just() else { return };
    let folder = folder(TRANSLATOR);
    let small = ["--quiet", "--limit", "first:2", "--resamples", "9", "--results", "my results"];
    let arguments = [&["reproduce-table1", "tiny.toml"], &small[..]].concat();
    let run = just.args(options(folder.path())).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&run.stdout).contains("Table 1"), "{said}");
    let results = folder.path().join("my results/tiny");
    let drawn = fs::read_dir(results.join("figures")).unwrap();
    let mut drawn: Vec<_> = drawn.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    drawn.sort();
    let figure = ["md", "png", "svg", "tex"].map(|ending| format!("figure1-first-2.{ending}")); // with its captions
    let table = ["md", "tex"].map(|ending| format!("table1-first-2.{ending}"));
    assert_eq!(drawn, [&figure[..], &table].concat());
    assert!(results.join("ablate-one-first-2.csv").exists() && !folder.path().join("results").exists());
}

#[test]
fn a_recipe_ends_with_its_experiment() {
    let Some(mut just) = just() else { return };
    let folder = folder(TRANSLATOR);
    let arguments = ["reproduce-table1", "tiny.toml", "--quiet", "--split", "none"];
    let run = just.args(options(folder.path())).args(arguments).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(said.matches("error: ").count(), 2, "the experiment's and just's: {said}");
    assert!(said.contains("no split `none`"), "{said}");
}
