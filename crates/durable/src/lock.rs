//! One process at a time.
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use crate::{Error, beside, parent};

/// The right to write a file or a folder, until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes the right to write `path`, which need not be there, or nothing if another process has it.
    ///
    /// What is locked is the empty file `<name>.lock` beside it, since `path` itself may be replaced meanwhile. The file
    /// stays: a process that removed it could let two others in.
    ///
    /// # Errors
    /// If that file cannot be written.
    pub fn take(path: &Path) -> Result<Option<Self>, Error> {
        let folder = parent(path);
        fs::create_dir_all(folder).map_err(Error::at(folder))?;
        let place = beside(path, ".lock");
        let open = OpenOptions::new().write(true).create(true).truncate(false).open(&place);
        let file = open.map_err(Error::at(&place))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            // Some network file systems have no locks; a run there is worth more than the guard.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(Some(Self(file))),
            Err(TryLockError::Error(source)) => Err(Error { path: place, source }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone could come too late: a child process that is just starting holds a copy.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models/tiny");
        let first = Lock::take(&path).unwrap().unwrap();
        assert!(Lock::take(&path).unwrap().is_none());
        assert!(Lock::take(&folder.path().join("models/other")).unwrap().is_some());
        drop(first);
        assert!(Lock::take(&path).unwrap().is_some());
    }
}
