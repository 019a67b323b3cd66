//! Real data sets. Their licences keep them out of the repository: without copies in `shared/data` next to it, the tests are skipped.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use corpus::documents::{self, DocumentFormat};
use corpus::fetch::{Catalogue, Origin, fetch};
use corpus::labelled;
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::splits::BadRows;

/// Returns the folder of the copies if it contains `file`.
fn shared(file: &str) -> Option<PathBuf> {
    let shared = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).to_owned();
    if shared.join(file).exists() {
        return Some(shared);
    }
    test_support::skipped(&format!("no `{file}` in `{}`", shared.display()));
    None
}

fn catalogue() -> Catalogue {
    Catalogue::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sources.toml"))).unwrap()
}

#[test]
fn every_listed_file_is_fetched_from_a_mirror() {
    for (name, file) in [
        ("multi30k", "multi30k/train.en.gz"),
        ("tatoeba", "tatoeba/fra-eng.zip"),
        ("shakespeare", "shakespeare/input.txt"),
        ("blimp", "blimp/passive_1.jsonl"),
        ("glue-sst2", "glue/SST-2/dev.tsv"),
        ("glue-cola", "glue/CoLA/dev.tsv"),
        ("glue-mrpc", "glue/MRPC/dev.tsv"),
        ("mnli", "mnli/dev_matched.jsonl"),
        ("ntrex", "ntrex"),
        ("xnli", "xnli/xnli.en.dev.tsv"),
    ] {
        let Some(shared) = shared(file) else { continue };
        let (catalogue, data) = (catalogue(), tempfile::tempdir().unwrap());
        let source = catalogue.get(name).unwrap();
        let mirror = Origin::mirror(shared.to_str().unwrap());
        for expected in [source.files.len(), 0] {
            let fetched = fetch(name, source, &mirror, data.path(), &mut |_, _, _| {}).unwrap();
            assert_eq!(fetched, expected, "{name}");
        }
        assert!(data.path().join(file).exists(), "{name}");
    }
}

fn texts(path: &Path, format: &str) -> Vec<String> {
    let format: DocumentFormat = toml::from_str(format).unwrap();
    let documents = documents::read(&[path], &format, &mut BadRows::default()).unwrap();
    documents.into_iter().map(|document| document.text).collect()
}

/// Counts from `grep -cE '^ = [^=].* = $'`, minus two formulas in the test split.
#[test]
fn wikitext_has_sixty_articles() {
    for split in ["valid", "test"] {
        let file = format!("wikitext2/wiki.{split}.raw");
        let Some(shared) = shared(&file) else { continue };
        assert_eq!(texts(&shared.join(&file), "kind = 'wikitext'").len(), 60, "{split}");
    }
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

const SST2: &str = "kind = 'tsv'\ntext = 'sentence'\nlabel = 'label'";
const COLA: &str = "kind = 'tsv'\nheader = false\ntext = 4\nlabel = 2";
const MRPC: &str = "kind = 'tsv'\ntext = '#1 String'\npair = '#2 String'\nlabel = 'Quality'";
const MNLI: &str = "kind = 'tsv'\ntext = 'premise'\npair = 'hypothesis'\nlabel = 'label'";
const MNLI_JSONL: &str = "kind = 'jsonl'\ntext = 'premise'\npair = 'hypothesis'\nlabel = 'label'";
const XNLI: &str = "kind = 'tsv'\ntext = 'sentence1_en'\npair = 'sentence2_en'\nlabel = 'label'";

/// File, format, and the count of each class in alphabetical order: from `cut -f<n> <file> | sort | uniq -c`, for JSON lines from
/// `grep -c '"label": "<class>"'`. MRPC has rows with an odd number of quotation marks; read as quoting, they would swallow row ends.
const FILES: [(&str, &str, &[usize]); 6] = [
    ("glue/SST-2/dev.tsv", SST2, &[428, 444]),
    ("glue/CoLA/dev.tsv", COLA, &[322, 721]),
    ("glue/MRPC/train.tsv", MRPC, &[1_194, 2_474]),
    ("mnli/dev_matched.jsonl", MNLI_JSONL, &[3_213, 3_479, 3_123]),
    ("mnli/train_subset.tsv", MNLI, &[3_906, 3_815, 4_289]),
    ("xnli/xnli.en.test.tsv", XNLI, &[1_670; 3]),
];

#[test]
fn every_labelled_file_has_its_classes() {
    let Some(shared) = shared("glue/SST-2/dev.tsv") else { return };
    for (file, format, classes) in FILES {
        let format = toml::from_str(format).unwrap();
        let mut counts = BTreeMap::<String, usize>::new();
        for example in labelled::read(&shared.join(file), &format, &mut BadRows::default()).unwrap() {
            *counts.entry(example.label).or_default() += 1;
        }
        assert_eq!(counts.into_values().collect::<Vec<_>>(), classes, "{file}");
    }
}
