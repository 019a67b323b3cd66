//! Fetching data sets: from upstream, from a mirror or from a folder, with checksums.
//!
//! Files arrive under `<file>.part`, a broken download goes on where it stopped, and only a file
//! with the right checksum gets its final name.
mod checksum;
mod download;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Error;

/// The data sets that can be fetched, by name: `data/sources.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Catalogue {
    sources: BTreeMap<String, Source>,
}

/// A data set: where it is, what it may be used for, and its files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What it is, in a line.
    pub title: String,
    /// What comes before a file's name upstream; ends with a slash.
    pub address: String,
    /// Its licence, in a line.
    pub licence: String,
    /// What whoever fetches it accepts.
    pub terms: String,
    /// File names, each with the sha256 of its text: a `.gz` file is decompressed first, because
    /// the same text can be compressed in more than one way.
    pub files: BTreeMap<String, String>,
}

/// Where a data set is fetched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Its own address.
    Upstream,
    /// A server that has the files under `<address>/<name>/`.
    Server(String),
    /// A folder that has the files under `<folder>/<name>/`.
    Folder(PathBuf),
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was there already, complete.
    Present,
    /// It was fetched.
    Fetched,
}

/// Told about a download: bytes so far, and bytes in all where known.
pub type Progress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

impl Catalogue {
    /// Reads `sources.toml`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text =
            fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            Error::Catalogue { path: path.to_owned(), reason: format!("line {line}: {}", error.message()) }
        })
    }

    /// The data set of this name.
    pub fn get(&self, name: &str) -> Result<&Source, Error> {
        self.sources.get(name).ok_or_else(|| Error::NoSuchSource {
            name: name.to_owned(),
            known: self.sources.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }

    /// All data sets with their names, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(name, source)| (name.as_str(), source))
    }
}

impl Origin {
    /// Reads `--mirror`: an address if it starts with `http://` or `https://`, otherwise a folder.
    pub fn mirror(text: &str) -> Self {
        if text.starts_with("http://") || text.starts_with("https://") {
            Self::Server(text.trim_end_matches('/').to_owned())
        } else {
            Self::Folder(text.into())
        }
    }
}

/// Fetches one file of the data set `name` to `<data>/<name>/<file>`, unless it is there already.
///
/// # Panics
/// If `file` is not one of the files of `source`.
pub fn fetch_file(
    name: &str,
    source: &Source,
    file: &str,
    origin: &Origin,
    data: &Path,
    progress: Progress,
) -> Result<Outcome, Error> {
    let expected = &source.files[file];
    let destination = data.join(name).join(file);
    if destination.exists()
        && checksum::of_text(&destination, is_gzip(&destination))?.as_ref() == Ok(expected)
    {
        return Ok(Outcome::Present);
    }
    let part = data.join(name).join(format!("{file}.part"));
    create_folder_of(&part)?;
    let address = match origin {
        Origin::Upstream => download(format!("{}{file}", source.address), &part, progress)?,
        Origin::Server(mirror) => download(format!("{mirror}/{name}/{file}"), &part, progress)?,
        Origin::Folder(folder) => copy(&folder.join(name).join(file), &part)?,
    };
    accept(&part, &destination, expected, address)?;
    Ok(Outcome::Fetched)
}

fn download(address: String, part: &Path, progress: Progress) -> Result<String, Error> {
    download::resume(&address, part, progress)?;
    Ok(address)
}

fn copy(from: &Path, part: &Path) -> Result<String, Error> {
    // Not fs::copy, which would copy permissions too: mirrors are often read-only.
    let mut original =
        fs::File::open(from).map_err(|source| Error::Read { path: from.to_owned(), source })?;
    fs::File::create(part)
        .and_then(|mut file| std::io::copy(&mut original, &mut file))
        .map_err(|source| Error::Write { path: part.to_owned(), source })?;
    Ok(from.display().to_string())
}

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

/// Gives a complete download its final name; removes a wrong one.
fn accept(part: &Path, destination: &Path, expected: &str, address: String) -> Result<(), Error> {
    let found = checksum::of_text(part, is_gzip(destination))?.unwrap_or_else(|reason| reason);
    if found != expected {
        fs::remove_file(part).map_err(|source| Error::Write { path: part.to_owned(), source })?;
        return Err(Error::Content { address, expected: expected.to_owned(), found });
    }
    fs::rename(part, destination).map_err(|source| Error::Write { path: destination.to_owned(), source })
}

fn create_folder_of(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })
}
