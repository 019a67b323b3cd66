//! The whole command on a setup that trains in a second.
use std::path::Path;
use std::sync::LazyLock;

use assert_cmd::Command;
use predicates::str::contains;
use records::AblationRow;
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, rows, trained};

fn folder() -> TempDir {
    trained(TRANSLATOR, "ablate-all-but-one", &["--limit", "first:1", "--attention", "enc-enc"])
}

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("ablate-all-but-one", folder);
    command.args(["--resamples", "99"]);
    command
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    test_support::refusal(command(folder).args(arguments))
}

#[test]
fn every_head_has_one_row_with_its_test() {
    let folder = folder();
    command(folder.path()).assert().success().stdout("results/tiny/ablate-all-but-one.csv\n");
    let rows: Vec<AblationRow> = rows(folder.path(), "ablate-all-but-one.csv");
    assert_eq!(rows.len(), 3 * 2 * 3);
    for row in &rows {
        assert_eq!(row.base_score, rows[0].base_score);
        assert!(row.p_adjusted.unwrap() >= row.p_value.unwrap());
    }
    assert!(rows.iter().any(|row| row.score_delta != 0.0), "masking must change something");
}

/// Heads that are chosen on `dev` get rows with their scores on the test split.
#[test]
fn heads_are_chosen_on_one_split_and_scored_on_another() {
    let folder = folder();
    let arguments = ["--attention", "dec-dec", "--select-on", "dev", "--select-limit", "20"];
    let file = "ablate-all-but-one-selected-on-dev.csv";
    command(folder.path()).args(arguments).assert().success().stdout(format!("results/tiny/{file}\n"));
    let all: Vec<AblationRow> = rows(folder.path(), "ablate-all-but-one-dev-sample-20.csv");
    let best: Vec<AblationRow> = rows(folder.path(), file);
    assert_eq!((all.len(), best.len()), (2 * 3, 2));
    command(folder.path()).args(["--attention", "dec-dec"]).assert().success();
    let on_test: Vec<AblationRow> = rows(folder.path(), "ablate-all-but-one.csv");
    for (layer, chosen) in (1..).zip(&best) {
        let of_layer: Vec<&AblationRow> = all.iter().filter(|row| row.layer == layer).collect();
        let highest = of_layer.iter().map(|row| row.score).fold(f64::NEG_INFINITY, f64::max);
        let first = of_layer.iter().find(|row| row.score == highest).unwrap();
        assert_eq!((chosen.layer, chosen.head), (layer, first.head));
        let scored = on_test.iter().find(|row| (row.layer, row.head) == (layer, chosen.head)).unwrap();
        assert_eq!((chosen.score, chosen.base_score), (scored.score, scored.base_score));
        assert!(chosen.p_adjusted.is_some(), "a family of two tests is whole");
    }
    command(folder.path()).args(["--attention", "enc-enc"]).args(&arguments[2..]).assert().success();
    let both: Vec<AblationRow> = rows(folder.path(), file);
    assert_eq!(both.len(), 4, "another attention type leaves the rows of the first");
    assert!(both.iter().all(|row| row.p_adjusted.is_some()));
}

#[test]
fn in_a_layer_of_two_heads_it_is_the_same_as_masking_one() {
    static TWO_HEADS: LazyLock<String> = LazyLock::new(|| CLASSIFIER.replace("heads = 3", "heads = 2"));
    let folder = trained(&TWO_HEADS, "ablate-all-but-one", &["--limit", "first:1"]);
    command(folder.path()).assert().success();
    test_support::command("ablate-one", folder.path()).args(["--resamples", "99"]).assert().success();
    let kept: Vec<AblationRow> = rows(folder.path(), "ablate-all-but-one.csv");
    let masked: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    assert_eq!(kept.len(), 2 * 2);
    for row in &kept {
        let other = masked.iter().find(|other| other.layer == row.layer && other.head != row.head).unwrap();
        assert_eq!((row.score, row.p_value, row.p_mcnemar), (other.score, other.p_value, other.p_mcnemar));
    }
    assert!(kept.iter().any(|row| row.score_delta != 0.0));
}

#[test]
fn splits_that_make_no_sense_are_refused() {
    let folder = folder();
    let message = refusal(folder.path(), &["--select-on", "test"]);
    assert_eq!(
        message,
        "error: --select-on test is the split that is scored: leave it out, or name another\n"
    );
    let message = refusal(folder.path(), &["--select-on", "newstest"]);
    assert!(message.contains("no split `newstest`: this setup has train, dev, test, shifted"), "{message}");
    command(folder.path()).args(["--select-limit", "3"]).assert().code(2).stderr(contains("--select-on"));
}

/// Shards do not choose heads, since each would see only part of the rows: the sweep to choose from must be complete.
#[test]
fn shards_become_the_file_of_one_machine_also_with_heads_that_are_chosen() {
    let (whole, apart) = (folder(), folder());
    let arguments = ["--attention", "dec-dec", "--select-on", "dev"];
    let sharded = |shard| [&arguments[..], &["--shard", shard]].concat();
    let message = refusal(apart.path(), &sharded("1/2"));
    assert!(message.contains("ablate-all-but-one-dev.csv` does not have all rows yet"), "{message}");
    let merge = || {
        let mut command = Command::cargo_bin("merge").unwrap();
        command.current_dir(apart.path()).arg("tiny").assert().success();
    };
    for shard in ["1/2", "2/2"] {
        command(apart.path()).args(["--split", "dev", "--shard", shard]).assert().success();
    }
    merge();
    for shard in ["1/2", "2/2"] {
        command(apart.path()).args(sharded(shard)).assert().success();
    }
    merge();
    command(whole.path()).args(arguments).assert().success();
    let chosen = "results/tiny/ablate-all-but-one-selected-on-dev.csv";
    assert_eq!(test_support::read(apart.path(), chosen), test_support::read(whole.path(), chosen));
}

/// The sums of effects that `ablate-one` stored equal the first-order effects from the gradient.
#[test]
fn stored_effects_of_heads_add_up() {
    let find = |stores_heads: bool| -> Vec<AblationRow> {
        let folder = trained(LANGUAGE_MODEL, "ablate-all-but-one", &["--resamples", "0"]);
        let sweep = ["--split", "train", "--limit", "200", "--resamples", "99", "--until-decided"];
        if stores_heads {
            test_support::command("ablate-one", folder.path()).args(sweep).assert().success();
        }
        command(folder.path())
            .args(&sweep[..4])
            .args(["--until-decided", "--control-variate", "on"])
            .assert()
            .success();
        rows(folder.path(), "ablate-all-but-one-train-sample-200.csv")
    };
    let (summed, direct) = (find(true), find(false));
    assert_eq!(summed.len(), 8);
    for (summed, direct) in summed.iter().zip(&direct) {
        let gap = (summed.delta_low.unwrap() - direct.delta_low.unwrap()).abs();
        let apart = (summed.correlation.unwrap() - direct.correlation.unwrap()).abs();
        assert!(gap < 1e-4 && apart < 1e-4, "{summed:?} instead of {direct:?}");
    }
}
