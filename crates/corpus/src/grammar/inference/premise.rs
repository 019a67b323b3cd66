//! Which statements can be premises, and what they speak of.
use std::collections::HashSet;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::super::lexicon::{DETERMINERS, Word};
use super::super::tree::{Adposition, Clause, Nominal, NounPhrase, Partner, Relative, Sentence, VerbGroup};
use super::edits;

/// Words that keep a clause from being plainly true or false: "perhaps they sleep" does not entail
/// "they sleep", and "sometimes they sleep" and "sometimes they do not" can both be true.
pub(super) const UNCERTAIN: [&str; 3] = ["sometimes", "perhaps", "rarely"];

/// Words that may imply or exclude each other: if a premise has one, the other would not be neutral.
pub(super) const RELATED: [(&str, &[&str]); 25] = [
    ("child", &["boy", "girl"]),
    ("man", &["boy", "king", "uncle", "sailor"]),
    ("woman", &["girl", "man", "king", "uncle"]),
    ("boy", &["girl", "king", "uncle"]),
    ("king", &["uncle"]),
    ("dog", &["wolf"]),
    ("house", &["village"]),
    ("see", &["watch", "find", "hear", "draw", "follow"]),
    ("find", &["seek", "bring"]),
    ("watch", &["follow", "hear"]),
    ("know", &["remember", "forget", "hear", "like", "see"]),
    ("remember", &["forget"]),
    ("like", &["want", "praise"]),
    ("want", &["seek"]),
    ("carry", &["bring", "touch"]),
    ("bring", &["touch"]),
    ("follow", &["seek"]),
    // Whoever sleeps does nothing else.
    ("sleep", &["laugh", "wait", "sing", "run", "work", "fall", "dance", "smile", "swim", "shout", "arrive"]),
    ("laugh", &["smile", "shout"]),
    ("sing", &["shout"]),
    ("run", &["wait", "swim", "dance", "arrive"]),
    ("old", &["young"]),
    ("small", &["big"]),
    ("red", &["green"]),
    ("happy", &["angry", "tired", "proud"]),
];

/// Adverbs that may imply or exclude each other.
pub(super) const RELATED_ADVERBS: [&[&str]; 3] =
    [&["always", "often", "rarely"], &["slowly", "quickly"], &["happily", "gladly", "quietly", "secretly"]];

/// A statement, or two, that edits can be made to.
#[derive(Debug)]
pub(super) struct Premise {
    pub clauses: Vec<Clause>,
    /// Its nouns, names, verbs, adjectives and adverbs, in their dictionary form.
    content: HashSet<String>,
}

impl Premise {
    /// Makes a premise of `sentence` if it is a statement that can be shortened; `negated` says whether
    /// its first clause has "not".
    ///
    /// No word of it is used twice: with two dogs, "the dog" would be unclear, and what sleeps could
    /// be said not to sleep.
    pub fn new(sentence: Sentence, negated: bool, rng: &mut ChaCha8Rng) -> Option<Self> {
        let mut clauses = match sentence {
            Sentence::Question(_) => return None,
            Sentence::Statement(only) => vec![only],
            Sentence::Contrast(first, second) => vec![first, *second],
        };
        clauses.iter_mut().for_each(settle);
        clauses[0].verb.negated = negated;
        clauses[1..].iter_mut().for_each(|clause| clause.verb.negated = rng.random_bool(0.5));
        let mut words = Vec::new();
        clauses.iter().for_each(|clause| clause_words(clause, &mut words));
        let used = words.len();
        let content: HashSet<String> = words.into_iter().map(str::to_owned).collect();
        let can_be_shortened = clauses.len() == 2 || !edits::omissions(&clauses[0]).is_empty();
        (content.len() == used && can_be_shortened).then_some(Self { clauses, content })
    }

    pub fn sentence(&self) -> Sentence {
        match self.clauses.as_slice() {
            [first, second] => Sentence::Contrast(first.clone(), Box::new(second.clone())),
            clauses => Sentence::Statement(clauses[0].clone()),
        }
    }

    /// Whether the premise neither speaks of `word` nor says something that bears on it.
    pub fn leaves_open(&self, word: &str) -> bool {
        !UNCERTAIN.contains(&word) && !self.content.iter().any(|known| known == word || related(known, word))
    }

    /// Whether this holds of all words of the relative clause.
    pub fn leaves_relative_open(&self, relative: &Relative) -> bool {
        let mut words = Vec::new();
        relative_words(relative, &mut words);
        words.iter().all(|word| self.leaves_open(word))
    }
}

fn related(left: &str, right: &str) -> bool {
    let listed = |word: &str, other: &str| {
        RELATED.iter().any(|(entry, others)| *entry == word && others.contains(&other))
    };
    listed(left, right)
        || listed(right, left)
        || RELATED_ADVERBS.iter().any(|group| group.contains(&left) && group.contains(&right))
}

/// Makes the clause one whose negation is its contradiction: nothing uncertain, and only definite
/// phrases beside the verb. ("A dog sleeps" and "a dog does not sleep" can both be true.)
fn settle(clause: &mut Clause) {
    let certain = |word: &&Word| !UNCERTAIN.contains(&word.source);
    clause.opening = clause.opening.filter(certain);
    clause.verb.adverb = clause.verb.adverb.filter(certain);
    for head in edits::heads(clause) {
        if let Nominal::Noun { determiner, .. } = head
            && !["the", "this"].contains(&determiner.source[0])
        {
            *determiner = &DETERMINERS[0];
        }
    }
}

fn clause_words<'a>(clause: &'a Clause, words: &mut Vec<&'a str>) {
    words.extend(clause.opening.map(|word| word.source));
    verb_words(&clause.verb, words);
    for phrase in std::iter::once(&clause.subject).chain(&clause.object) {
        phrase_words(phrase, words);
    }
    clause.place.iter().for_each(|place| adposition_words(place, words));
}

fn verb_words(group: &VerbGroup, words: &mut Vec<&str>) {
    words.push(group.verb.base);
    words.extend(group.adverb.map(|word| word.source));
}

fn phrase_words<'a>(phrase: &'a NounPhrase, words: &mut Vec<&'a str>) {
    match phrase {
        NounPhrase::Plain(only) => nominal_words(only, words),
        NounPhrase::Pair(first, second) => {
            nominal_words(first, words);
            nominal_words(second, words);
        }
        NounPhrase::WithAdposition(head, modifier) => {
            nominal_words(head, words);
            adposition_words(modifier, words);
        }
        NounPhrase::WithRelative(head, modifier) => {
            nominal_words(head, words);
            relative_words(modifier, words);
        }
    }
}

fn relative_words<'a>(relative: &'a Relative, words: &mut Vec<&'a str>) {
    verb_words(&relative.verb, words);
    match &relative.partner {
        Partner::Object(object) => object.iter().for_each(|object| nominal_words(object, words)),
        Partner::Subject(subject) => nominal_words(subject, words),
    }
}

fn adposition_words<'a>(adposition: &'a Adposition, words: &mut Vec<&'a str>) {
    nominal_words(&adposition.nominal, words);
}

fn nominal_words<'a>(nominal: &'a Nominal, words: &mut Vec<&'a str>) {
    match nominal {
        Nominal::Name(name) => words.push(name),
        Nominal::Noun { adjectives, noun, .. } => {
            words.extend(adjectives.iter().map(|adjective| adjective.word.source));
            words.push(noun.singular);
        }
    }
}
