//! Models that exist already, in a folder or on a hub.
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use core_masking::{HeadLayout, HeadSet, Removal, refuse_adapter, weight_files};
use corpus::hub::{HubModel, HubOptions, PREFIX};
use corpus::splits::check;
use records::{Identity, sha256_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use training::{Machine, TrainingCheckpoint};

use crate::error::Error;
use crate::spec::check_fetched;

/// A model that exists already, to be used unchanged or fine-tuned.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointSpec {
    /// A Hugging Face folder, relative to the data folder, or `hub:owner/name[@revision]`.
    pub from: String,
    /// Name for `just fetch`; absent if the folder cannot be fetched.
    pub fetch: Option<String>,
    /// Training checkpoints such as `step1000`: revisions of a hub model, or subfolders of the model's folder.
    #[serde(default, skip_serializing)]
    revisions: Vec<String>,
    /// Resolved once per run, because a branch on a hub may move in the meantime.
    #[serde(skip)]
    found: OnceCell<Checkpoint>,
}

impl CheckpointSpec {
    /// Returns an entry for the model `from`, without revisions.
    pub(crate) fn named(from: &str) -> Self {
        Self { from: from.to_owned(), fetch: None, revisions: Vec::new(), found: OnceCell::new() }
    }

    /// Returns the model's folder, fetching it if it is on a hub.
    pub(crate) fn find(&self, machine: &Machine) -> Result<&Checkpoint, Error> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let last = self.revisions.last().map(|last| self.at(last));
        let found = match (self.at_hand(machine), last) {
            (Some(folder), Some(last)) if !folder.join("config.json").exists() => {
                self.look_up(&last, machine)?
            }
            _ => self.look_up(&self.from, machine)?,
        };
        Ok(self.found.get_or_init(|| found))
    }

    /// Returns true if training checkpoints of the model are available.
    pub(crate) fn has_revisions(&self) -> bool {
        !self.revisions.is_empty()
    }

    /// Returns the name in signatures, without the revision.
    pub(crate) fn public_name(&self) -> String {
        public_name(&self.from)
    }

    /// Returns an error message if a revision is not a training checkpoint.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let updates: Vec<Option<usize>> = self.revisions.iter().map(|name| updates(name)).collect();
        let known = updates.iter().all(|updates| updates.is_some_and(|updates| updates > 0));
        let allowed = "checkpoint.revisions must name increasing updates from 1, such as `step1000`";
        check(&[(allowed, known && updates.windows(2).all(|pair| pair[0] < pair[1]))])
    }

    /// Returns the training checkpoints, fetching them if they are on a hub.
    pub(crate) fn revisions(&self, machine: &Machine) -> Result<Vec<TrainingCheckpoint>, Error> {
        let find = |name: &String| {
            let folder = self.look_up(&self.at(name), machine)?.folder;
            Ok(TrainingCheckpoint { epoch: None, updates: updates(name).unwrap_or_default(), folder })
        };
        self.revisions.iter().map(find).collect()
    }

    /// Returns the name of the model at a revision.
    fn at(&self, revision: &str) -> String {
        match self.from.starts_with(PREFIX) {
            true => format!("{}@{revision}", self.from.split('@').next().unwrap_or_default()),
            false => format!("{}/{revision}", self.from),
        }
    }

    /// Returns the folder of the model `from`, fetching it if it is on a hub.
    fn look_up(&self, from: &str, machine: &Machine) -> Result<Checkpoint, Error> {
        let Some(name) = from.strip_prefix(PREFIX) else {
            let folder = machine.data.join(from);
            let config = folder.join("config.json");
            check_fetched(std::slice::from_ref(&config), self.fetch.as_ref())?;
            refuse_adapter(&config)?;
            if !config.exists() {
                return Err(Error::Invalid(format!(
                    "no model in `{}`: {}",
                    folder.display(),
                    no_model(&folder)
                )));
            }
            return Ok(Checkpoint { name: public_name(from), folder });
        };
        let model: HubModel = name.parse()?;
        let fetched = model.fetch(&HubOptions::from_env(), machine.quiet)?;
        let name = format!("{PREFIX}{}@{}", model.repository, fetched.commit);
        Ok(Checkpoint { folder: fetched.folder, name })
    }

    /// Returns the folder; `None` if finding it needs a request to a hub.
    pub(crate) fn at_hand(&self, machine: &Machine) -> Option<PathBuf> {
        (!self.from.starts_with(PREFIX)).then(|| machine.data.join(&self.from))
    }
}

/// Returns advice for a folder without a `config.json`.
fn no_model(folder: &Path) -> String {
    let cached = folder.file_name().and_then(|name| name.to_str()?.strip_prefix("models--"));
    let snapshot = std::fs::read_dir(folder.join("snapshots")).ok().and_then(|mut all| all.next()?.ok());
    if let (Some(name), Some(snapshot)) = (cached, snapshot) {
        let (name, snapshot) = (name.replacen("--", "/", 1), snapshot.file_name());
        let snapshot = snapshot.to_string_lossy();
        return format!(
            "it is the hub's cache of a model: use \"{PREFIX}{name}\", or the folder `snapshots/{snapshot}` in it"
        );
    }
    if folder.components().any(|part| part.as_os_str() == "~") {
        return "`~` is not expanded here: write the full path of your home folder".to_owned();
    }
    match ["0_Transformer", "transformer"]
        .iter()
        .find(|inner| folder.join(inner).join("config.json").exists())
    {
        Some(inner) => format!("it is a folder of several modules, of which `{inner}` is the transformer"),
        None => "it must be a Hugging Face folder with a config.json".to_owned(),
    }
}

/// A Hugging Face folder on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Checkpoint {
    pub folder: PathBuf,
    /// Name in messages and signatures: `minilm`, or `hub:owner/name@commit`.
    pub name: String,
}

/// Returns the number of parameter updates before a revision: the digits after `step`, as in `step1000` and `stage1-step1000-tokens3B`.
fn updates(revision: &str) -> Option<usize> {
    let after = revision.rsplit_once("step")?.1;
    after.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// Returns a folder's name for signatures. Of paths outside the data folder only the last part is kept; the rest differs between machines.
fn public_name(from: &str) -> String {
    let path = Path::new(from);
    if path.is_absolute() || path.starts_with("..") {
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    } else {
        from.to_owned()
    }
}

/// Folders of the parts of a model: two for a training checkpoint, otherwise one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    /// Configuration and weights.
    pub model: &'a Path,
    /// Tokeniser and all other files.
    pub tokenizer: &'a Path,
}

impl<'a> Places<'a> {
    /// Uses one folder for all parts.
    pub(crate) fn one(folder: &'a Path) -> Self {
        Self { model: folder, tokenizer: folder }
    }
}

/// Returns the SHA-256 of a model's weights, in lower-case hexadecimal: of the file, or of the list of checksums if there are several
/// files.
pub fn sha256_of_weights(folder: &Path) -> Result<String, Error> {
    let files = weight_files(folder)?;
    let each = files.iter().map(|file| sha256_file(file)).collect::<Result<Vec<_>, _>>()?;
    match each.as_slice() {
        [one] => Ok(one.clone()),
        several => Ok(format!("{:x}", Sha256::digest(several.join("\n")))),
    }
}

/// Returns the SHA-256 of each of `files` that exists in `folder`, by name.
pub(crate) fn checksums(folder: &Path, files: &[&str]) -> Result<BTreeMap<String, String>, Error> {
    let present = files.iter().filter(|file| folder.join(file).exists());
    present.map(|file| Ok(((*file).to_owned(), sha256_file(&folder.join(file))?))).collect()
}

/// Refuses a tokeniser that has tokens without an embedding in the model.
pub(crate) fn check_vocabulary(folder: &Path, tokens: usize, embeddings: i64) -> Result<(), Error> {
    if tokens as i64 > embeddings {
        let found = format!("the tokenizer has {tokens} tokens, but the model has {embeddings} embeddings");
        return Err(Error::at(folder, format!("{found}: they do not match")));
    }
    Ok(())
}

/// Origin of a loaded model, as recorded in signatures.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub folder: PathBuf,
    /// Name of the checkpoint; absent if the model was trained here.
    pub checkpoint: Option<String>,
    /// Heads that were removed after loading.
    pub removed: HeadSet,
    weights: String,
    files: BTreeMap<String, String>,
}

impl Origin {
    /// Records the model in `places`; scores depend on those of `files` that exist.
    pub(crate) fn of(places: Places<'_>, files: &[&str], checkpoint: Option<String>) -> Result<Self, Error> {
        Ok(Self {
            folder: places.tokenizer.to_owned(),
            checkpoint,
            removed: HeadSet::none(),
            weights: sha256_of_weights(places.model)?,
            files: checksums(places.tokenizer, files)?,
        })
    }

    /// Returns the origin of the model with these heads removed as well.
    pub(crate) fn without_heads(&self, heads: &HeadSet) -> Self {
        Self { removed: self.removed.iter().chain(heads.iter()).collect(), ..self.clone() }
    }

    /// Refuses to write zeros for heads whose weights the model no longer contains.
    pub(crate) fn check_removal(&self, removal: Removal, layout: &HeadLayout) -> Result<(), Error> {
        match (removal, layout.removed().len()) {
            (Removal::Zeros, removed @ 1..) => {
                let folder = self.folder.display();
                let allowed = "zeros can only be written for a model with all its heads";
                let fault = format!("`{folder}` has {removed} heads removed from its weights: {allowed}");
                Err(Error::Invalid(fault))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn describe(&self, identity: &mut Identity) {
        identity.weights = Some(self.weights.clone());
        identity.data.extend(self.files.clone());
        if let Some(checkpoint) = &self.checkpoint {
            identity.arguments.insert("checkpoint".to_owned(), checkpoint.clone().into());
        }
        if !self.removed.is_empty() {
            identity.arguments.insert("removed_heads".to_owned(), self.removed.to_string().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_rising_numbers_of_updates() {
        let spec = |from: &str, revisions: &[&str]| CheckpointSpec {
            from: from.to_owned(),
            fetch: None,
            revisions: revisions.iter().map(|&name| name.to_owned()).collect(),
            found: OnceCell::new(),
        };
        assert_eq!(spec("a", &["step512", "step1000"]).validate(), Ok(()));
        assert_eq!(spec("a", &["stage1-step1000-tokens3B", "stage1-step20000-tokens42B"]).validate(), Ok(()));
        for faulty in
            [["step2", "step1"], ["step1", "step1"], ["step0", "step1"], ["main", "step1"], ["step", "step1"]]
        {
            assert!(spec("a", &faulty).validate().unwrap_err().contains("increasing"), "{faulty:?}");
        }
        assert_eq!(spec("hub:a/b@v1", &[]).at("step9"), "hub:a/b@step9");
        assert_eq!(spec("models/a", &[]).at("step9"), "models/a/step9");
    }
}
