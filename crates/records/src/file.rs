//! Files that one process writes at a time, and that are replaced whole or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use same_file::Handle;

use crate::Error;

/// A file open for appending, locked against other processes until it is dropped.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Opens the file, or creates it with its folders.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        create_parents(path)?;
        loop {
            let file = Self::try_open(path)?;
            // Another process may have replaced the file between `open` and `lock`; a lock on
            // the old one would guard nothing.
            if file.is_at(path).map_err(|source| read_error(path, source))? {
                return Ok(file);
            }
        }
    }

    fn try_open(path: &Path) -> Result<Self, Error> {
        let open = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = open.map_err(|source| write_error(path, source))?;
        if !file.metadata().map_err(|source| read_error(path, source))?.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { path: path.to_owned() }),
            // Some network file systems have no locks; a run there is worth more than the guard.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(Self(file)),
            Err(TryLockError::Error(source)) => Err(write_error(path, source)),
        }
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        match Handle::from_path(path) {
            Ok(there) => Ok(there == Handle::from_file(self.0.try_clone()?)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All bytes from the first on.
    pub(crate) fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends `bytes` with one call, so that an interruption can only tear the end, and waits for
    /// the disk. What a failed call left behind is cut off again.
    pub(crate) fn append(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let length = self.0.metadata()?.len();
        let written = self.0.write_all(bytes.as_ref()).and_then(|()| self.0.sync_data());
        if written.is_err() {
            // The first error is the one to report, and readers skip a torn line anyway.
            let _ = self.0.set_len(length);
        }
        written
    }

    /// Cuts the file off after `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) -> io::Result<()> {
        self.0.set_len(length as u64)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing alone could come too late: a child process that is just starting holds a copy.
        let _ = self.0.unlock();
    }
}

/// The content of a file. A pipe or a device, which may never end, is refused.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    durable::open_regular(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|source| read_error(path, source))?;
    Ok(bytes)
}

/// The same; absent where there is no file.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match read(path) {
        Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Replaces the file at `path`, or creates it with its folders: all of it or, on error, nothing.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    Ok(durable::write(path, text)?)
}

fn create_parents(path: &Path) -> Result<(), Error> {
    let Some(folder) = path.parent() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|source| write_error(folder, source))
}

pub(crate) fn read_error(path: &Path, source: io::Error) -> Error {
    Error::Read { path: path.to_owned(), source }
}

pub(crate) fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_on_a_replaced_file_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let old = LockedFile::open(&path).unwrap();
        assert!(old.is_at(&path).unwrap());
        replace(&path, "new").unwrap();
        assert!(!old.is_at(&path).unwrap());
        assert_eq!(LockedFile::open(&path).unwrap().read().unwrap(), b"new");
        fs::remove_file(&path).unwrap();
        assert!(!old.is_at(&path).unwrap());
    }

    #[test]
    fn failed_replacement_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        assert!(matches!(replace(&path, "text"), Err(Error::Write { .. })));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}
