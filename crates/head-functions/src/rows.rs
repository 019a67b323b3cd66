//! Rows of the result file: shares, their intervals, and which heads have which function.
use core_masking::HeadId;
use records::HeadFunctionRow;
use stats::bootstrap::Interval;
use stats::ratio::{RatioStatistics, ResampledShare, best, resampled_shares};

use crate::function::{Baseline, Candidate, Function, View, sum};

/// Returns the rows of a function, one for each head.
///
/// - `resamples`: number of resamples of the sentences, for intervals
///
/// # Errors
/// Without sentences, or if a weight is not a number.
pub fn rows(
    function: Function,
    heads: &[HeadId],
    view: &View<'_>,
    resamples: usize,
) -> Result<Vec<HeadFunctionRow>, stats::Error> {
    let (candidates, baseline) = (function.candidates(view), function.baseline(view));
    let counts: Vec<Vec<RatioStatistics>> =
        candidates.iter().map(|candidate| candidate.counts.clone()).collect();
    let none = vec![RatioStatistics::default(); view.sentences.len()];
    let beside = baseline.as_ref().map_or(&none, |baseline| &baseline.counts);
    let shares = resampled_shares(beside, &counts, resamples, view.seed)?;
    let best = best(&shares);
    let of_head = |(place, &id): (usize, &HeadId)| {
        let of = Found { share: &shares[place], best: best[place], candidate: &candidates[place] };
        row(function, id, &of, baseline.as_ref())
    };
    Ok(heads.iter().enumerate().map(of_head).collect())
}

/// Counts and shares of a head and a function.
struct Found<'a> {
    candidate: &'a Candidate,
    share: &'a ResampledShare,
    best: Option<f64>,
}

fn row(function: Function, id: HeadId, found: &Found<'_>, baseline: Option<&Baseline>) -> HeadFunctionRow {
    let Found { candidate, share, best } = found;
    let total = sum(&candidate.counts);
    let beside = baseline.map(|baseline| sum(&baseline.counts));
    let usual = beside.map(|beside| beside.numerator / beside.denominator);
    let holds = function.holds(total, beside);
    let shuffled = candidate.expected.map(|expected| expected / total.denominator.max(1.0));
    let (interval, margin) = (share.interval(), baseline.and_then(|_| share.margin_interval()));
    let is_rare = matches!(function, Function::Rare { .. });
    // without an interval the share itself must exceed chance
    let least = interval.map_or(share.share, |interval| interval.low);
    let is_chance = shuffled.is_some_and(|shuffled| least <= shuffled);
    let points = |end: fn(Interval) -> f64| margin.map(|margin| 100.0 * end(margin));
    let (attention, layer, head) = id.numbers();
    HeadFunctionRow {
        attention,
        layer,
        head,
        function: function.name(),
        detail: candidate.detail.clone(),
        numerator: total.numerator,
        denominator: total.denominator,
        share: share.share,
        share_low: interval.map(|interval| interval.low),
        share_high: interval.map(|interval| interval.high),
        best: *best,
        shuffled,
        baseline_position: baseline.map(|baseline| baseline.position),
        baseline: usual,
        margin_points: usual.map(|usual| 100.0 * (share.share - usual)),
        margin_points_low: points(|margin| margin.low),
        margin_points_high: points(|margin| margin.high),
        margin_percent: usual.filter(|&usual| usual > 0.0).map(|usual| 100.0 * (share.share / usual - 1.0)),
        holds: holds.threshold.map(|holds| holds && !(is_rare && is_chance)),
        holds_relative: holds.relative,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::SentenceAttention;
    use crate::attention::tests::looking_at;
    use crate::sentence::Sentence;
    use crate::sentence::tests::of_words;
    use crate::syntactic::DIRECTIONS;

    fn view<'a>(sentences: &'a [Sentence], attention: &'a [Vec<SentenceAttention>]) -> View<'a> {
        View { sentences, attention, ranks: None, frequent: 500, is_first: false, seed: 1 }
    }

    /// Forty sentences of three words. The subject is the first word; its verb is the third in thirty of them and the second in ten. One
    /// head finds all subjects, the other every second (20 of 40). The usual position, two words before, gives 30.
    #[test]
    fn a_row_has_the_share_its_interval_and_the_margin() {
        let verb = |number: usize| if number.is_multiple_of(4) { 1 } else { 2 };
        let sentences: Vec<_> =
            (0..40).map(|number| of_words(3, &[(0, "nsubj", verb(number))], true)).collect();
        let heads: Vec<HeadId> = ["self:1:1", "self:1:2"].map(|name| name.parse().unwrap()).to_vec();
        let attention = [1, 2].map(|every| {
            let key = |number: usize| if number.is_multiple_of(every) { 0 } else { verb(number) };
            let of = |(number, sentence)| looking_at(sentence, &[key(number); 4]);
            sentences.iter().enumerate().map(of).collect::<Vec<_>>()
        });
        let view = view(&sentences, &attention);
        let rows = rows(Function::Syntactic(DIRECTIONS[0]), &heads, &view, 400).unwrap();
        assert_eq!((rows[0].numerator, rows[0].denominator, rows[0].share), (40.0, 40.0, 1.0));
        assert_eq!((rows[0].baseline_position, rows[0].baseline), (Some(-2), Some(0.75)));
        let holds = [rows[0].holds, rows[0].holds_relative];
        assert_eq!((rows[0].margin_points, holds), (Some(25.0), [Some(true); 2]));
        assert!((rows[0].margin_percent.unwrap() - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!((rows[0].share_low, rows[0].share_high, rows[0].best), (Some(1.0), Some(1.0), Some(1.0)));
        // with two other words, a shuffled subject is hit in half of the shuffles
        assert_eq!(rows[0].shuffled, Some(0.5));
        assert_eq!((rows[1].share, rows[1].best, rows[1].holds), (0.5, Some(0.0), Some(false)));
        assert_eq!(rows[1].shuffled, Some(0.25), "it looks at the verb itself in the other half");
        // a standard deviation of sqrt(0.25 / 40) = 0.079
        let (low, high) = (rows[1].share_low.unwrap(), rows[1].share_high.unwrap());
        assert!((0.28..0.42).contains(&low) && (0.58..0.72).contains(&high), "{low} {high}");
        assert_eq!(rows[1].margin_points, Some(-25.0));
        let margin = (rows[1].margin_points_low.unwrap(), rows[1].margin_points_high.unwrap());
        assert!(margin.0 < -25.0 && margin.1 > -25.0, "{margin:?}");
        assert_eq!(
            crate::summary::lines(rows.iter()),
            [
                "syntactic nsubj:verb->subject: best head self:1:1 with 100.0% (100.0 to 100.0), best in 100% of resamples; \
                 position -2 alone 75.0%; shuffled 50.0%",
                "self layer 1: 2 heads, of which 1 syntactic",
            ]
        );
    }

    /// Two heads tie in the first resample, neither has a share in the second, and only the second head has one in the third.
    #[test]
    fn the_best_is_told_where_there_is_one() {
        let share = |resampled: [Option<f64>; 3]| ResampledShare {
            share: 0.5,
            resampled: resampled.to_vec(),
            margins: Vec::new(),
        };
        let shares = [share([Some(0.5), None, None]), share([Some(0.5), None, Some(0.25)])];
        assert_eq!(best(&shares), [Some(0.5), Some(1.0)]);
        assert_eq!(best(&[share([None; 3])]), [None]);
    }
}
