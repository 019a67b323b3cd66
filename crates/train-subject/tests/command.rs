//! The whole command on a setup that trains in a second.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use test_support::{
    CLASSIFIER, TRANSLATOR, folder, killed_training, program, read, refuses, text, write_reviews,
};

/// Fixes the number of threads at two, since weights depend on it.
fn command(folder: &Path) -> Command {
    test_support::command_with("train-subject", folder, &["--threads", "2"])
}

const OUTCOME: [&str; 3] =
    ["results/tiny/training.csv", "data/models/tiny/model.safetensors", "data/models/tiny/tokenizer.json"];

#[test]
fn training_leaves_a_model_each_epoch_and_a_curve() {
    let folder = folder(TRANSLATOR);
    command(folder.path()).assert().success().stdout("data/models/tiny\n");
    let curve = text(folder.path(), "results/tiny/training.csv");
    assert_eq!(curve.lines().count(), 5, "{curve}");
    assert!(curve.starts_with("epoch,step,train_loss,dev_loss,dev_score,learning_rate,best\n1,"), "{curve}");
    let losses: Vec<f64> =
        curve.lines().skip(1).map(|line| line.split(',').nth(3).unwrap().parse().unwrap()).collect();
    assert!(losses[3] < losses[0], "training must lower the dev loss: {losses:?}");
    for epoch in 1..=4 {
        read(folder.path(), &format!("data/models/tiny/epochs/{epoch}/model.safetensors"));
    }
    // the epoch with the lowest dev loss became the model
    let best = (0..4).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap() + 1;
    let published = read(folder.path(), "data/models/tiny/model.safetensors");
    assert_eq!(published, read(folder.path(), &format!("data/models/tiny/epochs/{best}/model.safetensors")));
}

/// Equal seeds give equal bytes, even if a run is killed after its first epoch; also for a classifier, which has scores.
#[test]
fn a_killed_run_goes_on_with_the_losses_of_an_unbroken_one() {
    for spec in [TRANSLATOR, CLASSIFIER] {
        let begin = || {
            let folder = folder(spec);
            write_reviews(folder.path());
            folder
        };
        let unbroken = begin();
        command(unbroken.path()).assert().success();
        let killed = killed_training(&["--threads", "2"], begin);
        // Weights depend on the number of shards, which the checkpoint stores, but not on the number of threads.
        command(killed.path()).args(["--threads", "1"]).assert().success();
        for file in OUTCOME {
            assert_eq!(read(killed.path(), file), read(unbroken.path(), file), "{file}");
        }
    }
}

#[test]
fn a_trained_model_is_left_alone_unless_it_is_trained_again() {
    let folder = folder(TRANSLATOR);
    command(folder.path()).assert().success();
    let before = fs::metadata(folder.path().join(OUTCOME[1])).unwrap().modified().unwrap();
    command(folder.path()).assert().success();
    assert_eq!(fs::metadata(folder.path().join(OUTCOME[1])).unwrap().modified().unwrap(), before);

    fs::write(folder.path().join("tiny.toml"), TRANSLATOR.replace("d_ff = 12", "d_ff = 14")).unwrap();
    refuses(&mut command(folder.path()), "was trained from settings other than");
    refuses(&mut command(folder.path()), "`train-subject tiny.toml --again`");
    command(folder.path()).arg("--again").assert().success();
}

#[test]
fn a_faulty_subject_is_refused_before_training() {
    let cases = [
        ("heads = 3", "heads = 5", "does not divide d_model (12)"),
        ("heads = 3", "haeds = 3", "unknown field `haeds`"),
        ("epochs = 4", "epochs = 0", "training.epochs must be from 1"),
        ("vocabulary = 300", "vocabulary = 30", "259"),
        ("dropout = 0.2", "dropout = 1.2", "dropout (1.2) must be"),
        ("train = 900", "train = 0", "split `train` is empty"),
        ("\"relu\"", "\"tanh\"", "unknown variant `tanh`"),
        ("[decoding]", "[decoding]\nbeam = 0", "decoding.beam must be from 1 to 64"),
        ("grammar =", "# grammar =", "[data] needs a grammar or splits"),
    ];
    for (from, to, expected) in cases {
        let folder = folder(&TRANSLATOR.replace(from, to));
        refuses(&mut command(folder.path()), expected);
    }
}

#[test]
fn an_unknown_setup_or_device_is_refused() {
    let folder = folder(TRANSLATOR);
    refuses(program("train-subject", folder.path()).arg("nothing"), "no setup `nothing`");
    refuses(command(folder.path()).args(["--device", "cuda:99"]), "no device `cuda:99`");
}

/// A run with another number only has another seed: its weights equal the weights of a setup with that seed, whatever the number of runs.
#[test]
fn replicates_are_runs_with_other_seeds() {
    let of = |seed: &str| TRANSLATOR.replace("[training]\nseed = 1\n", &format!("[training]\n{seed}\n"));
    let replicated = folder(&of("seed = 1\nreplicates = 2"));
    let models = "data/models/tiny\ndata/models/tiny.replicate-2\n";
    command(replicated.path()).args(["--replicate", "all"]).assert().success().stdout(models);
    let model = |folder: &Path, name: &str| read(folder, &format!("data/models/{name}/model.safetensors"));
    for (seed, name) in [("seed = 1", "tiny"), ("seed = 2", "tiny.replicate-2")] {
        let single = folder(&of(seed));
        command(single.path()).assert().success();
        assert_eq!(model(single.path(), "tiny"), model(replicated.path(), name));
    }
    read(replicated.path(), "results/tiny/replicate-2/training.csv");
    fs::write(replicated.path().join("tiny.toml"), of("seed = 1\nreplicates = 3")).unwrap();
    command(replicated.path()).assert().success();
    refuses(command(replicated.path()).args(["--replicate", "4"]), "has 3 replicates, but no replicate 4");
}
