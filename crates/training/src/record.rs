//! Settings and data of a trained model, stored with it, so that changed data under an old name is noticed.
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;

/// The record's file in a model folder.
pub(crate) const FILE: &str = "settings.json";

/// Something other than the settings that the weights depend on: a split, or a file of the checkpoint.
pub struct Ingredient<'a, E> {
    /// Name in messages.
    pub name: String,
    /// The files that it is read from; empty if it is synthetic.
    pub files: Vec<PathBuf>,
    /// Computes the SHA-256 of its content, in hexadecimal digits.
    pub sha256: Box<dyn Fn() -> Result<String, E> + 'a>,
}

/// The settings and the ingredients of a training.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    settings: Value,
    ingredients: BTreeMap<String, Content>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    sha256: String,
    /// The files at that time. While they are unchanged, their contents need not be read again.
    files: Vec<Stamp>,
}

/// Size and time of a file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    /// Time of the last change, in nanoseconds since 1970; `None` if the file system has none.
    modified: Option<u64>,
}

impl Record {
    /// Creates the record of a new training.
    pub(crate) fn new<E>(settings: &Value, ingredients: &[Ingredient<'_, E>]) -> Result<Self, E> {
        let content = |ingredient: &Ingredient<'_, E>| {
            let files = stamps(&ingredient.files).unwrap_or_default();
            Ok((ingredient.name.clone(), Content { sha256: (ingredient.sha256)()?, files }))
        };
        let ingredients = ingredients.iter().map(content).collect::<Result<_, E>>()?;
        Ok(Self { settings: settings.clone(), ingredients })
    }

    /// Writes it into a model folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(self).expect("a record has only text keys");
        Ok(durable::write(&folder.join(FILE), json + "\n")?)
    }

    /// Returns why the model in `folder` does not match `settings` and `ingredients`; `None` if it does. Missing ingredients are not
    /// checked, since a finished model can be used without them. A model without a record was not trained here and always matches.
    pub(crate) fn fault<E: From<Error>>(
        folder: &Path,
        settings: &Value,
        ingredients: &[Ingredient<'_, E>],
    ) -> Result<Option<String>, E> {
        let path = folder.join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::read(&path, source).into()),
        };
        let Ok(stored) = serde_json::from_slice::<Self>(&bytes) else {
            return Ok(Some(format!("has a {FILE} that does not record what it was trained from")));
        };
        if stored.settings != *settings {
            return Ok(Some("was trained from settings other than those now in its setup".to_owned()));
        }
        let mut other = Vec::new();
        for ingredient in ingredients {
            if stored.is_other(ingredient)? {
                other.push(ingredient.name.as_str());
            }
        }
        let fault = || format!("was trained with different contents of {}", other.join(", "));
        Ok((!other.is_empty()).then(fault))
    }

    /// Returns true if the files of an ingredient exist and its content has changed.
    fn is_other<E>(&self, ingredient: &Ingredient<'_, E>) -> Result<bool, E> {
        let Some(files) = stamps(&ingredient.files) else { return Ok(false) };
        let Some(stored) = self.ingredients.get(&ingredient.name) else { return Ok(true) };
        let is_untouched = !files.is_empty() && stored.files == files;
        Ok(!is_untouched && stored.sha256 != (ingredient.sha256)()?)
    }
}

/// Returns the stamps of all files; `None` if one is missing.
fn stamps(files: &[PathBuf]) -> Option<Vec<Stamp>> {
    let stamp = |file: &PathBuf| {
        let metadata = fs::metadata(file).ok()?;
        let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Some(Stamp { bytes: metadata.len(), modified })
    };
    files.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use records::sha256_file;
    use serde_json::json;

    use super::*;

    fn split(file: &Path) -> Ingredient<'_, Error> {
        let sha256 = || Ok(sha256_file(file)?);
        Ingredient {
            name: "split `train`".to_owned(),
            files: vec![file.to_owned()],
            sha256: Box::new(sha256),
        }
    }

    #[test]
    fn other_contents_are_named_and_missing_ones_do_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let (file, settings) = (folder.path().join("train"), json!({ "seed": 1 }));
        let fault = |settings: &Value| Record::fault(folder.path(), settings, &[split(&file)]).unwrap();
        fs::write(&file, "one").unwrap();
        assert_eq!(fault(&settings), None, "a model without a record is taken as it is");
        Record::new(&settings, &[split(&file)]).unwrap().write(folder.path()).unwrap();
        assert_eq!(fault(&settings), None);
        let other = fault(&json!({ "seed": 2 }));
        assert_eq!(other.unwrap(), "was trained from settings other than those now in its setup");
        fs::write(&file, "two").unwrap();
        assert_eq!(fault(&settings).unwrap(), "was trained with different contents of split `train`");
        fs::write(&file, "one").unwrap();
        assert_eq!(fault(&settings), None, "written again with the same content");
        fs::remove_file(&file).unwrap();
        assert_eq!(fault(&settings), None, "no longer at hand");
    }

    #[test]
    fn what_is_made_up_is_compared_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let made = |content: &'static str| Ingredient::<Error> {
            name: "split `dev`".to_owned(),
            files: Vec::new(),
            sha256: Box::new(|| Ok(content.to_owned())),
        };
        Record::new(&json!({}), &[made("one")]).unwrap().write(folder.path()).unwrap();
        let fault = |content| Record::fault(folder.path(), &json!({}), &[made(content)]).unwrap();
        assert_eq!(fault("one"), None);
        assert!(fault("two").is_some());
    }

    #[test]
    fn a_file_that_is_no_record_is_another_training() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "{\"seed\": 1}", "{\"settings\": {}}", "[1]", "null"] {
            fs::write(folder.path().join(FILE), text).unwrap();
            let fault = Record::fault::<Error>(folder.path(), &json!({ "seed": 1 }), &[]).unwrap().unwrap();
            assert!(fault.contains("does not record what it was trained from"), "{text}: {fault}");
        }
    }
}
