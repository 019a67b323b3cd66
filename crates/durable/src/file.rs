//! Single files.
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use crate::{Error, parent, partial, rename};

const NOT_REGULAR: &str = "not a regular file";
/// What git writes in place of a large file if git-lfs is not installed, and the error about it.
const POINTER: [&str; 2] =
    ["version https://git-lfs", "a Git LFS pointer instead of the file: `git lfs pull` downloads it"];

/// Opens a file for reading. Refuses pipes and devices, which may never end, and Git LFS pointers.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Before opening, since opening a pipe waits for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other(NOT_REGULAR));
    }
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    (&mut file).take(POINTER[0].len() as u64).read_to_end(&mut start)?;
    if start == POINTER[0].as_bytes() {
        return Err(io::Error::other(POINTER[1]));
    }
    file.rewind()?;
    Ok(file)
}

/// Replaces the file at `path`, or creates it with its folders, completely or, on error, not at all.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    replace_file(path, |partial| fs::write(partial, contents).map_err(Error::at(path)))
}

/// Replaces a file like [`write()`], with a function that fills the file at a given path.
///
/// # Errors
/// If the function fails, the file cannot be written, or a device or a folder is in its place.
pub fn replace_file<E: From<Error>>(path: &Path, fill: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    let partial = room(path)?;
    let written = fill(&partial).and_then(|()| Ok(publish_file(&partial, path)?));
    if written.is_err() {
        let _ = fs::remove_file(&partial); // the first error is reported
    }
    written
}

/// Creates the folders of a file and checks that [`write()`] can write it, before any long work.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let partial = room(path)?;
    fs::write(&partial, "").and_then(|()| fs::remove_file(&partial)).map_err(Error::at(path))
}

/// Creates the folders of a file, and returns the free path that the file has until it is complete.
fn room(path: &Path) -> Result<PathBuf, Error> {
    let folder = parent(path);
    fs::create_dir_all(folder).map_err(Error::at(folder))?;
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(Error::at(path)(io::Error::other(NOT_REGULAR)));
    }
    let partial = partial(path);
    remove_if_there(&partial).map_err(Error::at(&partial))?;
    Ok(partial)
}

/// Moves a complete file to its final path in this folder, and replaces what is there.
///
/// # Errors
/// If it cannot be synced or renamed; the old file stays.
pub fn publish_file(partial: &Path, path: &Path) -> Result<(), Error> {
    File::open(partial).and_then(|file| file.sync_all()).map_err(Error::at(path))?;
    rename(partial, path)
}

/// Removes a file before writing, since it may be read-only or a link.
fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// File names may contain dots.
    #[test]
    fn a_file_is_created_with_its_folders_and_replaced_despite_remains_of_a_killed_process() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("deep/my.v2"), folder.path().join("other"));
        write(&path, "old").unwrap();
        fs::write(partial(&path), "much longer than the new text").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        fs::write(&other, "mine").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&other, partial(&path)).unwrap();
        write(&path, "newer").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine", "nothing is written through a link");
        assert_eq!(names(&folder.path().join("deep")), ["my.v2"]);
    }

    #[test]
    fn a_path_that_cannot_be_replaced_stays_and_no_partial_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert_eq!(write(&taken, "text").unwrap_err().path, taken);
        let file = folder.path().join("file");
        write(&file, "text").unwrap();
        assert!(write(&file.join("below"), "text").is_err(), "a file cannot contain a file");
        assert!(check_writable(&taken).is_err() && check_writable(&file.join("below")).is_err());
        check_writable(&file).unwrap();
        let failing = |partial: &Path| {
            fs::write(partial, "half").unwrap();
            Err(Error { path: PathBuf::from("given"), source: io::Error::other("up") })
        };
        assert_eq!(replace_file(&file, failing).unwrap_err().path, Path::new("given"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        assert_eq!(names(folder.path()), ["file", "taken"]);
    }
}
