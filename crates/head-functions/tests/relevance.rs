//! The whole command on setups that train in a second.
use std::collections::BTreeMap;
use std::path::Path;

use assert_cmd::Command;
use records::{Attention, RelevanceRow};
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, read, trained};

fn folder(spec: &'static str) -> TempDir {
    trained(spec, "head-functions", &["--resamples", "0", "--limit", "first:2"])
}

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("relevance", folder);
    command.args(["--resamples", "99", "--limit", "first:6"]);
    command
}

#[test]
fn every_head_of_a_translator_has_a_share_of_its_layer() {
    let folder = folder(TRANSLATOR);
    let table = "relevance-first-6.csv";
    command(folder.path()).assert().success().stdout(format!("results/tiny/{table}\n"));
    let rows: Vec<RelevanceRow> = test_support::rows(folder.path(), table);
    assert_eq!(rows.len(), 3 * 2 * 3);
    let mut layers: BTreeMap<(Attention, usize), f64> = BTreeMap::new();
    for row in &rows {
        assert!(row.relevance_low.unwrap() <= row.relevance && row.relevance <= row.relevance_high.unwrap());
        assert!(row.targets > 6 && row.undivided.is_finite() && row.lost < 1e-9, "{row:?}");
        *layers.entry((row.attention, row.layer)).or_default() += row.relevance.abs();
    }
    assert_eq!(layers.len(), 6);
    // the absolute value of a mean is at most the mean of absolute values, which sum to 1 over a layer
    assert!(layers.values().all(|&sum| sum > 0.0 && sum < 1.0 + 1e-9), "{layers:?}");
}

#[test]
fn a_classifier_gives_equal_files_on_any_number_of_threads() {
    let (one, two) = (folder(CLASSIFIER), folder(CLASSIFIER));
    command(one.path()).args(["--threads", "1"]).assert().success();
    command(two.path()).args(["--threads", "2"]).assert().success();
    let table = "results/tiny/relevance-first-6.csv";
    assert_eq!(read(one.path(), table), read(two.path(), table));
    let rows: Vec<RelevanceRow> = test_support::rows(one.path(), "relevance-first-6.csv");
    assert!(
        rows.len() == 6
            && rows.iter().all(|row| row.targets == 6 && row.attention == Attention::SelfAttention)
    );
}

#[test]
fn a_language_model_is_refused() {
    let folder = folder(LANGUAGE_MODEL);
    let message = test_support::refusal(&mut command(folder.path()));
    assert!(
        message.contains("relevance is followed through translators and classifiers of texts alone"),
        "{message}"
    );
    let message = test_support::refusal(command(folder.path()).args(["--shard", "1/2"]));
    assert!(message.contains("no row can be had by itself"), "{message}");
}
