//! The texts of segments, of the demos alone: their languages are made up and belong to this repository.
use corpus::choices::Choice;
use corpus::grammar::{
    Domain, InferenceSizes, SplitSizes, agreement_pairs, demo_splits, inference_splits, language_splits,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// What the file of a subject says of its data.
#[derive(Debug, Deserialize)]
struct Described {
    #[serde(default)]
    task: Option<String>,
    data: Data,
}

#[derive(Debug, Deserialize)]
struct Data {
    grammar: Option<Grammar>,
}

/// Seed and sizes of all demo grammars; those of other tasks are 0.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Grammar {
    seed: u64,
    train: usize,
    dev: usize,
    #[serde(default)]
    test: usize,
    #[serde(default)]
    shifted: usize,
    #[serde(default)]
    matched: usize,
    #[serde(default)]
    mismatched: usize,
    #[serde(default)]
    pairs: usize,
}

/// A split: what is hashed of it, and each segment as a reader should see it.
struct Split {
    hasher: Sha256,
    texts: Vec<String>,
}

impl Split {
    fn of<T>(segments: Vec<T>, add: impl Fn(&T, &mut Sha256) -> String) -> Self {
        let mut hasher = Sha256::new();
        let texts = segments.iter().map(|segment| add(segment, &mut hasher)).collect();
        Self { hasher, texts }
    }
}

/// Adds a part with its length before it.
fn add(hasher: &mut Sha256, part: &str) {
    hasher.update(part.len().to_le_bytes());
    hasher.update(part);
}

/// The texts of a split of a demo, by the file that describes it; none of other subjects, or if `sha256`, the checksum in the
/// signature, is that of other texts.
pub fn texts(description: &str, split: &str, sha256: &str) -> Option<Vec<String>> {
    let described: Described = toml::from_str(description).ok()?;
    let grammar = described.data.grammar?;
    let Split { hasher, texts } = match described.task.as_deref() {
        None | Some("translation") => translation(grammar, split)?,
        Some("classification") => inference(grammar, split)?,
        Some("language-modelling") => language(grammar, split)?,
        Some(_) => return None,
    };
    (format!("{:x}", hasher.finalize()) == sha256).then_some(texts)
}

fn translation(grammar: Grammar, split: &str) -> Option<Split> {
    let Grammar { seed, train, dev, test, shifted, .. } = grammar;
    let splits = demo_splits(SplitSizes { train, dev, test, shifted }, seed);
    let samples = match split {
        "dev" => splits.dev,
        "test" => splits.test,
        "shifted" => splits.shifted,
        _ => return None,
    };
    Some(Split::of(samples, |sample, hasher| {
        hasher.update(format!("{}\t{}\n", sample.source, sample.target));
        format!("{} \u{2192} {}", sample.source, sample.target)
    }))
}

fn inference(grammar: Grammar, split: &str) -> Option<Split> {
    let Grammar { seed, train, dev, matched, mismatched, .. } = grammar;
    let splits = inference_splits(InferenceSizes { train, dev, matched, mismatched }, seed);
    let examples = match split {
        "dev" => splits.dev,
        "matched" => splits.matched,
        "mismatched" => splits.mismatched,
        _ => return None,
    };
    Some(Split::of(examples, |example, hasher| {
        let parts = [Some(&example.label), Some(&example.text), example.pair.as_ref()];
        parts.into_iter().flatten().for_each(|part| add(hasher, part));
        let pair = example.pair.as_ref().map_or(String::new(), |pair| format!(" | {pair}"));
        format!("{}{pair} ({})", example.text, example.label)
    }))
}

fn language(grammar: Grammar, split: &str) -> Option<Split> {
    let Grammar { seed, train, dev, test, shifted, pairs, .. } = grammar;
    let splits = || language_splits(SplitSizes { train, dev, test, shifted }, seed);
    let documents = match split {
        "dev" => splits().dev,
        "test" => splits().test,
        "shifted" => splits().shifted,
        "agreement" => return Some(questions(agreement_pairs(Domain::Standard, pairs, seed))),
        "agreement-shifted" => return Some(questions(agreement_pairs(Domain::Shifted, pairs, seed))),
        _ => return None,
    };
    Some(Split::of(documents, |document, hasher| {
        add(hasher, &document.text);
        document.text.clone()
    }))
}

/// By group, as subjects have them.
fn questions(mut all: Vec<Choice>) -> Split {
    all.sort_by(|one, other| one.group.cmp(&other.group));
    Split::of(all, |Choice { context, choices, answer, group }, hasher| {
        add(hasher, &format!("{answer} of {}", choices.len()));
        add(hasher, &format!("{group:?}"));
        std::iter::once(context).chain(choices).for_each(|part| add(hasher, part));
        format!("{context}{}", choices.join(" | "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMO: &str = include_str!("../../../experiments/demo-translation.toml");

    /// The checksum is that in the signature of the committed `results/demo-translation/ablate-one.json`.
    #[test]
    fn the_texts_of_a_demo_are_those_that_were_measured() {
        let sha256 = "9b3f4168085f86e3cc597c98aacec642c242b00f3d347d5bd0f560dcb10e7320";
        assert_eq!(texts(DEMO, "test", sha256).unwrap().len(), 400);
        assert!(texts(DEMO, "shifted", sha256).is_none(), "another split has other texts");
        assert!(texts("task = \"classification\"\n[data]\nsplits = {}", "test", sha256).is_none());
    }
}
