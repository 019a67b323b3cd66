//! Table 4 and Figure 5 through the binary: which files are read and written, and what is refused.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, starts_with};
use records::{DynamicsRow, Identity, Provenance, Row, Signature, SpeedRow};
use tempfile::TempDir;

/// Half of 8 heads removed, in batches of 16 and, which the paper has not, of 3.
const SPEED: &str = "\
4,8,3,100,900,5,50.0,1.5,52.5,1.25,1.05,0.99,1.11,,1.25,1000000000,800000000,4000000,3000000,,,
4,8,16,100,900,5,80.0,2.0,88.0,2.5,1.1,1.04,1.16,,1.25,1200000000,960000000,4000000,3000000,2097152,1048576,
";

/// Ten heads. Epoch 1 has no score; 2 keeps 90 % without one head; 3 keeps 95 % without one and 88 % without two.
const DYNAMICS: &str = "\
1,100,0,0,10,bleu,0.0,0.0,0.0,,,,,,,,,
1,100,1,1,10,bleu,0.0,0.5,0.5,,,0.5,0.25,0.5,0.5,,,enc-enc:1:1
1,100,2,2,10,bleu,0.0,0.25,0.25,,,0.5,0.25,0.5,0.5,,,enc-enc:1:1+enc-enc:1:2
2,200,0,0,10,bleu,10.0,10.0,0.0,,,,,,,,,
2,200,1,1,10,bleu,10.0,9.0,-1.0,,,0.2,0.1,0.2,0.2,,,enc-enc:1:1
2,200,2,2,10,bleu,10.0,7.0,-3.0,,,0.001,0.0005,0.002,0.002,,,enc-enc:1:1+enc-enc:1:2
3,300,0,0,10,bleu,20.0,20.0,0.0,,,,,,,,,
3,300,1,1,10,bleu,20.0,19.0,-1.0,,,0.2,0.1,0.2,0.2,,,enc-enc:1:1
3,300,2,2,10,bleu,20.0,17.6,-2.4,,,0.001,0.0005,0.002,0.002,,,enc-enc:1:1+enc-enc:1:2
";

fn subject(folder: &TempDir) -> PathBuf {
    folder.path().join("results/demo-x")
}

fn write<R: Row>(folder: &TempDir, stem: &str, rows: &str) {
    fs::create_dir_all(subject(folder)).unwrap();
    let text = format!("{}\n{rows}", R::COLUMNS.join(","));
    fs::write(subject(folder).join(format!("{stem}.csv")), text).unwrap();
}

/// A signature of rows on `test`, by one run with 3 threads.
fn sign(folder: &TempDir, stem: &str, is_finished: bool) {
    let identity = Identity {
        split: "test".to_owned(),
        precision: "f32".to_owned(),
        arguments: [("estimate_on".to_owned(), "train".into())].into(),
        ..Identity::new(stem, "demo-x")
    };
    let run = Provenance {
        duration_seconds: is_finished.then_some(2.5),
        platform: "linux x86_64".to_owned(),
        ..Provenance::collect("cpu", 3, Default::default())
    };
    let path = subject(folder).join(format!("{stem}.json"));
    Signature::new(identity, run).write(&path).unwrap();
}

fn results() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write::<SpeedRow>(&folder, "speed-bench", SPEED);
    write::<DynamicsRow>(&folder, "training-dynamics", DYNAMICS);
    sign(&folder, "speed-bench", true);
    sign(&folder, "training-dynamics", true);
    folder
}

fn plotting(folder: &TempDir, arguments: &[&str]) -> Command {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper");
    let mut command = Command::cargo_bin("plotting").unwrap();
    command.current_dir(folder.path()).args(arguments).arg("--paper").arg(paper);
    command
}

fn figures(folder: &TempDir) -> Vec<String> {
    let files = fs::read_dir(subject(folder).join("figures")).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn written(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(subject(folder).join("figures").join(name)).unwrap()
}

fn refuses(folder: &TempDir, command: &str, message: &str) {
    let expected = starts_with("error: ").and(contains(message));
    let assert = plotting(folder, &[command, "demo-x"]).assert().code(1).stderr(expected);
    assert_eq!(String::from_utf8_lossy(&assert.get_output().stderr).lines().count(), 1);
}

/// Warnings of a command that succeeds.
fn warnings(folder: &TempDir, arguments: &[&str]) -> Vec<String> {
    let assert = plotting(folder, arguments).assert().success();
    let lines = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    lines.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
}

/// 1000 million multiply-adds for 100 segments are 10 million for each.
#[test]
fn table4_prints_and_writes_speeds_beside_the_paper() {
    let folder = results();
    let expected = "\
Table 4. Segments a second, original and without 4 of 8 heads (50 %); demo-x (demo language), test

                    Speed
Batch size       original          pruned     speedup (%)   95 % interval   predicted (%)       paper (%)
         3     50.0 ± 1.5      52.5 ± 1.2            +5.0   -1.0 to +11.0           +25.0
        16     80.0 ± 2.0      88.0 ± 2.5           +10.0*  +4.0 to +16.0           +25.0           +17.5

* the 95 % interval of the speedup does not hold 0
mean ± standard deviation of 5 repeats over 100 segments, both models in turn, after one to warm up
speedup: geometric mean over pairs of neighbouring passes; predicted: the speedup if time were only multiply-adds
the least important heads are removed, estimated on train
measured on cpu with 3 threads (linux x86_64), f32
";
    plotting(&folder, &["table4", "experiments/demo-x.toml"])
        .assert()
        .success()
        .stdout(starts_with(expected));
    assert_eq!(figures(&folder), ["table4.md", "table4.tex"]);
    let markdown = written(&folder, "table4.md");
    let row = "| 16 | 80.0 ± 2.0 | 88.0 ± 2.5 | **+10.0** | +4.0 to +16.0 | +25.0 | +17.5 |";
    assert!(markdown.contains(row), "{markdown}");
    assert!(markdown.contains("| 3 | 10.0 | 8.00 | -20.0 |  |  |  |"), "{markdown}");
    assert!(markdown.contains("| 16 | 12.0 | 9.60 | -20.0 | 2.00 | 1.00 | -50.0 |"), "{markdown}");
    let latex = written(&folder, "table4.tex");
    assert!(latex.contains(r"\underline{$+$10.0} & $+$4.0 to $+$16.0"), "{latex}");
    assert!(latex.contains(r"Parameters: 4.00 million, pruned 3.00 (-25.0 \%)."), "{latex}");
}

#[test]
fn figure5_draws_both_panels_and_prints_their_numbers() {
    let folder = results();
    let printed =
        contains("\n   Epoch      10       20\n 1 [0.0]     n/a      n/a\n2 [10.0]    90.0     70.0\n")
            .and(contains("\n    2       10.0         6.2          10          10\n"))
            .and(contains("\n    3       20.0        18.1          10        ≥ 20\n"))
            .and(contains("40 % of heads from epoch 10 on, with 85 to 90 % of BLEU kept"));
    plotting(&folder, &["figure5", "demo-x"]).assert().success().stdout(printed);
    assert_eq!(figures(&folder), ["figure5.md", "figure5.png", "figure5.svg", "figure5.tex"]);
    let svg = written(&folder, "figure5.svg");
    for label in ["epoch 2 [10.0]", "epoch 3 [20.0]", "no percentages of a score of 0.0 or below: epoch 1"] {
        assert!(svg.contains(label), "`{label}` is missing");
    }
    let png = fs::read(subject(&folder).join("figures/figure5.png")).unwrap();
    assert_eq!(png[16..20], 3300_u32.to_be_bytes()); // 5.5 inches of 600 pixels
    plotting(&folder, &["figure5", "demo-x", "--format", "svg"]).assert().success();
}

#[test]
fn all_draws_both_and_twice_the_same() {
    let folder = results();
    let run = || {
        assert!(warnings(&folder, &["all", "demo-x"]).is_empty());
        let read = |name: String| fs::read(subject(&folder).join("figures").join(name)).unwrap();
        figures(&folder).into_iter().map(read).collect::<Vec<_>>()
    };
    let first = run();
    let expected = ["figure5.md", "figure5.png", "figure5.svg", "figure5.tex", "table4.md", "table4.tex"];
    assert_eq!(figures(&folder), expected);
    assert!(first == run(), "a second run wrote other bytes");
}

#[test]
fn missing_results_name_the_command_that_makes_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(subject(&folder)).unwrap();
    refuses(&folder, "table4", "make it with `speed-bench experiments/demo-x.toml`");
    refuses(&folder, "figure5", "make it with `training-dynamics experiments/demo-x.toml`");
    write::<SpeedRow>(&folder, "speed-bench", "");
    write::<DynamicsRow>(&folder, "training-dynamics", "");
    refuses(&folder, "table4", "speed-bench.csv` holds no rows yet");
    refuses(&folder, "figure5", "training-dynamics.csv` holds no rows yet");
    let found = warnings(&folder, &["all", "demo-x"]);
    let expected = ["speed-bench", "training-dynamics"]
        .map(|name| format!("warning: left out: `results/demo-x/{name}.csv` holds no rows yet"));
    assert_eq!(found, expected);
}

/// The last row of a killed run is torn, and a checkpoint before it lacks a step.
#[test]
fn unfinished_files_are_drawn_with_what_is_there() {
    let folder = results();
    let lines: Vec<_> = DYNAMICS.split_inclusive('\n').collect();
    let torn = [&lines[..4], &lines[5..8], &[&lines[8][..20]]].concat().concat();
    write::<DynamicsRow>(&folder, "training-dynamics", &torn);
    sign(&folder, "training-dynamics", false);
    let printed = contains("not finished, steps or their tests are missing: epoch 2, epoch 3\n")
        .and(contains("the run was killed or is still going, so checkpoints may be missing\n"))
        .and(contains("\n2, not finished       10.0         6.2           ?           ?\n"));
    plotting(&folder, &["figure5", "demo-x"]).assert().success().stdout(printed);
    assert!(written(&folder, "figure5.svg").contains("the run was killed or is still going"));

    sign(&folder, "speed-bench", false);
    write::<SpeedRow>(&folder, "speed-bench", &SPEED[..SPEED.len() - 9]);
    let printed = contains("\n         3     50.0 ± 1.5").and(contains("\n        16 ").not());
    let printed = printed.and(contains("not finished: the run was killed or is still going"));
    plotting(&folder, &["table4", "demo-x"]).assert().success().stdout(printed);
}

#[test]
fn a_training_without_a_score_so_far_has_tables_alone() {
    let folder = results();
    let untrained: String = DYNAMICS.split_inclusive('\n').take(3).collect();
    write::<DynamicsRow>(&folder, "training-dynamics", &untrained);
    refuses_after_tables(&folder);
    let found = warnings(&folder, &["all", "demo-x"]);
    assert!(found.len() == 1 && found[0].contains("no checkpoint with a score above 0"), "{found:?}");
    assert_eq!(figures(&folder), ["figure5.md", "figure5.tex", "table4.md", "table4.tex"]);
    plotting(&folder, &["summary"]).assert().code(1).stderr(contains("no results to sum up"));
}

fn refuses_after_tables(folder: &TempDir) {
    let message =
        contains("error: `results/demo-x/training-dynamics.csv` has no checkpoint with a score above 0");
    plotting(folder, &["figure5", "demo-x"]).assert().code(1).stderr(message).stdout(contains("n/a"));
}

#[test]
fn bad_rows_are_refused_in_one_line() {
    let refuses_speed = |row: &str, message: &str| {
        let folder = results();
        write::<SpeedRow>(&folder, "speed-bench", &format!("{SPEED}{row}\n"));
        refuses(&folder, "table4", message);
        plotting(&folder, &["all", "demo-x"]).assert().code(1).stderr(contains(message));
    };
    refuses_speed(
        "4,8,64,100,900,5,80.0,2.0,NaN,2.5,1.1,1.04,1.16,,1.25,2,1,4000000,3000000,,,",
        "pruned_per_second of 4",
    );
    refuses_speed(
        "4,9,64,100,900,5,80.0,2.0,88.0,2.5,1.1,1.04,1.16,,1.25,2,1,4000000,3000000,,,",
        "heads is 8 for 4 removed",
    );
    refuses_speed("4,8,16,100,900,5", "line 4");
    let refuses_dynamics = |row: &str, message: &str| {
        let folder = results();
        write::<DynamicsRow>(&folder, "training-dynamics", &format!("{DYNAMICS}{row}\n"));
        refuses(&folder, "figure5", message);
        plotting(&folder, &["summary"]).assert().code(1).stderr(contains(message));
    };
    refuses_dynamics("4,400,0,0,10,bleu,NaN,1.0,0.0,,,,,,,,,", "step 0 after 400 updates is NaN");
    refuses_dynamics(
        "4,400,0,0,12,bleu,1.0,1.0,0.0,,,,,,,,,",
        "heads is 10 for step 0 after 100 updates but 12",
    );
    refuses_dynamics(
        "3,400,0,0,10,bleu,1.0,1.0,0.0,,,,,,,,,",
        "epoch of the checkpoint after 400 updates is 3",
    );
    refuses_dynamics("3,300,2,2,10,bleu,1.0,1.0,0.0,,,,,,,,,", "twice");
}

#[test]
fn the_summary_has_the_claim_on_training() {
    let folder = results();
    let text = |folder: &TempDir| {
        plotting(folder, &["summary"]).assert().success();
        fs::read_to_string(folder.path().join("results/summary.md")).unwrap()
    };
    let has = |text: &str, line: &str| {
        assert!(text.contains(&format!("\n{line}\n")), "`{line}` is missing in\n{text}")
    };
    let found = text(&folder);
    has(&found, "| M19: IWSLT (Figure 5) | epoch 40 (the same from 10 on) | BLEU 34.9 |  | 40 % |  |  |");
    has(
        &found,
        "| demo-x (demo language), test | epoch 3 | BLEU 20.00 | 10 | ≥ 20 % | 10 % | epoch 2: 10 % |",
    );
    has(&found, "- demo-x (demo language), test, no percentages of a score of 0.0 or below: epoch 1");
    let some: String = DYNAMICS.split_inclusive('\n').take(5).collect();
    write::<DynamicsRow>(&folder, "training-dynamics", &some);
    let found = text(&folder);
    let row = "| demo-x (demo language), test | epoch 2 | BLEU 10.00 | 10 | ≥ 10 % (not finished) | ≥ 10 % (not finished) |  |";
    has(&found, row);
}
