//! The cache of the Hugging Face hub on disk: contents under `blobs/`, names that lead to them under
//! `snapshots/<commit>/`, commits of branches under `refs/`.
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::fetch::checksum;
use crate::foreign::shown;

/// What the cache has of one model.
pub(super) struct Cache {
    root: PathBuf,
    model: String,
}

/// A content, under the name that the hub gives it. Others who bring the same wait until this one is dropped.
pub(super) struct Blob {
    path: PathBuf,
    etag: String,
    _lock: File,
}

/// Whether `text` is the name of a commit; such names become paths.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether `text` can be the name of a content; such names become paths.
pub(super) fn is_etag(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(allowed)
}

impl Cache {
    pub(super) fn new(root: &Path, repository: &str) -> Self {
        Self { root: root.to_owned(), model: format!("models--{}", repository.replace('/', "--")) }
    }

    /// The folder of all models.
    pub(super) fn path(&self) -> &Path {
        &self.root
    }

    /// The folder with the files of a commit.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join(&self.model).join("snapshots").join(commit)
    }

    /// The commit that a branch or tag was when it was last asked for.
    pub(super) fn commit(&self, revision: &str) -> Result<Option<String>, Error> {
        let path = self.reference(revision);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
        let commit = text.trim();
        if is_commit(commit) {
            return Ok(Some(commit.to_owned()));
        }
        Err(Error::Reference { path, found: shown(commit) })
    }

    /// Writes down which commit a branch or tag is.
    pub(super) fn remember(&self, revision: &str, commit: &str) -> Result<(), Error> {
        let path = self.reference(revision);
        make_folder_of(&path)?;
        fs::write(&path, commit).map_err(|source| Error::Write { path, source })
    }

    fn reference(&self, revision: &str) -> PathBuf {
        self.root.join(&self.model).join("refs").join(revision)
    }

    /// The content of this name, once nobody else is bringing it.
    pub(super) fn blob(&self, etag: String) -> Result<Blob, Error> {
        let path = self.root.join(&self.model).join("blobs").join(&etag);
        make_folder_of(&path)?;
        // Where huggingface_hub has its locks, too.
        let place = self.root.join(".locks").join(&self.model).join(format!("{etag}.lock"));
        make_folder_of(&place)?;
        let lock = File::create(&place).and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(|source| Error::Write { path: place, source })?;
        Ok(Blob { path, etag, _lock: lock })
    }

    /// Gives a content its file name in a commit.
    pub(super) fn link(&self, commit: &str, name: &str, blob: &Blob) -> Result<(), Error> {
        let path = self.snapshot(commit).join(name);
        make_folder_of(&path)?;
        if path.is_symlink() {
            fs::remove_file(&path).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
        #[cfg(unix)]
        let linked = std::os::unix::fs::symlink(Path::new("../../blobs").join(&blob.etag), &path);
        #[cfg(not(unix))]
        let linked = fs::copy(&blob.path, &path).map(drop);
        linked.map_err(|source| Error::Write { path, source })
    }
}

impl Blob {
    pub(super) fn is_complete(&self) -> bool {
        self.path.exists()
    }

    /// Where it is until it is complete.
    pub(super) fn part(&self) -> PathBuf {
        self.path.with_file_name(format!("{}.incomplete", self.etag))
    }

    /// Gives what is in [`part`](Self::part) its name, if that is its sha256, as it is for every large file, or none;
    /// removes what is wrong. `model` is for the message.
    pub(super) fn complete(&self, model: &str) -> Result<(), Error> {
        let part = self.part();
        let is_sha256 = self.etag.len() == 64 && self.etag.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_sha256 {
            let found = checksum::of_text(&part, false)?.unwrap_or_else(|reason| reason);
            if !found.eq_ignore_ascii_case(&self.etag) {
                fs::remove_file(&part).map_err(|source| Error::Write { path: part, source })?;
                return Err(Error::Content { address: model.to_owned(), expected: self.etag.clone(), found });
            }
        }
        fs::rename(&part, &self.path).map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

fn make_folder_of(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })
}
