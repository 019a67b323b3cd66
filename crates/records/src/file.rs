//! Files that grow, and files that are read or replaced as a whole.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// A file that grows by parts, each of which is written completely or not at all.
#[derive(Debug)]
pub(crate) struct GrowingFile {
    path: PathBuf,
    file: File,
}

impl GrowingFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(Self { path: path.to_owned(), file: file.map_err(|source| write_error(path, source))? })
    }

    /// Appends `bytes` with one call, so that an interruption can only tear the end, and waits for the disk. Removes what a failed call
    /// left at the end.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let appended = self.file.metadata().and_then(|before| {
            let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
            if written.is_err() {
                let _ = self.file.set_len(before.len()); // the first error is the one to report
            }
            written
        });
        appended.map_err(|source| write_error(&self.path, source))
    }
}

/// Reads a file. Refuses pipes and devices, which may never end.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    durable::open_regular(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|source| read_error(path, source))?;
    Ok(bytes)
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match read(path) {
        Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    #[cfg(test)]
    kill::before_rename(path)?;
    Ok(durable::write(path, contents)?)
}

pub(crate) fn publish(from: &Path, to: &Path) -> Result<(), Error> {
    #[cfg(test)]
    kill::before_rename(to)?;
    Ok(durable::publish_file(from, to)?)
}

pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(write_error(path, source)),
        _ => Ok(()),
    }
}

pub(crate) fn read_error(path: &Path, source: io::Error) -> Error {
    Error::Read { path: path.to_owned(), source }
}

pub(crate) fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write { path: path.to_owned(), source }
}

/// Lets a test stop a writer before any of its renames, like a kill.
#[cfg(test)]
pub(crate) mod kill {
    use std::cell::Cell;
    use std::io;
    use std::path::Path;

    thread_local! {
        /// Number of renames still allowed.
        pub(crate) static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    pub(super) fn before_rename(path: &Path) -> Result<(), crate::Error> {
        let killed = || super::write_error(path, io::Error::other("killed"));
        LEFT.set(LEFT.get().checked_sub(1).ok_or_else(killed)?);
        Ok(())
    }
}
