//! Checks labels on the text alone, with a reader that knows the lexicon but not the edits.
use std::collections::HashMap;

use proptest::prelude::*;

use super::super::lexicon::{
    BEINGS, DEGREES, DETERMINERS, INNER_PREPOSITIONS, INTRANSITIVE, OPENINGS, OUTER_PREPOSITIONS, THINGS,
    TRANSITIVE,
};
use super::edits::shortened;
use super::*;

/// Maps every form of nouns and verbs to its dictionary form.
fn lemmas(verbs_only: bool) -> HashMap<&'static str, &'static str> {
    let verbs = TRANSITIVE.iter().chain(&INTRANSITIVE);
    let mut lemmas: HashMap<_, _> =
        verbs.flat_map(|verb| [verb.base, verb.third, verb.past].map(|form| (form, verb.base))).collect();
    if !verbs_only {
        let nouns = BEINGS.iter().chain(&THINGS);
        lemmas.extend(nouns.flat_map(|noun| [noun.singular, noun.plural].map(|form| (form, noun.singular))));
    }
    lemmas
}

/// What a superficial reader takes from a sentence.
#[derive(Debug)]
struct Gist {
    /// All words except function words, in order and in dictionary form.
    content: Vec<String>,
    /// The main verb of each clause, and whether it is negated.
    verbs: Vec<(String, bool)>,
    /// Nouns after "every" or "all".
    universal: Vec<String>,
}

impl Gist {
    fn new(text: &str) -> Self {
        let (verbs, lemmas) = (lemmas(true), lemmas(false));
        let words = plain_words(text);
        let mut gist = Self { content: Vec::new(), verbs: Vec::new(), universal: Vec::new() };
        let (mut in_relative, mut negated, mut every) = (false, false, false);
        for word in words.iter().map(String::as_str) {
            match word {
                "that" => in_relative = true,
                "not" => negated = true,
                "every" | "all" => every = true,
                _ if is_function_word(word) => {}
                _ => gist.content.push(lemmas.get(word).unwrap_or(&word).to_string()),
            }
            if let Some(verb) = verbs.get(word) {
                if !in_relative {
                    gist.verbs.push((verb.to_string(), negated));
                }
                (in_relative, negated) = (false, false);
            } else if every && let Some(noun) = lemmas.get(word) {
                gist.universal.push(noun.to_string());
                every = false;
            }
        }
        gist
    }

    fn judge(premise: &str, hypothesis: &str) -> &'static str {
        let [premise, hypothesis] = [premise, hypothesis].map(Self::new);
        let mut rest = premise.content.iter();
        let said = hypothesis.content.iter().all(|word| rest.any(|other| other == word));
        if !said {
            return "neutral";
        }
        if !premise.verbs.contains(&hypothesis.verbs[0]) {
            return "contradiction";
        }
        let generalises = hypothesis.universal.iter().any(|noun| !premise.universal.contains(noun));
        if generalises { "neutral" } else { "entailment" }
    }
}

/// Returns the words without the full stop; the first one in lower case unless it is a name.
fn plain_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.trim_end_matches('.').split(' ').map(str::to_owned).collect();
    let small = words[0].to_lowercase();
    if is_function_word(&small) || OPENINGS.iter().any(|word| word.source == small) || small == "every" {
        words[0] = small;
    }
    words
}

fn is_function_word(word: &str) -> bool {
    let prepositions = INNER_PREPOSITIONS.iter().chain(&OUTER_PREPOSITIONS).chain(&DEGREES);
    ["an", "and", "but", "do", "does", "did"].contains(&word)
        || DETERMINERS.iter().any(|determiner| determiner.source.contains(&word))
        || prepositions.into_iter().any(|entry| entry.source == word)
}

fn premise(example: &Example) -> &str {
    example.input.texts().next().unwrap()
}

fn hypothesis(example: &Example) -> &str {
    example.input.texts().nth(1).unwrap()
}

/// Returns the accuracy, in percent, of predicting the most frequent label among examples with the same feature.
fn majority_accuracy<F: Eq + std::hash::Hash>(examples: &[Example], feature: impl Fn(&Example) -> F) -> f64 {
    let mut counts: HashMap<F, HashMap<&str, usize>> = HashMap::new();
    for example in examples {
        *counts.entry(feature(example)).or_default().entry(&example.label).or_default() += 1;
    }
    let right: usize = counts.values().filter_map(|labels| labels.values().max()).sum();
    100.0 * right as f64 / examples.len() as f64
}

fn domains() -> impl Strategy<Value = Domain> {
    prop_oneof![Just(Domain::Standard), Just(Domain::Shifted)]
}

proptest! {
    #[test]
    fn labels_can_be_read_off_the_text(domain in domains(), seed: u64) {
        for example in Generator::new(domain, seed).take(60, &mut HashSet::new()) {
            let judged = Gist::judge(premise(&example), hypothesis(&example));
            prop_assert_eq!(judged, example.label, "{:?}", example.input);
        }
    }

    #[test]
    fn omissions_shorten_and_keep_verb_and_polarity(domain in domains(), seed: u64) {
        let mut generator = Generator::new(domain, seed);
        for clause in (0..20).flat_map(|_| generator.premise().clauses) {
            let text = written(&Sentence::Statement(clause.clone()));
            for shorter in shortened(&clause) {
                let shorter = written(&Sentence::Statement(shorter));
                prop_assert!(plain_words(&shorter).len() < plain_words(&text).len(), "{text} / {shorter}");
                prop_assert_eq!(Gist::new(&shorter).verbs, Gist::new(&text).verbs);
            }
        }
    }
}

#[test]
fn splits_share_no_premise_and_labels_take_turns() {
    let sizes = SplitSizes { train: 3_000, dev: 301, test: 902, shifted: 703 };
    let Splits { train, dev, test, shifted } = inference_splits(sizes, 1);
    let all = [train, dev, test, shifted];
    assert_eq!(all.each_ref().map(Vec::len), [3_000, 301, 902, 703]);
    for split in &all {
        assert!(split.iter().zip(INFERENCE_LABELS.iter().cycle()).all(|(own, label)| own.label == *label));
    }
    assert_eq!(all.iter().flatten().map(premise).collect::<HashSet<_>>().len(), 4_906);
}

/// Chance is 33.3%, with a standard error of 0.4 points for 12,000 pairs. Half of the hypotheses of each label contain "not"; slightly more
/// of the neutral ones from negated premises do. Additions make neutral hypotheses slightly longer.
#[test]
fn a_hypothesis_alone_hardly_predicts_its_label() {
    for domain in DOMAINS {
        let examples = Generator::new(domain, 1).take(12_000, &mut HashSet::new());
        let has_not = |example: &Example| hypothesis(example).contains(" not ");
        let length = |example: &Example| hypothesis(example).split(' ').count();
        let negation = majority_accuracy(&examples, has_not);
        let both = majority_accuracy(&examples, |example| (has_not(example), length(example)));
        assert!(negation < 36.0, "{domain:?}: \"not\" predicts {negation}%");
        assert!(both < 42.0, "{domain:?}: \"not\" and length predict {both}%");
    }
}
