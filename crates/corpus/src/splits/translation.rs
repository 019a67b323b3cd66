//! Sentence pairs of a split: from parallel files, a table, or the demo grammar.
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{BadRows, check};
use crate::Error;
use crate::grammar::{Sample, SplitSizes, demo_splits};
use crate::pairs::{PairTable, Selection};
use crate::parallel::ParallelText;
use crate::rows::{Column, RowKind};

/// A file of source sentences and one or more files of references, with one sentence per line or in WMT's SGML or XML; or a table of
/// sentence pairs.
///
/// A trained model keeps a record of its two splits, which is compared. It must not contain entries that are not given, or where to fetch
/// the files.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePair {
    /// Table of sentence pairs, possibly in a zip archive; each source sentence counts once, with its first translation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PathBuf>,
    /// Kind of rows in `pairs`, whose columns then have names; if not given, a tab-separated table without header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RowKind>,
    /// Name of the table in a zip archive with more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Sentences to translate.
    pub source: Side,
    /// Reference translations. For one source file, each file of a list is another reference, and so is each column of a list of columns.
    pub target: Side,
    /// Translators whose references count in WMT's XML; all if not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub translators: Vec<String>,
    /// Maximum number of words on either side, separated by white space; longer pairs are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_words: Option<usize>,
    /// Number of pairs to draw at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// Seed of the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Name for `just fetch`, if it differs from `[data]`.
    #[serde(default, skip_serializing)]
    pub fetch: Option<String>,
}

/// One side of a split.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a side must be a file, a list of files or, with `pairs`, a column: its number, counted from 1, or with `kind` its name"
)]
pub enum Side {
    /// Column of the table, counted from 1.
    Column(usize),
    /// A file or, with `kind`, the name of a column.
    File(PathBuf),
    /// Several columns of references, counted from 1.
    Columns(Vec<usize>),
    /// Files that are read one after another, or several references: files or, with `kind`, columns.
    Files(Vec<PathBuf>),
}

impl Side {
    /// Returns the columns of a table; `None` for files, and for names of columns unless they are allowed.
    fn columns(&self, allows_names: bool) -> Option<Vec<Column>> {
        let named = |name: &PathBuf| Some(Column::Name(name.to_str()?.to_owned()));
        match self {
            Self::Column(number) => Some(vec![Column::Number(*number)]),
            Self::Columns(numbers) => Some(numbers.iter().copied().map(Column::Number).collect()),
            Self::File(name) if allows_names => Some(vec![named(name)?]),
            Self::Files(names) if allows_names => names.iter().map(named).collect(),
            Self::File(_) | Self::Files(_) => None,
        }
    }

    /// Returns the files in `folder`; empty for columns.
    fn files(&self, folder: &Path) -> Vec<PathBuf> {
        match self {
            Self::Column(_) | Self::Columns(_) => Vec::new(),
            Self::File(file) => vec![folder.join(file)],
            Self::Files(files) => files.iter().map(|file| folder.join(file)).collect(),
        }
    }
}

const MIXED_SIDES: &str = "source and target must be columns of `pairs`, counted from 1 or, with `kind`, by name; or, without \
                           `pairs`, two files, a file and a list of its references, or two lists of equally many files";

struct FileNames {
    source: PathBuf,
    targets: Vec<PathBuf>,
}

enum Place {
    Files(Vec<FileNames>),
    Table(PairTable),
}

impl FilePair {
    /// Returns the files in `folder`, the data folder.
    pub fn paths(&self, folder: &Path) -> Vec<PathBuf> {
        match self.place(folder) {
            Some(Place::Files(files)) => {
                files.into_iter().flat_map(|own| [own.source].into_iter().chain(own.targets)).collect()
            }
            Some(Place::Table(table)) => vec![table.path],
            None => Vec::new(), // refused by validation
        }
    }

    /// Reads the pairs from `folder`, the data folder, and selects among them.
    ///
    /// # Panics
    /// If [`validate`](Self::validate) would refuse the split.
    pub fn read(&self, folder: &Path, bad: &mut BadRows) -> Result<ParallelText, Error> {
        let (path, text) = match self.place(folder).expect("validated") {
            Place::Files(files) => {
                let mut text = ParallelText::default();
                for FileNames { source, targets } in &files {
                    text.append(ParallelText::read(source, targets, &self.translators, bad)?);
                }
                (files[0].source.clone(), text)
            }
            Place::Table(table) => (table.path.clone(), table.read(bad)?),
        };
        let selection = Selection { most_words: self.most_words, sample: self.sample.zip(self.seed) };
        if selection == Selection::default() { Ok(text) } else { selection.choose(&text, &path) }
    }

    /// Returns where the sentences are; `None` if columns and files are mixed up.
    fn place(&self, folder: &Path) -> Option<Place> {
        match (&self.pairs, &self.source, &self.target) {
            (Some(pairs), source, target) => {
                let (path, inside, kind) = (folder.join(pairs), self.inside.clone(), self.kind);
                let columns = |side: &Side| side.columns(kind.is_some());
                let mut targets = columns(target)?.into_iter();
                let ([source], target) = (columns(source)?.try_into().ok()?, targets.next()?);
                Some(Place::Table(PairTable {
                    path,
                    inside,
                    kind,
                    source,
                    target,
                    others: targets.collect(),
                }))
            }
            (None, ..) if self.kind.is_some() => None,
            (None, source, target) => {
                if let (Side::File(file), Side::Files(files)) = (source, target) {
                    let (source, targets) = (folder.join(file), target.files(folder));
                    return (!files.is_empty()).then(|| Place::Files(vec![FileNames { source, targets }]));
                }
                let (source, target) = (source.files(folder), target.files(folder));
                let both = |(source, target)| FileNames { source, targets: vec![target] };
                let fits = !source.is_empty() && source.len() == target.len();
                fits.then(|| Place::Files(source.into_iter().zip(target).map(both).collect()))
            }
        }
    }

    /// Checks that the entries do not contradict each other.
    pub fn validate(&self) -> Result<(), String> {
        match self.place(Path::new("")) {
            Some(Place::Table(table)) => {
                check(&[("`translators` is for SGML and XML, not `pairs`", self.translators.is_empty())])?;
                table.validate().map_err(|fault| fault.to_string())?;
            }
            Some(Place::Files(_)) => {
                check(&[("`inside` is for `pairs`, a table in a zip archive", self.inside.is_none())])?;
            }
            None => return Err(MIXED_SIDES.to_owned()),
        }
        check(&[
            ("`sample` and `seed` must be given together", self.sample.is_some() == self.seed.is_some()),
            ("`sample` must be at least 1", self.sample != Some(0)),
            ("`most_words` must be at least 1", self.most_words != Some(0)),
        ])
    }
}

/// The demo language: the seed of the generator and the size of each split.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grammar {
    /// Seed of the generator.
    pub seed: u64,
    /// Number of training pairs.
    pub train: usize,
    /// Number of pairs on which the best epoch is chosen.
    pub dev: usize,
    /// Number of test pairs.
    pub test: usize,
    /// Number of test pairs from the shifted domain.
    pub shifted: usize,
}

impl Grammar {
    /// Names of the splits.
    pub const SPLITS: [&str; 4] = ["train", "dev", "test", "shifted"];

    /// Returns the sentence pairs of a split with dependency arcs; `None` if the split does not exist.
    pub fn samples(self, split: &str) -> Option<Vec<Sample>> {
        let Self { seed, train, dev, test, shifted } = self;
        demo_splits(SplitSizes { train, dev, test, shifted }, seed).named(split)
    }

    /// Returns the sentence pairs of a split; `None` if the split does not exist.
    pub fn read(self, split: &str) -> Option<ParallelText> {
        let samples = self.samples(split)?.into_iter();
        let (source, target) = samples.map(|sample| (sample.source, sample.target)).unzip();
        Some(ParallelText { source, target, ..ParallelText::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn split(text: &str) -> Result<FilePair, String> {
        let split: FilePair = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        split.validate().map(|()| split)
    }

    /// The `settings.json` of a trained model records its two splits, and a model whose record differs is refused.
    #[test]
    fn the_record_of_a_split_holds_what_is_given_but_for_where_it_is_fetched() {
        let record = |text: &str| json!(split(text).unwrap());
        let files = "source = 'a.en'\ntarget = 'a.fr'";
        assert_eq!(record(files), json!({ "source": "a.en", "target": "a.fr" }));
        assert_eq!(record(&format!("{files}\nfetch = 'a'")), record(files));
        assert_eq!(
            record("pairs = 'a.zip'\nsource = 1\ntarget = 2\nsample = 9\nseed = 0\nfetch = 'a'"),
            json!({ "pairs": "a.zip", "source": 1, "target": 2, "sample": 9, "seed": 0 })
        );
    }

    #[test]
    fn splits_that_contradict_themselves_are_refused() {
        let refusal = |text: &str| split(text).unwrap_err();
        assert_eq!(refusal("source = 1\ntarget = 2"), MIXED_SIDES);
        assert_eq!(refusal("pairs = 'a.tsv'\nsource = 'a.en'\ntarget = 'a.fr'"), MIXED_SIDES);
        assert_eq!(refusal("pairs = 'a.tsv'\nsource = 1\ntarget = 'a.fr'"), MIXED_SIDES);
        assert_eq!(refusal("kind = 'csv'\nsource = 'a.en'\ntarget = 'a.fr'"), MIXED_SIDES);
        split("pairs = 'a.csv'\nkind = 'csv'\nsource = 'en'\ntarget = 'fr'").unwrap();
        let table = "pairs = 'a.tsv'\nsource = 1\ntarget = 2";
        split(table).unwrap();
        assert!(refusal(&table.replace('1', "0")).ends_with("columns are counted from 1"));
        assert_eq!(refusal(&format!("{table}\nsample = 4")), "`sample` and `seed` must be given together");
        assert_eq!(refusal(&format!("{table}\nsample = 0\nseed = 1")), "`sample` must be at least 1");
        assert_eq!(refusal(&format!("{table}\nmost_words = 0")), "`most_words` must be at least 1");
        let files = "source = 'a.en'\ntarget = 'a.fr'\ninside = 'b'";
        assert_eq!(refusal(files), "`inside` is for `pairs`, a table in a zip archive");
        assert!(refusal("source = true\ntarget = 'a.fr'").starts_with("a side must be a file, a list"));
        for sides in ["source = ['a.en', 'b.en']\ntarget = ['a.fr']", "source = []\ntarget = []"] {
            assert_eq!(refusal(sides), MIXED_SIDES);
        }
        assert_eq!(
            split("source = ['a.en', 'b.en']\ntarget = ['a.fr', 'b.fr']").unwrap().paths(Path::new("d")),
            ["d/a.en", "d/a.fr", "d/b.en", "d/b.fr"].map(PathBuf::from)
        );
    }
}
