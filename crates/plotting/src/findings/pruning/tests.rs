//! Shares computed by hand: steps of 10 heads from a base score of 30 points, with p < 0.01 and a margin of 2%, 0.6 points.
use super::*;
use crate::findings::judge::Adjustment;
use crate::findings::source::Source;
use crate::findings::tiny;
use records::MetricName;

const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

fn row(order: Order, step: usize, masked: usize, score: f64, p_value: Option<f64>) -> CurveRow {
    let base = CurveRow { order, step, masked, heads: 10, metric: MetricName::Bleu, ..CurveRow::default() };
    CurveRow { base_score: 30.0, score, score_delta: score - 30.0, p_value, p_adjusted: p_value, ..base }
}

fn pruning(rows: Vec<CurveRow>) -> Pruning {
    let file = Source::subject(&tiny(), "tiny-translation").one(experiment::PRUNING).unwrap();
    Pruning::of(Results { file, rows })
}

/// Builds a curve from masked heads, score and p-value per step, and adds step 0.
fn curve(steps: &[(usize, f64, Option<f64>)]) -> Pruning {
    let step = |(step, &(masked, score, p_value))| row(Order::Importance, step, masked, score, p_value);
    pruning([(0, 30.0, None)].iter().chain(steps).enumerate().map(step).collect())
}

/// Returns the share in percent, whether more might be masked, and the change there, for the first curve.
fn found(pruning: &Pruning, which: RuleKind, criterion: Criterion) -> Option<(f64, bool, Option<f64>)> {
    let found = pruning.series[0].removable(pruning.results.judge(criterion), which)?;
    Some((found.percent, found.is_open, found.change.map(|change| change.delta)))
}

#[test]
fn the_share_ends_before_the_first_significant_loss() {
    let share = |steps: &[_]| found(&curve(steps), RuleKind::NoSignificantLoss, CRITERION);
    // the first rises, the second has p equal to alpha, the third is a loss, and the fourth does not undo it
    let steps = [(1, 30.5, 0.001), (2, 29.5, 0.01), (4, 29.0, 0.009), (5, 29.8, 0.4)];
    let steps = steps.map(|(masked, score, p)| (masked, score, Some(p)));
    assert_eq!(share(&steps), Some((20.0, false, Some(-0.5))));
    assert_eq!(share(&[(1, 20.0, Some(0.001)), (2, 30.0, Some(0.5))]), Some((0.0, false, Some(0.0))));
    assert_eq!(share(&[(9, 30.0, Some(0.5))]), Some((90.0, true, Some(0.0))));
    assert_eq!(share(&[(10, 30.0, Some(0.5))]), Some((100.0, false, Some(0.0))));
    // an untested step proves nothing and ends the walk
    assert_eq!((share(&[(1, 10.0, None)]), share(&[])), (None, None));
    assert_eq!(
        share(&[(1, 30.0, Some(0.5)), (2, 1.0, None), (10, 0.0, Some(0.5))]),
        Some((10.0, true, Some(0.0)))
    );
    let mut adjusted = curve(&[(1, 10.0, Some(0.001))]);
    adjusted.series[0].runs[0][1].p_adjusted = Some(0.02);
    let by =
        |adjustment| found(&adjusted, RuleKind::NoSignificantLoss, Criterion { adjustment, ..CRITERION });
    assert_eq!((by(Adjustment::Family), by(Adjustment::Bh)), (Some((10.0, true, Some(-20.0))), None));
}

#[test]
fn the_dispensable_share_ends_where_the_interval_reaches_the_margin() {
    let mut pruning = curve(&[1, 2, 3, 4].map(|masked| (masked, 29.5, Some(0.5))));
    for (row, low) in
        pruning.series[0].runs[0].iter_mut().zip([None, Some(-0.55), Some(-0.59), Some(-0.7), Some(-0.5)])
    {
        (row.delta_low, row.delta_high) = (low, low.and(Some(0.0)));
    }
    assert_eq!(found(&pruning, RuleKind::Dispensable, CRITERION), Some((20.0, false, Some(-0.5))));
    assert_eq!(found(&pruning, RuleKind::NoSignificantLoss, CRITERION), Some((40.0, true, Some(-0.5))));
}

/// Of 1,000 resamples, 975 reach step 3, so 2.5% of the shares are below it; 25 reach the last step, so 2.5% are there.
#[test]
fn the_spread_of_a_share_is_that_of_the_resamples() {
    let mut pruning = curve(&[1, 2, 3, 4, 5].map(|masked| (masked, 29.5, Some(0.5))));
    let reached = [None, Some(1.0), Some(0.99), Some(0.975), Some(0.026), Some(0.025)];
    for (row, reached) in pruning.series[0].runs[0].iter_mut().zip(reached) {
        (row.reached_without_loss, row.power) = (reached, reached.and(Some(0.5)));
    }
    let spread = |which, criterion| {
        pruning.series[0].removable(pruning.results.judge(criterion), which).and_then(|found| found.spread)
    };
    assert_eq!(spread(RuleKind::NoSignificantLoss, CRITERION), Some((30.0, 40.0)));
    // the resamples used p < 0.01
    assert_eq!(spread(RuleKind::NoSignificantLoss, Criterion { alpha: 0.05, ..CRITERION }), None);
    pruning.series[0].runs[0][1].p_value = Some(0.001);
    let stopped = pruning.series[0].removable(pruning.results.judge(CRITERION), RuleKind::NoSignificantLoss);
    assert_eq!(stopped.map(|found| (found.percent, found.power)), Some((0.0, Some(0.5))));
}

/// A run in progress has scored the first and the last step: whether heads in between can be masked is unknown.
#[test]
fn a_gap_hides_the_share() {
    let share = |steps: &[(usize, usize)]| {
        let p_value = |masked| (masked > 0).then_some(0.5);
        let steps =
            steps.iter().map(|&(step, masked)| row(Order::Importance, step, masked, 30.0, p_value(masked)));
        let found = found(&pruning(steps.collect()), RuleKind::NoSignificantLoss, CRITERION);
        found.map(|(percent, is_open, _)| (percent, is_open))
    };
    assert_eq!(share(&[(0, 0), (10, 10)]), None);
    assert_eq!(share(&[(0, 0), (1, 1), (10, 10)]), Some((10.0, true)));
    assert_eq!(share(&[(2, 2), (3, 10)]), None);
    // without the full model the curve has no gap, but it shows nothing
    assert_eq!(share(&[(1, 1), (2, 10)]), Some((0.0, false)));
}

#[test]
fn swap_search_covers_only_one_number_of_heads() {
    let share = |p_value| {
        let swapped = CurveRow { search_score: Some(29.5), ..row(Order::Swap, 5, 5, 29.0, Some(p_value)) };
        let pruning = pruning(vec![row(Order::Swap, 0, 0, 30.0, None), swapped]);
        found(&pruning, RuleKind::NoSignificantLoss, CRITERION).map(|(percent, ..)| percent)
    };
    assert_eq!((share(0.001), share(0.2)), (None, Some(50.0)));
}

/// 0, 10 and 30% of the heads can be masked, so the median is 10; the scores at that step are 27, 28 and 29.
#[test]
fn random_orders_have_a_median_and_a_range() {
    let run = |(seed, last): (u64, usize)| {
        (0..4).map(move |step| CurveRow {
            order_seed: Some(seed),
            ..row(Order::Random, step, step, 30.0 - seed as f64, Some(if step <= last { 0.5 } else { 0.001 }))
        })
    };
    let pruning = pruning([(1, 0), (2, 1), (3, 3)].into_iter().flat_map(run).collect());
    let series = &pruning.series[0];
    let found = series.removable(pruning.results.judge(CRITERION), RuleKind::NoSignificantLoss).unwrap();
    assert_eq!((found.percent, found.range, found.is_open), (10.0, Some((0.0, 30.0)), true));
    assert_eq!((series.score_at(31.0), series.score_at(50.0)), (Some((30.0, 28.0)), None));
}

#[test]
fn complements_and_floors_have_their_own_scores() {
    let importance = row(Order::Importance, 1, 5, 29.0, None);
    let turned = CurveRow { complement: true, score: 25.0, ..importance.clone() };
    let pruning = pruning(vec![importance, turned, row(Order::Floor, 0, 10, 0.5, None)]);
    let series = pruning.find(Scope::All, Order::Importance).unwrap();
    assert_eq!(pruning.complement(series).unwrap().score_at(50.0), Some((50.0, 25.0)));
    assert_eq!((series.score_at(50.0), pruning.floors[&Scope::All].score), (Some((50.0, 29.0)), 0.5));
}

/// The margin is 0.6 points. The interval of step 2 reaches it, step 3 loses more, and the whole interval of step 4 is above it. So 10% are
/// dispensable, 20% are within the margin as measured, and 30% may still be.
#[test]
fn the_share_within_the_margin_is_in_its_interval() {
    let mut pruning =
        curve(&[(1, 29.9, Some(0.5)), (2, 29.5, Some(0.5)), (3, 29.2, Some(0.1)), (4, 28.0, Some(0.001))]);
    let ends = [None, Some((-0.5, 0.3)), Some((-0.9, 0.1)), Some((-1.2, -0.4)), Some((-2.5, -0.7))];
    for (row, ends) in pruning.series[0].runs[0].iter_mut().zip(ends) {
        (row.delta_low, row.delta_high) = ends.unzip();
    }
    let found = |pruning: &Pruning| pruning.series[0].within_margin(pruning.results.judge(CRITERION));
    assert_eq!(found(&pruning), Some(ShareWithinMargin { percent: 20.0, low: 10.0, high: 30.0 }));
    let untested = curve(&[(1, 29.9, None)]);
    assert_eq!(found(&untested), None);
}
