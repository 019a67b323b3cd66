//! The rows of `cross-domain` and the two sweeps that they compare (Michel et al. 2019, Section 3.4).
use std::collections::BTreeMap;
use std::path::Path;

use records::{Attention, CorrelationRow, Head, Scope};
use stats::correlation::pearson;

use super::sweep::{self, Sweep};
use crate::Error;
use crate::origin::{data_parts, name};
use crate::source::{ResultFile, Source, is_plain_name};

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "cross-domain";

/// How far r may be from that of the same scores in another order.
const ROUNDING: f64 = 1e-9;

/// The scores with one head masked on two splits, and how they agree.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The file that compares them.
    pub file: ResultFile,
    /// Both splits, that of the x axis first.
    pub splits: [String; 2],
    /// The sweeps on both splits.
    pub sweeps: [Sweep; 2],
    /// Both scores of each head, by attention type.
    pub points: Vec<(Attention, [f64; 2])>,
    /// Agreement over all heads.
    pub all: CorrelationRow,
    by_type: BTreeMap<Attention, CorrelationRow>,
}

impl Pair {
    /// The files that compare two splits, over most segments where there are several of the same; those with `against` as
    /// their second split, or all.
    ///
    /// # Errors
    /// If there are none, or a signature does not name two splits.
    pub fn files(source: &Source, against: Option<&str>) -> Result<Vec<ResultFile>, Error> {
        let Source::Subject { subject, results, .. } = source else { return Ok(vec![source.one(EXPERIMENT)?]) };
        let (all, folder) = (source.all(EXPERIMENT, EXPERIMENT)?, results.join(subject));
        if all.is_empty() {
            return Err(Error::Asked(format!(
                "`{}` has no `cross-domain-*.csv`: make one with `cross-domain experiments/{subject}.toml`",
                folder.display()
            )));
        }
        let second = |file: &ResultFile| file.text("against").map(str::to_owned);
        let is_asked = |file: &ResultFile| against.is_none_or(|against| second(file).as_deref() == Some(against));
        let selected: Vec<_> = Self::largest(&all).into_iter().filter(is_asked).collect();
        match against {
            Some(against) if selected.is_empty() => {
                let present: Vec<_> = all.iter().filter_map(second).collect();
                let (folder, present) = (folder.display(), present.join(", "));
                Err(Error::Asked(format!("no comparison with split `{against}`: `{folder}` has {present}")))
            }
            _ => Ok(selected),
        }
    }

    /// Of several comparisons of the same splits, that over most segments.
    pub fn largest(all: &[ResultFile]) -> Vec<ResultFile> {
        let segments = |file: &ResultFile| file.limit().unwrap_or(usize::MAX);
        let is_largest = |file: &&ResultFile| {
            let mut same = all.iter().filter(|other| splits(other) == splits(file));
            splits(file).is_none() || same.all(|other| segments(other) <= segments(file))
        };
        all.iter().filter(is_largest).cloned().collect()
    }

    /// Reads the comparison and both sweeps.
    ///
    /// # Errors
    /// If a file is missing or damaged, or if the three are not of one run.
    pub fn read(mut file: ResultFile, results: &Path) -> Result<Self, Error> {
        let rows: Vec<CorrelationRow> = file.rows(EXPERIMENT)?;
        let Some(splits) = splits(&file) else {
            let hint = format!("make both again with `cross-domain experiments/{}.toml`", file.subject);
            return Err(Error::alone(&file.path, format!("does not name two splits in its signature: {hint}")));
        };
        let file = file.with_standard(&format!("{EXPERIMENT}-{}-{}", splits[0], splits[1]));
        let sweeps = [sweep_on(&file, results, &splits[0])?, sweep_on(&file, results, &splits[1])?];
        let points = points(&file, &sweeps)?;
        let (mut all, mut by_type) = (None, BTreeMap::new());
        for row in rows {
            check(&file, &sweeps, &points, &row)?;
            match row.attention {
                Scope::All => all = Some(row),
                Scope::One(attention) => drop(by_type.insert(attention, row)),
            }
        }
        let all = all.ok_or_else(|| Error::fault(&file.path, "has no row over all heads"))?;
        Ok(Self { file, splits, sweeps, points, all, by_type })
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
        let splits = self.splits.join(" and ");
        let data = data_parts(Some(&splits), self.file.limit());
        std::iter::once(name(&self.file.subject)).chain(data).collect::<Vec<_>>().join(", ")
    }
}

/// First and second split of a comparison; none that could name a folder.
fn splits(file: &ResultFile) -> Option<[String; 2]> {
    let (first, second) = (file.split()?, file.text("against")?);
    (is_plain_name(first) && is_plain_name(second)).then(|| [first.to_owned(), second.to_owned()])
}

/// Reads the sweep on a split: beside the comparison or, where that is elsewhere, among the results of its subject.
fn sweep_on(file: &ResultFile, results: &Path, split: &str) -> Result<Sweep, Error> {
    let limit = file.limit().map_or(String::new(), |limit| format!("-first-{limit}"));
    let stems = [sweep::EXPERIMENT.to_owned() + &limit, format!("{}-{split}{limit}", sweep::EXPERIMENT)];
    let beside = file.path.with_file_name("");
    let elsewhere = is_plain_name(&file.subject).then(|| results.join(&file.subject));
    for folder in [Some(beside.clone()), elsewhere].into_iter().flatten() {
        for (is_named, stem) in [false, true].into_iter().zip(&stems) {
            let path = folder.join(format!("{stem}.csv"));
            if !path.exists() {
                continue;
            }
            let found = ResultFile::of(path, &file.subject, sweep::EXPERIMENT)?;
            if is_named || found.split() == Some(split) {
                return Sweep::read(found, sweep::EXPERIMENT);
            }
        }
    }
    let path = beside.join(format!("{}.csv", stems[1]));
    Err(Error::NoResults { path, experiment: EXPERIMENT, subject: file.subject.clone() })
}

/// Both scores of every head; each head must be in both sweeps.
fn points(file: &ResultFile, sweeps: &[Sweep; 2]) -> Result<Vec<(Attention, [f64; 2])>, Error> {
    let by_head = sweeps
        .each_ref()
        .map(|sweep| sweep.rows.iter().map(|row| (row.head_id(), row.score)).collect::<BTreeMap<Head, f64>>());
    for (without, with) in [(0, 1), (1, 0)] {
        if let Some(head) = by_head[with].keys().find(|head| !by_head[without].contains_key(head)) {
            let other = sweeps[with].file.path.display();
            return Err(Error::alone(
                &sweeps[without].file.path,
                format!(
                    "has no row for {head}, but `{other}` has: make both with `cross-domain experiments/{}.toml`",
                    file.subject
                ),
            ));
        }
    }
    let [first, second] = by_head;
    Ok(first.into_iter().zip(second.into_values()).map(|((head, one), two)| (head.attention, [one, two])).collect())
}

/// Refuses a comparison of other sweeps than those beside it, which would put wrong numbers into the figure: metric, bases,
/// number of heads and Pearson's r must be theirs.
fn check(
    file: &ResultFile,
    sweeps: &[Sweep; 2],
    points: &[(Attention, [f64; 2])],
    row: &CorrelationRow,
) -> Result<(), Error> {
    let names = sweeps.each_ref().map(|sweep| format!("`{}`", sweep.file.path.display()));
    let other = |there: &str, column: &str, found: String, expected: String| {
        Err(Error::alone(
            &file.path,
            format!(
                "does not go with {there}: {column} of {} is {found} but {expected} there: make it again with \
                 `{EXPERIMENT} experiments/{}.toml`",
                row.attention, file.subject
            ),
        ))
    };
    let bases = [("first_base_score", row.first_base_score), ("second_base_score", row.second_base_score)];
    for ((sweep, there), (column, base)) in sweeps.iter().zip(&names).zip(bases) {
        if row.metric != sweep.metric.name() {
            return other(there, "metric", format!("`{}`", row.metric), format!("`{}`", sweep.metric.name()));
        }
        if base != sweep.base {
            return other(there, column, base.to_string(), sweep.base.to_string());
        }
    }
    let both = names.join(" and ");
    let is_of = |attention: &Attention| row.attention == Scope::All || row.attention == Scope::One(*attention);
    let (x, y): (Vec<f64>, Vec<f64>) =
        points.iter().filter(|(attention, _)| is_of(attention)).map(|(_, [x, y])| (*x, *y)).unzip();
    if row.heads != x.len() {
        return other(&both, "heads", row.heads.to_string(), x.len().to_string());
    }
    let r = match pearson(&x, &y) {
        Ok(found) => Some(found.coefficient),
        Err(stats::Error::NoSpread | stats::Error::TooFew) => None,
        Err(source) => return Err(Error::Compare { path: file.path.clone(), source }),
    };
    let is_same = match (row.pearson, r) {
        (Some(here), Some(there)) => (here - there).abs() <= ROUNDING,
        (here, there) => here == there,
    };
    let show = |r: Option<f64>| r.map_or("undefined".to_owned(), |r| r.to_string());
    if is_same { Ok(()) } else { other(&both, "pearson", show(row.pearson), show(r)) }
}
