//! Models written as Hugging Face folders, for other tools and for this one.
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use core_masking::{HeadSet, Removal};
use corpus::hub::OPTIONAL;
use records::Signature;
use serde_json::{Map, Value};
use subject::Subject;

use crate::error::Error;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// What is said beside the weights of how they came to be.
const ABOUT: &str = "pruning.json";

/// More than any tokeniser has, in bytes: something else has taken the name of one.
const MOST_BYTES: u64 = 1 << 28;

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

    /// Writes the subject's model without these heads.
    ///
    /// # Errors
    /// If the model does not have one of the heads, no head would be left, zeros are asked for and the model has heads cut out
    /// already, or a folder or a file is at fault.
    pub fn write(&self, subject: &dyn Subject, heads: &HeadSet, removal: Removal) -> Result<(), Error> {
        self.fill(subject.folder(), |folder| subject.save_without_heads(heads, removal, folder))
    }

    /// Writes what `save` writes, configuration and weights, and the companions of the folder `source` that the model came
    /// from. All of it is there, or nothing; then what was there before stays as it was. Files of other names in an
    /// earlier export stay in any case.
    ///
    /// # Errors
    /// If the two folders are the same, a companion is none that may be copied, the folder holds folders, or a file
    /// cannot be read or written.
    fn fill(
        &self,
        source: &Path,
        save: impl FnOnce(&Path) -> Result<(), subject::Error>,
    ) -> Result<(), Error> {
        if matches!((source.canonicalize(), self.folder.canonicalize()), (Ok(from), Ok(to)) if from == to) {
            return Err(Error::ExportOntoSource { folder: self.folder.clone() });
        }
        let foreign = self.foreign()?;
        if !self.overwrite && self.folder.exists() {
            return Err(Error::ExportExists { folder: self.folder.clone() }); // somebody made it meanwhile
        }
        durable::replace_folder(&self.folder, |partial| {
            save(partial)?;
            merge_config(&source.join(CONFIG), &partial.join(CONFIG))?;
            for name in OPTIONAL {
                copy_companion(source, name, partial)?;
            }
            if let Some(signature) = &self.about {
                signature.write(&partial.join(ABOUT))?;
            }
            foreign.iter().try_for_each(|file| keep(file, partial))
        })
    }

    /// Files of an earlier export that it did not write.
    fn foreign(&self) -> Result<Vec<PathBuf>, Error> {
        durable::restore_folder(&self.folder)?;
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let fault = |source| Error::Read { path: self.folder.clone(), source };
        let ours: Vec<&str> = OPTIONAL.into_iter().chain([ABOUT, CONFIG, WEIGHTS]).collect();
        let mut foreign = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            if entry.file_type().map_err(fault)?.is_dir() {
                return Err(Error::ExportBesideFolder { path: entry.path() });
            }
            if !ours.iter().any(|name| entry.file_name() == *name) {
                foreign.push(entry.path());
            }
        }
        Ok(foreign)
    }
}

/// Gives a file of the user a second name in the new folder, before the old folder goes.
fn keep(file: &Path, folder: &Path) -> Result<(), Error> {
    let place = folder.join(file.file_name().unwrap_or_default());
    let kept = fs::hard_link(file, &place).or_else(|_| fs::copy(file, &place).map(drop)); // no links on some disks
    kept.map_err(|source| Error::Write { path: place, source })
}

/// Copies a file of the model's folder, if it is there: its content, not its permissions.
///
/// # Errors
/// If it is no regular file, or a link that leads out of the model's folder: a checkpoint may come from anybody, and
/// what is exported is often given away. In the cache of a hub it may lead anywhere within the cached model.
fn copy_companion(source: &Path, name: &str, folder: &Path) -> Result<(), Error> {
    let (from, to) = (source.join(name), folder.join(name));
    if fs::symlink_metadata(&from).is_err() {
        return Ok(());
    }
    let unreadable = |error| Error::Read { path: from.clone(), source: error };
    let refused = |fault| Error::Companion { path: from.clone(), fault };
    let (model, target) =
        (source.canonicalize().map_err(unreadable)?, from.canonicalize().map_err(unreadable)?);
    if !target.starts_with(home(&model)) {
        return Err(refused("it is a link that leads out of the model's folder"));
    }
    if !fs::metadata(&target).map_err(unreadable)?.is_file() {
        return Err(refused("it is no regular file"));
    }
    let mut bytes = Vec::new();
    let opened = File::open(&target).map_err(unreadable)?;
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refused("it is too large for a file beside a model"));
    }
    Ok(durable::write(&to, bytes)?)
}

/// Where links of a model's folder may lead: the folder itself or, if it is `<model>/snapshots/<commit>` in the cache
/// of a hub, whose files are links to `<model>/blobs/`, the folder `<model>`.
fn home(model: &Path) -> &Path {
    let snapshots = model.parent().filter(|parent| parent.ends_with("snapshots"));
    let cached = snapshots.and_then(Path::parent).filter(|cached| cached.join("blobs").is_dir());
    cached.unwrap_or(model)
}

/// Keeps the entries of the original configuration that this project does not know.
fn merge_config(original: &Path, written: &Path) -> Result<(), Error> {
    let read = |path: &Path| {
        let text =
            fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let fault =
            |error: serde_json::Error| Error::Config { path: path.to_owned(), fault: error.to_string() };
        serde_json::from_str::<Map<String, Value>>(&text).map_err(fault)
    };
    let mut merged = read(original)?;
    merged.extend(read(written)?);
    for name in ["dtype", "torch_dtype"] {
        if let Some(kind) = merged.get_mut(name) {
            *kind = "float32".into(); // what the weights are written in
        }
    }
    Ok(durable::write(written, format!("{:#}\n", Value::Object(merged)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(folder: &Path) -> Result<(), subject::Error> {
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
        Export::new(&target, false).unwrap().fill(&source, save).unwrap();
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
        assert!(message.contains("pruned` is there already") && message.contains("--replace"), "{message}");
        Export::new(&target, true).unwrap().fill(&source, save).unwrap();
        assert_eq!(fs::read_to_string(target.join("notes.txt")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(target.join(WEIGHTS)).unwrap(), "weights");
        assert!(!folder.path().join("pruned.partial").exists() && !target.join("source.spm").exists());
    }

    fn failing(folder: &Path) -> Result<(), subject::Error> {
        save(folder)?;
        Err(heads::Error::Head("no head would be left".to_owned()).into())
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("pruned"));
        assert!(Export::new(&target, false).unwrap().fill(&source, failing).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the source alone");
        let onto = Export::new(&source, true).unwrap().fill(&source, save).unwrap_err().to_string();
        assert!(onto.contains("where the model comes from"), "{onto}");
    }

    #[test]
    fn a_failure_leaves_an_earlier_export_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("pruned"));
        Export::new(&target, false).unwrap().fill(&source, save).unwrap();
        fs::write(target.join("notes.txt"), "mine").unwrap();
        fs::write(target.join(WEIGHTS), "earlier weights").unwrap();
        let export = Export::new(&target, true).unwrap();
        assert!(export.fill(&source, failing).is_err());
        fs::create_dir(source.join("source.spm")).unwrap(); // fails after the weights are written
        assert!(export.fill(&source, save).is_err());
        for (name, text) in [(WEIGHTS, "earlier weights"), ("vocab.txt", "words"), ("notes.txt", "mine")] {
            assert_eq!(fs::read_to_string(target.join(name)).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the source and the earlier export");
    }

    #[test]
    fn a_folder_with_folders_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("pruned"));
        fs::create_dir_all(target.join("drafts")).unwrap();
        let message = Export::new(&target, true).unwrap().fill(&source, save).unwrap_err().to_string();
        assert!(message.contains("pruned/drafts") && message.contains("choose another folder"), "{message}");
        assert!(target.join("drafts").is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_within_the_model_and_nowhere_else() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let source = source(folder.path());
        fs::write(folder.path().join("secret"), "not of the model").unwrap();
        let export = |source: &Path| {
            let target = folder.path().join("pruned");
            let written = Export::new(&target, true).unwrap().fill(source, save);
            written.map_err(|error| error.to_string()).map(|()| target)
        };
        let companion = source.join("vocab.json");
        for (to, fault) in [
            (Path::new("../secret"), "vocab.json`: it is a link that leads out of the model's folder"),
            (Path::new("/dev/zero"), "vocab.json`: it is a link that leads out of the model's folder"),
            (Path::new("."), "vocab.json`: it is no regular file"),
            (Path::new("nowhere"), "cannot read `"),
        ] {
            symlink(to, &companion).unwrap();
            let message = export(&source).unwrap_err();
            assert!(message.contains(fault), "{}: {message}", to.display());
            fs::remove_file(&companion).unwrap();
        }
        symlink("vocab.txt", &companion).unwrap();
        let target = export(&source).unwrap();
        assert!(target.join("vocab.json").symlink_metadata().unwrap().is_file(), "a copy, not a link");

        // as in the cache of a hub
        let snapshot = folder.path().join("hub/models--a--b/snapshots/c0ffee");
        fs::create_dir_all(snapshot.join("../../blobs")).unwrap();
        fs::write(snapshot.join("../../blobs/1"), "cached words").unwrap();
        fs::copy(source.join(CONFIG), snapshot.join(CONFIG)).unwrap();
        symlink("../../blobs/1", snapshot.join("vocab.txt")).unwrap();
        let target = export(&snapshot).unwrap();
        assert_eq!(fs::read_to_string(target.join("vocab.txt")).unwrap(), "cached words");
        symlink("../../../../secret", snapshot.join("source.spm")).unwrap();
        assert!(export(&snapshot).unwrap_err().contains("source.spm`: it is a link that leads out"));
    }

    /// Permissions do not bind the superuser, so they are looked at.
    #[cfg(unix)]
    #[test]
    fn a_copy_of_a_read_only_file_can_be_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (source(folder.path()), folder.path().join("pruned"));
        fs::set_permissions(source.join("vocab.txt"), fs::Permissions::from_mode(0o444)).unwrap();
        Export::new(&target, false).unwrap().fill(&source, save).unwrap();
        let mode = fs::metadata(target.join("vocab.txt")).unwrap().permissions().mode();
        assert_ne!(mode & 0o200, 0, "{mode:o}");
    }
}
