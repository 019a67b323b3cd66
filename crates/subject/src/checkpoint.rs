//! Models that are there already: in a folder, or on a hub.
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use core_masking::{HeadLayout, HeadSet, Removal, refuse_adapter, weight_files};
use corpus::hub::{HubModel, HubOptions, PREFIX};
use records::{Identity, sha256_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use training::Machine;

use crate::error::Error;
use crate::spec::check_fetched;

/// A model that is there already, to be used or to be fine-tuned.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointSpec {
    /// A Hugging Face folder, relative to the data folder, or `hub:owner/name[@revision]`.
    pub from: String,
    /// Name for `just fetch`, if the folder can be fetched.
    pub fetch: Option<String>,
    /// Found once in a run: a branch of a hub may move between two questions.
    #[serde(skip)]
    found: OnceCell<Checkpoint>,
}

impl CheckpointSpec {
    /// The folder of the model; brings it from the hub if it is there.
    ///
    /// # Errors
    /// If there is no such folder, or the hub does not answer or has no such model.
    pub(crate) fn find(&self, machine: &Machine) -> Result<&Checkpoint, Error> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let found = Checkpoint::find(self, machine)?;
        Ok(self.found.get_or_init(|| found))
    }

    /// The folder, if that can be said without asking a hub.
    pub(crate) fn at_hand(&self, machine: &Machine) -> Option<PathBuf> {
        (!self.from.starts_with(PREFIX)).then(|| machine.data.join(&self.from))
    }
}

/// A Hugging Face folder on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Checkpoint {
    /// Its folder.
    pub folder: PathBuf,
    /// Name in messages and signatures: `minilm`, or `hub:owner/name@commit`.
    pub name: String,
}

impl Checkpoint {
    /// Finds the folder; brings it from the hub if it is there.
    ///
    /// # Errors
    /// If there is no such folder, or the hub does not answer or has no such model.
    fn find(spec: &CheckpointSpec, machine: &Machine) -> Result<Self, Error> {
        let Some(name) = spec.from.strip_prefix(PREFIX) else {
            let folder = machine.data.join(&spec.from);
            let config = folder.join("config.json");
            check_fetched(std::slice::from_ref(&config), spec.fetch.as_ref())?;
            refuse_adapter(&config)?;
            if !config.exists() {
                let allowed = "it must be a Hugging Face folder with a config.json";
                return Err(Error::Invalid(format!("no model in `{}`: {allowed}", folder.display())));
            }
            return Ok(Self { name: public_name(&spec.from), folder });
        };
        let model: HubModel = name.parse()?;
        let fetched = model.fetch(&HubOptions::from_env(), machine.quiet)?;
        let name = format!("{PREFIX}{}@{}", model.repository, fetched.commit);
        Ok(Self { folder: fetched.folder, name })
    }
}

/// Name of a folder in signatures: the rest of a path that leads out of the data belongs to a machine.
fn public_name(from: &str) -> String {
    let path = Path::new(from);
    if path.is_absolute() || path.starts_with("..") {
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    } else {
        from.to_owned()
    }
}

/// Folders of the parts of a model: one folder, unless it is a checkpoint of training.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    /// Configuration and weights.
    pub model: &'a Path,
    /// Tokeniser and all else.
    pub tokenizer: &'a Path,
}

impl<'a> Places<'a> {
    /// All in one folder.
    pub(crate) fn one(folder: &'a Path) -> Self {
        Self { model: folder, tokenizer: folder }
    }
}

/// SHA-256 of a model's weights, in lower-case hexadecimal: that of their file or, of several, that of a list of theirs.
pub(crate) fn sha256_of_weights(folder: &Path) -> Result<String, Error> {
    let files = weight_files(folder)?;
    let each = files.iter().map(|file| sha256_file(file)).collect::<Result<Vec<_>, _>>()?;
    match each.as_slice() {
        [one] => Ok(one.clone()),
        several => Ok(format!("{:x}", Sha256::digest(several.join("\n")))),
    }
}

/// SHA-256 of those of `files` that are in `folder`, by name.
pub(crate) fn checksums(folder: &Path, files: &[&str]) -> Result<BTreeMap<String, String>, Error> {
    let present = files.iter().filter(|file| folder.join(file).exists());
    present.map(|file| Ok(((*file).to_owned(), sha256_file(&folder.join(file))?))).collect()
}

/// Refuses a tokeniser, in `folder`, with tokens that the model has no embedding for.
///
/// # Errors
/// If there are more tokens than embeddings.
pub(crate) fn check_vocabulary(folder: &Path, tokens: usize, embeddings: i64) -> Result<(), Error> {
    if tokens as i64 > embeddings {
        let found = format!("the tokeniser has {tokens} tokens, but the model embeds {embeddings}");
        return Err(Error::at(folder, format!("{found}: they do not belong together")));
    }
    Ok(())
}

/// Origin of a model that was loaded, as signatures tell it.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// Its folder.
    pub folder: PathBuf,
    /// The checkpoint that was taken as it is; absent if the model was trained here.
    pub checkpoint: Option<String>,
    /// Heads that were removed since.
    pub removed: HeadSet,
    weights: String,
    files: BTreeMap<String, String>,
}

impl Origin {
    /// Of the model in `places`, whose scores depend on those of `files` that are there.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn of(places: Places<'_>, files: &[&str], checkpoint: Option<String>) -> Result<Self, Error> {
        Ok(Self {
            folder: places.tokenizer.to_owned(),
            checkpoint,
            removed: HeadSet::none(),
            weights: sha256_of_weights(places.model)?,
            files: checksums(places.tokenizer, files)?,
        })
    }

    /// Of the same model without these heads too.
    pub(crate) fn without_heads(&self, heads: &HeadSet) -> Self {
        Self { removed: self.removed.iter().chain(heads.iter()).collect(), ..self.clone() }
    }

    /// Refuses to put zeros in the place of weights that are not there.
    ///
    /// # Errors
    /// If the model has heads cut out.
    pub(crate) fn check_removal(&self, removal: Removal, layout: &HeadLayout) -> Result<(), Error> {
        match (removal, layout.removed().len()) {
            (Removal::Zeros, removed @ 1..) => {
                let folder = self.folder.display();
                let allowed = "a dense model can only be made of one with all its heads";
                let fault = format!("`{folder}` has {removed} heads cut out of its weights: {allowed}");
                Err(Error::Invalid(fault))
            }
            _ => Ok(()),
        }
    }

    /// Adds what is known of the model to an identity.
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
