//! Models of the Hugging Face hub, kept in its usual cache and so shared with other programs.
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use hf_hub::api::RepoInfo;
use hf_hub::api::sync::{Api, ApiBuilder, ApiError};
use hf_hub::{Cache, Repo, RepoType};

use crate::Error;
use crate::fetch::checksum;

/// What comes before a model of the hub where a folder could stand too.
pub const PREFIX: &str = "hub:";

/// What every model must have.
pub const REQUIRED: [&str; 2] = ["config.json", "model.safetensors"];

/// What models may have: settings of generation, and tokenisers in several forms.
pub const OPTIONAL: [&str; 8] = [
    "generation_config.json",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
];

const ANSWER: Duration = Duration::from_secs(60);

/// A model of the hub: `owner/name` or `owner/name@revision`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubModel {
    /// `owner/name`.
    pub repository: String,
    /// Branch, tag or commit; `main` if not given.
    pub revision: Option<String>,
}

/// Where the hub and its cache are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubOptions {
    /// The folder that holds `models--<owner>--<name>/`.
    pub cache: PathBuf,
    /// Address of the hub, if not the usual one.
    pub endpoint: Option<String>,
    /// Token for models that are not public.
    pub token: Option<String>,
    /// Whether only the cache is asked.
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
    /// Reads `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE`; the token may also lie in
    /// the file `token` of `HF_HOME`.
    pub fn from_env() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.trim().is_empty());
        let cache = Cache::from_env();
        // The values of huggingface_hub that mean yes.
        let yes = |value: String| ["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str());
        Self {
            cache: cache.path().clone(),
            endpoint: variable("HF_ENDPOINT").map(|address| address.trim_end_matches('/').to_owned()),
            token: variable("HF_TOKEN").map(|token| token.trim().to_owned()).or_else(|| cache.token()),
            offline: variable("HF_HUB_OFFLINE").is_some_and(yes),
        }
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
        // Both become names of folders and parts of addresses.
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

impl HubModel {
    /// Brings the `required` files and what there is of the `optional` ones to the cache; usually
    /// [`REQUIRED`] and [`OPTIONAL`].
    ///
    /// Files that the cache has are not asked for again, but unless `options.offline` the hub is
    /// asked which commit the revision is.
    pub fn fetch(
        &self,
        options: &HubOptions,
        required: &[&str],
        optional: &[&str],
        quiet: bool,
    ) -> Result<Fetched, Error> {
        let cache = Cache::new(options.cache.clone());
        if options.offline {
            return self.find(&cache, required);
        }
        let api = self.api(options, quiet)?;
        let info = self.ask(&api)?;
        let files: Vec<&str> = info.siblings.iter().map(|file| file.rfilename.as_str()).collect();
        if let Some(reason) = lacking(required, &files) {
            return Err(self.fault(reason));
        }
        // The commit and not the branch, which may move between two files.
        let repo = self.repo(&info.sha);
        let folder = cache.repo(repo.clone()).pointer_path(&info.sha);
        // Required files last: a snapshot that has them is complete, which matters offline.
        let wanted = optional.iter().filter(|name| files.contains(name)).chain(required);
        for name in wanted.filter(|name| !folder.join(name).exists()) {
            let path = api.repo(repo.clone()).download(name).map_err(|error| self.api_fault(error))?;
            self.verify(&path)?;
        }
        let reference = cache.repo(self.repo(self.revision()));
        reference.create_ref(&info.sha).map_err(|source| Error::Write { path: folder.clone(), source })?;
        Ok(Fetched { folder, commit: info.sha })
    }

    fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    fn repo(&self, revision: &str) -> Repo {
        Repo::with_revision(self.repository.clone(), RepoType::Model, revision.to_owned())
    }

    fn api(&self, options: &HubOptions, quiet: bool) -> Result<Api, Error> {
        let cache = Cache::new(options.cache.clone());
        let builder = ApiBuilder::from_cache(cache).with_token(options.token.clone()).with_progress(!quiet);
        let builder = match &options.endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint.clone()),
            None => builder,
        };
        builder.build().map_err(|error| self.api_fault(error))
    }

    /// Asks the hub which commit the revision is, and which files it has.
    fn ask(&self, api: &Api) -> Result<RepoInfo, Error> {
        let request = api.repo(self.repo(self.revision())).info_request();
        // The crate sets no limit of time.
        let request = request.config().timeout_global(Some(ANSWER)).build();
        let info = request.call().and_then(|mut answer| answer.body_mut().read_json());
        info.map_err(|error| self.api_fault(ApiError::RequestError(Box::new(error))))
    }

    /// The model as the cache has it.
    fn find(&self, cache: &Cache, required: &[&str]) -> Result<Fetched, Error> {
        let repo = self.repo(self.revision());
        let reference = cache.path().join(repo.folder_name()).join("refs").join(self.revision());
        // A revision without a reference may be a commit.
        let commit = fs::read_to_string(reference).unwrap_or_else(|_| self.revision().to_owned());
        let commit = commit.trim().to_owned();
        let folder = cache.repo(repo).pointer_path(&commit);
        match required.iter().find(|name| !folder.join(name).exists()) {
            None => Ok(Fetched { folder, commit }),
            Some(name) => Err(self.fault(format!(
                "`{name}` is not in the cache `{}`, and HF_HUB_OFFLINE forbids to fetch it",
                cache.path().display()
            ))),
        }
    }

    /// Checks a file whose name in the cache is its sha256, as that of every large file is; the
    /// crate itself checks nothing, and a download that goes on may be of another version.
    fn verify(&self, path: &Path) -> Result<(), Error> {
        let blob = fs::canonicalize(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let expected = blob.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if expected.len() != 64 {
            return Ok(());
        }
        let found = checksum::of_text(&blob, false)?.unwrap_or_else(|reason| reason);
        if found == expected {
            return Ok(());
        }
        fs::remove_file(path).map_err(|source| Error::Write { path: path.to_owned(), source })?;
        fs::remove_file(&blob).map_err(|source| Error::Write { path: blob, source })?;
        Err(Error::Content { address: self.to_string(), expected, found })
    }

    fn api_fault(&self, error: ApiError) -> Error {
        let ApiError::RequestError(error) = error else { return self.fault(error.to_string()) };
        self.fault(match *error {
            ureq::Error::StatusCode(404) => {
                format!("the hub has no such model, or it has no revision `{}`", self.revision())
            }
            // The hub's answer to whoever asks without a token for what does not exist.
            ureq::Error::StatusCode(401 | 403) => {
                "the hub has no such model, or HF_TOKEN must hold a token that may read it".to_owned()
            }
            ureq::Error::StatusCode(status) => format!("the hub answered {status}"),
            error => format!("{error}; HF_HUB_OFFLINE=1 takes what the cache has"),
        })
    }

    fn fault(&self, reason: String) -> Error {
        Error::Hub { model: self.to_string(), reason }
    }
}

/// Why the files that there are do not do, if they do not.
fn lacking(required: &[&str], files: &[&str]) -> Option<String> {
    let missing = required.iter().find(|name| !files.contains(name))?;
    let has = |name| *missing == "model.safetensors" && files.contains(&name);
    Some(if has("model.safetensors.index.json") {
        "its weights are in several files, but only a single `model.safetensors` is read".to_owned()
    } else if has("pytorch_model.bin") {
        "its weights are only in `pytorch_model.bin`: convert them to `model.safetensors`, with \
         `save_pretrained` of transformers, and use that folder"
            .to_owned()
    } else {
        format!("it has no `{missing}`")
    })
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
