//! The recipes, with just itself. Where just is missing these tests say so and check nothing; CI has it.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::collections::BTreeSet;
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

/// The pages whose commands readers paste.
const PAGES: [&str; 6] = [
    "README.md",
    "experiments/README.md",
    "experiments/slurm/README.md",
    "results/README.md",
    "crates/README.md",
    ".github/CONTRIBUTING.md",
];

/// Commands of a page that begin with `just` or `cargo run`: in its blocks of shell, and in the code within its text. What a
/// reader fills in, `<subject>`, is the demo; what may be left out, `[options]`, is left out; `-table3`, after
/// `reproduce-table2`, is a recipe's name in short.
fn commands_in(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for (place, block) in page.split("```").enumerate() {
        let code: Vec<&str> = if place % 2 == 0 {
            block.split('`').skip(1).step_by(2).collect()
        } else {
            let lines = block.strip_prefix("sh\n").unwrap_or_default().lines();
            lines.map(|line| line.split(" #").next().unwrap_or_default()).collect()
        };
        for code in code.into_iter().flat_map(|code| code.split("&&")) {
            let words = code.split_whitespace().collect::<Vec<_>>().join(" ");
            let needed = words.split('[').next().unwrap_or_default().trim_end();
            let filled = needed.replace("<subject>", "demo-translation").replace("<name>", "demo-language");
            if filled.starts_with("just ") || filled.starts_with("cargo run ") {
                commands.push(filled);
            } else if filled.starts_with("-table") || filled.starts_with("-figure") {
                commands.push(format!("just reproduce{filled}"));
            }
        }
    }
    commands
}

#[test]
fn commands_are_found_in_shell_and_in_text() {
    let page = "`just train <subject>` and `-table3`\n```sh\njust a --b \"c d\"  # why\nx && just e\n```\n`just f [g [h]]`, \
                `cargo run --bin i`\n```toml\n# just j\n```\n`k`, `just l &&\njust m`";
    let found = [
        "just train demo-translation",
        "just reproduce-table3",
        "just a --b \"c d\"",
        "just e",
        "just f",
        "cargo run --bin i",
        "just l",
        "just m",
    ];
    assert_eq!(commands_in(page), found);
}

/// Every program that a command of the pages runs is asked for its help behind the options that the page gives it, which it
/// must therefore know.
#[test]
fn the_pages_have_commands_that_exist_with_options_that_they_know() {
    if just().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = cargo_bin("ablate-one").parent().unwrap().to_owned();
    let script = folder.path().join("help");
    let help = format!("program=$1; shift 2; exec '{}'/\"$program\" \"$@\" --help >&2\n", programs.display());
    fs::write(&script, help).unwrap();
    let run = format!("sh '{}'", script.display());
    let mut seen = BTreeSet::new();
    for page in PAGES {
        let mut commands = commands_in(&fs::read_to_string(root().join(page)).unwrap());
        commands.retain(|command| seen.insert(command.clone()));
        for command in commands {
            let line = if let Some(recipe) = command.strip_prefix("just ") {
                let just = format!("just --no-deps --set run \"{run}\"");
                // A recipe that runs no program of ours is only looked up.
                format!(
                    "if {just} --dry-run {recipe} 2>&1 | grep -qF \"{run}\"; then {just} {recipe}; else just --dry-run {recipe}; fi"
                )
            } else {
                format!("{run} {}", command.split_once("--bin ").unwrap().1)
            };
            let said = Command::new("sh").args(["-c", &line]).current_dir(root()).output().unwrap();
            assert!(said.status.success(), "{page}: {command}: {}", String::from_utf8_lossy(&said.stderr));
        }
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
