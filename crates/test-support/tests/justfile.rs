//! The recipes, with just itself. Where just is missing these tests say so and check nothing; CI has it.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use test_support::{TRANSLATOR, folder};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `just`, or nothing where it is not installed.
fn just() -> Option<Command> {
    match Command::new("just").arg("--version").output() {
        Ok(_) => Some(Command::new("just")),
        Err(error) => {
            eprintln!("NOT TESTED: just does not run ({error}); `cargo install just --locked` brings it");
            None
        }
    }
}

/// What just prints, in the root of the repository.
fn asked(arguments: &[&str]) -> Option<String> {
    let run = just()?.current_dir(root()).args(arguments).output().unwrap();
    let said = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
    assert!(run.status.success(), "just {}: {said}", arguments.join(" "));
    Some(said)
}

/// Names of recipes that a text has in backticks, with those shortened to `-table3` after `reproduce-table2`.
fn recipes_in(text: &str) -> Vec<String> {
    let mut recipes = Vec::new();
    for code in text.split('`').skip(1).step_by(2) {
        let words: Vec<&str> = code.split_whitespace().collect();
        for pair in words.windows(2) {
            if pair[0] == "just" && pair[1].starts_with(|letter: char| letter.is_ascii_lowercase()) {
                recipes.push(pair[1].to_owned());
            }
        }
        if code.starts_with("-table") || code.starts_with("-figure") {
            recipes.push(format!("reproduce{code}"));
        }
    }
    recipes
}

#[test]
fn the_readme_names_recipes_that_exist() {
    let Some(summary) = asked(&["--summary"]) else { return };
    let known: Vec<&str> = summary.split_whitespace().collect();
    let named = recipes_in(&fs::read_to_string(root().join("README.md")).unwrap());
    assert!(named.iter().any(|name| name == "reproduce-table1"), "{named:?}");
    for name in named {
        assert!(known.contains(&name.as_str()), "README.md: there is no recipe `{name}`");
    }
}

#[test]
fn every_recipe_can_be_run_without_arguments_that_it_does_not_name() {
    let Some(summary) = asked(&["--summary"]) else { return };
    for recipe in summary.split_whitespace() {
        asked(&["--dry-run", recipe]);
    }
}

#[test]
fn what_a_paper_recipe_runs_is_built_first_and_draws_the_file_that_the_experiment_names() {
    let Some(summary) = asked(&["--summary"]) else { return };
    let recipes = summary.split_whitespace().filter(|name| name.starts_with("reproduce-"));
    for recipe in recipes {
        let Some(said) = asked(&["--dry-run", recipe]) else { return };
        let lines: Vec<&str> = said.lines().collect();
        let [.., build, run] = lines[..] else { panic!("{recipe}: {said}") };
        let programs: Vec<&str> =
            run.split(" --bin ").skip(1).filter_map(|rest| rest.split(' ').next()).collect();
        assert_eq!(programs.len(), 2, "{recipe}: {run}");
        for program in programs {
            assert!(format!("{build} ").contains(&format!("--bin {program} ")), "{recipe}: {build}");
        }
        assert!(run.starts_with("file=$(") && run.contains(r#" "$file""#), "{run}");
        assert!(!run.contains("--again"), "{recipe}: {run}");
    }
}

#[test]
fn table_1_shows_the_attention_types_that_were_asked_for() {
    let Some(all) = asked(&["--dry-run", "reproduce-table1", "demo", "--attention", "all", "--seed", "2"])
    else {
        return;
    };
    assert!(all.trim_end().ends_with(r#""$file" --attention all"#), "{all}");
    let plain = asked(&["--dry-run", "reproduce-table1", "demo", "--seed", "2"]).unwrap();
    assert!(plain.trim_end().ends_with(r#""$file""#), "{plain}");
}

/// A recipe as it stands, in `folder`, with programs that are built already.
fn recipe(just: &mut Command, folder: &Path, arguments: &[&str]) -> Output {
    let script = folder.join("run");
    let programs = cargo_bin("ablate-one").parent().unwrap().to_owned();
    let text = format!("program=$1; shift 2; exec '{}'/\"$program\" \"$@\"\n", programs.display());
    fs::write(&script, text).unwrap();
    let run = format!("sh '{}'", script.display());
    just.args(["--no-deps", "--set", "run", &run, "--justfile"]).arg(root().join("justfile"));
    just.arg("--working-directory").arg(folder).args(arguments).output().unwrap()
}

#[test]
fn a_recipe_draws_what_its_experiment_has_just_written_wherever_that_is() {
    let Some(mut just) = just() else { return };
    let folder = folder(TRANSLATOR);
    let options = ["--quiet", "--limit", "2", "--resamples", "9", "--results", "my results"];
    let arguments = [&["reproduce-table1", "tiny.toml"], &options[..]].concat();
    let run = recipe(&mut just, folder.path(), &arguments);
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
    let run =
        recipe(&mut just, folder.path(), &["reproduce-table1", "tiny.toml", "--quiet", "--split", "none"]);
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(said.matches("error: ").count(), 2, "the experiment's and just's: {said}");
    assert!(said.contains("no split `none`"), "{said}");
}
