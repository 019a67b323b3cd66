//! Agreement of two sweeps over common heads, and its noise ceiling (Michel et al. 2019, Section 3.4, Figure 2).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use records::signature::Testing;
use records::{
    AblationRow, Attention, BASE, CorrelationRow, Identity, Row, Scope, Signature, Stored, TestedRow,
};
use serde_json::Value;
use stats::Segments;
use stats::bootstrap::Interval;
use stats::correlation::{Correlation, most_influential, pearson, spearman};
use stats::reliability::{SweepSegments, ceiling, correlation_intervals, split_half};

use crate::{Error, Store, metric_of};

/// Number of heads of each split whose overlap is counted.
const TOP: usize = 10;

const SPLITS: usize = 100;

/// A sweep of `ablate-one` with the statistics of its segments.
#[derive(Debug)]
pub struct Sweep {
    path: PathBuf,
    identity: Identity,
    rows: Vec<AblationRow>,
    base: Segments,
    variants: Vec<Segments>,
}

impl Sweep {
    /// Reads a result file of `ablate-one`, its signature and its statistics.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let stored = Stored::<AblationRow>::complete(path)?.filter(|stored| !stored.blocks.is_empty());
        let none = || {
            let path = path.display();
            Error::Invalid(format!("`{path}` has no statistics of segments: --again measures them"))
        };
        let Stored { rows, blocks, signature: Signature { identity, measured, .. }, .. } =
            stored.ok_or_else(none)?;
        let (rows, measured) = (rows.into_values().collect::<Vec<_>>(), measured.ok_or_else(none)?);
        let mut store = Store::new(&blocks, metric_of(&measured)?);
        let base = store.base(BASE)?;
        let variants = rows.iter().map(|row| store.variant(&row.name(), BASE)).collect::<Result<_, _>>()?;
        Ok(Self { path: path.to_owned(), identity, rows, base, variants })
    }

    /// Refuses a sweep whose model, data or settings differ from those of the comparison in the file at `path`.
    ///
    /// - `split`: expected split, with the expected arguments
    pub(crate) fn check_fits(
        &self,
        path: &Path,
        comparison: &Identity,
        (split, arguments): (&str, &BTreeMap<String, Value>),
    ) -> Result<(), Error> {
        let own = &self.identity;
        let is_same = (&own.subject, &own.weights, &own.precision, own.limit, &own.metric)
            == (
                &comparison.subject,
                &comparison.weights,
                &comparison.precision,
                comparison.limit,
                &comparison.metric,
            );
        let has_data = own.data.iter().all(|(name, sum)| comparison.data.get(name) == Some(sum));
        let has_arguments = own.arguments.iter().all(|(name, value)| arguments.get(name) == Some(value));
        if is_same && has_data && has_arguments && own.split == split {
            Ok(())
        } else {
            let (sweep, path) = (self.path.display(), path.display());
            Err(Error::Invalid(format!(
                "`{sweep}` differs from `{path}` in model, data or settings: measure it again with --again"
            )))
        }
    }

    fn ordered(&self, names: &[String]) -> Result<Side<'_>, Error> {
        let mut side = Side { base: &self.base, rows: Vec::new(), variants: Vec::new() };
        for name in names {
            let place = self.rows.iter().position(|row| row.name() == *name);
            let place = place.ok_or_else(|| no_row(name))?;
            side.rows.push(&self.rows[place]);
            side.variants.push(&self.variants[place]);
        }
        Ok(side)
    }
}

pub(crate) fn no_row(row: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("there is no row for `{row}` on the second split"))
}

struct Side<'a> {
    base: &'a Segments,
    rows: Vec<&'a AblationRow>,
    variants: Vec<&'a Segments>,
}

impl Side<'_> {
    fn segments(&self) -> SweepSegments<'_> {
        SweepSegments { base: self.base, variants: &self.variants }
    }

    /// Returns the scores with the sign that makes higher better.
    fn gains(&self) -> Vec<f64> {
        self.rows.iter().map(|row| row.direction().gain(row.score)).collect()
    }
}

/// Returns a row for all heads of the first sweep, and one for each attention type, in the order of its first head.
///
/// # Errors
/// If a head has no row in the second sweep, or nothing can be correlated.
pub fn agreement(first: &Sweep, second: &Sweep, testing: Testing) -> Result<Vec<CorrelationRow>, Error> {
    let mut types: Vec<Attention> = Vec::new();
    for row in &first.rows {
        if !types.contains(&row.attention) {
            types.push(row.attention);
        }
    }
    let names = |attention: Option<Attention>| -> Vec<String> {
        let rows =
            first.rows.iter().filter(|row| attention.is_none_or(|attention| row.attention == attention));
        rows.map(Row::name).collect()
    };
    let mut rows = vec![row(Scope::All, first, second, &names(None), testing)?];
    for attention in types {
        rows.push(row(Scope::One(attention), first, second, &names(Some(attention)), testing)?);
    }
    Ok(rows)
}

fn row(
    scope: Scope,
    first: &Sweep,
    second: &Sweep,
    names: &[String],
    testing: Testing,
) -> Result<CorrelationRow, Error> {
    let (first, second) = (first.ordered(names)?, second.ordered(names)?);
    let (Some(first_base), Some(second_base)) = (first.rows.first(), second.rows.first()) else {
        return Err(no_row(scope));
    };
    // If the tasks have opposite directions, raw scores would correlate with the wrong sign.
    let (x, y) = (first.gains(), second.gains());
    let (pearson, spearman) = (known(pearson(&x, &y))?, known(spearman(&x, &y))?);
    let reliability = |side: &Side<'_>| split_half(side.segments(), SPLITS, testing.seed);
    let reliabilities = [reliability(&first)?, reliability(&second)?];
    let intervals = correlation_intervals(first.segments(), second.segments(), reliabilities, testing.seed)?;
    let is_opposite = first_base.direction() != second_base.direction();
    let ends = |ends: Interval| if is_opposite { (-ends.high, -ends.low) } else { (ends.low, ends.high) };
    let (low, high) = intervals.pearson.map(ends).unzip();
    let (ceiling_low, ceiling_high) = intervals.ceiling.map(|ends| (ends.low, ends.high)).unzip();
    let influence = most_influential(&x, &y);
    let top = TOP.min(names.len());
    Ok(CorrelationRow {
        attention: scope,
        heads: names.len(),
        metric: first_base.metric,
        first_base_score: first_base.base_score,
        second_base_score: second_base.base_score,
        pearson: pearson.map(|found| found.coefficient),
        pearson_p_value: pearson.map(|found| found.p_value),
        pearson_low: low,
        pearson_high: high,
        first_reliability: reliabilities[0],
        second_reliability: reliabilities[1],
        pearson_ceiling: ceiling(reliabilities[0], reliabilities[1]),
        pearson_ceiling_low: ceiling_low,
        pearson_ceiling_high: ceiling_high,
        spearman: spearman.map(|found| found.coefficient),
        spearman_p_value: spearman.map(|found| found.p_value),
        influential_head: influence.map(|found| names[found.place].clone()),
        pearson_without: influence.and_then(|found| found.pearson),
        spearman_without: influence.and_then(|found| found.spearman),
        top,
        top_overlap: overlap(&x, &y, top),
        top_overlap_by_chance: (top * top) as f64 / names.len() as f64,
    })
}

/// Returns the correlation; `None` if one side does not vary or there are too few heads.
fn known(found: Result<Correlation, stats::Error>) -> Result<Option<Correlation>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(stats::Error::NoSpread | stats::Error::TooFew) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns how many heads have one of the `top` lowest values on both sides: the mean over all ways to break ties.
fn overlap(first: &[f64], second: &[f64], top: usize) -> f64 {
    shares(first, top).into_iter().zip(shares(second, top)).map(|(first, second)| first * second).sum()
}

/// Returns the share of all ways to break ties in which a value is among the `top` lowest: 1, 0, or in between for ties at the edge.
fn shares(scores: &[f64], top: usize) -> Vec<f64> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(&edge) = top.checked_sub(1).and_then(|last| sorted.get(last)) else {
        return vec![0.0; scores.len()];
    };
    let below = sorted.iter().filter(|&&score| score < edge).count();
    let ties = sorted.iter().filter(|&&score| score == edge).count();
    let share = |&score: &f64| match score.total_cmp(&edge) {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => (top - below) as f64 / ties as f64,
        std::cmp::Ordering::Greater => 0.0,
    };
    scores.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::classification::{ClassificationMetric, Outcome};
    use stats::nats::NatsStatistics;

    /// Heads 0 and 1 cost most on the first side. On the second, head 1 costs most, and heads 0 and 2 tie for the second place: 1 + 1/2. If
    /// nothing differs, the overlap is that expected by chance: top² / heads.
    #[test]
    fn ties_count_with_their_mean_over_all_orders() {
        let (first, second) = ([1.0, 2.0, 3.0, 4.0], [5.0, 0.0, 5.0, 9.0]);
        assert_eq!(overlap(&first, &second, 2), 1.5);
        assert_eq!(overlap(&first, &[4.0, 3.0, 2.0, 1.0], 2), 0.0);
        assert_eq!(overlap(&first, &second, 4), 4.0);
        assert!((overlap(&[7.0; 5], &[7.0, 8.0, 9.0, 10.0, 11.0], 2) - 4.0 / 5.0).abs() < 1e-12);
    }

    /// Returns a sweep; the first four heads are `enc-enc`.
    fn sweep(attention: &str, base: Segments, variants: Vec<Segments>) -> Sweep {
        let row = |(head, variant): (usize, &Segments)| {
            let attention = if head < 4 { "enc-enc" } else { attention };
            let [base, score] = [&base, variant].map(|segments| segments.score().unwrap());
            let head = format!("{attention}:1:{}", head + 1).parse().unwrap();
            AblationRow::untested(head, variant.metric().name(), base, score)
        };
        let rows = variants.iter().enumerate().map(row).collect();
        let identity = Identity::new("ablate-one", "tiny");
        Sweep { path: PathBuf::from("ablate-one.csv"), identity, rows, base, variants }
    }

    /// Returns a sweep whose heads make these numbers of segments wrong.
    fn accuracy_sweep(attention: &str, examples: usize, wrong: &[usize]) -> Sweep {
        let segments = |wrong: usize| {
            let outcome = |n: usize| Outcome { gold: 1, predicted: usize::from(n >= wrong) };
            Segments::Classes((0..examples).map(outcome).collect(), ClassificationMetric::Accuracy)
        };
        sweep(attention, segments(0), wrong.iter().map(|&wrong| segments(wrong)).collect())
    }

    /// Twelve heads, each costing 1 nat more per document and making 1 more segment wrong, apart from the last four: accuracy falls as
    /// the nats rise. Correlations are 1 - Σ d² / (2 Σ (x - x̄)²) with differences d of 2. Of the ten heads that cost most, only 8 would be in
    /// common if the lowest nats counted as most expensive.
    #[test]
    fn heads_that_cost_on_both_sides_agree_whatever_the_direction_of_the_metric() {
        let segments = |cost: u32| {
            let document = |n: u32| NatsStatistics::new(f64::from(n + cost), 10 + n, 10).unwrap();
            Segments::Nats((1..9).map(document).collect())
        };
        let nats = sweep("self", segments(0), (1..13).map(segments).collect());
        let accuracy = accuracy_sweep("self", 16, &[1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 9, 10]);
        let found = &agreement(&nats, &accuracy, TESTING).unwrap()[0];
        for correlation in [found.pearson, found.spearman] {
            assert!((correlation.unwrap() - (1.0 - 16.0 / 286.0)).abs() < 1e-12, "{found:?}");
        }
        assert!(found.pearson_low < found.pearson && found.pearson < found.pearson_high, "{found:?}");
        assert_eq!(found.top_overlap, 10.0);
    }

    #[test]
    fn a_sweep_of_something_else_does_not_fit() {
        let mut sweep = accuracy_sweep("dec-dec", 12, &[1, 2, 3]);
        sweep.identity = Identity {
            split: "test".to_owned(),
            limit: Some(100),
            arguments: [("rescale".to_owned(), false.into())].into(),
            data: [("test".to_owned(), "cd34".to_owned())].into(),
            ..sweep.identity
        };
        let mut comparison = Identity { experiment: "cross-domain".to_owned(), ..sweep.identity.clone() };
        comparison.arguments.insert("against".to_owned(), "shifted".into());
        comparison.data.insert("shifted".to_owned(), "ef56".to_owned());
        let fits = |comparison: &Identity, split: &str, arguments: &BTreeMap<String, Value>| {
            sweep.check_fits(Path::new("c.csv"), comparison, (split, arguments))
        };
        assert!(fits(&comparison, "test", &comparison.arguments).is_ok());
        assert!(fits(&comparison, "shifted", &comparison.arguments).is_err());
        // separate arguments for the second split
        let other = Identity { arguments: BTreeMap::new(), ..comparison.clone() };
        assert!(fits(&other, "test", &comparison.arguments).is_ok());
        let arguments = [("rescale".to_owned(), true.into())].into();
        let data = [("test".to_owned(), "ab12".to_owned())].into();
        for other in [
            Identity { weights: Some("ab12".to_owned()), ..comparison.clone() },
            Identity { precision: "f16".to_owned(), ..comparison.clone() },
            Identity { limit: None, ..comparison.clone() },
            Identity { metric: "another".to_owned(), ..comparison.clone() },
            Identity { arguments, ..comparison.clone() },
            Identity { data, ..comparison.clone() },
        ] {
            let error = fits(&other, "test", &other.arguments).unwrap_err().to_string();
            assert!(error.starts_with("`ablate-one.csv` differs from `c.csv` in model"), "{error}");
        }
    }

    const TESTING: Testing = Testing { resamples: 40, seed: 1, margin_percent: 2.0, block: 1 };

    /// enc-enc: 1, 2, 3, 4 and 2, 4, 6, 8 wrong segments, r = 1; dec-dec does not vary on the second split.
    #[test]
    fn each_type_is_compared_by_itself_and_all_together() {
        let first = accuracy_sweep("dec-dec", 12, &[1, 2, 3, 4, 5, 6]);
        let mut second = accuracy_sweep("dec-dec", 16, &[2, 4, 6, 8, 9, 9]);
        second.rows.reverse(); // heads are found by name
        second.variants.reverse();
        let found = agreement(&first, &second, TESTING).unwrap();
        let names: Vec<&str> = found.iter().map(|row| row.attention.name()).collect();
        assert_eq!(names, ["all", "enc-enc", "dec-dec"]);
        assert!((found[1].pearson.unwrap() - 1.0).abs() < 1e-12);
        assert!((found[1].spearman.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!((found[2].pearson, found[2].spearman), (None, None));
        assert_eq!((found[0].first_base_score, found[0].heads, found[0].top), (100.0, 6, 6));
        assert_eq!((found[1].pearson_low, found[1].pearson_high), (None, None), "r is 1");
        let other = accuracy_sweep("self", 12, &[1, 2, 3, 4, 5, 6]);
        let error = agreement(&other, &second, TESTING).unwrap_err().to_string();
        assert_eq!(error, "there is no row for `self:1:5` on the second split");
    }
}
