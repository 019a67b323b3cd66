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

#[test]
fn statistics_of_every_segment_and_scores_of_corpora_equal_those_of_sacrebleu() {
    let fixture = fixture();
    let pairs = pairs(&fixture);
    assert_eq!(pairs.len(), 500);
    let ranges = fixture["ranges"].as_array().unwrap();
    for tokenizer in BleuTokenizer::ALL {
        let (name, bleu) = (tokenizer.name(), Bleu::of(tokenizer));
        let (expected, mut counted) = (fixture[name]["statistics"].as_array().unwrap(), Vec::new());
        assert_eq!(expected.len(), pairs.len());
        for (row, [hypothesis, reference]) in expected.iter().zip(&pairs) {
            let found = bleu.segment(hypothesis, reference);
            assert_eq!(found, statistics(row), "{name}: {hypothesis:?} against {reference:?}");
            counted.push(found);
        }
        let scores = fixture[name]["scores"].as_array().unwrap();
        assert_eq!((scores.len(), ranges.len()), (25, 25));
        for (expected, range) in scores.iter().zip(ranges) {
            let place = |end: usize| count(&range[end]) as usize;
            let found = Segments::Bleu(counted[place(0)..place(1)].to_vec()).score().unwrap();
            let gap = (found - expected.as_f64().unwrap()).abs();
            assert!(gap < 1e-9, "{name}, segments {range}: {found} instead of {expected}: {gap:e}");
        }
    }
}
