//! Real data sets. Their licences keep them out of the repository: without copies in `shared/data` next to it, the tests are skipped.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use corpus::choices::{self, ChoiceFormat};
use corpus::documents::{self, DocumentFormat};
use corpus::fetch::{Catalogue, Origin, fetch};
use corpus::labelled;
use corpus::labelled::Column;
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::pairs::{PairTable, Selection};
use corpus::parallel::ParallelText;
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

/// Counts from the README of the data set.
#[test]
fn splits_of_multi30k_have_their_sizes() {
    let Some(shared) = shared("multi30k/train.en.gz") else { return };
    for (split, size) in [
        ("train", 29_000),
        ("val", 1_014),
        ("test_2016_flickr", 1_000),
        ("test_2017_flickr", 1_000),
        ("test_2017_mscoco", 461),
    ] {
        for target in ["fr", "de"] {
            let file = |language| shared.join(format!("multi30k/{split}.{language}.gz"));
            let text =
                ParallelText::read(&file("en"), &[file(target)], &[], &mut BadRows::default()).unwrap();
            assert_eq!(text.len(), size, "{split} en-{target}");
        }
    }
}

fn distinct(sentences: &[String]) -> usize {
    sentences.iter().collect::<HashSet<_>>().len()
}

/// Counts from `unzip -p fra-eng.zip fra.txt | cut -f1 | sort -u | wc -l`, and likewise for the other files and columns.
#[test]
fn every_source_sentence_of_tatoeba_is_there_once() {
    let Some(shared) = shared("tatoeba/fra-eng.zip") else { return };
    for (file, [source, target], size) in
        [("fra-eng.zip", [1, 2], 98_659), ("deu-eng.zip", [1, 2], 135_534), ("deu-eng.zip", [2, 1], 159_223)]
    {
        let path = shared.join("tatoeba").join(file);
        let [from, to] = [source, target].map(Column::Number);
        let table = PairTable {
            path: path.clone(),
            inside: None,
            kind: None,
            source: from,
            target: to,
            others: Vec::new(),
        };
        let text = table.read(&mut BadRows::default()).unwrap();
        assert_eq!((text.len(), distinct(&text.source)), (size, size), "{file}, column {source}");
        if file == "fra-eng.zip" {
            assert_eq!([&text.source[1], &text.target[1]], ["Run!", "Cours\u{202f}!"], "the first of two");
            check_sample(&text, &path);
        }
    }
}

/// Checks that a sample is not biased towards short sentences, although the file is sorted by length.
fn check_sample(text: &ParallelText, path: &Path) {
    let selection = Selection { most_words: None, sample: Some((1_000, 1)) };
    let sample = selection.choose(text, path).unwrap();
    assert_eq!((sample.len(), distinct(&sample.source)), (1_000, 1_000));
    let mean = |text: &ParallelText| {
        let words: usize = text.source.iter().map(|sentence| sentence.split_whitespace().count()).sum();
        words as f64 / text.len() as f64
    };
    // Standard deviation 2.5 words, so the mean of 1,000 has a standard error of 0.08.
    let (all, drawn) = (mean(text), mean(&sample));
    assert!((all - drawn).abs() < 0.4, "{drawn} words on average instead of {all}");
}

fn texts(path: &Path, format: &str) -> Vec<String> {
    let format: DocumentFormat = toml::from_str(format).unwrap();
    let documents = documents::read(&[path], &format, &mut BadRows::default()).unwrap();
    documents.into_iter().map(|document| document.text).collect()
}

#[test]
fn english_splits_of_tatoeba_share_no_sentence() {
    let Some(shared) = shared("tatoeba/fra-eng.zip") else { return };
    let split = |count: usize, skip: usize| {
        let sample = format!("sample = {{ count = {count}, skip = {skip}, seed = 1 }}");
        let format = format!("kind = 'tsv'\nheader = false\ntext = 1\ndistinct = true\n{sample}");
        texts(&shared.join("tatoeba/fra-eng.zip"), &format)
    };
    let splits = [split(1_000, 0), split(1_000, 1_000), split(96_659, 2_000)].concat();
    assert_eq!((splits.len(), distinct(&splits)), (98_659, 98_659));
}

/// Counts from `grep -cE '^ = [^=].* = $'`, minus two formulas in the test split; blank lines do not matter.
#[test]
fn wikitext_has_sixty_articles_with_blank_lines_and_without() {
    for split in ["valid", "test"] {
        let Some(shared) = shared(&format!("wikitext2/wiki.{split}.raw")) else { continue };
        let whole = shared.join(format!("wikitext2/wiki.{split}.raw"));
        let content = std::fs::read_to_string(&whole).unwrap();
        let dense: Vec<&str> = content.lines().filter(|line| !line.trim().is_empty()).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dense");
        std::fs::write(&path, dense.join("\n")).unwrap();
        for path in [whole, path] {
            assert_eq!(texts(&path, "kind = 'wikitext'").len(), 60, "{split}, {}", path.display());
        }
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

#[test]
fn blimp_has_a_thousand_pairs_of_each_paradigm() {
    let Some(shared) = shared("blimp/passive_1.jsonl") else { return };
    let format: ChoiceFormat = toml::from_str(
        "kind = 'jsonl'\nchoices = ['sentence_good', 'sentence_bad']\nanswer = { always = 1 }\ngroup = 'UID'",
    )
    .unwrap();
    let catalogue = catalogue();
    let files = &catalogue.get("blimp").unwrap().files;
    assert_eq!(files.len(), 64);
    for file in files.keys() {
        let [plain, gzip] = ["", ".gz"].map(|ending| shared.join("blimp").join(format!("{file}{ending}")));
        let path = if plain.exists() { plain } else { gzip };
        let pairs =
            choices::read(&path, &format, &mut choices::Shots::none(), &mut BadRows::default()).unwrap();
        assert_eq!(pairs.len(), 1_000, "{file}");
        let group = file.strip_suffix(".jsonl");
        assert!(pairs.iter().all(|pair| pair.answer == 0 && pair.group.as_deref() == group), "{file}");
    }
}

const SST2: &str = "kind = 'tsv'\ntext = 'sentence'\nlabel = 'label'";
const COLA: &str = "kind = 'tsv'\nheader = false\ntext = 4\nlabel = 2";
const MRPC: &str = "kind = 'tsv'\ntext = '#1 String'\npair = '#2 String'\nlabel = 'Quality'";
const MNLI: &str = "kind = 'tsv'\ntext = 'premise'\npair = 'hypothesis'\nlabel = 'label'";
const MNLI_JSONL: &str = "kind = 'jsonl'\ntext = 'premise'\npair = 'hypothesis'\nlabel = 'label'";
const XNLI: &str = "kind = 'tsv'\ntext = 'sentence1_en'\npair = 'sentence2_en'\nlabel = 'label'";

/// Names of classes, each with its number of examples.
type Classes = &'static [(&'static str, usize)];

/// File, format, number of examples, and the count of each class in alphabetical order.
///
/// Counts from the README of the data; of classes from `cut -f<n> <file> | sort | uniq -c`, for JSON lines from
/// `grep -c '"label": "<class>"'`.
const FILES: [(&str, &str, usize, Classes); 11] = [
    ("glue/SST-2/train.tsv", SST2, 67_349, &[("0", 29_780), ("1", 37_569)]),
    ("glue/SST-2/dev.tsv", SST2, 872, &[("0", 428), ("1", 444)]),
    ("glue/CoLA/train.tsv", COLA, 8_551, &[("0", 2_528), ("1", 6_023)]),
    ("glue/CoLA/dev.tsv", COLA, 1_043, &[("0", 322), ("1", 721)]),
    ("glue/MRPC/train.tsv", MRPC, 3_668, &[("0", 1_194), ("1", 2_474)]),
    ("glue/MRPC/dev.tsv", MRPC, 408, &[("0", 129), ("1", 279)]),
    ("mnli/dev_matched.jsonl", MNLI_JSONL, 9_815, &MATCHED),
    ("mnli/train_subset.tsv", MNLI, 12_010, &TRAIN),
    ("mnli/dev_mismatched_partial.tsv", MNLI, 3_912, &MISMATCHED),
    ("xnli/xnli.en.dev.tsv", XNLI, 2_490, &[("contradiction", 830), ("entailment", 830), ("neutral", 830)]),
    (
        "xnli/xnli.en.test.tsv",
        XNLI,
        5_010,
        &[("contradiction", 1_670), ("entailment", 1_670), ("neutral", 1_670)],
    ),
];
const MATCHED: [(&str, usize); 3] = [("contradiction", 3_213), ("entailment", 3_479), ("neutral", 3_123)];
const TRAIN: [(&str, usize); 3] = [("contradiction", 3_906), ("entailment", 3_815), ("neutral", 4_289)];
const MISMATCHED: [(&str, usize); 3] = [("contradiction", 1_392), ("entailment", 1_421), ("neutral", 1_099)];

#[test]
fn every_labelled_file_has_its_size_and_its_classes() {
    let Some(shared) = shared("glue/SST-2/train.tsv") else { return };
    for (file, format, size, classes) in FILES {
        let examples =
            labelled::read(&shared.join(file), &toml::from_str(format).unwrap(), &mut BadRows::default())
                .unwrap();
        assert_eq!(examples.len(), size, "{file}");
        for &(class, count) in classes {
            let found = examples.iter().filter(|example| example.label == class).count();
            assert_eq!(found, count, "{file}: {class}");
        }
        assert_eq!(classes.iter().map(|(_, count)| count).sum::<usize>(), size, "{file}: all classes");
        // Some premises were wrongly decoded upstream and are kept unchanged: grep -c "â€".
        let wrong = examples.iter().filter(|example| example.input.first().contains("â€")).count();
        if let Some(expected) = [("mnli/dev_mismatched_partial.tsv", 1), ("mnli/train_subset.tsv", 7)]
            .iter()
            .find_map(|(name, count)| (*name == file).then_some(*count))
        {
            assert_eq!(wrong, expected, "{file}");
        }
    }
}

/// MRPC has rows with an odd number of quotation marks; read as quoting, they would swallow row ends.
#[test]
fn quoting_would_misread_mrpc_and_says_so() {
    let Some(shared) = shared("glue/MRPC/train.tsv") else { return };
    let format = toml::from_str(&format!("{MRPC}\nquoting = true")).unwrap();
    let error = labelled::read(&shared.join("glue/MRPC/train.tsv"), &format, &mut BadRows::default())
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("set `quoting = false`"), "{error}");
}
