//! Figure 2 and the agreement of orders through the binary: which files are read and written, and what is refused.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, starts_with};
use records::{AblationRow, CorrelationRow, Identity, ImportanceRow, Provenance, Row, Signature};
use tempfile::TempDir;

const TEST: [f64; 3] = [30.0, 29.0, 28.5];
const SHIFTED: [f64; 3] = [20.0, 19.5, 19.0];
/// On the first split 5, -1 and -4 sixths around their mean, on the second 3, 0 and -3: r = 27 / sqrt(42 * 18).
const COMPARED: &str =
    "all,3,bleu,30.5,20.5,0.9819805060619657,0.12,-0.25,0.5,0.05,0.1,0.0707,1.0,0.0,3,3,3.0";

fn subject(folder: &TempDir) -> PathBuf {
    folder.path().join("results/demo-x")
}

fn write<R: Row>(folder: &TempDir, stem: &str, rows: &[String], split: &str, against: Option<&str>) {
    let path = subject(folder).join(format!("{stem}.csv"));
    fs::create_dir_all(subject(folder)).unwrap();
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(&path, format!("{}\n{lines}", R::COLUMNS.join(","))).unwrap();
    let experiment = stem.split("-test").next().unwrap().trim_end_matches("-shifted");
    let arguments = against.map(|against| ("against".to_owned(), against.into()));
    let identity = Identity {
        split: split.to_owned(),
        arguments: arguments.into_iter().collect(),
        ..Identity::new(experiment, "demo-x")
    };
    let signature = Signature::new(identity, Provenance::collect("cpu", 1, Default::default()));
    signature.write(&Signature::path_beside(&path)).unwrap();
}

fn write_sweep(folder: &TempDir, stem: &str, split: &str, base: f64, scores: &[f64]) {
    let row = |(head, score): (usize, &f64)| {
        format!("enc-enc,1,{head},bleu,{base},{score},{},,,,,,,,", score - base)
    };
    write::<AblationRow>(folder, stem, &(1..).zip(scores).map(row).collect::<Vec<_>>(), split, None);
}

/// Sweeps on `test` and `shifted`, and their comparison.
fn results() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_sweep(&folder, "ablate-one", "test", 30.5, &TEST);
    write_sweep(&folder, "ablate-one-shifted", "shifted", 20.5, &SHIFTED);
    write_comparison(&folder, "cross-domain-test-shifted", "shifted");
    folder
}

fn write_comparison(folder: &TempDir, stem: &str, against: &str) {
    write::<CorrelationRow>(folder, stem, &[COMPARED.to_owned()], "test", Some(against));
}

fn plotting(folder: &TempDir, arguments: &[&str]) -> Command {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper");
    let mut command = Command::cargo_bin("plotting").unwrap();
    command.current_dir(folder.path()).args(arguments);
    if arguments[0] != "agreement" {
        command.arg("--paper").arg(paper);
    }
    command
}

fn refuses(folder: &TempDir, arguments: &[&str], message: &str) {
    let expected = starts_with("error: ").and(contains(message));
    let output = plotting(folder, arguments).assert().code(1).stderr(expected).get_output().stderr.clone();
    assert_eq!(String::from_utf8(output).unwrap().lines().count(), 1);
}

fn figures(folder: &TempDir) -> Vec<String> {
    let files = fs::read_dir(subject(folder).join("figures")).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn figure2_is_drawn_from_the_numbers_of_the_comparison() {
    let folder = results();
    let says =
        contains("-0.25 to 0.50").and(contains("0.05, 0.10")).and(contains("noise: it hides more than half"));
    plotting(&folder, &["figure2", "experiments/demo-x.toml"]).assert().success().stdout(says);
    let expected = ["md", "png", "svg", "tex"].map(|extension| format!("figure2-shifted.{extension}"));
    assert_eq!(figures(&folder), expected);
    let svg = fs::read_to_string(subject(&folder).join("figures/figure2-shifted.svg")).unwrap();
    for label in [
        "Pearson r = 0.98 [\u{2212}0.25, 0.50] (p = 0.120)",
        "noise: it hides more than half of an axis",
        "ceiling of r 0.07: reliability 0.05 (test) and 0.10 (shifted)",
        "BLEU with one head masked, shifted",
        "r = 0.56",
    ] {
        assert!(svg.contains(label), "`{label}` is missing");
    }
}

#[test]
fn a_sweep_on_the_first_split_may_have_its_split_in_its_name() {
    let folder = results();
    write_sweep(&folder, "ablate-one-test", "test", 30.5, &TEST);
    write_sweep(&folder, "ablate-one", "dev", 1.0, &[2.0]);
    plotting(&folder, &["figure2", "demo-x"]).assert().success();
    fs::remove_file(subject(&folder).join("ablate-one-test.csv")).unwrap();
    refuses(&folder, &["figure2", "demo-x"], "make it with `cross-domain experiments/demo-x.toml`");
}

#[test]
fn against_chooses_among_comparisons() {
    let folder = results();
    write_sweep(&folder, "ablate-one-noisy", "noisy", 20.5, &SHIFTED);
    write_comparison(&folder, "cross-domain-test-noisy", "noisy");
    plotting(&folder, &["figure2", "demo-x", "--against", "noisy", "--format", "svg"]).assert().success();
    assert_eq!(figures(&folder), ["figure2-noisy.md", "figure2-noisy.svg", "figure2-noisy.tex"]);
    refuses(&folder, &["figure2", "demo-x", "--against", "dev"], "`results/demo-x` has noisy, shifted");
    plotting(&folder, &["figure2", "demo-x"]).assert().success();
    assert_eq!(figures(&folder).len(), 8);
    let file = "results/demo-x/cross-domain-test-shifted.csv";
    fs::remove_dir_all(subject(&folder).join("figures")).unwrap();
    plotting(&folder, &["figure2", file, "--format", "svg"]).assert().success();
    assert_eq!(figures(&folder), ["figure2-shifted.md", "figure2-shifted.svg", "figure2-shifted.tex"]);
    refuses(
        &folder,
        &["figure2", "results/demo-x/ablate-one.csv"],
        "is of `ablate-one`, but this is drawn from",
    );
}

#[test]
fn comparisons_that_do_not_fit_their_sweeps_are_refused() {
    let figure2 = ["figure2", "demo-x"];
    let folder = results();
    write_sweep(&folder, "ablate-one-shifted", "shifted", 20.5, &SHIFTED[..2]);
    refuses(&folder, &figure2, "ablate-one-shifted.csv` has no row for enc-enc:1:3");
    write_sweep(&folder, "ablate-one-shifted", "shifted", 19.0, &SHIFTED);
    refuses(&folder, &figure2, "second_base_score of all is 20.5 but 19 there");
    write_comparison(&folder, "cross-domain-test-shifted", "../../elsewhere");
    refuses(&folder, &figure2, "cross-domain-test-shifted.csv` does not name two splits");
    fs::remove_file(subject(&folder).join("cross-domain-test-shifted.json")).unwrap();
    refuses(&folder, &figure2, "does not name two splits");
    fs::remove_file(subject(&folder).join("cross-domain-test-shifted.csv")).unwrap();
    refuses(&folder, &figure2, "make one with `cross-domain experiments/demo-x.toml`");
    refuses(&folder, &["figure2", "nothing"], "unknown subject `nothing`: `results` has demo-x");
}

#[test]
fn damaged_comparisons_are_refused() {
    let folder = results();
    let refuses = |row: &str, message: &str| {
        let rows: Vec<_> = row.lines().map(str::to_owned).collect();
        write::<CorrelationRow>(&folder, "cross-domain-test-shifted", &rows, "test", Some("shifted"));
        refuses(&folder, &["figure2", "demo-x"], message);
    };
    refuses("", "holds no rows yet");
    refuses(&COMPARED.replace("0.9819805060619657", "NaN"), "pearson of all is NaN");
    refuses(&COMPARED.replace("all", "every"), "unknown attention type `every`");
    refuses(&COMPARED.replace(",3,bleu", ",-3,bleu"), "line 2");
}

fn write_importance(folder: &TempDir, rows: &[&str]) {
    let rows: Vec<_> = rows.iter().map(|&row| row.to_owned()).collect();
    write::<ImportanceRow>(folder, "importance", &rows, "train", None);
}

const IMPORTANCE: [&str; 3] = [
    "enc-enc,1,1,1,0.1,1,0.1,1,2.0,0.3,0.1,0.5",
    "enc-enc,1,2,2,0.2,2,0.3,3,1.5,0.2,0.2,0.25",
    "enc-enc,1,3,3,0.3,3,0.2,2,1.0,0.4,0.3,2",
];

/// Importance 1, 2, 3 against 1, 3, 2: tau 1/3, rho 1 - 6 * 2 / 24; entropy falls as importance rises.
#[test]
fn agreement_prints_and_writes_a_table_and_a_figure() {
    let folder = results();
    write_importance(&folder, &IMPORTANCE);
    let table = contains("1 importance          +0.33   +0.33   +1.00")
        .and(contains("2 importance by token  +0.50           +1.00   +0.33"));
    plotting(&folder, &["agreement", "demo-x"]).assert().success().stdout(table);
    let expected = ["md", "png", "svg", "tex"].map(|extension| format!("importance-agreement.{extension}"));
    assert_eq!(figures(&folder), expected);
}

#[test]
fn importance_that_cannot_be_ranked_is_refused() {
    let folder = results();
    let agreement = ["agreement", "demo-x"];
    refuses(&folder, &agreement, "`results/demo-x/importance.csv` does not exist");
    write_importance(&folder, &IMPORTANCE[..2]);
    refuses(
        &folder,
        &agreement,
        "cannot compare the numbers of `results/demo-x/importance.csv`: too few values",
    );
    write_importance(&folder, &[]);
    refuses(&folder, &agreement, "holds no rows yet");
    write_importance(&folder, &[&IMPORTANCE[0].replace("2.0", "inf")]);
    refuses(&folder, &agreement, "entropy of enc-enc:1:1 is inf");
}

#[test]
fn all_draws_comparisons_where_they_are_and_twice_the_same() {
    let folder = results();
    write_importance(&folder, &IMPORTANCE);
    let read = || {
        plotting(&folder, &["all", "demo-x"]).assert().success();
        let bytes = |name: &String| fs::read(subject(&folder).join("figures").join(name)).unwrap();
        figures(&folder).iter().map(bytes).collect::<Vec<_>>()
    };
    let files = read();
    assert_eq!(files.len(), 16, "{:?}", figures(&folder));
    assert!(files == read(), "a second run wrote other bytes");
}
