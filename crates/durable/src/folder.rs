//! Folders.
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::{Error, beside, parent, partial, rename, sync_folder};

/// Replaces the folder at `path`, or creates it, with a function that fills the folder at a given path: completely or, on error, not at
/// all. The content of the old folder is removed.
///
/// # Errors
/// If the function fails, `path` is a file, or something cannot be written.
pub fn replace_folder<E: From<Error>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let partial = partial(path);
    remove_if_there(&partial).map_err(Error::at(&partial))?;
    let written = fs::create_dir_all(&partial)
        .map_err(|source| E::from(Error { path: partial.clone(), source }))
        .and_then(|()| fill(&partial))
        .and_then(|()| Ok(publish_folder(&partial, path)?));
    if written.is_err() {
        let _ = fs::remove_dir_all(&partial); // the first error is reported
    }
    written
}

/// Moves a complete folder to its final path in this folder, and replaces a folder there.
///
/// Plain renames cannot swap two folders at once: the old one is called `<name>.replaced` for a moment, and a process that is killed then
/// leaves nothing at `path`. [`restore_folder`] repairs this, and is called here first. The name is not `<name>.old`, which a user's copy
/// might have, because the folder is deleted in the end.
///
/// # Errors
/// If `path` is a file, or something cannot be synced or renamed; the old folder is then in its place.
pub fn publish_folder(partial: &Path, path: &Path) -> Result<(), Error> {
    sync_all(partial).map_err(Error::at(path))?;
    restore_folder(path)?;
    if fs::symlink_metadata(path).is_err() {
        return rename(partial, path);
    }
    if !path.is_dir() {
        return Err(Error::at(path)(ErrorKind::NotADirectory.into()));
    }
    let replaced = replaced(path);
    rename(path, &replaced)?;
    rename(partial, path).inspect_err(|_| {
        let _ = rename(&replaced, path); // the first error is reported
    })?;
    let _ = fs::remove_dir_all(&replaced); // the next call tries again
    Ok(())
}

/// Restores a folder whose replacement was interrupted, and removes what a complete replacement left. Call it before looking for the
/// folder, while no other process replaces it.
pub fn restore_folder(path: &Path) -> Result<(), Error> {
    let replaced = replaced(path);
    if fs::symlink_metadata(&replaced).is_err() {
        return Ok(());
    }
    match fs::symlink_metadata(path) {
        Ok(_) => remove_if_there(&replaced).map_err(Error::at(&replaced)),
        Err(_) => rename(&replaced, path),
    }
}

fn replaced(path: &Path) -> PathBuf {
    beside(path, ".replaced")
}

fn remove_if_there(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Waits until a folder and everything below it are on the disk.
fn sync_all(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_all(&entry.path())?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)?;
    sync_folder(parent(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> impl FnOnce(&Path) -> Result<(), Error> {
        move |folder| {
            fs::create_dir(folder.join("below")).unwrap();
            fs::write(folder.join("below/file"), text).unwrap();
            Ok(())
        }
    }

    fn text(folder: &Path) -> String {
        fs::read_to_string(folder.join("below/file")).unwrap()
    }

    fn around(folder: &Path) -> usize {
        fs::read_dir(parent(folder)).unwrap().count()
    }

    #[test]
    fn a_folder_is_replaced_completely_or_not_at_all() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("model.v2");
        replace_folder(&folder, fill("older")).unwrap();
        fs::write(folder.join("more"), "").unwrap();
        replace_folder(&folder, fill("old")).unwrap();
        assert!(!folder.join("more").exists());
        let failing = |partial: &Path| {
            fill("new")(partial)?;
            Err(Error { path: PathBuf::from("given"), source: io::Error::other("up") })
        };
        assert_eq!(replace_folder(&folder, failing).unwrap_err().path, Path::new("given"));
        assert_eq!((text(&folder).as_str(), around(&folder)), ("old", 1));
        // a file is not replaced by a folder
        let file = folder.join("below/file");
        let error = replace_folder(&file, fill("new")).unwrap_err();
        assert_eq!((error.source.kind(), &error.path), (ErrorKind::NotADirectory, &file));
        assert_eq!((text(&folder).as_str(), around(&file)), ("old", 1));
    }

    #[test]
    fn a_replacement_that_was_killed_between_its_renames_is_repaired() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("model");
        replace_folder(&folder, fill("old")).unwrap();
        fs::rename(&folder, replaced(&folder)).unwrap();
        restore_folder(&folder).unwrap();
        assert_eq!((text(&folder).as_str(), around(&folder)), ("old", 1));

        // killed a moment later, when the new folder exists and the old one is not yet removed
        fs::rename(&folder, replaced(&folder)).unwrap();
        fs::create_dir(&folder).unwrap();
        fill("new")(&folder).unwrap();
        restore_folder(&folder).unwrap();
        assert_eq!((text(&folder).as_str(), around(&folder)), ("new", 1));
        restore_folder(&folder).unwrap();

        // remains of such a process do not prevent the next replacement either
        fs::rename(&folder, replaced(&folder)).unwrap();
        fs::create_dir(partial(&folder)).unwrap();
        replace_folder(&folder, fill("newest")).unwrap();
        assert_eq!((text(&folder).as_str(), around(&folder)), ("newest", 1));
    }
}
