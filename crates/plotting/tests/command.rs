//! Tests the binary on the synthetic results of `golden.rs`: files, exit codes and messages.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use tempfile::TempDir;
use test_support::{program, synthetic_results};

/// Returns exit code, stdout and stderr of a command in the folder that contains `results`.
fn run(folder: &TempDir, arguments: &str) -> (i32, String, String) {
    let output = program("plotting", folder.path()).args(arguments.split(' ')).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// `headcount figures` runs `plotting all`.
#[test]
fn the_help_of_figures_shows_the_command_that_was_typed() {
    let mut command = Command::cargo_bin("plotting").unwrap();
    command.args(["all", "--help"]).env("HEADCOUNT_TYPED", "headcount figures");
    let help = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(help.contains("Usage: headcount figures [OPTIONS] <SETUP|FILE.csv>\n"), "{help}");
}

fn figures(folder: &TempDir, subject: &str) -> Vec<String> {
    let files = fs::read_dir(folder.path().join("results").join(subject).join("figures")).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn all_draws_everything_twice_the_same_and_removes_what_is_outdated() {
    let folder = synthetic_results();
    let read = || {
        assert_eq!(run(&folder, "all tiny-translation --format svg").0, 0);
        let path = folder.path().join("results/tiny-translation/figures");
        let files = figures(&folder, "tiny-translation").into_iter();
        files.map(|name| (fs::read(path.join(&name)).unwrap(), name)).collect::<Vec<_>>()
    };
    let first = read();
    assert!(first.len() > 40 && first == read(), "a second run wrote other files");
    let outdated = folder.path().join("results/tiny-inference/figures/table1-all.md");
    fs::create_dir_all(outdated.parent().unwrap()).unwrap();
    fs::write(&outdated, "of other attention types").unwrap();
    assert_eq!(run(&folder, "all tiny-inference --format svg").0, 0);
    assert!(!outdated.exists());
}

#[test]
fn single_commands_write_their_files_at_print_size_and_name_them() {
    let folder = synthetic_results();
    let file = "results/tiny-inference/ablate-one-first-500.csv";
    let (code, stdout, stderr) = run(&folder, &format!("table1 {file} --with-figure"));
    assert!(code == 0 && stdout.contains("1 of 8 cells are empty"), "{stdout}{stderr}");
    assert!(stderr.contains("ablate-one-first-500.md"), "{stderr}");
    let names = figures(&folder, "tiny-inference");
    assert!(names.contains(&"figure1b-first-500.png".to_owned()), "{names:?}");
    let png = fs::read(folder.path().join("results/tiny-inference/figures/figure1b-first-500.png")).unwrap();
    assert_eq!(png[16..20], 990_u32.to_be_bytes()); // 3.3 inches of 300 pixels
    assert!(names.contains(&"figure1b-first-500.svg".to_owned()), "{names:?}");
    assert_eq!(run(&folder, &format!("figure1 {file} --format png")).0, 0);
    assert!(!figures(&folder, "tiny-inference").contains(&"figure1b-first-500.svg".to_owned()));
    let caption = folder.path().join("results/tiny-inference/figures/figure1b-first-500.md");
    assert!(fs::read_to_string(caption).unwrap().contains("](figure1b-first-500.png)"));
    for (arguments, expected) in [
        ("table1 tiny-translation --attention dec-dec", "dec-dec (decoder self-attention)"),
        ("figure6 experiments/tiny-translation.toml --format svg", "Prunable heads."),
        ("figure2 tiny-translation --against shifted --format svg", "Pearson's r"),
        ("table1 tiny-language --split questions", "in percentage points; tiny-language, questions"),
        ("summary", "| M19: WMT, newstest2013 (Table 1) | enc-enc | BLEU 36.05 | 96 |"),
    ] {
        let (code, stdout, stderr) = run(&folder, arguments);
        assert!(code == 0 && stdout.contains(expected), "{arguments}: {stdout}{stderr}");
    }
}

fn cases<const N: usize>(table: &str) -> Vec<[String; N]> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    table.trim().lines().map(|line| cells(line).try_into().unwrap()).collect()
}

#[test]
fn what_is_not_there_and_wrong_arguments_are_explained() {
    let folder = synthetic_results();
    for [arguments, code, expected] in cases(
        "
figure1 tiny-inference --attention dec-dec | 1 | no rows for attention type dec-dec: `results/tiny
table5 tiny-language | 1 | measure it with `headcount layers tiny-language --select-on <split>`
figure2 tiny-language | 1 | cross-domain-<split>-<split>.csv` does not exist: measure it with `headcount domains
figure2 tiny-translation --against dev | 1 | no comparison with split `dev`
groups tiny-language | 1 | has no groups of choices
all nothing | 1 | unknown setup `nothing`: `results` has tiny-inference, tiny-language, tiny-tr
all ../results | 1 | is not a name of a setup
table2 results/tiny-language/ablate-one.csv | 1 | has results of `ablate-one`, but results
table1 out/none.csv | 1 | cannot read `out/none.csv`
table1 tiny-language --attention decoder | 2 | expected one of enc-enc, enc-dec, dec-dec, self or all
table1 tiny-language --alpha 2 | 2 | between 0 and 1
table2 tiny-language --against dev | 2 | unexpected argument '--against'
",
    ) {
        let (found, _, stderr) = run(&folder, &arguments);
        assert!(found.to_string() == code && stderr.contains(&expected), "{arguments}: {stderr}");
        assert!(code == "2" || stderr.lines().count() == 1, "{arguments}: {stderr}");
    }
}

fn changed(file: &str, from: &str, to: &str) -> (TempDir, PathBuf) {
    let folder = synthetic_results();
    let path = folder.path().join("results").join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no `{from}`");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    (folder, path)
}

/// Which rows are valid is tested in `records`.
#[test]
fn bad_rows_are_named_in_one_line() {
    for [command, file, from, to, expected] in cases(
        "
table1 | tiny-inference/ablate-one | layer, | | does not begin with the header of these results: `layer` is missing; measure results of an
table1 | tiny-inference/ablate-one | self,2,2,accuracy,83.5,82.253 | self,2,2,accuracy,83.5,NaN | score of self:2:2 is NaN, but it
table1 | tiny-inference/ablate-one | self,2,3, | self,2,2, | line 8, is not a row of this file: self:2:2 occurs twice
table1 | tiny-inference/ablate-one | self,1,2,accuracy | self,1,2,\u{1b}[2J | unknown metric `\\u{1b}[2J`: expected one of accuracy, bleu
figure2 | tiny-translation/ablate-one | enc-enc | enc-enc | ablate-one.csv` has no signature file next to it, which would name its split
figure3 | tiny-inference/iterative-prune | ,1,2,8, | ,1,9,8, | masked of all by importance, step 1 is 9, but it must be at most `heads`
table4 | tiny-inference/speed-bench | ,1.1,1.05, | ,1.1,1.2, | ratio of 2 removed heads in batches of 1 is 1.1, bu
agreement | tiny-language/importance | example,0.323833 | example,1e101 | must be a number from -1e100 to 1e100
",
    ) {
        let (subject, _) = file.split_once('/').unwrap();
        let (folder, path) = changed(&format!("{file}.csv"), &from, &to);
        fs::remove_file(path.with_extension("json")).unwrap();
        let (code, _, stderr) = run(&folder, &format!("{command} {subject}"));
        assert!(code == 1 && stderr.contains(&expected) && stderr.lines().count() == 1, "{expected}: {stderr}");
    }
}

/// MNLI is in Figure 3, and SST-2 in Figure 6.
#[test]
fn the_file_of_a_subject_says_what_of_the_paper_it_stands_beside() {
    let folder = synthetic_results();
    let toml = folder.path().join("experiments/tiny-inference.toml");
    for (stands_for, figure, warning) in [
        ("mnli", "figure3.svg", ""),
        ("sst2", "figure6.svg", ""),
        // its metric is accuracy instead of F1
        ("mrpc", "figure6.svg", ""),
        ("bert", "figure6.svg", "tiny-inference.toml`: unknown variant `bert`, expected one of `wmt`"),
    ] {
        fs::write(&toml, format!("stands_for = \"{stands_for}\"")).unwrap();
        let (code, _, stderr) = run(&folder, "figure3 tiny-inference --format svg");
        assert!(code == 0 && stderr.contains(warning), "{stderr}");
        assert_eq!(stderr.contains("warning"), !warning.is_empty(), "{stderr}");
        fs::remove_file(folder.path().join("results/tiny-inference/figures").join(figure)).unwrap();
    }
}

/// A file that was copied from another setup with its signature is named, and everything else is drawn.
#[test]
fn files_that_are_torn_or_of_another_subject_are_left_out_by_name() {
    let folder = synthetic_results();
    let [from, to] = ["tiny-language", "tiny-inference"].map(|name| folder.path().join("results").join(name));
    for name in ["importance.csv", "importance.json"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let (code, _, stderr) = run(&folder, "all tiny-inference --format svg");
    let expected = "importance.csv` belongs to setup `tiny-language` according to its signature";
    assert!(code == 0 && stderr.contains(expected), "{stderr}");
    assert!(figures(&folder, "tiny-inference").contains(&"figure3.svg".to_owned()));
    let subject = from;
    let rows = fs::read_to_string(subject.join("ablate-one.csv")).unwrap();
    fs::write(subject.join("ablate-one.csv"), &rows[..rows.len() - 9]).unwrap();
    let (code, _, stderr) = run(&folder, "table1 tiny-language");
    assert!(code == 1 && stderr.contains("after it was completed: its last line is torn"), "{stderr}");
    fs::remove_file(subject.join("ablate-one.json")).unwrap();
    let (code, stdout, stderr) = run(&folder, "heads tiny-language --format svg");
    let caption = fs::read_to_string(subject.join("figures/heads.md")).unwrap();
    assert!(
        code == 0 && caption.contains(r"The last line of \`ablate-one.csv\` is torn and left out"),
        "{stdout}{stderr}"
    );
}

/// A folder in place of a file hides no other file; if nothing else can be drawn, the exit code is 1.
#[test]
fn what_is_no_file_is_left_out_and_without_anything_else_the_exit_code_is_1() {
    let folder = synthetic_results();
    let subject = folder.path().join("results/tiny-inference");
    for name in ["ablate-one.json", "speed-bench.csv"] {
        fs::remove_file(subject.join(name)).unwrap();
        fs::create_dir(subject.join(name)).unwrap();
    }
    let (code, _, stderr) = run(&folder, "all tiny-inference --format svg");
    let warnings = |stderr: &str| stderr.lines().filter(|line| line.contains("not a regular file")).count();
    assert!(code == 0 && warnings(&stderr) == 2, "{stderr}");
    assert!(figures(&folder, "tiny-inference").contains(&"heads-first-500.svg".to_owned()));
    let (code, _, stderr) = run(&folder, "summary");
    assert!(code == 0 && warnings(&stderr) == 1, "{stderr}");
    for file in fs::read_dir(&subject).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            fs::remove_file(path).unwrap();
        }
    }
    let (code, _, stderr) = run(&folder, "all tiny-inference");
    assert!(code == 1 && stderr.contains("nothing can be drawn"), "{stderr}");
}

/// A run that has just begun has only its first row: without a curve there is no figure.
#[test]
fn a_training_with_no_heads_masked_yet_has_no_figure() {
    let folder = synthetic_results();
    let path = folder.path().join("results/tiny-translation/training-dynamics.csv");
    let text = fs::read_to_string(&path).unwrap();
    let kept = text.lines().filter(|line| line.starts_with("epoch") || line.starts_with("2,200,0,"));
    fs::write(&path, kept.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    fs::remove_file(path.with_extension("json")).unwrap();
    let (code, stdout, stderr) = run(&folder, "figure5 tiny-translation");
    assert!(code == 0 && stdout.contains("12.5"), "{stdout}{stderr}");
    assert!(
        stderr.contains("warning: left out: `results/tiny-translation/training-dynamics.csv` has no step")
    );
}

/// The rows of a run in progress are in a separate file, which is drawn if it is named.
#[test]
fn what_is_not_finished_says_so() {
    let from = "\"duration_seconds\": 1.0";
    let (folder, path) = changed("tiny-language/ablate-one.json", from, "\"duration_seconds\": null");
    let signature = fs::read_to_string(&path).unwrap();
    let (running, _) = signature.split_once(",\n  \"complete\"").unwrap();
    fs::write(path.with_extension("partial.json"), format!("{running}\n}}\n")).unwrap();
    fs::rename(path.with_extension("csv"), path.with_extension("partial.csv")).unwrap();
    let (code, stdout, stderr) = run(&folder, "table1 results/tiny-language/ablate-one.partial.csv");
    let remark = "`ablate-one.partial.csv` is not finished: the run was killed or is still running";
    assert!(
        code == 0 && stdout.contains("tiny-language, test, not finished") && stdout.contains(remark),
        "{stdout}{stderr}"
    );
    let (code, _, stderr) = run(&folder, "table1 tiny-language");
    assert!(
        code == 1 && stderr.contains("`results/tiny-language/ablate-one.csv` does not exist"),
        "{stderr}"
    );
}

/// A comparison of sweeps that have changed since, and a search on another model, do not describe the current results.
#[test]
fn comparisons_and_searches_of_other_runs_are_left_out() {
    for [command, file, from, to, expected] in cases(
        "
all tiny-translation | cross-domain-test-shifted.csv | all,18,bleu,30.5 | all,18,bleu,31.5 | first_base_score of all is 31.5 here but 30.5 there
figure3 tiny-inference | joint-search.json | ab12 | ef56 | iterative-prune.csv`: weights is ef56 here but ab12 there
prune-and-retrain tiny-translation | iterative-prune.json | ab12 | ef56 | prune-and-retrain.csv`: weights is ef56 here but ab12 there
prune-and-retrain tiny-translation | iterative-prune.csv | 0.9,,,,enc-enc:1:1+enc-enc:1:2+enc-enc:1:3+enc-enc:2:1+enc-enc:2:2 | 0.9,,,,enc-enc:1:1+enc-enc:1:2+enc-enc:1:3+enc-enc:2:1+enc-enc:2:3 | masks other heads than `results/tiny-translation/prune-and-
all tiny-translation | head-functions.json | ab12 | ef56 | train-gates.csv`: weights is ef56 here but ab12 there
",
    ) {
        let (_, subject) = command.split_once(' ').unwrap();
        let (folder, path) = changed(&format!("{subject}/{file}"), &from, &to);
        let signature = fs::read_to_string(path.with_extension("json")).unwrap();
        let (unchecked, _) = signature.split_once(",\n  \"complete\"").unwrap();
        fs::write(path.with_extension("json"), format!("{unchecked}\n}}\n")).unwrap();
        let (code, _, stderr) = run(&folder, &format!("{command} --format svg"));
        assert!(code == 0 && stderr.contains("warning: left out") && stderr.contains(&expected), "{stderr}");
    }
}
