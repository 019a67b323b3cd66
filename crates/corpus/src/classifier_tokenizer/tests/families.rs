//! Folders of each family. `make.py`, next to the fixtures, writes the expected results with transformers.
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/classifiers");
const PIECES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sentencepiece");

#[derive(serde::Deserialize)]
struct Expected {
    texts: Vec<String>,
    cases: Vec<Case>,
    results: Vec<Results>,
}

/// Indices of a text and its pair, and the maximum length.
#[derive(serde::Deserialize)]
struct Case(usize, Option<usize>, usize);

#[derive(serde::Deserialize)]
struct Results {
    folders: Vec<String>,
    size: usize,
    pad: u32,
    ids: Vec<Vec<u32>>,
}

fn expected() -> Expected {
    serde_json::from_slice(&fs::read(Path::new(FIXTURES).join("expected.json")).unwrap()).unwrap()
}

/// Returns the normaliser's table from [`PIECES`]. Its length follows the name and a tag, in three groups of seven bits.
fn charsmap() -> Vec<u8> {
    const NAME: &[u8] = b"nmt_nfkc\x12";
    let mut bytes = Vec::new();
    let file = fs::File::open(Path::new(PIECES).join("nmt_nfkc.gz")).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    let start = bytes.windows(NAME.len()).position(|window| window == NAME).unwrap() + NAME.len();
    let length = (0..3).map(|place| usize::from(bytes[start + place] & 0x7f) << (7 * place)).sum::<usize>();
    bytes[start + 3..][..length].to_vec()
}

fn encoded(charsmap: &[u8]) -> Value {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(charsmap).into()
}

/// Inserts the normaliser's table, which the fixtures leave out, into a `tokenizer.json`.
fn with_charsmap(json: &str, charsmap: &[u8]) -> String {
    let mut json: Value = serde_json::from_str(json).unwrap();
    let normalizer = &mut json["normalizer"];
    let table = if normalizer["type"] == "Sequence" { &mut normalizer["normalizers"][0] } else { normalizer };
    if table["type"] == "Precompiled" {
        table["precompiled_charsmap"] = encoded(charsmap);
    }
    json.to_string()
}

/// Copies a fixture, replacing or adding the files in `changed`.
pub(super) fn copied(name: &str, changed: &[(&str, &str)]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in fs::read_dir(Path::new(FIXTURES).join(name)).unwrap() {
        let file = file.unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        let is_json = file.file_name() == "tokenizer.json";
        let text = if is_json { with_charsmap(&text, &charsmap()) } else { text };
        fs::write(copy.path().join(file.file_name()), text).unwrap();
    }
    for (name, text) in changed {
        fs::write(copy.path().join(name), text).unwrap();
    }
    copy
}

#[test]
fn ids_of_all_families_are_those_of_transformers() {
    let Expected { texts, cases, results } = expected();
    assert!(texts.len() > 200 && results.iter().flat_map(|result| &result.folders).count() == 12);
    for result in results {
        for name in &result.folders {
            let folder = copied(name, &[]);
            let lengths: BTreeSet<usize> = cases.iter().map(|case| case.2).collect();
            let load = |length| (length, ClassifierTokenizer::load(folder.path(), length).unwrap());
            let tokenizers: BTreeMap<usize, ClassifierTokenizer> = lengths.into_iter().map(load).collect();
            let tokenizer = &tokenizers[&128];
            assert_eq!((tokenizer.pad(), tokenizer.vocabulary_size()), (result.pad, result.size), "{name}");
            assert_eq!(cases.len(), result.ids.len());
            for (Case(text, pair, max_length), ids) in cases.iter().zip(&result.ids) {
                let (text, pair) = (&texts[*text], pair.map(|pair| texts[pair].as_str()));
                assert_eq!(
                    tokenizers[max_length].encode(text, pair).unwrap().ids,
                    *ids,
                    "{name}: {text:?} {pair:?}"
                );
            }
        }
    }
}

#[test]
fn a_saved_tokenizer_of_any_family_encodes_the_same() {
    let Expected { texts, results, .. } = expected();
    for name in results.iter().flat_map(|result| &result.folders) {
        let folder = copied(name, &[]);
        let tokenizer = ClassifierTokenizer::load(folder.path(), 24).unwrap();
        tokenizer.save(&folder.path().join("tokenizer.json")).unwrap();
        let saved = ClassifierTokenizer::load(folder.path(), 24).unwrap();
        for text in &texts {
            assert_eq!(
                saved.encode(text, Some("a b")).unwrap(),
                tokenizer.encode(text, Some("a b")).unwrap(),
                "{name}: {text:?}"
            );
        }
    }
}

#[test]
fn only_bert_and_distilbert_have_two_segments() {
    for (name, segments) in [
        ("roberta-lists", [0; 6]),
        ("roberta-json", [0; 6]),
        ("xlm-roberta-hub", [0; 6]),
        ("distilbert-list", [0, 0, 0, 1, 1, 1]),
    ] {
        let tokenizer = ClassifierTokenizer::load(copied(name, &[]).path(), 6).unwrap();
        assert_eq!(tokenizer.encode("the door", Some("the door")).unwrap().segments, segments, "{name}");
    }
}

/// Ids and positions of first tokens from transformers 5.24 with `is_split_into_words` and, for RoBERTa, `add_prefix_space`. With RoBERTa,
/// a word's first token may be the space before it.
#[test]
fn first_pieces_of_words_are_those_of_transformers() {
    let words = ["The", "doors", "opened,", "Don't", "naïve", "…", "end"].map(str::to_owned);
    let cases = [
        (
            "roberta-json",
            vec![
                0, 225, 382, 311, 87, 225, 83, 84, 73, 82, 349, 16, 225, 40, 314, 276, 272, 69, 132, 112,
                289, 225, 163, 2,
            ],
            [Some(1), Some(3), Some(5), Some(12), Some(16), Some(21), None],
        ),
        (
            "distilbert-list",
            vec![2, 65, 95, 50, 30, 60, 180, 131, 7, 71, 40, 6, 34, 192, 1, 21, 40, 41, 3],
            [Some(1), Some(2), Some(4), Some(9), Some(13), Some(14), Some(15)],
        ),
    ];
    for (name, ids, first) in cases {
        let tokenizer = ClassifierTokenizer::load(copied(name, &[]).path(), 24).unwrap();
        let (encoded, found) = tokenizer.encode_words(&words).unwrap();
        assert_eq!((encoded.ids, found), (ids, first.to_vec()), "{name}");
    }
}
