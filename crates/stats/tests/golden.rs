//! Reference numbers from SciPy and sacreBLEU; `crates/test-support/golden/README.md` explains how they were made.
#![expect(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in their helpers")]

use serde_json::Value;
use stats::adjust::{benjamini_hochberg, holm};
use stats::bleu::{Bleu, BleuTokenizer};
use stats::bootstrap::Resampled;
use stats::classification::{ClassificationMetric, Outcome};
use stats::correlation::{kendall, pearson, spearman};
use stats::family::{Testing, test_family};
use stats::{Segments, mcnemar, t_test};

const GOLDEN: &str = include_str!("../../test-support/golden/statistics.json");

fn golden(section: &str) -> Value {
    serde_json::from_str::<Value>(GOLDEN).unwrap()[section].take()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn assert_close(name: &str, found: f64, expected: f64, tolerance: f64) {
    let gap = (found - expected).abs();
    assert!(gap < tolerance, "{name} is {found} instead of {expected}: {gap:e}");
}

#[test]
fn adjusted_p_values_equal_scipy() {
    let multiple = golden("multiple");
    let numbers = |name: &str| multiple[name].as_array().unwrap().iter().map(number).collect::<Vec<_>>();
    let raw = numbers("p");
    for (name, adjusted) in [("holm", holm(&raw)), ("benjamini_hochberg", benjamini_hochberg(&raw))] {
        assert_eq!(adjusted.len(), numbers(name).len());
        for (found, expected) in adjusted.into_iter().zip(numbers(name)) {
            assert_close(name, found, expected, 1e-12);
        }
    }
}

/// The golden statistics are the first system's lead over the second.
#[test]
fn tests_of_accuracies_equal_scipy() {
    let correctness = golden("correctness");
    let right = |system: &str| correctness[system].as_array().unwrap().iter().map(number).collect::<Vec<_>>();
    let (first, second) = (right("first"), right("second"));
    let paired = t_test::paired(&second, &first).unwrap().test;
    let unpaired = t_test::unpaired(&second, &first).unwrap();
    assert_close("paired t", paired.statistic, number(&correctness["paired_t"]), 1e-12);
    assert_close("unpaired t", unpaired.statistic, number(&correctness["unpaired_t"]), 1e-12);

    let segments = |right: &[f64]| {
        let outcomes = right.iter().map(|&right| Outcome { gold: 1, predicted: right as usize });
        Segments::Classes(outcomes.collect(), ClassificationMetric::Accuracy)
    };
    let testing = Testing { resamples: 1, seed: 1, block: 1 };
    let found = test_family(&segments(&first), &[&segments(&second)], testing, 0.0).unwrap()[0];
    assert_close("paired p", found.p_value.unwrap(), number(&correctness["paired_p"]), 1e-10);
    assert_close("unpaired p", found.p_unpaired_t.unwrap(), number(&correctness["unpaired_p"]), 1e-10);

    let only = |own: &[f64], other: &[f64]| own.iter().zip(other).filter(|(own, other)| own > other).count();
    let exact = mcnemar::exact(only(&first, &second), only(&second, &first));
    assert_close("McNemar's p", exact, number(&correctness["mcnemar_exact_p"]), 1e-10);
}

#[test]
fn correlations_equal_scipy() {
    let golden = golden("pearson");
    let side = |name: &str| golden[name].as_array().unwrap().iter().map(number).collect::<Vec<_>>();
    let (x, y) = (side("x"), side("y"));
    let found = pearson(&x, &y).unwrap();
    assert_close("r", found.coefficient, number(&golden["r"]), 1e-12);
    assert_close("p", found.p_value, number(&golden["p"]), 1e-10);
    assert_close("rho", spearman(&x, &y).unwrap().coefficient, number(&golden["spearman"]), 1e-12);
    assert_close("tau", kendall(&x, &y).unwrap(), number(&golden["kendall"]), 1e-12);
}

fn segments(bleu: &Value, system: &str) -> Segments {
    let texts = |name: &str| bleu[name].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let pairs = texts(system).zip(texts("references"));
    Segments::Bleu(pairs.map(|pair| Bleu::of(BleuTokenizer::None).segment(pair.0, pair.1)).collect())
}

#[test]
fn bleu_equals_sacrebleu() {
    let bleu = golden("bleu");
    assert_eq!(bleu["tokenize"], "none");
    for (system, expected) in [("first", "first_bleu"), ("second", "second_bleu")] {
        assert_close(system, segments(&bleu, system).score().unwrap(), number(&bleu[expected]), 1e-9);
    }
}

/// Both sides drew 20,000 resamples, so each gap has sqrt(2) times the error of one side; four standard errors of the gap are allowed.
///
/// - A percentile has the standard error sqrt(q (1 - q) / 20,000) / f, where f is the density there. The golden interval is 8.99 wide; a
///   normal distribution then has the standard deviation 8.99 / 3.92 = 2.29 and at both ends the density 0.0584 / 2.29 = 0.0255: 0.00110 /
///   0.0255 = 0.043, and 4 * sqrt(2) * 0.043 = 0.25.
/// - The share 0.0018 has sqrt(0.0018 * 0.9982 / 20,000) = 0.00030: 4 * sqrt(2) * 0.0003 = 0.0017.
#[test]
fn bootstrap_agrees_within_sampling_error() {
    let bleu = golden("bleu");
    let expected = &bleu["paired_bootstrap"];
    assert_eq!(expected["resamples"], 20_000);
    let (first, second) = (segments(&bleu, "first"), segments(&bleu, "second"));

    // The golden difference is the first system's lead over the second.
    let lead = compared(&second, &first);
    let interval = lead.interval().unwrap();
    assert_close("percentile 2.5", interval.low, number(&expected["delta_2_5"]), 0.25);
    assert_close("percentile 97.5", interval.high, number(&expected["delta_97_5"]), 0.25);
    let share = 1.0 - number(&expected["share_first_better"]);
    assert_close("Koehn's p", lead.p_koehn().unwrap(), share, 0.0017);
    assert_close("two-sided p", lead.p_value().unwrap(), 2.0 * share, 0.0034);

    let lag = compared(&first, &second);
    assert_eq!((lag.delta(), lag.p_value()), (-lead.delta(), lead.p_value()));
    assert_close("percentile 2.5 the other way round", lag.interval().unwrap().low, -interval.high, 1e-9);
}

fn compared(base: &Segments, variant: &Segments) -> Resampled {
    base.resampled(&[variant], Testing { resamples: 20_000, seed: 1, block: 1 }).unwrap().remove(0)
}
