//! Models of the Hugging Face hub, kept in its usual cache and so shared with other programs.
//!
//! Layout of the cache: <https://huggingface.co/docs/huggingface_hub/guides/manage-cache>. The server is not trusted:
//! only names of a known form become paths, and known checksums are compared.
mod cache;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use indicatif::ProgressBar;

use self::cache::{Blob, Cache};
use words::excerpt;

use crate::Error;
use crate::progress::progress_bar;
use crate::transfer::{Client, Description, Fault};

/// Marks a model of the hub where a folder is possible too.
pub const PREFIX: &str = "hub:";

const CONFIGURATION: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
/// Lists the files of weights that are split, and the tensors in each.
const INDEX: &str = "model.safetensors.index.json";

/// Files that a model may have: settings for generating text, and tokenisers in several formats.
pub const OPTIONAL: [&str; 12] = [
    "added_tokens.json",
    "generation_config.json",
    "merges.txt",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab-src.json",
    "vocab-tgt.json",
    "vocab.json",
    "vocab.txt",
];

const USUAL_ENDPOINT: &str = "https://huggingface.co";

/// A model of the hub: `owner/name` or `owner/name@revision`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubModel {
    /// `owner/name`.
    pub repository: String,
    /// Branch, tag or commit; `main` if not given.
    pub revision: Option<String>,
}

/// Where the hub and its cache are.
#[derive(Clone, PartialEq, Eq)]
pub struct HubOptions {
    /// The folder that holds `models--<owner>--<name>/`.
    pub cache: PathBuf,
    /// Address of the hub, if not the usual one.
    pub endpoint: Option<String>,
    /// Token for models that are not public; it is sent to the hub itself only.
    pub token: Option<String>,
    /// Whether to use only what is in the cache.
    pub offline: bool,
}

/// A model in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The folder with its files.
    pub folder: PathBuf,
    /// The commit that the files are of.
    pub commit: String,
}

impl HubOptions {
    /// Reads `HF_HOME`, which is `~/.cache/huggingface` if not given, `HF_ENDPOINT`, `HF_TOKEN` and
    /// `HF_HUB_OFFLINE`. The token may also be in the file `token` of `HF_HOME`.
    pub fn from_env() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.trim().is_empty());
        // The values that mean yes to huggingface_hub.
        let yes = |value: String| ["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str());
        let usual = || std::env::home_dir().unwrap_or_default().join(".cache/huggingface");
        let home = variable("HF_HOME").map_or_else(usual, PathBuf::from);
        let kept = || std::fs::read_to_string(home.join("token")).ok();
        let token = variable("HF_TOKEN").or_else(kept).map(|token| token.trim().to_owned());
        Self {
            cache: home.join("hub"),
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
        // Both become part of paths and addresses.
        let fits = parts.len() == 2
            && parts.iter().all(|part| is_name(part))
            && revision.is_none_or(|revision| revision.split('/').all(is_name));
        if !fits {
            return Err(Error::HubName { text: text.to_owned() });
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

/// What the hub says about a revision.
#[derive(serde::Deserialize)]
struct Revision {
    /// The commit.
    sha: String,
    siblings: Vec<Sibling>,
}

/// A file of a revision.
#[derive(serde::Deserialize)]
struct Sibling {
    #[serde(rename = "rfilename")]
    name: String,
}

impl HubModel {
    /// Downloads to the cache: the configuration, the weights and those of the [`OPTIONAL`] files that there are. The
    /// weights are `model.safetensors` or, for large models, an index and its shards.
    ///
    /// Files in the cache are not downloaded again, but unless `options.offline` the hub is asked
    /// for the commit of the revision.
    ///
    /// # Errors
    /// If the hub does not answer, has no such model or not all of its files, or the cache cannot be written.
    pub fn fetch(&self, options: &HubOptions, quiet: bool) -> Result<Fetched, Error> {
        let cache = Cache::new(&options.cache, &self.repository);
        if options.offline {
            return self.find(&cache);
        }
        let mut download = Download { model: self, cache, client: self.client(options)?, options, quiet };
        let revision = download.ask()?;
        let files: Vec<&str> = revision.siblings.iter().map(|file| file.name.as_str()).collect();
        let required = required(&files).map_err(|reason| self.fault(reason))?;
        // Required files last, so that a snapshot that has them is complete; that matters offline.
        let optional = OPTIONAL.iter().copied().filter(|name| files.contains(name));
        for name in optional.chain(required) {
            // By commit, since a branch may move between two files.
            download.bring(&revision.sha, name)?;
        }
        if self.revision() != revision.sha {
            download.cache.remember(self.revision(), &revision.sha)?;
        }
        Ok(Fetched { folder: download.cache.snapshot(&revision.sha), commit: revision.sha })
    }

    fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    fn client(&self, options: &HubOptions) -> Result<Client, Error> {
        match &options.token {
            None => Ok(Client::new()),
            Some(token) => Client::new()
                .with_token(token, options.endpoint())
                .map_err(|fault| self.transfer_fault(fault)),
        }
    }

    /// The model as the cache has it.
    fn find(&self, cache: &Cache) -> Result<Fetched, Error> {
        // A revision that the cache does not know as a branch or tag may be a commit.
        let commit = cache.commit(self.revision())?.unwrap_or_else(|| self.revision().to_owned());
        let folder = cache.snapshot(&commit);
        let has = |name: &str| folder.join(name).exists();
        let weights = if has(INDEX) { INDEX } else { WEIGHTS };
        match [CONFIGURATION, weights].into_iter().find(|name| !has(name)) {
            None => Ok(Fetched { folder, commit }),
            Some(name) => Err(self.fault(format!(
                "`{name}` is not in the cache `{}`, and HF_HUB_OFFLINE forbids to fetch it",
                cache.path().display()
            ))),
        }
    }

    fn transfer_fault(&self, fault: Fault) -> Error {
        self.fault(match fault {
            Fault::Write { path, source } => return Error::Write { path, source },
            Fault::Status(404) => {
                format!("the hub has no such model, or it has no revision `{}`", self.revision())
            }
            // Without a token, this is also the hub's answer for models that do not exist.
            Fault::Status(401 | 403) => {
                "the hub has no such model, or HF_TOKEN must hold a token that may read it".to_owned()
            }
            Fault::Status(status) => format!("the hub answered {status}"),
            Fault::Answer(reason) => format!("{reason}; HF_HUB_OFFLINE=1 takes what the cache has"),
        })
    }

    fn fault(&self, reason: String) -> Error {
        Error::Hub { model: self.to_string(), reason }
    }
}

/// A model on its way to the cache.
struct Download<'a> {
    model: &'a HubModel,
    cache: Cache,
    client: Client,
    options: &'a HubOptions,
    quiet: bool,
}

impl Download<'_> {
    /// Asks the hub which commit the revision is, and which files it has.
    fn ask(&mut self) -> Result<Revision, Error> {
        let HubModel { repository, .. } = self.model;
        // Otherwise the revision would end at the slash.
        let name = self.model.revision().replace('/', "%2F");
        let address = format!("{}/api/models/{repository}/revision/{name}", self.options.endpoint());
        let text = self.client.text(&address).map_err(|fault| self.model.transfer_fault(fault))?;
        let revision: Revision = serde_json::from_str(&text).map_err(|error| {
            let reason = excerpt(&error.to_string());
            self.model.fault(format!("its answer describes no revision ({reason})"))
        })?;
        if cache::is_commit(&revision.sha) {
            return Ok(revision);
        }
        let reason = format!(
            "it names `{}` as a commit, which is none: 40 hexadecimal digits",
            excerpt(&revision.sha)
        );
        Err(self.model.fault(reason))
    }

    /// Downloads a file of `commit` unless the cache has it.
    fn bring(&mut self, commit: &str, name: &str) -> Result<(), Error> {
        if self.cache.snapshot(commit).join(name).exists() {
            return Ok(());
        }
        let HubModel { repository, .. } = self.model;
        let address = format!("{}/{repository}/resolve/{commit}/{name}", self.options.endpoint());
        let description = self.client.describe(&address).map_err(|fault| self.model.transfer_fault(fault))?;
        let blob = self.cache.blob(self.etag(name, &description)?)?;
        if !blob.is_complete() {
            self.download(&address, name, &blob, size(&description))?;
        }
        self.cache.link(commit, name, &blob)
    }

    fn download(&self, address: &str, name: &str, blob: &Blob, size: Option<u64>) -> Result<(), Error> {
        let bar = if self.quiet { ProgressBar::hidden() } else { progress_bar() };
        let mut progress = |done, total: Option<u64>| {
            bar.set_message(name.to_owned());
            bar.set_length(total.unwrap_or(done));
            bar.set_position(done);
        };
        let received = self.client.resume(address, &blob.part(), size, &mut progress);
        bar.finish_and_clear();
        received.map_err(|fault| self.model.transfer_fault(fault))?;
        blob.complete(&self.model.to_string())
    }

    /// The hub's name for the content of a file, which becomes a file name.
    fn etag(&self, name: &str, description: &Description) -> Result<String, Error> {
        let field = description.field("x-linked-etag").or_else(|| description.field("etag"));
        let field = field.ok_or_else(|| self.model.fault(format!("it names no ETag of `{name}`")))?;
        let etag = field.trim().trim_start_matches("W/").trim_matches('"');
        if cache::is_etag(etag) {
            return Ok(etag.to_owned());
        }
        let reason = format!(
            "it names `{}` as the ETag of `{name}`: allowed are up to 128 letters, digits, `-` and `_`",
            excerpt(etag)
        );
        Err(self.model.fault(reason))
    }
}

/// The size of a file, if the hub states it.
fn size(description: &Description) -> Option<u64> {
    let linked = description.field("x-linked-size");
    let own = || description.field("content-length").filter(|_| !description.is_redirection());
    linked.or_else(own)?.trim().parse().ok()
}

/// The files that a model needs, of those that the hub has: the configuration, then the weights. If those are split, the
/// index comes last.
///
/// # Errors
/// What is missing.
fn required<'a>(files: &[&'a str]) -> Result<Vec<&'a str>, String> {
    let find = |wanted: &str| files.iter().copied().find(|name| *name == wanted);
    let Some(configuration) = find(CONFIGURATION) else { return Err(format!("it has no `{CONFIGURATION}`")) };
    if let Some(whole) = find(WEIGHTS) {
        return Ok(vec![configuration, whole]);
    }
    if let Some(index) = find(INDEX) {
        let mut shards: Vec<&str> =
            files.iter().copied().filter(|name| count_of_shards(name).is_some()).collect();
        shards.sort_unstable();
        shards.dedup();
        let counts: Vec<usize> = shards.iter().filter_map(|name| count_of_shards(name)).collect();
        if counts.is_empty() || counts.iter().any(|&count| count != counts.len()) {
            return Err(format!(
                "its weights are in several files, named by `{INDEX}`, but not all of these are there: it has {}",
                if shards.is_empty() { "none".to_owned() } else { shards.join(", ") }
            ));
        }
        return Ok([vec![configuration], shards, vec![index]].concat());
    }
    Err(if find("pytorch_model.bin").is_some() {
        "its weights are only in `pytorch_model.bin`: convert them to `model.safetensors`, with \
         `save_pretrained` of transformers, and use that folder"
            .to_owned()
    } else {
        format!("it has no `{WEIGHTS}`")
    })
}

/// The number of shards according to the name of one: 3 for `model-00001-of-00003.safetensors`.
fn count_of_shards(name: &str) -> Option<usize> {
    let (place, count) = name.strip_prefix("model-")?.strip_suffix(".safetensors")?.split_once("-of-")?;
    let number = |text: &str| {
        let is_number = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<usize>().ok()).flatten()
    };
    let (place, count) = (number(place)?, number(count)?);
    (1..=count).contains(&place).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_a_revision() {
        let model = |text: &str| text.parse::<HubModel>().unwrap();
        let bert = model("google-bert/bert-base_2.0");
        assert_eq!((bert.repository.as_str(), bert.revision.as_deref()), ("google-bert/bert-base_2.0", None));
        let revised = model("a/b@refs/pr/7");
        assert_eq!((revised.repository.as_str(), revised.revision.as_deref()), ("a/b", Some("refs/pr/7")));
        for text in ["a/b", "a/b@v1.0"] {
            assert_eq!(model(text).to_string(), text);
        }
    }

    #[test]
    fn weights_in_several_files_come_with_their_index() {
        let shards = ["model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"];
        let files = [CONFIGURATION, shards[0], INDEX, shards[1], "../model-00001-of-00002.safetensors"];
        assert_eq!(required(&files), Ok(vec![CONFIGURATION, shards[1], shards[0], INDEX]));
        let fault = required(&[CONFIGURATION, INDEX, shards[0]]).unwrap_err();
        assert!(
            fault.ends_with("not all of these are there: it has model-00002-of-00002.safetensors"),
            "{fault}"
        );
        assert!(required(&[CONFIGURATION, INDEX]).unwrap_err().ends_with("it has none"));
        let both = [CONFIGURATION, WEIGHTS, INDEX, shards[0]];
        assert_eq!(required(&both), Ok(vec![CONFIGURATION, WEIGHTS]), "whole weights are enough");
        for name in [
            "model-00000-of-00002.safetensors",
            "model-00003-of-00002.safetensors",
            "model-1-of-2.safetensors",
        ] {
            assert_eq!(count_of_shards(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in
            ["", "bert", "a/", "/b", "a/b/c", "a/b@", "a b/c", "a/..", "a/b@../x", "a/b@x//y", "a/b@x@y"]
        {
            let expected =
                format!("`{text}` names no model of the hub: expected owner/name or owner/name@revision");
            assert_eq!(text.parse::<HubModel>().unwrap_err().to_string(), expected);
        }
    }
}
