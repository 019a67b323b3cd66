//! Counts of sacreBLEU, the Python package, on 500 unusual segments: `fixtures/make_sacrebleu.py`.
#![expect(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in their helpers")]

use serde_json::Value;
use stats::Segments;
use stats::bleu::{Bleu, BleuStatistics, BleuTokenizer};

fn fixture() -> Value {
    serde_json::from_str(include_str!("fixtures/sacrebleu.json")).unwrap()
}

fn pairs(fixture: &Value) -> Vec<[String; 2]> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let pairs = fixture["pairs"].as_array().unwrap().iter();
    pairs.map(|pair| [text(&pair[0]), text(&pair[1])]).collect()
}

fn count(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

/// Reads a list in sacreBLEU's order: both lengths, right n-grams, all n-grams.
fn statistics(row: &Value) -> BleuStatistics {
    BleuStatistics {
        hypothesis_length: count(&row[0]),
        reference_length: count(&row[1]),
        correct: std::array::from_fn(|n| count(&row[2 + n])),
        total: std::array::from_fn(|n| count(&row[6 + n])),
    }
}

fn counted(bleu: &Bleu, pairs: &[[String; 2]]) -> Vec<BleuStatistics> {
    pairs.iter().map(|[hypothesis, reference]| bleu.segment(hypothesis, reference)).collect()
}

/// Returns the tokenizers by their sacreBLEU names.
fn tokenizers() -> [(&'static str, Bleu); 5] {
    BleuTokenizer::ALL.map(|tokenizer| (tokenizer.name(), Bleu::of(tokenizer)))
}

#[test]
fn statistics_of_every_segment_equal_those_of_sacrebleu() {
    let fixture = fixture();
    let pairs = pairs(&fixture);
    assert_eq!(pairs.len(), 500);
    for (name, bleu) in tokenizers() {
        let expected = fixture[name]["statistics"].as_array().unwrap();
        assert_eq!(expected.len(), pairs.len());
        for ((found, row), pair) in counted(&bleu, &pairs).into_iter().zip(expected).zip(&pairs) {
            let [hypothesis, reference] = pair;
            assert_eq!(found, statistics(row), "{name}: {hypothesis:?} against {reference:?}");
        }
    }
}

#[test]
fn scores_of_corpora_equal_those_of_sacrebleu() {
    let fixture = fixture();
    let pairs = pairs(&fixture);
    for (name, bleu) in tokenizers() {
        let counted = counted(&bleu, &pairs);
        let scores = fixture[name]["scores"].as_array().unwrap();
        let ranges = fixture["ranges"].as_array().unwrap();
        assert_eq!((scores.len(), ranges.len()), (25, 25));
        for (expected, range) in scores.iter().zip(ranges) {
            let place = |end: usize| count(&range[end]) as usize;
            let found = Segments::Bleu(counted[place(0)..place(1)].to_vec()).score().unwrap();
            let gap = (found - expected.as_f64().unwrap()).abs();
            assert!(gap < 1e-9, "{name}, segments {range}: {found} instead of {expected}: {gap:e}");
        }
    }
}
