//! The whole command on new models and data.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TAGGER, TRANSLATOR, program, said, with_model};

fn init_as(folder: &Path, name: &str, model: &str, arguments: &[&str]) -> Command {
    let mut command = program("init", folder);
    command.args([name, model]).args(arguments);
    command
}

fn init(folder: &Path, arguments: &[&str]) -> Command {
    init_as(folder, "mine", "models/tiny", arguments)
}

/// Returns the setup that `init` writes, which must have these parts.
fn written(folder: &Path, arguments: &[&str], parts: &[&str]) -> String {
    check(init(folder, arguments), folder, parts)
}

fn check(mut init: Command, folder: &Path, parts: &[&str]) -> String {
    init.assert().success().stdout("experiments/mine.toml\n");
    let setup = fs::read_to_string(folder.join("experiments/mine.toml")).unwrap();
    for part in parts {
        assert!(setup.contains(part), "{part}\n{setup}");
    }
    setup
}

#[track_caller]
fn refuses(folder: &Path, arguments: &[&str], fault: &str) {
    test_support::refuses(&mut init(folder, arguments), fault);
}

fn write(folder: &Path, file: &str, text: &str) {
    fs::write(folder.join("data").join(file), text).unwrap();
}

fn edit(path: &Path, changes: &[(&str, &str)]) {
    let text = fs::read_to_string(path).unwrap();
    let changed = changes.iter().fold(text.clone(), |text, (old, new)| text.replace(old, new));
    assert_ne!(text, changed, "{changes:?}");
    fs::write(path, changed).unwrap();
}

#[test]
fn a_classifier_is_described_by_its_files_and_can_be_measured_at_once() {
    let folder = with_model(CLASSIFIER);
    let parts = [
        "task = \"classification\"   # found: config.json: BertForSequenceClassification\n",
        "from = \"models/tiny\"\n",
        "labels = [\"bad\", \"good\"]   # found: id2label of config.json, in the spelling of the data\n",
        "format = { kind = \"tsv\", text = \"review\", label = \"verdict\" }   # found: the header\n",
        "train = \"reviews/train.tsv\"\n",
        "dev = \"reviews/dev.tsv\"\n",
        "test = \"reviews/test.tsv\"\n",
    ];
    let setup = written(folder.path(), &["reviews"], &parts);
    // an existing setup is kept
    refuses(folder.path(), &["--test", "reviews/test.tsv"], "`experiments/mine.toml` exists already");
    assert_eq!(fs::read_to_string(folder.path().join("experiments/mine.toml")).unwrap(), setup);
    let said = said(&mut init(folder.path(), &["reviews", "--force"]));
    assert!(said.contains("on 20 of 240 segments of split `test`; 6 heads in 2 attention modules"), "{said}");
    assert!(said.contains("`headcount heads mine` takes about"), "{said}");
    program("ablate-one", folder.path()).args(["mine", "--quiet", "--resamples", "0"]).assert().success();
    let mut elsewhere = init_as(folder.path(), "../mine", "models/tiny", &["reviews"]);
    test_support::refuses(&mut elsewhere, "`../mine` cannot be the name of a setup");
}

/// Covers CoNLL files whose last column has no tags, IOB1 tags, and tag numbers in JSON lines.
#[test]
fn a_tagger_is_described_by_columns_or_lists() {
    let folder = with_model(TAGGER);
    let conll =
        "format = { kind = \"conll\", text = 1, label = 3 }   # found: the model's tags in the last column";
    let lists =
        "format = { kind = \"jsonl\", text = \"tokens\", label = \"ner_tags\" }   # found: the first row\n";
    let iob1 = "scheme = \"iob1\"   # assumed: entities begin with I- tags, which become B-\n";
    for (file, text, expected) in [
        ("a.conll", "the DT B-SUBJ x\ndog NN I-SUBJ y\nsleeps VB O z\n\nit PR B-SUBJ x\n", [conll, ""]),
        ("b.txt", "the DT I-SUBJ x\ndog NN I-SUBJ y\n", [conll, iob1]),
        ("c.jsonl", "{\"tokens\": [\"the\", \"dog\"], \"ner_tags\": [1, 2]}\n", [lists, ""]),
    ] {
        write(folder.path(), file, text);
        let setup = written(folder.path(), &["--test", file, "--force"], &expected);
        assert!(setup.contains("   # found: config.json: BertForTokenClassification\n"), "{setup}");
        assert!(setup.contains("metric = \"entity-f1\"   # assumed"), "{setup}");
        let are_renamed = setup.contains("rename = { \"0\" = \"O\", \"1\" = \"B-SUBJ\", \"2\" = \"I-SUBJ\"");
        assert_eq!(are_renamed, file == "c.jsonl", "{setup}");
    }
    let beyond = ["--test", "a.conll", "--force", "--text", "1", "--label", "9"];
    refuses(folder.path(), &beyond, "4 columns, but column 9 is needed");
}

/// Alphabetical order would exchange the classes: the model is right far more often in the other order.
#[test]
fn unnamed_classes_get_the_order_in_which_the_model_is_most_accurate() {
    let folder = with_model(CLASSIFIER);
    for split in ["train", "dev", "test"] {
        let changes = [("\tbad\t", "\tz\t"), ("\tgood\t", "\ta\t")];
        edit(&folder.path().join(format!("data/reviews/{split}.tsv")), &changes);
    }
    written(folder.path(), &["reviews"], &["rename = { \"z\" = \"bad\", \"a\" = \"good\" }"]);
    let told = ["reviews", "--force", "--labels", "a,z"];
    written(folder.path(), &told, &["rename = { \"a\" = \"bad\", \"z\" = \"good\" }\n"]);
    let said = said(&mut init(folder.path(), &told));
    assert!(said.contains("is data.labels in the order of the model's outputs"), "{said}");
}

#[test]
fn a_language_model_is_described_by_plain_text() {
    let folder = with_model(LANGUAGE_MODEL);
    write(folder.path(), "test.txt", "the dog sees\n\nthe cat\n\na dog");
    let paragraphs = "documents = { kind = \"paragraphs\" }   # found: blank lines between the texts";
    written(folder.path(), &["test.txt"], &[paragraphs, "estimate = \"test\"   # assumed: no training set"]);
    let pairs = "{\"sentence_good\": \"a dog sees\", \"sentence_bad\": \"a dog see\"}\n";
    write(folder.path(), "pairs.jsonl", &pairs.repeat(3));
    let choices = "choices = { kind = \"jsonl\", choices = [\"sentence_good\", \"sentence_bad\"]";
    written(folder.path(), &["pairs.jsonl", "--force"], &[choices]);
}

/// The model's name gives the direction, although the files in the folder come in alphabetical order, target first. Files that are not
/// data are ignored.
#[test]
fn a_translator_is_described_by_parallel_files_or_a_table() {
    let folder = with_model(TRANSLATOR);
    write(folder.path(), "test.de", "ein Hund\neine Katze\n");
    write(folder.path(), "test.en", "a dog\na cat\n");
    let parts = [
        "test = { source = \"test.en\", target = \"test.de\" }\n",
        "metric = \"bleu\"   # assumed: targets are about as long",
    ];
    written(folder.path(), &["test.de", "test.en", "--source", "en"], &parts);
    let table = "id,document,summary\n1,\"a long text of ten words, or of some more\",a text\n";
    write(folder.path(), "all.csv", table);
    let parts = [
        "test = { pairs = \"all.csv\", kind = \"csv\", source = \"document\", target = \"summary\" }   # found: the header",
        "metric = \"rougeL\"",
    ];
    written(folder.path(), &["all.csv", "--force"], &parts);
    let data = folder.path().join("data");
    test_support::copy_files(&data.join("models/tiny"), &data.join("opus-mt-en-de"));
    fs::create_dir(data.join("news")).unwrap();
    for (file, text) in [("README.md", "About"), ("val.de", "ein Hund\n"), ("val.en", "a dog\n")] {
        write(folder.path(), &format!("news/{file}"), text);
    }
    let named = init_as(folder.path(), "mine", "opus-mt-en-de", &["news", "--force"]);
    let test =
        "test = { source = \"news/val.en\", target = \"news/val.de\" }   # assumed: there is no test set";
    check(named, folder.path(), &[test]);
}

/// Test sets of benchmarks have no labels.
#[test]
fn without_labels_the_development_set_is_scored() {
    let folder = with_model(CLASSIFIER);
    edit(&folder.path().join("data/reviews/test.tsv"), &[("\tbad\t", "\t-1\t"), ("\tgood\t", "\t-1\t")]);
    let test = "test = \"reviews/dev.tsv\"   # assumed: the test set has no classes";
    written(folder.path(), &["reviews"], &[test]);
}

#[test]
fn a_model_without_a_classification_head_is_refused_or_fine_tuned() {
    let folder = with_model(CLASSIFIER);
    let config = folder.path().join("data/models/tiny/config.json");
    edit(&config, &[("BertForSequenceClassification", "BertForMaskedLM")]);
    refuses(folder.path(), &["reviews"], "is a BertForMaskedLM, which has no classification head");
    written(folder.path(), &["reviews", "--fine-tune"], &["[training]", "labels = [\"bad\", \"good\"]"]);
    let test = ["--test", "reviews/test.tsv", "--fine-tune", "--force"];
    refuses(folder.path(), &test, "--fine-tune needs a train set");
}

#[test]
fn missing_information_is_asked_for_in_one_line() {
    let folder = with_model(CLASSIFIER);
    write(folder.path(), "one.csv", "review\nlovely\ndull\n");
    write(folder.path(), "empty.csv", "review,verdict\n");
    let many: String = (0..10_000).map(|number| format!("a film,class-{number}\n")).collect();
    write(folder.path(), "many.csv", &format!("review,label\n{many}"));
    write(folder.path(), "other.csv", "review,verdict\na film,yes\na story,no\na film,maybe\n");
    for (arguments, fault) in [
        (&["one.csv"][..], "one.csv` has one column, `review`, and a classifier needs a text and a class"),
        (&["empty.csv"], "empty.csv` has a header and no rows"),
        (&["many.csv"], "has 10000 different values, such as `class-0`"),
        (&["other.csv"], "has 3 different values, such as `maybe`, `no`, `yes`, but the model has 2 classes"),
        (&["nowhere.csv"], "no such file here"),
        (&[], "no test set is given: name it with --test FILE"),
        (&["reviews", "--text", "revew"], "has no column `revew`"),
    ] {
        refuses(folder.path(), arguments, fault);
    }
    assert!(!folder.path().join("experiments").exists(), "nothing is written");
    fs::remove_file(folder.path().join("data/models/tiny/model.safetensors")).unwrap();
    refuses(folder.path(), &["reviews"], "model.safetensors");
}
