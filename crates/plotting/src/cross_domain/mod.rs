//! The rows of `cross-domain` and the two sweeps that they compare (Michel et al. 2019, Section 3.4).
mod pair;
pub mod table;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use records::CorrelationRow;
use stats::correlation::pearson;

pub use pair::Pair;

use crate::Error;
use crate::attention::Attention;
use crate::error::Difference;
use crate::origin::{data_parts, name};
use crate::sweep::{Sweep, head_name};

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "cross-domain";

/// How far r may be from that of the same scores in another order.
const ROUNDING: f64 = 1e-9;

/// What the row over all attention types is called.
const ALL: &str = "all";

/// The scores with one head masked on two splits, and how they agree.
#[derive(Debug, Clone)]
pub struct CrossDomain {
    /// The files and splits.
    pub pair: Pair,
    /// The sweep on the first split.
    pub first: Sweep,
    /// The sweep on the second split.
    pub second: Sweep,
    /// Both scores of each head, by attention type.
    pub points: Vec<(Attention, [f64; 2])>,
    /// Agreement over all heads.
    pub all: CorrelationRow,
    by_type: BTreeMap<Attention, CorrelationRow>,
}

impl CrossDomain {
    /// Reads the comparison and both sweeps.
    ///
    /// # Errors
    /// If a file is missing or damaged, or if the three are not of one run.
    pub fn read(results: &Path, pair: &Pair) -> Result<Self, Error> {
        let sweeps = [pair.sweep(results, &pair.first)?, pair.sweep(results, &pair.second)?];
        Self::from_rows(pair.clone(), sweeps, pair.file.rows()?)
    }

    /// Checks rows and sweeps that belong together.
    fn from_rows(pair: Pair, [first, second]: [Sweep; 2], rows: Vec<CorrelationRow>) -> Result<Self, Error> {
        if rows.is_empty() {
            return Err(Error::Empty { path: pair.file.path });
        }
        let points = points(&pair.file.subject, &first, &second)?;
        let origin = Origin { pair: &pair, sweeps: [&first, &second] };
        let (mut all, mut by_type) = (None, BTreeMap::new());
        for row in rows {
            check_numbers(&pair.file.path, &row)?;
            origin.check_bases(&row)?;
            let attention = match row.attention.as_str() {
                ALL => None,
                name => Some(parse_attention(&pair.file.path, name)?),
            };
            let is_of = |(found, _): &&(Attention, _)| attention.is_none_or(|attention| *found == attention);
            let of_row: Vec<_> = points.iter().filter(is_of).map(|(_, at)| *at).collect();
            origin.check_points(&row, &of_row)?;
            match attention {
                None => all = Some(row),
                Some(attention) => drop(by_type.insert(attention, row)),
            }
        }
        let present: Vec<_> = by_type.keys().map(|attention| attention.name()).collect();
        let Some(all) = all else {
            return Err(Error::NoRows { path: pair.file.path, asked: ALL, present: present.join(", ") });
        };
        Ok(Self { pair, first, second, points, all, by_type })
    }

    /// Agreement over the heads of one type.
    pub fn of_type(&self, attention: Attention) -> Option<&CorrelationRow> {
        self.by_type.get(&attention)
    }

    /// The row over all heads and, where there are several types, those of each.
    pub fn rows(&self) -> impl Iterator<Item = &CorrelationRow> {
        let types = if self.by_type.len() > 1 { self.by_type.values().collect() } else { Vec::new() };
        std::iter::once(&self.all).chain(types)
    }

    /// Subject and splits as a reader should see them.
    pub fn title(&self) -> String {
        let splits = format!("{} and {}", self.pair.first, self.pair.second);
        let data = data_parts(Some(&splits), self.pair.file.origin.limit());
        std::iter::once(name(&self.pair.file.subject)).chain(data).collect::<Vec<_>>().join(", ")
    }
}

fn parse_attention(path: &Path, name: &str) -> Result<Attention, Error> {
    name.parse().map_err(|source| Error::Attention { path: path.to_owned(), experiment: EXPERIMENT, source })
}

/// Both scores of every head; each head must be in both sweeps.
fn points(subject: &str, first: &Sweep, second: &Sweep) -> Result<Vec<(Attention, [f64; 2])>, Error> {
    let by_head = |sweep: &Sweep| -> BTreeMap<_, _> {
        let rows = sweep.rows().iter();
        rows.map(|(attention, row)| ((*attention, row.layer, row.head), (head_name(row), row.score)))
            .collect()
    };
    let (on_first, on_second) = (by_head(first), by_head(second));
    let unmatched = |without: &Sweep, with: &Sweep, head: &str| Error::UnmatchedHead {
        path: without.path().to_owned(),
        head: head.to_owned(),
        other: with.path().to_owned(),
        subject: subject.to_owned(),
    };
    if let Some((_, (name, _))) = on_second.iter().find(|(head, _)| !on_first.contains_key(head)) {
        return Err(unmatched(first, second, name));
    }
    let point = |(head, (name, score)): (&(Attention, usize, usize), &(String, f64))| {
        let (_, other) = on_second.get(head).ok_or_else(|| unmatched(second, first, name))?;
        Ok((head.0, [*score, *other]))
    };
    on_first.iter().map(point).collect()
}

fn check_numbers(path: &Path, row: &CorrelationRow) -> Result<(), Error> {
    let fault = |column, found, range| {
        Err(Error::Range { path: path.to_owned(), head: row.attention.clone(), column, found, range })
    };
    let unit = (-1.0..=1.0, "-1 to 1 or empty");
    // Halves can disagree so much that Spearman and Brown's formula has no lower end.
    let reliability = (-1e9..=1.0, "at most 1 or empty");
    let share = (0.0..=1.0, "0 to 1 or empty");
    for (column, value, (allowed, range)) in [
        ("pearson", row.pearson, &unit),
        ("pearson_low", row.pearson_low, &unit),
        ("pearson_high", row.pearson_high, &unit),
        ("spearman", row.spearman, &unit),
        ("first_reliability", row.first_reliability, &reliability),
        ("second_reliability", row.second_reliability, &reliability),
        ("pearson_ceiling", row.pearson_ceiling, &share),
        ("pearson_p_value", row.pearson_p_value, &share),
        ("spearman_p_value", row.spearman_p_value, &share),
    ] {
        if let Some(value) = value.filter(|value| !allowed.contains(value)) {
            return fault(column, value, range);
        }
    }
    if row.top > row.heads {
        return fault("top", row.top as f64, "at most the number of heads");
    }
    if !(0.0..=row.top as f64).contains(&row.top_overlap) {
        return fault("top_overlap", row.top_overlap, "0 to top");
    }
    if !(0.0..=1e9).contains(&row.top_overlap_by_chance) {
        return fault("top_overlap_by_chance", row.top_overlap_by_chance, "a number of heads");
    }
    Ok(())
}

/// What a comparison should have been made of. One of other sweeps than those beside it would put wrong numbers into the
/// figure.
#[derive(Clone, Copy)]
struct Origin<'a> {
    pair: &'a Pair,
    sweeps: [&'a Sweep; 2],
}

impl Origin<'_> {
    fn check_bases(self, row: &CorrelationRow) -> Result<(), Error> {
        let bases =
            [("first_base_score", row.first_base_score), ("second_base_score", row.second_base_score)];
        for (sweep, (column, base)) in self.sweeps.into_iter().zip(bases) {
            let there = format!("`{}`", sweep.path().display());
            let metric = sweep.metric.name();
            if row.metric != metric {
                return self.other(
                    there,
                    difference(row, "metric", format!("`{}`", row.metric), format!("`{metric}`")),
                );
            }
            if base != sweep.base {
                return self.other(there, difference(row, column, base, sweep.base));
            }
        }
        Ok(())
    }

    /// Number of heads and Pearson's r are those of the scores in both sweeps.
    fn check_points(self, row: &CorrelationRow, points: &[[f64; 2]]) -> Result<(), Error> {
        let there = || self.sweeps.map(|sweep| format!("`{}`", sweep.path().display())).join(" and ");
        if row.heads != points.len() {
            return self.other(there(), difference(row, "heads", row.heads, points.len()));
        }
        let side = |side: usize| points.iter().map(|at| at[side]).collect::<Vec<_>>();
        let r = match pearson(&side(0), &side(1)) {
            Ok(found) => Some(found.coefficient),
            Err(stats::Error::NoSpread | stats::Error::TooFew) => None,
            Err(source) => return Err(Error::Compare { path: self.pair.file.path.clone(), source }),
        };
        let is_same = match (row.pearson, r) {
            (Some(here), Some(there)) => (here - there).abs() <= ROUNDING,
            (here, there) => here == there,
        };
        let show = |r: Option<f64>| r.map_or("undefined".to_owned(), |r| r.to_string());
        if is_same {
            Ok(())
        } else {
            self.other(there(), difference(row, "pearson", show(row.pearson), show(r)))
        }
    }

    fn other(self, other: String, difference: Difference) -> Result<(), Error> {
        Err(Error::OtherRun {
            path: self.pair.file.path.clone(),
            other,
            difference: Box::new(difference),
            command: EXPERIMENT,
            subject: self.pair.file.subject.clone(),
        })
    }
}

/// Of one column.
fn difference(row: &CorrelationRow, column: &str, found: impl Display, expected: impl Display) -> Difference {
    let entry = format!("{column} of {}", row.attention);
    Difference { entry, found: found.to_string(), expected: expected.to_string() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::result_file::ResultFile;
    use crate::test_rows;
    use records::AblationRow;

    pub(crate) fn pair() -> Pair {
        let file = ResultFile::unsigned("demo-x", "cross-domain-test-shifted.csv");
        let file = file.with_standard("cross-domain-test-shifted");
        Pair { file, first: "test".to_owned(), second: "shifted".to_owned() }
    }

    /// The row of all points, or of one type of attention; only Pearson's r and the number of heads are computed.
    pub(crate) fn correlation(attention: &str, points: &[(&str, [f64; 2])]) -> CorrelationRow {
        let of_row = points.iter().filter(|(name, _)| attention == ALL || *name == attention);
        let (x, y): (Vec<f64>, Vec<f64>) = of_row.map(|(_, [x, y])| (*x, *y)).unzip();
        CorrelationRow {
            attention: attention.to_owned(),
            heads: x.len(),
            metric: "bleu".to_owned(),
            first_base_score: 30.0,
            second_base_score: 20.0,
            pearson: pearson(&x, &y).ok().map(|found| found.coefficient),
            pearson_p_value: Some(0.0001),
            pearson_low: Some(0.25),
            pearson_high: Some(0.95),
            first_reliability: Some(0.9),
            second_reliability: Some(0.4),
            pearson_ceiling: Some(0.6),
            spearman: Some(-0.25),
            spearman_p_value: Some(0.125),
            top: x.len().min(10),
            top_overlap: 1.0,
            top_overlap_by_chance: 0.35,
        }
    }

    /// Sweeps with scores from pairs of attention type and both scores; heads are numbered in one layer.
    pub(crate) fn sweeps(points: &[(&str, [f64; 2])]) -> [Sweep; 2] {
        [(0, 30.0, "a.csv"), (1, 20.0, "b.csv")].map(|(side, base, path)| {
            let row = |(head, (attention, scores)): (usize, &(&str, [f64; 2]))| {
                test_rows::row(attention, (1, head + 1), base, scores[side])
            };
            let rows: Vec<AblationRow> = points.iter().enumerate().map(row).collect();
            Sweep::from_rows(ResultFile::unsigned("demo-x", path), rows).unwrap()
        })
    }

    pub(crate) fn cross_domain(points: &[(&str, [f64; 2])], rows: Vec<CorrelationRow>) -> CrossDomain {
        CrossDomain::from_rows(pair(), sweeps(points), rows).unwrap()
    }

    const POINTS: [(&str, [f64; 2]); 4] = [
        ("enc-enc", [29.0, 19.0]),
        ("enc-enc", [28.0, 18.0]),
        ("enc-enc", [27.0, 18.5]),
        ("enc-dec", [28.0, 20.5]),
    ];

    fn message(row: CorrelationRow) -> String {
        CrossDomain::from_rows(pair(), sweeps(&POINTS), vec![row]).unwrap_err().to_string()
    }

    #[test]
    fn each_head_is_one_point() {
        let found = cross_domain(&POINTS, vec![correlation("all", &POINTS)]);
        assert_eq!(found.points[2..], [(Attention::EncEnc, [27.0, 18.5]), (Attention::EncDec, [28.0, 20.5])]);
        assert_eq!(found.title(), "demo-x (demo language), test and shifted");
    }

    #[test]
    fn rows_of_other_sweeps_are_refused() {
        let all = || correlation("all", &POINTS);
        let file = "`cross-domain-test-shifted.csv`";
        let expected = |rest: &str| {
            format!(
                "{file} does not go with {rest} there: make it again with `cross-domain experiments/demo-x.toml`"
            )
        };
        let other = CorrelationRow { second_base_score: 21.0, ..all() };
        assert_eq!(message(other), expected("`b.csv`: second_base_score of all is 21 but 20"));
        let other = CorrelationRow { heads: 5, ..all() };
        assert_eq!(message(other), expected("`a.csv` and `b.csv`: heads of all is 5 but 4"));
        let other = CorrelationRow { metric: "f1".to_owned(), ..all() };
        assert_eq!(message(other), expected("`a.csv`: metric of all is `f1` but `bleu`"));
        let nan = CorrelationRow { first_base_score: f64::NAN, ..all() };
        assert_eq!(message(nan), expected("`a.csv`: first_base_score of all is NaN but 30"));
        let found = message(correlation("enc-enc", &POINTS));
        assert_eq!(found, format!("no rows for attention type all: {file} has enc-enc"));
    }

    /// The three heads of enc-enc: x = 1, 0, -1 and y = 1/2, -1/2, 0 around their means, so r = 1/2 / sqrt(2 · 1/2).
    #[test]
    fn r_must_be_that_of_the_points() {
        let of_type = |r| {
            let row = CorrelationRow { pearson: r, ..correlation("enc-enc", &POINTS) };
            CrossDomain::from_rows(pair(), sweeps(&POINTS), vec![correlation("all", &POINTS), row])
        };
        let message = |r| of_type(r).unwrap_err().to_string();
        assert_eq!(of_type(Some(0.5 + 1e-10)).unwrap().of_type(Attention::EncEnc).unwrap().heads, 3);
        let found = message(Some(0.5 + 1e-8));
        assert!(found.contains("`a.csv` and `b.csv`: pearson of enc-enc is 0.50000001 but 0.5"), "{found}");
        assert!(message(None).contains("pearson of enc-enc is undefined but 0.5"));
        let few = CorrelationRow { pearson: Some(0.5), ..correlation("enc-dec", &POINTS) };
        let rows = vec![correlation("all", &POINTS), few];
        let found = CrossDomain::from_rows(pair(), sweeps(&POINTS), rows).unwrap_err().to_string();
        assert!(found.contains("pearson of enc-dec is 0.5 but undefined there"), "{found}");
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let all = || correlation("all", &POINTS);
        let found = message(CorrelationRow { pearson: Some(f64::NAN), ..all() });
        assert!(found.ends_with("pearson of all is NaN, but it must be -1 to 1 or empty"), "{found}");
        assert!(
            message(CorrelationRow { spearman_p_value: Some(2.0), ..all() }).contains("spearman_p_value")
        );
        let above = CorrelationRow { second_reliability: Some(1.5), ..all() };
        assert!(message(above).contains("second_reliability of all is 1.5, but it must be at most 1"));
        assert!(message(CorrelationRow { top: 5, ..all() }).contains("top of all is 5"));
        assert!(
            message(CorrelationRow { top_overlap: 4.5, ..all() }).contains("4.5, but it must be 0 to top")
        );
        let none = CrossDomain::from_rows(pair(), sweeps(&POINTS), vec![]).unwrap_err().to_string();
        assert!(none.ends_with("holds no rows yet"), "{none}");
    }

    #[test]
    fn a_head_of_one_sweep_alone_is_named() {
        let [long, _] = sweeps(&POINTS);
        let [_, short] = sweeps(&POINTS[..3]);
        let hint = "make both with `cross-domain experiments/x.toml`";
        let found = points("x", &long, &short).unwrap_err().to_string();
        assert_eq!(found, format!("`b.csv` has no row for enc-dec:1:4, but `a.csv` has: {hint}"));
        let found = points("x", &short, &long).unwrap_err().to_string();
        assert_eq!(found, format!("`b.csv` has no row for enc-dec:1:4, but `a.csv` has: {hint}"));
    }
}
