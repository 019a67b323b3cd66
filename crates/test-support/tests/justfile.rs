//! The recipes, run by just. If just is not installed, these tests report that they are skipped; CI installs it.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
mod recipes;

use headcount::{GROUPS, PAPERS};
use recipes::{just, options, root};
use test_support::{TRANSLATOR, folder};

fn asked(arguments: &[&str]) -> Option<String> {
    let run = just()?.current_dir(root()).args(arguments).output().unwrap();
    let said = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
    assert!(run.status.success(), "just {}: {said}", arguments.join(" "));
    Some(said)
}

#[test]
fn every_recipe_can_be_run_without_arguments() {
    let Some(summary) = asked(&["--summary"]) else { return };
    for recipe in summary.split_whitespace() {
        asked(&["--dry-run", recipe]);
    }
}

#[test]
fn recipes_build_the_programs_that_they_run() {
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
fn recipes_draw_the_results_just_written_in_any_results_folder() {
    let Some(mut just) = just() else { return };
    let folder = folder(TRANSLATOR);
    let small = ["--quiet", "--limit", "first:2", "--resamples", "9", "--results", "my results"];
    let arguments = [&["reproduce-table1", "tiny.toml"], &small[..]].concat();
    let run = just.args(options(folder.path())).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&run.stdout).contains("Table 1"), "{said}");
    for drawn in ["figure1-first-2.svg", "table1-first-2.tex"] {
        assert!(folder.path().join("my results/tiny/figures").join(drawn).exists(), "{drawn}");
    }
    assert!(!folder.path().join("results").exists());
}
