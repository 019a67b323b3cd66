//! The whole command on a setup that trains in a second.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use test_support::{CLASSIFIER, TRANSLATOR, folder, killed_training, read, write_reviews};

/// Fixes the number of threads at two, since weights depend on it.
fn command(folder: &Path) -> Command {
    let mut command = test_support::command("train-subject", folder);
    command.args(["--threads", "2"]);
    command
}

fn refusal(folder: &Path) -> String {
    test_support::refusal(&mut command(folder))
}

const OUTCOME: [&str; 3] =
    ["results/tiny/training.csv", "data/models/tiny/model.safetensors", "data/models/tiny/tokenizer.json"];

#[test]
fn training_leaves_a_model_each_epoch_and_a_curve() {
    let folder = folder(TRANSLATOR);
    command(folder.path()).assert().success().stdout("data/models/tiny\n");
    let curve = String::from_utf8(read(folder.path(), "results/tiny/training.csv")).unwrap();
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
        let killed = killed_training(begin);
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
    let message = refusal(folder.path());
    assert!(
        message.contains("was trained from other settings")
            && message.contains("`train-subject tiny.toml --again`"),
        "{message}"
    );
    command(folder.path()).arg("--again").assert().success();
}

#[test]
fn a_faulty_subject_is_refused_before_training() {
    let cases = [
        ("heads = 3", "heads = 5", "encoder_attention_heads (5) does not divide d_model (12)"),
        ("heads = 3", "haeds = 3", "unknown field `haeds`"),
        ("epochs = 4", "epochs = 0", "training.epochs must be from 1 to 10000"),
        ("vocabulary = 300", "vocabulary = 30", "259"),
        ("dropout = 0.2", "dropout = 1.2", "dropout (1.2) must be at least 0 and below 1"),
        ("train = 900", "train = 0", "split `train` is empty"),
        ("dev = 20", "dev = 0", "split `dev` is empty"),
        ("\"relu\"", "\"tanh\"", "unknown variant `tanh`"),
        ("[decoding]", "[decoding]\nbeam = 0", "decoding.beam must be from 1 to 64"),
        ("grammar =", "# grammar =", "[data] needs a grammar or splits"),
    ];
    for (from, to, expected) in cases {
        let folder = folder(&TRANSLATOR.replace(from, to));
        let message = refusal(folder.path());
        assert!(message.contains(expected), "{to}: {message}");
    }
}

#[test]
fn faulty_text_is_refused_by_file_and_line() {
    let spec = TRANSLATOR.replace(
        "grammar = { seed = 3, train = 900, dev = 20, test = 24, shifted = 9 }",
        "fetch = \"multi30k\"\nsplits.train = { source = \"a.en\", target = \"a.fr\" }\n\
         splits.dev = { source = \"a.en\", target = \"a.fr\" }",
    );
    let folder = folder(&spec);
    let (en, fr) = (folder.path().join("data/a.en"), folder.path().join("data/a.fr"));
    assert!(refusal(folder.path()).contains("`data/a.en` is missing: run `just fetch multi30k`"));
    fs::create_dir_all(folder.path().join("data")).unwrap();
    fs::write(&en, "one\ntwo\n").unwrap();
    fs::write(&fr, "un\n").unwrap();
    assert!(refusal(folder.path()).contains("has 2 lines, but `data/a.fr` has 1"));
    fs::write(&fr, "un\n\n").unwrap();
    assert!(refusal(folder.path()).contains("`data/a.fr`, line 2: empty line"));
    fs::write(&fr, b"un\n\xff\n").unwrap();
    assert!(refusal(folder.path()).contains("`data/a.fr`, line 2: not valid UTF-8"));
}

#[test]
fn usage_is_explained() {
    let mut help = Command::cargo_bin("train-subject").unwrap();
    help.arg("--help").assert().success().stdout(contains("resumes a killed run"));
    Command::cargo_bin("train-subject").unwrap().assert().code(2);
    let folder = tempfile::tempdir().unwrap();
    let mut unknown = Command::cargo_bin("train-subject").unwrap();
    unknown.current_dir(folder.path()).arg("nothing").assert().code(1).stderr(contains("no setup `nothing`"));
    let mut device = command(folder.path());
    device.args(["--device", "cuda:99"]).assert().code(1).stderr(contains("no "));
}

/// A run with another number only has another seed: its weights equal the weights of a setup with that seed, whatever the number of runs.
#[test]
fn replicates_are_trainings_of_other_seeds() {
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
    let third = test_support::refusal(command(replicated.path()).args(["--replicate", "4"]));
    assert!(third.contains("has 3 replicates, and no replicate 4"), "{third}");
    fs::write(replicated.path().join("tiny.toml"), of("seed = 1\nreplicates = 0")).unwrap();
    assert!(refusal(replicated.path()).contains("nonzero"));
}
