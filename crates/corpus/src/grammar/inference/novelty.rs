//! Edits after which a clause claims something that the premise leaves open.
use rand::Rng;
use rand::seq::IndexedMutRandom;
use rand_chacha::ChaCha8Rng;

use super::super::lexicon::{
    ADVERBS, INNER_PREPOSITIONS, INTRANSITIVE, OUTER_PREPOSITIONS, TRANSITIVE, Word,
};
use super::super::sampling::{Animacy, Sampler};
use super::super::tree::{Adjective, Adposition, Clause, Nominal, NounPhrase};
use super::edits::{generalised, heads, negation_flipped};
use super::phrases;
use super::premise::Premise;

/// Share of clauses with another noun or verb that also change polarity, so that "not" on one side alone does not make a contradiction.
const FLIPPED: f64 = 0.25;

/// Share of nouns that get a prepositional phrase rather than a relative clause: most, because omissions make relative clauses rare in the
/// hypotheses of the other labels.
const ADPOSITION: f64 = 0.75;

/// Number of draws for an unused word before another kind of addition is tried.
const DRAWS: usize = 20;

/// Number of kinds drawn, with repetition, before a clause counts as impossible to change.
const KINDS_TRIED: usize = 50;

/// Kind of difference between a hypothesis and its premise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeutralEdit {
    /// Another verb.
    Verb,
    /// Another noun or name.
    Noun,
    /// An additional adjective.
    Adjective,
    /// An additional relative clause or prepositional phrase.
    Modifier,
    /// An additional adverb.
    Adverb,
    /// An additional place.
    Place,
    /// Subject and object exchanged.
    Exchange,
    /// "every" instead of "the".
    Every,
}

impl NeutralEdit {
    /// Kinds to draw from; those that replace a word come twice, since they add no length.
    pub const DRAWN: [Self; 10] = [
        Self::Verb,
        Self::Noun,
        Self::Verb,
        Self::Noun,
        Self::Adjective,
        Self::Modifier,
        Self::Adverb,
        Self::Place,
        Self::Exchange,
        Self::Every,
    ];
}

/// Makes one change to `clause`, which follows from `premise`. Returns `None` if none is possible: "Mali and Tepis do not sleep" has no
/// word to replace.
pub(super) fn add(
    clause: &Clause,
    premise: &Premise,
    sampler: &Sampler,
    rng: &mut ChaCha8Rng,
) -> Option<Clause> {
    let mut author = Author { premise, sampler, rng };
    (0..KINDS_TRIED).find_map(|_| {
        let kind = NeutralEdit::DRAWN[author.rng.random_range(0..NeutralEdit::DRAWN.len())];
        author.change(clause, kind)
    })
}

/// Source of additions that the premise leaves open.
pub(super) struct Author<'a> {
    pub premise: &'a Premise,
    pub sampler: &'a Sampler,
    pub rng: &'a mut ChaCha8Rng,
}

impl Author<'_> {
    /// Returns the changed clause; `None` if this kind of change is impossible or its label uncertain.
    pub fn change(&mut self, clause: &Clause, kind: NeutralEdit) -> Option<Clause> {
        // Whoever does not sleep does not sleep near the house either: an entailment.
        let affirmative = !clause.verb.negated;
        match kind {
            NeutralEdit::Verb => self.other_verb(clause),
            NeutralEdit::Noun => self.other_noun(clause),
            NeutralEdit::Adjective => self.adjective(clause),
            NeutralEdit::Modifier => self.modifier(clause),
            NeutralEdit::Adverb if affirmative => self.adverb(clause),
            NeutralEdit::Place if affirmative => self.place(clause),
            NeutralEdit::Exchange => exchange(clause),
            NeutralEdit::Every if affirmative => generalised(clause, self.rng),
            NeutralEdit::Adverb | NeutralEdit::Place | NeutralEdit::Every => None,
        }
    }

    /// Turns "the dog sleeps" into "the dog works" or "the dog does not work".
    fn other_verb(&mut self, clause: &Clause) -> Option<Clause> {
        let verbs = if clause.object.is_some() { &TRANSITIVE[..] } else { &INTRANSITIVE };
        let mut changed = clause.clone();
        changed.verb.verb = self.draw(|author| author.sampler.pick(author.rng, verbs), |verb| verb.base)?;
        Some(self.perhaps_flipped(changed))
    }

    /// Turns "the dog sees Mali" into "the cat sees Mali" or "the dog sees Tepis".
    ///
    /// Whether "Mali and the dog do not sleep" denies one or both is unclear, so a negated clause with a pair is not changed, and an
    /// affirmative one is not negated.
    fn other_noun(&mut self, clause: &Clause) -> Option<Clause> {
        let has_pair = phrases(&mut clause.clone()).any(|phrase| matches!(phrase, NounPhrase::Pair(..)));
        if has_pair && clause.verb.negated {
            return None;
        }
        let mut changed = clause.clone();
        let mut heads = heads(&mut changed);
        let index = self.rng.random_range(0..heads.len());
        match &mut *heads[index] {
            Nominal::Name(name) => {
                *name = self.draw(|author| author.sampler.name(author.rng), String::as_str)?;
            }
            head => {
                let nouns = Animacy::of(head).nouns();
                let new = self.draw(|author| author.sampler.pick(author.rng, nouns), |noun| noun.singular)?;
                if let Nominal::Noun { noun, .. } = head {
                    *noun = new;
                }
            }
        }
        Some(if has_pair { changed } else { self.perhaps_flipped(changed) })
    }

    /// Turns "the dog sleeps" into "the old dog sleeps".
    fn adjective(&mut self, clause: &Clause) -> Option<Clause> {
        let new =
            self.draw(|author| author.sampler.adjective(author.rng), |new: &Adjective| new.word.source)?;
        let mut changed = clause.clone();
        let mut bare: Vec<_> = heads(&mut changed)
            .into_iter()
            .filter_map(|head| match head {
                Nominal::Noun { adjectives, .. } if adjectives.is_empty() => Some(adjectives),
                _ => None,
            })
            .collect();
        bare.choose_mut(self.rng)?.push(new);
        Some(changed)
    }

    /// Turns "the dog sleeps" into "the dog that sees Mali sleeps" or "the dog with a hat sleeps".
    fn modifier(&mut self, clause: &Clause) -> Option<Clause> {
        let mut changed = clause.clone();
        // After a modified object, a place would seem to belong to the modifier.
        let plain = |phrase: &NounPhrase| matches!(phrase, NounPhrase::Plain(Nominal::Noun { .. }));
        let places = if clause.place.is_some() { 1 } else { 2 };
        let mut open: Vec<_> = phrases(&mut changed).take(places).filter(|phrase| plain(phrase)).collect();
        let chosen = open.choose_mut(self.rng)?;
        let NounPhrase::Plain(head) = chosen.clone() else { return None };
        **chosen = self.modified(head)?;
        Some(changed)
    }

    fn modified(&mut self, head: Nominal) -> Option<NounPhrase> {
        if self.rng.random_bool(ADPOSITION) {
            let new = self.adposition(&INNER_PREPOSITIONS)?;
            return Some(NounPhrase::WithAdposition(head, new));
        }
        let kind = Animacy::of(&head);
        let new = (0..DRAWS)
            .map(|_| self.sampler.relative(self.rng, kind))
            .find(|relative| self.premise.leaves_relative_open(relative))?;
        Some(NounPhrase::WithRelative(head, new))
    }

    /// Turns "the dog sleeps" into "the dog often sleeps".
    fn adverb(&mut self, clause: &Clause) -> Option<Clause> {
        if clause.verb.adverb.is_some() {
            return None;
        }
        let mut changed = clause.clone();
        changed.verb.adverb =
            Some(self.draw(|author| author.sampler.pick(author.rng, &ADVERBS), |word| word.source)?);
        Some(changed)
    }

    /// Turns "the dog sleeps" into "the dog sleeps near the house".
    fn place(&mut self, clause: &Clause) -> Option<Clause> {
        // A place other than the premise's would contradict it.
        let said = self.premise.clauses.iter().any(|clause| clause.place.is_some());
        if said || !matches!(clause.object, None | Some(NounPhrase::Plain(_))) {
            return None;
        }
        let mut changed = clause.clone();
        changed.place = Some(self.adposition(&OUTER_PREPOSITIONS)?);
        Some(changed)
    }

    fn adposition(&mut self, words: &'static [Word]) -> Option<Adposition> {
        self.draw(
            |author| author.sampler.adposition(author.rng, words),
            |new| match &new.nominal {
                Nominal::Noun { noun, .. } => noun.singular,
                Nominal::Name(name) => name,
            },
        )
    }

    /// Draws until the premise leaves the word open; `None` after [`DRAWS`] attempts.
    fn draw<T>(&mut self, mut draw: impl FnMut(&mut Self) -> T, word: impl Fn(&T) -> &str) -> Option<T> {
        for _ in 0..DRAWS {
            let drawn = draw(self);
            if self.premise.leaves_open(word(&drawn)) {
                return Some(drawn);
            }
        }
        None
    }

    fn perhaps_flipped(&mut self, clause: Clause) -> Clause {
        if self.rng.random_bool(FLIPPED) { negation_flipped(clause) } else { clause }
    }
}

/// Turns "the dog sees the cat" into "the cat sees the dog"; `None` unless the object is a single being.
fn exchange(clause: &Clause) -> Option<Clause> {
    let is_being = |phrase: &NounPhrase| match phrase {
        NounPhrase::Plain(head) => Animacy::of(head) == Animacy::Being,
        _ => false,
    };
    let object = clause.object.clone().filter(is_being)?;
    // After a modifier or a pair, the place would seem to belong to it.
    if clause.place.is_some() && !matches!(clause.subject, NounPhrase::Plain(_)) {
        return None;
    }
    let mut changed = Clause { subject: object, ..clause.clone() };
    changed.object = Some(clause.subject.clone());
    Some(changed)
}
