//! Ways to choose heads beside each other. The rows of `train-gates` compare each model with the one before it was trained further;
//! here two models that were trained further are compared, segment by segment.
use records::{GateRow, Method, Row, Testing};
use stats::Segments;
use stats::adjust::holm;
use stats::family::{self, Comparison, Pair, test_pairs};

use crate::error::{Result, no_segments, within};
use crate::gates::Gates;
use crate::results::Results;
use crate::segments::stored;

/// Resamples of a comparison of two models that were trained further, since it is made whenever it is drawn.
const RESAMPLES_OF_CONTRASTS: usize = 10_000;

/// Tests pairs of rows of a file by what is stored of their segments.
pub(crate) fn compared<R: Row>(results: &Results<R>, pairs: &[Pair]) -> Result<Vec<Comparison>> {
    let none = || no_segments(&results.file);
    let Testing { resamples, seed, block, .. } = results.file.testing().ok_or_else(none)?;
    let (_, segments) = stored(results, none)?;
    let testing = family::Testing { resamples: resamples.min(RESAMPLES_OF_CONTRASTS), seed, block };
    let what = || format!("the segments of `{}` cannot be compared", results.file.path.display());
    test_pairs(&segments.iter().collect::<Vec<&Segments>>(), pairs, testing).map_err(within(what))
}

/// Two methods: the score of the first less that of the second, with as many heads, unless the second has all.
pub type Contrast = [Method; 2];

/// Value of the choice of the gates, value of having been trained with all heads, cost of training gates, and
/// all together.
const CONTRASTS: [Contrast; 8] = [
    [Method::Chosen, Method::Importance],
    [Method::Chosen, Method::Random],
    [Method::Importance, Method::Random],
    [Method::Chosen, Method::Scratch],
    [Method::Gates, Method::Chosen],
    [Method::Gates, Method::Importance],
    [Method::Gates, Method::Scratch],
    [Method::Gates, Method::Ungated],
];

/// All contrasts of a file, at each number of heads that gates keep.
#[derive(Debug)]
pub struct Contrasts {
    /// All models that were trained further, and their file.
    pub gates: Gates,
    /// The rows of the gates.
    pub leaders: Vec<GateRow>,
    /// Contrasts that were measured at some number of heads, with as many as each leader has. P-values of a
    /// contrast are adjusted by Holm (1979) for all numbers of heads.
    pub measured: Vec<(Contrast, Vec<Option<Comparison>>)>,
}

impl Contrasts {
    /// Tests what is stored of the segments beside a file of `train-gates`.
    pub fn read(gates: Gates) -> Result<Self> {
        Self::of(gates, compared)
    }

    fn of(gates: Gates, test: impl Fn(&Gates, &[Pair]) -> Result<Vec<Comparison>>) -> Result<Self> {
        let sparser = gates.scopes().into_iter().flat_map(|scope| gates.sparser(scope));
        let leaders: Vec<GateRow> = sparser.cloned().collect();
        let place = |row: &GateRow| gates.rows.iter().position(|own| own.name() == row.name());
        let pair_of = |contrast: Contrast, leader| {
            let [Some(variant), Some(base)] = contrast.map(|method| gates.counterpart(leader, method)) else {
                return None;
            };
            if is_same_training([variant, base]) {
                return None;
            }
            Some(Pair { base: place(base)?, variant: place(variant)? })
        };
        let pairs_of = |contrast| leaders.iter().map(|leader| pair_of(contrast, leader)).collect();
        let pairs: Vec<Vec<Option<Pair>>> = CONTRASTS.map(pairs_of).to_vec();
        let all: Vec<Pair> = pairs.iter().flatten().copied().flatten().collect();
        let mut tested = test(&gates, &all)?.into_iter();
        let mut measured = Vec::new();
        for (contrast, pairs) in CONTRASTS.into_iter().zip(pairs) {
            let mut found: Vec<Option<Comparison>> =
                pairs.into_iter().map(|pair| pair.and_then(|_| tested.next())).collect();
            let p_values = found.iter().flatten().map(|found| found.p_value.unwrap_or(f64::NAN));
            let adjusted = holm(&p_values.collect::<Vec<_>>());
            for (found, adjusted) in found.iter_mut().flatten().zip(&adjusted) {
                found.p_adjusted = found.p_value.and(Some(*adjusted));
            }
            measured.extend((!adjusted.is_empty()).then_some((contrast, found)));
        }
        Ok(Self { gates, leaders, measured })
    }
}

/// `true` if both models were trained with the same heads masked from the first update on: they differ by rounding alone, which says
/// nothing of the choice.
fn is_same_training([one, other]: [&GateRow; 2]) -> bool {
    let is_masked = |row: &GateRow| !matches!(row.method, Method::Gates | Method::Scratch | Method::Ungated);
    is_masked(one) && is_masked(other) && one.kept_heads == other.kept_heads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::tiny;
    use stats::classification::{ClassificationMetric, Outcome};

    fn outcomes(right: [usize; 4]) -> Segments {
        let outcomes = right.map(|predicted| Outcome { gold: 1, predicted }).to_vec();
        Segments::Classes(outcomes, ClassificationMetric::Accuracy)
    }

    /// Two numbers of heads. With 2 of 6 the gates have two of four segments right that all other models have wrong: p = 1/2 -
    /// 1/π by the t-test, as in `significance`, which Holm doubles where the gates are beside them with both numbers.
    #[test]
    fn models_with_as_many_heads_are_compared_and_adjusted_together() {
        let source = Source::subject(&tiny(), "tiny-translation");
        let mut gates = Gates::read(source.one("train-gates").unwrap()).unwrap();
        let row = |method, kept: usize, seed: Option<u64>, score| GateRow {
            method,
            method_seed: seed,
            kept,
            lambda: None,
            target: (method != Method::Ungated).then_some(kept),
            score,
            kept_heads: format!("enc-enc:1:{}", if method == Method::Importance { 1 } else { 2 }),
            ..gates.rows[0].clone()
        };
        let rows = vec![
            row(Method::Gates, 4, None, 0.0),
            row(Method::Gates, 2, None, 50.0),
            row(Method::Importance, 2, None, 0.0),
            row(Method::Chosen, 2, None, 0.0),
            row(Method::Random, 2, Some(1), 100.0),
            row(Method::Random, 2, Some(2), 0.0),
            row(Method::Random, 2, Some(3), 0.0),
            row(Method::Ungated, 6, None, 0.0),
        ];
        gates.rows = rows;
        let of = |row: &GateRow| match (row.method, row.kept, row.method_seed) {
            (Method::Gates, 2, _) => outcomes([1, 1, 0, 0]),
            (Method::Random, _, Some(1)) => outcomes([1; 4]),
            _ => outcomes([0; 4]),
        };
        let test = |gates: &Gates, pairs: &[Pair]| {
            let segments: Vec<Segments> = gates.rows.iter().map(of).collect();
            let systems: Vec<&Segments> = segments.iter().collect();
            Ok(test_pairs(&systems, pairs, family::Testing { resamples: 9, seed: 1, block: 1 }).unwrap())
        };
        let Contrasts { leaders, measured, .. } = Contrasts::of(gates, test).unwrap();
        // What gates chose and what was drawn at random are the same heads here, and so the same training.
        let expected = [
            [Method::Chosen, Method::Importance],
            [Method::Importance, Method::Random],
            [Method::Gates, Method::Chosen],
            [Method::Gates, Method::Importance],
            [Method::Gates, Method::Ungated],
        ];
        assert_eq!(measured.iter().map(|(contrast, _)| *contrast).collect::<Vec<_>>(), expected);
        let deltas = |place: usize| {
            let delta = |(_, found): &(_, Vec<Option<Comparison>>)| found[place].map(|found| found.delta);
            (leaders[place].kept, measured.iter().map(delta).collect::<Vec<_>>())
        };
        // of three random draws that of the median score counts
        assert_eq!(deltas(0), (4, vec![None, None, None, None, Some(0.0)]));
        assert_eq!(deltas(1), (2, vec![Some(0.0), Some(0.0), Some(50.0), Some(50.0), Some(50.0)]));
        let p = 0.5 - std::f64::consts::FRAC_1_PI;
        for (contrast, adjusted) in [(2, p), (3, p), (4, 2.0 * p)] {
            let found = measured[contrast].1[1].unwrap();
            assert!((found.p_value.unwrap() - p).abs() < 1e-12);
            assert!((found.p_adjusted.unwrap() - adjusted).abs() < 1e-12, "{found:?}");
        }
    }
}
