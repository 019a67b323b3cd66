//! Cache of the Hugging Face hub on disk: contents in `blobs/`, links to them in `snapshots/<commit>/`, and the commits of branches in
//! `refs/`.
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use words::excerpt;

use crate::Error;
use crate::fetch::accept;

pub(super) struct Cache {
    root: PathBuf,
    model: String,
}

/// Content of a file, named by its ETag. Locked until dropped: other processes that need it wait.
pub(super) struct Blob {
    path: PathBuf,
    etag: String,
    _lock: File,
}

/// Returns true for a digest of a commit or content, which is safe in a path.
pub(super) fn is_digest(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Cache {
    pub(super) fn new(root: &Path, repository: &str) -> Self {
        Self { root: root.to_owned(), model: format!("models--{}", repository.replace('/', "--")) }
    }

    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join(&self.model).join("snapshots").join(commit)
    }

    /// Returns the commit of a branch or tag when it was last fetched; `None` if it never was.
    pub(super) fn commit(&self, revision: &str) -> Result<Option<String>, Error> {
        let path = self.reference(revision);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
        let commit = text.trim();
        if is_digest(commit) {
            return Ok(Some(commit.to_owned()));
        }
        let (path, commit) = (path.display(), excerpt(commit));
        let allowed = "should contain a commit (40 hexadecimal digits), but contains";
        Err(Error::Invalid(format!("`{path}` {allowed} `{commit}`")))
    }

    pub(super) fn remember(&self, revision: &str, commit: &str) -> Result<(), Error> {
        let _lock = self.lock("refs")?;
        Ok(durable::write(&self.reference(revision), commit)?)
    }

    fn reference(&self, revision: &str) -> PathBuf {
        self.root.join(&self.model).join("refs").join(revision)
    }

    /// Locks the content `etag`; waits while another process downloads it.
    pub(super) fn blob(&self, etag: &str) -> Result<Blob, Error> {
        let path = self.root.join(&self.model).join("blobs").join(etag);
        make_folder_of(&path)?;
        Ok(Blob { path, etag: etag.to_owned(), _lock: self.lock(etag)? })
    }

    /// Locks a content or the references for writing, waiting if necessary. The lock is huggingface_hub's too.
    fn lock(&self, name: &str) -> Result<File, Error> {
        let place = self.root.join(".locks").join(&self.model).join(format!("{name}.lock"));
        make_folder_of(&place)?;
        let lock = File::create(&place).and_then(|file| file.lock().map(|()| file));
        lock.map_err(Error::writing(&place))
    }

    /// Links a content to its file name in a commit's snapshot.
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

    /// Returns the path of the incomplete download.
    pub(super) fn part(&self) -> PathBuf {
        self.path.with_file_name(format!("{}.incomplete", self.etag))
    }

    /// Moves the finished download to its final name. A large file is named by its sha256; on a mismatch the download is deleted. `model`
    /// is for messages.
    pub(super) fn complete(&self, model: &str) -> Result<(), Error> {
        let expected = (self.etag.len() == 64).then_some(&*self.etag);
        accept(&self.part(), &self.path, expected, model)
    }
}

fn make_folder_of(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(Error::writing(folder))
}
