//! Export of models as Hugging Face folders.
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::{HeadSet, Removal};
use corpus::hub::OPTIONAL;
use records::Signature;
use serde_json::{Map, Value};
use subject::{Ablation, Subject};

use crate::error::Error;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// ONNX file that Python writes next to the weights.
const ONNX: &str = "model.onnx";

/// File that records how the model was made.
const ABOUT: &str = "pruning.json";

/// Python module that transformers needs to load models with removed heads.
const CODE: &str = "modeling_headcount.py";
const CODE_TEXT: &str = include_str!("modeling_headcount.py");

/// A folder that a model will be written to.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    folder: PathBuf,
    overwrite: bool,
    about: Option<Signature>,
}

impl Export {
    /// Checks the folder and creates its parents.
    ///
    /// # Errors
    /// If it exists and `overwrite` is false.
    pub fn new(folder: &Path, overwrite: bool) -> Result<Self, Error> {
        if folder.exists() && !overwrite {
            return Err(exists(folder));
        }
        let parent = durable::parent(folder);
        fs::create_dir_all(parent).map_err(|source| Error::write(parent, source))?;
        Ok(Self { folder: folder.to_owned(), overwrite, about: None })
    }

    /// Adds a `pruning.json` that records how the model was made.
    pub fn about(&self, mut signature: Signature) -> Self {
        let counting = "layers and heads are counted from 1 here, and from 0 in config.json";
        signature.identity.arguments.insert("counting".to_owned(), counting.into());
        Self { about: Some(signature), ..self.clone() }
    }

    /// Folder of the model.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the setup's model with these heads removed. What `ablation` replaces them with is folded into the weights.
    ///
    /// # Errors
    /// If no head would be left, the heads are to be zeroed but some have been removed already, or the replacement cannot be folded in.
    pub fn write(
        &self,
        subject: &Subject,
        heads: &HeadSet,
        removal: Removal,
        ablation: &Ablation,
    ) -> Result<(), Error> {
        self.fill(subject.folder(), |folder| subject.save_without_heads(heads, removal, ablation, folder))
    }

    /// Writes what `save` writes (configuration and weights) and the tokenizer and other optional files from `source`: all of it or
    /// nothing. Files in an earlier export that this tool does not write stay.
    ///
    /// # Errors
    /// If `source` is the export folder itself, or the export folder contains folders.
    fn fill(
        &self,
        source: &Path,
        save: impl FnOnce(&Path) -> Result<(), subject::Error>,
    ) -> Result<(), Error> {
        if matches!((source.canonicalize(), self.folder.canonicalize()), (Ok(from), Ok(to)) if from == to) {
            return Err(Error::input(format!(
                "`{}` is the folder that the model was read from: choose another folder",
                self.folder.display()
            )));
        }
        let foreign = self.foreign()?;
        if !self.overwrite && self.folder.exists() {
            return Err(exists(&self.folder)); // created by someone else in the meantime
        }
        durable::replace_folder(&self.folder, |partial| {
            save(partial)?;
            complete_folder(source, partial)?;
            for name in OPTIONAL {
                copy_companion(source, name, partial)?;
            }
            if let Some(signature) = &self.about {
                signature.write(&partial.join(ABOUT))?;
            }
            foreign.iter().try_for_each(|file| keep(file, partial))
        })
    }

    /// Returns the files in an earlier export that this tool does not write.
    fn foreign(&self) -> Result<Vec<PathBuf>, Error> {
        durable::restore_folder(&self.folder)?;
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let fault = |source| Error::read(&self.folder, source);
        let ours: Vec<&str> = OPTIONAL.into_iter().chain([ABOUT, CODE, CONFIG, ONNX, WEIGHTS]).collect();
        let mut foreign = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            if entry.file_type().map_err(fault)?.is_dir() {
                return Err(Error::input(format!(
                    "`{}` is a folder in the folder of the export: choose another folder, or move it away",
                    entry.path().display()
                )));
            }
            if !ours.iter().any(|name| entry.file_name() == *name) {
                foreign.push(entry.path());
            }
        }
        Ok(foreign)
    }
}

fn exists(folder: &Path) -> Error {
    Error::input(format!(
        "`{}` exists already: choose another folder, or replace it with --replace",
        folder.display()
    ))
}

/// Links or copies a user's file into the new folder before the old folder is deleted.
fn keep(file: &Path, folder: &Path) -> Result<(), Error> {
    let place = folder.join(file.file_name().unwrap_or_default());
    let kept = fs::hard_link(file, &place).or_else(|_| fs::copy(file, &place).map(drop)); // some file systems have no links
    kept.map_err(|source| Error::write(&place, source))
}

/// Copies the content, but not the permissions, of a file of the model's folder; does nothing if it is missing.
fn copy_companion(source: &Path, name: &str, folder: &Path) -> Result<(), Error> {
    let from = source.join(name);
    if !from.exists() {
        return Ok(());
    }
    let bytes = fs::read(&from).map_err(|fault| Error::read(&from, fault))?;
    Ok(durable::write(&folder.join(name), bytes)?)
}

/// Makes a model in `folder` loadable by transformers: adds to its `config.json` the entries in `source` that this project does not know.
/// If heads were removed and `modeling_headcount.py` supports the family, also adds that file and its `auto_map` entry.
pub fn complete_folder(source: &Path, folder: &Path) -> Result<(), Error> {
    let (path, mut config) = (folder.join(CONFIG), read_config(&source.join(CONFIG))?);
    for (name, value) in read_config(&path)? {
        // 12 and 12.0 are equal here, but not in transformers 5
        let is_same = |old: &Value| old.is_number() && old.as_f64() == value.as_f64();
        if !config.get(&name).is_some_and(is_same) {
            config.insert(name, value);
        }
    }
    for name in ["dtype", "torch_dtype"] {
        if let Some(kind) = config.get_mut(name) {
            *kind = "float32".into(); // as the weights are written
        }
    }
    let entries = ["pruned_heads", "pruned_query_heads", "pruned_attention_heads"];
    let lists_heads =
        |name| config.get(name).and_then(Value::as_object).is_some_and(|heads| !heads.is_empty());
    let class = config.get("architectures").and_then(|classes| classes.get(0)?.as_str());
    let names = config.get("model_type").and_then(Value::as_str).zip(class);
    let auto = names.and_then(|(model_type, class)| auto_class(model_type, class));
    if let (true, Some(class), Some(auto)) = (entries.into_iter().any(lists_heads), class, auto) {
        let map = serde_json::json!({ auto: format!("{}.{class}", CODE.trim_end_matches(".py")) });
        config.insert("auto_map".to_owned(), map);
        durable::write(&folder.join(CODE), CODE_TEXT)?;
    }
    Ok(durable::write(&path, format!("{:#}\n", Value::Object(config)))?)
}

/// Returns the Auto class of transformers for pruned models of this type and class, read from the tables in `modeling_headcount.py`.
fn auto_class(model_type: &str, class: &str) -> Option<&'static str> {
    let lists = CODE_TEXT.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\": \""));
    let of_type = lists.filter(|(_, types)| types.split(['"', ' ']).any(|name| name == model_type));
    let autos: Vec<&str> = of_type.map(|(auto, _)| auto).collect();
    autos.iter().find(|auto| class.ends_with(auto.trim_start_matches("AutoModel"))).or(autos.first()).copied()
}

fn read_config(path: &Path) -> Result<Map<String, Value>, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::read(path, source))?;
    serde_json::from_str(&text).map_err(|error| Error::input(format!("`{}`: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    use super::*;

    fn save(folder: &Path) -> Result<(), subject::Error> {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(CONFIG), r#"{"size": 3, "scale": 12.0, "pruned_heads": {"0": [1]}}"#).unwrap();
        fs::write(folder.join(WEIGHTS), "weights").unwrap();
        Ok(())
    }

    fn source(folder: &Path) -> PathBuf {
        let source = folder.join("source");
        fs::create_dir(&source).unwrap();
        let config =
            r#"{"size": 4, "scale": 12, "dtype": "bfloat16", "problem_type": "single_label_classification"}"#;
        fs::write(source.join(CONFIG), config).unwrap();
        fs::write(source.join("vocab.txt"), "words").unwrap();
        fs::write(source.join("optimizer.safetensors"), "moments").unwrap();
        source
    }

    #[test]
    fn a_folder_has_the_new_weights_and_the_companions_of_the_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("deep/pruned"));
        Export::new(&target, false).unwrap().fill(&source, save).unwrap();
        let config: Value = serde_json::from_str(&fs::read_to_string(target.join(CONFIG)).unwrap()).unwrap();
        let expected = serde_json::json!({
            "size": 3, "scale": 12, "dtype": "float32", "problem_type": "single_label_classification",
            "pruned_heads": { "0": [1] },
        });
        assert_eq!(config, expected);
        let names = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name());
        let expected = [CONFIG, WEIGHTS, "vocab.txt"].map(OsString::from);
        assert_eq!(names.collect::<BTreeSet<_>>(), expected.into());
    }

    fn failing(folder: &Path) -> Result<(), subject::Error> {
        save(folder)?;
        Err(heads::Error::Head("no head would be left".to_owned()).into())
    }

    /// Foreign files stay, outdated files of an earlier export go, and a failure leaves everything as it was.
    #[test]
    fn an_export_is_replaced_completely_or_not_at_all_and_its_source_and_folders_never() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("pruned"));
        assert!(Export::new(&target, false).unwrap().fill(&source, failing).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the source alone");
        fs::create_dir(&target).unwrap();
        for (name, text) in [("notes.txt", "mine"), ("source.spm", "of another model"), (WEIGHTS, "earlier")]
        {
            fs::write(target.join(name), text).unwrap();
        }
        let message = Export::new(&target, false).unwrap_err().to_string();
        assert!(message.contains("pruned` exists already") && message.contains("--replace"), "{message}");
        let export = Export::new(&target, true).unwrap();
        let read = |name: &str| fs::read_to_string(target.join(name)).unwrap();
        assert!(export.fill(&source, failing).is_err());
        fs::create_dir(source.join("vocab.json")).unwrap(); // fails after the weights are written
        assert!(export.fill(&source, save).is_err());
        assert_eq!((&*read(WEIGHTS), &*read("source.spm")), ("earlier", "of another model"));
        fs::remove_dir(source.join("vocab.json")).unwrap();
        export.fill(&source, save).unwrap();
        assert_eq!((&*read(WEIGHTS), &*read("notes.txt")), ("weights", "mine"));
        assert!(!target.join("source.spm").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the source and the export");
        // neither the model nor folders are replaced
        let refusal =
            |target| Export::new(target, true).unwrap().fill(&source, save).unwrap_err().to_string();
        assert!(refusal(&source).contains("the folder that the model was read from"));
        fs::create_dir(target.join("drafts")).unwrap();
        assert!(refusal(&target).contains("pruned/drafts` is a folder in the folder of the export"));
        assert!(target.join("drafts").is_dir());
    }
}
