//! The whole command on classifiers of texts and of words that train in a second, and on ready-made checkpoints.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, BASE, Blocks, Signature};
use tempfile::TempDir;
use test_support::{CLASSIFIER, REGRESSION, TAGGER, pearson, program, refuses, said, text, with_model};

/// Makes a folder with a trained model and a setup that may use another.
fn folder(spec: &str) -> TempDir {
    let folder = with_model(CLASSIFIER);
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    folder
}

/// Returns a setup that uses the folder of the trained model as a ready-made checkpoint.
fn checkpoint(data: &str) -> String {
    let (head, _) = CLASSIFIER.split_once("[tokenizer]").unwrap();
    let head = head.replace("labels = [\"bad\", \"good\"]", data);
    head + "[tokenizer]\nmax_length = 16\n[checkpoint]\nfrom = \"models/tiny\"\n"
}

fn command(folder: &Path) -> Command {
    test_support::command_with("ablate-one", folder, &["--resamples", "99"])
}

fn rows(folder: &Path) -> Vec<AblationRow> {
    test_support::rows(folder, "ablate-one.csv")
}

#[test]
fn accuracies_come_with_three_tests() {
    let folder = folder(CLASSIFIER);
    command(folder.path()).assert().success();
    let rows = rows(folder.path());
    assert_eq!(rows.len(), 2 * 3);
    for row in &rows {
        assert_eq!((row.attention.name(), row.metric.name()), ("self", "accuracy"));
        // 240 examples, so scores are multiples of 1/2.4 points
        let right = row.score * 2.4;
        assert!((right - right.round()).abs() < 1e-9, "{}", row.score);
        for p in [row.p_value, row.p_unpaired_t, row.p_mcnemar, row.p_adjusted, row.p_benjamini_hochberg] {
            assert!((0.0..=1.0).contains(&p.unwrap()), "{row:?}");
        }
    }
    assert!(rows.iter().any(|row| row.score_delta != 0.0), "masking must change something");
}

#[test]
fn f1_and_matthews_correlation_are_bootstrapped_too() {
    for score in ["metric = \"f1\"\npositive = \"good\"", "metric = \"matthews\""] {
        let spec = checkpoint("").replace("metric = \"accuracy\"", score);
        let folder = folder(&spec);
        command(folder.path()).assert().success();
        for row in rows(folder.path()) {
            // one-sided (1 + count) / (99 + 1) is a whole number of hundredths; two-sided is at most twice that
            let (p, koehn) = (row.p_bootstrap.unwrap() * 100.0, row.p_koehn.unwrap() * 100.0);
            assert!((koehn.round() - koehn).abs() < 1e-9 && p <= 2.0 * koehn + 1e-9, "{p} and {koehn}");
            assert!(row.p_value.is_some());
            assert_eq!((row.p_unpaired_t, row.p_mcnemar), (None, None));
        }
    }
}

/// The class names may come from the checkpoint, from the setup in any order, or be renamed.
#[test]
fn a_checkpoint_has_the_scores_of_the_trained_model() {
    let trained = folder(CLASSIFIER);
    command(trained.path()).assert().success();
    let expected = rows(trained.path());
    for labels in ["", "labels = [\"good\", \"bad\"]"] {
        let folder = folder(&checkpoint(labels));
        command(folder.path()).assert().success();
        assert_eq!(rows(folder.path()), expected, "{labels}");
    }
    let folder = folder(&checkpoint("rename = { no = \"bad\", yes = \"good\" }"));
    let path = folder.path().join("data/reviews/test.tsv");
    let text = fs::read_to_string(&path).unwrap().replace("\tgood", "\tyes").replace("\tbad", "\tno");
    fs::write(path, text).unwrap();
    command(folder.path()).assert().success();
    assert_eq!(rows(folder.path()), expected);
}

#[test]
fn classes_that_the_model_does_not_know_are_refused() {
    let named = folder(&checkpoint("labels = [\"poor\", \"fine\"]"));
    refuses(&mut command(named.path()), "the model in `data/models/tiny` are `bad`, `good`");
    let other = folder(&checkpoint(""));
    fs::write(other.path().join("data/reviews/test.tsv"), "review\tverdict\nlovely\tgreat\n").unwrap();
    refuses(&mut command(other.path()), "split `test`, example 1: label `great` is not one of `bad`");
}

/// A checkpoint without class names takes the setup's names in the order given.
#[test]
fn names_in_the_wrong_order_give_one_warning() {
    for (labels, doubted) in [("labels = [\"bad\", \"good\"]", 0), ("labels = [\"good\", \"bad\"]", 1)] {
        let folder = folder(&checkpoint(labels));
        let config = folder.path().join("data/models/tiny/config.json");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(config, text.replace("\"bad\"", "\"LABEL_0\"").replace("\"good\"", "\"LABEL_1\"")).unwrap();
        let said = said(&mut command(folder.path()));
        for text in ["warning: the full model is below chance", "with the labels [\"bad\", \"good\"]"] {
            assert_eq!(said.matches(text).count(), doubted, "{labels}: {said}");
        }
    }
}

#[test]
fn invalid_rows_are_refused_or_skipped_and_counted() {
    let folder = folder(&checkpoint("bad_rows = \"skip\""));
    command(folder.path()).assert().success();
    let expected = rows(folder.path());
    let path = folder.path().join("data/reviews/test.tsv");
    fs::write(&path, fs::read_to_string(&path).unwrap() + "lovely\n").unwrap();
    let fault = "line 242: 1 column, but the header has 3";
    assert!(said(command(folder.path()).arg("--again")).contains(fault));
    let signature = text(folder.path(), "results/tiny/ablate-one.json");
    assert!(signature.contains("\"skipped_rows\": 1"), "{signature}");
    assert_eq!(rows(folder.path()), expected);
    fs::write(folder.path().join("tiny.toml"), checkpoint("")).unwrap();
    refuses(&mut command(folder.path()), &format!("data/reviews/test.tsv`, {fault}"));
}

/// Makes a folder with a single-output model and a setup that uses it as a ready-made checkpoint.
fn one_output(metric: &str) -> TempDir {
    let folder = with_model(REGRESSION);
    let (head, _) = REGRESSION.split_once("tokenizer.vocabulary").unwrap();
    let spec = format!("{}checkpoint.from = \"models/tiny\"\n", head.replace("\"pearson\"", metric));
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    folder
}

/// Returns the stored statistics of the full model: true and predicted values of each text, or predicted, true and correct entities of each
/// sentence.
fn stored<const N: usize>(folder: &Path) -> Vec<[f64; N]> {
    let path = folder.join("results/tiny/ablate-one.csv");
    let signature = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
    let blocks = Blocks::beside(&path, &signature).unwrap().unwrap();
    let cells = blocks.get(BASE).unwrap().cells(None).unwrap();
    cells.iter().map(|own| std::array::from_fn(|place| f64::from(own[place].value()))).collect()
}

/// In the second part labels are 3 - 2y of the outputs y, so that both correlations are -1.
#[test]
fn one_output_is_scored_by_correlation() {
    let folder = one_output("\"pearson\"");
    command(folder.path()).assert().success();
    let (rows, pairs) = (rows(folder.path()), stored::<2>(folder.path()));
    assert_eq!((rows.len(), pairs.len()), (2 * 3, 240));
    assert!((rows[0].base_score - 100.0 * pearson(&pairs)).abs() < 1e-9 && rows[0].base_score > 80.0);
    assert!(rows.iter().any(|row| row.score_delta != 0.0), "masking must change something");
    for row in &rows {
        assert_eq!(row.metric.name(), "pearson");
        assert!([row.p_value, row.p_bootstrap, row.p_adjusted].iter().all(Option::is_some), "{row:?}");
        assert_eq!((row.p_unpaired_t, row.p_mcnemar), (None, None));
    }
    let path = folder.path().join("data/reviews/test.tsv");
    let texts = fs::read_to_string(&path).unwrap();
    let labelled = texts.lines().skip(1).zip(pairs);
    let labelled = labelled.map(|(line, [_, y])| format!("{line}\t{}\n", 3.0 - 2.0 * y));
    fs::write(&path, format!("review\tverdict\told\trating\n{}", labelled.collect::<String>())).unwrap();
    for metric in ["pearson", "spearman"] {
        let spec = fs::read_to_string(folder.path().join("tiny.toml")).unwrap();
        fs::write(folder.path().join("tiny.toml"), spec.replace("pearson", metric)).unwrap();
        command(folder.path()).arg("--again").assert().success();
        let base = test_support::rows::<AblationRow>(folder.path(), "ablate-one.csv")[0].base_score;
        assert!((base + 100.0).abs() < 1e-3, "{metric}: {base}");
    }
}

/// All texts are equal, so the model's outputs do not vary.
#[test]
fn undefined_correlations_are_reported_or_refused() {
    let folder = one_output("\"pearson\"");
    let write = |rows: &str| {
        fs::write(folder.path().join("data/reviews/test.tsv"), format!("review\trating\n{rows}")).unwrap();
    };
    write("dull film\t1.5\nlovely film\t1.50\n");
    refuses(&mut command(folder.path()), "split `test`: all labels are `1.5`");
    write("dull film\t1.5\ndull film\t2\ndull film\t-3e-1\n");
    let message = said(&mut command(folder.path()));
    assert_eq!(message.matches("the correlation is undefined and counts as 0: ").count(), 1, "{message}");
    assert!(message.contains("; self:1:2; "), "{message}");
    assert!(rows(folder.path()).iter().all(|row| row.score == 0.0 && row.p_value.is_none_or(|p| p == 1.0)));
}

#[test]
fn metrics_of_classes_and_of_one_output_are_not_exchanged() {
    let pearson = |labels: &str| checkpoint(labels).replace("\"accuracy\"", "\"pearson\"");
    let rated = pearson("").replace("\"verdict\"", "\"rating\"");
    for (folder, fault) in [
        (one_output("\"accuracy\""), r#"accuracy is for classes: set score.metric = "pearson""#),
        (folder(&pearson("")), "label `bad` is not a finite number"),
        (folder(&pearson("labels = [\"bad\", \"good\"]")), "data.labels and data.rename are for classes"),
        (folder(&rated), "pearson is for models with one output"),
    ] {
        refuses(&mut command(folder.path()), fault);
    }
}

const TAGS: &str = "scheme = \"raw\"\nformat = { kind = \"conll\", text = 1, label = 2 }\nsplits = { test = \"test.conll\" }";

/// Makes a setup that uses the trained model as a ready-made checkpoint on the file `test.conll` with this text.
fn on_file(text: &str, data: &str, metric: &str) -> TempDir {
    let folder = with_model(TAGGER);
    let spec = format!(
        "task = \"classification\"\ndescription = \"Tags\"\n[data]\n{data}\n[score]\nmetric = \"{metric}\"\n[checkpoint]\n\
         from = \"models/tiny\"\n"
    );
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    fs::write(folder.path().join("data/test.conll"), text).unwrap();
    folder
}

#[test]
fn the_f1_of_entities_is_tested_by_swaps_of_sentences() {
    let folder = with_model(TAGGER);
    command(folder.path()).assert().success();
    let rows = rows(folder.path());
    assert_eq!(rows.len(), 2 * 3);
    for row in &rows {
        assert_eq!((row.attention.name(), row.metric.name()), ("self", "entity-f1"));
        assert!((0.0..=1.0).contains(&row.p_value.unwrap()) && row.delta_low <= row.delta_high, "{row:?}");
        assert_eq!((row.p_unpaired_t, row.p_mcnemar), (None, None));
    }
    let counts = stored::<3>(folder.path());
    assert_eq!(counts.len(), 60);
    let [own, gold, right] = [0, 1, 2].map(|column| counts.iter().map(|counts| counts[column]).sum::<f64>());
    let score = 200.0 * right / (own + gold);
    assert!((rows[0].score - rows[0].score_delta - score).abs() < 1e-9, "{score}");
    assert!(score > 40.0, "it has learned something: {score}");
    assert!(rows.iter().any(|row| row.score_delta < -1.0), "masking must change something");
}

/// On the model's own tags both metrics are 100. Words beyond 64 tokens are reported.
#[test]
fn tags_that_say_prints_are_those_that_are_scored() {
    let folder = with_model(TAGGER);
    let sentences =
        ["The old dog that the cat sees sleeps near the house .", "Does the girl with the hat see a bird ?"];
    let mut text = String::new();
    for sentence in sentences {
        let mut say = program("say", folder.path());
        let output = say.args(["tiny.toml", sentence]).assert().success().get_output().clone();
        let said = String::from_utf8(output.stdout).unwrap();
        let tagged = said.trim().strip_prefix("all heads: ").unwrap();
        assert_eq!(tagged.split(' ').count(), sentence.split(' ').count(), "{tagged}");
        text += &(tagged.replace(' ', "\n").replace('/', "\t") + "\n\n");
    }
    for (metric, data) in [("entity-f1", TAGS), ("token-accuracy", &TAGS.replace("scheme = \"raw\"\n", ""))] {
        let folder = on_file(&text, data, metric);
        command(folder.path()).assert().success();
        let row = &rows(folder.path())[0];
        assert_eq!((row.metric.name(), row.score - row.score_delta), (metric, 100.0));
    }
    let long = format!("{text}{}", "the\tO\n".repeat(80));
    let folder = on_file(&long, TAGS, "entity-f1");
    let said = said(&mut command(folder.path()));
    assert!(said.contains("split `test`: words not seen by the model: 18"), "{said}");
}

#[test]
fn invalid_words_and_tags_are_refused_in_one_line() {
    let iob2 = TAGS.replace("scheme = \"raw\"\n", "");
    let unknown = "split `test`, example 1: tag `B-PER` of word `the` is not one of `O`";
    let unopened = "split `test`, sentence 2: tag `I-OBJ` of word `red` begins an entity";
    for (text, data, metric, fault) in [
        ("the\tB-PER\n", TAGS, "entity-f1", unknown),
        ("a\tO\n\nthe\tB-SUBJ\nred\tI-OBJ\n", &iob2, "entity-f1", unopened),
        ("the\tO\n", TAGS, "entity-f1", "split `test`: no tag marks an entity"),
        ("the\tO\n", &iob2, "accuracy", "tags words: score.metric must be entity-f1"),
        ("the\tO\n", TAGS, "token-accuracy", "data.scheme is for score.metric entity-f1"),
    ] {
        refuses(&mut command(on_file(text, data, metric).path()), fault);
    }
}
