//! Locks between processes.
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use same_file::Handle;

use crate::{Error, beside, parent};

/// Exclusive right to write a file or a folder, until it is dropped or the process ends in any way.
#[derive(Debug)]
pub struct Lock {
    file: File,
    place: PathBuf,
}

impl Lock {
    /// Locks `path`, which need not exist; `None` if another process holds the lock.
    ///
    /// Locks the empty file `<name>.lock` in its folder, since `path` may be replaced meanwhile. A killed process leaves the file, but not
    /// the lock.
    pub fn take(path: &Path) -> Result<Option<Self>, Error> {
        let folder = parent(path);
        fs::create_dir_all(folder).map_err(Error::at(folder))?;
        let place = beside(path, ".lock");
        loop {
            let open = OpenOptions::new().write(true).create(true).truncate(false).open(&place);
            let file = open.map_err(Error::at(&place))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                // Some network file systems have no locks; running there is more important.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(source)) => return Err(Error { path: place, source }),
            }
            // The last owner may have removed the file between `open` and `try_lock`; a lock on it would protect nothing.
            if is_at(&file, &place).map_err(Error::at(&place))? {
                return Ok(Some(Self { file, place }));
            }
        }
    }
}

fn is_at(file: &File, place: &Path) -> io::Result<bool> {
    match Handle::from_path(place) {
        Ok(there) => Ok(there == Handle::from_file(file.try_clone()?)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.place); // an empty file
        // Closing alone could come too late: a child process that is starting has a copy.
        let _ = self.file.unlock();
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
        assert_eq!(fs::read_dir(parent(&path)).unwrap().count(), 0, "nothing is left behind");
        fs::write(beside(&path, ".lock"), "").unwrap(); // left by a killed process
        assert!(Lock::take(&path).unwrap().is_some());

        // a lock on a file that was removed does not count
        let place = folder.path().join("tiny.lock");
        let file = File::create(&place).unwrap();
        assert!(is_at(&file, &place).unwrap());
        fs::remove_file(&place).unwrap();
        assert!(!is_at(&file, &place).unwrap());
        File::create(&place).unwrap();
        assert!(!is_at(&file, &place).unwrap());
    }
}
