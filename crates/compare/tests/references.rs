//! P-values and scores from SciPy and sacreBLEU on 50 random pairs of runs each, made by `fixtures/make_references.py`.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use stats::Segments;
use stats::bleu::Bleu;
use stats::bootstrap::Resampled;
use stats::family::Testing;
use stats::text::TextMetric;

const SAMPLES: f64 = 9_999.0;

/// Returns the row that `compare A B --json` prints.
fn row(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::cargo_bin("compare").unwrap();
    let output = command.current_dir(folder).args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["rows"][0].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn assert_equal(found: f64, expected: f64, tolerance: f64, what: &str) {
    let gap = (found - expected).abs();
    assert!(gap <= tolerance, "{what}: {found} instead of {expected}, {gap:e} apart");
}

/// Returns three standard errors of the difference between two Monte Carlo p-values.
fn errors(p: f64, swaps: f64) -> f64 {
    3.0 * (p * (1.0 - p) * (1.0 / SAMPLES + 1.0 / swaps)).sqrt() + 1.0 / SAMPLES
}

#[test]
fn scores_have_the_p_values_of_scipy() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("fixtures/scipy.json")).unwrap();
    assert_eq!(cases.len(), 50);
    let folder = tempfile::tempdir().unwrap();
    for (place, case) in cases.iter().enumerate() {
        for run in ["a", "b"] {
            let scores = case[run].as_array().unwrap().iter().enumerate();
            let lines: String = scores.map(|(id, score)| format!("{id},{score}\n")).collect();
            fs::write(folder.path().join(run).with_extension("csv"), format!("id,score\n{lines}")).unwrap();
        }
        let found = row(folder.path(), &["a.csv", "b.csv"]);
        let what = |name: &str| format!("pair {place}, {name}");
        assert_equal(number(&found["p_paired_t"]), number(&case["t"]), 1e-12, &what("paired t"));
        let (p, expected) = (number(&found["p_value"]), number(&case["swaps"]));
        let is_exact = case["is_exact"].as_bool().unwrap();
        // SciPy doubles the smaller one-sided share q = p / 2, whose variance is q (1 - q) / B
        let [theirs, ours] = [expected * (2.0 - expected) / SAMPLES, expected * (1.0 - expected) / 99_999.0];
        let three_errors = 3.0 * (theirs + ours).sqrt();
        assert_equal(p, expected, if is_exact { 1e-12 } else { three_errors }, &what("swaps"));
        if let Some(binomial) = case["binomial"].as_f64() {
            assert_equal(p, binomial, 1e-12, &what("binomial"));
        }
    }
}

fn lines(case: &Value) -> Vec<String> {
    case.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[test]
fn translations_have_the_scores_and_p_values_of_sacrebleu() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("fixtures/sacrebleu.json")).unwrap();
    assert_eq!(cases.len(), 50);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &Value| {
        fs::write(folder.path().join(name), lines(text).join("\n") + "\n").unwrap()
    };
    for (place, case) in cases.iter().enumerate() {
        write("a.txt", &case["a"]);
        write("b.txt", &case["b"]);
        let mut arguments = vec!["a.txt", "b.txt", "--metric", case["metric"].as_str().unwrap()];
        for (name, reference) in ["r1.txt", "r2.txt"].into_iter().zip(case["references"].as_array().unwrap())
        {
            write(name, reference);
            arguments.extend(["--reference", name]);
        }
        let found = row(folder.path(), &arguments);
        let what = |name: &str| format!("pair {place}, {name}");
        for (side, expected) in ["base", "score"].into_iter().zip(case["scores"].as_array().unwrap()) {
            assert_equal(number(&found[side]), number(expected), 1e-9, &what(side));
        }
        let (p, expected) = (number(&found["p_value"]), number(&case["ar"]));
        assert_equal(p, expected, errors(p.max(expected), 99_999.0), &what("paired-ar"));
    }
}

/// Returns the p-value of sacreBLEU's `paired-bs`: (1 + c) / (B + 1), where c counts the resamples whose absolute difference exceeds the
/// mean absolute resampled difference by more than the absolute observed difference.
fn p_sacrebleu(found: &Resampled) -> f64 {
    let (deltas, observed) = (&found.deltas, found.delta().abs());
    let resamples = deltas.len() as f64;
    let mean = deltas.iter().map(|delta| delta.abs()).sum::<f64>() / resamples;
    let larger = deltas.iter().filter(|delta| delta.abs() - mean > observed).count();
    (1 + larger) as f64 / (1.0 + resamples)
}

#[test]
fn resamples_have_the_p_value_of_sacrebleu() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("fixtures/sacrebleu.json")).unwrap();
    let is_single = |case: &&Value| case["references"].as_array().unwrap().len() == 1;
    let testing = Testing { resamples: 10_000, seed: 1, block: 1 };
    for (place, case) in cases.iter().filter(is_single).enumerate() {
        let reference = lines(&case["references"][0]);
        let segments = |run: &str| {
            let both = lines(&case[run]).into_iter().zip(&reference);
            match case["metric"].as_str().unwrap() {
                "bleu" => Segments::Bleu(both.map(|(own, other)| Bleu::new().segment(&own, other)).collect()),
                metric => {
                    let metric = if metric == "ter" { TextMetric::Ter } else { TextMetric::Chrf };
                    Segments::Texts(both.map(|(own, other)| metric.segment(&own, other)).collect(), metric)
                }
            }
        };
        let found = p_sacrebleu(&segments("a").resampled(&[&segments("b")], testing).unwrap()[0]);
        let expected = number(&case["bs"]);
        // its mean of resampled differences varies too, which the error of p alone ignores
        assert_equal(found, expected, errors(found.max(expected), 10_000.0), &format!("pair {place}"));
    }
}
