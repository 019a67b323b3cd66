//! Files and folders that are replaced whole or not at all, also where the process is killed or the power fails.
//!
//! A rename is atomic, but a file system may carry it out before what was written: after a power failure the new name
//! would hold an empty file. So all that is renamed is synced first, and its folder afterwards. Everything in this project
//! that renames goes through here.
//!
//! What is not complete yet lies beside its place as `<name>.partial`, a fixed name where well-known crates draw a random
//! one: what a killed process leaves behind is then reused by the next one, and never piles up. The price is that two
//! processes must not write the same file at once; where they might, they take a [`Lock`].
//!
//! Files of others are opened by [`open_regular`].
mod file;
mod folder;
mod installed;
mod lock;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub use file::{check_writable, open_regular, publish_file, replace_file, write};
pub use folder::{publish_folder, replace_folder, restore_folder};
pub use installed::{bundled, front, installed, installed_commit};
pub use lock::Lock;

/// Why a file or a folder could not be replaced.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{}`", path.display())]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// What the operating system says.
    pub source: io::Error,
}

impl Error {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), source }
    }
}

/// The name that a file or folder has until it is complete: `<name>.partial`, in the same folder, since a rename cannot
/// cross file systems.
pub fn partial(path: &Path) -> PathBuf {
    beside(path, ".partial")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// The folder that `path` lies in.
fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| *parent != OsStr::new(""));
    parent.unwrap_or(Path::new("."))
}

/// Renames, and waits until the disk knows. Both are in one folder, and what is renamed is synced.
fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::rename(from, to).and_then(|()| sync_folder(parent(to))).map_err(Error::at(to))
}

/// Waits until the names in a folder are on the disk.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(()); // a folder cannot be opened there
    }
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some network file systems cannot do this; a run there is worth more.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}
