//! Compares ways to choose heads: models with further training with each other, not with the model before as in `train-gates`.
use charts::scale::extent;
use records::{GateRow, Method, Row, TestedRow};
use stats::Segments;
use stats::adjust::holm;
use stats::family::{self, Comparison, Pair, test_family, test_pairs};

use crate::findings::error::{LeftOut, Result, incomparable, no_segments};
use crate::findings::gates::Gates;
use crate::findings::results::{Results, distinct};
use crate::findings::segments::stored;

/// Swaps and resamples of a comparison, which every drawing repeats: [`SWAPS`](stats::swaps::SWAPS) would take seven times as long.
pub(crate) const RESAMPLES: usize = 10_000;

/// Returns the stored segments of each row of a file, and its test settings.
fn measured<R: Row>(results: &Results<R>) -> Result<(Vec<Segments>, family::Testing)> {
    let none = || no_segments(&results.file);
    let testing = results.file.testing().ok_or_else(none)?.of_segments();
    let (_, segments) = stored(results, none)?;
    Ok((segments, family::Testing { resamples: testing.resamples.min(RESAMPLES), ..testing }))
}

/// Tests pairs of rows of a file by their stored segments.
fn compared<R: Row>(results: &Results<R>, pairs: &[Pair]) -> Result<Vec<Comparison>> {
    let (segments, testing) = measured(results)?;
    let systems: Vec<&Segments> = segments.iter().collect();
    test_pairs(&systems, pairs, testing).map_err(incomparable(&results.file))
}

/// Adjusts the p-values of tests by Holm (1979).
pub(crate) fn adjust(tests: Vec<&mut Comparison>) {
    let p_values: Vec<f64> = tests.iter().map(|test| test.p_value.unwrap_or(f64::NAN)).collect();
    for (test, adjusted) in tests.into_iter().zip(holm(&p_values)) {
        test.p_adjusted = test.p_value.and(Some(adjusted));
    }
}

/// Compares rows with their baseline, which had equal further training with all heads, instead of the model before training. Families are
/// tested again from their stored segments. Baselines, rows without one, and files without segments are not tested.
///
/// - `is_control`: `true` if the first row is the baseline of the second
pub(crate) fn against_control<R: TestedRow>(
    mut results: Results<R>,
    is_control: impl Fn(&R, &R) -> bool,
    left_out: &mut LeftOut,
) -> Results<R> {
    let control_of = |row: &R| results.rows.iter().position(|other| is_control(other, row));
    let controls: Vec<Option<usize>> = results.rows.iter().map(control_of).collect();
    let scores: Vec<f64> = results.rows.iter().map(|row| row.tests().variant).collect();
    let tested = left_out.keep_if_there(measured(&results));
    for (row, control) in results.rows.iter_mut().zip(&controls) {
        let tests = row.tests();
        row.record(&Comparison::untested(
            control.map_or(tests.base, |control| scores[control]),
            tests.variant,
        ));
    }
    let Some((segments, testing)) = tested else { return results };
    let mut tests = Vec::new();
    for family in distinct(results.rows.iter().map(TestedRow::family)) {
        let of_family = (0..controls.len()).filter(|&place| results.rows[place].family() == family);
        let (places, control): (Vec<usize>, Vec<usize>) = of_family
            .filter_map(|place| Some((place, controls[place]?)))
            .filter(|(one, other)| one != other)
            .unzip();
        let Some(&control) = control.first() else { continue };
        let variants: Vec<&Segments> = places.iter().map(|&place| &segments[place]).collect();
        let compared = test_family(&segments[control], &variants, testing, 0.0);
        let compared = compared.map_err(incomparable(&results.file));
        tests.extend(places.into_iter().zip(left_out.keep(compared).unwrap_or_default()));
    }
    tests.iter().for_each(|(place, tests)| results.rows[*place].record(tests));
    results
}

/// Scores of models whose heads were drawn at random, or differences from these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draws {
    /// Number of draws.
    pub count: usize,
    /// Mean of the draws.
    pub mean: f64,
    /// Minimum and maximum.
    pub range: (f64, f64),
}

impl Draws {
    /// Number of draws needed to call a choice better or worse than random.
    pub const ENOUGH: usize = 5;

    /// Summarises draws; `None` without any.
    pub fn of(scores: impl IntoIterator<Item = f64>) -> Option<Self> {
        let scores: Vec<f64> = scores.into_iter().collect();
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        (!scores.is_empty()).then(|| Self {
            count: scores.len(),
            mean,
            range: extent(scores.iter().copied()),
        })
    }

    /// `true` if there are enough draws and the score is outside their range.
    pub fn exclude(&self, score: f64) -> bool {
        self.count >= Self::ENOUGH && !(self.range.0..=self.range.1).contains(&score)
    }
}

/// Score of the first method minus the score of the second with as many heads, or with all for [`Method::Ungated`].
pub type Contrast = [Method; 2];

/// Value of the gates' choice, value of having trained with all heads, cost of training gates, and the three combined.
const CONTRASTS: [Contrast; 6] = [
    [Method::Chosen, Method::Importance],
    [Method::Chosen, Method::Scratch],
    [Method::Gates, Method::Chosen],
    [Method::Gates, Method::Importance],
    [Method::Gates, Method::Scratch],
    [Method::Gates, Method::Ungated],
];

/// Methods that are compared with random draws.
const CHOICES: [Method; 3] = [Method::Chosen, Method::Importance, Method::Gates];

/// All contrasts of a file, at each number of heads that gates keep.
#[derive(Debug)]
pub struct Contrasts {
    /// All models with further training, and their file.
    pub gates: Gates,
    /// The rows of the gates.
    pub leaders: Vec<GateRow>,
    /// Contrasts that were measured, with one entry per leader; p-values are adjusted by Holm (1979) over the numbers of heads.
    pub measured: Vec<(Contrast, Vec<Option<Comparison>>)>,
    /// Scores of a method minus those of random draws, with one entry per leader.
    pub draws: Vec<(Method, Vec<Option<Draws>>)>,
}

impl Contrasts {
    /// Tests the stored segments of a file of `train-gates`.
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
            adjust(found.iter_mut().flatten().collect());
            measured.extend(found.iter().any(Option::is_some).then_some((contrast, found)));
        }
        let draws_of = |method: Method| {
            let of = |leader| {
                let own = gates.counterpart(leader, method)?;
                let others = gates.draws(leader).filter(|other| !is_same_training([own, other]));
                Draws::of(others.map(|other| own.score - other.score))
            };
            (method, leaders.iter().map(of).collect::<Vec<_>>())
        };
        let mut draws = CHOICES.map(draws_of).to_vec();
        draws.retain(|(_, found)| found.iter().any(Option::is_some));
        Ok(Self { gates, leaders, measured, draws })
    }
}

/// `true` if both models were trained with the same heads masked from the first update on: they then differ only by rounding.
fn is_same_training([one, other]: [&GateRow; 2]) -> bool {
    let is_masked = |row: &GateRow| !matches!(row.method, Method::Gates | Method::Scratch | Method::Ungated);
    is_masked(one) && is_masked(other) && one.kept_heads == other.kept_heads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::source::Source;
    use crate::findings::tiny;
    use stats::classification::{ClassificationMetric, Outcome};

    fn outcomes(right: [usize; 4]) -> Segments {
        let outcomes = right.map(|predicted| Outcome { gold: 1, predicted }).to_vec();
        Segments::Classes(outcomes, ClassificationMetric::Accuracy)
    }

    /// With 2 of 6 heads, the gates answer two of four segments correctly that all other models answer wrongly: p = 1/2 - 1/π by the
    /// t-test, as in `significance`. Holm doubles it if the gates have a counterpart at both numbers of heads.
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
        let Contrasts { leaders, measured, draws, .. } = Contrasts::of(gates, test).unwrap();
        use Method::{Chosen, Gates as Gated, Importance, Ungated};
        let expected = [[Chosen, Importance], [Gated, Chosen], [Gated, Importance], [Gated, Ungated]];
        assert_eq!(measured.iter().map(|(contrast, _)| *contrast).collect::<Vec<_>>(), expected);
        let deltas = |place: usize| {
            let delta = |(_, found): &(_, Vec<Option<Comparison>>)| found[place].map(|found| found.delta);
            (leaders[place].kept, measured.iter().map(delta).collect::<Vec<_>>())
        };
        assert_eq!(deltas(0), (4, vec![None, None, None, Some(0.0)]));
        assert_eq!(deltas(1), (2, vec![Some(0.0), Some(50.0), Some(50.0), Some(50.0)]));
        // the gates' choice and a random draw are the same heads here, and so the same model
        let three = |mean, low, high| vec![None, Some(Draws { count: 3, mean, range: (low, high) })];
        let importance = (Method::Importance, three(-100.0 / 3.0, -100.0, 0.0));
        assert_eq!(draws, [importance, (Method::Gates, three(50.0 / 3.0, -50.0, 50.0))]);
        let p = 0.5 - std::f64::consts::FRAC_1_PI;
        for (contrast, adjusted) in [(1, p), (2, p), (3, 2.0 * p)] {
            let found = measured[contrast].1[1].unwrap();
            assert!((found.p_value.unwrap() - p).abs() < 1e-12);
            assert!((found.p_adjusted.unwrap() - adjusted).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn a_choice_is_compared_with_five_draws_or_not_at_all() {
        let few = Draws::of([1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!(!few.exclude(9.0) && Draws::of([]).is_none());
        let enough = Draws::of([5.0, 1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(enough, Draws { count: 5, mean: 3.0, range: (1.0, 5.0) });
        assert_eq!(
            [0.9, 1.0, 3.0, 5.0, 5.1].map(|score| enough.exclude(score)),
            [true, false, false, false, true]
        );
    }
}
