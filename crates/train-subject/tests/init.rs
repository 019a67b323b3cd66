//! The whole command on new models and data.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TAGGER, TRANSLATOR, trained};

/// Makes a folder with a trained model in `data/models/tiny`, and reviews.
fn with_model(spec: &'static str) -> TempDir {
    trained(spec, "train-subject", &["--threads", "2"])
}

fn init(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("init").unwrap();
    command.current_dir(folder).args(["mine", "models/tiny"]).args(arguments);
    command
}

/// Returns the setup that `init` writes.
fn written(folder: &Path, arguments: &[&str]) -> String {
    init(folder, arguments).assert().success().stdout("experiments/mine.toml\n");
    fs::read_to_string(folder.join("experiments/mine.toml")).unwrap()
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let assert = init(folder, arguments).assert().failure().code(1).stdout("");
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    said
}

/// Replaces text in a file.
fn edit(path: &Path, changes: &[(&str, &str)]) {
    let text = fs::read_to_string(path).unwrap();
    let changed = changes.iter().fold(text.clone(), |text, (old, new)| text.replace(old, new));
    assert_ne!(text, changed, "{changes:?}");
    fs::write(path, changed).unwrap();
}

#[test]
fn a_classifier_is_described_by_its_files_and_can_be_measured_at_once() {
    let folder = with_model(CLASSIFIER);
    let setup = written(folder.path(), &["reviews"]);
    for line in [
        "task = \"classification\"   # found: config.json: BertForSequenceClassification",
        "from = \"models/tiny\"",
        "labels = [\"bad\", \"good\"]   # found: id2label of config.json, in the spelling of the data",
        "format = { kind = \"tsv\", text = \"review\", label = \"verdict\" }   # found: the header",
        "train = \"reviews/train.tsv\"",
        "dev = \"reviews/dev.tsv\"",
        "test = \"reviews/test.tsv\"",
    ] {
        assert!(setup.lines().any(|found| found == line), "{line}\n{setup}");
    }
    init(folder.path(), &["reviews", "--force"])
        .assert()
        .stderr(contains("on 20 of 240 segments of split `test`; 6 heads in 2 attention modules"))
        .stderr(contains("`headcount heads mine` takes about"));
    let mut sweep = Command::cargo_bin("ablate-one").unwrap();
    sweep.current_dir(folder.path()).args(["mine", "--quiet", "--resamples", "0"]).assert().success();
}

/// Covers CoNLL files whose last column has no tags, IOB1 tags, and tag numbers in JSON lines.
#[test]
fn a_tagger_is_described_by_columns_or_lists() {
    let folder = with_model(TAGGER);
    let conll = "format = { kind = \"conll\", text = 1, label = 3 }   # found: the model's tags in the last column that has them";
    let lists =
        "format = { kind = \"jsonl\", text = \"tokens\", label = \"ner_tags\" }   # found: the first row";
    for (file, text, expected) in [
        ("a.conll", "the DT B-SUBJ x\ndog NN I-SUBJ y\nsleeps VB O z\n\nit PR B-SUBJ x\n", &[conll][..]),
        (
            "b.txt",
            "the DT I-SUBJ x\ndog NN I-SUBJ y\n",
            &[conll, "scheme = \"iob1\"   # assumed: I- tags begin entities, which becomes B-"],
        ),
        ("c.jsonl", "{\"tokens\": [\"the\", \"dog\"], \"ner_tags\": [1, 2]}\n", &[lists]),
    ] {
        fs::write(folder.path().join("data").join(file), text).unwrap();
        let setup = written(folder.path(), &["--test", file, "--force"]);
        let common = [
            "task = \"classification\"   # found: config.json: BertForTokenClassification",
            "metric = \"entity-f1\"   # assumed: token-accuracy is the alternative",
        ];
        for line in expected.iter().chain(&common) {
            assert!(setup.lines().any(|found| found == *line), "{line}\n{setup}");
        }
        let are_renamed = setup.contains("rename = { \"0\" = \"O\", \"1\" = \"B-SUBJ\", \"2\" = \"I-SUBJ\"");
        assert_eq!(are_renamed, file == "c.jsonl", "{setup}");
    }
    let labels = refusal(folder.path(), &["--test", "a.conll", "--force", "--text", "1", "--label", "9"]);
    assert!(labels.contains("4 columns, but column 9 is needed"), "{labels}");
}

/// Alphabetical order would exchange the classes: the model is right far more often in the other order.
#[test]
fn the_order_of_classes_that_config_json_does_not_name_is_the_one_in_which_the_model_is_right() {
    let folder = with_model(CLASSIFIER);
    for split in ["train", "dev", "test"] {
        let changes = [("\tbad\t", "\tz\t"), ("\tgood\t", "\ta\t")];
        edit(&folder.path().join(format!("data/reviews/{split}.tsv")), &changes);
    }
    let setup = written(folder.path(), &["reviews"]);
    assert!(setup.contains("rename = { \"z\" = \"bad\", \"a\" = \"good\" }"), "{setup}");
    let told = written(folder.path(), &["reviews", "--force", "--labels", "a,z"]);
    assert!(told.contains("rename = { \"a\" = \"bad\", \"z\" = \"good\" }\n"), "{told}");
    init(folder.path(), &["reviews", "--force", "--labels", "a,z"])
        .assert()
        .stderr(contains("is data.labels in the order of the model's outputs"));
}

#[test]
fn a_language_model_is_described_by_plain_text() {
    let folder = with_model(LANGUAGE_MODEL);
    fs::write(folder.path().join("data/test.txt"), "the dog sees\n\nthe cat\n\na dog").unwrap();
    let setup = written(folder.path(), &["test.txt"]);
    assert!(
        setup.contains("documents = { kind = \"paragraphs\" }   # found: blank lines between the texts"),
        "{setup}"
    );
    assert!(setup.contains("estimate = \"test\"   # assumed: no training set"), "{setup}");
    let pairs = "{\"sentence_good\": \"a dog sees\", \"sentence_bad\": \"a dog see\"}\n";
    fs::write(folder.path().join("data/pairs.jsonl"), pairs.repeat(3)).unwrap();
    let setup = written(folder.path(), &["pairs.jsonl", "--force"]);
    assert!(
        setup.contains("choices = { kind = \"jsonl\", choices = [\"sentence_good\", \"sentence_bad\"]"),
        "{setup}"
    );
}

#[test]
fn a_translator_is_described_by_parallel_files_or_a_table() {
    let folder = with_model(TRANSLATOR);
    let data = folder.path().join("data");
    fs::write(data.join("test.de"), "ein Hund\neine Katze\n").unwrap();
    fs::write(data.join("test.en"), "a dog\na cat\n").unwrap();
    let setup = written(folder.path(), &["test.de", "test.en", "--source", "en"]);
    assert!(setup.contains("test = { source = \"test.en\", target = \"test.de\" }\n"), "{setup}");
    assert!(setup.contains("metric = \"bleu\"   # assumed: targets are about as long"), "{setup}");
    fs::write(
        data.join("all.csv"),
        "id,document,summary\n1,\"a long text of ten words, or of some more\",a text\n",
    )
    .unwrap();
    let setup = written(folder.path(), &["all.csv", "--force"]);
    let pairs = "test = { pairs = \"all.csv\", kind = \"csv\", source = \"document\", target = \"summary\" }   # found: the header";
    assert!(setup.contains(pairs) && setup.contains("metric = \"rougeL\""), "{setup}");
}

/// The model's name gives the direction, although the files in the folder come in alphabetical order, target first.
#[test]
fn a_translator_reads_in_its_direction_and_files_that_are_no_data_do_not_count() {
    let folder = with_model(TRANSLATOR);
    let data = folder.path().join("data");
    test_support::copy_files(&data.join("models/tiny"), &data.join("opus-mt-en-de"));
    fs::create_dir(data.join("news")).unwrap();
    for (file, text) in [("README.md", "About"), ("val.de", "ein Hund\n"), ("val.en", "a dog\n")] {
        fs::write(data.join("news").join(file), text).unwrap();
    }
    let mut command = Command::cargo_bin("init").unwrap();
    command.current_dir(folder.path()).args(["mine", "opus-mt-en-de", "news"]).assert().success();
    let setup = fs::read_to_string(folder.path().join("experiments/mine.toml")).unwrap();
    let test =
        "test = { source = \"news/val.en\", target = \"news/val.de\" }   # assumed: there is no test set";
    assert!(setup.contains(test), "{setup}");
}

/// Test sets of benchmarks have no labels.
#[test]
fn without_labels_the_development_set_is_scored() {
    let folder = with_model(CLASSIFIER);
    edit(&folder.path().join("data/reviews/test.tsv"), &[("\tbad\t", "\t-1\t"), ("\tgood\t", "\t-1\t")]);
    let setup = written(folder.path(), &["reviews"]);
    assert!(setup.contains("test = \"reviews/dev.tsv\"   # assumed: the test set has no classes"), "{setup}");
}

#[test]
fn a_model_without_a_classification_head_is_refused_or_to_be_fine_tuned() {
    let folder = with_model(CLASSIFIER);
    let config = folder.path().join("data/models/tiny/config.json");
    edit(&config, &[("BertForSequenceClassification", "BertForMaskedLM")]);
    let said = refusal(folder.path(), &["reviews"]);
    assert!(
        said.contains("is a BertForMaskedLM, which has no classification head: --fine-tune trains one"),
        "{said}"
    );
    let setup = written(folder.path(), &["reviews", "--fine-tune"]);
    assert!(setup.contains("[training]") && setup.contains("labels = [\"bad\", \"good\"]"), "{setup}");
    let said = refusal(folder.path(), &["--test", "reviews/test.tsv", "--fine-tune", "--force"]);
    assert!(said.contains("--fine-tune needs a train set: name it by --train FILE"), "{said}");
}

#[test]
fn what_cannot_be_found_is_asked_for_in_one_line() {
    let folder = with_model(CLASSIFIER);
    let write = |name: &str, text: &str| fs::write(folder.path().join("data").join(name), text).unwrap();
    write("one.csv", "review\nlovely\ndull\n");
    write("empty.csv", "review,verdict\n");
    write(
        "many.csv",
        &(0..10_000).fold("review,label\n".to_owned(), |text, n| text + &format!("a film,class-{n}\n")),
    );
    write("other.csv", "review,verdict\na film,yes\na story,no\na film,maybe\n");
    write("table.parquet", "PAR1");
    for (arguments, fault) in [
        (&["one.csv"][..], "one.csv` has one column, `review`, and a classifier needs a text and a class"),
        (&["empty.csv"], "empty.csv` has a header and no rows"),
        (&["many.csv"], "has 10000 different values, such as `class-0`"),
        (&["other.csv"], "has 3 different values, such as `maybe`, `no`, `yes`, but the model has 2 classes"),
        (&["table.parquet"], "it is not a whole Parquet or Arrow file"),
        (&["nowhere.csv"], "there is no such file"),
        (&[], "no test set is named: name it by --test FILE"),
        (
            &["reviews", "--text", "revew"],
            "has no column `revew`: there are review, verdict, rating; did you mean `review`?",
        ),
    ] {
        let said = refusal(folder.path(), arguments);
        assert!(said.contains(fault), "{said}");
    }
    assert!(!folder.path().join("experiments").exists(), "nothing is written");
    fs::remove_file(folder.path().join("data/models/tiny/model.safetensors")).unwrap();
    assert!(refusal(folder.path(), &["reviews"]).contains("model.safetensors"));
}

#[test]
fn an_existing_setup_is_kept_and_names_are_plain() {
    let folder = with_model(CLASSIFIER);
    let before = written(folder.path(), &["reviews"]);
    let said = refusal(folder.path(), &["--test", "reviews/test.tsv"]);
    assert!(
        said.contains("`experiments/mine.toml` is there already: choose another name, or --force"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(folder.path().join("experiments/mine.toml")).unwrap(), before);
    let mut command = Command::cargo_bin("init").unwrap();
    command.current_dir(folder.path()).args(["../mine", "models/tiny", "reviews"]);
    command.assert().failure().code(1).stderr(contains("`../mine` cannot be the name of a setup"));
}
