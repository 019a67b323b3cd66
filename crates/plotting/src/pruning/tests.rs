use records::Identity;

use super::*;
use crate::origin::tests::{origin, tested};
use crate::significance::{Adjustment, Which};
use crate::test_rows::{file, pruning_row as row};

const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

fn pruning(rows: Vec<PruningRow>) -> Result<Pruning, Error> {
    Pruning::from_rows(file(), rows)
}

fn message(rows: Vec<PruningRow>) -> String {
    pruning(rows).unwrap_err().to_string()
}

/// Steps of the order `importance` over 10 heads: masked heads, score and p-value, from a base of 30.
fn curve(steps: &[(usize, f64, Option<f64>)]) -> Vec<PruningRow> {
    let row = |(step, &(masked, score, p_value)): (usize, _)| PruningRow {
        p_value,
        ..row("all", "importance", None, step, (masked, 10), score)
    };
    steps.iter().enumerate().map(row).collect()
}

/// By the paper's rule.
fn removable(steps: &[(usize, f64, Option<f64>)]) -> Option<curve::Removable> {
    without_loss(&pruning(curve(steps)).unwrap(), CRITERION)
}

/// The first curve by the paper's rule.
fn without_loss(pruning: &Pruning, criterion: Criterion) -> Option<curve::Removable> {
    pruning.series()[0].removable(pruning.rules(criterion), Which::NoSignificantLoss)
}

/// Steps 1 and 2 are no loss: the first rises, however significantly, the second has p at alpha. Step 3 is the first
/// loss, and step 4 does not undo it. So 2 of 10 heads can go.
#[test]
fn the_share_ends_before_the_first_significant_loss() {
    let found = removable(&[
        (0, 30.0, None),
        (1, 30.5, Some(0.001)),
        (2, 29.5, Some(0.01)),
        (4, 29.0, Some(0.009)),
        (5, 29.8, Some(0.4)),
    ]);
    let found = found.unwrap();
    assert_eq!((found.percent, found.range, found.is_open), (20.0, None, false));
    assert_eq!(found.step, Some(curve::Step { masked: 2, score: 29.5, delta: -0.5 }));
}

/// 2 % of 30 points are 0.6: an interval down to -0.6 is safe, one down to -0.7 is not, whatever p says.
#[test]
fn the_safe_share_ends_where_the_interval_reaches_below_the_margin() {
    let lows = [None, Some(-0.3), Some(-0.6), Some(-0.7), Some(-0.1)];
    let step = |(step, delta_low)| PruningRow {
        delta_low,
        p_value: delta_low.map(|_| 0.5),
        ..row("all", "importance", None, step, (step, 10), 29.9)
    };
    let pruning = pruning((0..).zip(lows).map(step).collect()).unwrap();
    let share = |which| {
        let found = pruning.series()[0].removable(pruning.rules(CRITERION), which).unwrap();
        (found.percent, found.is_open)
    };
    assert_eq!(share(Which::ShownSafe), (20.0, false));
    assert_eq!(share(Which::NoSignificantLoss), (40.0, true));
}

#[test]
fn a_loss_at_once_leaves_nothing_to_remove() {
    let found = removable(&[(0, 30.0, None), (1, 20.0, Some(0.001)), (2, 30.0, Some(0.5))]).unwrap();
    assert_eq!((found.percent, found.is_open), (0.0, false));
    assert_eq!(found.step, Some(curve::Step { masked: 0, score: 30.0, delta: 0.0 }));
}

#[test]
fn a_curve_without_a_loss_says_at_least() {
    let open = removable(&[(0, 30.0, None), (9, 29.9, Some(0.5))]).unwrap();
    assert_eq!((open.percent, open.is_open), (90.0, true));
    let all = removable(&[(0, 30.0, None), (10, 29.9, Some(0.5))]).unwrap();
    assert_eq!((all.percent, all.is_open), (100.0, false));
}

/// A step without a test ends the climb: with adjusted p-values on the way to come, 100 % would be said to be removable.
#[test]
fn what_was_not_tested_proves_nothing() {
    assert_eq!(removable(&[(0, 30.0, None), (1, 10.0, None)]), None);
    assert_eq!(removable(&[(0, 30.0, None)]), None);
    let found =
        removable(&[(0, 30.0, None), (1, 29.9, Some(0.5)), (2, 1.0, None), (10, 0.0, Some(0.5))]).unwrap();
    assert_eq!((found.percent, found.is_open), (10.0, true));
    let mut steps = curve(&[(0, 30.0, None), (1, 10.0, Some(0.001))]);
    steps[1].p_adjusted = Some(0.02);
    let series = pruning(steps).unwrap();
    let by = |adjustment| without_loss(&series, Criterion { adjustment, ..CRITERION });
    assert_eq!(by(Adjustment::Family).unwrap().percent, 10.0);
    assert_eq!(by(Adjustment::Bh), None);
}

/// With 99 resamples no p is below 0.02, so nothing can be a significant loss at 0.01; with 299 it can.
#[test]
fn a_test_that_cannot_see_a_loss_proves_nothing() {
    let share = |resamples| {
        let mut pruning = pruning(curve(&[(0, 30.0, None), (10, 2.0, Some(0.02))])).unwrap();
        pruning.file.origin = tested(resamples);
        without_loss(&pruning, CRITERION).map(|found| found.percent)
    };
    assert_eq!((share(99), share(299)), (None, Some(100.0)));
}

/// A killed run has scored the first and the last step: heads between them may or may not be missed.
#[test]
fn a_gap_hides_the_share() {
    let step = |step, masked, p_value| PruningRow {
        p_value,
        p_adjusted: p_value,
        ..row("all", "importance", None, step, (masked, 10), 29.9)
    };
    let share = |rows: Vec<PruningRow>| {
        let pruning = pruning(rows).unwrap();
        let found = without_loss(&pruning, CRITERION).map(|found| (found.percent, found.is_open));
        (found, pruning.is_finished(&pruning.series()[0]))
    };
    assert_eq!(share(vec![step(0, 0, None), step(10, 10, Some(0.5))]), (None, false));
    let some = vec![step(0, 0, None), step(1, 1, Some(0.5)), step(10, 10, Some(0.5))];
    assert_eq!(share(some), (Some((10.0, true)), false));
    assert_eq!(share(vec![step(2, 2, Some(0.5)), step(3, 10, Some(0.5))]), (None, false));
    // A curve that leaves out the intact model is whole, but nothing is shown by it.
    let headless = vec![step(1, 1, Some(0.5)), step(2, 10, Some(0.5))];
    assert_eq!(share(headless), (Some((0.0, false)), true));
}

#[test]
fn a_complement_is_a_curve_of_its_own_and_a_floor_is_none() {
    let turned = PruningRow { complement: true, ..row("all", "importance", None, 1, (5, 10), 25.0) };
    let rows = vec![
        row("all", "importance", None, 0, (0, 10), 30.0),
        row("all", "importance", None, 1, (5, 10), 29.0),
        turned,
        row("all", "floor", None, 0, (10, 10), 0.5),
    ];
    let pruning = pruning(rows).unwrap();
    let importance = pruning.find(Scope::All, Order::Importance).unwrap();
    assert_eq!(importance.score_at(50.0, 5.0), Some((50.0, 29.0)));
    assert_eq!(pruning.complement(importance).unwrap().score_at(50.0, 5.0), Some((50.0, 25.0)));
    assert_eq!((pruning.series().len(), pruning.floors()[&Scope::All].score), (2, 0.5));
}

/// 0, 10 and 30 % of the heads: the median is 10; scores at the same step 27, 28, 29.
#[test]
fn of_random_orders_there_is_a_median_and_a_range() {
    let run = |(seed, steps): (u64, usize)| {
        (0..4).map(move |step| PruningRow {
            p_value: Some(if step <= steps { 0.5 } else { 0.001 }),
            ..row("all", "random", Some(seed), step, (step, 10), 30.0 - seed as f64)
        })
    };
    let pruning = pruning([(1, 0), (2, 1), (3, 3)].into_iter().flat_map(run).collect()).unwrap();
    let found = without_loss(&pruning, CRITERION).unwrap();
    assert_eq!((found.percent, found.range, found.step), (10.0, Some((0.0, 30.0)), None));
    assert!(found.is_open, "the third order goes on");
    assert_eq!(pruning.series()[0].score_at(31.0, 5.0), Some((30.0, 28.0)));
    assert_eq!(pruning.series()[0].score_at(50.0, 5.0), None);
}

/// p-values are adjusted last, and an order that keeps no heads ends with all of them masked.
#[test]
fn a_curve_that_ends_early_is_not_finished() {
    let finished = |adjusted, kept: Option<u64>, order: &str| {
        let intact = row("all", order, None, 0, (0, 10), 30.0);
        let last = row("all", order, None, 1, (9, 10), 29.0);
        let last = PruningRow { p_value: Some(0.5), p_adjusted: adjusted, ..last };
        let mut pruning = pruning(vec![intact, last]).unwrap();
        let kept = kept.map(|kept| ("keep_at_least".to_owned(), kept.into()));
        let identity = Identity { arguments: kept.into_iter().collect(), ..Identity::new("any", "demo-x") };
        pruning.file.origin = origin(identity, true);
        pruning.is_finished(&pruning.series()[0])
    };
    assert!(finished(Some(0.5), Some(1), "importance") && finished(Some(0.5), None, "importance"));
    assert!(!finished(Some(0.5), Some(0), "importance") && !finished(None, Some(1), "importance"));
    assert!(finished(Some(0.5), Some(0), "greedy-forward") && finished(Some(0.5), Some(0), "swap"));
}

#[test]
fn a_caption_names_the_data_of_the_estimate() {
    let mut pruning = pruning(vec![row("all", "importance", None, 0, (0, 10), 30.0)]).unwrap();
    assert!(pruning.estimate().is_empty());
    pruning.file.origin = origin(crate::estimate::tests::identity("token", true, 0.5), true);
    assert_eq!(pruning.estimate(), ["orders estimated on 2000 segments of train", "importance by token"]);
}

#[test]
fn a_loss_by_swaps_leaves_open_what_fewer_heads_would_do() {
    let swapped = |p_value| {
        let found = row("all", "swap", None, 5, (5, 10), 29.0);
        let rows = vec![
            row("all", "swap", None, 0, (0, 10), 30.0),
            PruningRow { p_value: Some(p_value), search_score: Some(29.5), ..found },
        ];
        without_loss(&pruning(rows).unwrap(), CRITERION).map(|removable| removable.percent)
    };
    assert_eq!((swapped(0.001), swapped(0.2)), (None, Some(50.0)));
}

#[test]
fn rows_of_two_runs_are_refused() {
    let one = || row("all", "importance", None, 0, (0, 10), 30.0);
    let other = PruningRow { base_score: 31.0, step: 1, ..one() };
    let expected = "`a.csv` mixes runs: base_score is 30 but 31 for all by importance, step 1";
    assert_eq!(message(vec![one(), other]), expected);
    let other = row("all", "random", Some(3), 2, (1, 12), 29.0);
    let expected = "`a.csv` mixes runs: heads is 10 for all by importance, step 0 but 12 for all by random, seed 3, step 2";
    assert_eq!(message(vec![one(), other]), expected);
    let mut pruning = pruning(vec![one()]).unwrap();
    let other = PruningRow { metric: "f1".to_owned(), ..row("all", "swap", None, 0, (0, 10), 30.0) };
    let error = pruning.add(Path::new("b.csv"), SEARCH, vec![other]).unwrap_err().to_string();
    assert_eq!(error, "`b.csv` mixes runs: metric is `bleu` but `f1` for all by swap, step 0");
}

#[test]
fn what_cannot_be_is_refused() {
    let faulty = |change: fn(&mut PruningRow)| {
        let mut row = row("all", "importance", None, 1, (2, 10), 30.0);
        change(&mut row);
        message(vec![row])
    };
    assert!(faulty(|row| row.score = f64::NAN).contains("score of all by importance, step 1 is NaN"));
    assert!(faulty(|row| row.masked = 11).contains("masked of all by importance, step 1 is 11"));
    assert!(faulty(|row| row.heads = 0).contains("must be 1 to 100000"));
    assert!(faulty(|row| row.p_value = Some(1.5)).contains("p_value of all by importance, step 1 is 1.5"));
    assert!(
        faulty(|row| row.attention = "enc".to_owned())
            .contains("unknown attention `enc`: it is one of all, enc-enc")
    );
    assert!(
        faulty(|row| row.order = "chance".to_owned())
            .contains("unknown order `chance`: it is one of importance")
    );
    let heads = |row: &mut PruningRow| row.masked_heads = "enc-enc:1:2+mid:1:3".to_owned();
    assert!(faulty(heads).contains("unknown type in masked_heads `mid`"));
    assert!(message(vec![]).contains("holds no rows yet"));
    let falling = curve(&[(3, 30.0, None), (2, 30.0, None)]);
    assert!(message(falling).contains("is 2, but it must be no less than in the step before"));
}

#[test]
fn heads_and_types_tell_a_translator_from_bert() {
    let of = |attention, heads: &str, metric: &str| {
        let row = row(attention, "importance", None, 1, (1, 10), 30.0);
        let row = PruningRow { masked_heads: heads.to_owned(), metric: metric.to_owned(), ..row };
        pruning(vec![row]).unwrap().is_translator()
    };
    assert!(of("all", "self:1:2+enc-enc:1:2", "accuracy") && of("dec-dec", "", "accuracy"));
    assert!(!of("all", "self:1:2", "bleu") && !of("self", "", "bleu"));
    assert!(of("all", "", "bleu") && !of("all", "", "f1"));
}
