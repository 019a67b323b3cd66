//! Rules that hold for every sentence, checked on text and arcs with the lexicon alone.
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use proptest::prelude::*;

use super::lexicon::{BEINGS, INTRANSITIVE, NAMES, Noun, Number, THINGS, TRANSITIVE, Tense, Verb, name};
use super::*;

static NAME_SET: LazyLock<HashSet<String>> = LazyLock::new(|| (0..NAMES).map(name).collect());

const NUMBERS: [Number; 2] = [Number::Singular, Number::Plural];

fn nouns() -> impl Iterator<Item = &'static Noun> {
    BEINGS.iter().chain(&THINGS)
}

fn verbs() -> impl Iterator<Item = &'static Verb> {
    TRANSITIVE.iter().chain(&INTRANSITIVE)
}

/// A parsed source sentence.
struct Parsed {
    words: Vec<String>,
    arcs: Vec<Arc>,
}

impl Parsed {
    fn new(sample: &Sample) -> Self {
        let mut words = plain_words(&sample.source);
        if !NAME_SET.contains(&words[0]) {
            words[0] = words[0].to_lowercase();
        }
        Self { words, arcs: sample.arcs.clone() }
    }

    fn arcs(&self, relation: Relation) -> impl Iterator<Item = &Arc> {
        self.arcs.iter().filter(move |arc| arc.relation == relation)
    }

    fn dependent(&self, head: usize, relation: Relation) -> Option<&str> {
        self.arcs(relation).find(|arc| arc.head == head).map(|arc| self.words[arc.dependent].as_str())
    }

    /// Returns the number of a subject; "that" has the number of the noun before its clause.
    fn number(&self, subject: usize, verb: usize) -> Number {
        if self.words[subject] == "that" {
            let clause = self.arcs(Relation::RelativeClause).find(|arc| arc.dependent == verb).unwrap();
            return self.number(clause.head, verb);
        }
        if self.dependent(subject, Relation::Conjunct).is_some() || self.noun(subject).1 == Number::Plural {
            return Number::Plural;
        }
        Number::Singular
    }

    /// Returns the noun at `index` and its number; names are singular.
    fn noun(&self, index: usize) -> (Option<&'static Noun>, Number) {
        let word = &self.words[index];
        if NAME_SET.contains(word) {
            return (None, Number::Singular);
        }
        let forms = |noun: &'static Noun| NUMBERS.map(|number| (noun, number));
        let found = nouns().flat_map(forms).find(|(noun, number)| noun.source(*number) == word);
        let (noun, number) = found.unwrap_or_else(|| panic!("`{word}` is no noun"));
        (Some(noun), number)
    }

    /// Returns the verb at `index`, its tense, and the number that it or its auxiliary shows.
    fn verb(&self, index: usize) -> (&'static Verb, Tense, Option<Number>) {
        let word = &self.words[index];
        let is_form = |verb: &&Verb| [verb.base, verb.third, verb.past].contains(&word.as_str());
        let verb = verbs().find(is_form).unwrap_or_else(|| panic!("`{word}` is no verb"));
        let (tense, number) = match self.dependent(index, Relation::Auxiliary) {
            Some("did") => (Tense::Past, None),
            Some("does") => (Tense::Present, Some(Number::Singular)),
            Some("do") => (Tense::Present, Some(Number::Plural)),
            Some(other) => panic!("`{other}` is no auxiliary"),
            None if word == verb.past => (Tense::Past, None),
            None if word == verb.third => (Tense::Present, Some(Number::Singular)),
            None => (Tense::Present, Some(Number::Plural)),
        };
        (verb, tense, number)
    }
}

fn plain_words(sentence: &str) -> Vec<String> {
    sentence.trim_end_matches(['.', '?']).split(' ').map(str::to_owned).collect()
}

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words
}

fn verb_forms() -> HashSet<String> {
    let forms = |verb: &'static Verb| {
        NUMBERS
            .into_iter()
            .flat_map(|number| [Tense::Present, Tense::Past].map(|tense| verb.target(tense, number)))
    };
    verbs().flat_map(forms).collect()
}

fn forms_in(target: &str, forms: &HashSet<String>) -> Vec<String> {
    sorted(plain_words(target).into_iter().filter(|word| forms.contains(word)).collect())
}

/// Returns sentences from a domain before noise.
fn clean(domain: Domain, seed: u64) -> impl Iterator<Item = Sample> {
    let Generator { sampler, mut rng, .. } = Generator::new(domain, seed);
    std::iter::repeat_with(move || sample(&sampler.sentence(&mut rng)))
}

fn domains() -> impl Strategy<Value = Domain> {
    prop_oneof![Just(Domain::Standard), Just(Domain::Shifted)]
}

proptest! {
    #[test]
    fn verbs_agree_with_their_subjects_in_both_languages(domain in domains(), seed: u64) {
        let forms = verb_forms();
        for sample in clean(domain, seed).take(20) {
            let parsed = Parsed::new(&sample);
            let mut expected = Vec::new();
            for arc in parsed.arcs(Relation::Subject) {
                let number = parsed.number(arc.dependent, arc.head);
                let (verb, tense, shown) = parsed.verb(arc.head);
                prop_assert!(shown.is_none_or(|shown| shown == number), "{}", sample.source);
                expected.push(verb.target(tense, number));
            }
            prop_assert_eq!(forms_in(&sample.target, &forms), sorted(expected), "{}", sample.source);
        }
    }

    #[test]
    fn arcs_form_a_tree_with_one_root(domain in domains(), seed: u64) {
        for sample in generate(domain, 20, seed) {
            let words = sample.source.split(' ').count();
            let heads: HashMap<usize, usize> = sample.arcs.iter().map(|arc| (arc.dependent, arc.head)).collect();
            prop_assert_eq!(heads.len(), words - 1, "one head each, but for the root");
            prop_assert_eq!(sample.arcs.len(), words - 1);
            prop_assert!(sample.arcs.iter().all(|arc| arc.head < words && arc.dependent < words));
            for start in 0..words {
                let path = std::iter::successors(Some(start), |index| heads.get(index).copied());
                prop_assert!(path.take(words + 1).count() <= words, "a cycle in {}", sample.source);
            }
        }
    }

    #[test]
    fn targets_have_the_names_of_their_sources_and_end_with_a_verb(domain in domains(), seed: u64) {
        let forms = verb_forms();
        for sample in generate(domain, 20, seed) {
            // In the shifted domain, noise can make the first letter small, also in a name.
            let names = |text: &str| forms_in(&capitalised(text), &NAME_SET);
            prop_assert_eq!(names(&sample.source), names(&sample.target));
            prop_assert!(forms.contains(plain_words(&sample.target).last().unwrap()), "{}", sample.target);
        }
    }
}

fn capitalised(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

/// Checkpoints of the demo and the committed reference results depend on every byte.
#[test]
fn the_language_pair_stays_as_it_was_published() {
    use sha2::{Digest, Sha256};
    let samples = DOMAINS.into_iter().flat_map(|domain| generate(domain, 2_000, 1));
    let text: String = samples.map(|sample| format!("{sample:?}\n")).collect();
    let digest = format!("{:x}", Sha256::digest(text));
    assert_eq!(digest, "76047755714e30c1d1ed020d78e2ba8a7b475fc7b5deb1de554c7420af540bd6");
}

#[test]
fn splits_share_no_sentence() {
    let sizes = SplitSizes { train: 3_000, dev: 200, test: 300, shifted: 400 };
    let Splits { train, dev, test, shifted } = demo_splits(sizes, 1);
    let all = [train, dev, test, shifted];
    assert_eq!(all.each_ref().map(Vec::len), [3_000, 200, 300, 400]);
    assert_eq!(all.iter().flatten().map(|sample| &sample.source).collect::<HashSet<_>>().len(), 3_900);
}
