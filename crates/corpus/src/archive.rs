//! Zip archives, including Python wheels, and gzipped tar archives.
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use words::excerpt;
use zip::ZipArchive;
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
        let file = durable::open_regular(path).map_err(Error::reading(path))?;
        let zip = ZipArchive::new(BufReader::new(file))
            .map_err(|error| Error::of(path, format!("not a complete zip archive ({error})")))?;
        Ok(Self { path, zip })
    }

    /// Returns the names of the members, in archive order.
    pub(crate) fn members(&self) -> Result<Vec<String>, Error> {
        let names = self.zip.file_names().map(|name| name.map(String::from));
        names
            .collect::<Result<_, _>>()
            .map_err(|error| Error::of(self.path, format!("a file name in it cannot be read ({error})")))
    }

    /// Reads `member`; refuses one that decompresses to more than [`compressed::most`] bytes.
    pub(crate) fn read(&mut self, member: &str) -> Result<Vec<u8>, Error> {
        let (path, shown) = (self.path, excerpt(member));
        let fault = |error: io::Error| Error::of(path, format!("`{shown}` cannot be read ({error})"));
        let mut content = self.zip.by_name(member).map_err(|error| match error {
            ZipError::FileNotFound => lacking(path, member),
            error => fault(error.into()),
        })?;
        let (size, most) = (content.size(), compressed::most(content.compressed_size()));
        if size > most {
            return Err(fault(io::Error::other(compressed::too_long(most))));
        }
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(fault)?;
        Ok(bytes)
    }
}

/// A file to extract: its name in the archive, and the path to write it to.
pub(crate) type Wanted = (String, PathBuf);

pub(crate) fn unzip(path: &Path, wanted: &[Wanted]) -> Result<(), Error> {
    let mut zip = Archive::open(path)?;
    wanted.iter().try_for_each(|(member, to)| fs::write(to, zip.read(member)?).map_err(Error::writing(to)))
}

pub(crate) fn untar(path: &Path, wanted: &[Wanted]) -> Result<(), Error> {
    let torn = |error: io::Error| {
        Error::of(path, format!("not a complete gzipped tar archive ({})", excerpt(&error.to_string())))
    };
    let mut archive = tar::Archive::new(compressed::gzip(path).map_err(Error::reading(path))?);
    let mut found = vec![false; wanted.len()];
    for entry in archive.entries().map_err(torn)? {
        let mut entry = entry.map_err(torn)?;
        let name = entry.path_bytes().into_owned();
        let name = name.strip_prefix(b"./").unwrap_or(&name);
        let place = wanted.iter().position(|(member, _)| member.as_bytes() == name);
        if let Some(place) = place.filter(|_| entry.header().entry_type().is_file()) {
            let to = &wanted[place].1;
            let mut file = File::create(to).map_err(Error::writing(to))?;
            io::copy(&mut entry, &mut file).map_err(torn)?;
            found[place] = true;
        }
    }
    // Reads to the end, because gzip's checksum comes last.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(torn)?;
    match wanted.iter().zip(found).find(|(_, found)| !found) {
        Some(((member, _), _)) => Err(lacking(path, member)),
        None => Ok(()),
    }
}

fn lacking(path: &Path, member: &str) -> Error {
    Error::of(path, format!("has no `{}`", excerpt(member)))
}
