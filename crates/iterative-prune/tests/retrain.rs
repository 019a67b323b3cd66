//! Curves with further training, on setups that train in a second.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{CurveRow, GateRow, TestedRow};
use test_support::{CLASSIFIER, TRANSLATOR, program, read, refuses, rows, text, with_model};

const FILE: &str = "prune-and-retrain.csv";
const TABLE: &str = "results/tiny/prune-and-retrain.csv";

/// Fixes the number of threads, on which the weights depend.
const ARGUMENTS: [&str; 6] = ["--resamples", "99", "--threads", "2", "--estimate-limit", "40"];

fn command(folder: &Path, arguments: &[&str]) -> Command {
    test_support::command_with("iterative-prune", folder, &[&ARGUMENTS[..], arguments].concat())
}

/// The steps equal those without training, and each costs an equal number of updates. Step 0 and the last step do not depend on the order.
#[test]
fn each_step_is_trained_further() {
    let folder = with_model(TRANSLATOR);
    let curve = ["--attention", "enc-enc", "--step-percent", "50"];
    let retrain = [&curve[..], &["--retrain", "2"]].concat();
    command(folder.path(), &retrain).assert().success().stdout(format!("{TABLE}\n"));
    command(folder.path(), &curve).assert().success();
    let (retrained, pruned): (_, Vec<CurveRow>) =
        (rows(folder.path(), FILE), rows(folder.path(), "iterative-prune.csv"));
    let step = |row: &CurveRow| (row.family(), row.step, row.masked_heads.clone());
    let [steps, same] = [&pruned, &retrained].map(|rows| rows.iter().map(step).collect::<Vec<_>>());
    assert_eq!((steps.len(), &steps), (3 + 3 + 1, &same), "an order, its complement, and the floor");
    for (row, before) in retrained.iter().zip(&pruned) {
        assert_eq!((row.base_score, row.metric.name()), (before.base_score, "bleu"));
        assert!(row.updates == retrained[0].updates && row.updates > row.epoch, "{row:?}");
        assert!((1..=2).contains(&row.epoch.unwrap()) && row.dev_loss > Some(0.0), "{row:?}");
        assert!(row.p_value.is_some(), "{row:?}");
    }
    let scores = |masked: usize| {
        let own = retrained.iter().filter(|row| row.masked == masked);
        own.map(|row| (row.score.to_bits(), row.dev_loss.map(f64::to_bits))).collect::<BTreeSet<_>>()
    };
    assert_eq!((scores(0).len(), scores(6).len()), (1, 1));
    let all = retrained.iter().map(|row| &row.masked_heads).collect::<BTreeSet<_>>().len();
    let models = fs::read_dir(folder.path().join("data/models/tiny.tuned")).unwrap().flatten();
    assert_eq!(models.filter(|entry| entry.path().is_dir()).count(), all, "each set once");
    let signature = text(folder.path(), "results/tiny/prune-and-retrain.json");
    assert!(signature.contains("\"retrain\": 2"), "{signature}");
    // existing rows are used, so nothing is trained again
    let before = read(folder.path(), TABLE);
    fs::remove_dir_all(folder.path().join("data/models/tiny.tuned")).unwrap();
    command(folder.path(), &retrain).assert().success();
    assert!(read(folder.path(), TABLE) == before && !folder.path().join("data/models/tiny.tuned").exists());

    program("retest", folder.path()).args([TABLE, "--resamples", "0"]).assert().success();
    assert!(
        rows::<CurveRow>(folder.path(), FILE)
            .iter()
            .all(|row| row.p_value.is_none() && row.updates > Some(0))
    );
}

/// The controls of `train-gates` are these models too: all heads, and three of six heads by importance.
#[test]
fn a_step_is_the_control_of_trained_gates() {
    let folder = with_model(TRANSLATOR);
    let curve = ["--attention", "enc-enc", "--step-percent", "50", "--retrain", "1"];
    command(folder.path(), &curve).assert().success();
    let mut gates = test_support::command("train-gates", folder.path());
    gates.args(ARGUMENTS).args(["--heads", "3", "--epochs", "1", "--control", "importance,ungated"]);
    gates.assert().success();
    let retrained: Vec<CurveRow> = rows(folder.path(), FILE);
    let controls: Vec<GateRow> = rows(folder.path(), "train-gates.csv");
    for (method, masked) in [("importance", 3), ("ungated", 0)] {
        let control = controls.iter().find(|row| row.method == method).unwrap();
        let step = retrained.iter().find(|row| row.family() == "enc-enc/importance" && row.masked == masked);
        let step = step.unwrap();
        let expected = (control.score, Some(control.dev_loss), Some(control.steps));
        assert_eq!((step.score, step.dev_loss, step.updates), expected);
        let kept = control.kept_heads.split('+');
        assert!(kept.into_iter().all(|head| !step.masked_heads.contains(head)), "{step:?} {control:?}");
    }
}

#[test]
fn invalid_retraining_is_refused_before_anything_is_trained() {
    let folder = with_model(CLASSIFIER);
    for arguments in
        [&["--retrain", "0"][..], &["--retrain", "1", "--recompute"], &["--retrain", "1", "--rescale"]]
    {
        command(folder.path(), arguments).assert().code(2);
    }
    let mut sharded = command(folder.path(), &["--retrain", "1", "--shard", "1/2"]);
    refuses(&mut sharded, "retraining cannot be split into shards");
    assert!(!folder.path().join(TABLE).exists());

    let (head, _) = CLASSIFIER.split_once("[tokenizer]").unwrap();
    let given = format!("{head}[tokenizer]\nmax_length = 16\n[checkpoint]\nfrom = \"models/tiny\"\n");
    fs::write(folder.path().join("tiny.toml"), given).unwrap();
    refuses(&mut command(folder.path(), &["--retrain", "1"]), "`tiny` is not trained here");
}
