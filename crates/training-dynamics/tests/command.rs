//! The whole command on tiny setups.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{DynamicsRow, TrainingRow};
use test_support::{CLASSIFIER, TRANSLATOR, copy_files, folder, program, read, refuses, rows, write_reviews};

const TABLE: &str = "results/tiny/training-dynamics-first-20.csv";
const QUICK: [&str; 8] =
    ["--limit", "first:20", "--estimate-limit", "30", "--resamples", "99", "--step-percent", "30"];

fn command(folder: &Path) -> Command {
    test_support::command_with("training-dynamics", folder, &QUICK)
}

fn classifier(dynamics: &str) -> tempfile::TempDir {
    let folder = folder(&format!("{CLASSIFIER}{dynamics}"));
    write_reviews(folder.path());
    folder
}

/// 400 texts in batches of 16 give 25 updates per epoch. With 6 heads, steps of 30% mask 0, 2 and 4, then all.
#[test]
fn each_kept_checkpoint_has_a_curve() {
    let folder = classifier("[dynamics]\nepochs = [1, 4]\nsteps = [5, 30]\n");
    command(folder.path()).assert().success();
    let rows: Vec<DynamicsRow> = rows(folder.path(), "training-dynamics-first-20.csv");
    let places: Vec<_> = rows.iter().map(|row| (row.epoch, row.updates, row.masked)).collect();
    let steps = |epoch, updates| [0, 2, 4].map(move |masked| (epoch, updates, masked));
    let expected = [steps(None, 5), steps(Some(1), 25), steps(None, 30), steps(Some(4), 100)].concat();
    assert_eq!(places, expected);
    for row in &rows {
        assert_eq!(row.p_value.is_some(), row.masked > 0);
        assert_eq!(row.p_adjusted.is_some(), row.masked > 0);
        assert!(row.masked > 0 || row.score == row.base_score);
        assert_eq!(row.score_delta, row.score - row.base_score);
        assert_eq!(row.masked_heads.split('+').filter(|name| !name.is_empty()).count(), row.masked);
    }
    assert_ne!(rows[0].base_score, rows[11].base_score, "the model has learned something in between");
    // only the requested checkpoints are kept
    let model = folder.path().join("data/models/tiny");
    let kept = |what: &str| {
        let entries = fs::read_dir(model.join(what)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
    };
    let expected = [["1", "4"], ["30", "5"]].map(|two| BTreeSet::from(two.map(str::to_owned)));
    assert_eq!([kept("epochs"), kept("steps")], expected);
}

/// Checkpoints from elsewhere, in folders or as revisions of a hub model. They are copies of checkpoints trained here, so scores are equal.
#[test]
fn revisions_of_a_model_that_is_there_have_the_curves_of_its_training() {
    let folder = classifier("[dynamics]\nepochs = [1, 4]\n");
    command(folder.path()).assert().success();
    let trained: Vec<DynamicsRow> = rows(folder.path(), "training-dynamics-first-20.csv");
    let (model, other) = (folder.path().join("data/models/tiny"), folder.path().join("data/other"));
    let cached = folder.path().join("hf/hub/models--someone--tiny");
    for (epoch, revision, commit) in [("1", "step25", "1"), ("4", "step100", "4")] {
        let commit = commit.repeat(40);
        for branch in [revision, "main"] {
            durable::write(&cached.join("refs").join(branch), &commit).unwrap();
        }
        for place in [other.join(revision), cached.join("snapshots").join(commit)] {
            copy_files(&model, &place);
            copy_files(&model.join("epochs").join(epoch), &place);
        }
    }
    let data = CLASSIFIER.split_once("[tokenizer]").unwrap().0;
    let expected: Vec<_> = trained.into_iter().map(|row| DynamicsRow { epoch: None, ..row }).collect();
    let mut data_of_both = Vec::new();
    for from in ["other", "hub:someone/tiny"] {
        let spec = |revisions: &str| {
            let tokenizer = "[tokenizer]\nmax_length = 16\n";
            let spec = format!("{data}{tokenizer}[checkpoint]\nfrom = \"{from}\"\nrevisions = {revisions}\n");
            fs::write(folder.path().join("tiny.toml"), spec).unwrap();
            let mut command = command(folder.path());
            command.env("HF_HOME", folder.path().join("hf")).env("HF_HUB_OFFLINE", "1").arg("--again");
            command
        };
        refuses(&mut spec("[\"step25\", \"step50\"]"), "step50");
        spec("[\"step25\", \"step100\"]").assert().success();
        let found: Vec<DynamicsRow> = rows(folder.path(), "training-dynamics-first-20.csv");
        assert_eq!(found, expected, "{from}");
        let signature = records::Signature::read(&folder.path().join(TABLE.replace("csv", "json")));
        let identity = signature.unwrap().unwrap().identity;
        assert_eq!(identity.arguments["checkpoint"], from);
        data_of_both.push(identity.data);
    }
    assert_eq!(data_of_both[0], data_of_both[1]);
}

/// The checkpoint that became the model has the scores of the model.
#[test]
fn the_model_is_one_of_its_checkpoints() {
    let folder = folder(TRANSLATOR);
    command(folder.path()).assert().success();
    let found: Vec<DynamicsRow> = rows(folder.path(), "training-dynamics-first-20.csv");
    assert_eq!(found.iter().filter(|row| row.step == 0).count(), 4, "all epochs without [dynamics]");
    let training: Vec<TrainingRow> = rows(folder.path(), "training.csv");
    let best = training.iter().rfind(|row| row.best).unwrap();
    let mut pruning = test_support::command("iterative-prune", folder.path());
    pruning.args(QUICK).assert().success();
    let curve: Vec<records::CurveRow> = rows(folder.path(), "iterative-prune-first-20.csv");
    for row in found.iter().filter(|row| row.updates == best.step) {
        let same = curve.iter().find(|other| other.masked == row.masked && !other.complement).unwrap();
        assert_eq!((row.score, row.p_value), (same.score, same.p_value));
        assert_eq!(row.masked_heads, same.masked_heads);
    }
}

#[test]
fn a_checkpoint_that_was_not_kept_is_named_with_the_command_that_makes_it() {
    let folder = classifier("[dynamics]\nepochs = [1, 4]\n");
    command(folder.path()).assert().success();
    fs::write(folder.path().join("tiny.toml"), format!("{CLASSIFIER}[dynamics]\nepochs = [1, 2]\n")).unwrap();
    refuses(&mut command(folder.path()), "epochs/2");
    refuses(&mut command(folder.path()), "train-subject tiny.toml --again");
    let beyond = classifier("[dynamics]\nsteps = [101]\n");
    refuses(&mut command(beyond.path()), "dynamics.steps has 101, but training ends after 100 updates");
    assert!(!beyond.path().join("data/models/tiny").exists(), "before any training");
}

/// Rows of one checkpoint are spread over several shards; each shard measures the checkpoint's full model for comparison.
#[test]
fn merged_shards_equal_the_file_of_one_machine() {
    let [whole, apart] = [(); 2].map(|()| classifier("[dynamics]\nepochs = [1, 4]\n"));
    command(whole.path()).assert().success();
    for shard in ["1/4", "2/4", "3/4", "4/4"] {
        command(apart.path()).args(["--shard", shard]).assert().success();
    }
    program("merge", apart.path()).arg("tiny").assert().success();
    for file in [TABLE, &TABLE.replace(".csv", ".segments.csv.gz")] {
        assert_eq!(read(apart.path(), file), read(whole.path(), file), "{file}");
    }
}
