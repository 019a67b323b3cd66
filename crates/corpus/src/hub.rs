//! Downloads models from the Hugging Face hub into its usual cache, which other programs share.
//!
//! Layout of the cache: <https://huggingface.co/docs/huggingface_hub/guides/manage-cache>. The server is not trusted: only names of a known
//! form become paths, and known checksums are compared.
mod cache;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use indicatif::ProgressBar;

use self::cache::Cache;
use words::excerpt;

use crate::Error;
use crate::progress::progress_bar;
use crate::transfer::{Client, Fault};

/// Prefix of a hub model's name in arguments that also accept a folder.
pub const PREFIX: &str = "hub:";

const CONFIGURATION: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
/// Index of sharded weights: maps each tensor to its file.
pub const INDEX: &str = "model.safetensors.index.json";

/// Adapter weights, under PEFT's current file name and its older one.
pub const ADAPTER_WEIGHTS: [&str; 2] = ["adapter_model.safetensors", "adapter_model.bin"];

/// Files that a model may have: generation settings, chat template, image preprocessing, and tokenizers in several formats.
pub const OPTIONAL: [&str; 19] = [
    "added_tokens.json",
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "preprocessor_config.json",
    "sentencepiece.bpe.model",
    "source.spm",
    "special_tokens_map.json",
    "spiece.model",
    "spm.model",
    "target.spm",
    "target_vocab.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab-src.json",
    "vocab-tgt.json",
    "vocab.json",
    "vocab.txt",
];

const USUAL_ENDPOINT: &str = "https://huggingface.co";

/// A model on the hub: `owner/name` or `owner/name@revision`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubModel {
    /// `owner/name`.
    pub repository: String,
    /// Branch, tag or commit; `None` means `main`.
    pub revision: Option<String>,
}

/// Address of the hub and location of its cache.
#[derive(Clone, PartialEq, Eq)]
pub struct HubOptions {
    /// Folder that contains `models--<owner>--<name>/`.
    pub cache: PathBuf,
    /// Address of the hub; `None` means `https://huggingface.co`.
    pub endpoint: Option<String>,
    /// Access token for private or gated models, sent only to the hub itself.
    pub token: Option<String>,
    /// Uses only files in the cache.
    pub offline: bool,
}

/// A model in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Folder with the model's files.
    pub folder: PathBuf,
    /// Commit of the files.
    pub commit: String,
}

impl HubOptions {
    /// Reads `HF_HOME` (default: `~/.cache/huggingface`), `HF_HUB_CACHE` (default: `hub` in `HF_HOME`), `HF_ENDPOINT`, `HF_TOKEN` (default:
    /// the file `token` in `HF_HOME`) and `HF_HUB_OFFLINE`.
    pub fn from_env() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name| variable(name).filter(|value| !value.trim().is_empty());
        // Values that huggingface_hub treats as true.
        let yes = |value: String| ["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str());
        let usual = || std::env::home_dir().unwrap_or_default().join(".cache/huggingface");
        let home = variable("HF_HOME").map_or_else(usual, PathBuf::from);
        let kept = || std::fs::read_to_string(home.join("token")).ok();
        let token = variable("HF_TOKEN").or_else(kept).map(|token| token.trim().to_owned());
        Self {
            cache: variable("HF_HUB_CACHE").map_or_else(|| home.join("hub"), PathBuf::from),
            endpoint: variable("HF_ENDPOINT").map(|address| address.trim().trim_end_matches('/').to_owned()),
            token: token.filter(|token| !token.is_empty()),
            offline: variable("HF_HUB_OFFLINE").is_some_and(yes),
        }
    }

    fn endpoint(&self) -> &str {
        self.endpoint.as_deref().unwrap_or(USUAL_ENDPOINT)
    }
}

impl FromStr for HubModel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (repository, revision) = match text.split_once('@') {
            Some((repository, revision)) => (repository, Some(revision)),
            None => (text, None),
        };
        let parts: Vec<&str> = repository.split('/').collect();
        // Repository and revision become part of paths and addresses.
        let fits = parts.len() == 2
            && parts.iter().all(|part| is_name(part))
            && revision.is_none_or(|revision| revision.split('/').all(is_name));
        if !fits {
            return Err(Error::Invalid(format!(
                "`{text}` is not a hub model: expected owner/name or owner/name@revision"
            )));
        }
        Ok(Self { repository: repository.to_owned(), revision: revision.map(str::to_owned) })
    }
}

fn is_name(part: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    part.bytes().all(allowed) && part.bytes().any(|byte| byte != b'.')
}

impl fmt::Display for HubModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.repository)?;
        self.revision.iter().try_for_each(|revision| write!(formatter, "@{revision}"))
    }
}

/// The hub's description of a revision.
#[derive(serde::Deserialize)]
struct Revision {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(serde::Deserialize)]
struct Sibling {
    #[serde(rename = "rfilename")]
    name: String,
    size: Option<u64>,
    /// Git blob id of the content.
    #[serde(rename = "blobId")]
    blob: Option<String>,
    /// Set for large files, whose content is stored outside Git.
    lfs: Option<Large>,
}

#[derive(serde::Deserialize)]
struct Large {
    sha256: String,
}

impl HubModel {
    /// Downloads configuration, weights and available [`OPTIONAL`] files to the cache. The weights are `model.safetensors` or, for large
    /// models, an index with its shards.
    ///
    /// Cached files are not downloaded again, but unless `options.offline` is set, the hub is asked for the revision's commit.
    ///
    /// # Errors
    /// If the hub does not answer, lacks the model or a required file, or the cache cannot be written.
    pub fn fetch(&self, options: &HubOptions, quiet: bool) -> Result<Fetched, Error> {
        let cache = Cache::new(&options.cache, &self.repository);
        if options.offline {
            return self.find(&cache, options);
        }
        let client = Client::new().with_token(options.token.as_deref());
        let download = Download { model: self, cache, client, options, quiet };
        let Revision { sha, siblings } = download.ask()?;
        let names: Vec<&str> = siblings.iter().map(|file| file.name.as_str()).collect();
        // Required files come last, so that their presence marks a complete snapshot for offline use.
        let required = required(&names).map_err(|reason| self.fault(reason))?;
        for name in OPTIONAL.into_iter().chain(required) {
            if let Some(file) = siblings.iter().find(|file| file.name == name) {
                download.bring(&sha, file)?;
            }
        }
        if self.revision() != sha {
            download.cache.remember(self.revision(), &sha)?;
        }
        Ok(Fetched { folder: download.cache.snapshot(&sha), commit: sha })
    }

    fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    fn find(&self, cache: &Cache, options: &HubOptions) -> Result<Fetched, Error> {
        // A revision that the cache does not know as a branch or tag may be a commit.
        let commit = cache.commit(self.revision())?.unwrap_or_else(|| self.revision().to_owned());
        let folder = cache.snapshot(&commit);
        let has = |name: &str| folder.join(name).exists();
        let weights = if has(INDEX) { INDEX } else { WEIGHTS };
        match [CONFIGURATION, weights].into_iter().find(|name| !has(name)) {
            None => Ok(Fetched { folder, commit }),
            Some(name) => Err(self.fault(format!(
                "`{name}` is not in the cache `{}`, and HF_HUB_OFFLINE forbids downloading it",
                options.cache.display()
            ))),
        }
    }

    fn transfer_fault(&self, fault: Fault) -> Error {
        match fault {
            Fault::Status(404) => {
                self.fault(format!("the hub has no such model or no revision `{}` of it", self.revision()))
            }
            // Without a token, the hub also answers this for models that do not exist.
            Fault::Status(401 | 403) => self.fault(
                "the hub has no such model, or HF_TOKEN must be set to a token that may read it".to_owned(),
            ),
            fault => fault.into_error(|reason| {
                self.message(&format!("{reason}; set HF_HUB_OFFLINE=1 to use only the cache"))
            }),
        }
    }

    fn fault(&self, reason: String) -> Error {
        Error::Invalid(self.message(&reason))
    }

    fn message(&self, reason: &str) -> String {
        format!("cannot get `{self}` from the hub: {reason}")
    }
}

struct Download<'a> {
    model: &'a HubModel,
    cache: Cache,
    client: Client,
    options: &'a HubOptions,
    quiet: bool,
}

impl Download<'_> {
    /// Asks the hub for the revision's commit and files, with their content digests.
    fn ask(&self) -> Result<Revision, Error> {
        let (endpoint, repository) = (self.options.endpoint(), &self.model.repository);
        // Encoded, since the revision would otherwise end at the slash.
        let name = self.model.revision().replace('/', "%2F");
        let address = format!("{endpoint}/api/models/{repository}/revision/{name}?blobs=true");
        let text = self.client.text(&address).map_err(|fault| self.model.transfer_fault(fault))?;
        let revision: Revision = serde_json::from_str(&text).map_err(|error| {
            let reason = excerpt(&error.to_string());
            self.model.fault(format!("its answer describes no revision ({reason})"))
        })?;
        self.check_digest(&revision.sha, "a commit")?;
        Ok(revision)
    }

    /// Refuses a digest that is unsafe as part of a path.
    fn check_digest(&self, digest: &str, of: &str) -> Result<(), Error> {
        if cache::is_digest(digest) {
            return Ok(());
        }
        let reason = format!("it gives `{}` as {of}: expected 40 or 64 hexadecimal digits", excerpt(digest));
        Err(self.model.fault(reason))
    }

    /// Downloads a file unless it is cached. Requests it by commit, since a branch may move between two files.
    fn bring(&self, commit: &str, file: &Sibling) -> Result<(), Error> {
        let name = &file.name;
        if self.cache.snapshot(commit).join(name).exists() {
            return Ok(());
        }
        // The content's ETag, which is its file name in the cache.
        let content = file.lfs.as_ref().map(|large| &large.sha256).or(file.blob.as_ref());
        let content = content.map_or("nothing", String::as_str);
        self.check_digest(content, &format!("the content of `{name}`"))?;
        let blob = self.cache.blob(content)?;
        if !blob.is_complete() {
            let bar = if self.quiet { ProgressBar::hidden() } else { progress_bar() };
            let mut progress = |done, total: Option<u64>| {
                bar.set_message(name.clone());
                bar.set_length(total.unwrap_or(done));
                bar.set_position(done);
            };
            let (endpoint, repository) = (self.options.endpoint(), &self.model.repository);
            let address = format!("{endpoint}/{repository}/resolve/{commit}/{name}");
            let received = self.client.resume(&address, &blob.part(), file.size, &mut progress);
            bar.finish_and_clear();
            received.map_err(|fault| self.model.transfer_fault(fault))?;
            blob.complete(&self.model.to_string())?;
        }
        self.cache.link(commit, name, &blob)
    }
}

/// Returns the required files among `files`: the configuration, then the weights. The index of sharded weights comes last.
fn required<'a>(files: &[&'a str]) -> Result<Vec<&'a str>, String> {
    let has = |name: &str| files.contains(&name);
    if let Some(adapter) = ADAPTER_WEIGHTS.iter().find(|name| has(name) && has("adapter_config.json")) {
        return Err(format!(
            "it has an adapter, `{adapter}`, which would not be measured: merge it into its base model with \
             `merge_and_unload` of PEFT, and use that folder"
        ));
    }
    if !has(CONFIGURATION) {
        return Err(format!("it has no `{CONFIGURATION}`"));
    }
    if has(WEIGHTS) {
        return Ok(vec![CONFIGURATION, WEIGHTS]);
    }
    if has(INDEX) {
        let is_shard =
            |name: &str| name.starts_with("model-") && name.ends_with(".safetensors") && is_name(name);
        let shards = files.iter().copied().filter(|name| is_shard(name));
        return Ok([CONFIGURATION].into_iter().chain(shards).chain([INDEX]).collect());
    }
    Err(if has("pytorch_model.bin") {
        "its weights are only in `pytorch_model.bin`: convert them to `model.safetensors`, with \
         `save_pretrained` of transformers, and use that folder"
            .to_owned()
    } else {
        format!("it has no `{WEIGHTS}`")
    })
}

#[cfg(test)]
mod tests;
