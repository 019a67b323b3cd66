//! Labelled examples of a split: from a table, a folder of images, or the demo grammar.
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::BadRows;
use crate::grammar::{Domain, SplitSizes, generate, inference_splits, phrase_splits};
use crate::labelled::{self, Example, Format};
use crate::trees::Tree;
use crate::{Error, images};

/// Examples from the demo grammar: the seed of the generator and the size of each split.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grammar {
    /// Seed of the generator.
    pub seed: u64,
    /// Number of training examples.
    pub train: usize,
    /// Number of examples on which the best epoch is chosen.
    pub dev: usize,
    /// Number of test examples from the standard domain.
    pub matched: usize,
    /// Number of test examples from the shifted domain.
    pub mismatched: usize,
    /// True for sentences with tagged noun phrases instead of sentence pairs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub phrases: bool,
}

/// A file, in its own format or the common `[data.format]`, or a folder of images.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged, try_from = "toml::Value")]
pub enum SplitFile {
    /// In the common format.
    Plain(PathBuf),
    /// In its own format.
    Formatted(FormattedFile),
    /// Images by class.
    Images(ImageFolder),
}

/// A folder that contains one folder of images per class.
#[derive(Debug, Clone, Serialize)]
pub struct ImageFolder {
    /// The folder.
    pub images: PathBuf,
    /// Name for `just fetch`, if it differs from `[data]`; not in the record that a trained model keeps.
    #[serde(skip_serializing)]
    pub fetch: Option<String>,
}

/// A file with its format.
#[derive(Debug, Clone, Serialize)]
pub struct FormattedFile {
    /// The file.
    pub file: PathBuf,
    /// Layout of the file.
    pub format: Format,
    /// Name for `just fetch`, if it differs from `[data]`; not in the record that a trained model keeps.
    #[serde(skip_serializing)]
    pub fetch: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    file: Option<PathBuf>,
    format: Option<Format>,
    images: Option<PathBuf>,
    fetch: Option<String>,
}

impl Entries {
    fn split(self) -> Result<SplitFile, &'static str> {
        let Self { file, format, images, fetch } = self;
        match (file, format, images) {
            (Some(file), Some(format), None) => {
                Ok(SplitFile::Formatted(FormattedFile { file, format, fetch }))
            }
            (None, None, Some(images)) => Ok(SplitFile::Images(ImageFolder { images, fetch })),
            (Some(_), None, None) => Err("missing field `format`"),
            (None, _, None) => Err("missing field `file`"),
            _ => Err("`images` is a folder and `file` a table with its `format`: a split has one of them"),
        }
    }
}

impl TryFrom<toml::Value> for SplitFile {
    type Error = String;

    /// Parses by hand, since serde's message would not name the fault within the table.
    fn try_from(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::String(file) => Ok(Self::Plain(file.into())),
            table @ toml::Value::Table(_) => {
                let entries = Entries::deserialize(table).map_err(|error| error.message().to_owned())?;
                entries.split().map_err(str::to_owned)
            }
            _ => Err(
                "a split must be \"file\", { file = \"file\", format = { .. } } or { images = \"folder\" }"
                    .to_owned(),
            ),
        }
    }
}

impl SplitFile {
    /// Returns the path in `folder`, the data folder.
    pub fn path(&self, folder: &Path) -> PathBuf {
        match self {
            Self::Plain(file) => folder.join(file),
            Self::Formatted(own) => folder.join(&own.file),
            Self::Images(own) => folder.join(&own.images),
        }
    }

    /// Reads the examples; `None` if neither the split nor the data have a layout.
    ///
    /// - `common`: layout of the data; `of_values`: whether labels are numbers
    pub fn read(
        &self,
        folder: &Path,
        common: Option<&Format>,
        (of_values, bad): (bool, &mut BadRows),
    ) -> Option<Result<Vec<Example>, Error>> {
        let path = self.path(folder);
        if let Self::Images(_) = self {
            return Some(images::read_folder(&path));
        }
        let read = if of_values { labelled::read_values } else { labelled::read };
        self.format(common).map(|format| read(&path, format, bad))
    }

    fn format<'a>(&'a self, common: Option<&'a Format>) -> Option<&'a Format> {
        match self {
            Self::Plain(_) => common,
            Self::Formatted(own) => Some(&own.format),
            Self::Images(_) => None,
        }
    }

    /// Returns the name for `just fetch`, if the split has one.
    pub fn fetch(&self) -> Option<&String> {
        match self {
            Self::Plain(_) => None,
            Self::Formatted(own) => own.fetch.as_ref(),
            Self::Images(own) => own.fetch.as_ref(),
        }
    }
}

impl Grammar {
    /// Names of the splits.
    pub const SPLITS: [&str; 4] = ["train", "dev", "matched", "mismatched"];

    /// Returns the examples of a split; `None` if the split does not exist.
    pub fn read(self, split: &str) -> Option<Vec<Example>> {
        let Self { seed, train, dev, matched, mismatched, phrases } = self;
        let draw = if phrases { phrase_splits } else { inference_splits };
        let sizes = SplitSizes { train, dev, test: matched, shifted: mismatched };
        draw(sizes, seed).named(match split {
            "matched" => "test",
            "mismatched" => "shifted",
            "train" | "dev" => split,
            _ => return None,
        })
    }

    /// Generates sentences with their trees, in the domain of a split and equal in number to its examples.
    pub fn trees(self, split: &str) -> Vec<Tree> {
        let (domain, count) = match split {
            "train" => (Domain::Standard, self.train),
            "dev" => (Domain::Standard, self.dev),
            "matched" => (Domain::Standard, self.matched),
            _ => (Domain::Shifted, self.mismatched),
        };
        generate(domain, count, self.seed).iter().map(Tree::from).collect()
    }
}
