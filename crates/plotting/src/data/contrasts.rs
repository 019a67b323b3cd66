//! Ways to choose heads beside each other. The rows of `train-gates` compare each model with the one before it was trained on;
//! here two models that were trained on are compared, segment by segment.
use std::collections::BTreeMap;

use anyhow::{Context as _, Error, Result};
use records::{GateRow, Method, Row as _};
use stats::Segments;
use stats::adjust::holm;
use stats::family::{Comparison, Testing, test_family};

use super::gates::Gates;
use super::segments::stored;
use crate::error::Fault;

/// Two methods: the score of the first less that of the second, with as many heads, unless the second has all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contrast {
    pub of: Method,
    pub less: Method,
}

impl Contrast {
    /// What the choice of the gates is worth, what it costs to train them, and both together.
    pub const ALL: [Self; 7] = [
        Self { of: Method::Chosen, less: Method::Importance },
        Self { of: Method::Chosen, less: Method::Random },
        Self { of: Method::Importance, less: Method::Random },
        Self { of: Method::Gates, less: Method::Chosen },
        Self { of: Method::Gates, less: Method::Importance },
        Self { of: Method::Gates, less: Method::Scratch },
        Self { of: Method::Gates, less: Method::Ungated },
    ];
}

/// All contrasts of a file, at each number of heads that gates leave.
#[derive(Debug)]
pub struct Contrasts {
    pub gates: Gates,
    /// Those that were measured at some number of heads.
    pub measured: Vec<Contrast>,
    /// The row of the gates, and each contrast that was measured with as many heads. P-values of a contrast are adjusted by
    /// Holm (1979) for all numbers of heads.
    pub rows: Vec<(GateRow, Vec<Option<Comparison>>)>,
}

impl Contrasts {
    /// Tests what is stored of the segments beside a file of `train-gates`.
    pub fn read(gates: Gates) -> Result<Self> {
        let none = || -> Error {
            let path = gates.file.path.display();
            Fault::NoResults(format!("`{path}` has no statistics of its segments beside it")).into()
        };
        let testing =
            gates.file.signature.as_ref().and_then(|signature| signature.testing).ok_or_else(none)?;
        let (_, segments) = stored(&gates, none)?;
        let segments = gates.rows.iter().map(GateRow::name).zip(segments).collect();
        let testing = Testing { resamples: testing.resamples, seed: testing.seed };
        let (measured, rows) = compare(&gates, &segments, testing)
            .with_context(|| format!("the segments of `{}` cannot be compared", gates.file.path.display()))?;
        Ok(Self { gates, measured, rows })
    }
}

type Found = (Vec<Contrast>, Vec<(GateRow, Vec<Option<Comparison>>)>);

/// `segments`: of each row, by its name.
fn compare(gates: &Gates, segments: &BTreeMap<String, Segments>, testing: Testing) -> Result<Found> {
    let row_of = |leader: &GateRow, method: Method| match method {
        Method::Gates => Some(leader.name()),
        Method::Ungated => gates.of(leader.attention, method).first().map(|row| row.name()),
        _ => gates.beside_with(leader, method).map(GateRow::name),
    };
    let difference = |leader: &GateRow, contrast: &Contrast| -> Result<Option<Comparison>> {
        let both = row_of(leader, contrast.less).zip(row_of(leader, contrast.of));
        let Some((base, variant)) = both else { return Ok(None) };
        Ok(test_family(&segments[&base], &[&segments[&variant]], testing)?.pop())
    };
    let mut rows = Vec::new();
    for leader in gates.scopes().into_iter().flat_map(|scope| gates.sparser(scope)) {
        let found = Contrast::ALL.iter().map(|contrast| difference(leader, contrast));
        rows.push((leader.clone(), found.collect::<Result<Vec<_>>>()?));
    }
    let is_measured = |place: &usize| rows.iter().any(|(_, found)| found[*place].is_some());
    let places: Vec<usize> = (0..Contrast::ALL.len()).filter(is_measured).collect();
    for (_, found) in &mut rows {
        *found = places.iter().map(|&place| found[place]).collect();
    }
    for place in 0..places.len() {
        let of_contrast = rows.iter_mut().filter_map(|(_, found)| found[place].as_mut());
        let of_contrast: Vec<&mut Comparison> = of_contrast.collect();
        let p_values: Vec<f64> = of_contrast.iter().map(|found| found.p_value.unwrap_or(f64::NAN)).collect();
        for (found, adjusted) in of_contrast.into_iter().zip(holm(&p_values)) {
            found.p_adjusted = found.p_value.and(Some(adjusted));
        }
    }
    Ok((places.into_iter().map(|place| Contrast::ALL[place]).collect(), rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::folder;
    use crate::source::Source;
    use stats::classification::{ClassificationMetric, Outcome};

    fn outcomes(right: [usize; 4]) -> Segments {
        let outcomes = right.map(|predicted| Outcome { gold: 1, predicted }).to_vec();
        Segments::Classes(outcomes, ClassificationMetric::Accuracy)
    }

    /// Two numbers of heads. With 2 of 6 the gates have two of four segments right that all other models have wrong: p = 1/2 -
    /// 1/π by the t-test, as in `significance`, which Holm doubles where the gates are beside them with both numbers.
    #[test]
    fn models_with_as_many_heads_are_compared_and_adjusted_together() {
        let source = Source::subject(&folder("tests/results"), "tiny-translation");
        let mut gates = Gates::read(source.one("train-gates").unwrap()).unwrap();
        let row = |method, kept: usize, seed: Option<u64>, score| GateRow {
            method,
            method_seed: seed,
            kept,
            lambda: None,
            target: (method != Method::Ungated).then_some(kept),
            score,
            ..gates.rows[0].clone()
        };
        let rows = vec![
            row(Method::Gates, 4, None, 0.0),
            row(Method::Gates, 2, None, 50.0),
            row(Method::Importance, 2, None, 0.0),
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
        let segments = gates.rows.iter().map(|row| (row.name(), of(row))).collect();
        let testing = Testing { resamples: 9, seed: 1 };
        let (measured, rows) = compare(&gates, &segments, testing).unwrap();
        let pair = |of, less| Contrast { of, less };
        let expected = [
            pair(Method::Importance, Method::Random),
            pair(Method::Gates, Method::Importance),
            pair(Method::Gates, Method::Ungated),
        ];
        assert_eq!(measured, expected);
        let deltas = |place: usize| {
            let (leader, found) = &rows[place];
            let delta = |found: &Option<Comparison>| found.map(|found| found.delta);
            (leader.kept, found.iter().map(delta).collect::<Vec<_>>())
        };
        // of three random draws that of the median score counts
        assert_eq!(deltas(0), (4, vec![None, None, Some(0.0)]));
        assert_eq!(deltas(1), (2, vec![Some(0.0), Some(50.0), Some(50.0)]));
        let p = 0.5 - std::f64::consts::FRAC_1_PI;
        for (place, adjusted) in [(1, p), (2, 2.0 * p)] {
            let found = rows[1].1[place].unwrap();
            assert!((found.p_value.unwrap() - p).abs() < 1e-12);
            assert!((found.p_adjusted.unwrap() - adjusted).abs() < 1e-12, "{found:?}");
        }
    }
}
