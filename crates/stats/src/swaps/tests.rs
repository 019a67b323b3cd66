use super::*;
use crate::Segments;
use crate::assert_close;
use crate::bleu::BleuStatistics;
use crate::bootstrap::tests::means;
use crate::classification::{ClassificationMetric, Outcome};
use crate::nats::NatsStatistics;
use rand::Rng;

const TESTING: Testing = Testing { resamples: SWAPS, seed: 1, block: 1 };
const F1: ClassificationMetric = ClassificationMetric::F1 { positive: 1 };

/// Tests variants against a base of zeros.
fn tested(variants: &[Vec<f64>], testing: Testing) -> Vec<Swapped> {
    let base = means(&vec![0.0; variants[0].len()]);
    let variants: Vec<Variant> = variants.iter().map(|variant| base.variant(&means(variant))).collect();
    swap_tests(&base, &variants, testing).unwrap()
}

fn p_value(variant: &[f64], testing: Testing) -> f64 {
    tested(&[variant.to_vec()], testing)[0].p_value
}

/// Returns this many segments of +1 and of -1.
fn signs(up: usize, down: usize) -> Vec<f64> {
    [vec![1.0; up], vec![-1.0; down]].concat()
}

/// 1, 2 and 3 must all have one sign to reach 6: 2 of 8 swaps. Unchanged segments add no swaps.
#[test]
fn few_changes_are_counted_whatever_the_number_of_swaps() {
    for resamples in [1, SWAPS] {
        let testing = Testing { resamples, ..TESTING };
        assert_eq!(p_value(&[1.0, 0.0, 2.0, 0.0, 3.0], testing), 0.25);
        assert_eq!(p_value(&[0.0; 4], testing), 1.0);
        // sums of tenths round differently in each swap
        assert_eq!(p_value(&[0.1; 16], testing), 2.0 / 65_536.0);
    }
}

/// Compares with the root mean square over all swaps: exact for a mean, 3% off for the F1 of 20 segments, which is not a sum.
#[test]
fn the_standard_error_is_that_of_all_swaps() {
    let assert_like_all_swaps = |base: &Counted, variant: &Counted, tolerance: f64| {
        let variant = base.variant(variant);
        let pair = Pair::new(base, &variant, 1);
        let all = Bits::all(pair.moves.len());
        let together: Vec<Move> = (0..).zip(&pair.moves).map(|(unit, own)| Move { unit, ..*own }).collect();
        let squares: f64 = pair.differences_of(&together, &all).iter().map(|one| one * one).sum();
        let expected = (squares / all.width as f64).sqrt();
        assert_close(pair.error_under_swaps() / expected, 1.0, tolerance);
    };
    let changes = [0.5, 0.0, -2.0, 1.25, 3.0, -0.75];
    assert_like_all_swaps(&means(&[0.0; 6]), &means(&changes), 1e-12);
    let classes = |predicted: fn(usize) -> usize| {
        let outcome = |n| Outcome { gold: n % 2, predicted: predicted(n) };
        Segments::Classes((0..20).map(outcome).collect(), F1).counted().unwrap()
    };
    assert_like_all_swaps(&classes(|n| n % 2), &classes(|n| usize::from(n % 3 == 0)), 0.03);
}

/// Returns the exact p-value from scoring every swap of the changed segments.
fn counted_by_hand(base: &Segments, variant: &Segments) -> f64 {
    let changed: Vec<usize> = (0..base.len()).filter(|&n| base.cells(n) != variant.cells(n)).collect();
    let score = |first: &Segments, second: &Segments, swap: usize| {
        let is_swapped = |n| changed.iter().position(|&one| one == n).is_some_and(|bit| swap >> bit & 1 == 1);
        let cells = |n| if is_swapped(n) { second.cells(n) } else { first.cells(n) };
        let cells: Vec<_> = (0..base.len()).map(cells).collect();
        Segments::from_cells(base.metric(), &cells).unwrap().score().unwrap()
    };
    let difference = |swap| (score(variant, base, swap) - score(base, variant, swap)).abs();
    let all = 1 << changed.len();
    let reached = (0..all).filter(|&swap| difference(swap) >= difference(0) - 1e-9).count();
    reached as f64 / all as f64
}

/// Of BLEU and F1; means have SciPy's p-values in `compare`.
#[test]
fn exact_p_values_are_those_of_all_swaps_made_by_hand() {
    let mut lot = ChaCha8Rng::seed_from_u64(3);
    for changes in [1, 3, 7, 9, 10] {
        let mut sentence = || {
            let length: u32 = 3 + lot.random_range(0..=9);
            let correct = [0, 1, 2, 3].map(|order| lot.random_range(0..=length - order));
            BleuStatistics::new(length, 9, correct)
        };
        let base: Vec<BleuStatistics> = (0..30).map(|_| sentence()).collect();
        let mut variant = base.clone();
        variant.iter_mut().step_by(3).take(changes).for_each(|own| *own = sentence());
        let translated = [base, variant].map(Segments::Bleu);

        let base: Vec<Outcome> = (0..40).map(|n| Outcome { gold: n % 2, predicted: n / 3 % 2 }).collect();
        let mut variant = base.clone();
        variant.iter_mut().step_by(4).take(changes).for_each(|own| own.predicted = 1 - own.predicted);
        let classified = [base, variant].map(|side| Segments::Classes(side, F1));
        for [base, variant] in [translated, classified] {
            let (counted, variants) = base.beside(&[&variant]).unwrap();
            let found = swap_tests(&counted, &variants, TESTING).unwrap()[0].p_value;
            assert_eq!(found, counted_by_hand(&base, &variant), "{} {changes}", base.metric().name());
        }
    }
}

/// A sum of 20 signs, 15 up and 5 down, is 10, which needs at least 15 of one sign: 2 * 21,700 / 2^20 = 0.0414; four standard errors of
/// 99,999 draws are 0.0025. 20 up and 6 down of 26: 2 * 313,912 / 2^26 = 0.009355, less than three errors of 99,999 draws from 0.01, so
/// 999,999 are drawn, with four errors of 0.0004.
#[test]
fn many_changes_are_drawn_and_close_calls_more_often() {
    assert_close(p_value(&signs(15, 5), TESTING), 0.0414, 0.0025);
    let close = p_value(&signs(20, 6), TESTING);
    assert_close(close, 0.009355, 0.0004);
    let drawn = close * 1e6;
    assert!((drawn - drawn.round()).abs() < 1e-6 && drawn.round() % 10.0 != 0.0, "{drawn}");
    let fewer = p_value(&signs(20, 6), Testing { resamples: SWAPS - 1, ..TESTING });
    assert_close(fewer * SWAPS as f64, (fewer * SWAPS as f64).round(), 1e-6);
    // twenty pairs of neighbours that are swapped together have the p-value of twenty segments of twice the size
    let twice: Vec<f64> = signs(15, 5).into_iter().flat_map(|one| [one, one]).collect();
    assert_eq!(p_value(&twice, Testing { block: 2, ..TESTING }), p_value(&signs(15, 5), TESTING));
    assert!(p_value(&twice, TESTING) < 0.01);
}

/// Copies of a variant count as one; no swap reaches 30 of one sign, with any other variants in the family, also if they change more.
#[test]
fn a_family_of_copies_is_no_stricter_than_each() {
    let (weak, strong) = ([signs(20, 10), vec![0.0; 10]].concat(), [vec![0.0; 10], vec![0.01; 30]].concat());
    let found = tested(&[weak.clone(), weak.clone(), strong, vec![0.0; 40], weak], TESTING);
    assert_eq!((found[2].p_value, found[2].p_adjusted), (1e-5, 1e-5));
    assert_eq!((found[3].p_value, found[3].p_adjusted), (1.0, 1.0));
    for copy in [0, 1, 4] {
        assert_eq!((found[copy].p_value, found[copy].p_adjusted), (found[0].p_value, found[0].p_value));
    }
}

#[test]
fn equal_seeds_give_equal_results_on_any_number_of_threads() {
    let family = [signs(25, 15), signs(20, 20), signs(30, 10)];
    let with_threads = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| tested(&family, Testing { resamples: 9_999, seed, block: 1 }))
    };
    assert_eq!(with_threads(1, 7), with_threads(3, 7));
    assert_ne!(with_threads(1, 7), with_threads(1, 8));
}

const FAMILIES: u64 = 1_000;
const LEVEL: f64 = 0.05;

/// Returns the share of simulated families without an effect in which an adjusted p is below 0.05.
fn family_wise_error(family: impl Fn(&mut ChaCha8Rng) -> (Segments, Vec<Segments>) + Sync) -> f64 {
    let has_alarm = |number: &u64| {
        let (base, variants) = family(&mut ChaCha8Rng::seed_from_u64(*number));
        let (counted, variants) = base.beside(&variants.iter().collect::<Vec<_>>()).unwrap();
        let testing = Testing { resamples: 499, seed: *number, block: 1 };
        swap_tests(&counted, &variants, testing).unwrap().iter().any(|test| test.p_adjusted < LEVEL)
    };
    (0..FAMILIES).into_par_iter().filter(has_alarm).count() as f64 / FAMILIES as f64
}

/// Returns the level plus two standard errors of [`FAMILIES`].
fn allowed() -> f64 {
    LEVEL + 2.0 * (LEVEL * (1.0 - LEVEL) / FAMILIES as f64).sqrt()
}

/// 48 heads redraw some predictions. Max-T on the bootstrap had an error of 0.002 to 0.008 with few changes.
#[test]
fn families_have_the_nominal_error_also_where_few_examples_change() {
    let decided = |gold: usize, lot: &mut ChaCha8Rng| Outcome {
        gold,
        predicted: if lot.random::<f64>() < 0.8 { gold } else { 1 - gold },
    };
    let matthews = ClassificationMetric::Matthews;
    for (metric, share) in [(F1, 0.08), (matthews, 0.08), (matthews, 0.4)] {
        let error = family_wise_error(|lot| {
            let base: Vec<Outcome> = (0..400).map(|_| decided(lot.random_range(0..2), lot)).collect();
            let mut variant = || {
                let mut afresh =
                    |one: &Outcome| if lot.random::<f64>() < share { decided(one.gold, lot) } else { *one };
                Segments::Classes(base.iter().map(&mut afresh).collect(), metric)
            };
            let variants = (0..48).map(|_| variant()).collect();
            (Segments::Classes(base, metric), variants)
        });
        assert!((LEVEL / 2.0..=allowed()).contains(&error), "{metric:?} {share}: {error}");
    }
}

/// Lengths of infinite variance (Pareto): few documents make most of the difference. The bootstrap had an error of 0.067.
#[test]
fn families_of_nats_have_the_nominal_error() {
    let error = family_wise_error(|lot| {
        let length = |lot: &mut ChaCha8Rng| (20.0 / (1.0 - lot.random::<f64>()).sqrt()).min(1024.0) as u32;
        let tokens: Vec<u32> = (0..200).map(|_| length(lot)).collect();
        let mut documents = || {
            let mut document = |&tokens: &u32| {
                let nats = f64::from(tokens) * (2.0 + lot.random::<f64>());
                NatsStatistics::new(nats, tokens, tokens).unwrap()
            };
            Segments::Nats(tokens.iter().map(&mut document).collect())
        };
        (documents(), (0..48).map(|_| documents()).collect())
    });
    assert!((LEVEL / 2.0..=allowed()).contains(&error), "{error}");
}
