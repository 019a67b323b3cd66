//! The binary, from the outside: files, exit codes and messages.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, starts_with};
use records::{AblationRow, Complete, Identity, Provenance, Row, Signature, Testing, sha256_file};
use tempfile::TempDir;

/// Two layers of three heads; the first head of layer 2 matters.
const ROWS: &str = "\
enc-enc,1,1,bleu,30.5,30.25,-0.25,-0.4,-0.1,0.25,0.125,0.75,0.5,,
enc-enc,1,2,bleu,30.5,30.625,0.125,,,0.5,0.25,0.75,0.5,,
enc-enc,1,3,bleu,30.5,30.5,0,,,1,0.5,1,1,,
enc-enc,2,1,bleu,30.5,29,-1.5,-2,-1,0.001,0.0005,0.006,0.006,,
enc-enc,2,2,bleu,30.5,30.75,0.25,,,0.25,0.125,0.75,0.5,,
enc-enc,2,3,bleu,30.5,30.25,-0.25,,,0.25,0.125,0.75,0.5,,
";

fn results(rows: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let subject = folder.path().join("results/demo-x");
    fs::create_dir_all(&subject).unwrap();
    let csv = format!("{}\n{rows}", AblationRow::COLUMNS.join(","));
    fs::write(subject.join("ablate-one.csv"), csv).unwrap();
    folder
}

fn finished_run() -> Provenance {
    Provenance { duration_seconds: Some(1.0), ..Provenance::collect("cpu", 1, Default::default()) }
}

/// Runs in the folder that holds `results`, with the published numbers of this checkout.
fn plotting(folder: &TempDir, arguments: &[&str]) -> Command {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper");
    let mut command = Command::cargo_bin("plotting").unwrap();
    command.current_dir(folder.path()).args(arguments).arg("--paper").arg(paper);
    command
}

fn refuses(rows: &str, arguments: &[&str], message: &str) {
    let folder = results(rows);
    let expected = starts_with("error: ").and(contains(message));
    let output = plotting(&folder, arguments).assert().code(1).stderr(expected).get_output().stderr.clone();
    assert_eq!(String::from_utf8(output).unwrap().lines().count(), 1);
}

#[test]
fn table1_prints_and_writes_the_table() {
    let folder = results(ROWS);
    let signature = Signature::new(
        Identity { split: "test".to_owned(), ..Identity::new("ablate-one", "demo-x") },
        finished_run(),
    );
    let testing = Testing { resamples: 1000, seed: 1, margin_percent: 2.0 };
    let csv = folder.path().join("results/demo-x/ablate-one.csv");
    let complete = Complete { rows: 6, sha256: sha256_file(&csv).unwrap(), segments_sha256: None };
    let signature = Signature { testing: Some(testing), complete: Some(complete), ..signature };
    signature.write(&Signature::path_beside(&csv)).unwrap();
    let expected = "\
Table 1. enc-enc (encoder self-attention): BLEU with one head masked, minus the base BLEU; \
demo-x (demo language), test

        Head
Layer      1       2       3
    1  -0.25   +0.12    0.00
    2  -1.50*  +0.25   -0.25

* p < 0.01 (two-sided paired bootstrap, 1000 resamples; not adjusted for the number of heads)
base BLEU 30.50
1 of 6 heads significant, 0 for the better
false alarms expected by chance: 0.06
the paper's one-sided p would mark 1, 0 for the better; false alarms expected of it: 0.12
adjusted by step-down max-T (Westfall and Young 1993): 1 significant, 0 for the better
adjusted by Benjamini and Hochberg (1995): 1 significant, 0 for the better
Michel et al. (2019), Table 1: base BLEU 36.05; 8 of 96 heads significant, 4 for the better
";
    plotting(&folder, &["table1", "demo-x"]).assert().success().stdout(expected);
    let written =
        |name: &str| fs::read_to_string(folder.path().join("results/demo-x/figures").join(name)).unwrap();
    assert!(written("table1.md").contains("| 2 | **-1.50** | +0.25 | -0.25 |"));
    assert!(written("table1.tex").contains(r"2 & \underline{$-$1.50} & $+$0.25 & $-$0.25 \\"));
}

#[test]
fn figure1_writes_an_svg_and_a_png_at_print_size() {
    let folder = results(ROWS);
    plotting(&folder, &["figure1", "experiments/demo-x.toml"]).assert().success().stdout("");
    let written = |name: &str| fs::read(folder.path().join("results/demo-x/figures").join(name)).unwrap();
    let svg = String::from_utf8(written("figure1.svg")).unwrap();
    assert!(svg.starts_with("<svg width=\"3.4in\"") && svg.contains("base BLEU 30.50"));
    let png = written("figure1.png");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(png[16..20], 2040_u32.to_be_bytes()); // 3.4 inches of 600 pixels
}

#[test]
fn all_draws_everything_and_twice_the_same() {
    let folder = results(&format!("{ROWS}enc-dec,1,1,bleu,30.5,20,-10.5,,,,,,,,\n"));
    let run = || {
        plotting(&folder, &["all", "demo-x"]).assert().success();
        let files = fs::read_dir(folder.path().join("results/demo-x/figures")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect::<Vec<_>>()
    };
    let files = run();
    let names: Vec<_> = files.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
    let expected = ["figure1-all.png", "figure1-all.svg", "figure1.png", "figure1.svg"];
    assert_eq!(names[..4], expected);
    assert_eq!(names[4..], ["table1-all.md", "table1-all.tex", "table1.md", "table1.tex"]);
    assert!(files == run(), "a second run wrote other bytes");
}

/// Three heads of a model like BERT; masking the second costs a point.
const BERT_ROWS: &str = "\
self,1,1,accuracy,83.4,83.4,0.0,0.0,0.0,1.0,,1.0,1.0,1.0,1.0
self,1,2,accuracy,83.4,82.4,-1.0,-1.5,-0.5,0.001,,0.003,0.003,0.25,0.002
self,1,3,accuracy,83.4,83.5,0.1,-0.1,0.3,0.25,,0.5,0.375,0.75,0.5
";

#[test]
fn bert_has_a_table_of_its_own_name_and_figure_1b() {
    let folder = results(BERT_ROWS);
    let says = contains("One head at a time. self").and(contains("base accuracy 83.4 %, 82.4 to 83.8 %"));
    plotting(&folder, &["all", "demo-x"]).assert().success().stdout(says);
    let figures = folder.path().join("results/demo-x/figures");
    let files = fs::read_dir(&figures).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["ablate-one.md", "ablate-one.tex", "figure1b.png", "figure1b.svg"]);
    let svg = fs::read_to_string(figures.join("figure1b.svg")).unwrap();
    let paper = "Figure 1b of the paper (MNLI): 83.4 %, masked 82.4\u{2013}83.8 %";
    assert!(svg.contains(paper), "the paper's numbers are cut off or missing");
    plotting(&folder, &["table1", "demo-x", "--attention", "self"])
        .assert()
        .success()
        .stderr(contains("ablate-one.md"));
}

#[test]
fn bad_rows_are_refused_in_one_line() {
    let with = |row: &str| format!("{ROWS}{row}\n");
    let refuses = |row: &str, message: &str| refuses(&with(row), &["all", "demo-x"], message);
    refuses("enc-enc,3,1,bleu,30.5", "line 8");
    refuses("enc-enc,3,1,bleu,30.5,NaN,0,,,,,,,,", "score of enc-enc:3:1 is NaN");
    refuses(
        "enc-enc,3,1,bleu,31.5,30,0,,,,,,,,",
        "base_score is 30.5 for enc-enc:1:1 but 31.5 for enc-enc:3:1",
    );
    refuses("enc-mid,3,1,bleu,30.5,30,0,,,,,,,,", "unknown attention type `enc-mid`");
    refuses("enc-enc,3,0,bleu,30.5,30,0,,,,,,,,", "head of enc-enc:3:0 is 0");
    refuses("enc-enc,1,1,bleu,30.5,30,0,,,,,,,,", "twice");
}

#[test]
fn missing_results_name_the_command_that_makes_them() {
    let folder = results(ROWS);
    fs::create_dir(folder.path().join("results/other")).unwrap();
    let fails = |subject, message: &'static str| {
        plotting(&folder, &["table1", subject]).assert().code(1).stderr(contains(message));
    };
    fails("other", "make it with `ablate-one experiments/other.toml`");
    fails("nothing", "unknown subject `nothing`: `results` has demo-x, other");
    fails("results/demo-x", "is not the name of a subject");
    refuses("", &["figure1", "demo-x"], "holds no rows yet");
    refuses(ROWS, &["figure1", "demo-x", "--attention", "dec-dec"], "no rows for attention type dec-dec");
}

/// A file with these rows and a signature that names a run over 500 segments, complete with 7 rows if `sha256` is given.
fn limited(folder: &TempDir, path: &str, experiment: &str, sha256: Option<&str>) {
    let csv = folder.path().join(path);
    fs::create_dir_all(csv.parent().unwrap()).unwrap();
    fs::write(&csv, format!("{}\n{ROWS}", AblationRow::COLUMNS.join(","))).unwrap();
    let identity =
        Identity { split: "test".to_owned(), limit: Some(500), ..Identity::new(experiment, "demo-x") };
    let complete =
        sha256.map(|sha256| Complete { rows: 7, sha256: sha256.to_owned(), segments_sha256: None });
    let signature = Signature { complete, ..Signature::new(identity, finished_run()) };
    signature.write(&Signature::path_beside(&csv)).unwrap();
}

#[test]
fn a_result_file_is_drawn_by_its_path() {
    let folder = results(ROWS);
    limited(&folder, "results/demo-x/ablate-one-first-500.csv", "ablate-one", None);
    let file = "results/demo-x/ablate-one-first-500.csv";
    let says = contains("; demo-x (demo language), test, first 500 segments\n");
    plotting(&folder, &["table1", file, "--with-figure", "--format", "svg"]).assert().success().stdout(says);
    let names = |path: &str| {
        let files = fs::read_dir(folder.path().join(path)).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let expected = ["figure1-first-500.svg", "table1-first-500.md", "table1-first-500.tex"];
    assert_eq!(names("results/demo-x/figures"), expected);
    limited(&folder, "out/x.csv", "ablate-one", None);
    plotting(&folder, &["figure1", "out/x.csv"]).assert().success().stdout("");
    assert_eq!(names("out/figures"), ["figure1-x.png", "figure1-x.svg"]);
    plotting(&folder, &["all", "out/x.csv"]).assert().success();
    limited(&folder, "out/y.csv", "ablate-all-but-one", None);
    let message = "`out/y.csv` is of `ablate-all-but-one`, but this is drawn from results of `ablate-one`";
    plotting(&folder, &["table1", "out/y.csv"]).assert().code(1).stderr(contains(message));
    plotting(&folder, &["table1", "out/none.csv"])
        .assert()
        .code(1)
        .stderr(contains("cannot read `out/none.csv`"));
}

#[test]
fn files_of_limited_runs_and_other_splits_are_drawn_too() {
    let folder = results(ROWS);
    limited(&folder, "results/demo-x/ablate-one-first-500.csv", "ablate-one", None);
    limited(&folder, "results/demo-x/ablate-one-dev.csv", "ablate-one", None);
    plotting(&folder, &["all", "demo-x"]).assert().success();
    let figures = folder.path().join("results/demo-x/figures");
    for name in ["table1.md", "table1-dev.md", "table1-first-500.md"] {
        assert!(figures.join(name).exists(), "{name} is missing");
    }
    let says = |arguments: &[&str], text: &'static str| {
        plotting(&folder, arguments).assert().success().stdout(contains(text));
    };
    says(&["table1", "demo-x"], "; demo-x (demo language)\n");
    says(&["table1", "demo-x", "--split", "dev"], "first 500 segments\n");
    fs::remove_file(folder.path().join("results/demo-x/ablate-one.csv")).unwrap();
    says(&["table1", "demo-x"], "; demo-x (demo language), test, first 500 segments\n");
    says(&["summary"], "| demo-x (demo language), test, first 500 segments | enc-enc |");
    says(&["summary"], "`ablate-one-first-500.csv` is not checked");
    let missing = "`results/demo-x/ablate-one-train.csv` does not exist";
    plotting(&folder, &["table1", "demo-x", "--split", "train"]).assert().code(1).stderr(contains(missing));
}

#[test]
fn a_file_that_was_edited_is_refused_by_name() {
    let folder = results(ROWS);
    let path = "results/demo-x/ablate-one-first-500.csv";
    limited(&folder, path, "ablate-one", Some("ab12"));
    let message =
        "ablate-one-first-500.csv` was edited or mixed since it was complete: it has 6 rows instead of 7";
    plotting(&folder, &["table1", path])
        .assert()
        .code(1)
        .stderr(contains(format!("error: `results/demo-x/{message}")));
    let warning = contains(format!("warning: left out: `results/demo-x/{message}"));
    plotting(&folder, &["all", "demo-x"]).assert().success().stderr(warning);
    fs::remove_file(folder.path().join("results/demo-x/ablate-one.csv")).unwrap();
    plotting(&folder, &["summary"])
        .assert()
        .code(1)
        .stderr(contains(format!("left out: `results/demo-x/{message}")));
}

#[test]
fn control_characters_of_files_do_not_reach_the_terminal() {
    let evil = ROWS.replace("bleu", "\u{1b}]0;x\u{7}");
    let folder = results(&evil);
    for command in [&["table1", "demo-x", "--with-figure"][..], &["summary"]] {
        let output = plotting(&folder, command).assert().success().get_output().clone();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(text.contains("\\u{1b}") && !text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
    let mixed = format!("{ROWS}enc-enc,3,1,\u{1b}[2J,30.5,30,0,,,,,,,,\n");
    let output =
        plotting(&results(&mixed), &["table1", "demo-x"]).assert().code(1).get_output().stderr.clone();
    assert!(String::from_utf8(output).unwrap().contains("but `\\u{1b}[2J`"));
}

#[test]
fn an_output_folder_that_cannot_be_made_is_named() {
    let folder = results(ROWS);
    fs::write(folder.path().join("results/demo-x/figures"), "a file in the way").unwrap();
    plotting(&folder, &["figure1", "demo-x"])
        .assert()
        .code(1)
        .stderr(contains(format!("cannot write `{}`", Path::new("results/demo-x/figures").display())));
}

#[test]
fn wrong_arguments_are_explained() {
    let folder = results(ROWS);
    let fails = |arguments: &[&str], message: &'static str| {
        plotting(&folder, arguments).assert().code(2).stderr(contains(message));
    };
    fails(
        &["table1", "demo-x", "--attention", "decoder"],
        "it is one of enc-enc, enc-dec, dec-dec, self or all",
    );
    fails(&["table1", "demo-x", "--alpha", "2"], "between 0 and 1");
    fails(&["figure1", "demo-x", "--format", "pdf"], "[possible values: svg, png]");
}
