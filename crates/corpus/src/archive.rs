//! Zip archives: files out of them, and texts in them; a Python wheel is one. Files out of gzipped tar archives.
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use words::excerpt;
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use crate::Error;
use crate::compressed;

/// A zip archive on disk.
pub(crate) struct Archive<'a> {
    path: &'a Path,
    zip: ZipArchive<BufReader<File>>,
}

impl<'a> Archive<'a> {
    pub(crate) fn open(path: &'a Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let zip = ZipArchive::new(BufReader::new(file))
            .map_err(|error| fault(path, format!("not a complete zip archive ({error})")))?;
        Ok(Self { path, zip })
    }

    /// The names of its members, in its order.
    pub(crate) fn members(&self) -> Result<Vec<String>, Error> {
        let names = self.zip.file_names().map(|name| name.map(String::from));
        names
            .collect::<Result<_, _>>()
            .map_err(|error| fault(self.path, format!("a name in it cannot be read ({error})")))
    }

    /// The content of `member`.
    pub(crate) fn read(&mut self, member: &str) -> Result<Vec<u8>, Error> {
        let path = self.path;
        let mut bytes = Vec::new();
        self.copy(member, &mut bytes, |error| {
            fault(path, format!("{} cannot be read ({error})", named(member)))
        })?;
        Ok(bytes)
    }

    /// Writes the content of `member` to `part`.
    pub(crate) fn extract(&mut self, member: &str, part: &Path) -> Result<(), Error> {
        let path = self.path;
        let mut file = File::create(part).map_err(|source| Error::Write { path: part.to_owned(), source })?;
        self.copy(member, &mut file, |error| {
            fault(path, format!("{} cannot be extracted ({error})", named(member)))
        })?;
        // It is renamed next, and a name must not stand for less than was extracted.
        file.sync_all().map_err(|source| Error::Write { path: part.to_owned(), source })
    }

    fn copy(
        &mut self,
        member: &str,
        to: &mut impl Write,
        fault: impl Fn(io::Error) -> Error,
    ) -> Result<(), Error> {
        let mut content = self.member(member)?;
        let (size, most) = (content.size(), compressed::most(content.compressed_size()));
        if size > most {
            return Err(fault(io::Error::other(compressed::too_long(most))));
        }
        // The crate checks that no more comes than the directory names.
        io::copy(&mut content, to).map(drop).map_err(fault)
    }

    fn member(&mut self, member: &str) -> Result<ZipFile<'_, BufReader<File>>, Error> {
        self.zip.by_name(member).map_err(|error| match error {
            ZipError::FileNotFound => fault(self.path, format!("has no {}", named(member))),
            error => fault(self.path, format!("{} cannot be read ({error})", named(member))),
        })
    }
}

/// A file to take out of an archive.
pub(crate) struct Wanted {
    /// Its name there.
    pub(crate) member: String,
    /// Where it goes.
    pub(crate) part: PathBuf,
}

/// Writes all of `wanted` out of a gzipped tar archive.
pub(crate) fn untar(path: &Path, wanted: &[Wanted]) -> Result<(), Error> {
    let torn = |error: io::Error| {
        fault(path, format!("not a complete gzipped tar archive ({})", excerpt(&error.to_string())))
    };
    let content = compressed::gzip(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut archive = tar::Archive::new(content);
    let mut found = vec![false; wanted.len()];
    for entry in archive.entries().map_err(torn)? {
        let mut entry = entry.map_err(torn)?;
        let name = entry.path_bytes().into_owned();
        let name = name.strip_prefix(b"./").unwrap_or(&name);
        let place = wanted.iter().position(|wanted| wanted.member.as_bytes() == name);
        if let Some(place) = place.filter(|_| entry.header().entry_type().is_file()) {
            let part = &wanted[place].part;
            let written = |source| Error::Write { path: part.clone(), source };
            let mut file = File::create(part).map_err(written)?;
            io::copy(&mut entry, &mut file).map_err(torn)?;
            file.sync_all().map_err(written)?;
            found[place] = true;
        }
    }
    // To the end, where gzip has its checksum.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(torn)?;
    match wanted.iter().zip(found).find(|(_, found)| !found) {
        Some((wanted, _)) => Err(fault(path, format!("has no {}", named(&wanted.member)))),
        None => Ok(()),
    }
}

/// A name of the archive's for messages.
pub(crate) fn named(member: &str) -> String {
    format!("`{}`", excerpt(member))
}

pub(crate) fn fault(path: &Path, reason: String) -> Error {
    Error::Archive { path: path.to_owned(), reason }
}
