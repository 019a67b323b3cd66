//! Models written as Hugging Face folders, for other tools and for this one.
use std::fs;
use std::path::{Path, PathBuf};

use records::Signature;
use serde_json::{Map, Value};

use crate::Error;

/// Files of a folder, besides configuration and weights, that a model is used with.
const COMPANIONS: [&str; 9] = [
    "added_tokens.json",
    "generation_config.json",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
];

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// What is said beside the weights of how they came to be.
const ABOUT: &str = "pruning.json";

/// A folder that a model is to be written to.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    folder: PathBuf,
    overwrite: bool,
    about: Option<Signature>,
}

impl Export {
    /// The folder, checked.
    ///
    /// # Errors
    /// If it is there already, unless its files may be overwritten, or cannot be made.
    pub fn new(folder: &Path, overwrite: bool) -> Result<Self, Error> {
        if folder.exists() && !overwrite {
            return Err(Error::ExportExists { folder: folder.to_owned() });
        }
        let parent =
            folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|source| Error::Write { path: parent.to_owned(), source })?;
        Ok(Self { folder: folder.to_owned(), overwrite, about: None })
    }

    /// The same folder with a `pruning.json` that says how the model came to be.
    pub fn about(&self, signature: Signature) -> Self {
        Self { about: Some(signature), ..self.clone() }
    }

    /// Where the model goes.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes what `save` writes, configuration and weights, and the companions of the folder `source` that the model came
    /// from. All of it is there, or nothing.
    ///
    /// # Errors
    /// If the two folders are the same, or a file cannot be read or written.
    pub(crate) fn write(
        &self,
        source: &Path,
        save: impl FnOnce(&Path) -> Result<(), core_masking::Error>,
    ) -> Result<(), Error> {
        if matches!((source.canonicalize(), self.folder.canonicalize()), (Ok(from), Ok(to)) if from == to) {
            return Err(Error::ExportOntoSource { folder: self.folder.clone() });
        }
        let mut name = self.folder.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let partial = self.folder.with_file_name(name);
        let written = self.fill(source, &partial, save).and_then(|()| self.publish(&partial));
        if written.is_err() {
            let _ = fs::remove_dir_all(&partial); // the error that is reported came first
        }
        written
    }

    fn fill(
        &self,
        source: &Path,
        partial: &Path,
        save: impl FnOnce(&Path) -> Result<(), core_masking::Error>,
    ) -> Result<(), Error> {
        if partial.exists() {
            fs::remove_dir_all(partial)
                .map_err(|source| Error::Write { path: partial.to_owned(), source })?;
        }
        save(partial)?;
        merge_config(&source.join(CONFIG), &partial.join(CONFIG))?;
        for name in COMPANIONS {
            let (from, to) = (source.join(name), partial.join(name));
            if from.exists() {
                fs::copy(&from, &to).map_err(|source| Error::Write { path: to, source })?;
            }
        }
        match &self.about {
            Some(signature) => Ok(signature.write(&partial.join(ABOUT))?),
            None => Ok(()),
        }
    }

    /// Moves the files to their place. Those of an earlier export go first, and the weights come last: where they are,
    /// all is.
    fn publish(&self, partial: &Path) -> Result<(), Error> {
        let fault = |source| Error::Write { path: self.folder.clone(), source };
        if !self.overwrite || !self.folder.exists() {
            return fs::rename(partial, &self.folder).map_err(fault);
        }
        let names = || COMPANIONS.into_iter().chain([ABOUT, CONFIG, WEIGHTS]);
        for name in names().rev().filter(|name| self.folder.join(name).exists()) {
            fs::remove_file(self.folder.join(name)).map_err(fault)?;
        }
        for name in names().filter(|name| partial.join(name).exists()) {
            fs::rename(partial.join(name), self.folder.join(name)).map_err(fault)?;
        }
        fs::remove_dir(partial).map_err(fault)
    }
}

/// Keeps the entries of the original configuration that this project does not know.
fn merge_config(original: &Path, written: &Path) -> Result<(), Error> {
    let read = |path: &Path| {
        let text =
            fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let fault =
            |error: serde_json::Error| Error::Spec { path: path.to_owned(), fault: error.to_string() };
        serde_json::from_str::<Map<String, Value>>(&text).map_err(fault)
    };
    let mut merged = read(original)?;
    merged.extend(read(written)?);
    for name in ["dtype", "torch_dtype"] {
        if let Some(kind) = merged.get_mut(name) {
            *kind = "float32".into(); // what the weights are written in
        }
    }
    let text = format!("{:#}\n", Value::Object(merged));
    fs::write(written, text).map_err(|source| Error::Write { path: written.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(folder: &Path) -> Result<(), core_masking::Error> {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(CONFIG), r#"{"size": 3, "pruned_heads": {"0": [1]}}"#).unwrap();
        fs::write(folder.join(WEIGHTS), "weights").unwrap();
        Ok(())
    }

    fn source(folder: &Path) -> PathBuf {
        let source = folder.join("source");
        fs::create_dir(&source).unwrap();
        let config = r#"{"size": 4, "dtype": "bfloat16", "problem_type": "single_label_classification"}"#;
        fs::write(source.join(CONFIG), config).unwrap();
        fs::write(source.join("vocab.txt"), "words").unwrap();
        fs::write(source.join("optimizer.safetensors"), "moments").unwrap();
        source
    }

    #[test]
    fn a_folder_has_the_new_weights_and_the_companions_of_the_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("deep/pruned"));
        Export::new(&target, false).unwrap().write(&source, save).unwrap();
        let config: Value = serde_json::from_str(&fs::read_to_string(target.join(CONFIG)).unwrap()).unwrap();
        let expected = serde_json::json!({
            "size": 3, "dtype": "float32", "problem_type": "single_label_classification", "pruned_heads": { "0": [1] },
        });
        assert_eq!(config, expected);
        let mut names: Vec<_> = fs::read_dir(&target)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [CONFIG, WEIGHTS, "vocab.txt"]);
    }

    #[test]
    fn a_folder_that_is_there_stays_as_it_is_unless_it_may_be_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("pruned"));
        fs::create_dir(&target).unwrap();
        fs::write(target.join("notes.txt"), "mine").unwrap();
        fs::write(target.join("source.spm"), "of another model").unwrap();
        let message = Export::new(&target, false).unwrap_err().to_string();
        assert!(message.contains("pruned` is there already") && message.contains("--overwrite"), "{message}");
        Export::new(&target, true).unwrap().write(&source, save).unwrap();
        assert_eq!(fs::read_to_string(target.join("notes.txt")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(target.join(WEIGHTS)).unwrap(), "weights");
        assert!(!folder.path().join("pruned.partial").exists() && !target.join("source.spm").exists());
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("pruned"));
        let failing = |folder: &Path| {
            save(folder)?;
            Err(core_masking::Error::NoHeadLeft)
        };
        assert!(Export::new(&target, false).unwrap().write(&source, failing).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the source alone");
        let onto = Export::new(&source, true).unwrap().write(&source, save).unwrap_err().to_string();
        assert!(onto.contains("where the model comes from"), "{onto}");
    }
}
