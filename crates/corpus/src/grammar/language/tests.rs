use std::collections::HashMap;

use super::*;
use crate::grammar::lexicon::{
    BEINGS, DETERMINERS, INNER_PREPOSITIONS, INTRANSITIVE, NAMES, Noun, THINGS, TRANSITIVE, name,
};
use crate::grammar::tree::{Adposition, Nominal, Relative, VerbGroup};

const SIZES: SplitSizes = SplitSizes { train: 4_000, dev: 200, test: 300, shifted: 400 };

fn noun(singular: &str, number: Number) -> Nominal {
    let noun = BEINGS.iter().chain(&THINGS).find(|noun| noun.singular == singular).unwrap();
    Nominal::Noun { determiner: &DETERMINERS[0], adjectives: vec![], noun, number }
}

fn group_of(base: &str, negated: bool) -> VerbGroup {
    let verb = TRANSITIVE.iter().chain(&INTRANSITIVE).find(|verb| verb.base == base).unwrap();
    VerbGroup { verb, tense: Tense::Present, negated, adverb: None }
}

fn statement(subject: NounPhrase, verb: VerbGroup) -> Clause {
    Clause { opening: None, subject, verb, object: None, place: None }
}

/// The two sentences and the group of a statement.
fn taken_apart(clause: Clause) -> [String; 3] {
    let place = group(&clause.subject).unwrap();
    let Choice { choices, group, answer, context } = pair(clause, place).unwrap();
    assert_eq!((answer, context.as_str()), (0, ""));
    let [right, wrong] = choices.try_into().unwrap();
    [right, wrong, group.unwrap()]
}

#[test]
fn pairs_by_hand() {
    let plain = NounPhrase::Plain(noun("dog", Number::Singular));
    assert_eq!(
        taken_apart(statement(plain, group_of("sleep", false))),
        ["The dog sleeps.", "The dog sleep.", "simple"]
    );

    let hats = Adposition { word: &INNER_PREPOSITIONS[0], nominal: noun("hat", Number::Plural) };
    let with_hats = NounPhrase::WithAdposition(noun("man", Number::Singular), hats.clone());
    assert_eq!(
        taken_apart(statement(with_hats, group_of("wait", false))),
        ["The man with the hats waits.", "The man with the hats wait.", "prepositional-phrase, attractor"]
    );
    let same = NounPhrase::WithAdposition(noun("man", Number::Plural), hats);
    assert_eq!(taken_apart(statement(same, group_of("wait", false)))[2], "prepositional-phrase");

    let liked =
        Relative { verb: group_of("like", false), partner: Partner::Subject(Nominal::Name("Mali".into())) };
    let dogs = NounPhrase::WithRelative(noun("dog", Number::Plural), liked);
    assert_eq!(
        taken_apart(statement(dogs, group_of("sleep", true))),
        [
            "The dogs that Mali likes do not sleep.",
            "The dogs that Mali likes does not sleep.",
            "relative-clause, attractor"
        ]
    );
    let alone = Relative { verb: group_of("run", false), partner: Partner::Object(None) };
    let wolf = NounPhrase::WithRelative(noun("wolf", Number::Singular), alone);
    assert_eq!(
        taken_apart(statement(wolf, group_of("sing", false))),
        ["The wolf that runs sings.", "The wolf that runs sing.", "relative-clause"]
    );
}

#[test]
fn two_nouns_and_past_verbs_make_no_pair() {
    let [dog, cat] = ["dog", "cat"].map(|name| noun(name, Number::Singular));
    assert_eq!(group(&NounPhrase::Pair(dog.clone(), cat)), None);
    let past = VerbGroup { tense: Tense::Past, ..group_of("sleep", false) };
    assert_eq!(pair(statement(NounPhrase::Plain(dog), past), 0), None);
}

/// The number of every noun by its form; a name is singular.
fn numbers() -> HashMap<String, Number> {
    let forms = |noun: &'static Noun| {
        [(noun.singular.to_owned(), Number::Singular), (noun.plural.to_owned(), Number::Plural)]
    };
    let names = (0..NAMES).map(|rank| (name(rank), Number::Singular));
    BEINGS.iter().chain(&THINGS).flat_map(forms).chain(names).collect()
}

/// The number that a form shows.
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
            let between = right[..place].iter().filter_map(|word| numbers.get(*word)).skip(1);
            let attracted = between.clone().any(|number| Some(*number) != subject);
            let group = pair.group.as_deref().unwrap();
            assert_eq!(group.ends_with(", attractor"), attracted, "{group}: {:?}", pair.choices);
            assert_eq!(
                group == "simple",
                between.count() == 0 && !right[..place].contains(&"that"),
                "{group}"
            );
        }
    }
}

#[test]
fn groups_take_turns_and_fewer_pairs_begin_more() {
    for domain in [Domain::Standard, Domain::Shifted] {
        let pairs = agreement_pairs(domain, 52, 3);
        assert_eq!(pairs.len(), 52);
        for (place, pair) in pairs.iter().enumerate() {
            assert_eq!(pair.group.as_deref(), Some(AGREEMENT_GROUPS[place % 5]));
        }
        assert_eq!(agreement_pairs(domain, 13, 3), pairs[..13]);
        assert_ne!(agreement_pairs(domain, 52, 4), pairs);
        let distinct: HashSet<&String> = pairs.iter().flat_map(|pair| &pair.choices).collect();
        assert_eq!(distinct.len(), 104);
    }
    assert!(agreement_pairs(Domain::Standard, 0, 3).is_empty());
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
