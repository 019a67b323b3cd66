//! Files out of zip archives; a Python wheel is one.
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use crate::Error;

/// A zip archive on disk.
pub(super) struct Archive<'a> {
    path: &'a Path,
    zip: ZipArchive<BufReader<File>>,
}

impl<'a> Archive<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let zip = ZipArchive::new(BufReader::new(file))
            .map_err(|error| fault(path, format!("not a complete zip archive ({error})")))?;
        Ok(Self { path, zip })
    }

    /// Writes the content of `member` to `part`.
    pub(super) fn extract(&mut self, member: &str, part: &Path) -> Result<(), Error> {
        let mut content = self.zip.by_name(member).map_err(|error| match error {
            ZipError::FileNotFound => fault(self.path, format!("has no `{member}`")),
            error => fault(self.path, format!("`{member}` cannot be read ({error})")),
        })?;
        let mut file = File::create(part).map_err(|source| Error::Write { path: part.to_owned(), source })?;
        io::copy(&mut content, &mut file)
            .map_err(|error| fault(self.path, format!("`{member}` cannot be extracted ({error})")))?;
        Ok(())
    }
}

fn fault(path: &Path, reason: String) -> Error {
    Error::Archive { path: path.to_owned(), reason }
}
