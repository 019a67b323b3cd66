//! Edits that keep or reverse the truth of a clause whose phrases are definite.
use rand::Rng;
use rand::seq::{IndexedMutRandom, IndexedRandom};
use rand_chacha::ChaCha8Rng;

use super::super::lexicon::{DETERMINERS, Determiner};
use super::super::tree::{Adjective, Clause, Nominal, NounPhrase};
use super::phrases;

/// Share of definite phrases that become indefinite or universal where that is sound. It is small because premises have neither, so that
/// the determiner alone rules out a label.
const REQUANTIFIED: f64 = 0.15;

/// Returns the nouns and names of subject, object and place, without their modifiers.
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

/// Makes `count` omissions, or fewer if no more are possible.
pub(super) fn omit(clause: &mut Clause, count: usize, rng: &mut ChaCha8Rng) {
    for _ in 0..count {
        if let Some(shorter) = shortened(clause).choose(rng) {
            *clause = shorter.clone();
        }
    }
}

/// Returns the clauses that result from one omission and follow from `clause`.
pub(super) fn shortened(clause: &Clause) -> Vec<Clause> {
    let mut found = Vec::new();
    let mut copy = clause.clone();
    let mut add = |edit: &dyn Fn(&mut Clause)| {
        let mut shorter = clause.clone();
        edit(&mut shorter);
        found.push(shorter);
    };
    for (head, nominal) in heads(&mut copy).into_iter().enumerate() {
        let Nominal::Noun { adjectives, .. } = nominal else { continue };
        for (index, adjective) in adjectives.iter().enumerate() {
            // "the old dog": "the dog"; "the very old dog": "the old dog"
            add(&|shorter| {
                adjectives_of(shorter, head).remove(index);
            });
            if adjective.degree.is_some() {
                add(&|shorter| adjectives_of(shorter, head)[index].degree = None);
            }
        }
    }
    for (phrase, content) in phrases(&mut copy).enumerate() {
        // "the dog that sings", "the dog with a hat": "the dog"
        if let NounPhrase::WithAdposition(head, _) | NounPhrase::WithRelative(head, _) = content {
            add(&|shorter| replace(shorter, phrase, head));
        }
    }
    // Whoever does not sleep near the house may sleep elsewhere.
    if clause.verb.negated {
        return found;
    }
    if clause.opening.is_some() {
        add(&|shorter| shorter.opening = None);
    }
    if clause.verb.adverb.is_some() {
        add(&|shorter| shorter.verb.adverb = None);
    }
    if clause.place.is_some() {
        add(&|shorter| shorter.place = None);
    }
    for (phrase, content) in phrases(&mut copy).enumerate() {
        // "the dog and the cat": "the cat" or "the dog"
        if let NounPhrase::Pair(first, second) = content {
            add(&|shorter| replace(shorter, phrase, second));
            add(&|shorter| replace(shorter, phrase, first));
        }
    }
    found
}

fn adjectives_of(clause: &mut Clause, head: usize) -> &mut Vec<Adjective> {
    match heads(clause).swap_remove(head) {
        Nominal::Noun { adjectives, .. } => adjectives,
        Nominal::Name(_) => unreachable!("names have no adjectives"),
    }
}

fn replace(clause: &mut Clause, phrase: usize, head: &Nominal) {
    phrases(clause).skip(phrase).take(1).for_each(|content| *content = NounPhrase::Plain(head.clone()));
}

/// Sometimes turns "the dog" of an affirmative clause into "a dog". Under "not", "a dog" would be the stronger claim.
pub(super) fn weaken(clause: Clause, rng: &mut ChaCha8Rng) -> Clause {
    let sound = !clause.verb.negated && rng.random_bool(REQUANTIFIED);
    let weaker = if sound { requantified(&clause, &DETERMINERS[1], rng) } else { None };
    weaker.unwrap_or(clause)
}

/// Adds or removes "not"; sometimes contradicts "the dog does not sleep" with "every dog sleeps".
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

/// Turns "the dog" into "every dog"; `None` if subject and object are names.
pub(super) fn generalised(clause: &Clause, rng: &mut ChaCha8Rng) -> Option<Clause> {
    requantified(clause, &DETERMINERS[3], rng)
}

/// Gives the subject or the object another determiner; `None` if both are names.
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
