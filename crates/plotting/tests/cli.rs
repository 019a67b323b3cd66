//! The binary, from the outside: files, exit codes and messages.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, starts_with};
use records::{AblationRow, Identity, Provenance, Row, Signature};
use tempfile::TempDir;

/// Two layers of three heads; the first head of layer 2 matters.
const ROWS: &str = "\
enc-enc,1,1,bleu,30.5,30.25,-0.25,-0.4,-0.1,0.25,0.75,0.5,,
enc-enc,1,2,bleu,30.5,30.625,0.125,,,0.5,0.75,0.5,,
enc-enc,1,3,bleu,30.5,30.5,0,,,1,1,1,,
enc-enc,2,1,bleu,30.5,29,-1.5,-2,-1,0.001,0.006,0.006,,
enc-enc,2,2,bleu,30.5,30.75,0.25,,,0.25,0.75,0.5,,
enc-enc,2,3,bleu,30.5,30.25,-0.25,,,0.25,0.75,0.5,,
";

fn results(rows: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let subject = folder.path().join("results/demo-x");
    fs::create_dir_all(&subject).unwrap();
    let csv = format!("{}\n{rows}", AblationRow::COLUMNS.join(","));
    fs::write(subject.join("ablate-one.csv"), csv).unwrap();
    folder
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
        Identity {
            split: "test".to_owned(),
            arguments: [("resamples".to_owned(), 1000.into())].into(),
            ..Identity::new("ablate-one", "demo-x")
        },
        Provenance::collect("cpu", 1, Default::default()),
    );
    signature.write(&folder.path().join("results/demo-x/ablate-one.json")).unwrap();
    let expected = "\
Table 1. enc-enc (encoder self-attention): BLEU with one head masked, minus the base BLEU; \
demo-x (demo language), test

        Head
Layer      1       2       3
    1  -0.25   +0.12    0.00
    2  -1.50*  +0.25   -0.25

* p < 0.01 (paired bootstrap, 1000 resamples; not adjusted for the number of heads)
base BLEU 30.50
1 of 6 heads significant, 0 for the better
false alarms expected by chance: 0.12 (p is one-sided, on the side observed)
after Holm: 1 significant, 0 for the better
after Benjamini-Hochberg: 1 significant, 0 for the better
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
    let folder = results(&format!("{ROWS}enc-dec,1,1,bleu,30.5,20,-10.5,,,,,,,\n"));
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
self,1,1,accuracy,83.4,83.4,0.0,0.0,0.0,1.0,1.0,1.0,1.0,1.0
self,1,2,accuracy,83.4,82.4,-1.0,-1.5,-0.5,0.001,0.003,0.003,0.25,0.002
self,1,3,accuracy,83.4,83.5,0.1,-0.1,0.3,0.25,0.5,0.375,0.75,0.5
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
    refuses("enc-enc,3,1,bleu,30.5,NaN,0,,,,,,,", "score of enc-enc:3:1 is NaN");
    refuses(
        "enc-enc,3,1,bleu,31.5,30,0,,,,,,,",
        "base_score is 30.5 for enc-enc:1:1 but 31.5 for enc-enc:3:1",
    );
    refuses("enc-mid,3,1,bleu,30.5,30,0,,,,,,,", "unknown attention type `enc-mid`");
    refuses("enc-enc,3,0,bleu,30.5,30,0,,,,,,,", "head of enc-enc:3:0 is 0");
    refuses("enc-enc,1,1,bleu,30.5,30,0,,,,,,,", "twice");
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
