//! Shards of an experiment, measured by several runs into separate files.
//!
//! A row belongs to a shard by its position among all possible rows of the experiment, so that any number of shards can divide the rows
//! without communicating, whichever rows exist already.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::file::read_error;

/// One of several runs that divide the rows of an experiment: `2/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    of: usize,
    number: usize,
}

impl Shard {
    /// Returns which of `of` shards the row at this position, counted from 0, belongs to.
    ///
    /// # Panics
    /// If `of` is 0.
    pub fn at(place: usize, of: usize) -> Self {
        Self { of, number: place % of + 1 }
    }

    /// Returns true if the row at this position, counted from 0, belongs to it.
    pub fn holds(self, place: usize) -> bool {
        Self::at(place, self.of) == self
    }

    /// Returns the number of shards.
    pub fn of(self) -> usize {
        self.of
    }

    /// Returns the path of the shard of a result file: `ablate-one.shard-2-of-8.csv` for `ablate-one.csv`.
    pub fn path(self, csv: &Path) -> PathBuf {
        csv.with_extension(format!("{MARK}{}-of-{}.csv", self.number, self.of))
    }
}

const MARK: &str = "shard-";

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
        let parts = text.split_once('/').and_then(|(first, last)| Some((number(first)?, number(last)?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { of, number }),
            Some((number, of)) if of > 0 => {
                Err(format!("there is no shard {number} of {of}: shards are counted from 1 to {of}"))
            }
            _ => Err("must be the number of the shard and the number of shards, such as 2/8".to_owned()),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

/// The complete result that the file of a shard is a part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The shard.
    pub shard: Shard,
    /// Rows requested from all shards together, by name, with their positions.
    pub rows: BTreeMap<String, usize>,
}

impl Part {
    /// Returns true if the row with this name belongs to the shard.
    pub fn holds(&self, name: &str) -> bool {
        self.rows.get(name).is_some_and(|&place| self.shard.holds(place))
    }
}

/// Returns the result files in a folder that have shards, finished or not, with their shards; empty if the folder does not exist.
pub fn shards_in(folder: &Path) -> Result<BTreeMap<PathBuf, BTreeSet<Shard>>, Error> {
    let mut found: BTreeMap<PathBuf, BTreeSet<Shard>> = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        Err(source) => return Err(read_error(folder, source)),
    };
    for entry in entries {
        let name = entry.map_err(|source| read_error(folder, source))?.file_name();
        if let Some((csv, shard)) = name.to_str().and_then(parts_of_name) {
            found.entry(folder.join(csv)).or_default().insert(shard);
        }
    }
    Ok(found)
}

/// Returns the shards of a result file, finished or not.
pub fn shards_of(csv: &Path) -> Result<BTreeSet<Shard>, Error> {
    let folder = durable::parent(csv);
    let mut found = shards_in(folder)?;
    Ok(found.remove(&folder.join(csv.file_name().unwrap_or_default())).unwrap_or_default())
}

/// Returns true for a file of a shard.
pub fn is_shard(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).and_then(parts_of_name).is_some()
}

/// Returns the result file and the shard for a file name such as `ablate-one.shard-2-of-8.partial.json`.
fn parts_of_name(name: &str) -> Option<(String, Shard)> {
    let (stem, rest) = name.split_once(&format!(".{MARK}"))?;
    let (shard, _) = rest.split_once('.')?;
    let shard: Shard = shard.replacen("-of-", "/", 1).parse().ok()?;
    let csv = format!("{stem}.csv");
    let begins = shard.path(Path::new(&csv)).with_extension("");
    name.strip_prefix(begins.to_str()?)?.starts_with('.').then_some((csv, shard))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_shards_are_refused_with_what_is_allowed() {
        for (wrong, expected) in [
            ("0/4", "no shard 0 of 4"),
            ("5/4", "no shard 5 of 4"),
            ("1/0", "such as 2/8"),
            ("3", "such as 2/8"),
            ("+1/4", "such as 2/8"),
        ] {
            let message = wrong.parse::<Shard>().unwrap_err();
            assert!(message.contains(expected), "{wrong}: {message}");
        }
    }

    #[test]
    fn files_of_shards_are_known_by_their_names() {
        for (name, expected) in [
            ("a-9.csv", None),
            ("a-9.shard-2-of-3.json", Some("2/3")),
            ("a-9.shard-10-of-12.partial.csv", Some("10/12")),
            ("a-9.shard-1-of-1.segments.csv.gz", Some("1/1")),
            ("a-9.shard-4-of-3.csv", None),
            ("a-9.shard-01-of-3.csv", None),
            ("a-9.shard-1-of-3", None),
        ] {
            let expected = expected.map(|shard| ("a-9.csv".to_owned(), shard.parse().unwrap()));
            assert_eq!(parts_of_name(name), expected, "{name}");
        }
        assert!(shards_in(Path::new("no such folder")).unwrap().is_empty());
    }

    proptest! {
        /// With any number of shards, even more than rows, each row belongs to exactly one.
        #[test]
        fn shards_divide_the_rows(rows in 0usize..200, of in 1usize..260) {
            let shards: Vec<Shard> = (1..=of).map(|number| format!("{number}/{of}").parse().unwrap()).collect();
            for place in 0..rows {
                let holding: Vec<Shard> = shards.iter().copied().filter(|shard| shard.holds(place)).collect();
                prop_assert_eq!(holding, vec![Shard::at(place, of)]);
            }
            let sizes = shards.iter().map(|shard| (0..rows).filter(|&place| shard.holds(place)).count());
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            prop_assert!(most - least <= 1, "{} to {} rows", least, most);
        }

        #[test]
        fn a_shard_survives_a_round_trip(number in 1usize..50, more in 0usize..50) {
            let shard: Shard = format!("{number}/{}", number + more).parse().unwrap();
            let path = shard.path(Path::new("a-b.csv"));
            prop_assert_eq!(parts_of_name(path.to_str().unwrap()), Some(("a-b.csv".to_owned(), shard)));
            let json = serde_json::to_string(&shard).unwrap();
            prop_assert_eq!(serde_json::from_str::<Shard>(&json).unwrap(), shard);
        }
    }
}
