//! Data files and the splits that they belong to.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use corpus::{images, tables};
use training::Machine;

use super::toml_text::Because;
use super::{ask, shown};
use crate::error::{Error, quoted};

/// Files given on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileArgs {
    /// Files, or folders of files.
    pub files: Vec<PathBuf>,
    /// Files whose split was given.
    pub named: BTreeMap<&'static str, Vec<PathBuf>>,
}

/// Splits, and words in file names that indicate them.
const SPLITS: [(&str, &[&str]); 3] = [
    ("train", &["train", "training"]),
    ("dev", &["dev", "val", "valid", "validation", "eval"]),
    ("test", &["test", "testing"]),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataFile {
    pub path: PathBuf,
    /// The path as written in the setup.
    pub shown: PathBuf,
}

impl DataFile {
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Endings of names of files that contain no data.
const NO_DATA_ENDINGS: &[&str] = &[
    ".md",
    ".py",
    ".yaml",
    ".yml",
    ".cff",
    ".lock",
    ".sh",
    "_info.json",
    "_infos.json",
    "_dict.json",
    "state.json",
];

/// Beginnings of names of files that contain no data.
const NO_DATA_BEGINNINGS: &[&str] = &["readme", "license", "changelog"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splits {
    /// Files by split, in the order given.
    pub files: BTreeMap<&'static str, Vec<DataFile>>,
    /// Reason for the choice of the test set, if it was assumed.
    pub assumed_test: Option<String>,
}

impl Splits {
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
        Self { files, assumed_test: None }.with_test(others)
    }

    /// Adds a test split if it is missing: the development set, or else files that match no split.
    fn with_test(mut self, others: Vec<DataFile>) -> Result<Self, Error> {
        if self.files.contains_key("test") {
            return Ok(self);
        }
        if self.files.contains_key("dev") {
            self.dev_becomes_test("there is no test set: results are for the development set");
            return Ok(self);
        }
        if others.is_empty() {
            let found: Vec<String> =
                self.files.into_values().flatten().map(|file| file.path.display().to_string()).collect();
            let what = match found.is_empty() {
                true => "no test set is given".to_owned(),
                false => format!("there is no test set among {}", quoted(&found)),
            };
            return Err(ask(what, "name it with --test FILE"));
        }
        if others.len() > 1 || !self.files.is_empty() {
            self.assumed_test = Some("files whose names indicate no split are the test set".to_owned());
        }
        self.files.insert("test", others);
        Ok(self)
    }

    /// Uses the development set as the test set.
    pub(super) fn dev_becomes_test(&mut self, why: &str) {
        if let Some(dev) = self.files.remove("dev") {
            self.files.insert("test", dev);
            self.assumed_test = Some(why.to_owned());
        }
    }

    /// Returns the reason for a split's entry.
    pub(super) fn because(&self, split: &str) -> Because {
        match &self.assumed_test {
            Some(why) if split == "test" => Because::Assumed(why.clone()),
            _ => Because::Told,
        }
    }

    pub(super) fn test(&self) -> &[DataFile] {
        self.files.get("test").map_or(&[], Vec::as_slice)
    }

    /// Returns true if heads can be ranked on a training split.
    pub(super) fn has_train(&self) -> bool {
        self.files.contains_key("train")
    }
}

/// Returns the error for several files where a split must be one file, or one pair of files.
pub(super) fn several(files: &[DataFile], option: &str) -> Error {
    let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
    ask(format!("several files for one split: {}", quoted(&names)), option)
}

/// Returns a file, or the files in a folder in alphabetical order without hidden files. Image folders by class and folders made by
/// `save_to_disk` count as single files. Paths may be relative to the data folder.
fn expand(path: &Path, machine: &Machine) -> Result<Vec<DataFile>, Error> {
    let in_data = machine.data.join(path);
    let Some(path) = [path, &in_data].into_iter().find(|path| path.exists()) else {
        let (path, data) = (path.display(), machine.data.display());
        return Err(Error::Invalid(format!("no data in `{path}`: no such file here or in `{data}`")));
    };
    let mut paths = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|source| Error::read(path, source))?;
        let entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let is_data_set =
            |path: &PathBuf| images::list(path).is_ok() || path.is_dir() && tables::kind_of(path).is_some();
        paths = paths.into_iter().chain(entries.clone()).filter(is_data_set).collect();
        if paths.is_empty() {
            paths = entries.into_iter().filter(|path| path.is_file() && is_data(path)).collect();
        }
        paths.sort();
        if paths.is_empty() {
            return Err(Error::Invalid(format!("no data in `{}`: the folder has no files", path.display())));
        }
    }
    let file = |path: PathBuf| Ok(DataFile { shown: shown(&path, machine)?, path });
    paths.into_iter().map(file).collect()
}

/// Returns false for hidden files and for files that describe data.
fn is_data(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    !name.starts_with('.')
        && !NO_DATA_ENDINGS.iter().any(|ending| name.ends_with(ending))
        && !NO_DATA_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Returns the split that a file name indicates. Folder names are ignored, since they are often names of data sets.
fn split_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphabetic()).collect();
    SPLITS.iter().find(|(_, known)| words.iter().any(|word| known.contains(word))).map(|&(split, _)| split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_indicate_splits() {
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
            let found = Splits { files, assumed_test: None }
                .with_test(others.iter().map(|name| file(name)).collect());
            found.map(|found| found.test()[0].path.display().to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(splits(&[], &["a.csv"]), Ok("a.csv".to_owned()));
        assert_eq!(splits(&["train", "dev"], &[]), Ok("dev".to_owned()));
        assert_eq!(splits(&["train", "dev"], &["other.txt"]), Ok("dev".to_owned()));
        assert_eq!(splits(&["train", "test"], &["other.txt"]), Ok("test".to_owned()));
        assert!(
            ["README.md", "dataset_info.json", ".gitattributes"].iter().all(|name| !is_data(Path::new(name)))
        );
        assert_eq!(
            splits(&["train"], &[]),
            Err("there is no test set among `train`: name it with --test FILE".to_owned())
        );
        assert_eq!(splits(&[], &[]), Err("no test set is given: name it with --test FILE".to_owned()));
    }
}
