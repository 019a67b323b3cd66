//! Where the sentence pairs of a split are: files of as many lines, or a table.
use std::path::{Path, PathBuf};

use corpus::pairs::{PairTable, Selection};
use corpus::parallel::ParallelText;
use serde::{Deserialize, Serialize};

use crate::spec::check;

/// A pair of files with one sentence a line, plain or gzip; or a file of pairs, a tab-separated table.
///
/// A trained model keeps a record of its two splits, which is compared: what is not given must not appear in it, nor
/// where the files can be fetched.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePair {
    /// A table of sentence pairs, plain, gzip or in a zip archive; a source sentence counts once, with the first of its
    /// translations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PathBuf>,
    /// The table's name in a zip archive that has more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Sentences to translate.
    pub source: Side,
    /// Their reference translations.
    pub target: Side,
    /// Leaves out pairs with a side of more words, counted between white space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_words: Option<usize>,
    /// Draws so many of the pairs at random ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// ... with this seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Name for `just fetch`, if it is not that of `[data]`.
    #[serde(default, skip_serializing)]
    pub fetch: Option<String>,
}

/// One side of a split.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a side is a file, a list of files or, with `pairs`, the number of a column, counted from 1"
)]
pub enum Side {
    /// A column of the table, counted from 1.
    Column(usize),
    /// A file of its own.
    File(PathBuf),
    /// Files that are read one behind the other.
    Files(Vec<PathBuf>),
}

impl Side {
    /// The files in `folder`; none if it is a column.
    fn files(&self, folder: &Path) -> Vec<PathBuf> {
        match self {
            Self::Column(_) => Vec::new(),
            Self::File(file) => vec![folder.join(file)],
            Self::Files(files) => files.iter().map(|file| folder.join(file)).collect(),
        }
    }
}

const MIXED_SIDES: &str = "source and target are columns of `pairs`, counted from 1, or, without `pairs`, two files or two \
                           lists of as many files";

/// Two files of as many lines.
struct FileNames {
    source: PathBuf,
    target: PathBuf,
}

/// Where the sentences of a split are.
enum Place {
    /// Source and target, one or more of them.
    Files(Vec<FileNames>),
    Table(PairTable),
}

impl FilePair {
    /// The files; `folder` is where data sets are.
    pub(crate) fn paths(&self, folder: &Path) -> Vec<PathBuf> {
        match self.place(folder) {
            Some(Place::Files(files)) => {
                files.into_iter().flat_map(|both| [both.source, both.target]).collect()
            }
            Some(Place::Table(table)) => vec![table.path],
            None => Vec::new(), // refused by validation
        }
    }

    /// Reads the pairs and chooses among them; `folder` is where data sets are.
    ///
    /// # Errors
    /// If a file is missing, torn or empty, two are of different length, or there are too few pairs for the sample.
    ///
    /// # Panics
    /// If validation refused it.
    pub(crate) fn read(&self, folder: &Path) -> Result<ParallelText, corpus::Error> {
        let (path, text) = match self.place(folder).expect("validated") {
            Place::Files(files) => {
                let mut text = ParallelText::default();
                for FileNames { source, target } in &files {
                    text.append(ParallelText::read(source, target)?);
                }
                (files[0].source.clone(), text)
            }
            Place::Table(table) => (table.path.clone(), table.read()?),
        };
        let selection = Selection { most_words: self.most_words, sample: self.sample.zip(self.seed) };
        if selection == Selection::default() { Ok(text) } else { selection.choose(&text, &path) }
    }

    /// `None` if columns and files are mixed up.
    fn place(&self, folder: &Path) -> Option<Place> {
        match (&self.pairs, &self.source, &self.target) {
            (Some(pairs), &Side::Column(source), &Side::Column(target)) => {
                let (path, inside) = (folder.join(pairs), self.inside.clone());
                Some(Place::Table(PairTable { path, inside, source, target }))
            }
            (Some(_), ..) => None,
            (None, source, target) => {
                let (source, target) = (source.files(folder), target.files(folder));
                let both = |(source, target)| FileNames { source, target };
                let fits = !source.is_empty() && source.len() == target.len();
                fits.then(|| Place::Files(source.into_iter().zip(target).map(both).collect()))
            }
        }
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        match self.place(Path::new("")) {
            Some(Place::Table(table)) => table.validate().map_err(|fault| fault.to_string())?,
            Some(Place::Files(_)) => {
                check(&[("`inside` is for `pairs`, a table in a zip archive", self.inside.is_none())])?;
            }
            None => return Err(MIXED_SIDES.to_owned()),
        }
        check(&[
            ("`sample` and `seed` need each other", self.sample.is_some() == self.seed.is_some()),
            ("`sample` must be at least 1", self.sample != Some(0)),
            ("`most_words` must be at least 1", self.most_words != Some(0)),
        ])
    }
}
