//! Classification data sets as they really are. Their licences keep them out of the project: the
//! tests need a copy beside it and are skipped without one.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::path::{Path, PathBuf};

use corpus::fetch::{Catalogue, Origin, fetch};
use corpus::labelled::{Example, read};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sources.toml");

/// The folder that holds `glue/`, `mnli/` and `xnli/`, if it is there.
fn shared() -> Option<PathBuf> {
    let shared = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).to_owned();
    if shared.join("glue/SST-2/train.tsv").exists() {
        return Some(shared);
    }
    test_support::skipped(&format!("no classification data in `{}`", shared.display()));
    None
}

const SST2: &str = "kind = 'tsv'\ntext = 'sentence'\nlabel = 'label'";
const COLA: &str = "kind = 'tsv'\nheader = false\ntext = 4\nlabel = 2";
const MRPC: &str = "kind = 'tsv'\ntext = '#1 String'\npair = '#2 String'\nlabel = 'Quality'";
const MNLI: &str = "kind = 'tsv'\ntext = 'premise'\npair = 'hypothesis'\nlabel = 'label'";
const MNLI_JSONL: &str = "kind = 'jsonl'\ntext = 'premise'\npair = 'hypothesis'\nlabel = 'label'";
const XNLI: &str = "kind = 'tsv'\ntext = 'sentence1_en'\npair = 'sentence2_en'\nlabel = 'label'";

/// Names of classes, each with its number of examples.
type Classes = &'static [(&'static str, usize)];

/// File, format, examples, and the count of each class in the order of its name.
///
/// Counts: the README beside the files; of classes: `cut -f<n> <file> | sort | uniq -c`, for JSON
/// lines `grep -c '"label": "<class>"'`.
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

fn examples(shared: &Path, file: &str) -> Vec<Example> {
    let (_, format, ..) = FILES.iter().find(|(name, ..)| *name == file).unwrap();
    read(&shared.join(file), &toml::from_str(format).unwrap()).unwrap()
}

#[test]
fn every_file_has_its_size_and_its_classes() {
    let Some(shared) = shared() else { return };
    for (file, _, size, classes) in FILES {
        let examples = examples(&shared, file);
        assert_eq!(examples.len(), size, "{file}");
        for &(class, count) in classes {
            let found = examples.iter().filter(|example| example.label == class).count();
            assert_eq!(found, count, "{file}: {class}");
        }
        assert_eq!(classes.iter().map(|(_, count)| count).sum::<usize>(), size, "{file}: all classes");
    }
}

#[test]
fn first_examples_are_those_of_the_file() {
    let Some(shared) = shared() else { return };
    let first = |file| examples(&shared, file).swap_remove(0);
    let single = |text: &str, label: &str| Example { text: text.into(), pair: None, label: label.into() };
    let pair =
        |text: &str, other: &str, label: &str| Example { pair: Some(other.into()), ..single(text, label) };
    assert_eq!(first("glue/SST-2/train.tsv"), single("hide new secretions from the parental units ", "0"));
    let text = "The sailors rode the breeze clear of the rocks.";
    assert_eq!(first("glue/CoLA/dev.tsv"), single(text, "1"));
    let expected = pair(
        "He said the foodservice pie business doesn 't fit the company 's long-term growth strategy .",
        "\" The foodservice pie business does not fit our long-term growth strategy .",
        "1",
    );
    assert_eq!(first("glue/MRPC/dev.tsv"), expected);
    let expected =
        pair("The new rights are nice enough", "Everyone really likes the newest benefits ", "neutral");
    assert_eq!(first("mnli/dev_matched.jsonl"), expected);
    let expected = pair(
        "The default procedures provide for the sale of all allowances at a single, clearing price",
        "The default makes sure there isn't more than one sale",
        "entailment",
    );
    assert_eq!(first("mnli/train_subset.tsv"), expected);
    let expected = pair(
        "Radar reconstructions performed after 9/11 reveal that FAA radar equipment tracked the flight from \
         the moment its transponder was turned off at 8:56.",
        "The flight was tracked by the radar before the tragedy.",
        "entailment",
    );
    assert_eq!(first("mnli/dev_mismatched_partial.tsv"), expected);
    let expected = pair("And he said, Mama, I'm home.", "He didn't say a word.", "contradiction");
    assert_eq!(examples(&shared, "xnli/xnli.en.dev.tsv")[1], expected);
}

/// MRPC has rows with an odd number of quotation marks: as quoting they would swallow row ends.
#[test]
fn quoting_would_misread_mrpc_and_says_so() {
    let Some(shared) = shared() else { return };
    let format = toml::from_str(&format!("{MRPC}\nquoting = true")).unwrap();
    let error = read(&shared.join("glue/MRPC/train.tsv"), &format).unwrap_err().to_string();
    assert!(error.ends_with("set `quoting = false`"), "{error}");
}

/// Some premises were decoded wrongly before they came here; they are valid UTF-8 and kept as they are.
#[test]
fn wrongly_decoded_rows_are_kept_as_they_are() {
    let Some(shared) = shared() else { return };
    let count =
        |file: &str| examples(&shared, file).iter().filter(|example| example.text.contains("â€")).count();
    // cut -f1 <file> | grep -c "â€"
    assert_eq!(count("mnli/dev_mismatched_partial.tsv"), 1);
    assert_eq!(count("mnli/train_subset.tsv"), 7);
}

#[test]
fn every_listed_file_is_fetched_from_a_mirror_to_its_folder() {
    let Some(shared) = shared() else { return };
    let catalogue = Catalogue::read(Path::new(SOURCES)).unwrap();
    let data = tempfile::tempdir().unwrap();
    let mirror = Origin::mirror(shared.to_str().unwrap());
    let sources =
        [("glue-sst2", 2), ("glue-cola", 2), ("glue-mrpc", 2), ("mnli", 3), ("ntrex", 3), ("xnli", 2)];
    for (name, files) in sources {
        let source = catalogue.get(name).unwrap();
        for expected in [files, 0] {
            let fetched = fetch(name, source, &mirror, data.path(), &mut |_, _, _| {}).unwrap();
            assert_eq!(fetched, expected, "{name}");
        }
    }
    assert!(data.path().join("glue/SST-2/dev.tsv").exists());
}
