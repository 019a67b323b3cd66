//! The cache of the Hugging Face hub on disk: contents are in `blobs/`, links to them in
//! `snapshots/<commit>/`, and the commits of branches in `refs/`.
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use words::excerpt;

use crate::Error;
use crate::fetch::accept;

/// The part of the cache that belongs to one model.
pub(super) struct Cache {
    root: PathBuf,
    model: String,
}

/// The content of a file, under the hub's name for it. Other processes that want the same wait until this is dropped.
pub(super) struct Blob {
    path: PathBuf,
    etag: String,
    _lock: File,
}

/// Tells digests, which name commits and contents and are safe to use in a path.
pub(super) fn is_digest(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Cache {
    pub(super) fn new(root: &Path, repository: &str) -> Self {
        Self { root: root.to_owned(), model: format!("models--{}", repository.replace('/', "--")) }
    }

    /// The folder with the files of a commit.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join(&self.model).join("snapshots").join(commit)
    }

    /// The commit that a branch or tag stood for when it was last fetched.
    pub(super) fn commit(&self, revision: &str) -> Result<Option<String>, Error> {
        let path = self.reference(revision);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
        let commit = text.trim();
        if is_digest(commit) {
            return Ok(Some(commit.to_owned()));
        }
        let (path, commit) = (path.display(), excerpt(commit));
        let allowed = "should hold a commit, 40 hexadecimal digits, but holds";
        Err(Error::Invalid(format!("`{path}` {allowed} `{commit}`")))
    }

    /// Records the commit that a branch or tag stands for.
    pub(super) fn remember(&self, revision: &str, commit: &str) -> Result<(), Error> {
        let _lock = self.lock("refs")?;
        Ok(durable::write(&self.reference(revision), commit)?)
    }

    fn reference(&self, revision: &str) -> PathBuf {
        self.root.join(&self.model).join("refs").join(revision)
    }

    /// The content of this name. Waits while another process downloads it.
    pub(super) fn blob(&self, etag: &str) -> Result<Blob, Error> {
        let path = self.root.join(&self.model).join("blobs").join(etag);
        make_folder_of(&path)?;
        Ok(Blob { path, etag: etag.to_owned(), _lock: self.lock(etag)? })
    }

    /// The right to write a content or the references; waits while another process has it. The lock is huggingface_hub's too.
    fn lock(&self, name: &str) -> Result<File, Error> {
        let place = self.root.join(".locks").join(&self.model).join(format!("{name}.lock"));
        make_folder_of(&place)?;
        let lock = File::create(&place).and_then(|file| file.lock().map(|()| file));
        lock.map_err(Error::writing(&place))
    }

    /// Links a content to its file name in a commit.
    pub(super) fn link(&self, commit: &str, name: &str, blob: &Blob) -> Result<(), Error> {
        let path = self.snapshot(commit).join(name);
        make_folder_of(&path)?;
        if path.is_symlink() {
            fs::remove_file(&path).map_err(Error::writing(&path))?;
        }
        #[cfg(unix)]
        let linked = std::os::unix::fs::symlink(Path::new("../../blobs").join(&blob.etag), &path);
        #[cfg(not(unix))]
        let linked = fs::copy(&blob.path, &path).map(drop);
        linked.map_err(Error::writing(&path))
    }
}

impl Blob {
    pub(super) fn is_complete(&self) -> bool {
        self.path.exists()
    }

    /// The file that holds the content until it is complete.
    pub(super) fn part(&self) -> PathBuf {
        self.path.with_file_name(format!("{}.incomplete", self.etag))
    }

    /// Gives the content in [`part`](Self::part) its name. Large files are named by their sha256; if it does not match,
    /// the part is removed. `model` is for the message.
    pub(super) fn complete(&self, model: &str) -> Result<(), Error> {
        let expected = (self.etag.len() == 64).then_some(&*self.etag);
        accept(&self.part(), &self.path, expected, model)
    }
}

fn make_folder_of(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(Error::writing(folder))
}
