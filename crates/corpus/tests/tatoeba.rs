//! Tatoeba as it really is. Like all data it stays out of the project: the tests need a copy beside it
//! and are skipped without one.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use corpus::fetch::{Catalogue, Origin, fetch};
use corpus::pairs::{PairTable, Selection};
use corpus::parallel::ParallelText;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sources.toml");

/// The folder that holds `tatoeba/`, if it is there.
fn shared() -> Option<PathBuf> {
    let shared = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).to_owned();
    if shared.join("tatoeba/fra-eng.zip").exists() {
        return Some(shared);
    }
    test_support::skipped(&format!("no Tatoeba in `{}`", shared.display()));
    None
}

fn table(shared: &Path, file: &str, [source, target]: [usize; 2]) -> PairTable {
    PairTable { path: shared.join("tatoeba").join(file), inside: None, source, target }
}

fn distinct(sentences: &[String]) -> usize {
    sentences.iter().collect::<HashSet<_>>().len()
}

/// `unzip -p fra-eng.zip fra.txt | cut -f1 | sort -u | wc -l`, and the same of the other files and columns.
#[test]
fn every_source_sentence_is_there_once() {
    let Some(shared) = shared() else { return };
    let sizes =
        [("fra-eng.zip", [1, 2], 98_659), ("deu-eng.zip", [1, 2], 135_534), ("deu-eng.zip", [2, 1], 159_223)];
    for (file, columns, size) in sizes {
        let text = table(&shared, file, columns).read().unwrap();
        assert_eq!((text.len(), distinct(&text.source)), (size, size), "{file} {columns:?}");
    }
    let text = table(&shared, "fra-eng.zip", [1, 2]).read().unwrap();
    assert_eq!([&text.source[1], &text.target[1]], ["Run!", "Cours\u{202f}!"], "the first of two");
}

/// The file is sorted by length; a sample is not of short sentences only.
#[test]
fn a_sample_has_sentences_of_all_lengths() {
    let Some(shared) = shared() else { return };
    let table = table(&shared, "fra-eng.zip", [1, 2]);
    let text = table.read().unwrap();
    let sample = Selection { most_words: None, sample: Some((1_000, 1)) }.choose(&text, &table.path).unwrap();
    assert_eq!((sample.len(), distinct(&sample.source)), (1_000, 1_000));
    let mean = |text: &ParallelText| {
        let words: usize = text.source.iter().map(|sentence| sentence.split_whitespace().count()).sum();
        words as f64 / text.len() as f64
    };
    // Standard deviation 2.5 words, so the mean of 1,000 has a standard error of 0.08.
    let (all, drawn) = (mean(&text), mean(&sample));
    assert!((all - drawn).abs() < 0.4, "{drawn} words on average instead of {all}");
}

#[test]
fn every_listed_file_is_fetched_from_a_mirror() {
    let Some(shared) = shared() else { return };
    let catalogue = Catalogue::read(Path::new(SOURCES)).unwrap();
    let source = catalogue.get("tatoeba").unwrap();
    let data = tempfile::tempdir().unwrap();
    let mirror = Origin::mirror(shared.to_str().unwrap());
    for expected in [2, 0] {
        let fetched = fetch("tatoeba", source, &mirror, data.path(), &mut |_, _, _| {}).unwrap();
        assert_eq!(fetched, expected);
    }
}
