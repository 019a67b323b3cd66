//! The command, with scripts in place of the programs.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use assert_cmd::cargo::cargo_bin;
use headcount::{ENVIRONMENT, GROUPS};
use tempfile::TempDir;

/// Programs are written and started one at a time: a process forked during the writing would hold the file open, and files open for writing
/// cannot run.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a folder with `headcount` and, for each of these programs, a script that prints a path and appends its arguments to `asked`.
fn installed(programs: &[&str]) -> TempDir {
    let script = "echo \"${0##*/} $*\" >> \"${0%/*}/asked\"\necho 'results/my model.csv'\n[ \"$2\" != broken ] || exit 75\n";
    installed_with(programs, script)
}

/// Creates a folder with `headcount` and this shell script as each of these programs.
fn installed_with(programs: &[&str], script: &str) -> TempDir {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    fs::copy(cargo_bin("headcount"), folder.path().join("headcount")).unwrap();
    for program in programs {
        let path = folder.path().join(program);
        fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Runs the installed command without inherited settings: `just` sets `HEADCOUNT_FRONT` for tests, too.
fn run_in(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let _alone = alone();
    let mut headcount = Command::new(folder.join("headcount"));
    headcount.args(arguments).env_remove("HEADCOUNT_FRONT").env_remove("LD_PRELOAD");
    headcount.envs(environment.iter().copied()).output().unwrap()
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    run_in(folder, arguments, &[])
}

/// Returns the calls of the programs if `headcount` runs with these arguments.
fn asked(programs: &[&str], arguments: &[&str]) -> Vec<String> {
    let folder = installed(programs);
    let output = run(folder.path(), arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(folder.path().join("asked")).unwrap().lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_recipe_draws_the_file_that_its_experiment_names() {
    let programs = ["ablate-one", "plotting"];
    let with = |arguments: &[&str]| asked(&programs, &[&["table1"], arguments].concat());
    let drawn = "plotting table1 --with-figure results/my model.csv";
    let plain = |subject: &str| vec![format!("ablate-one --attention paper {subject}"), drawn.to_owned()];
    assert_eq!(with(&[]), plain("demo-translation"));
    assert_eq!(with(&["mine"]), plain("mine"));
    assert_eq!(with(&["--limit", "2"]), plain("demo-translation --limit 2"));
    for option in [&["--attention", "all"][..], &["--attention=all"]] {
        let asked = with(&[&["mine"], option].concat());
        assert_eq!(asked[1], format!("{drawn} {}", option.join(" ")));
    }
}

#[test]
fn a_recipe_of_several_runs_draws_the_first() {
    let asked = asked(&["iterative-prune", "plotting"], &["pruning-kinds", "mine", "--seed", "2"]);
    let run = "iterative-prune mine --seed 2";
    let runs = [run.to_owned(), format!("{run} --ablation mean"), format!("{run} --ablation resample")];
    assert_eq!(asked[..3], runs);
    assert_eq!(asked[3..], ["plotting pruning-kinds results/my model.csv"]);
}

#[test]
fn a_program_that_runs_first_gets_the_setup_and_the_common_options() {
    let options = ["v19-figure8", "mine", "--heads", "4", "--results", "there"];
    let asked = asked(&["head-functions", "train-gates", "plotting"], &options);
    let first = "head-functions mine --results there";
    assert_eq!(asked[..2], [first, "train-gates --epochs 3 mine --heads 4 --results there"]);
}

#[test]
fn a_recipe_stops_with_the_exit_code_of_an_experiment_that_fails() {
    let folder = installed(&["cross-domain", "plotting"]);
    assert_eq!(run(folder.path(), &["figure2", "mine", "broken"]).status.code(), Some(75));
    assert!(!fs::read_to_string(folder.path().join("asked")).unwrap().contains("plotting"));
}

#[test]
fn a_program_replaces_this_process_or_is_reported_missing() {
    assert_eq!(asked(&["say"], &["say", "mine", "--help"]), ["say mine --help"]);
    let missing = run(installed(&[]).path(), &["say", "mine"]);
    assert_eq!(missing.status.code(), Some(1));
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("say` is missing: `cargo build --release` builds it"), "{said}");
}

#[test]
fn the_help_of_a_command_says_what_it_does_before_the_options_of_its_program() {
    let folder = installed(&["ablate-one"]);
    let said = String::from_utf8(run(folder.path(), &["heads", "--help"]).stdout).unwrap();
    let about = "headcount heads: mask each head alone";
    assert!(said.starts_with(about) && said.contains("options of `init`\n\nresults/my model.csv"), "{said}");
}

#[test]
fn programs_know_the_command_as_it_was_typed() {
    let folder = installed_with(&["say"], "echo \"$HEADCOUNT_TYPED\"\n");
    assert_eq!(run(folder.path(), &["say"]).stdout, b"headcount say\n");
    assert_eq!(run_in(folder.path(), &["say"], &[("HEADCOUNT_FRONT", "just")]).stdout, b"just say\n");
}

#[test]
fn a_first_look_describes_the_model_and_then_measures_it() {
    let typed = ["heads", "--model", "m/bert", "--test", "t.csv", "--limit", "9", "--data", "d"];
    let asked = asked(&["init", "ablate-one", "plotting"], &typed);
    assert_eq!(asked[0], "init bert m/bert --force --output results/bert/bert.toml --test t.csv --data d");
    assert_eq!(asked[1], "ablate-one results/my model.csv --limit 9 --data d");
}

/// Messages refer to these commands.
#[test]
fn every_experiment_has_a_command_that_runs_its_program() {
    for experiment in heads::experiment::ALL {
        let entry = headcount::find(experiment.command).unwrap();
        assert_eq!(entry.program, experiment.program, "{}", experiment.name);
        let is_preset = experiment.program != experiment.name && !entry.arguments.contains("--retrain");
        let is_named = entry.arguments.contains(&format!("--preset {}", experiment.name));
        assert!(!is_preset || is_named, "{}", experiment.name);
    }
}

#[test]
fn former_names_still_work() {
    let programs = ["ablate-one", "iterative-prune", "plotting"];
    for (old, new) in [("ablation-kinds", "kinds"), ("compare-methods", "methods")] {
        assert_eq!(asked(&programs, &[old, "mine"]), asked(&programs, &[new, "mine"]));
    }
    assert_eq!(asked(&["ablate-one"], &["ablate-one", "mine"]), ["ablate-one mine"]);
}

#[test]
fn a_library_that_finds_the_gpu_is_loaded_before_the_users_own() {
    let folder = installed_with(&["say"], "echo \"$LD_PRELOAD\"\n");
    let loaded = |environment: &[(&str, &str)]| {
        String::from_utf8(run_in(folder.path(), &["say"], environment).stdout).unwrap().trim().to_owned()
    };
    let gpu = ("HEADCOUNT_PRELOAD", "libtorch_cuda.so");
    assert_eq!(loaded(&[]), "");
    assert_eq!(loaded(&[gpu]), "libtorch_cuda.so");
    assert_eq!(loaded(&[gpu, ("LD_PRELOAD", "libm.so.6")]), "libtorch_cuda.so:libm.so.6");
}

#[test]
fn an_unknown_command_is_refused_and_the_help_names_every_known_one_once() {
    let folder = installed(&[]);
    assert_eq!(run(folder.path(), &["table7"]).status.code(), Some(2));
    let alone = run(folder.path(), &[]);
    assert!(alone.status.code() == Some(2) && String::from_utf8_lossy(&alone.stderr).contains("\n  heads "));
    let help = String::from_utf8(run(folder.path(), &["--help"]).stdout).unwrap();
    for entry in GROUPS.iter().flat_map(|group| group.commands) {
        assert_eq!(help.matches(&format!("\n  {} ", entry.name)).count(), 1, "{}", entry.name);
        assert!(entry.about.split_whitespace().count() <= 10, "{}", entry.about);
    }
}

#[test]
fn programs_have_the_environment_that_cargo_gives_them() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cargo/config.toml");
    let config: toml::Table = fs::read_to_string(config).unwrap().parse().unwrap();
    let set: Vec<_> = config["env"]
        .as_table()
        .unwrap()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect();
    assert_eq!(set, ENVIRONMENT);
}
