use std::collections::HashMap;

use super::*;
use crate::grammar::lexicon::{BEINGS, INTRANSITIVE, NAMES, Noun, THINGS, TRANSITIVE, name};

const SIZES: SplitSizes = SplitSizes { train: 4_000, dev: 200, test: 300, shifted: 400 };

/// Maps every noun form to its number; names are singular.
fn numbers() -> HashMap<String, Number> {
    let forms = |noun: &'static Noun| {
        [(noun.singular.to_owned(), Number::Singular), (noun.plural.to_owned(), Number::Plural)]
    };
    let names = (0..NAMES).map(|rank| (name(rank), Number::Singular));
    BEINGS.iter().chain(&THINGS).flat_map(forms).chain(names).collect()
}

/// Returns the number that a verb form shows.
fn shown(form: &str) -> Option<Number> {
    let verbs = || TRANSITIVE.iter().chain(&INTRANSITIVE);
    if form == "does" || verbs().any(|verb| verb.third == form) {
        return Some(Number::Singular);
    }
    (form == "do" || verbs().any(|verb| verb.base == form)).then_some(Number::Plural)
}

/// The first noun of a statement is the head of its subject.
#[test]
fn one_word_differs_and_it_agrees_with_the_first_noun_in_the_right_sentence_only() {
    let numbers = numbers();
    for domain in [Domain::Standard, Domain::Shifted] {
        for pair in agreement_pairs(domain, 250, 1) {
            let words = |place: usize| -> Vec<&str> {
                pair.choices[place].trim_end_matches('.').split(' ').collect()
            };
            let (right, wrong) = (words(0), words(1));
            let differing: Vec<usize> = (0..right.len()).filter(|&word| right[word] != wrong[word]).collect();
            let [place] = differing[..] else { panic!("{:?}", pair.choices) };
            assert_eq!(right.len(), wrong.len());
            let subject = right.iter().find_map(|word| numbers.get(*word)).copied();
            assert!(subject.is_some(), "{:?}", pair.choices);
            assert_eq!(shown(right[place]), subject, "{:?}", pair.choices);
            assert!(shown(wrong[place]).is_some_and(|number| Some(number) != subject), "{:?}", pair.choices);
            let mut between = right[..place].iter().filter_map(|word| numbers.get(*word)).skip(1);
            let attracted = between.any(|number| Some(*number) != subject);
            let group = pair.group.as_deref().unwrap();
            assert_eq!(group.ends_with(", attractor"), attracted, "{group}: {:?}", pair.choices);
        }
    }
}

#[test]
fn fewer_pairs_are_the_first_of_more_and_no_sentence_occurs_twice() {
    for domain in [Domain::Standard, Domain::Shifted] {
        let pairs = agreement_pairs(domain, 52, 3);
        assert_eq!(agreement_pairs(domain, 13, 3), pairs[..13]);
        assert_ne!(agreement_pairs(domain, 52, 4), pairs);
        assert_eq!(pairs.iter().flat_map(|pair| &pair.choices).collect::<HashSet<_>>().len(), 104);
    }
}

#[test]
fn splits_share_no_sentence_with_each_other_or_with_the_pairs() {
    let Splits { train, dev, test, shifted } = language_splits(SIZES, 1);
    let fewer = language_splits(SplitSizes { train: 5, ..SIZES }, 1);
    assert_eq!((&fewer.dev, &fewer.test, &fewer.shifted), (&dev, &test, &shifted));
    assert_eq!(fewer.train, train[..5]);
    assert_eq!([train.len(), dev.len(), test.len(), shifted.len()], [4_000, 200, 300, 400]);
    let all = [train, dev, test, shifted].concat();
    let sentences: HashSet<&str> = all.iter().map(|document| document.text.as_str()).collect();
    assert_eq!(sentences.len(), all.len());
    for domain in [Domain::Standard, Domain::Shifted] {
        let pairs = agreement_pairs(domain, 500, 1);
        let shared =
            pairs.iter().flat_map(|pair| &pair.choices).find(|text| sentences.contains(text.as_str()));
        assert_eq!(shared, None);
    }
}
