//! The whole command on a classifier that trains in a second, and on ready-made checkpoints.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, BASE, Blocks, Signature};
use tempfile::TempDir;
use test_support::{CLASSIFIER, REGRESSION, read, trained};

/// Makes a folder with a trained model and a setup that may use another.
fn folder(spec: &str) -> TempDir {
    let folder = trained(CLASSIFIER, "ablate-one", &["--limit", "first:1"]);
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
    let mut command = test_support::command("ablate-one", folder);
    command.args(["--resamples", "99"]);
    command
}

fn refusal(folder: &Path) -> String {
    test_support::refusal(&mut command(folder))
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
fn a_checkpoint_scores_as_the_model_that_was_trained() {
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
    let message = refusal(folder(&checkpoint("labels = [\"poor\", \"fine\"]")).path());
    assert!(
        message.contains(
            "data.labels are `poor`, `fine`, but the model in `data/models/tiny` knows `bad`, `good`"
        ),
        "{message}"
    );
    let other = folder(&checkpoint(""));
    fs::write(other.path().join("data/reviews/test.tsv"), "review\tverdict\nlovely\tgreat\n").unwrap();
    let message = refusal(other.path());
    assert!(
        message.contains("split `test`, example 1: label `great` is not one of `bad`, `good`"),
        "{message}"
    );
}

/// A checkpoint without class names takes the setup's names in the order given.
#[test]
fn names_in_the_wrong_order_are_warned_of_once() {
    for (labels, doubted) in [("labels = [\"bad\", \"good\"]", 0), ("labels = [\"good\", \"bad\"]", 1)] {
        let folder = folder(&checkpoint(labels));
        let config = folder.path().join("data/models/tiny/config.json");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(config, text.replace("\"bad\"", "\"LABEL_0\"").replace("\"good\"", "\"LABEL_1\"")).unwrap();
        let said = command(folder.path()).assert().success().get_output().stderr.clone();
        let said = String::from_utf8(said).unwrap();
        assert_eq!(
            said.matches("warning: the full model is below chance").count(),
            doubted,
            "{labels}: {said}"
        );
        assert_eq!(said.matches("with the labels [\"bad\", \"good\"]").count(), doubted, "{labels}: {said}");
    }
}

#[test]
fn rows_at_fault_are_refused_or_left_out_and_counted() {
    let mut expected = None;
    for (row, fault) in [
        ("", ""),
        ("lovely\n", "line 242: 1 column, but the header has 3"),
        ("lovely\tdull\tgood\t1\n", "line 242: 4 columns, but the header has 3"),
        (" \tgood\t1\n", "line 242: `review` is empty"),
    ] {
        let folder = folder(&checkpoint(""));
        let path = folder.path().join("data/reviews/test.tsv");
        fs::write(&path, fs::read_to_string(&path).unwrap() + row).unwrap();
        if !row.is_empty() {
            assert!(refusal(folder.path()).contains(&format!("data/reviews/test.tsv`, {fault}")), "{row}");
        }
        fs::write(folder.path().join("tiny.toml"), checkpoint("bad_rows = \"skip\"")).unwrap();
        let said = command(folder.path()).assert().success().get_output().stderr.clone();
        assert!(String::from_utf8(said).unwrap().contains(fault), "{row}");
        let signature = String::from_utf8(read(folder.path(), "results/tiny/ablate-one.json")).unwrap();
        assert_eq!(signature.contains("\"skipped_rows\": 1"), !row.is_empty(), "{signature}");
        assert_eq!(*expected.get_or_insert_with(|| rows(folder.path())), rows(folder.path()));
    }
}

#[test]
fn a_folder_that_holds_no_such_model_is_refused() {
    let config = "config.json";
    for (file, from, to, expected) in [
        (config, "\"model_type\": \"bert\"", "\"model_type\": \"gpt2\"", "model_type is `gpt2`"),
        (config, "_layers\": 2", "_layers\": 3", "lacks tensor `bert.encoder.layer.2."),
        (config, "_embeddings\": 16", "_embeddings\": 8", ".position_embeddings.weight` is [16, 12]"),
        (config, "\"bad\"", "\"LABEL_0\"", "label `bad` is not one of"),
        ("tokenizer.json", "{", "", "tokenizer.json"),
    ] {
        let folder = folder(&checkpoint(""));
        let path = folder.path().join("data/models/tiny").join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replace(from, to)).unwrap();
        let message = refusal(folder.path());
        assert!(message.contains(expected), "{expected}: {message}");
    }
    let folder = folder(&checkpoint(""));
    let mut bytes = read(folder.path(), "data/models/tiny/model.safetensors");
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(folder.path().join("data/models/tiny/model.safetensors"), bytes).unwrap();
    assert!(refusal(folder.path()).contains("holds NaN or infinite values"));
}

/// Makes a folder with a single-output model and a setup that uses it as a ready-made checkpoint.
fn one_output(metric: &str) -> TempDir {
    let folder = trained(REGRESSION, "ablate-one", &["--limit", "first:9"]);
    let (head, _) = REGRESSION.split_once("tokenizer.vocabulary").unwrap();
    let spec = format!("{}checkpoint.from = \"models/tiny\"\n", head.replace("\"pearson\"", metric));
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    folder
}

/// Returns the stored true and predicted values of the full model.
fn stored(folder: &Path) -> Vec<[f64; 2]> {
    let path = folder.join("results/tiny/ablate-one.csv");
    let signature = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
    let blocks = Blocks::beside(&path, &signature).unwrap().unwrap();
    let cells = blocks.get(BASE).unwrap().cells(None).unwrap();
    cells.iter().map(|own| [own[0], own[1]].map(|cell| f64::from(cell.value()))).collect()
}

/// Computes Pearson's r, in points, by its definition.
fn pearson(pairs: &[[f64; 2]]) -> f64 {
    let mean = |side: usize| pairs.iter().map(|pair| pair[side]).sum::<f64>() / pairs.len() as f64;
    let means = [mean(0), mean(1)];
    let sum = |a: usize, b: usize| {
        pairs.iter().map(|pair| (pair[a] - means[a]) * (pair[b] - means[b])).sum::<f64>()
    };
    100.0 * sum(0, 1) / (sum(0, 0) * sum(1, 1)).sqrt()
}

/// In the second part labels are 3 - 2y of the outputs y, so that both correlations are -1.
#[test]
fn one_output_is_scored_by_correlation() {
    let folder = one_output("\"pearson\"");
    command(folder.path()).assert().success();
    let (rows, pairs) = (rows(folder.path()), stored(folder.path()));
    assert_eq!((rows.len(), pairs.len()), (2 * 3, 240));
    assert!((rows[0].base_score - pearson(&pairs)).abs() < 1e-9 && rows[0].base_score > 80.0);
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
fn correlations_that_do_not_exist_are_named_or_refused() {
    let folder = one_output("\"pearson\"");
    let write = |rows: &str| {
        fs::write(folder.path().join("data/reviews/test.tsv"), format!("review\trating\n{rows}")).unwrap();
    };
    write("dull film\t1.5\nlovely film\t1.50\n");
    let expected = "split `test`: all labels are `1.5`, and nothing correlates with what does not vary";
    assert!(refusal(folder.path()).contains(expected));
    write("dull film\t1.5\nlovely film\tinf\n");
    assert!(refusal(folder.path()).contains("test.tsv`, line 3: label `inf` is not a finite number"));

    write("dull film\t1.5\ndull film\t2\ndull film\t-3e-1\n");
    let output = command(folder.path()).assert().success().get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.matches("no correlation exists and 0 stands for it: ").count(), 1, "{message}");
    assert!(message.contains("; self:1:2; "), "{message}");
    assert!(rows(folder.path()).iter().all(|row| row.score == 0.0 && row.p_value.is_none_or(|p| p == 1.0)));
}

#[test]
fn metrics_of_classes_and_of_one_output_are_not_exchanged() {
    let message = refusal(one_output("\"accuracy\"").path());
    assert!(message.contains(r#"accuracy is for classes: set score.metric = "pearson""#), "{message}");
    let message = refusal(folder(&checkpoint("").replace("\"accuracy\"", "\"pearson\"")).path());
    assert!(message.contains("label `bad` is not a finite number"), "{message}");
    let message = refusal(
        folder(&checkpoint("labels = [\"bad\", \"good\"]").replace("\"accuracy\"", "\"pearson\"")).path(),
    );
    assert!(message.contains("data.labels and data.rename are for classes"), "{message}");
    let rated = checkpoint("").replace("\"accuracy\"", "\"pearson\"").replace("\"verdict\"", "\"rating\"");
    let message = refusal(folder(&rated).path());
    assert!(
        message.contains("pearson is for models with one output, but this one has 2 classes"),
        "{message}"
    );
}
