//! Shards, joined into the file that one run would have written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use records::{
    AblationRow, DynamicsRow, Existing, GateRow, Part, Provenance, PruningRow, RetrainedRow, Row, RowWriter,
    Shard, ShardLock, Signature, Stored, TestedRow, check_agreement, finish_publishing, shards_of,
};

use crate::{Error, RowType, test_rows};

/// Rows of a shard that are named where they are missing.
const MOST_NAMED: usize = 20;

/// What joining the shards of a result file came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The result file.
    pub path: PathBuf,
    /// How many rows it has.
    pub rows: usize,
    /// How many shards were joined.
    pub shards: usize,
}

/// Joins the shards of the result file at `path`, which need not be there, tests the rows of all, and removes the shards'
/// files. Rows of the results that are there stay, unless the shards were to measure them again.
///
/// # Errors
/// If a shard is being written, is of another run or another base than the others, or has a row that is not the same
/// elsewhere; if rows are missing; or if a file cannot be read or written. Results and shards are then as they were.
pub fn merge(path: &Path) -> Result<Merged, Error> {
    finish_publishing(path)?;
    let locks: Vec<ShardLock> =
        shards_of(path)?.into_iter().map(|shard| locked(path, shard)).collect::<Result<_, _>>()?;
    let signatures =
        locks.iter().flat_map(|lock| [lock.path().to_owned(), lock.path().with_extension("partial.csv")]);
    let signatures = signatures.map(|csv| Signature::read(&Signature::path_beside(&csv)));
    let Some(first) = signatures.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next() else {
        return Err(Error::NoShards { path: path.to_owned() });
    };
    let rows = match RowType::of(&first.identity.experiment) {
        RowType::Pruning => Shards::<PruningRow>::read(path, &locks)?.join(path),
        RowType::Dynamics => Shards::<DynamicsRow>::read(path, &locks)?.join(path),
        RowType::Gates => Shards::<GateRow>::read(path, &locks)?.join(path),
        RowType::Retrained => Shards::<RetrainedRow>::read(path, &locks)?.join(path),
        RowType::Ablation => Shards::<AblationRow>::read(path, &locks)?.join(path),
    };
    let shards = locks.len();
    // What a killed merge has left of a shard when its rows were gone is of no use either.
    if matches!(rows, Ok(_) | Err(Error::NoShards { .. })) {
        locks.into_iter().try_for_each(ShardLock::remove)?;
    }
    Ok(Merged { path: path.to_owned(), rows: rows?, shards })
}

fn locked(path: &Path, shard: Shard) -> Result<ShardLock, Error> {
    ShardLock::take(path, shard).map_err(|error| match error {
        records::Error::InUse { path } => Error::ShardInUse { shard, path },
        error => error.into(),
    })
}

/// What the shards of a result file have, and what is there of the results themselves.
struct Shards<R: Row> {
    shards: Vec<Stored<R>>,
    results: Vec<Stored<R>>,
    /// Whether the rows of shards take the place of those that are there.
    again: bool,
    /// The number of rows of the results, where these are what shards that measure again make: a merge was killed before it
    /// could remove the shards.
    published: Option<usize>,
}

impl<R: TestedRow + Clone + PartialEq> Shards<R> {
    fn read(path: &Path, locks: &[ShardLock]) -> Result<Self, Error> {
        let mut shards = Vec::new();
        for lock in locks {
            shards.append(&mut Stored::<R>::read(lock.path())?);
        }
        let again = shards.iter().filter_map(|shard| shard.signature.part.as_ref()).any(|part| part.again);
        let mut results = match Stored::<R>::read(path) {
            Err(_) if again => Vec::new(), // what cannot be used is replaced
            there => there?,
        };
        let mut published = None;
        if again {
            published =
                results.iter().find(|there| names_all_runs(there, &shards)).map(|there| there.rows.len());
            let names: BTreeSet<String> =
                shards.iter().flat_map(|s| s.rows.values().map(Row::name)).collect();
            let identity = shards.first().map(|shard| shard.signature.identity.clone());
            results.retain(|there| Some(&there.signature.identity) == identity.as_ref());
            results.iter_mut().for_each(|there| there.rows.retain(|_, row| !names.contains(&row.name())));
        }
        Ok(Self { shards, results, again, published })
    }

    /// Makes one file of all and tests its rows; says how many there are.
    fn join(self, path: &Path) -> Result<usize, Error> {
        if let Some(published) = self.published {
            return Ok(published);
        }
        let signature = self.checked(path)?;
        let existing = if self.again { Existing::Again } else { Existing::Use };
        let mut writer = RowWriter::<R>::join(path, &signature, existing)?;
        writer.signature_mut().testing = signature.testing;
        let keys: BTreeSet<R::Key> = self.shards.iter().flat_map(|s| s.rows.values().map(Row::key)).collect();
        writer.renew(|row| keys.contains(&row.key()));
        for shard in self.shards {
            let (path, keys) = (shard.path.clone(), shard.rows.values().map(Row::key).collect::<Vec<_>>());
            writer.adopt(shard, |_| true)?;
            if !keys.iter().all(|key| writer.contains(key)) {
                return Err(Error::NotJoined { path });
            }
        }
        let (measured, testing) = (writer.signature_mut().measured.clone(), signature.testing);
        let rows = writer.finish(|rows, blocks| match (&measured, testing) {
            (Some(measured), Some(testing)) => test_rows(rows, blocks, measured, testing),
            _ => Ok(()),
        })?;
        Ok(rows.len())
    }

    /// The signature that all have, but for their runs.
    fn checked(&self, path: &Path) -> Result<Signature, Error> {
        let Some(first) = self.shards.first() else {
            return Err(Error::NoShards { path: path.to_owned() });
        };
        for file in self.shards.iter().chain(&self.results) {
            check_identity(first, file)?;
            if file.signature.is_renewal {
                return Err(records::Error::Unfinished { path: file.path.clone() }.into());
            }
        }
        self.shards.iter().try_for_each(|shard| check_testing(first, shard))?;
        let files: Vec<&Stored<R>> = self.shards.iter().chain(&self.results).collect();
        check_agreement(&files)?;
        self.check_whole(path)?;
        check_curves(&files)?;
        Ok(first.signature.clone())
    }

    /// Refuses gaps, by name.
    fn check_whole(&self, path: &Path) -> Result<(), Error> {
        // What is to be measured again is not there yet.
        let results = self.results.iter().filter(|_| !self.again);
        let files = self.shards.iter().chain(results);
        let there: BTreeSet<String> = files.flat_map(|file| file.rows.values().map(Row::name)).collect();
        let mut parts = Vec::new();
        for shard in &self.shards {
            let part = shard.signature.part.as_ref();
            let started = shard.signature.runs.iter().map(|run| run.started_unix_seconds).max();
            parts.push((started, part.ok_or_else(|| Error::NoShard { path: shard.path.clone() })?));
        }
        // Shards are named as the latest run knows them: others may have had another number of them.
        parts.sort_by_key(|(started, part)| (*started, part.shard));
        let of = parts.last().map_or(1, |(_, part)| part.shard.of());
        let wanted: BTreeMap<&String, usize> =
            parts.iter().flat_map(|(_, part)| part.rows.iter().map(|(name, &place)| (name, place))).collect();
        let mut missing: BTreeMap<Shard, Vec<(usize, &str)>> = BTreeMap::new();
        for (name, place) in wanted.into_iter().filter(|(name, _)| !there.contains(*name)) {
            missing.entry(Shard::at(place, of)).or_default().push((place, name));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let known: Vec<&Part> = parts.into_iter().map(|(_, part)| part).collect();
        let rows = missing.values().map(Vec::len).sum();
        let described: Vec<String> =
            missing.into_iter().map(|(shard, rows)| described(shard, rows, &known)).collect();
        Err(Error::Incomplete { path: path.to_owned(), rows, described: described.join("; ") })
    }
}

/// Whether results name all runs that have written rows of the shards.
fn names_all_runs<R: Row>(results: &Stored<R>, shards: &[Stored<R>]) -> bool {
    let without_rows = |run: &Provenance| Provenance { rows: Vec::new(), ..run.clone() };
    let known: Vec<Provenance> = results.signature.runs.iter().map(without_rows).collect();
    let mut written = shards.iter().filter(|shard| !shard.rows.is_empty()).peekable();
    written.peek().is_some()
        && written.flat_map(|shard| &shard.signature.runs).all(|run| known.contains(&without_rows(run)))
}

/// What a shard lacks: `self:1:3, self:2:3 of shard 3/8, which is unfinished`.
fn described(shard: Shard, mut rows: Vec<(usize, &str)>, known: &[&Part]) -> String {
    rows.sort_unstable();
    let names: Vec<&str> = rows.iter().take(MOST_NAMED).map(|(_, name)| *name).collect();
    let more = rows.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let is_there = known.iter().any(|part| part.shard == shard);
    let state = if is_there { "which is unfinished" } else { "of which there is no file" };
    format!("{}{more} of shard {shard}, {state}", names.join(", "))
}

fn check_identity<R: Row>(first: &Stored<R>, file: &Stored<R>) -> Result<(), Error> {
    let differences = file.signature.identity.differences(&first.signature.identity);
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::OtherRun {
        path: file.path.clone(),
        other: first.path.clone(),
        differences: differences.join("; "),
    })
}

fn check_testing<R: Row>(first: &Stored<R>, shard: &Stored<R>) -> Result<(), Error> {
    if shard.signature.testing == first.signature.testing {
        return Ok(());
    }
    Err(Error::OtherTests { path: shard.path.clone(), other: first.path.clone() })
}

/// Refuses curves whose steps come from different orders of heads: what a step masks, all later ones do. Machines that round
/// differently may order heads differently.
fn check_curves<R: TestedRow>(files: &[&Stored<R>]) -> Result<(), Error> {
    let rows: BTreeMap<R::Key, &R> =
        files.iter().flat_map(|file| file.rows.values().map(|row| (row.key(), row))).collect();
    let rows: Vec<&R> = rows.into_values().collect();
    let of_one_curve = rows.windows(2).filter(|pair| pair[0].family() == pair[1].family());
    for pair in of_one_curve {
        let heads = |row: &R| -> BTreeSet<String> {
            row.masked_heads()
                .unwrap_or_default()
                .split('+')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        };
        if !heads(pair[0]).is_subset(&heads(pair[1])) {
            return Err(Error::OtherOrder { row: pair[1].name(), before: pair[0].name() });
        }
    }
    Ok(())
}
