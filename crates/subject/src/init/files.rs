//! Files of data, and the splits that they are.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use training::Machine;

use super::{ask, shown};
use crate::error::{Error, quoted};

/// Files as they are named on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileArgs {
    /// Files, or folders of files.
    pub files: Vec<PathBuf>,
    /// Files of splits that were named.
    pub named: BTreeMap<&'static str, Vec<PathBuf>>,
}

/// Splits, and words of file names that mean them.
const SPLITS: [(&str, &[&str]); 3] = [
    ("train", &["train", "training"]),
    ("dev", &["dev", "val", "valid", "validation", "eval"]),
    ("test", &["test", "testing"]),
];

/// A file of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// The path as the setup has it.
    pub shown: PathBuf,
}

impl DataFile {
    /// The last part of its path.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The files of each split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splits {
    /// Files by split, in the order in which they were named.
    pub files: BTreeMap<&'static str, Vec<DataFile>>,
}

impl Splits {
    /// Assigns files to splits by their names.
    pub(super) fn find(args: &FileArgs, machine: &Machine) -> Result<Self, Error> {
        let mut files: BTreeMap<&'static str, Vec<DataFile>> = BTreeMap::new();
        for (&split, paths) in &args.named {
            for path in paths {
                files.entry(split).or_default().extend(expand(path, machine)?);
            }
        }
        let mut others = Vec::new();
        for path in &args.files {
            for file in expand(path, machine)? {
                match split_of(&file.path) {
                    Some(split) => files.entry(split).or_default().push(file),
                    None => others.push(file),
                }
            }
        }
        Self { files }.with_test(others)
    }

    /// The test split: files without a split of their own, or else the development set.
    fn with_test(mut self, others: Vec<DataFile>) -> Result<Self, Error> {
        let names = |files: &[DataFile]| {
            quoted(&files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>())
        };
        match (self.files.contains_key("test"), others.is_empty()) {
            (true, _) => Ok(self),
            (false, false) => {
                self.files.insert("test", others);
                Ok(self)
            }
            (false, true) => match self.files.remove("dev") {
                Some(dev) => {
                    self.files.insert("test", dev);
                    Ok(self)
                }
                None => {
                    let found: Vec<DataFile> = self.files.into_values().flatten().collect();
                    let what = match found.is_empty() {
                        true => "no test set is named".to_owned(),
                        false => format!("there is no test set among {}", names(&found)),
                    };
                    Err(ask(what, "name it by --test FILE"))
                }
            },
        }
    }

    /// The files of the test split.
    pub(super) fn test(&self) -> &[DataFile] {
        self.files.get("test").map_or(&[], Vec::as_slice)
    }

    /// True if there is a split to rank heads on.
    pub(super) fn has_train(&self) -> bool {
        self.files.contains_key("train")
    }
}

/// A file, or the files of a folder, in alphabetical order; hidden ones do not count. Looks in the data folder too.
fn expand(path: &Path, machine: &Machine) -> Result<Vec<DataFile>, Error> {
    let in_data = machine.data.join(path);
    let Some(path) = [path, &in_data].into_iter().find(|path| path.exists()) else {
        let (path, data) = (path.display(), machine.data.display());
        return Err(Error::Invalid(format!(
            "no data in `{path}`: there is no such file, here or in `{data}`"
        )));
    };
    let mut paths = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|source| Error::read(path, source))?;
        let is_shown = |path: &PathBuf| {
            path.is_file() && !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
        };
        paths = entries.flatten().map(|entry| entry.path()).filter(is_shown).collect();
        paths.sort();
        if paths.is_empty() {
            return Err(Error::Invalid(format!("no data in `{}`: the folder has no files", path.display())));
        }
    }
    let file = |path: PathBuf| Ok(DataFile { shown: shown(&path, machine)?, path });
    paths.into_iter().map(file).collect()
}

/// The split that the name of a file means; the whole path is not asked, since folders have names of data sets.
fn split_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphabetic()).collect();
    SPLITS.iter().find(|(_, known)| words.iter().any(|word| known.contains(word))).map(|&(split, _)| split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_mean_splits() {
        let of = |name: &str| split_of(Path::new(name));
        assert_eq!(of("test/train-00000-of-00002.jsonl"), Some("train"));
        assert_eq!(
            (of("a/dev.en"), of("newsvalid.en"), of("x.val.tsv.gz")),
            (Some("dev"), None, Some("dev"))
        );
        assert_eq!(
            (of("reviews_test.csv"), of("reviews.csv"), of("contest.csv")),
            (Some("test"), None, None)
        );
    }

    #[test]
    fn the_test_set_is_the_only_file_or_else_the_development_set() {
        let file = |name: &str| DataFile { path: name.into(), shown: name.into() };
        let splits = |names: &[&'static str], others: &[&str]| {
            let files = names.iter().map(|&name| (name, vec![file(name)])).collect();
            let found = Splits { files }.with_test(others.iter().map(|name| file(name)).collect());
            found.map(|found| found.test()[0].path.display().to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(splits(&[], &["a.csv"]), Ok("a.csv".to_owned()));
        assert_eq!(splits(&["train", "dev"], &[]), Ok("dev".to_owned()));
        assert_eq!(splits(&["train", "test"], &["readme"]), Ok("test".to_owned()));
        assert_eq!(
            splits(&["train"], &[]),
            Err("there is no test set among `train`: name it by --test FILE".to_owned())
        );
        assert_eq!(splits(&[], &[]), Err("no test set is named: name it by --test FILE".to_owned()));
    }
}
