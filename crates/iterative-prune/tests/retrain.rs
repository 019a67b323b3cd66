//! Curves with further training, on setups that train in a second.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{CurveRow, GateRow, TestedRow};
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, kill_when, read, rows, trained};

const TABLE: &str = "results/tiny/prune-and-retrain.csv";

/// Fixes the number of threads, on which the weights depend.
const ARGUMENTS: [&str; 6] = ["--resamples", "99", "--threads", "2", "--estimate-limit", "40"];

fn folder(spec: &'static str) -> TempDir {
    trained(
        spec,
        "iterative-prune",
        &["--limit", "first:1", "--estimate-limit", "5", "--step-percent", "100", "--resamples", "0"],
    )
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = test_support::command("iterative-prune", folder);
    command.args(ARGUMENTS).args(arguments);
    command
}

fn found(folder: &Path) -> Vec<CurveRow> {
    rows(folder, "prune-and-retrain.csv")
}

/// The steps equal those without training, and each costs an equal number of updates. Step 0 and the last step do not depend on the order.
#[test]
fn each_step_is_trained_on() {
    let folder = folder(TRANSLATOR);
    let curve = ["--attention", "enc-enc", "--step-percent", "50"];
    command(folder.path(), &[&curve[..], &["--retrain", "2"]].concat())
        .assert()
        .success()
        .stdout(format!("{TABLE}\n"));
    command(folder.path(), &curve).assert().success();
    let (retrained, pruned): (_, Vec<CurveRow>) =
        (found(folder.path()), rows(folder.path(), "iterative-prune.csv"));
    let steps: Vec<_> = pruned.iter().map(|row| (row.family(), row.step, row.masked_heads.clone())).collect();
    assert_eq!(steps.len(), 3 + 3 + 1, "an order, its complement, and the floor");
    assert_eq!(
        retrained.iter().map(|row| (row.family(), row.step, row.masked_heads.clone())).collect::<Vec<_>>(),
        steps
    );
    for (row, before) in retrained.iter().zip(&pruned) {
        assert_eq!((row.base_score, row.metric.name()), (before.base_score, "bleu"));
        assert!(row.updates == retrained[0].updates && row.updates > row.epoch, "{row:?}");
        assert!(
            (1..=2).contains(&row.epoch.unwrap()) && row.dev_loss > Some(0.0) && row.p_value.is_some(),
            "{row:?}"
        );
    }
    let scores = |masked: usize| {
        let own = retrained.iter().filter(|row| row.masked == masked);
        own.map(|row| (row.score.to_bits(), row.dev_loss.map(f64::to_bits))).collect::<BTreeSet<_>>()
    };
    assert_eq!((scores(0).len(), scores(6).len()), (1, 1));
    let all = retrained.iter().map(|row| &row.masked_heads).collect::<BTreeSet<_>>().len();
    let models = fs::read_dir(folder.path().join("data/models/tiny.tuned")).unwrap().flatten();
    assert_eq!(models.filter(|entry| entry.path().is_dir()).count(), all, "each set once");
    let signature = String::from_utf8(read(folder.path(), "results/tiny/prune-and-retrain.json")).unwrap();
    assert!(signature.contains("\"retrain\": 2"), "{signature}");

    let mut retest = Command::cargo_bin("retest").unwrap();
    retest.current_dir(folder.path()).args([TABLE, "--resamples", "0"]).assert().success();
    assert!(found(folder.path()).iter().all(|row| row.p_value.is_none() && row.updates > Some(0)));
}

/// The controls of `train-gates` are these models too: all heads, and three of six heads by importance.
#[test]
fn a_step_is_the_control_of_trained_gates() {
    let folder = folder(TRANSLATOR);
    command(folder.path(), &["--attention", "enc-enc", "--step-percent", "50", "--retrain", "1"])
        .assert()
        .success();
    let mut gates = test_support::command("train-gates", folder.path());
    gates.args(ARGUMENTS).args(["--heads", "3", "--epochs", "1", "--control", "importance,ungated"]);
    gates.assert().success();
    let retrained = found(folder.path());
    let controls: Vec<GateRow> = rows(folder.path(), "train-gates.csv");
    for (method, masked) in [("importance", 3), ("ungated", 0)] {
        let control = controls.iter().find(|row| row.method == method).unwrap();
        let step = retrained.iter().find(|row| row.family() == "enc-enc/importance" && row.masked == masked);
        let step = step.unwrap();
        assert_eq!(
            (step.score, step.dev_loss.unwrap(), step.updates.unwrap()),
            (control.score, control.dev_loss, control.steps)
        );
        let kept = control.kept_heads.split('+');
        assert!(kept.into_iter().all(|head| !step.masked_heads.contains(head)), "{step:?} {control:?}");
    }
}

/// Equal seeds give equal bytes, even if a run is killed after its first row.
#[test]
fn a_killed_run_goes_on_to_the_file_of_an_unbroken_one() {
    let arguments = ["--order", "random", "--random-orders", "1", "--step-percent", "34", "--retrain", "1"];
    let (unbroken, killed) = (folder(CLASSIFIER), folder(CLASSIFIER));
    command(unbroken.path(), &arguments).assert().success();
    let growing = killed.path().join(TABLE.replace(".csv", ".partial.csv"));
    let lines = || fs::read_to_string(&growing).map_or(0, |text| text.lines().count());
    kill_when("iterative-prune", &[&ARGUMENTS[..], &arguments].concat(), killed.path(), || lines() > 2);
    command(killed.path(), &arguments).assert().success();
    assert_eq!(read(killed.path(), TABLE), read(unbroken.path(), TABLE));
    // existing rows are used, so nothing is trained again
    fs::remove_dir_all(killed.path().join("data/models/tiny.tuned")).unwrap();
    command(killed.path(), &arguments).assert().success();
    assert!(!killed.path().join("data/models/tiny.tuned").exists());
}

#[test]
fn language_models_are_trained_on_too() {
    let folder = folder(LANGUAGE_MODEL);
    command(folder.path(), &["--unit", "group", "--step-percent", "50", "--retrain", "1"]).assert().success();
    let rows = found(folder.path());
    let curve: Vec<_> = rows.iter().filter(|row| row.family() == "all/importance").collect();
    assert_eq!(curve.iter().map(|row| (row.masked, row.heads)).collect::<Vec<_>>(), [(0, 8), (4, 8), (8, 8)]);
    assert!(rows.iter().all(|row| row.metric.name() == "nats" && row.updates > Some(0)));
}

#[test]
fn what_cannot_be_trained_on_is_refused_before_anything_is_trained() {
    let folder = folder(CLASSIFIER);
    for arguments in
        [&["--retrain", "0"][..], &["--retrain", "1", "--recompute"], &["--retrain", "1", "--rescale"]]
    {
        command(folder.path(), arguments).assert().code(2);
    }
    let refusal = |arguments: &[&str]| test_support::refusal(&mut command(folder.path(), arguments));
    let message = refusal(&["--retrain", "1", "--shard", "1/2"]);
    assert!(message.contains("models are trained one after another"), "{message}");
    assert!(!folder.path().join(TABLE).exists());

    let training = CLASSIFIER.find("[training]").unwrap();
    let given = CLASSIFIER[..training].replace("vocabulary = 60\n", "");
    let model = given.find("[model]").unwrap();
    let given = format!("{}[checkpoint]\nfrom = \"models/tiny\"\n", &given[..model]);
    fs::write(folder.path().join("given.toml"), given).unwrap();
    let mut command = Command::cargo_bin("iterative-prune").unwrap();
    command.current_dir(folder.path()).args(["given.toml", "--quiet", "--retrain", "1"]);
    let message = test_support::refusal(&mut command);
    assert!(message.contains("`given` is not trained here"), "{message}");
}
