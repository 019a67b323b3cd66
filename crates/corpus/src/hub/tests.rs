//! Downloads from a small local hub; no request leaves this machine.
use super::*;
use crate::transfer::tests::TestServer;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use tempfile::TempDir;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const TEXT: &[u8] = b"A dog.\nTwo dogs.\n";
/// `printf 'A dog.\nTwo dogs.\n' | sha256sum`
const SHA256: &str = "c63bc22b48772678a553b415cf4da5ddb3c1aeea33ee09715b6b16ac8432f7ca";
const FILES: [&str; 2] = [CONFIGURATION, WEIGHTS];

/// A hub with one model, `toy/bert`, and one commit, to which `main` and `v1` refer.
struct Hub {
    files: Vec<&'static str>,
    /// Content that the server of large files sends.
    large: &'static [u8],
    /// Token that every request must send; `None` for a public model.
    token: Option<&'static str>,
    /// Address of the server of large files; empty for the hub itself.
    warehouse: String,
    commit: &'static str,
    /// Git blob id of small files.
    blob: &'static str,
}

impl Hub {
    fn new(files: &[&'static str]) -> Self {
        let (files, warehouse) = (files.to_vec(), String::new());
        Self { files, large: TEXT, token: None, warehouse, commit: COMMIT, blob: COMMIT }
    }

    fn start(self) -> TestServer {
        TestServer::start(move |head, stream| {
            let (status, body) = self.page(head);
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        })
    }

    fn page(&self, head: &str) -> (String, Vec<u8>) {
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let (folder, name) = head.split(' ').nth(1).unwrap().rsplit_once('/').unwrap();
        if self.token.is_some_and(|token| field("authorization: bearer ") != Some(token)) {
            return ("401 Unauthorized".to_owned(), Vec::new());
        }
        match folder {
            "/api/models/toy/bert/revision" if ["main?blobs=true", "v1?blobs=true"].contains(&name) => {
                let siblings: Vec<Value> = self.files.iter().map(|name| self.sibling(name)).collect();
                ("200 OK".to_owned(), json!({ "sha": self.commit, "siblings": siblings }).to_string().into())
            }
            "/large" => {
                let start = field("range: bytes=").map_or("0", |range| range.trim_end_matches('-'));
                let start: usize = start.parse().unwrap();
                let (last, length) = (self.large.len() - 1, self.large.len());
                let part = format!("206 Partial Content\r\nContent-Range: bytes {start}-{last}/{length}");
                (if start > 0 { part } else { "200 OK".to_owned() }, self.large[start..].to_vec())
            }
            "/cached" => ("200 OK".to_owned(), b"{}\n".to_vec()),
            // Redirects large files to another server, and small ones to another path on this one.
            _ if self.files.contains(&name) && folder == format!("/toy/bert/resolve/{COMMIT}") => {
                let large = format!("{}/large/{name}", self.warehouse);
                let place = if name.ends_with(".safetensors") { large } else { format!("/cached/{name}") };
                (format!("302 Found\r\nLocation: {place}"), Vec::new())
            }
            _ => ("404 Not Found".to_owned(), Vec::new()),
        }
    }

    fn sibling(&self, name: &str) -> Value {
        let large = name.ends_with(".safetensors");
        let (size, lfs) = if large { (TEXT.len(), json!({ "sha256": SHA256 })) } else { (3, Value::Null) };
        json!({ "rfilename": name, "size": size, "blobId": self.blob, "lfs": lfs })
    }
}

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn options(&self, hub: &TestServer) -> HubOptions {
        let (cache, endpoint) = (self.0.path().join("hub"), Some(hub.address.clone()));
        HubOptions { cache, endpoint, token: None, offline: false }
    }

    fn fetch(&self, hub: &TestServer) -> Result<Fetched, String> {
        fetch("toy/bert", &self.options(hub))
    }

    fn model(&self) -> PathBuf {
        self.0.path().join("hub/models--toy--bert")
    }

    fn weights(&self) -> Vec<u8> {
        fs::read(self.model().join("snapshots").join(COMMIT).join(WEIGHTS)).unwrap()
    }
}

fn fetch(model: &str, options: &HubOptions) -> Result<Fetched, String> {
    let fetched = model.parse::<HubModel>().unwrap().fetch(options, true);
    fetched.map_err(|error| error.to_string().replace("cannot get `toy/bert` from the hub: ", ""))
}

fn asked(hub: &TestServer) -> Vec<String> {
    hub.requests().iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn a_model_is_fetched_with_its_files_and_not_requested_again() {
    let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    for weights in [vec![WEIGHTS], vec![shards[0], shards[1], INDEX]] {
        let home = Home::new();
        let expected = [vec!["added_tokens.json", CONFIGURATION], weights, vec!["vocab.txt"]].concat();
        let hub = Hub::new(&[&expected[..], &["README.md", "pytorch_model.bin"]].concat()).start();
        let Fetched { folder, commit } = home.fetch(&hub).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        assert_eq!((names, commit.as_str()), (expected.iter().map(Into::into).collect(), COMMIT));
        assert_eq!(fs::read(home.model().join("blobs").join(SHA256)).unwrap(), TEXT);
        assert_eq!(fs::read_to_string(home.model().join("refs/main")).unwrap(), COMMIT);

        let before = asked(&hub).len();
        home.fetch(&hub).unwrap();
        fs::remove_dir_all(folder).unwrap(); // the contents stay, as those of another commit would
        home.fetch(&hub).unwrap();
        assert_eq!(asked(&hub)[before..], ["/api/models/toy/bert/revision/main?blobs=true"; 2]);
    }
}

#[test]
fn offline_only_the_cache_is_used() {
    let (home, hub) = (Home::new(), Hub::new(&FILES).start());
    let offline = HubOptions { endpoint: None, offline: true, ..home.options(&hub) };
    let fault = fetch("toy/bert", &offline).unwrap_err();
    assert!(fault.ends_with("and HF_HUB_OFFLINE forbids downloading it"), "{fault}");
    fetch("toy/bert@v1", &home.options(&hub)).unwrap();
    assert_eq!(asked(&hub)[0], "/api/models/toy/bert/revision/v1?blobs=true");
    for model in ["toy/bert@v1".to_owned(), format!("toy/bert@{COMMIT}")] {
        assert_eq!(fetch(&model, &offline).unwrap().commit, COMMIT);
    }
    assert!(fetch("toy/bert", &offline).is_err());
    fs::write(home.model().join("refs/main"), "../../elsewhere").unwrap();
    let fault = fetch("toy/bert", &offline).unwrap_err();
    assert!(
        fault.ends_with("should contain a commit (40 hexadecimal digits), but contains `../../elsewhere`"),
        "{fault}"
    );
}

#[test]
fn a_token_gives_access_to_private_models_and_no_other_host_sees_it() {
    let warehouse = Hub::new(&FILES).start();
    let elsewhere = warehouse.address.replace("127.0.0.1", "localhost");
    let hub = Hub { token: Some("hf_toy"), warehouse: elsewhere, ..Hub::new(&FILES) }.start();
    let home = Home::new();
    let fault = "the hub has no such model, or HF_TOKEN must be set to a token that may read it";
    assert_eq!(home.fetch(&hub).unwrap_err(), fault);
    fetch("toy/bert", &HubOptions { token: Some("hf_toy".to_owned()), ..home.options(&hub) }).unwrap();
    assert_eq!(home.weights(), TEXT);
    let heads = warehouse.requests();
    assert!(
        heads.len() == 1 && !heads[0].contains("authorization") && !heads[0].contains("hf_toy"),
        "{heads:?}"
    );
}

#[test]
fn missing_models_and_files_are_reported_in_one_line() {
    let (home, hub) = (Home::new(), Hub::new(&FILES).start());
    let fault = fetch("toy/bert@v2", &home.options(&hub)).unwrap_err();
    assert!(fault.ends_with("the hub has no such model or no revision `v2` of it"), "{fault}");
    let lacking = |files: &[&'static str]| home.fetch(&Hub::new(files).start()).unwrap_err();
    assert!(lacking(&[CONFIGURATION, "pytorch_model.bin"]).contains("convert them to `model.safetensors`"));
    assert_eq!(lacking(&[CONFIGURATION, "tf_model.h5"]), "it has no `model.safetensors`");
    assert_eq!(lacking(&[WEIGHTS]), "it has no `config.json`");
    let adapted = lacking(&[CONFIGURATION, WEIGHTS, "adapter_config.json", "adapter_model.safetensors"]);
    assert!(adapted.starts_with("it has an adapter, `adapter_model.safetensors`, which would"), "{adapted}");
    assert!(!home.model().exists(), "refused before anything is fetched");
    let nowhere = HubOptions { endpoint: Some("ftp://hub".to_owned()), ..home.options(&hub) };
    let fault = fetch("toy/bert", &nowhere).unwrap_err();
    assert!(
        fault.ends_with("is not an http or https address; set HF_HUB_OFFLINE=1 to use only the cache"),
        "{fault}"
    );
}

#[test]
fn interrupted_downloads_resume_and_wrong_contents_are_removed() {
    let home = Home::new();
    let hub = |large| Hub { large, ..Hub::new(&FILES) }.start();
    let fault = home.fetch(&hub(b"A cat.\nTwo cats.\n")).unwrap_err();
    assert!(fault.contains(&format!("its text should have sha256 {SHA256}")), "{fault}");
    let fault = home.fetch(&hub(b"A dog.\nTwo dogs.\nMore.\n")).unwrap_err();
    assert!(fault.starts_with("the server sends 23 bytes, expected 17"), "{fault}");
    let part = home.model().join("blobs").join(format!("{SHA256}.incomplete"));
    assert!(!part.exists());

    fs::write(&part, &TEXT[..5]).unwrap();
    // This server's first bytes are wrong, so the weights are right only if those bytes are not downloaded again.
    home.fetch(&hub(b"?????.\nTwo dogs.\n")).unwrap();
    assert_eq!(home.weights(), TEXT);
    assert!(!part.exists());
}

#[test]
fn invalid_digests_never_become_paths() {
    let refused = |hub: Hub, of: &str, name: &str| {
        let home = Home::new();
        let fault = format!("it gives `{name}` as {of}: expected 40 or 64 hexadecimal digits");
        assert_eq!(home.fetch(&hub.start()).unwrap_err(), fault);
        assert_eq!(fs::read_dir(home.0.path()).unwrap().count(), 0, "{fault}");
    };
    for name in ["../../../../evil", "/tmp/evil", "main", "0123456789abcdef0123456789abcdef0123456", ""] {
        refused(Hub { commit: name, ..Hub::new(&FILES) }, "a commit", name);
        refused(Hub { blob: name, ..Hub::new(&FILES) }, "the content of `config.json`", name);
    }
}

#[test]
fn variables_are_read_as_huggingface_hub_does() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("token"), "hf_kept\n").unwrap();
    let path = home.path().to_str().unwrap();
    let options = |set: &[(&str, &str)]| {
        let find =
            |name: &str| set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        HubOptions::of(|name| if name == "HF_HOME" { Some(path.to_owned()) } else { find(name) })
    };
    let kept = options(&[("HF_TOKEN", " "), ("HF_HUB_OFFLINE", "0")]);
    assert_eq!(
        (kept.token.as_deref(), kept.offline, kept.endpoint()),
        (Some("hf_kept"), false, USUAL_ENDPOINT)
    );
    assert_eq!(kept.cache, home.path().join("hub"));
    let set = [
        ("HF_TOKEN", "hf_set"),
        ("HF_HUB_OFFLINE", "yes"),
        ("HF_ENDPOINT", "http://a/"),
        ("HF_HUB_CACHE", "/c"),
    ];
    let set = options(&set);
    assert_eq!(set.cache, std::path::PathBuf::from("/c"));
    assert_eq!((set.token.as_deref(), set.offline, set.endpoint()), (Some("hf_set"), true, "http://a"));
}

#[test]
fn names_are_read_with_and_without_a_revision() {
    let model = |text: &str| text.parse::<HubModel>().map(|model| (model.repository, model.revision));
    assert_eq!(model("google-bert/bert-base_2.0").unwrap(), ("google-bert/bert-base_2.0".to_owned(), None));
    assert_eq!(model("a/b@refs/pr/7").unwrap(), ("a/b".to_owned(), Some("refs/pr/7".to_owned())));
    for text in ["", "bert", "a/", "/b", "a/b/c", "a/b@", "a b/c", "a/..", "a/b@../x", "a/b@x//y", "a/b@x@y"]
    {
        let fault = format!("`{text}` is not a hub model: expected owner/name or owner/name@revision");
        assert_eq!(model(text).unwrap_err().to_string(), fault);
    }
}
