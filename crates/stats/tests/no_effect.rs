//! False alarms in families of t-tests and McNemar tests without any effect.
//!
//! 1,000 simulated families each; with an error of α = 0.05 the share of families with a false alarm has a standard error of sqrt(0.05 *
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

/// Returns a base and the variants of the largest family.
fn simulated(family: u64) -> (Segments, Vec<Segments>) {
    let mut lot = ChaCha8Rng::seed_from_u64(family);
    let base: Vec<Outcome> = (0..EXAMPLES).map(|_| decided(lot.random_range(0..2), &mut lot)).collect();
    let of = |outcomes| Segments::Classes(outcomes, ClassificationMetric::Accuracy);
    let variants = (0..HEADS[1]).map(|_| of(disturbed(&base, &mut lot))).collect();
    (of(base), variants)
}

/// Predicts correctly with probability 0.8.
fn decided(gold: usize, lot: &mut ChaCha8Rng) -> Outcome {
    Outcome { gold, predicted: if lot.random::<f64>() < 0.8 { gold } else { 1 - gold } }
}

/// Redraws some predictions, so that gains and losses are equally likely.
fn disturbed(base: &[Outcome], lot: &mut ChaCha8Rng) -> Vec<Outcome> {
    let redraw = |one: &Outcome| if lot.random::<f64>() < CHANGED { decided(one.gold, lot) } else { *one };
    base.iter().map(redraw).collect()
}

fn tested((base, variants): &(Segments, Vec<Segments>), heads: usize) -> Vec<Comparison> {
    let variants: Vec<&Segments> = variants[..heads].iter().collect();
    test_family(base, &variants, Testing { resamples: 1, seed: 1, block: 1 }, 0.0).unwrap()
}

/// Both tests use Holm's adjustment within each family.
#[test]
fn families_of_t_tests_and_of_mcnemar_tests_have_the_nominal_error() {
    let mut alarms = [[0; 2]; 2]; // [size of the family][test]
    for simulated in (0..FAMILIES).map(simulated) {
        for (alarms, heads) in alarms.iter_mut().zip(HEADS) {
            let found = tested(&simulated, heads);
            let t: Vec<f64> = found.iter().filter_map(|test| test.p_adjusted).collect();
            let mcnemar = holm(&found.iter().filter_map(|test| test.p_mcnemar).collect::<Vec<_>>());
            for (alarms, p_values) in alarms.iter_mut().zip([t, mcnemar]) {
                *alarms += usize::from(p_values.into_iter().any(|p| p < ALPHA));
            }
        }
    }
    let allowed = 2.0 * (ALPHA * (1.0 - ALPHA) / FAMILIES as f64).sqrt();
    for (heads, alarms) in HEADS.into_iter().zip(alarms) {
        let errors = alarms.map(|alarms| alarms as f64 / FAMILIES as f64);
        assert!(errors.iter().all(|own| (own - ALPHA).abs() <= allowed), "{heads} heads: {errors:?}");
    }
}
