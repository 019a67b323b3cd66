//! Models of the hub through the `fetch` binary, against a small hub on this machine; nothing leaves it.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::{contains, ends_with};
use tempfile::TempDir;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const WEIGHTS: &[u8] = b"A dog.\nTwo dogs.\n";
/// `printf 'A dog.\nTwo dogs.\n' | sha256sum`
const WEIGHTS_SHA256: &str = "c63bc22b48772678a553b415cf4da5ddb3c1aeea33ee09715b6b16ac8432f7ca";

/// A hub with one model, `toy/bert`, at one commit, which is `main` and `v1`.
#[derive(Clone)]
struct Hub {
    files: Vec<(&'static str, &'static [u8])>,
    /// What the server of large files sends for the weights.
    weights: &'static [u8],
    /// Answers nothing without this token.
    token: Option<&'static str>,
    /// Where large files are; at the hub's own address if not given.
    warehouse: Option<String>,
    commit: &'static str,
    /// What the small files are called.
    etag: &'static str,
    knows_ranges: bool,
    /// Heads of all requests.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    fn new(files: &[&'static str]) -> Self {
        let content = |&name| (name, if name == "model.safetensors" { WEIGHTS } else { b"{}\n" });
        let files = files.iter().map(content).collect();
        Self {
            files,
            weights: WEIGHTS,
            token: None,
            warehouse: None,
            commit: COMMIT,
            etag: "etag-of-",
            knows_ranges: true,
            requests: Arc::default(),
        }
    }

    /// Serves at a port of its own until the test process ends; returns the address.
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let hub = self.clone();
        thread::spawn(move || listener.incoming().for_each(|stream| hub.answer(stream.unwrap())));
        address
    }

    fn answer(&self, mut stream: TcpStream) {
        let lines = BufReader::new(&stream).lines().map(Result::unwrap);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        self.requests.lock().unwrap().push(head.join("\n"));
        let field = |name: &str| {
            head.iter().find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned))
        };
        let path = head[0].split(' ').nth(1).unwrap();
        let allowed =
            self.token.is_none_or(|token| field("authorization: bearer ").as_deref() == Some(token));
        let (status, body) = if allowed {
            let range = field("range: bytes=").filter(|_| self.knows_ranges);
            self.page(&field("host: ").unwrap(), path, range)
        } else {
            status("401 Unauthorized")
        };
        let sent = if head[0].starts_with("HEAD ") { &[] } else { &body[..] };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), sent].concat()).unwrap();
    }

    /// Status and header fields, and the body.
    fn page(&self, host: &str, path: &str, range: Option<String>) -> (String, Vec<u8>) {
        let revisions = ["main", "v1"].map(|revision| format!("/api/models/toy/bert/revision/{revision}"));
        if revisions.iter().any(|revision| revision == path) {
            let names = self.files.iter().map(|(name, _)| format!("{{\"rfilename\": \"{name}\"}}"));
            let names = names.collect::<Vec<_>>().join(", ");
            let commit = self.commit;
            return ("200 OK".into(), format!("{{\"sha\": \"{commit}\", \"siblings\": [{names}]}}").into());
        }
        if path == "/large/model.safetensors" {
            return part(self.weights, range);
        }
        let file = path.strip_prefix(&format!("/toy/bert/resolve/{COMMIT}/"));
        let Some((name, content)) = self.files.iter().find(|(name, _)| Some(*name) == file) else {
            return status("404 Not Found");
        };
        if *name == "model.safetensors" {
            // Large files are on another server, under their sha256; a relative address would be one
            // of the hub itself.
            let (head, body) = status("302 Found");
            let warehouse = self.warehouse.clone().unwrap_or(format!("http://{host}"));
            let fields = format!(
                "Location: {warehouse}/large/model.safetensors\r\nX-Linked-ETag: \"{WEIGHTS_SHA256}\"\r\n\
                 X-Linked-Size: {}\r\nETag: \"other\"\r\nX-Repo-Commit: {COMMIT}",
                WEIGHTS.len()
            );
            return (format!("{head}\r\n{fields}"), body);
        }
        let (head, body) = part(content, range);
        let etag = format!("{}{}", self.etag, name.replace('.', "-"));
        (format!("{head}\r\nETag: \"{etag}\"\r\nX-Repo-Commit: {COMMIT}"), body)
    }

    /// The paths asked for so far, which are then forgotten.
    fn asked(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect()
    }
}

fn status(status: &str) -> (String, Vec<u8>) {
    (status.to_owned(), Vec::new())
}

/// The answer to a request for all, or for `<start>-`.
fn part(content: &[u8], range: Option<String>) -> (String, Vec<u8>) {
    let Some(range) = range else { return ("200 OK".to_owned(), content.to_vec()) };
    let start: usize = range.trim_end_matches('-').parse().unwrap();
    let range = format!("Content-Range: bytes {start}-{}/{}", content.len() - 1, content.len());
    (format!("206 Partial Content\r\n{range}"), content[start..].to_vec())
}

/// A folder for `HF_HOME`.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn model(&self) -> PathBuf {
        self.folder.path().join("hub/models--toy--bert")
    }

    fn snapshot(&self) -> PathBuf {
        self.model().join("snapshots").join(COMMIT)
    }

    /// The names of the files that were brought, sorted.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.snapshot()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What is there of the weights before they are complete.
    fn part(&self) -> PathBuf {
        self.model().join("blobs").join(format!("{WEIGHTS_SHA256}.incomplete"))
    }

    fn write_part(&self, content: &[u8]) {
        fs::create_dir_all(self.part().parent().unwrap()).unwrap();
        fs::write(self.part(), content).unwrap();
    }

    /// All files and links that lie anywhere in this folder, below it.
    fn all(&self) -> Vec<PathBuf> {
        fn below(folder: PathBuf, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    below(entry.path(), found);
                } else {
                    found.push(entry.path());
                }
            }
        }
        let mut found = Vec::new();
        below(self.folder.path().to_owned(), &mut found);
        found
    }

    fn fetch(&self, model: &str, variables: &[(&str, &str)]) -> Assert {
        let mut command = Command::cargo_bin("fetch").unwrap();
        for name in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "HF_TOKEN", "HF_HUB_OFFLINE", "HF_ENDPOINT"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command.env("HF_HOME", self.folder.path()).envs(variables.iter().copied());
        command.arg(format!("hub:{model}")).assert()
    }

    fn fetch_from(&self, endpoint: &str, model: &str) -> Assert {
        self.fetch(model, &[("HF_ENDPOINT", endpoint)])
    }
}

fn one_line_error(reason: &str) -> impl Predicate<str> + use<> {
    ends_with(format!("{reason}\n")).and(predicate::function(|output: &str| {
        output.lines().count() == 1 && output.starts_with("error: cannot get `toy/bert")
    }))
}

/// An address where nobody answers.
fn nowhere() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed again at once
    format!("http://{free}")
}

#[test]
fn a_model_comes_with_the_files_that_it_has_and_with_its_commit() {
    let files = [
        "README.md",
        "added_tokens.json",
        "config.json",
        "model.safetensors",
        "vocab.txt",
        "pytorch_model.bin",
    ];
    let hub = Hub::new(&files);
    let home = Home::new();
    let told = format!("commit {COMMIT} in `{}`", home.snapshot().display());
    home.fetch_from(&hub.start(), "toy/bert").success().stderr(contains(told));
    assert_eq!(home.files(), ["added_tokens.json", "config.json", "model.safetensors", "vocab.txt"]);
    assert_eq!(fs::read(home.snapshot().join("model.safetensors")).unwrap(), WEIGHTS);
    assert_eq!(fs::read(home.model().join("blobs").join(WEIGHTS_SHA256)).unwrap(), WEIGHTS);
    assert_eq!(fs::read_to_string(home.model().join("refs/main")).unwrap(), COMMIT);
}

#[test]
fn weights_in_several_files_come_with_their_index() {
    let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let hub = Hub::new(&["config.json", shards[1], shards[0], "model.safetensors.index.json", "README.md"]);
    let home = Home::new();
    home.fetch_from(&hub.start(), "toy/bert").success();
    assert_eq!(home.files(), ["config.json", shards[0], shards[1], "model.safetensors.index.json"]);
    home.fetch("toy/bert", &[("HF_HUB_OFFLINE", "1")]).success();
    fs::remove_file(home.snapshot().join("config.json")).unwrap();
    home.fetch("toy/bert", &[("HF_HUB_OFFLINE", "1")]).code(1);
}

#[test]
fn what_the_cache_has_is_not_asked_for_again() {
    let hub = Hub::new(&["config.json", "model.safetensors"]);
    let (home, endpoint) = (Home::new(), hub.start());
    home.fetch_from(&endpoint, "toy/bert").success();
    assert!(hub.asked().len() > 1);
    home.fetch_from(&endpoint, "toy/bert").success();
    assert_eq!(hub.asked(), ["/api/models/toy/bert/revision/main"]);
}

#[test]
fn offline_the_cache_alone_is_asked() {
    let home = Home::new();
    let offline = nowhere();
    let variables = [("HF_HUB_OFFLINE", "1"), ("HF_ENDPOINT", offline.as_str())];
    let cache = home.folder.path().join("hub");
    let absent = format!(
        "`config.json` is not in the cache `{}`, and HF_HUB_OFFLINE forbids to fetch it",
        cache.display()
    );
    home.fetch("toy/bert", &variables).code(1).stderr(one_line_error(&absent));

    home.fetch_from(&Hub::new(&["config.json", "model.safetensors"]).start(), "toy/bert").success();
    for model in ["toy/bert".to_owned(), format!("toy/bert@{COMMIT}")] {
        home.fetch(&model, &variables).success().stderr(contains(format!("commit {COMMIT}")));
    }
    home.fetch("toy/bert@v1", &variables).code(1).stderr(one_line_error(&absent));
    home.fetch("toy/bert", &[("HF_HUB_OFFLINE", "0"), ("HF_ENDPOINT", &offline)]).code(1);
}

#[test]
fn a_revision_is_asked_for_and_remembered_by_its_name() {
    let hub = Hub::new(&["config.json", "model.safetensors"]);
    let home = Home::new();
    home.fetch_from(&hub.start(), "toy/bert@v1").success();
    let asked = hub.asked();
    assert_eq!(asked[0], "/api/models/toy/bert/revision/v1");
    let by_commit = format!("/toy/bert/resolve/{COMMIT}/");
    assert!(
        asked[1..].iter().all(|path| path.starts_with(&by_commit) || path.starts_with("/large/")),
        "{asked:?}"
    );
    home.fetch("toy/bert@v1", &[("HF_HUB_OFFLINE", "yes")]).success();
    home.fetch("toy/bert", &[("HF_HUB_OFFLINE", "yes")]).code(1);
}

#[test]
fn a_token_opens_what_is_not_public() {
    let hub = Hub { token: Some("hf_toy"), ..Hub::new(&["config.json", "model.safetensors"]) };
    let (home, endpoint) = (Home::new(), hub.start());
    let reason = "the hub has no such model, or HF_TOKEN must hold a token that may read it";
    home.fetch_from(&endpoint, "toy/bert").code(1).stderr(one_line_error(reason));
    home.fetch("toy/bert", &[("HF_ENDPOINT", &endpoint), ("HF_TOKEN", "hf_toy")]).success();

    let home = Home::new();
    fs::write(home.folder.path().join("token"), "hf_toy\n").unwrap();
    home.fetch_from(&endpoint, "toy/bert").success();
}

#[test]
fn models_and_revisions_that_are_not_there_are_one_clear_line() {
    let (home, endpoint) = (Home::new(), Hub::new(&["config.json", "model.safetensors"]).start());
    let absent = |revision| format!("the hub has no such model, or it has no revision `{revision}`");
    home.fetch_from(&endpoint, "toy/bert-large").code(1).stderr(one_line_error(&absent("main")));
    home.fetch_from(&endpoint, "toy/bert@v2").code(1).stderr(one_line_error(&absent("v2")));
    let name = "error: `bert` names no model of the hub: expected owner/name or owner/name@revision\n";
    home.fetch_from(&endpoint, "bert").code(1).stderr(name);
}

#[test]
fn models_that_lack_a_file_are_one_clear_line() {
    let fails = |files: &[&'static str], reason: &str| {
        let home = Home::new();
        home.fetch_from(&Hub::new(files).start(), "toy/bert").code(1).stderr(one_line_error(reason));
        assert!(!home.model().exists(), "refused before anything is fetched");
    };
    let convert = "its weights are only in `pytorch_model.bin`: convert them to `model.safetensors`, with \
                   `save_pretrained` of transformers, and use that folder";
    fails(&["config.json", "pytorch_model.bin"], convert);
    let several = "its weights are in several files, named by `model.safetensors.index.json`, but not all of these are \
                   there: it has model-00002-of-00002.safetensors";
    let torn = ["config.json", "model.safetensors.index.json", "model-00002-of-00002.safetensors"];
    fails(&torn, several);
    fails(&["config.json", "tf_model.h5"], "it has no `model.safetensors`");
    fails(&["model.safetensors"], "it has no `config.json`");
}

#[test]
fn no_network_is_one_clear_line() {
    let reason = "HF_HUB_OFFLINE=1 takes what the cache has";
    Home::new().fetch_from(&nowhere(), "toy/bert").code(1).stderr(one_line_error(reason));
}

#[test]
fn weights_with_the_wrong_checksum_are_removed() {
    let hub = Hub::new(&["config.json", "model.safetensors"]);
    let home = Home::new();
    let torn = Hub { weights: b"A cat.\nTwo cats.\n", ..hub.clone() };
    let error = format!("`toy/bert` has the wrong content: its text should have sha256 {WEIGHTS_SHA256}");
    home.fetch_from(&torn.start(), "toy/bert").code(1).stderr(contains(error));
    home.fetch_from(&hub.start(), "toy/bert").success();
    assert_eq!(fs::read(home.snapshot().join("model.safetensors")).unwrap(), WEIGHTS);
}

#[test]
fn a_token_is_never_shown_to_the_server_of_large_files() {
    let warehouse = Hub::new(&[]);
    let files = ["config.json", "model.safetensors"];
    let hub = Hub { token: Some("hf_toy"), warehouse: Some(warehouse.start()), ..Hub::new(&files) };
    let home = Home::new();
    home.fetch("toy/bert", &[("HF_ENDPOINT", &hub.start()), ("HF_TOKEN", "hf_toy")]).success();
    assert_eq!(fs::read(home.snapshot().join("model.safetensors")).unwrap(), WEIGHTS);
    let heads = warehouse.requests.lock().unwrap();
    assert_eq!(heads.len(), 1);
    assert!(!heads[0].to_lowercase().contains("authorization") && !heads[0].contains("hf_toy"), "{heads:?}");
}

#[test]
fn a_broken_download_goes_on_where_it_stopped() {
    let hub = Hub::new(&["config.json", "model.safetensors"]);
    let home = Home::new();
    home.write_part(&WEIGHTS[..5]);
    // This server's first bytes differ, so the weights are right only if they are not asked for again.
    home.fetch_from(&Hub { weights: b"?????.\nTwo dogs.\n", ..hub }.start(), "toy/bert").success();
    assert_eq!(fs::read(home.snapshot().join("model.safetensors")).unwrap(), WEIGHTS);
    assert!(!home.part().exists());
}

#[test]
fn where_ranges_are_ignored_weights_begin_anew() {
    let hub = Hub { knows_ranges: false, ..Hub::new(&["config.json", "model.safetensors"]) };
    let home = Home::new();
    home.write_part(b"?????");
    home.fetch_from(&hub.start(), "toy/bert").success();
    assert_eq!(fs::read(home.snapshot().join("model.safetensors")).unwrap(), WEIGHTS);
}

#[test]
fn weights_of_another_size_than_promised_are_not_received() {
    let hub =
        Hub { weights: b"A dog.\nTwo dogs.\nMore.\n", ..Hub::new(&["config.json", "model.safetensors"]) };
    let home = Home::new();
    let reason = "the server sends 23 bytes, but should send 17; HF_HUB_OFFLINE=1 takes what the cache has";
    home.fetch_from(&hub.start(), "toy/bert").code(1).stderr(one_line_error(reason));
    assert!(!home.part().exists());
}

#[test]
fn names_that_are_no_names_of_contents_never_become_paths() {
    for etag in ["../../../evil", "/tmp/evil", "a.b", "a b"] {
        let home = Home::new();
        let reason = format!(
            "it names `{etag}config-json` as the ETag of `config.json`: allowed are up to 128 letters, digits, `-` \
             and `_`"
        );
        let hub = Hub { etag, ..Hub::new(&["config.json", "model.safetensors"]) };
        home.fetch_from(&hub.start(), "toy/bert").code(1).stderr(one_line_error(&reason));
        assert_eq!(home.all(), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_is_no_commit_never_becomes_a_path() {
    for commit in ["../../../../evil", "main", "0123456789abcdef0123456789abcdef0123456", ""] {
        let home = Home::new();
        let hub = Hub { commit, ..Hub::new(&["config.json", "model.safetensors"]) };
        let reason = format!("it names `{commit}` as a commit, which is none: 40 hexadecimal digits");
        home.fetch_from(&hub.start(), "toy/bert").code(1).stderr(one_line_error(&reason));
        assert_eq!(home.all(), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_reference_in_the_cache_that_is_no_commit_is_refused() {
    let home = Home::new();
    let reference = home.model().join("refs/main");
    fs::create_dir_all(reference.parent().unwrap()).unwrap();
    fs::write(&reference, "../../elsewhere").unwrap();
    let error = format!(
        "error: `{}` should hold a commit, 40 hexadecimal digits, but holds `../../elsewhere`\n",
        reference.display()
    );
    home.fetch("toy/bert", &[("HF_HUB_OFFLINE", "1")]).code(1).stderr(error);
}

#[test]
fn a_content_that_another_commit_brought_is_not_asked_for_again() {
    let hub = Hub::new(&["config.json", "model.safetensors"]);
    let home = Home::new();
    let endpoint = hub.start();
    home.fetch_from(&endpoint, "toy/bert").success();
    fs::remove_dir_all(home.snapshot()).unwrap();
    hub.asked();
    home.fetch_from(&endpoint, "toy/bert").success();
    assert!(!hub.asked().contains(&"/large/model.safetensors".to_owned()));
    assert_eq!(fs::read(home.snapshot().join("model.safetensors")).unwrap(), WEIGHTS);
}

#[test]
fn an_address_that_is_none_is_one_clear_line() {
    let reason = "`ftp://hub/api/models/toy/bert/revision/main` is no address of http or https; \
                  HF_HUB_OFFLINE=1 takes what the cache has";
    Home::new().fetch_from("ftp://hub", "toy/bert").code(1).stderr(one_line_error(reason));
}

#[test]
fn a_mirror_is_not_for_the_hub() {
    let mut command = Command::cargo_bin("fetch").unwrap();
    let error = "error: --mirror is for data sets: HF_ENDPOINT names another hub\n";
    command.args(["hub:toy/bert", "--mirror", "x"]).assert().code(1).stderr(error);
}
