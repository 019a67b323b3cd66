//! Files for tests, and helpers that read them.
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::Error;

/// Reads `content` as a file of this name. Errors are messages without the folder.
///
/// # Panics
/// If an error has more than one line.
pub(crate) fn read_as<T>(
    name: &str,
    content: impl AsRef<[u8]>,
    read: impl FnOnce(&Path) -> Result<T, Error>,
) -> Result<T, String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    read(&path).map_err(|error| shown(&error, folder.path()))
}

/// Returns the message of an error without the folder.
pub(crate) fn shown(error: &Error, folder: &Path) -> String {
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message.replace(&format!("{}/", folder.display()), "")
}

/// Copies the files of a folder; `changed` replaces or adds files, and removes those with empty text.
pub(crate) fn copied(folder: &Path, changed: &[(&str, &str)]) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    for (name, text) in changed {
        let path = copy.path().join(name);
        if text.is_empty() { fs::remove_file(path).unwrap() } else { fs::write(path, text).unwrap() }
    }
    copy
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}
