//! The whole command on a classifier that trains in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;
use test_support::{CLASSIFIER, REGRESSION, read, write_reviews};

fn folder(spec: &str) -> TempDir {
    let folder = test_support::folder(spec);
    write_reviews(folder.path());
    folder
}

/// Fixes the number of threads at two, since weights depend on it.
fn command(folder: &Path) -> Command {
    let mut command = test_support::command("train-subject", folder);
    command.args(["--threads", "2"]);
    command
}

fn refusal(folder: &Path) -> String {
    test_support::refusal(&mut command(folder))
}

/// Returns the column `name` of the training curve.
fn curve(folder: &Path, subject: &str, name: &str) -> Vec<f64> {
    let text = String::from_utf8(read(folder, &format!("results/{subject}/training.csv"))).unwrap();
    let column = text.lines().next().unwrap().split(',').position(|column| column == name).unwrap();
    text.lines().skip(1).map(|line| line.split(',').nth(column).unwrap().parse().unwrap()).collect()
}

fn published_epoch(folder: &Path) -> usize {
    let model = read(folder, "data/models/tiny/model.safetensors");
    let same =
        |epoch: &usize| read(folder, &format!("data/models/tiny/epochs/{epoch}/model.safetensors")) == model;
    (1..=4).find(same).unwrap()
}

#[test]
fn the_epoch_with_the_best_score_becomes_the_model() {
    let folder = folder(CLASSIFIER);
    command(folder.path()).assert().success().stdout("data/models/tiny\n");
    let scores = curve(folder.path(), "tiny", "dev_score");
    assert_eq!(scores.len(), 4);
    assert!(scores.iter().all(|score| (0.0..=100.0).contains(score)), "{scores:?}");
    let best = scores.iter().copied().fold(0.0, f64::max);
    assert!(best > 80.0, "counting words must be learnt: {scores:?}");
    let first = scores.iter().position(|&score| score == best).unwrap() + 1;
    assert_eq!(published_epoch(folder.path()), first, "{scores:?}");
}

#[test]
fn the_last_epoch_becomes_the_model_where_the_subject_says_so() {
    // so slow that no epoch is better than the first, which `best` would keep
    let spec = CLASSIFIER
        .replace("keep = \"best\"", "keep = \"last\"")
        .replace("learning_rate = 1e-2", "learning_rate = 1e-12");
    let folder = folder(&spec);
    command(folder.path()).assert().success();
    let scores = curve(folder.path(), "tiny", "dev_score");
    assert!(scores.iter().all(|&score| score == scores[0]), "{scores:?}");
    assert_eq!(published_epoch(folder.path()), 4);
}

/// A trained model is the checkpoint of another setup, which adds a new classification head for other classes.
#[test]
fn a_checkpoint_is_fine_tuned_to_other_classes() {
    let folder = folder(CLASSIFIER);
    command(folder.path()).assert().success();
    let (head, tail) = CLASSIFIER.split_once("[tokenizer]").unwrap();
    let training = tail.split_once("[training]").unwrap().1;
    let spec = head.replace(
        "labels = [\"bad\", \"good\"]",
        "labels = [\"poor\", \"fair\", \"fine\"]\nrename = { bad = \"poor\", good = \"fine\" }",
    ) + "[tokenizer]\nmax_length = 16\n[checkpoint]\nfrom = \"models/tiny\"\n[training]"
        + training;
    fs::write(folder.path().join("other.toml"), spec).unwrap();
    let mut other = Command::cargo_bin("train-subject").unwrap();
    let output = other.current_dir(folder.path()).arg("other.toml").assert().success().get_output().clone();
    let messages = String::from_utf8(output.stderr).unwrap();
    let expected =
        "newly initialised, since `models/tiny` has none that fits: classifier.weight, classifier.bias";
    assert!(messages.contains(expected), "{messages}");
    let config = String::from_utf8(read(folder.path(), "data/models/other/config.json")).unwrap();
    assert!(config.contains("\"2\": \"fine\""), "{config}");
    let tokenizer = |name: &str| read(folder.path(), &format!("data/models/{name}/tokenizer.json"));
    assert_eq!(tokenizer("other"), tokenizer("tiny"));
}

/// Fine-tunes random encoders of all families, with a tokenizer that was trained here.
#[test]
fn encoders_of_all_families_are_fine_tuned() {
    let folder = folder(CLASSIFIER);
    command(folder.path()).assert().success();
    let (head, tail) = CLASSIFIER.split_once("[tokenizer]").unwrap();
    let training = tail.split_once("[training]").unwrap().1;
    let spec = format!(
        "{head}[tokenizer]\nmax_length = 16\n[checkpoint]\nfrom = \"models/base\"\n[training]{training}"
    );
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support/golden");
    let base = folder.path().join("data/models/base");
    fs::create_dir(&base).unwrap();
    fs::copy(folder.path().join("data/models/tiny/tokenizer.json"), base.join("tokenizer.json")).unwrap();
    for family in [
        "families/roberta",
        "families/xlm-roberta",
        "families/distilbert",
        "more/bert",
        "more/camembert",
        "more/electra",
        "more/mpnet",
        "more/albert",
        "more/deberta-v2",
        "more/modernbert",
    ] {
        let config = fs::read_to_string(golden.join(family).join("config.json")).unwrap();
        let config = [1, 3].iter().fold(config, |config, pad| {
            config.replace(&format!("\"pad_token_id\": {pad}"), "\"pad_token_id\": 0") // as in the tokenizer
        });
        fs::write(base.join("config.json"), config).unwrap();
        fs::copy(golden.join(family).join("model.safetensors"), base.join("model.safetensors")).unwrap();
        fs::write(folder.path().join("tuned.toml"), &spec).unwrap();
        let mut tune = Command::cargo_bin("train-subject").unwrap();
        tune.current_dir(folder.path()).args(["tuned.toml", "--threads", "2", "--again"]).assert().success();
        let scores = curve(folder.path(), "tuned", "dev_score");
        let best = scores.iter().copied().fold(0.0, f64::max);
        assert!(best > 70.0, "{family}: {scores:?}"); // half of the 40 texts are good
        let losses = curve(folder.path(), "tuned", "train_loss");
        assert!(losses[3] < 0.9 * losses[0], "{family}: {losses:?}");
    }
}

/// Fine-tunes a classifier with two outputs to a single one.
#[test]
fn a_checkpoint_is_fine_tuned_to_one_output() {
    let folder = folder(CLASSIFIER);
    command(folder.path()).assert().success();
    let (head, tail) = REGRESSION.split_once("tokenizer.vocabulary").unwrap();
    let training = tail.lines().find(|line| line.starts_with("training")).unwrap();
    let spec = format!("{head}checkpoint.from = \"models/tiny\"\n{training}\n");
    fs::write(folder.path().join("other.toml"), spec).unwrap();
    let mut other = Command::cargo_bin("train-subject").unwrap();
    let output = other.current_dir(folder.path()).arg("other.toml").assert().success().get_output().clone();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(messages.contains("has none that fits: classifier.weight, classifier.bias"), "{messages}");
    let config = String::from_utf8(read(folder.path(), "data/models/other/config.json")).unwrap();
    assert!(config.contains("\"problem_type\": \"regression\""), "{config}");
    let scores = curve(folder.path(), "other", "dev_score");
    assert!(scores[3] > 80.0, "counting words must be learnt: {scores:?}");
    let signature = String::from_utf8(read(folder.path(), "results/other/training.json")).unwrap();
    assert!(signature.contains("squared error per text; dev_score: pearson"), "{signature}");
}

#[test]
fn a_faulty_description_is_refused_before_training() {
    let cases = [
        ("metric = \"accuracy\"", "metric = \"f1\"", "score.metric f1 needs score.positive"),
        (
            "metric = \"accuracy\"",
            "metric = \"f1\"\npositive = \"fair\"",
            "score.positive is `fair`, but data.labels are `bad`, `good`",
        ),
        ("metric = \"accuracy\"", "metric = \"recall\"", "unknown variant `recall`"),
        ("labels = [\"bad\", \"good\"]", "labels = [\"bad\", \"fair\"]", "split `train`, example"),
        ("labels = [\"bad\", \"good\"]", "labels = [\"bad\", \"bad\"]", "data.labels names a class twice"),
        ("labels = [\"bad\", \"good\"]", "", "[training] needs data.labels"),
        ("text = \"review\"", "text = 4", "train.tsv` has no column 4"),
        ("dev = \"reviews/dev.tsv\"", "dev = 3", "a split must be \"file\", { file = "),
        ("vocabulary = 60", "vocabulary = 3", "a vocabulary of 3 is too small"),
        ("vocabulary = 60", "", "[model] needs tokenizer.vocabulary"),
        ("learning_rate = 1e-2", "learning_rate = -1.0", "training.learning_rate must be above 0"),
        (
            "dev = \"reviews/dev.tsv\"",
            "",
            "[training] needs a dev split, but `dev` is none of `test`, `train`: data.dev names one",
        ),
        (
            "[data.splits]",
            "holdout = { name = \"new\", from = \"train\", examples = 9000, seed = 1 }\n[data.splits]",
            "data.holdout takes 9000 examples out of split `train`, which has 400",
        ),
        (
            "task = \"classification\"",
            "",
            "without `task = \"classification\"` or `task = \"language-modelling\"` it describes a translator",
        ),
        ("[model]", "[checkpoint]\nfrom = \"x\"\n[model]", "both [checkpoint] and [model] are given"),
        ("task = \"classification\"", "task = \"regression\"", "unknown variant `regression`"),
    ];
    for (from, to, expected) in cases {
        assert!(CLASSIFIER.contains(from), "{from}");
        let folder = folder(&CLASSIFIER.replace(from, to));
        let message = refusal(folder.path());
        assert!(message.contains(expected), "{to}: {message}");
        let written = fs::read_dir(folder.path().join("data/models")).map_or(0, Iterator::count);
        assert_eq!(written, 0, "{to}: something was written");
    }
}

/// Classes in the setup may be whole numbers; 1.5 is refused.
#[test]
fn classes_may_be_called_by_numbers() {
    let numbers = "labels = [1, 0]\nrename = { bad = 1, good = 0 }";
    let spec = CLASSIFIER
        .replace("labels = [\"bad\", \"good\"]", numbers)
        .replace("metric = \"accuracy\"", "metric = \"f1\"\npositive = 0");
    let numbered = folder(&spec);
    command(numbered.path()).assert().success();
    let config = String::from_utf8(read(numbered.path(), "data/models/tiny/config.json")).unwrap();
    assert!(config.contains("\"0\": \"1\""), "{config}");
    let message = refusal(folder(&spec.replace("[1, 0]", "[1.5, 0]")).path());
    assert!(message.contains("expected the name of a class: text in quotes, or a whole number"), "{message}");
}

#[test]
fn faulty_data_is_refused_by_file_and_line() {
    let cases: [(&[u8], &str); 4] = [
        (b"review\tverdict\nlovely film\n", "line 2"),
        (b"review\tverdict\nlovely\tgood\nfilm \xff\tgood\n", "line 3"),
        (b"review\tverdict\n", "dev.tsv"),
        (
            b"review\tverdict\nlovely\tbetter\n",
            "split `dev`, example 1: label `better` is not one of `bad`, `good`",
        ),
    ];
    for (content, expected) in cases {
        let folder = folder(CLASSIFIER);
        fs::write(folder.path().join("data/reviews/dev.tsv"), content).unwrap();
        let message = refusal(folder.path());
        assert!(message.contains(expected), "{expected}: {message}");
    }
}
