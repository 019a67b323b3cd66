//! The binary on results of `ablate-all-but-one`, `iterative-prune`, `joint-search` and `cross-domain`.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, starts_with};
use records::{AblationRow, CorrelationRow, Identity, ImportanceRow, Provenance, PruningRow, Row, Signature};
use tempfile::TempDir;

/// Two layers of two heads; in layer 1 both are as good, in layer 2 neither is enough.
const ALL_BUT_ONE: &str = "\
enc-enc,1,1,bleu,30.5,30.25,-0.25,-0.4,-0.1,0.25,0.125,0.75,0.5,,
enc-enc,1,2,bleu,30.5,30.25,-0.25,,,0.5,0.25,0.75,0.5,,
enc-enc,2,1,bleu,30.5,27,-3.5,,,0.001,0.0005,0.004,0.004,,
enc-enc,2,2,bleu,30.5,29,-1.5,-2,-1,0.001,0.0005,0.004,0.004,,
";

/// The second of four heads is the first that is missed.
const PRUNING: &str = "\
all,importance,,false,0,0,4,bleu,30.5,30.5,0,,,,,,,,,,
all,importance,,false,1,1,4,bleu,30.5,30.25,-0.25,-0.5,0,0.2,0.1,0.2,0.2,,,,enc-enc:1:1
all,importance,,false,2,2,4,bleu,30.5,20,-10.5,-12,-9,0.001,0.0005,0.002,0.002,,,,enc-enc:1:1+dec-dec:1:1
all,random,1,false,0,0,4,bleu,30.5,30.5,0,,,,,,,,,,
all,random,1,false,1,1,4,bleu,30.5,25,-5.5,-6,-5,0.001,0.0005,0.001,0.001,,,,enc-enc:1:2
all,random,2,false,0,0,4,bleu,30.5,30.5,0,,,,,,,,,,
all,random,2,false,1,1,4,bleu,30.5,27,-3.5,-7,0,0.2,0.1,0.2,0.2,,,,enc-enc:1:1
enc-enc,importance,,false,0,0,2,bleu,30.5,30.5,0,,,,,,,,,,
enc-enc,importance,,false,1,1,2,bleu,30.5,30.25,-0.25,-0.5,0,0.2,0.1,0.2,0.2,,,,enc-enc:1:1
dec-dec,importance,,false,0,0,2,bleu,30.5,30.5,0,,,,,,,,,,
dec-dec,importance,,false,1,1,2,bleu,30.5,12.5,-18,-19,-17,0.001,0.0005,0.001,0.001,,,,dec-dec:1:1
all,importance,,true,1,1,4,bleu,30.5,25.5,-5,-6,-4,0.001,0.0005,0.001,0.001,,,,dec-dec:1:1
all,importance,,true,2,2,4,bleu,30.5,10.5,-20,-21,-19,0.001,0.0005,0.001,0.001,,,,dec-dec:1:1+enc-enc:1:2
all,floor,,false,0,4,4,bleu,30.5,0.5,-30,-31,-29,0.001,0.0005,0.001,0.001,,,,enc-enc:1:1+dec-dec:1:1
";

const SEARCH: &str =
    "all,swap,,false,1,3,4,bleu,30.5,30.5,0,,,0.5,0.25,0.5,0.5,,,30,enc-enc:1:1+dec-dec:1:1+dec-dec:1:2\n";

/// Three heads; on the first split 1, 0 and -1 around their mean, on the second 1/2, -1/2 and 0: r = 1/2.
const CORRELATION: &str = "all,3,bleu,30.5,20.5,0.5,0.0001,0.25,0.75,0.9,0.4,0.6,0.5,0.25,3,1.5,3\n";
const FIRST: [f64; 3] = [30.0, 29.0, 28.0];
const SECOND: [f64; 3] = [20.0, 19.0, 19.5];

/// Results of `demo-x`, one file for each name and its rows.
fn results(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let subject = folder.path().join("results/demo-x");
    fs::create_dir_all(&subject).unwrap();
    for (name, rows) in files {
        let columns = match *name {
            "iterative-prune" | "joint-search" => PruningRow::COLUMNS,
            "importance" => ImportanceRow::COLUMNS,
            name if name.starts_with("cross-domain") => CorrelationRow::COLUMNS,
            _ => AblationRow::COLUMNS,
        };
        fs::write(subject.join(format!("{name}.csv")), format!("{}\n{rows}", columns.join(","))).unwrap();
    }
    folder
}

fn everything() -> TempDir {
    let chosen = "enc-enc,1,2,bleu,30.5,30.25,-0.25,,,0.5,0.25,0.75,0.5,,\n";
    results(&[
        ("ablate-all-but-one", ALL_BUT_ONE),
        ("ablate-all-but-one-selected-on-dev", chosen),
        ("iterative-prune", PRUNING),
        ("joint-search", SEARCH),
    ])
}

fn sign(folder: &TempDir, stem: &str, split: &str, argument: Option<(&str, &str)>) {
    let arguments = argument.map(|(name, value)| (name.to_owned(), value.into()));
    let identity = Identity {
        split: split.to_owned(),
        arguments: arguments.into_iter().collect(),
        ..Identity::new(stem, "demo-x")
    };
    let run = Provenance { duration_seconds: Some(1.0), ..Provenance::collect("cpu", 1, Default::default()) };
    Signature::new(identity, run).write(&folder.path().join(format!("results/demo-x/{stem}.json"))).unwrap();
}

/// Sweeps of three heads on two splits, and how they agree.
fn compared(correlation: &str) -> TempDir {
    let sweep = |base, scores: [f64; 3]| -> String {
        let row = |(head, score)| format!("enc-enc,1,{head},bleu,{base},{score},{},,,,,,,,\n", score - base);
        (1..).zip(scores).map(row).collect()
    };
    let folder = results(&[
        ("ablate-one", &sweep(30.5, FIRST)),
        ("ablate-one-shifted", &sweep(20.5, SECOND)),
        ("cross-domain-test-shifted", correlation),
    ]);
    sign(&folder, "ablate-one", "test", None);
    sign(&folder, "ablate-one-shifted", "shifted", None);
    sign(&folder, "cross-domain-test-shifted", "test", Some(("against", "shifted")));
    folder
}

fn plotting(folder: &TempDir, arguments: &[&str]) -> Command {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper");
    let mut command = Command::cargo_bin("plotting").unwrap();
    command.current_dir(folder.path()).args(arguments).arg("--paper").arg(paper);
    command
}

fn figures(folder: &TempDir) -> PathBuf {
    folder.path().join("results/demo-x/figures")
}

fn names(folder: &TempDir) -> Vec<String> {
    let files = fs::read_dir(figures(folder)).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn refuses(folder: &TempDir, command: &str, message: &str) {
    let expected = starts_with("error: ").and(contains(message));
    let assert = plotting(folder, &[command, "demo-x"]).assert().code(1).stderr(expected);
    assert_eq!(String::from_utf8_lossy(&assert.get_output().stderr).lines().count(), 1);
}

#[test]
fn table2_has_the_best_heads_beside_those_of_the_paper() {
    let folder = everything();
    let says = |name: &str, text: &'static str| {
        plotting(&folder, &[name, "demo-x"]).assert().success().stdout(contains(text));
    };
    for name in ["table2", "table3"] {
        says(name, "    1  -0.25 (1)       -1.31*\n    2  -1.50 (2)*      -0.16\n");
        says(name, "one head is enough (no significant loss) in 1 of 2 layers of enc-enc");
        says(name, "chosen and reported on the same split: the best of 2 heads is optimistic");
    }
    assert_eq!(names(&folder), ["table2.md", "table2.tex"]);
    let latex = fs::read_to_string(figures(&folder).join("table2.tex")).unwrap();
    assert!(latex.contains(r"2 & \underline{$-$1.50 (2)} & $-$0.16 \\"), "{latex}");
}

#[test]
fn table5_says_where_heads_were_chosen_and_the_signature_knows_best() {
    let folder = everything();
    let run = |says: &'static str| {
        plotting(&folder, &["table5", "demo-x"]).assert().success().stdout(contains(says));
    };
    run("Table 5. Best head alone in its layer");
    let file = "results/demo-x/ablate-all-but-one-selected-on-dev.csv";
    plotting(&folder, &["table5", file]).assert().success().stdout(contains("\nchosen on dev\n"));
    run("\nchosen on dev\n");
    sign(&folder, "ablate-all-but-one-selected-on-dev", "test", Some(("select_on", "validation set")));
    run("\nchosen on validation set, reported on test\n");
    assert_eq!(names(&folder), ["table5.md", "table5.tex"]);
}

#[test]
fn figure3_draws_the_curves_and_prints_what_can_go() {
    let folder = everything();
    // One head of four is safe by importance, and the next a loss; of two random orders one loses by its first head, the
    // other may lose 7 points by it, which no test shows.
    plotting(&folder, &["figure3", "demo-x"]).assert().success().stdout(contains("Heads that can go."));
    let table = fs::read_to_string(figures(&folder).join("pruning.md")).unwrap();
    for row in [
        "| importance | 25 | -0.25 | 25 | -0.25 | 20.00 | 20 |",
        "| importance, complement | 0 | 0.00 | 0 | 0.00 | 10.50 |  |",
        "| random, median of 2 | 0 \\[0 to 0] |  | ≥ 12.5 \\[0 to 25] |  |  |  |",
        "| swap | ? | ? | ≥ 75 | 0.00 |  |  |",
        "| floor, all masked |  |  |  |  | 0.50 (at 100 %) |  |",
    ] {
        assert!(table.contains(row), "`{row}` is missing in\n{table}");
    }
    assert_eq!(names(&folder), ["figure3.png", "figure3.svg", "pruning.md", "pruning.tex"]);
    let svg = fs::read_to_string(figures(&folder).join("figure3.svg")).unwrap();
    assert!(svg.starts_with("<svg width=\"3.4in\"") && svg.contains("search by swaps"));
    let latex = fs::read_to_string(figures(&folder).join("pruning.tex")).unwrap();
    assert!(latex.contains(r"$\geq$ 12.5 [0 to 25]"), "{latex}");
}

#[test]
fn figure4_has_one_curve_for_each_type() {
    let folder = everything();
    plotting(&folder, &["figure4", "demo-x"]).assert().success().stdout("");
    assert_eq!(names(&folder), ["figure4.png", "figure4.svg"]);
    let svg = fs::read_to_string(figures(&folder).join("figure4.svg")).unwrap();
    assert!(
        svg.contains("dec-dec (decoder self-attention)") && svg.contains("hollow: significantly below base")
    );
}

#[test]
fn classifiers_have_figure_6() {
    let rows = "\
all,importance,,false,0,0,4,f1,30.5,30.5,0,,,,,,,,,,
all,importance,,false,1,1,4,f1,30.5,30.25,-0.25,,,0.2,0.1,0.2,0.2,,,,self:1:1
";
    let folder = results(&[("iterative-prune", rows)]);
    let (from, to) = (folder.path().join("results/demo-x"), folder.path().join("results/minilm-mrpc"));
    fs::rename(from, &to).unwrap();
    let says = contains("≥ 25").and(contains("Figure 6c, BERT MRPC"));
    plotting(&folder, &["figure6", "minilm-mrpc"]).assert().success().stdout(says);
    assert!(to.join("figures/figure6.svg").exists());
    plotting(&folder, &["figure4", "minilm-mrpc"])
        .assert()
        .code(1)
        .stderr(contains("no rows for attention type enc-enc"));
}

#[test]
fn all_draws_what_is_there_and_twice_the_same() {
    let folder = everything();
    let run = || {
        plotting(&folder, &["all", "demo-x"]).assert().success();
        let read = |name: String| fs::read(figures(&folder).join(name)).unwrap();
        names(&folder).into_iter().map(read).collect::<Vec<_>>()
    };
    let first = run();
    let expected = ["figure3", "figure4"].map(|name| [format!("{name}.png"), format!("{name}.svg")]).concat();
    assert_eq!(names(&folder)[..4], expected);
    let expected =
        ["pruning", "table2", "table5"].map(|name| [format!("{name}.md"), format!("{name}.tex")]).concat();
    assert_eq!(names(&folder)[4..], expected);
    assert!(first == run(), "a second run wrote other bytes");

    let folder =
        results(&[("iterative-prune", PRUNING.split_inclusive('\n').take(3).collect::<String>().as_str())]);
    plotting(&folder, &["all", "demo-x"]).assert().success();
    assert_eq!(names(&folder), ["figure3.png", "figure3.svg", "pruning.md", "pruning.tex"]);
    refuses(&results(&[]), "all", "make it with `ablate-one experiments/demo-x.toml`");
}

#[test]
fn missing_results_name_the_command_that_makes_them() {
    let folder = results(&[]);
    refuses(&folder, "table2", "make it with `ablate-all-but-one experiments/demo-x.toml`");
    refuses(
        &folder,
        "table5",
        "make it with `ablate-all-but-one --select-on <split> experiments/demo-x.toml`",
    );
    refuses(&folder, "figure3", "make it with `iterative-prune experiments/demo-x.toml`");
    refuses(&results(&[("iterative-prune", "")]), "figure3", "holds no rows yet");
}

#[test]
fn bad_rows_are_refused_in_one_line() {
    let row = |row: &str| results(&[("iterative-prune", &format!("{PRUNING}{row}\n"))]);
    let refuses_row = |text: &str, message: &str| refuses(&row(text), "all", message);
    refuses_row(
        "all,importance,,false,3,3,4,bleu,30.5,NaN,0,,,,,,,,,,",
        "score of all by importance, step 3 is NaN",
    );
    refuses_row("all,importance,,false,3,5,4,bleu,30.5,30,0,,,,,,,,,,", "no more than 100 % can be masked");
    refuses_row("all,importance,,false,3,3,4,bleu,31.5,30,0,,,,,,,,,,", "base_score is 30.5 but 31.5");
    refuses_row("all,best,,false,3,3,4,bleu,30.5,30,0,,,,,,,,,,", "unknown order `best`");
    refuses_row("mid,importance,,false,3,3,4,bleu,30.5,30,0,,,,,,,,,,", "unknown attention `mid`");
    refuses_row("all,importance,,false,3,3,4,bleu,30.5", "line 16");
    let two = results(&[("ablate-all-but-one-selected-on-dev", ALL_BUT_ONE)]);
    refuses(&two, "table5", "has enc-enc:1:1 and enc-enc:1:2: it must have one head of each layer");
    let unknown = results(&[("ablate-all-but-one", "mid,1,1,bleu,30.5,30.25,-0.25,,,,,,,,\n")]);
    refuses(&unknown, "table2", "is not what `ablate-all-but-one` writes: unknown attention type `mid`");
}

#[test]
fn the_summary_has_the_paper_beside_what_is_there() {
    let folder = everything();
    fs::create_dir(folder.path().join("results/just-trained")).unwrap();
    plotting(&folder, &["summary"]).assert().success().stdout(starts_with("# The paper's claims"));
    let text = fs::read_to_string(folder.path().join("results/summary.md")).unwrap();
    for line in [
        "| M19: WMT, newstest2013 (Table 2) | enc-dec | the same |  | 4 of 6 layers | -13.56 |",
        "| demo-x (demo language) | enc-enc | the same | 1 of 2 layers | 1 of 2 layers | -1.50 |",
        "| demo-x (demo language) | enc-enc | dev |  | 1 of 1 layer | -0.25 |",
        "| M19: BERT SST-2 (Figure 6a) | importance |  |  |  |  | 60 % |  |  |  |  |",
        "| demo-x (demo language) | importance | BLEU 30.50 | 4 | 25 % | -0.25 | 25 % | -0.25 | 20.00 | 10.50 | 0.50 |",
        "| demo-x (demo language) | random | BLEU 30.50 | 4 | 0 [0 to 0] % |  | ≥ 12.5 [0 to 25] % |  |  |  | 0.50 |",
        "| M19: WMT, newstest2013 (Figure 4) | enc-dec |  |  | breaks down after 60 % |  |  |  |",
        "| demo-x (demo language) | dec-dec | BLEU 30.50 | 0 % | 0 % | 12.50 |  |  |",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "`{line}` is missing in\n{text}");
    }
    assert!(!text.contains("Table 1)") && !text.contains("just-trained"), "{text}");
    let before = text;
    plotting(&folder, &["summary"]).assert().success();
    assert_eq!(fs::read_to_string(folder.path().join("results/summary.md")).unwrap(), before);

    plotting(&results(&[]), &["summary"]).assert().code(1).stderr(contains("no results to sum up"));
}

#[test]
fn the_summary_compares_domains() {
    let folder = compared(CORRELATION);
    plotting(&folder, &["summary"]).assert().success();
    let text = fs::read_to_string(folder.path().join("results/summary.md")).unwrap();
    for line in [
        "| M19: WMT, newstest2013 (Table 1) | enc-enc | BLEU 36.05 | 96 |  |  | 8 | 4 |  |",
        "| demo-x (demo language), test | enc-enc | BLEU 30.50 | 3 |  |  |  |  |  |",
        "| M19: WMT, newstest2013 and MTNT (Figure 2a) | all reported |  | 0.56 |  |  |  |  |  |  |  |",
        "| demo-x (demo language), test and shifted | all | 3 | 0.50 | 0.25 to 0.75 | p \\< 0.001 | 0.90, 0.40 | 0.60 | 0.50 | \
         1.5 of 3 (3 by chance) | agreement, without noise about 0.83 |",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "`{line}` is missing in\n{text}");
    }
    let message = "pearson of all is 1.75, but it must be -1 to 1 or empty";
    let bad = compared(&CORRELATION.replace("0.5,0.0001", "1.75,0.0001"));
    plotting(&bad, &["summary"]).assert().code(1).stderr(contains(message));
}

/// Standard error of a command that succeeds.
fn warnings(folder: &TempDir, arguments: &[&str]) -> Vec<String> {
    let assert = plotting(folder, arguments).assert().success();
    let lines = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    lines.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
}

/// A comparison is empty for the hours in which its sweeps are made.
#[test]
fn what_a_running_job_has_not_filled_yet_is_left_out() {
    let folder = compared(CORRELATION);
    let subject = folder.path().join("results/demo-x");
    fs::remove_file(subject.join("cross-domain-test-shifted.json")).unwrap();
    for name in ["cross-domain-test-shifted", "ablate-all-but-one-selected-on-dev", "importance"] {
        fs::write(subject.join(format!("{name}.csv")), "").unwrap();
    }
    for (name, columns) in
        [("ablate-all-but-one", AblationRow::COLUMNS), ("iterative-prune", PruningRow::COLUMNS)]
    {
        fs::write(subject.join(format!("{name}.csv")), columns.join(",") + "\n").unwrap();
    }
    let found = warnings(&folder, &["all", "demo-x"]);
    let expected = [
        "ablate-all-but-one",
        "ablate-all-but-one-selected-on-dev",
        "iterative-prune",
        "cross-domain-test-shifted",
        "importance",
    ]
    .map(|name| format!("warning: left out: `results/demo-x/{name}.csv` holds no rows yet"));
    assert_eq!(found, expected);
    let drawn = [("figure1", ["png", "svg"]), ("table1", ["md", "tex"])].map(|(name, extensions)| {
        let files = |name: &str| extensions.map(|extension| format!("{name}.{extension}"));
        [files(&format!("{name}-shifted")), files(name)].concat()
    });
    assert_eq!(names(&folder), drawn.concat());
    assert_eq!(warnings(&folder, &["summary"]).len(), 4);
    for command in ["table2", "table5", "figure3", "figure2"] {
        refuses(&folder, command, "holds no rows yet");
    }

    fs::write(subject.join("ablate-one.csv"), "").unwrap();
    assert_eq!(warnings(&folder, &["all", "demo-x"]).len(), 6);
    plotting(&folder, &["summary"]).assert().code(1).stderr(contains("no results to sum up"));
}

#[test]
fn comparisons_of_older_sweeps_are_left_out() {
    let folder = compared(&CORRELATION.replace("0.5,0.0001", "0.75,0.0001"));
    let message = "pearson of all is 0.75 but 0.5";
    refuses(&folder, "figure2", message);
    refuses(&folder, "figure2", "make it again with `cross-domain experiments/demo-x.toml`");
    for arguments in [&["all", "demo-x"][..], &["summary"]] {
        let found = warnings(&folder, arguments);
        assert!(found.len() == 1 && found[0].contains(message), "{found:?}");
    }
    assert!(!names(&folder).iter().any(|name| name.starts_with("figure2")));
}

#[test]
fn a_search_on_another_model_is_left_out() {
    let folder = everything();
    let sign = |stem: &str, weights: &str| {
        let identity = Identity {
            split: "test".to_owned(),
            weights: Some(weights.to_owned()),
            ..Identity::new(stem, "demo-x")
        };
        let signature = Signature::new(identity, Provenance::collect("cpu", 1, Default::default()));
        signature.write(&folder.path().join(format!("results/demo-x/{stem}.json"))).unwrap();
    };
    sign("iterative-prune", "ab12");
    sign("joint-search", "ab12");
    assert!(warnings(&folder, &["figure3", "demo-x"]).is_empty());
    sign("joint-search", "cd34");
    for arguments in [&["figure3", "demo-x"][..], &["all", "demo-x"], &["summary"]] {
        let found = warnings(&folder, arguments);
        assert_eq!(found.len(), 1, "{found:?}");
        let message = "joint-search.csv` does not go with `results/demo-x/iterative-prune.csv`: weights is cd34 but ab12";
        assert!(found[0].contains(message), "{found:?}");
    }
    let table = fs::read_to_string(figures(&folder).join("pruning.md")).unwrap();
    assert!(!table.contains("swap"), "{table}");

    let other = SEARCH.replace("30.5", "31.5");
    let folder = results(&[("iterative-prune", PRUNING), ("joint-search", &other)]);
    let found = warnings(&folder, &["all", "demo-x"]);
    assert!(found[0].contains("base_score is 31.5 for all by swap, step 1 but 30.5 there"), "{found:?}");
}

/// The oracle's curve has its first and its last step, and layer 2 of the other sweep one of two heads.
#[test]
fn the_summary_says_what_is_not_finished() {
    let killed = "\
all,oracle,,false,0,0,4,bleu,30.5,30.5,0,,,,,,,,,,
all,oracle,,false,2,4,4,bleu,30.5,0,-30.5,,,0.001,0.0005,,,,,,enc-enc:1:1
";
    let some: String = ALL_BUT_ONE.split_inclusive('\n').take(3).collect();
    let folder =
        results(&[("iterative-prune", &format!("{PRUNING}{killed}")), ("ablate-all-but-one", &some)]);
    plotting(&folder, &["summary"]).assert().success();
    let text = fs::read_to_string(folder.path().join("results/summary.md")).unwrap();
    for line in [
        "- demo-x (demo language), enc-enc: 1 of 4 heads are not there: the sweep is not finished, or not all layers have \
         as many heads",
        "| demo-x (demo language) | oracle | BLEU 30.50 | 4 | not finished |  | not finished |  |  |  | 0.50 |",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "`{line}` is missing in\n{text}");
    }
    assert!(text.contains("The oracle's order is made on the very split that is scored"), "{text}");
}
