//! Files that never end are refused, whatever tokeniser they are of.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use corpus::Error;
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::fsmt_tokenizer::FsmtTokenizer;
use corpus::marian_tokenizer::MarianTokenizer;
use corpus::tokenizer::SubwordTokenizer;

const CLASSIFIERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/classifiers");
const FSMT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/fsmt");
const MARIAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian");

type Load = fn(&Path) -> Result<(), Error>;

const CLASSIFIER: Load = |folder| ClassifierTokenizer::load(folder, 16).map(drop);

/// A folder and what is read of it.
struct Case {
    folder: PathBuf,
    load: Load,
    /// Files that it has or could have.
    files: &'static [&'static str],
}

fn cases() -> Vec<Case> {
    let classifier = |name: &str| Path::new(CLASSIFIERS).join(name);
    let of = |folder: PathBuf, load: Load, files| Case { folder, load, files };
    vec![
        of(
            classifier("bert-list"),
            CLASSIFIER,
            &[
                "added_tokens.json",
                "config.json",
                "special_tokens_map.json",
                "tokenizer_config.json",
                "vocab.txt",
            ],
        ),
        of(classifier("distilbert-silent"), CLASSIFIER, &["tokenizer.json"]),
        of(classifier("roberta-lists"), CLASSIFIER, &["vocab.json", "merges.txt"]),
        of(
            FSMT.into(),
            |folder| FsmtTokenizer::load(folder).map(drop),
            &["config.json", "merges.txt", "tokenizer_config.json", "vocab-src.json", "vocab-tgt.json"],
        ),
        of(
            MARIAN.into(),
            |folder| MarianTokenizer::load(folder).map(drop),
            &["source.spm", "target.spm", "tokenizer_config.json", "vocab.json"],
        ),
        of(
            classifier("distilbert-silent"),
            |folder| SubwordTokenizer::load(&folder.join("tokenizer.json")).map(drop),
            &["tokenizer.json"],
        ),
    ]
}

/// Loads a copy of each folder in which `replace` has put something else in the place of the file.
fn assert_refused(replace: impl Fn(&Path)) {
    let files = |case: Case| case.files.iter().map(move |&file| (case.folder.clone(), case.load, file));
    for (original, load, file) in cases().into_iter().flat_map(files) {
        let copy = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(&original).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() && entry.file_name() != file {
                fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
        }
        let path = copy.path().join(file);
        replace(&path);
        let error = load(copy.path()).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read `{}`", path.display()));
        assert_eq!(error.source().unwrap().to_string(), "not a regular file", "{file}");
    }
}

#[test]
fn a_device_is_refused() {
    assert_refused(|path| symlink("/dev/zero", path).unwrap());
}

#[test]
fn a_pipe_that_nobody_writes_to_is_refused() {
    assert_refused(|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()));
}
