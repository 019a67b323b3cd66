//! Joining of shards into the file of a single run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use heads::experiment::Rows;
use records::{
    AblationRow, AuditRow, CurveRow, DynamicsRow, GateRow, Held, Part, Provenance, Row, Shard, Signature,
    Stored, TestedRow, shards_of,
};

use crate::{Error, rows_of, test_rows};

/// Maximum number of missing rows of a shard that are listed.
const MAX_NAMED: usize = 20;

/// Results joined from shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The result file.
    pub path: PathBuf,
    /// Number of rows in it.
    pub rows: usize,
    /// Number of the shards.
    pub shards: usize,
}

/// Joins the shards of the result file at `path`, which need not exist, tests all rows, and removes the files of the shards. Rows of
/// existing results stay, unless a shard has them too.
///
/// # Errors
/// If a shard is being written, or has another run or base than the others or the results; if rows are missing; or if a file cannot be read
/// or written. Results and shards then stay unchanged.
pub fn merge(path: &Path) -> Result<Merged, Error> {
    let shards = shards_of(path)?.into_iter().map(|shard| shard.path(path));
    let shards: Vec<(PathBuf, Held)> =
        shards.map(|csv| Ok((csv.clone(), Held::take(&csv)?))).collect::<Result<_, Error>>()?;
    let files: Vec<&Path> = shards.iter().map(|(csv, _)| csv.as_path()).collect();
    let rows = match experiment(&files)?.as_deref().map_or(Rows::Ablation, rows_of) {
        Rows::Curve => join::<CurveRow>(path, &files)?,
        Rows::Dynamics => join::<DynamicsRow>(path, &files)?,
        Rows::Gates => join::<GateRow>(path, &files)?,
        Rows::Audit => join::<AuditRow>(path, &files)?,
        Rows::Ablation | Rows::Correlation | Rows::Untested => join::<AblationRow>(path, &files)?,
    };
    let merged = Merged { path: path.to_owned(), rows: rows.unwrap_or_default(), shards: shards.len() };
    shards.into_iter().try_for_each(|(_, held)| held.remove())?;
    let none = || Error::Invalid(format!("there are no shards of `{}` with rows", path.display()));
    rows.map(|_| merged).ok_or_else(none)
}

/// Returns the experiment of the shards; `None` if none has a signature.
fn experiment(files: &[&Path]) -> Result<Option<String>, Error> {
    let signatures = files.iter().flat_map(|csv| [csv.to_path_buf(), csv.with_extension("partial.csv")]);
    let signatures = signatures.map(|csv| Signature::read(&Signature::path_beside(&csv)));
    let first = signatures.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next();
    Ok(first.map(|signature| signature.identity.experiment))
}

/// Joins all shards, tests the rows and returns their number; `None` if the shards have no rows.
fn join<R: TestedRow>(path: &Path, files: &[&Path]) -> Result<Option<usize>, Error> {
    let held = Held::take(path)?; // a killed merge may have been publishing
    let shards: Vec<Stored<R>> =
        files.iter().filter_map(|csv| Stored::read(csv).transpose()).collect::<Result<_, _>>()?;
    let Some(first) = shards.first() else { return Ok(None) };
    let parts = shards.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    if let Some(rows) = published(path, &shards) {
        return Ok(Some(rows));
    }
    shards.iter().try_for_each(|shard| check_same(first, shard))?;
    check_whole(path, &shards, &parts)?;
    check_agreement(&shards)?;
    let again = shards.iter().any(|shard| shard.signature.again);
    let earlier = Stored::earlier(path, &first.signature, again)?;
    let mut shards = shards.into_iter();
    let Some(mut all) = shards.next() else { return Ok(None) };
    shards.try_for_each(|shard| all.add(shard))?;
    earlier.map_or(Ok(()), |earlier| all.add_earlier(earlier, again))?;
    let Stored { rows, mut blocks, signature, .. } = all;
    let mut signature = Signature { part: None, again: false, ..signature };
    let mut rows: Vec<R> = rows.into_values().collect();
    check_curves(&rows)?;
    test_rows(&mut rows, &mut blocks, &mut signature)?;
    held.check_finished::<R>()?;
    held.publish(&rows, &blocks, signature)?;
    Ok(Some(rows.len()))
}

/// Returns the number of rows if the results already contain all rows of the shards, by equal runs, because a merge was killed before it
/// removed the shards.
fn published<R: Row>(path: &Path, shards: &[Stored<R>]) -> Option<usize> {
    let run = |run: &Provenance| Provenance { rows: Vec::new(), ..run.clone() };
    let results = Stored::<R>::complete(path).ok().flatten()?;
    let known: Vec<Provenance> = results.signature.runs.iter().map(run).collect();
    let is_there = |shard: &Stored<R>| {
        shard.signature.runs.iter().all(|own| known.contains(&run(own)))
            && shard.rows.keys().all(|key| results.rows.contains_key(key))
    };
    shards.iter().all(is_there).then_some(results.rows.len())
}

/// Refuses shards that have different scores for one row, as from machines that round differently.
fn check_agreement<R: TestedRow>(shards: &[Stored<R>]) -> Result<(), Error> {
    let mut seen: BTreeMap<&R::Key, (&Path, f64)> = BTreeMap::new();
    for shard in shards {
        for (key, row) in &shard.rows {
            let score = row.tests().variant;
            let (first, found) = *seen.entry(key).or_insert((&shard.path, score));
            if (found - score).abs() > 1e-6 * found.abs() {
                return Err(Error::Invalid(format!(
                    "`{}` scores {found} in `{}` and {score} in `{}`: measure one of them again with the experiment's --again",
                    row.name(),
                    first.display(),
                    shard.path.display()
                )));
            }
        }
    }
    Ok(())
}

fn check_same<R: Row>(first: &Stored<R>, shard: &Stored<R>) -> Result<(), Error> {
    let mut differences = shard.signature.identity.differences(&first.signature.identity);
    if shard.signature.testing != first.signature.testing {
        let fault = "their --resamples, --margin or --seed differ: give both commands equal values";
        differences.push(fault.to_owned());
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "`{}` and `{}` come from different runs ({}): remove the unwanted one, or repeat one of the commands",
        first.path.display(),
        shard.path.display(),
        differences.join("; ")
    )))
}

fn part<R: Row>(shard: &Stored<R>) -> Result<&Part, Error> {
    shard.signature.part.as_ref().ok_or_else(|| {
        let path = shard.path.display();
        Error::Invalid(format!(
            "`{path}` is named like a shard, but its signature names no shard: move it away"
        ))
    })
}

fn check_whole<R: Row>(path: &Path, shards: &[Stored<R>], parts: &[&Part]) -> Result<(), Error> {
    let there: BTreeSet<String> =
        shards.iter().flat_map(|shard| shard.rows.values().map(Row::name)).collect();
    let of = parts.iter().map(|part| part.shard.of()).max().unwrap_or(1);
    let wanted: BTreeMap<&String, usize> =
        parts.iter().flat_map(|part| part.rows.iter().map(|(name, &place)| (name, place))).collect();
    let mut missing: BTreeMap<Shard, BTreeMap<usize, &str>> = BTreeMap::new();
    for (name, place) in wanted.into_iter().filter(|(name, _)| !there.contains(*name)) {
        missing.entry(Shard::at(place, of)).or_default().insert(place, name);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let described = |(shard, rows): (&Shard, &BTreeMap<usize, &str>)| {
        let names: Vec<&str> = rows.values().take(MAX_NAMED).copied().collect();
        let more = rows.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let is_there = parts.iter().any(|part| part.shard == *shard);
        let state = if is_there { "which is unfinished" } else { "which has no file" };
        format!("{}{more} of shard {shard}, {state}", names.join(", "))
    };
    let rows: usize = missing.values().map(BTreeMap::len).sum();
    let described = missing.iter().map(described).collect::<Vec<_>>().join("; ");
    let path = path.display();
    Err(Error::Invalid(format!("`{path}` is still incomplete, {rows} rows are missing: {described}")))
}

/// Refuses curves whose steps come from different orders of heads, such as from machines that round differently: each step must mask all
/// heads of the preceding one.
fn check_curves<R: TestedRow>(rows: &[R]) -> Result<(), Error> {
    let heads = |row: &R| -> BTreeSet<String> {
        let names = row.masked_heads().unwrap_or_default();
        names.split('+').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let is_broken =
        |pair: &&[R]| pair[0].family() == pair[1].family() && !heads(&pair[0]).is_subset(&heads(&pair[1]));
    let Some(pair) = rows.windows(2).find(is_broken) else { return Ok(()) };
    Err(Error::Invalid(format!(
        "row `{}` does not mask all heads of `{}`: the shards ordered them differently, on different machines or with different \
         libraries; measure the curve again",
        pair[1].name(),
        pair[0].name()
    )))
}
