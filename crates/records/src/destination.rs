//! Where results go, and whether they can.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::file::LockedFile;
use crate::place::Place;
use crate::shard::shards_of;
use crate::signature::{Identity, Signature};

/// Where the results of a run go: to `path`, or beside it to a [name of their own](Identity::own_path) where results of
/// another run are, complete or not, or its shards.
///
/// # Errors
/// If a signature that is there cannot be read, or the folder cannot.
pub fn place_of(path: &Path, identity: &Identity) -> Result<Destination, Error> {
    match results_at(path, identity)?.into_iter().next() {
        Some(found) => Ok(found.place(path, identity)),
        None => place_beside_shards(path, identity),
    }
}

/// The same for a shard, whose file must not be another run's even where the results of all are its own. What it names is
/// the file that all shards make.
///
/// # Errors
/// As for [`place_of`].
pub fn place_of_shard(path: &Path, identity: &Identity) -> Result<Destination, Error> {
    match results_at(path, identity)?.into_iter().next() {
        Some(found) if !found.is_same() => Ok(found.place(path, identity)),
        _ => place_beside_shards(path, identity),
    }
}

/// At `path` if it has no shards, or one of the same run.
fn place_beside_shards(path: &Path, identity: &Identity) -> Result<Destination, Error> {
    let mut all = Vec::new();
    for shard in shards_of(path)? {
        all.extend(results_at(&shard.path(path), identity)?);
    }
    let decides = all.iter().position(Found::is_same).unwrap_or(0);
    match all.into_iter().nth(decides) {
        Some(found) => Ok(found.place(path, identity)),
        None => Ok(Destination { path: path.to_owned(), taken: None }),
    }
}

/// Results that are there.
struct Found {
    csv: PathBuf,
    /// How their run differs from the one that asks.
    differences: Vec<String>,
}

impl Found {
    fn is_same(&self) -> bool {
        self.differences.is_empty()
    }

    /// Where the results go that are to be at `path`, as far as these are concerned.
    fn place(self, path: &Path, identity: &Identity) -> Destination {
        if self.is_same() {
            return Destination { path: path.to_owned(), taken: None };
        }
        let taken = Taken { path: self.csv, differences: self.differences.join("; ") };
        Destination { path: identity.own_path(path), taken: Some(taken) }
    }
}

/// The results of a file, complete ones before unfinished ones.
fn results_at(csv: &Path, identity: &Identity) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for place in [Place::of(csv), Place::partial(csv)] {
        if let Some(stored) = Signature::read(&place.signature)?.filter(|_| place.csv.exists()) {
            found.push(Found { csv: place.csv, differences: identity.differences(&stored.identity) });
        }
    }
    Ok(found)
}

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The CSV file.
    pub path: PathBuf,
    /// What is in its place, if it is not the one that was asked for.
    pub taken: Option<Taken>,
}

/// Results of another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Their CSV file.
    pub path: PathBuf,
    /// How the other run differs.
    pub differences: String,
}

/// Refuses a result file that could not be written, before any long work.
///
/// # Errors
/// If the name does not end in `.csv`, or the file cannot be opened or is being written.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    check_extension(path)?;
    if path.is_dir() {
        return Err(Error::NotAFile { path: path.to_owned() });
    }
    let partial = Place::partial(path);
    let was_there = partial.csv.exists();
    let file = LockedFile::open(&partial.csv)?;
    if !was_there {
        let _ = fs::remove_file(&partial.csv); // it was made to see whether it can be
    }
    drop(file);
    Ok(())
}

pub(crate) fn check_extension(path: &Path) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".csv") && !name.ends_with(".partial.csv") {
        Ok(())
    } else {
        Err(Error::Extension { path: path.to_owned() })
    }
}
