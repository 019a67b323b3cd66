//! The whole command on a setup that trains in a second.
use std::path::Path;
use std::sync::LazyLock;

use assert_cmd::Command;
use predicates::str::contains;
use records::AblationRow;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, program, refuses, rows, with_model};

fn command(folder: &Path) -> Command {
    test_support::command_with("ablate-all-but-one", folder, &["--resamples", "99"])
}

/// Every head has one row with its test. Heads that are chosen on `dev` get rows with their scores on the test split.
#[test]
fn heads_are_chosen_on_one_split_and_scored_on_another() {
    let folder = with_model(TRANSLATOR);
    command(folder.path()).assert().success().stdout("results/tiny/ablate-all-but-one.csv\n");
    let on_test: Vec<AblationRow> = rows(folder.path(), "ablate-all-but-one.csv");
    assert_eq!(on_test.len(), 3 * 2 * 3);
    assert!(on_test.iter().all(|row| row.p_adjusted.unwrap() >= row.p_value.unwrap()));
    assert!(on_test.iter().any(|row| row.score_delta != 0.0), "masking must change something");
    let arguments = ["--attention", "dec-dec", "--select-on", "dev", "--select-limit", "20"];
    let file = "ablate-all-but-one-selected-on-dev.csv";
    command(folder.path()).args(arguments).assert().success().stdout(format!("results/tiny/{file}\n"));
    let all: Vec<AblationRow> = rows(folder.path(), "ablate-all-but-one-dev-sample-20.csv");
    let best: Vec<AblationRow> = rows(folder.path(), file);
    assert_eq!((all.len(), best.len()), (2 * 3, 2));
    for (layer, chosen) in (1..).zip(&best) {
        let of_layer: Vec<&AblationRow> = all.iter().filter(|row| row.layer == layer).collect();
        let highest = of_layer.iter().map(|row| row.score).fold(f64::NEG_INFINITY, f64::max);
        let first = of_layer.iter().find(|row| row.score == highest).unwrap();
        assert_eq!((chosen.layer, chosen.head), (layer, first.head));
        let scored = on_test.iter().find(|row| row.head_id() == chosen.head_id()).unwrap();
        assert_eq!((chosen.score, chosen.base_score), (scored.score, scored.base_score));
        assert!(chosen.p_adjusted.is_some(), "a family of two tests is whole");
    }
    command(folder.path()).args(["--attention", "enc-enc"]).args(&arguments[2..]).assert().success();
    let both: Vec<AblationRow> = rows(folder.path(), file);
    assert_eq!(both.len(), 4, "another attention type leaves the rows of the first");
    assert!(both.iter().all(|row| row.p_adjusted.is_some()));
    let test = ["--select-on", "test"];
    refuses(command(folder.path()).args(test), "--select-on test is the split that is scored");
    command(folder.path()).args(["--select-limit", "3"]).assert().code(2).stderr(contains("--select-on"));
}

#[test]
fn with_two_heads_per_layer_keeping_one_equals_masking_the_other() {
    static TWO_HEADS: LazyLock<String> = LazyLock::new(|| CLASSIFIER.replace("heads = 3", "heads = 2"));
    let folder = with_model(&TWO_HEADS);
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

/// Shards do not choose heads, since each would see only part of the rows: the sweep to choose from must be complete.
#[test]
fn shards_merge_into_the_unsharded_file_also_with_chosen_heads() {
    let (whole, apart) = (with_model(TRANSLATOR), with_model(TRANSLATOR));
    let arguments = ["--attention", "dec-dec", "--select-on", "dev"];
    let sharded = [&arguments[..], &["--shard", "1/2"]].concat();
    refuses(command(apart.path()).args(sharded), "ablate-all-but-one-dev.csv` lacks rows, and a shard");
    for sweep in [&["--split", "dev"][..], &arguments] {
        for shard in ["1/2", "2/2"] {
            command(apart.path()).args(sweep).args(["--shard", shard]).assert().success();
        }
        program("merge", apart.path()).arg("tiny").assert().success();
    }
    command(whole.path()).args(arguments).assert().success();
    let chosen = "results/tiny/ablate-all-but-one-selected-on-dev.csv";
    assert_eq!(test_support::read(apart.path(), chosen), test_support::read(whole.path(), chosen));
}

/// The sums of effects that `ablate-one` stored equal the first-order effects from the gradient.
#[test]
fn stored_effects_of_heads_add_up() {
    let find = |stores_heads: bool| -> Vec<AblationRow> {
        let folder = with_model(LANGUAGE_MODEL);
        let sweep = ["--split", "train", "--limit", "200", "--resamples", "99", "--until-decided"];
        if stores_heads {
            test_support::command("ablate-one", folder.path()).args(sweep).assert().success();
        }
        let mut summing = command(folder.path());
        summing.args(&sweep[..4]).args(["--until-decided", "--control-variate", "on"]).assert().success();
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
