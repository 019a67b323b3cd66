//! The whole command on a classifier that trains in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;
use test_support::{CLASSIFIER, REGRESSION, fine_tuning, program, read, refuses, said, text, write_reviews};

fn folder(spec: &str) -> TempDir {
    let folder = test_support::folder(spec);
    write_reviews(folder.path());
    folder
}

/// Fixes the number of threads at two, since weights depend on it.
fn command(folder: &Path) -> Command {
    test_support::command_with("train-subject", folder, &["--threads", "2"])
}

/// Returns the column `name` of the training curve.
fn curve(folder: &Path, subject: &str, name: &str) -> Vec<f64> {
    let text = text(folder, &format!("results/{subject}/training.csv"));
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
fn the_last_epoch_becomes_the_model_if_the_setup_says_so() {
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

/// Trains the setup `other` and returns what is said.
fn trained(folder: &Path, spec: &str) -> String {
    fs::write(folder.join("other.toml"), spec).unwrap();
    said(program("train-subject", folder).args(["other.toml", "--threads", "2", "--again"]))
}

/// A trained model is the checkpoint of other setups, which add a new classification head for other classes or for one output.
#[test]
fn a_checkpoint_is_fine_tuned_to_other_outputs() {
    let folder = folder(CLASSIFIER);
    command(folder.path()).assert().success();
    let classes = "labels = [\"poor\", \"fair\", \"fine\"]\nrename = { bad = \"poor\", good = \"fine\" }";
    let classes = fine_tuning("models/tiny").replace("labels = [\"bad\", \"good\"]", classes);
    let (data, training) = REGRESSION.split_once("tokenizer.vocabulary").unwrap();
    let training = training.lines().find(|line| line.starts_with("training")).unwrap();
    let regression = format!("{data}checkpoint.from = \"models/tiny\"\n{training}\n");
    for (spec, entry) in [(classes, "\"2\": \"fine\""), (regression, "\"problem_type\": \"regression\"")] {
        let said = trained(folder.path(), &spec);
        assert!(said.contains("has no matching tensors: classifier.weight, classifier.bias"), "{said}");
        let config = text(folder.path(), "data/models/other/config.json");
        assert!(config.contains(entry), "{config}");
        let tokenizer = |name: &str| read(folder.path(), &format!("data/models/{name}/tokenizer.json"));
        assert_eq!(tokenizer("other"), tokenizer("tiny"));
    }
    let scores = curve(folder.path(), "other", "dev_score");
    assert!(scores[3] > 80.0, "counting words must be learnt: {scores:?}");
    let signature = text(folder.path(), "results/other/training.json");
    assert!(signature.contains("squared error per text; dev_score: pearson"), "{signature}");
}

/// Fine-tunes random encoders of all families, with a tokenizer that was trained here.
#[test]
fn encoders_of_all_families_are_fine_tuned() {
    let folder = folder(CLASSIFIER);
    command(folder.path()).assert().success();
    let spec = fine_tuning("models/base");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support/golden");
    let base = folder.path().join("data/models/base");
    fs::create_dir(&base).unwrap();
    fs::copy(folder.path().join("data/models/tiny/tokenizer.json"), base.join("tokenizer.json")).unwrap();
    let families = ["families/roberta", "families/xlm-roberta", "families/distilbert"].map(str::to_owned);
    let more = ["bert", "camembert", "electra", "mpnet", "albert", "deberta-v2", "modernbert"];
    for family in families.into_iter().chain(more.map(|name| format!("more/{name}"))) {
        let config = fs::read_to_string(golden.join(&family).join("config.json")).unwrap();
        let config = [1, 3].iter().fold(config, |config, pad| {
            config.replace(&format!("\"pad_token_id\": {pad}"), "\"pad_token_id\": 0") // as in the tokenizer
        });
        fs::write(base.join("config.json"), config).unwrap();
        fs::copy(golden.join(&family).join("model.safetensors"), base.join("model.safetensors")).unwrap();
        trained(folder.path(), &spec);
        let scores = curve(folder.path(), "other", "dev_score");
        let best = scores.iter().copied().fold(0.0, f64::max);
        assert!(best > 70.0, "{family}: {scores:?}"); // half of the 40 texts are good
        let losses = curve(folder.path(), "other", "train_loss");
        assert!(losses[3] < 0.9 * losses[0], "{family}: {losses:?}");
    }
}

#[test]
fn a_faulty_description_is_refused_before_training() {
    let (metric, labels) = ("metric = \"accuracy\"", "labels = [\"bad\", \"good\"]");
    let holdout = "holdout = { name = \"new\", from = \"train\", examples = 9000, seed = 1 }\n[data.splits]";
    let cases = [
        (metric, "metric = \"f1\"", "score.metric f1 needs score.positive"),
        (metric, "metric = \"f1\"\npositive = \"fair\"", "score.positive is `fair`, but data.labels are"),
        (metric, "metric = \"recall\"", "unknown variant `recall`"),
        (labels, "labels = [\"bad\", \"bad\"]", "data.labels names a class twice"),
        (labels, "", "[training] needs data.labels"),
        ("text = \"review\"", "text = 4", "train.tsv` has no column 4"),
        ("dev = \"reviews/dev.tsv\"", "dev = 3", "a split must be \"file\", { file = "),
        ("dev = \"reviews/dev.tsv\"", "", "[training] needs a dev split, but `dev` is none of"),
        ("vocabulary = 60", "", "[model] needs tokenizer.vocabulary"),
        ("learning_rate = 1e-2", "learning_rate = -1.0", "training.learning_rate must be above 0"),
        ("[data.splits]", holdout, "data.holdout takes 9000 examples out of split `train`, which has 400"),
        ("task = \"classification\"", "", "a setup describes a translator"),
        ("task = \"classification\"", "task = \"regression\"", "unknown variant `regression`"),
        ("[model]", "[checkpoint]\nfrom = \"x\"\n[model]", "both [checkpoint] and [model] are given"),
    ];
    for (from, to, expected) in cases {
        assert!(CLASSIFIER.contains(from), "{from}");
        let folder = folder(&CLASSIFIER.replace(from, to));
        refuses(&mut command(folder.path()), expected);
        let written = fs::read_dir(folder.path().join("data/models")).map_or(0, Iterator::count);
        assert_eq!(written, 0, "{to}: something was written");
    }
}

/// Classes in the setup may be whole numbers; 1.5 is refused.
#[test]
fn classes_may_be_named_by_numbers() {
    let numbers = "labels = [1, 0]\nrename = { bad = 1, good = 0 }";
    let spec = CLASSIFIER
        .replace("labels = [\"bad\", \"good\"]", numbers)
        .replace("metric = \"accuracy\"", "metric = \"f1\"\npositive = 0");
    let numbered = folder(&spec);
    command(numbered.path()).assert().success();
    let config = text(numbered.path(), "data/models/tiny/config.json");
    assert!(config.contains("\"0\": \"1\""), "{config}");
    let fraction = folder(&spec.replace("[1, 0]", "[1.5, 0]"));
    refuses(&mut command(fraction.path()), "expected the name of a class");
}
