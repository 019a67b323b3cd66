//! The whole command on setups that train in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::str::contains;
use records::{Attention, HeadFunctionRow};
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, copy_files, read, trained};

const TABLE: &str = "head-functions.csv";

fn folder(spec: &'static str) -> TempDir {
    trained(spec, "head-functions", &["--resamples", "0", "--limit", "first:2"])
}

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("head-functions", folder);
    command.args(["--resamples", "99"]);
    command
}

fn rows(folder: &Path, file: &str) -> Vec<HeadFunctionRow> {
    test_support::rows(folder, file)
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    test_support::refusal(command(folder).args(arguments))
}

/// Returns the functions that have rows, with their details except for positions.
fn functions(rows: &[HeadFunctionRow]) -> BTreeSet<String> {
    rows.iter().map(|row| format!("{} {}", row.task().0, row.task().1)).collect()
}

/// Two sentences with trees, in words of the reviews: "lovely film" and "dull story fades".
const TREES: &str = "# text = lovely film
1\tlovely\t_\t_\t_\t_\t2\tamod\t_\t_
2\tfilm\t_\t_\t_\t_\t0\troot\t_\t_

1\tdull\t_\t_\t_\t_\t2\tamod\t_\t_
2\tstory\t_\t_\t_\t_\t3\tnsubj\t_\t_
3\tfades\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t_\t_\t_\t_\t3\tpunct\t_\t_
";

fn write_trees(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join("data")).unwrap();
    fs::write(folder.join("data/a.conllu"), text).unwrap();
}

/// 2 layers of 3 heads on the 24 test sentences: confidence, two positional functions, and each relation that occurs.
#[test]
fn every_head_of_an_encoder_has_a_row_for_each_function() {
    let folder = folder(TRANSLATOR);
    command(folder.path())
        .args(["--frequent", "20"])
        .assert()
        .success()
        .stdout(format!("results/tiny/{TABLE}\n"));
    let rows = rows(folder.path(), TABLE);
    let functions = functions(&rows);
    assert_eq!(rows.len(), 6 * functions.len());
    for function in [
        "confidence ",
        "positional ",
        "syntactic nsubj:verb->subject",
        "syntactic amod:modifier->noun",
        "rare two-rarest",
    ] {
        assert!(functions.contains(function), "{function}: {functions:?}");
    }
    // the setup can set the number too, and the option takes precedence
    let before = read(folder.path(), "results/tiny/head-functions.csv");
    let named = |frequent: usize| {
        let spec = format!("{TRANSLATOR}[functions]\nfrequent = {frequent}\n");
        fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    };
    for (frequent, arguments) in [(20, &["--again"][..]), (100_000, &["--again", "--frequent", "20"])] {
        named(frequent);
        command(folder.path()).args(arguments).assert().success();
        assert_eq!(read(folder.path(), "results/tiny/head-functions.csv"), before);
    }
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    for row in &rows {
        assert_eq!((row.attention, row.share), (Attention::EncEnc, row.numerator / row.denominator));
        assert!((0.0..=1.0).contains(&row.share), "{row:?}");
        assert!(row.share_low.unwrap() <= row.share && row.share <= row.share_high.unwrap(), "{row:?}");
        assert_eq!(row.baseline.is_some(), row.function == "syntactic");
        assert_eq!(row.shuffled.is_none(), row.function == "confidence");
        *best.entry(format!("{:?}", row.task())).or_default() += row.best.unwrap();
        if row.function == "rare" {
            assert!(
                row.denominator <= 24.0 && row.numerator.fract() == 0.0,
                "a sentence is a hit or none: {row:?}"
            );
        }
    }
    assert!(best.values().all(|&sum| sum >= 1.0 - 1e-9), "in each resample one is the best: {best:?}");
    let signature = String::from_utf8(read(folder.path(), "results/tiny/head-functions.json")).unwrap();
    assert!(signature.contains("\"first_piece\": false") && signature.contains("\"frequencies\": \"train\""));
}

#[test]
fn equal_runs_give_equal_files_on_any_number_of_threads() {
    let (one, two) = (folder(TRANSLATOR), folder(TRANSLATOR));
    command(one.path()).args(["--threads", "1"]).assert().success();
    command(two.path()).args(["--threads", "2"]).assert().success();
    assert_eq!(
        read(one.path(), "results/tiny/head-functions.csv"),
        read(two.path(), "results/tiny/head-functions.csv")
    );
    let before =
        fs::metadata(one.path().join("results/tiny/head-functions.json")).unwrap().modified().unwrap();
    command(one.path()).assert().success();
    let after =
        fs::metadata(one.path().join("results/tiny/head-functions.json")).unwrap().modified().unwrap();
    assert_eq!(before, after, "what is there and fits is used");
    command(one.path()).arg("--first-piece").assert().success();
    let files = fs::read_dir(one.path().join("results/tiny")).unwrap().flatten();
    let tables = files.filter(|file| file.path().extension().is_some_and(|end| end == "csv"));
    assert!(
        tables.filter(|file| file.file_name().to_string_lossy().starts_with("head-functions")).count() >= 2,
        "other numbers, another file"
    );
}

/// Subjects and modifiers come before their heads in the tree, so only those can attend to them.
#[test]
fn a_language_model_follows_arcs_to_earlier_words() {
    let folder = folder(LANGUAGE_MODEL);
    command(folder.path()).args(["--frequent", "20"]).assert().success();
    let rows = rows(folder.path(), TABLE);
    let functions = functions(&rows);
    assert_eq!(rows.len(), 8 * functions.len(), "2 layers of 4 heads: {functions:?}");
    assert!(
        functions.contains("syntactic nsubj:verb->subject") && functions.contains("rare rarest"),
        "{functions:?}"
    );
    let arcs = |detail: &str| rows.iter().find(|row| row.detail == detail).map_or(0.0, |row| row.denominator);
    assert!(arcs("nsubj:verb->subject") > 10.0 * arcs("nsubj:subject->verb"));
    let mut positional = rows.iter().filter(|row| row.function == "positional");
    assert!(positional.all(|row| row.detail.parse::<i64>().unwrap() <= 0), "no later token is seen");
    assert!(rows.iter().all(|row| row.attention == Attention::SelfAttention));
}

#[test]
fn a_classifier_is_looked_at_on_trees_of_a_file() {
    let folder = folder(CLASSIFIER);
    write_trees(folder.path(), TREES);
    command(folder.path()).args(["--trees", "data/a.conllu", "--frequent", "3"]).assert().success();
    let found = rows(folder.path(), TABLE);
    let functions = functions(&found);
    let expected = [
        "confidence ",
        "positional ",
        "positional-there ",
        "rare rarest",
        "rare two-rarest",
        "syntactic amod:modifier->noun",
        "syntactic amod:noun->modifier",
        "syntactic nsubj:subject->verb",
        "syntactic nsubj:verb->subject",
    ];
    assert_eq!(functions, expected.map(str::to_owned).into());
    let modifier = found.iter().find(|row| row.detail == "amod:noun->modifier").unwrap();
    assert_eq!(
        (modifier.denominator, modifier.baseline, modifier.baseline_position),
        (2.0, Some(1.0), Some(-1))
    );

    // the setup can name the file too
    let named = format!("{CLASSIFIER}[functions]\ntrees = [\"a.conllu\"]\n");
    fs::write(folder.path().join("tiny.toml"), named).unwrap();
    let before = read(folder.path(), "results/tiny/head-functions.csv");
    command(folder.path()).args(["--frequent", "3", "--again"]).assert().success();
    assert_eq!(read(folder.path(), "results/tiny/head-functions.csv"), before);
}

#[test]
fn a_split_without_trees_has_no_dependencies() {
    let folder = folder(CLASSIFIER);
    let mut command = Command::cargo_bin("head-functions").unwrap();
    command.current_dir(folder.path()).args([
        "tiny.toml",
        "--split",
        "test",
        "--frequencies",
        "none",
        "--resamples",
        "0",
    ]);
    let left_out = "dependencies are left out: these sentences have no trees";
    command.assert().success().stderr(contains(left_out)).stderr(contains("240 sentences of `test`"));
    let functions = functions(&rows(folder.path(), TABLE));
    assert_eq!(functions, ["confidence ", "positional ", "positional-there "].map(str::to_owned).into());
}

#[test]
fn trees_and_splits_that_are_none_are_refused_in_one_line() {
    let folder = folder(CLASSIFIER);
    write_trees(folder.path(), "1\tlovely\t_\n");
    for (arguments, said) in [
        (&["--trees", "data/a.conllu"], "`data/a.conllu`, line 1: 3 columns instead of 10"),
        (&["--trees", "data/b.conllu"], "cannot read `data/b.conllu`"),
        (&["--frequencies", "nowhere"], "no split `nowhere`: this setup has"),
        (&["--shard", "1/2"], "no row can be had by itself"),
    ] {
        let message = refusal(folder.path(), arguments);
        assert!(message.contains(said), "{message}");
    }
    fs::write(folder.path().join("tiny.toml"), format!("{CLASSIFIER}[functions]\ntrees = []\n")).unwrap();
    assert!(refusal(folder.path(), &[]).contains("functions.trees names no file"));
    assert!(!folder.path().join("results/tiny").join(TABLE).exists());
}

#[test]
fn sentences_beyond_the_model_are_left_out_or_refused_if_all_are() {
    let folder = folder(TRANSLATOR);
    let long = |words: usize| {
        let line = |number: usize| format!("{number}\tdog\t_\t_\t_\t_\t{}\tdep\t_\t_\n", number - 1);
        (1..=words).map(line).collect::<String>()
    };
    // the model has 160 positions
    write_trees(folder.path(), &long(200));
    let message = refusal(folder.path(), &["--trees", "data/a.conllu"]);
    assert!(
        message.contains("all 1 sentences are empty, or longer than the 160 positions of the model"),
        "{message}"
    );
    write_trees(folder.path(), &format!("{}\n{}", long(200), long(3)));
    command(folder.path()).args(["--trees", "data/a.conllu", "--frequencies", "none"]).assert().success();
    let rows = rows(folder.path(), TABLE);
    assert_eq!(rows.len(), 6 * 3, "`dep` is none of the relations");
}

/// SentencePiece gives no offsets.
#[test]
fn a_tokeniser_without_offsets_is_refused() {
    let spec = "description = \"As it comes from a hub\"\n\
                [data.splits]\ntest = { source = \"a.en\", target = \"a.xx\" }\n\
                [checkpoint]\nfrom = \"opus\"\n";
    let folder = test_support::folder(spec);
    let from =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian"));
    copy_files(&from, &folder.path().join("data/opus"));
    for name in ["a.en", "a.xx"] {
        fs::write(folder.path().join("data").join(name), "The dog sees the cat.\n").unwrap();
    }
    let message = refusal(folder.path(), &[]);
    assert!(
        message.contains("the tokeniser in `data/opus` does not say where in a text its tokens stand"),
        "{message}"
    );
}
