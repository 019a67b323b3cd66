//! The sentence of a tree in the artificial target language.
//!
//! - Order: question particle, opening adverb, subject, negation, adverb, place, object, verb.
//! - A noun follows its determiner and precedes its adjectives (the last one first, each before its degree) and other modifiers;
//!   adpositions follow their noun.
//! - Verbs agree with their subject in number, adjectives with their noun in class and number.
//! - Names are copied.
use super::lexicon::{Number, inflect_adjective};
use super::tree::{Adposition, Clause, Nominal, NounPhrase, Partner, Relative, Sentence, VerbGroup};

const QUESTION: &str = "che";
const NEGATION: &str = "nol";
const AND: &str = "ib";
const BUT: &str = "emu";
/// Opens a relative clause in which the modified noun is the subject.
const WHO: &str = "yek";
/// Opens a relative clause in which the modified noun is the object.
const WHOM: &str = "yun";

type Words = Vec<String>;

/// Returns the words of `sentence` in target order, without capital letters or punctuation.
pub(super) fn read(sentence: &Sentence) -> Words {
    let mut words = Words::new();
    match sentence {
        Sentence::Question(only) => {
            words.push(QUESTION.into());
            clause(only, &mut words);
        }
        Sentence::Statement(only) => clause(only, &mut words),
        Sentence::Contrast(first, second) => {
            clause(first, &mut words);
            words.push(BUT.into());
            clause(second, &mut words);
        }
    }
    words
}

fn clause(clause: &Clause, words: &mut Words) {
    words.extend(clause.opening.map(|word| word.target.to_owned()));
    noun_phrase(&clause.subject, words);
    before_object(&clause.verb, words);
    if let Some(place) = &clause.place {
        adposition(place, words);
    }
    if let Some(object) = &clause.object {
        noun_phrase(object, words);
    }
    verb(&clause.verb, clause.subject.number(), words);
}

fn before_object(group: &VerbGroup, words: &mut Words) {
    words.extend(group.negated.then(|| NEGATION.to_owned()));
    words.extend(group.adverb.map(|word| word.target.to_owned()));
}

fn verb(group: &VerbGroup, number: Number, words: &mut Words) {
    words.push(group.verb.target(group.tense, number));
}

fn noun_phrase(phrase: &NounPhrase, words: &mut Words) {
    match phrase {
        NounPhrase::Plain(only) => nominal(only, words),
        NounPhrase::Pair(first, second) => {
            nominal(first, words);
            words.push(AND.into());
            nominal(second, words);
        }
        NounPhrase::WithAdposition(head, modifier) => {
            nominal(head, words);
            adposition(modifier, words);
        }
        NounPhrase::WithRelative(head, modifier) => {
            nominal(head, words);
            relative(modifier, head.number(), words);
        }
    }
}

fn relative(relative: &Relative, head: Number, words: &mut Words) {
    match &relative.partner {
        Partner::Object(object) => {
            words.push(WHO.into());
            before_object(&relative.verb, words);
            object.iter().for_each(|object| nominal(object, words));
        }
        Partner::Subject(subject) => {
            words.push(WHOM.into());
            nominal(subject, words);
            before_object(&relative.verb, words);
        }
    }
    verb(&relative.verb, relative.number(head), words);
}

fn adposition(adposition: &Adposition, words: &mut Words) {
    nominal(&adposition.nominal, words);
    words.push(adposition.word.target.to_owned());
}

fn nominal(nominal: &Nominal, words: &mut Words) {
    match nominal {
        Nominal::Name(name) => words.push(name.clone()),
        Nominal::Noun { determiner, adjectives, noun, number } => {
            words.push(determiner.target[*number as usize].to_owned());
            words.push(noun.target(*number));
            for adjective in adjectives.iter().rev() {
                words.push(inflect_adjective(adjective.word.target, noun.class, *number));
                words.extend(adjective.degree.map(|word| word.target.to_owned()));
            }
        }
    }
}
