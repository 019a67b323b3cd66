//! The rows of `cross-domain` and the two sweeps that they compare (Michel et al. 2019, Section 3.4).
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use records::{CorrelationRow, Signature, read_rows};

use crate::Error;
use crate::attention::Attention;
use crate::sweep::{self, Sweep, csv_path, head_name};

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "cross-domain";

/// What the row over all attention types is called.
const ALL: &str = "all";

/// A results file that compares two splits of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    path: PathBuf,
    subject: String,
    /// The split of the x axis.
    pub first: String,
    /// The split of the y axis.
    pub second: String,
    /// Segments scored from the start of each split; all if absent.
    pub limit: Option<usize>,
}

impl Pair {
    /// All comparisons of a subject, in the order of their names; there may be none.
    ///
    /// # Errors
    /// If the folder cannot be read, or a signature does not name the splits that its file is named after.
    pub fn all(results: &Path, subject: &str) -> Result<Vec<Self>, Error> {
        let folder = folder(results, subject)?;
        let entries =
            std::fs::read_dir(&folder).map_err(|source| Error::Read { path: folder.clone(), source })?;
        let is_comparison = |name: &str| {
            name.strip_prefix(EXPERIMENT).is_some_and(|rest| rest.starts_with('-') && rest.ends_with(".csv"))
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_comparison(name)).collect();
        names.sort();
        names.into_iter().map(|name| Self::read(folder.join(name), subject)).collect()
    }

    /// Those with `against` as their second split, or all.
    ///
    /// # Errors
    /// If there are none.
    pub fn select(
        all: &[Self],
        against: Option<&str>,
        results: &Path,
        subject: &str,
    ) -> Result<Vec<Self>, Error> {
        let folder = results.join(subject);
        if all.is_empty() {
            return Err(Error::NoComparison { folder, subject: subject.to_owned() });
        }
        let is_asked = |pair: &&Self| against.is_none_or(|against| pair.second == against);
        let selected: Vec<Self> = all.iter().filter(is_asked).cloned().collect();
        match against {
            Some(against) if selected.is_empty() => {
                let present: Vec<_> = all.iter().map(|pair| pair.second.as_str()).collect();
                let (against, present) = (against.to_owned(), present.join(", "));
                Err(Error::UnknownSplit { against, folder, present })
            }
            _ => Ok(selected),
        }
    }

    fn read(path: PathBuf, subject: &str) -> Result<Self, Error> {
        let signature = Signature::path_beside(&path);
        let subject = subject.to_owned();
        let Some((first, second, limit)) = Signature::read(&signature)?.and_then(splits) else {
            return Err(Error::NoSplits { signature, path, subject });
        };
        // So that no split from a file can name a folder.
        let expected = format!("{EXPERIMENT}-{first}-{second}.csv");
        if path.file_name().is_none_or(|name| name != expected.as_str()) {
            return Err(Error::OtherSplits { path, expected });
        }
        Ok(Self { path, subject, first, second, limit })
    }

    /// File name of its figure without extension: after the second split, and after both if another of `all` has the
    /// same second one.
    pub fn file_stem(&self, all: &[Self]) -> String {
        let is_unique = all.iter().filter(|pair| pair.second == self.second).count() <= 1;
        match is_unique {
            true => format!("figure2-{}", self.second),
            false => format!("figure2-{}-{}", self.first, self.second),
        }
    }
}

/// The folder of a subject, if it is there.
fn folder(results: &Path, subject: &str) -> Result<PathBuf, Error> {
    match csv_path(results, subject, EXPERIMENT, EXPERIMENT) {
        // Files in it are named after splits.
        Ok(_) | Err(Error::NoResults { .. }) => Ok(results.join(subject)),
        Err(error) => Err(error),
    }
}

/// First split, second split and limit of a comparison.
fn splits(Signature { identity, .. }: Signature) -> Option<(String, String, Option<usize>)> {
    let against = identity.arguments.get("against")?.as_str()?.to_owned();
    let is_named = !identity.split.is_empty() && !against.is_empty();
    is_named.then_some((identity.split, against, identity.limit))
}

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
        let sweep = |split| Sweep::read_split(results, &pair.subject, split, EXPERIMENT);
        let (first, second) = (sweep(&pair.first)?, sweep(&pair.second)?);
        Self::from_rows(pair.clone(), [first, second], read_rows(&pair.path)?)
    }

    /// Checks rows and sweeps that belong together.
    fn from_rows(pair: Pair, [first, second]: [Sweep; 2], rows: Vec<CorrelationRow>) -> Result<Self, Error> {
        if rows.is_empty() {
            return Err(Error::Empty { path: pair.path });
        }
        let points = points(&pair.subject, &first, &second)?;
        let (mut all, mut by_type) = (None, BTreeMap::new());
        for row in rows {
            check_numbers(&pair.path, &row)?;
            check_same_run(&pair.path, &row, &first, &second)?;
            match row.attention.as_str() {
                ALL => all = Some(row),
                name => drop(by_type.insert(parse_attention(&pair.path, name)?, row)),
            }
        }
        let present: Vec<_> = by_type.keys().map(|attention| attention.name()).collect();
        let Some(all) = all else {
            return Err(Error::NoRows { path: pair.path, asked: ALL, present: present.join(", ") });
        };
        if all.heads != points.len() {
            let (expected, found) = (format!("{} for {ALL}", all.heads), in_file(points.len(), &first));
            return Err(Error::Mixed { path: pair.path, column: "heads", expected, found });
        }
        Ok(Self { pair, first, second, points, all, by_type })
    }

    /// Agreement over the heads of one type.
    pub fn of_type(&self, attention: Attention) -> Option<&CorrelationRow> {
        self.by_type.get(&attention)
    }

    /// Subject and splits as a reader should see them.
    pub fn title(&self) -> String {
        let splits = format!("{} and {}", self.pair.first, self.pair.second);
        sweep::title(&self.pair.subject, Some(&splits), self.pair.limit)
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
    for (column, value) in [("pearson", row.pearson), ("spearman", row.spearman)] {
        if let Some(value) = value.filter(|value| !(-1.0..=1.0).contains(value)) {
            return fault(column, value, "-1 to 1 or empty");
        }
    }
    let p_values = [("pearson_p_value", row.pearson_p_value), ("spearman_p_value", row.spearman_p_value)];
    for (column, value) in p_values {
        if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
            return fault(column, value, "0 to 1 or empty");
        }
    }
    if row.top > row.heads {
        return fault("top", row.top as f64, "at most the number of heads");
    }
    if row.top_overlap > row.top {
        return fault("top_overlap", row.top_overlap as f64, "at most top");
    }
    if !(0.0..=1e9).contains(&row.top_overlap_by_chance) {
        return fault("top_overlap_by_chance", row.top_overlap_by_chance, "a number of heads");
    }
    Ok(())
}

/// A comparison of other sweeps than those beside it would put wrong numbers into the figure.
fn check_same_run(path: &Path, row: &CorrelationRow, first: &Sweep, second: &Sweep) -> Result<(), Error> {
    let sides = [
        (first, "first_base_score", row.first_base_score),
        (second, "second_base_score", row.second_base_score),
    ];
    for (sweep, column, base) in sides {
        let fault = |column, here: String, there: String| {
            let (expected, found) = (format!("{here} for {}", row.attention), in_file(there, sweep));
            Err(Error::Mixed { path: path.to_owned(), column, expected, found })
        };
        if row.metric != sweep.metric.name() {
            return fault("metric", format!("`{}`", row.metric), format!("`{}`", sweep.metric.name()));
        }
        if base != sweep.base {
            return fault(column, base.to_string(), sweep.base.to_string());
        }
    }
    Ok(())
}

fn in_file(value: impl std::fmt::Display, sweep: &Sweep) -> String {
    format!("{value} in `{}`", sweep.path().display())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_rows;
    use records::AblationRow;

    pub(crate) fn pair() -> Pair {
        let path = PathBuf::from("cross-domain-test-shifted.csv");
        let [subject, first, second] = ["demo-x", "test", "shifted"].map(str::to_owned);
        Pair { path, subject, first, second, limit: None }
    }

    pub(crate) fn correlation(attention: &str, heads: usize) -> CorrelationRow {
        CorrelationRow {
            attention: attention.to_owned(),
            heads,
            metric: "bleu".to_owned(),
            first_base_score: 30.0,
            second_base_score: 20.0,
            pearson: Some(0.5),
            pearson_p_value: Some(0.0001),
            spearman: Some(-0.25),
            spearman_p_value: Some(0.125),
            top: heads.min(10),
            top_overlap: 1,
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
            Sweep::from_rows("demo-x", PathBuf::from(path), rows).unwrap()
        })
    }

    pub(crate) fn cross_domain(points: &[(&str, [f64; 2])], rows: Vec<CorrelationRow>) -> CrossDomain {
        CrossDomain::from_rows(pair(), sweeps(points), rows).unwrap()
    }

    const POINTS: [(&str, [f64; 2]); 2] = [("enc-enc", [29.0, 19.0]), ("enc-dec", [28.0, 20.5])];

    fn message(row: CorrelationRow) -> String {
        CrossDomain::from_rows(pair(), sweeps(&POINTS), vec![row]).unwrap_err().to_string()
    }

    #[test]
    fn each_head_is_one_point() {
        let found = cross_domain(&POINTS, vec![correlation("all", 2)]);
        assert_eq!(found.points, [(Attention::EncEnc, [29.0, 19.0]), (Attention::EncDec, [28.0, 20.5])]);
        assert_eq!(found.title(), "demo-x (demo language), test and shifted");
    }

    #[test]
    fn rows_of_other_sweeps_are_refused() {
        let other = CorrelationRow { second_base_score: 21.0, ..correlation("all", 2) };
        let file = "`cross-domain-test-shifted.csv`";
        let expected = format!("{file} mixes runs: second_base_score is 21 for all but 20 in `b.csv`");
        assert_eq!(message(other), expected);
        assert!(message(correlation("all", 3)).ends_with("heads is 3 for all but 2 in `a.csv`"));
        let other = CorrelationRow { metric: "f1".to_owned(), ..correlation("all", 2) };
        assert!(message(other).ends_with("metric is `f1` for all but `bleu` in `a.csv`"));
        let found = message(correlation("enc-enc", 2));
        assert_eq!(found, format!("no rows for attention type all: {file} has enc-enc"));
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let all = || correlation("all", 2);
        let found = message(CorrelationRow { pearson: Some(f64::NAN), ..all() });
        assert!(found.ends_with("pearson of all is NaN, but it must be -1 to 1 or empty"), "{found}");
        assert!(
            message(CorrelationRow { spearman_p_value: Some(2.0), ..all() }).contains("spearman_p_value")
        );
        assert!(message(CorrelationRow { top: 3, ..all() }).contains("top of all is 3"));
        assert!(message(CorrelationRow { top_overlap: 3, ..all() }).contains("must be at most top"));
        let nan = CorrelationRow { first_base_score: f64::NAN, ..all() };
        assert!(message(nan).contains("first_base_score is NaN for all but 30"));
        let none = CrossDomain::from_rows(pair(), sweeps(&POINTS), vec![]).unwrap_err().to_string();
        assert!(none.ends_with("holds no rows yet"), "{none}");
    }

    #[test]
    fn a_head_of_one_sweep_alone_is_named() {
        let [long, _] = sweeps(&POINTS);
        let [_, short] = sweeps(&POINTS[..1]);
        let hint = "make both with `cross-domain experiments/x.toml`";
        let found = points("x", &long, &short).unwrap_err().to_string();
        assert_eq!(found, format!("`b.csv` has no row for enc-dec:1:2, but `a.csv` has: {hint}"));
        let found = points("x", &short, &long).unwrap_err().to_string();
        assert_eq!(found, format!("`b.csv` has no row for enc-dec:1:2, but `a.csv` has: {hint}"));
    }

    #[test]
    fn figures_with_one_second_split_have_names_of_their_own() {
        let other = Pair { first: "dev".to_owned(), ..pair() };
        assert_eq!(pair().file_stem(&[pair()]), "figure2-shifted");
        assert_eq!(pair().file_stem(&[pair(), other.clone()]), "figure2-test-shifted");
        assert_eq!(other.file_stem(&[pair(), other.clone()]), "figure2-dev-shifted");
    }
}
