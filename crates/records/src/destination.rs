//! Where results go, and whether they can.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::file::LockedFile;
use crate::place::Place;
use crate::shard::shards_of;
use crate::signature::{Identity, Signature};

/// Where the results of a run go: to `path`, or beside it to a [name of their own](Identity::own_path) where results of
/// another run are, complete or not.
///
/// # Errors
/// If a signature that is there cannot be read.
pub fn place_of(path: &Path, identity: &Identity) -> Result<Destination, Error> {
    for place in [Place::of(path), Place::partial(path)] {
        let Some(stored) = Signature::read(&place.signature)?.filter(|_| place.csv.exists()) else {
            continue;
        };
        let differences = identity.differences(&stored.identity);
        if !differences.is_empty() {
            let taken = Taken { path: place.csv, differences: differences.join("; ") };
            return Ok(Destination { path: identity.own_path(path), taken: Some(taken) });
        }
        break; // what fits is used, whatever lies beside it
    }
    Ok(Destination { path: path.to_owned(), taken: None })
}

/// The same for a shard, which leaves the shards of another run alone too. What it names is the file that all shards make.
///
/// # Errors
/// As for [`place_of`], or if the folder cannot be read.
pub fn place_of_shard(path: &Path, identity: &Identity) -> Result<Destination, Error> {
    let destination = place_of(path, identity)?;
    let mut taken = None;
    for shard in shards_of(&destination.path)? {
        let csv = shard.path(&destination.path);
        for place in [Place::of(&csv), Place::partial(&csv)] {
            let Some(stored) = Signature::read(&place.signature)?.filter(|_| place.csv.exists()) else {
                continue;
            };
            let differences = identity.differences(&stored.identity);
            if differences.is_empty() {
                return Ok(destination); // what fits is used, whatever lies beside it
            }
            taken.get_or_insert(Taken { path: place.csv, differences: differences.join("; ") });
        }
    }
    match taken {
        Some(_) => Ok(Destination { path: identity.own_path(path), taken }),
        None => Ok(destination),
    }
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
