//! Statements that can be premises, and the words they use.
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::super::lexicon::{
    ADJECTIVES, ADVERBS, BEINGS, DETERMINERS, INTRANSITIVE, OPENINGS, THINGS, TRANSITIVE, Word,
};
use super::super::source;
use super::super::tree::{Clause, Nominal, Relative, Sentence};
use super::edits;

/// Words that make a clause neither plainly true nor false: "perhaps they sleep" does not entail "they sleep", and "sometimes they sleep"
/// and "sometimes they do not" can both be true.
pub(super) const UNCERTAIN: [&str; 3] = ["sometimes", "perhaps", "rarely"];

/// Words that may imply or exclude each other: if a premise has one, a hypothesis with the other would not be neutral.
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

/// One or two statements to edit.
#[derive(Debug)]
pub(super) struct Premise {
    pub clauses: Vec<Clause>,
    /// Nouns, names, verbs, adjectives and adverbs, in dictionary form.
    content: HashSet<String>,
}

impl Premise {
    /// Makes a premise of `sentence`; `None` if it is a question, cannot be shortened or repeats a word. `negated` is the polarity of the
    /// first clause.
    ///
    /// With two dogs, "the dog" would be ambiguous, and one could sleep while the other does not.
    pub fn new(sentence: Sentence, negated: bool, rng: &mut ChaCha8Rng) -> Option<Self> {
        let mut clauses = match sentence {
            Sentence::Question(_) => return None,
            Sentence::Statement(only) => vec![only],
            Sentence::Contrast(first, second) => vec![first, *second],
        };
        clauses.iter_mut().for_each(settle);
        clauses[0].verb.negated = negated;
        clauses[1..].iter_mut().for_each(|clause| clause.verb.negated = rng.random_bool(0.5));
        let can_be_shortened = clauses.len() == 2 || !edits::shortened(&clauses[0]).is_empty();
        let mut premise = Self { clauses, content: HashSet::new() };
        let words = source::read(&premise.sentence()).words;
        let is_used_once =
            words.iter().filter_map(|word| lemma(word)).all(|word| premise.content.insert(word));
        (is_used_once && can_be_shortened).then_some(premise)
    }

    pub fn sentence(&self) -> Sentence {
        match self.clauses.as_slice() {
            [first, second] => Sentence::Contrast(first.clone(), Box::new(second.clone())),
            clauses => Sentence::Statement(clauses[0].clone()),
        }
    }

    /// Returns true if neither `word` nor a related word is in the premise, and `word` is not [`UNCERTAIN`].
    pub fn leaves_open(&self, word: &str) -> bool {
        !UNCERTAIN.contains(&word) && !self.content.iter().any(|known| known == word || related(known, word))
    }

    /// Returns true if the premise leaves all words of the relative clause open.
    pub fn leaves_relative_open(&self, relative: &Relative) -> bool {
        let words = source::read_relative(relative);
        words.iter().filter_map(|word| lemma(word)).all(|word| self.leaves_open(&word))
    }
}

/// Returns the dictionary form of a noun, verb, adjective or adverb, and names unchanged; `None` for other words.
fn lemma(word: &str) -> Option<String> {
    static LEMMAS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let nouns = BEINGS
            .iter()
            .chain(&THINGS)
            .flat_map(|noun| [(noun.singular, noun.singular), (noun.plural, noun.singular)]);
        let verbs = TRANSITIVE.iter().chain(&INTRANSITIVE);
        let verbs = verbs.flat_map(|verb| [verb.base, verb.third, verb.past].map(|form| (form, verb.base)));
        let others =
            ADJECTIVES.iter().chain(&ADVERBS).chain(&OPENINGS).map(|word| (word.source, word.source));
        nouns.chain(verbs).chain(others).collect()
    });
    let is_name = word.starts_with(char::is_uppercase);
    if is_name { Some(word) } else { LEMMAS.get(word).copied() }.map(str::to_owned)
}

fn related(left: &str, right: &str) -> bool {
    let listed = |word: &str, other: &str| {
        RELATED.iter().any(|(entry, others)| *entry == word && others.contains(&other))
    };
    listed(left, right)
        || listed(right, left)
        || RELATED_ADVERBS.iter().any(|group| group.contains(&left) && group.contains(&right))
}

/// Removes uncertain words and makes subject, object and place definite, so that the clause and its negation contradict each other. ("A dog
/// sleeps" and "a dog does not sleep" can both be true.)
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
