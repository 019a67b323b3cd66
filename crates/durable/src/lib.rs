//! Files and folders that are replaced completely or not at all, even if the process is killed or the power fails.
//!
//! A rename is atomic, but a file system may carry it out before earlier writes: after a power failure the new name would be an empty file.
//! Therefore everything is synced before it is renamed, and its folder afterwards. All renames of this project go through here.
//!
//! Incomplete files are called `<name>.partial`, in the folder of the final file. The name is fixed, not random as in well-known crates,
//! so that the next process reuses what a killed process left, and nothing piles up. In return, two processes must not write one file
//! at once; if they might, they take a [`Lock`].
//!
//! [`open_regular`] opens files from other sources.
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

/// Reason why a file or a folder could not be replaced.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{}`", path.display())]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

impl Error {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self { path: path.to_owned(), source }
    }
}

/// Returns the path of a file or folder until it is complete: `<name>.partial`, in its folder because a rename cannot cross file systems.
pub fn partial(path: &Path) -> PathBuf {
    beside(path, ".partial")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// Returns the folder of a file or folder; `.` for a bare name.
pub fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| *parent != OsStr::new(""));
    parent.unwrap_or(Path::new("."))
}

/// Renames something that is synced within a folder, and waits until the rename is on the disk.
fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::rename(from, to).and_then(|()| sync_folder(parent(to))).map_err(Error::at(to))
}

/// Waits until the names in a folder are on the disk.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(()); // folders cannot be opened on other systems
    }
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some network file systems do not support this; running there is more important.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}
