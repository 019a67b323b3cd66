//! The rows of `cross-domain` and the two sweeps they compare (Michel et al. 2019, Section 3.4).
use std::collections::BTreeMap;
use std::path::Path;

use records::{CorrelationRow, HeadId, Scope, StandsFor};
use stats::correlation::pearson;

use crate::findings::ablations::Ablations;
use crate::findings::error::{Error, Result, command, faulty, incomparable, no_results};
use crate::findings::results::Results;
use crate::findings::source::{ResultFile, Source, experiment, is_plain_name};

/// Maximum rounding difference of r if the scores are added in another order.
const ROUNDING: f64 = 1e-9;

/// Scores with one head masked on two splits, the x axis first, and their agreement.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The comparison.
    pub file: ResultFile,
    /// Scored splits.
    pub splits: [String; 2],
    /// Sweep on each split.
    pub sweeps: [Ablations; 2],
    /// Both scores of each head.
    pub points: Vec<(HeadId, [f64; 2])>,
    /// Agreement over all heads, and over each type if there are several.
    pub rows: Vec<CorrelationRow>,
}

impl Pair {
    /// Returns the files that compare two splits, with the most segments for each pair; with `against`, only those with this second split.
    pub fn files(source: &Source, against: Option<&str>) -> Result<Vec<ResultFile>> {
        let Source::Subject { subject, results, .. } = source else {
            return Ok(vec![source.one(experiment::PAIR)?]);
        };
        let (all, folder) = (source.all(experiment::PAIR)?, results.join(subject));
        if all.is_empty() {
            return Err(no_results(
                folder.join("cross-domain-<split>-<split>.csv"),
                experiment::PAIR,
                subject,
            ));
        }
        let mut selected = ResultFile::largest(&all, splits);
        selected.retain(|file| against.is_none() || file.text("against") == against);
        if let (Some(against), []) = (against, &selected[..]) {
            let present: Vec<_> = all.iter().filter_map(|file| file.text("against")).collect();
            let (folder, present) = (folder.display(), present.join(", "));
            let fault = format!("no comparison with split `{against}`: `{folder}` has {present}");
            return Err(Error::Invalid(fault));
        }
        Ok(selected)
    }

    /// Reads the comparison and the sweeps that it was made from.
    pub fn read(file: ResultFile, results: &Path) -> Result<Self> {
        let Results::<CorrelationRow> { file, mut rows } = Results::read(file)?;
        let Some(splits) = splits(&file) else {
            let command = command(experiment::PAIR, &file.subject);
            let fault =
                format!("does not name two splits in its signature: measure both again with `{command}`");
            return Err(faulty(&file.path, fault));
        };
        let file = file.with_standard(&format!("{}-{}-{}", experiment::PAIR, splits[0], splits[1]));
        let sweeps = [sweep_on(&file, results, &splits[0])?, sweep_on(&file, results, &splits[1])?];
        let points = points(&file, &sweeps)?;
        rows.iter().try_for_each(|row| check(&file, &sweeps, &points, row))?;
        rows.sort_by_key(|row| row.attention);
        if rows[0].attention != Scope::All {
            return Err(faulty(&file.path, "has no row over all heads"));
        }
        rows.truncate(if rows.len() > 2 { rows.len() } else { 1 });
        Ok(Self { file, splits, sweeps, points, rows })
    }

    /// Returns setup and splits for display.
    pub fn title(&self) -> String {
        let data = self.file.data(Some(&self.splits.join(" and ")));
        format!("{}, {}", self.file.shown_subject(), data.join(", "))
    }

    /// Returns the model of the paper that the results can be compared with.
    pub fn beside(&self) -> Option<StandsFor> {
        self.sweeps[0].beside()
    }
}

/// Returns both splits of a comparison; `None` unless both are safe as parts of file names.
fn splits(file: &ResultFile) -> Option<[String; 2]> {
    let (first, second) = (file.split()?, file.text("against")?);
    (is_plain_name(first) && is_plain_name(second)).then(|| [first.to_owned(), second.to_owned()])
}

/// Reads the sweep on a split from the comparison's folder, or else from its setup's results.
fn sweep_on(file: &ResultFile, results: &Path, split: &str) -> Result<Ablations> {
    let limit = records::limit_suffix(file.limit(), file.number("sample"));
    let sweep = experiment::SWEEP.to_owned() + &file.ablation();
    let stems = [format!("{sweep}{limit}"), format!("{sweep}-{split}{limit}")];
    let (beside, mut unsigned) = (file.path.with_file_name(""), None);
    let elsewhere = is_plain_name(&file.subject).then(|| results.join(&file.subject));
    for folder in [Some(beside.clone()), elsewhere].into_iter().flatten() {
        for (is_named, stem) in [(false, &stems[0]), (true, &stems[1])] {
            let path = folder.join(format!("{stem}.csv"));
            if !path.exists() {
                continue;
            }
            let found = file.other(path, experiment::SWEEP)?;
            if is_named || found.split() == Some(split) {
                return Ablations::read(found);
            }
            unsigned = unsigned.or(Some(found.path).filter(|_| found.signature.is_none()));
        }
    }
    if let Some(path) = unsigned {
        return Err(faulty(&path, "has no signature file next to it, which would name its split"));
    }
    Err(no_results(beside.join(format!("{}.csv", stems[1])), experiment::PAIR, &file.subject))
}

/// Returns both scores of every head; fails if a head is missing from a sweep.
fn points(file: &ResultFile, sweeps: &[Ablations; 2]) -> Result<Vec<(HeadId, [f64; 2])>> {
    let by_head = |sweep: &Ablations| sweep.rows.iter().map(|row| (row.head_id(), row.score)).collect();
    let by_head: [BTreeMap<HeadId, f64>; 2] = sweeps.each_ref().map(by_head);
    for (without, with) in [(0, 1), (1, 0)] {
        if let Some(head) = by_head[with].keys().find(|head| !by_head[without].contains_key(head)) {
            let (other, subject) = (sweeps[with].file.path.display(), &file.subject);
            let command = command(experiment::PAIR, subject);
            let fault = format!("has no row for {head}, but `{other}` has: measure both with `{command}`");
            return Err(faulty(&sweeps[without].file.path, fault));
        }
    }
    let [first, second] = by_head;
    let both = first.into_iter().zip(second.into_values());
    Ok(both.map(|((head, one), two)| (head, [one, two])).collect())
}

/// Refuses a comparison of sweeps that have changed since: metric, base scores, number of heads and Pearson's r must match.
fn check(
    file: &ResultFile,
    sweeps: &[Ablations; 2],
    points: &[(HeadId, [f64; 2])],
    row: &CorrelationRow,
) -> Result<()> {
    let own = points.iter().filter(|(head, _)| row.attention.holds(head.attention()));
    let (x, y): (Vec<f64>, Vec<f64>) = own.map(|(_, [x, y])| (*x, *y)).unzip();
    let r = match pearson(&x, &y) {
        Err(stats::Error::NoSpread | stats::Error::TooFew) => None,
        found => Some(found.map_err(incomparable(file))?.coefficient),
    };
    let is_near = row.pearson.zip(r).is_some_and(|(here, there)| (here - there).abs() <= ROUNDING);
    let shown = |r: Option<f64>| r.map_or("undefined".to_owned(), |r| r.to_string());
    let [first, second] = sweeps;
    // column, value in the row, and value in the sweeps
    let columns = [
        ("metric", row.metric.to_string(), first.rows[0].metric.to_string()),
        ("metric", row.metric.to_string(), second.rows[0].metric.to_string()),
        ("first_base_score", row.first_base_score.to_string(), first.base().to_string()),
        ("second_base_score", row.second_base_score.to_string(), second.base().to_string()),
        ("heads", row.heads.to_string(), x.len().to_string()),
        ("pearson", shown(row.pearson), shown(if is_near { row.pearson } else { r })),
    ];
    let Some((column, found, expected)) = columns.into_iter().find(|(_, here, there)| here != there) else {
        return Ok(());
    };
    let [first, second] = sweeps.each_ref().map(|sweep| sweep.file.path.display());
    let difference = format!("{column} of {} is {found} here but {expected} there", row.attention);
    let command = command(experiment::PAIR, &file.subject);
    let fault =
        format!("does not match `{first}` and `{second}`: {difference}: measure it again with `{command}`");
    Err(faulty(&file.path, fault))
}
