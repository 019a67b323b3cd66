//! Multi30k as it really is. Its licence keeps it out of the project: the tests need a copy beside
//! it and are skipped without one.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::path::{Path, PathBuf};

use corpus::fetch::{Catalogue, Origin, fetch};
use corpus::parallel::ParallelText;
use corpus::sentence_tokenizer::SentenceTokenizer;
use corpus::tokenizer::SubwordTokenizer;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sources.toml");

/// The folder that holds `multi30k/`, if it is there.
fn shared() -> Option<PathBuf> {
    let shared = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).to_owned();
    if shared.join("multi30k/train.en.gz").exists() {
        return Some(shared);
    }
    test_support::skipped(&format!("no Multi30k in `{}`", shared.display()));
    None
}

fn read(shared: &Path, split: &str, target: &str) -> ParallelText {
    let file = |language| shared.join(format!("multi30k/{split}.{language}.gz"));
    ParallelText::read(&file("en"), &file(target)).unwrap()
}

/// Counts: the README of the data set.
#[test]
fn splits_have_their_sizes() {
    let Some(shared) = shared() else { return };
    let sizes = [
        ("train", 29_000),
        ("val", 1_014),
        ("test_2016_flickr", 1_000),
        ("test_2017_flickr", 1_000),
        ("test_2017_mscoco", 461),
    ];
    for (split, size) in sizes {
        assert_eq!(read(&shared, split, "fr").len(), size, "{split} en-fr");
        assert_eq!(read(&shared, split, "de").len(), size, "{split} en-de");
    }
}

#[test]
fn every_line_survives_the_tokeniser() {
    let Some(shared) = shared() else { return };
    let train = read(&shared, "train", "de");
    let lines = train.source.iter().chain(&train.target);
    let tokenizer = SubwordTokenizer::train(lines.clone().take(32_000), 4_000).unwrap();
    assert_eq!(tokenizer.source_vocabulary_size(), 4_000);
    for line in lines {
        assert_eq!(&tokenizer.decode(&tokenizer.encode(line)), line);
    }
}

#[test]
fn every_listed_file_is_fetched_from_a_mirror() {
    let Some(shared) = shared() else { return };
    let catalogue = Catalogue::read(Path::new(SOURCES)).unwrap();
    let source = catalogue.get("multi30k").unwrap();
    let data = tempfile::tempdir().unwrap();
    let mirror = Origin::mirror(shared.to_str().unwrap());
    for expected in [15, 0] {
        let fetched = fetch("multi30k", source, &mirror, data.path(), &mut |_, _, _| {}).unwrap();
        assert_eq!(fetched, expected);
    }
    assert_eq!(source.files.len(), 15);
}
