//! Zip archives: files out of them, and texts in them; a Python wheel is one.
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use crate::Error;

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
        self.member(member)?
            .read_to_end(&mut bytes)
            .map_err(|error| fault(path, format!("`{member}` cannot be read ({error})")))?;
        Ok(bytes)
    }

    /// Writes the content of `member` to `part`.
    pub(crate) fn extract(&mut self, member: &str, part: &Path) -> Result<(), Error> {
        let path = self.path;
        let mut content = self.member(member)?;
        let mut file = File::create(part).map_err(|source| Error::Write { path: part.to_owned(), source })?;
        io::copy(&mut content, &mut file)
            .map_err(|error| fault(path, format!("`{member}` cannot be extracted ({error})")))?;
        Ok(())
    }

    fn member(&mut self, member: &str) -> Result<impl Read, Error> {
        self.zip.by_name(member).map_err(|error| match error {
            ZipError::FileNotFound => fault(self.path, format!("has no `{member}`")),
            error => fault(self.path, format!("`{member}` cannot be read ({error})")),
        })
    }
}

pub(crate) fn fault(path: &Path, reason: String) -> Error {
    Error::Archive { path: path.to_owned(), reason }
}
