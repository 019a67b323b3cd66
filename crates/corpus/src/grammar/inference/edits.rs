//! Edits that keep or reverse the truth of a clause whose phrases are definite.
use rand::Rng;
use rand::seq::{IndexedMutRandom, IndexedRandom};
use rand_chacha::ChaCha8Rng;

use super::super::lexicon::{DETERMINERS, Determiner};
use super::super::tree::{Clause, Nominal, NounPhrase};
use super::phrases;

/// How often a definite phrase is made indefinite or universal where that is sound: seldom, because
/// premises have neither, so that the determiner alone would rule a label out.
const REQUANTIFIED: f64 = 0.15;

/// Something left out of a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Omission {
    /// "the old dog": "the dog".
    Adjective { head: usize, index: usize },
    /// "the very old dog": "the old dog".
    Degree { head: usize, index: usize },
    /// "the dog that sings", "the dog with a hat": "the dog".
    Modifier { phrase: usize },
    /// "the dog and the cat": "the dog" or "the cat".
    Conjunct { phrase: usize, first: bool },
    /// "today".
    Opening,
    /// "often".
    Adverb,
    /// "near the house".
    Place,
}

/// The nouns and names beside the verb: subject, object and place, without their modifiers.
pub(super) fn heads(clause: &mut Clause) -> Vec<&mut Nominal> {
    let Clause { subject, object, place, .. } = clause;
    let mut heads = Vec::new();
    for phrase in std::iter::once(subject).chain(object) {
        match phrase {
            NounPhrase::Plain(head)
            | NounPhrase::WithAdposition(head, _)
            | NounPhrase::WithRelative(head, _) => heads.push(head),
            NounPhrase::Pair(first, second) => heads.extend([first, second]),
        }
    }
    heads.extend(place.as_mut().map(|place| &mut place.nominal));
    heads
}

/// Leaves `count` things out, fewer if there are fewer that can be.
pub(super) fn omit(clause: &mut Clause, count: usize, rng: &mut ChaCha8Rng) {
    for _ in 0..count {
        if let Some(&omission) = omissions(clause).choose(rng) {
            *clause = without(clause, omission);
        }
    }
}

/// What can be left out so that the clause stays true.
pub(super) fn omissions(clause: &Clause) -> Vec<Omission> {
    let mut found = within_phrases(clause);
    // Whoever does not sleep near the house may sleep elsewhere.
    if !clause.verb.negated {
        found.extend(around_the_verb(clause));
    }
    found
}

fn within_phrases(clause: &Clause) -> Vec<Omission> {
    let mut found = Vec::new();
    let mut copy = clause.clone();
    for (head, nominal) in heads(&mut copy).into_iter().enumerate() {
        let Nominal::Noun { adjectives, .. } = nominal else { continue };
        for (index, adjective) in adjectives.iter().enumerate() {
            found.push(Omission::Adjective { head, index });
            found.extend(adjective.degree.map(|_| Omission::Degree { head, index }));
        }
    }
    for (phrase, content) in phrases(&mut copy).enumerate() {
        if matches!(content, NounPhrase::WithAdposition(..) | NounPhrase::WithRelative(..)) {
            found.push(Omission::Modifier { phrase });
        }
    }
    found
}

fn around_the_verb(clause: &Clause) -> Vec<Omission> {
    let mut found = Vec::new();
    found.extend(clause.opening.map(|_| Omission::Opening));
    found.extend(clause.verb.adverb.map(|_| Omission::Adverb));
    found.extend(clause.place.as_ref().map(|_| Omission::Place));
    for (phrase, content) in phrases(&mut clause.clone()).enumerate() {
        if matches!(content, NounPhrase::Pair(..)) {
            found.extend([true, false].map(|first| Omission::Conjunct { phrase, first }));
        }
    }
    found
}

/// The clause after an omission of [`omissions`].
pub(super) fn without(clause: &Clause, omission: Omission) -> Clause {
    let mut shorter = clause.clone();
    match omission {
        Omission::Adjective { head, index } => {
            if let Nominal::Noun { adjectives, .. } = &mut *heads(&mut shorter)[head] {
                adjectives.remove(index);
            }
        }
        Omission::Degree { head, index } => {
            if let Nominal::Noun { adjectives, .. } = &mut *heads(&mut shorter)[head] {
                adjectives[index].degree = None;
            }
        }
        Omission::Modifier { phrase } => reduce(&mut shorter, phrase, true),
        Omission::Conjunct { phrase, first } => reduce(&mut shorter, phrase, !first),
        Omission::Opening => shorter.opening = None,
        Omission::Adverb => shorter.verb.adverb = None,
        Omission::Place => shorter.place = None,
    }
    shorter
}

/// Leaves only the head of a phrase, of a pair the first or the second.
fn reduce(clause: &mut Clause, phrase: usize, first: bool) {
    for content in phrases(clause).skip(phrase).take(1) {
        *content = NounPhrase::Plain(match content.clone() {
            NounPhrase::Pair(_, second) if !first => second,
            NounPhrase::Plain(head)
            | NounPhrase::Pair(head, _)
            | NounPhrase::WithAdposition(head, _)
            | NounPhrase::WithRelative(head, _) => head,
        });
    }
}

/// Now and then makes "the dog" of an affirmative clause "a dog"; under "not" that says more, not less.
pub(super) fn weaken(clause: Clause, rng: &mut ChaCha8Rng) -> Clause {
    let sound = !clause.verb.negated && rng.random_bool(REQUANTIFIED);
    let weaker = if sound { requantified(&clause, &DETERMINERS[1], rng) } else { None };
    weaker.unwrap_or(clause)
}

/// Adds "not" or takes it away; "the dog does not sleep" is at times contradicted by "every dog
/// sleeps".
pub(super) fn contradict(clause: Clause, rng: &mut ChaCha8Rng) -> Clause {
    let opposite = negation_flipped(clause);
    let sound = !opposite.verb.negated && rng.random_bool(REQUANTIFIED);
    let stronger = if sound { generalised(&opposite, rng) } else { None };
    stronger.unwrap_or(opposite)
}

pub(super) fn negation_flipped(mut clause: Clause) -> Clause {
    clause.verb.negated = !clause.verb.negated;
    clause
}

/// Says of every dog what the clause says of one; nothing if the clause has only names.
pub(super) fn generalised(clause: &Clause, rng: &mut ChaCha8Rng) -> Option<Clause> {
    requantified(clause, &DETERMINERS[3], rng)
}

/// Gives subject or object another determiner; nothing if both are names.
fn requantified(clause: &Clause, new: &'static Determiner, rng: &mut ChaCha8Rng) -> Option<Clause> {
    let mut changed = Clause { place: None, ..clause.clone() };
    let mut nouns: Vec<&mut &'static Determiner> = heads(&mut changed)
        .into_iter()
        .filter_map(|head| match head {
            Nominal::Noun { determiner, .. } => Some(determiner),
            Nominal::Name(_) => None,
        })
        .collect();
    **nouns.choose_mut(rng)? = new;
    changed.place = clause.place.clone();
    Some(changed)
}
