//! Shakespeare, BLiMP and Tatoeba's English as they really are, read as documents and choices. Like all data they stay out
//! of the project: the tests need a copy beside it and are skipped without one.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use corpus::choices::{self, ChoiceFormat};
use corpus::documents::{self, DocumentFormat};
use corpus::fetch::{Catalogue, Origin, fetch};
use corpus::language_tokenizer::LanguageTokenizer;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sources.toml");

/// The folder of the copies, if `file` is there.
fn shared(file: &str) -> Option<PathBuf> {
    let shared = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).to_owned();
    if shared.join(file).exists() {
        return Some(shared);
    }
    test_support::skipped(&format!("no `{file}` in `{}`", shared.display()));
    None
}

fn texts(path: &Path, format: &str) -> Vec<String> {
    let format: DocumentFormat = toml::from_str(format).expect("a format of ours");
    let documents = documents::read(&[path], &format).expect("the file is there and whole");
    documents.into_iter().map(|document| document.text).collect()
}

/// nanoGPT's `data/shakespeare_char/prepare.py` prints: 65 characters, train has 1,003,854 tokens, val has 111,540.
#[test]
fn shakespeare_is_split_as_in_nanogpt() {
    let Some(shared) = shared("shakespeare/input.txt") else { return };
    let path = shared.join("shakespeare/input.txt");
    let part = |share: &str| texts(&path, &format!("kind = 'text'\nshare = {share}"));
    let (train, validation) = (part("[0.0, 0.9]"), part("[0.9, 1.0]"));
    let tokenizer = LanguageTokenizer::characters(train.iter().chain(&validation));
    assert_eq!(tokenizer.vocabulary_size(), 1 + 65);
    let tokens = |parts: &[String]| tokenizer.encode(&parts[0]).unwrap().len();
    assert_eq!([tokens(&train), tokens(&validation)], [1_003_854, 111_540]);
}

#[test]
fn blimp_has_a_thousand_pairs_of_each_paradigm() {
    let Some(shared) = shared("blimp/passive_1.jsonl") else { return };
    let catalogue = Catalogue::read(Path::new(SOURCES)).unwrap();
    let format: ChoiceFormat = toml::from_str(
        "kind = 'jsonl'\nchoices = ['sentence_good', 'sentence_bad']\nanswer = { always = 1 }\ngroup = 'UID'",
    )
    .unwrap();
    let files = &catalogue.get("blimp").unwrap().files;
    assert_eq!(files.len(), 12);
    for file in files.keys() {
        let pairs = choices::read(&shared.join("blimp").join(file), &format).unwrap();
        assert_eq!(pairs.len(), 1_000, "{file}");
        let group = file.strip_suffix(".jsonl");
        assert!(pairs.iter().all(|pair| pair.answer == 0 && pair.group.as_deref() == group), "{file}");
    }
}

/// 98,659 distinct English sentences: `unzip -p fra-eng.zip fra.txt | cut -f1 | sort -u | wc -l`.
#[test]
fn tatoebas_english_splits_share_no_sentence() {
    let Some(shared) = shared("tatoeba/fra-eng.zip") else { return };
    let split = |count: usize, skip: usize| {
        let sample = format!("sample = {{ count = {count}, skip = {skip}, seed = 1 }}");
        let format = format!("kind = 'tsv'\nheader = false\ntext = 1\ndistinct = true\n{sample}");
        texts(&shared.join("tatoeba/fra-eng.zip"), &format)
    };
    let splits = [split(1_000, 0), split(1_000, 1_000), split(96_659, 2_000)].concat();
    assert_eq!(splits.len(), 98_659);
    assert_eq!(splits.iter().collect::<HashSet<_>>().len(), 98_659);
}

#[test]
fn every_listed_file_is_fetched_from_a_mirror() {
    for (name, file) in [("shakespeare", "shakespeare/input.txt"), ("blimp", "blimp/passive_1.jsonl")] {
        let Some(shared) = shared(file) else { continue };
        let catalogue = Catalogue::read(Path::new(SOURCES)).unwrap();
        let source = catalogue.get(name).unwrap();
        let data = tempfile::tempdir().unwrap();
        let mirror = Origin::mirror(shared.to_str().unwrap());
        for expected in [source.files.len(), 0] {
            assert_eq!(fetch(name, source, &mirror, data.path(), &mut |_, _, _| {}).unwrap(), expected);
        }
    }
}
