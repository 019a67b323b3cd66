//! False alarms in families of t-tests and McNemar tests without any effect.
//!
//! 1,000 simulated families each; with an error of α = 0.05 the number of families with a false alarm has a standard error of sqrt(0.05 *
//! 0.95 / 1,000) = 0.0069. Seeds are fixed, so the outcome is too.
#![expect(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in their helpers")]

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stats::Segments;
use stats::adjust::holm;
use stats::classification::{ClassificationMetric, Outcome};
use stats::family::{Comparison, Testing, test_family};

const FAMILIES: u64 = 1_000;
const ALPHA: f64 = 0.05;
/// A head changes few segments: heads share their base, and with more changes they become correlated, which takes Holm's procedure below α.
const CHANGED: f64 = 0.1;
const EXAMPLES: usize = 2_000;

/// Sizes of families; the smaller one is the start of the larger.
const HEADS: [usize; 2] = [48, 96];

/// A base and the variants of the largest family.
struct Simulated {
    base: Segments,
    variants: Vec<Segments>,
}

fn simulated(family: u64, metric: ClassificationMetric) -> Simulated {
    let mut lot = ChaCha8Rng::seed_from_u64(family);
    let base: Vec<Outcome> = (0..EXAMPLES).map(|_| decided(lot.random_range(0..2), &mut lot)).collect();
    let variants = (0..HEADS[1]).map(|_| Segments::Classes(disturbed(&base, &mut lot), metric)).collect();
    Simulated { base: Segments::Classes(base, metric), variants }
}

/// Returns the share of simulated families with a p-value below α, by size of the family.
///
/// - `draw`: simulates the family with this number
/// - `adjusted`: returns the adjusted p-values of the families of all sizes
fn errors_of(
    draw: impl Fn(u64) -> Simulated,
    adjusted: impl Fn(u64, &Simulated) -> [Vec<f64>; 2],
) -> [f64; 2] {
    let mut alarms = [0; 2];
    for family in 0..FAMILIES {
        let p_values = adjusted(family, &draw(family));
        for (alarms, p_values) in alarms.iter_mut().zip(p_values) {
            *alarms += usize::from(p_values.into_iter().any(|p| p < ALPHA));
        }
    }
    alarms.map(|alarms| alarms as f64 / FAMILIES as f64)
}

/// Returns these shares for classifiers.
fn errors(metric: ClassificationMetric, adjusted: impl Fn(u64, &Simulated) -> [Vec<f64>; 2]) -> [f64; 2] {
    errors_of(|family| simulated(family, metric), adjusted)
}

fn assert_within_two_standard_errors(name: &str, errors: [f64; 2]) {
    let allowed = 2.0 * (ALPHA * (1.0 - ALPHA) / FAMILIES as f64).sqrt();
    for (heads, error) in HEADS.into_iter().zip(errors) {
        println!("{name} of {heads} heads: an error of {error}");
        assert!(
            (error - ALPHA).abs() <= allowed,
            "{name} of {heads} heads: an error of {error}, not {ALPHA}"
        );
    }
}

/// Predicts correctly with probability 0.8.
fn decided(gold: usize, lot: &mut ChaCha8Rng) -> Outcome {
    Outcome { gold, predicted: if lot.random::<f64>() < 0.8 { gold } else { 1 - gold } }
}

/// Redraws some predictions, so that gains and losses are equally likely.
fn disturbed(base: &[Outcome], lot: &mut ChaCha8Rng) -> Vec<Outcome> {
    let redraw = |outcome: &Outcome| {
        if lot.random::<f64>() < CHANGED { decided(outcome.gold, lot) } else { *outcome }
    };
    base.iter().map(redraw).collect()
}

fn tested(simulated: &Simulated, heads: usize) -> Vec<Comparison> {
    let variants: Vec<&Segments> = simulated.variants[..heads].iter().collect();
    test_family(&simulated.base, &variants, Testing { resamples: 1, seed: 1, block: 1 }, 0.0).unwrap()
}

#[test]
fn families_of_t_tests_have_the_nominal_error() {
    let errors = errors(ClassificationMetric::Accuracy, |_, simulated| {
        HEADS.map(|heads| tested(simulated, heads).iter().filter_map(|test| test.p_adjusted).collect())
    });
    assert_within_two_standard_errors("t-tests", errors);
}

#[test]
fn families_of_mcnemar_tests_have_the_nominal_error() {
    let errors = errors(ClassificationMetric::Accuracy, |_, simulated| {
        HEADS.map(|heads| {
            holm(&tested(simulated, heads).iter().filter_map(|test| test.p_mcnemar).collect::<Vec<_>>())
        })
    });
    assert_within_two_standard_errors("McNemar's tests", errors);
}
