//! Shards, joined into the file that one run would have written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use heads::experiment::Rows;
use records::{
    AblationRow, CurveRow, DynamicsRow, GateRow, Held, Part, Provenance, Row, RowWriter, Shard, Signature,
    Stored, TestedRow, shards_of,
};

use crate::{Error, rows_of, test_rows};

/// Rows of a shard that are named where they are missing.
const MOST_NAMED: usize = 20;

/// Results that were made of shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The result file.
    pub path: PathBuf,
    /// Number of its rows.
    pub rows: usize,
    /// Number of the shards.
    pub shards: usize,
}

/// Joins the shards of the result file at `path`, which need not be there, tests the rows of all, and removes the shards'
/// files. Rows of the results that are there stay, unless a shard has them too.
///
/// # Errors
/// If a shard is being written, or is of another run or another base than the others or the results; if rows are missing; or
/// if a file cannot be read or written. Results and shards are then as they were.
pub fn merge(path: &Path) -> Result<Merged, Error> {
    let shards = shards_of(path)?.into_iter().map(|shard| shard.path(path));
    let shards: Vec<(PathBuf, Held)> =
        shards.map(|csv| Ok((csv.clone(), Held::take(&csv)?))).collect::<Result<_, Error>>()?;
    drop(Held::take(path)?); // what a killed merge was publishing is there now
    let files: Vec<&Path> = shards.iter().map(|(csv, _)| csv.as_path()).collect();
    let rows = match experiment(&files)?.as_deref().map(rows_of) {
        None => {
            // of which none may have rows
            files.iter().try_for_each(|csv| Stored::<AblationRow>::read(csv).map(drop))?;
            None
        }
        Some(Rows::Curve) => join::<CurveRow>(path, &files)?,
        Some(Rows::Dynamics) => join::<DynamicsRow>(path, &files)?,
        Some(Rows::Gates) => join::<GateRow>(path, &files)?,
        Some(Rows::Ablation | Rows::Correlation | Rows::Untested) => join::<AblationRow>(path, &files)?,
    };
    let merged = Merged { path: path.to_owned(), rows: rows.unwrap_or_default(), shards: shards.len() };
    shards.into_iter().try_for_each(|(_, held)| held.remove())?;
    match rows {
        Some(_) => Ok(merged),
        None => Err(Error::Invalid(format!("there are no shards of `{}` with rows", path.display()))),
    }
}

/// The experiment that shards belong to; absent where none has a signature.
fn experiment(files: &[&Path]) -> Result<Option<String>, Error> {
    let signatures = files.iter().flat_map(|csv| [csv.to_path_buf(), csv.with_extension("partial.csv")]);
    let signatures = signatures.map(|csv| Signature::read(&Signature::path_beside(&csv)));
    let first = signatures.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next();
    Ok(first.map(|signature| signature.identity.experiment))
}

/// Makes one file of all shards and tests its rows; returns their number, unless the shards have none.
fn join<R: TestedRow + Clone>(path: &Path, files: &[&Path]) -> Result<Option<usize>, Error> {
    let shards = files.iter().map(|csv| Ok(Stored::<R>::read(csv)?));
    let shards: Vec<Stored<R>> = shards.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect();
    let Some(first) = shards.first() else { return Ok(None) };
    let parts = shards.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    if let Some(rows) = published(path, &shards) {
        return Ok(Some(rows));
    }
    shards.iter().try_for_each(|shard| check_same(first, shard))?;
    check_whole(path, &shards, &parts)?;
    check_agreement(&shards)?;
    let again = shards.iter().any(|shard| shard.signature.again);
    let mut writer =
        RowWriter::<R>::join(path, &Signature { again: false, ..first.signature.clone() }, again)?;
    shards.into_iter().try_for_each(|shard| writer.adopt(shard))?;
    check_curves(writer.rows())?;
    let rows = writer.finish_with(test_rows)?;
    Ok(Some(rows.len()))
}

/// Number of rows of the results, if these have all rows of the shards, by the same runs: a merge was killed before it could
/// remove them.
fn published<R: Row>(path: &Path, shards: &[Stored<R>]) -> Option<usize> {
    let without_rows = |run: &Provenance| Provenance { rows: Vec::new(), ..run.clone() };
    let results = Stored::<R>::read(path).ok().flatten()?;
    let known: Vec<Provenance> = results.signature.runs.iter().map(without_rows).collect();
    let mut runs = shards.iter().flat_map(|shard| &shard.signature.runs);
    let mut keys = shards.iter().flat_map(|shard| shard.rows.keys());
    let has_all =
        runs.all(|run| known.contains(&without_rows(run))) && keys.all(|key| results.rows.contains_key(key));
    (has_all && results.signature.complete.is_some()).then_some(results.rows.len())
}

/// Refuses shards that have the same row with different scores, as on machines that round differently.
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

/// Refuses shards of different runs, or that are to be tested differently.
fn check_same<R: Row>(first: &Stored<R>, shard: &Stored<R>) -> Result<(), Error> {
    let mut differences = shard.signature.identity.differences(&first.signature.identity);
    if shard.signature.testing != first.signature.testing {
        let fault = "they are to be tested with different --resamples, --margin or --seed: name those of one in the command of \
                     the other";
        differences.push(fault.to_owned());
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "`{}` and `{}` are of different runs ({}): remove those that are not wanted, or give one of the commands again",
        first.path.display(),
        shard.path.display(),
        differences.join("; ")
    )))
}

fn part<R: Row>(shard: &Stored<R>) -> Result<&Part, Error> {
    shard.signature.part.as_ref().ok_or_else(|| {
        let path = shard.path.display();
        let fault =
            format!("`{path}` has the name of a shard, but its signature does not say so: move it away");
        Error::Invalid(fault)
    })
}

/// Refuses gaps, by name.
fn check_whole<R: Row>(path: &Path, shards: &[Stored<R>], parts: &[&Part]) -> Result<(), Error> {
    let there: BTreeSet<String> =
        shards.iter().flat_map(|shard| shard.rows.values().map(Row::name)).collect();
    let of = parts.iter().map(|part| part.shard.of()).max().unwrap_or(1);
    let wanted: BTreeMap<&String, usize> =
        parts.iter().flat_map(|part| part.rows.iter().map(|(name, &place)| (name, place))).collect();
    let mut missing: BTreeMap<Shard, Vec<(usize, &str)>> = BTreeMap::new();
    for (name, place) in wanted.into_iter().filter(|(name, _)| !there.contains(*name)) {
        missing.entry(Shard::at(place, of)).or_default().push((place, name));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let rows: usize = missing.values().map(Vec::len).sum();
    let described: Vec<String> =
        missing.into_iter().map(|(shard, rows)| described(shard, rows, parts)).collect();
    let (path, described) = (path.display(), described.join("; "));
    Err(Error::Invalid(format!("`{path}` cannot be made yet, {rows} rows are missing: {described}")))
}

/// The gaps of a shard: `self:1:3, self:2:3 of shard 3/8, which is unfinished`.
fn described(shard: Shard, mut rows: Vec<(usize, &str)>, known: &[&Part]) -> String {
    rows.sort_unstable();
    let names: Vec<&str> = rows.iter().take(MOST_NAMED).map(|(_, name)| *name).collect();
    let more = rows.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let is_there = known.iter().any(|part| part.shard == shard);
    let state = if is_there { "which is unfinished" } else { "of which there is no file" };
    format!("{}{more} of shard {shard}, {state}", names.join(", "))
}

/// Refuses curves whose steps come from different orders of heads, such as those of machines that round differently: later
/// steps mask all heads of earlier ones.
fn check_curves<'a, R: TestedRow + 'a>(rows: impl Iterator<Item = &'a R>) -> Result<(), Error> {
    let rows: Vec<&R> = rows.collect();
    let heads = |row: &'a R| -> BTreeSet<&str> {
        row.masked_heads().unwrap_or_default().split('+').filter(|name| !name.is_empty()).collect()
    };
    let is_broken =
        |pair: &&[&'a R]| pair[0].family() == pair[1].family() && !heads(pair[0]).is_subset(&heads(pair[1]));
    let Some(pair) = rows.windows(2).find(is_broken) else { return Ok(()) };
    Err(Error::Invalid(format!(
        "row `{}` does not mask all heads of `{}`: the shards ordered them differently, on different machines or with different \
         libraries; measure the curve again",
        pair[1].name(),
        pair[0].name()
    )))
}
