//! Draws random trees; each domain has its own words and amount of structure.
use std::ops::RangeInclusive;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::lexicon::{
    self, ADJECTIVES, ADVERBS, BEINGS, DEGREES, DETERMINERS, INNER_PREPOSITIONS, INTRANSITIVE, NAMES, Noun,
    Number, OPENINGS, OUTER_PREPOSITIONS, THINGS, TRANSITIVE, Tense, Verb,
};
use super::tree::{
    Adjective, Adposition, Clause, Nominal, NounPhrase, Partner, Relative, Sentence, VerbGroup,
};
use super::{Domain, source};

/// Number of names in a domain; most are rare.
const NAMES_IN_USE: usize = 5_000;

/// Length of a sentence in words, and the probabilities of its parts.
#[derive(Debug)]
struct PhraseProbabilities {
    words: RangeInclusive<usize>,
    question: f64,
    contrast: f64,
    opening: f64,
    negation: f64,
    adverb: f64,
    place: f64,
    intransitive: f64,
    name: f64,
    adjective: f64,
    degree: f64,
    pair: f64,
    adposition: f64,
    relative: f64,
}

static STANDARD: PhraseProbabilities = PhraseProbabilities {
    words: 4..=18,
    question: 0.12,
    contrast: 0.04,
    opening: 0.1,
    negation: 0.15,
    adverb: 0.2,
    place: 0.2,
    intransitive: 0.3,
    name: 0.2,
    adjective: 0.3,
    degree: 0.2,
    pair: 0.08,
    adposition: 0.12,
    relative: 0.18,
};

static SHIFTED: PhraseProbabilities = PhraseProbabilities {
    words: 4..=36,
    question: 0.25,
    contrast: 0.2,
    opening: 0.2,
    negation: 0.25,
    adverb: 0.3,
    place: 0.35,
    intransitive: 0.2,
    name: 0.3,
    adjective: 0.4,
    degree: 0.35,
    pair: 0.12,
    adposition: 0.2,
    relative: 0.3,
};

/// Whether a noun phrase denotes a being or a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Animacy {
    Being,
    Thing,
}

impl Animacy {
    /// Returns the animacy of a noun or name; names denote beings.
    pub fn of(nominal: &Nominal) -> Self {
        match nominal {
            Nominal::Noun { noun, .. } if THINGS.contains(noun) => Self::Thing,
            _ => Self::Being,
        }
    }

    pub fn nouns(self) -> &'static [Noun] {
        match self {
            Self::Being => &BEINGS,
            Self::Thing => &THINGS,
        }
    }

    fn either(rng: &mut ChaCha8Rng) -> Self {
        if rng.random_bool(0.5) { Self::Being } else { Self::Thing }
    }
}

/// Sampler of trees from one domain.
#[derive(Debug)]
pub(super) struct Sampler {
    domain: Domain,
    habits: &'static PhraseProbabilities,
    /// Cumulative weights of Zipf's law, the sums of 1/1 to 1/n. Shorter word lists use the first entries.
    zipf: Vec<f64>,
}

impl Sampler {
    pub fn new(domain: Domain) -> Self {
        let mut sum = 0.0;
        let zipf = (1..=NAMES_IN_USE).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        let habits = match domain {
            Domain::Standard => &STANDARD,
            Domain::Shifted => &SHIFTED,
        };
        Self { domain, habits, zipf: zipf.collect() }
    }

    /// Draws a sentence whose length in source words is allowed in this domain.
    pub fn sentence(&self, rng: &mut ChaCha8Rng) -> Sentence {
        loop {
            let sentence = self.any_sentence(rng);
            if self.habits.words.contains(&source::read(&sentence).words.len()) {
                return sentence;
            }
        }
    }

    fn any_sentence(&self, rng: &mut ChaCha8Rng) -> Sentence {
        let clause = self.clause(rng);
        if rng.random_bool(self.habits.question) {
            Sentence::Question(Clause { opening: None, ..clause })
        } else if rng.random_bool(self.habits.contrast) {
            Sentence::Contrast(clause, Box::new(self.clause(rng)))
        } else {
            Sentence::Statement(clause)
        }
    }

    fn clause(&self, rng: &mut ChaCha8Rng) -> Clause {
        let opening = maybe(rng, self.habits.opening, |rng| self.pick(rng, &OPENINGS));
        let subject = self.noun_phrase(rng, Animacy::Being);
        let (verb, object) = if rng.random_bool(self.habits.intransitive) {
            (self.verb_group(rng, &INTRANSITIVE), None)
        } else {
            let kind = Animacy::either(rng);
            (self.verb_group(rng, &TRANSITIVE), Some(self.noun_phrase(rng, kind)))
        };
        // After a modifier or a pair, a place would seem to belong to the last noun alone.
        let clear = matches!(object, None | Some(NounPhrase::Plain(_)));
        let place = if clear { self.habits.place } else { 0.0 };
        let place = maybe(rng, place, |rng| self.adposition(rng, &OUTER_PREPOSITIONS));
        Clause { opening, subject, verb, object, place }
    }

    fn verb_group(&self, rng: &mut ChaCha8Rng, verbs: &'static [Verb]) -> VerbGroup {
        VerbGroup {
            verb: self.pick(rng, verbs),
            tense: if rng.random_bool(0.6) { Tense::Present } else { Tense::Past },
            negated: rng.random_bool(self.habits.negation),
            adverb: maybe(rng, self.habits.adverb, |rng| self.pick(rng, &ADVERBS)),
        }
    }

    fn noun_phrase(&self, rng: &mut ChaCha8Rng, kind: Animacy) -> NounPhrase {
        let head = self.nominal(rng, kind);
        if rng.random_bool(self.habits.pair) {
            return NounPhrase::Pair(head, self.nominal(rng, kind));
        }
        if matches!(head, Nominal::Name(_)) {
            return NounPhrase::Plain(head);
        }
        if rng.random_bool(self.habits.adposition) {
            NounPhrase::WithAdposition(head, self.adposition(rng, &INNER_PREPOSITIONS))
        } else if rng.random_bool(self.habits.relative) {
            NounPhrase::WithRelative(head, self.relative(rng, kind))
        } else {
            NounPhrase::Plain(head)
        }
    }

    /// Draws a relative clause; only beings can be its subject.
    pub fn relative(&self, rng: &mut ChaCha8Rng, head: Animacy) -> Relative {
        if head == Animacy::Thing || rng.random_bool(0.4) {
            let verb = self.verb_group(rng, &TRANSITIVE);
            return Relative { verb, partner: Partner::Subject(self.nominal(rng, Animacy::Being)) };
        }
        if rng.random_bool(self.habits.intransitive) {
            return Relative { verb: self.verb_group(rng, &INTRANSITIVE), partner: Partner::Object(None) };
        }
        let verb = self.verb_group(rng, &TRANSITIVE);
        let kind = Animacy::either(rng);
        Relative { verb, partner: Partner::Object(Some(self.nominal(rng, kind))) }
    }

    pub fn adposition(&self, rng: &mut ChaCha8Rng, words: &'static [lexicon::Word]) -> Adposition {
        Adposition { word: self.pick(rng, words), nominal: self.noun(rng, Animacy::Thing) }
    }

    /// Draws a noun or, for beings, a name.
    fn nominal(&self, rng: &mut ChaCha8Rng, kind: Animacy) -> Nominal {
        if kind == Animacy::Being && rng.random_bool(self.habits.name) {
            return Nominal::Name(self.name(rng));
        }
        self.noun(rng, kind)
    }

    fn noun(&self, rng: &mut ChaCha8Rng, kind: Animacy) -> Nominal {
        Nominal::Noun {
            determiner: self.pick(rng, &DETERMINERS),
            adjectives: self.adjectives(rng),
            noun: self.pick(rng, kind.nouns()),
            number: if rng.random_bool(0.6) { Number::Singular } else { Number::Plural },
        }
    }

    /// Draws up to two adjectives, which differ.
    fn adjectives(&self, rng: &mut ChaCha8Rng) -> Vec<Adjective> {
        let count = (0..2).take_while(|_| rng.random_bool(self.habits.adjective)).count();
        let mut adjectives: Vec<Adjective> = (0..count).map(|_| self.adjective(rng)).collect();
        adjectives.dedup_by_key(|adjective| adjective.word);
        adjectives
    }

    pub fn adjective(&self, rng: &mut ChaCha8Rng) -> Adjective {
        Adjective {
            degree: maybe(rng, self.habits.degree, |rng| self.pick(rng, &DEGREES)),
            word: self.pick(rng, &ADJECTIVES),
        }
    }

    /// Draws a name; the two domains have no name in common.
    pub fn name(&self, rng: &mut ChaCha8Rng) -> String {
        const { assert!(2 * NAMES_IN_USE <= NAMES) };
        let rank = self.rank(rng, NAMES_IN_USE);
        match self.domain {
            Domain::Standard => lexicon::name(rank),
            Domain::Shifted => lexicon::name(NAMES_IN_USE + rank),
        }
    }

    /// Draws a word by Zipf's law; words that are rare in the standard domain are frequent in the shifted one.
    pub fn pick<T>(&self, rng: &mut ChaCha8Rng, words: &'static [T]) -> &'static T {
        let rank = self.rank(rng, words.len());
        match self.domain {
            Domain::Standard => &words[rank],
            Domain::Shifted => &words[words.len() - 1 - rank],
        }
    }

    /// Draws a rank below `count`, rank r with probability proportional to 1 / (r + 1).
    fn rank(&self, rng: &mut ChaCha8Rng, count: usize) -> usize {
        let sums = &self.zipf[..count];
        let drawn = rng.random::<f64>() * sums[count - 1];
        sums.partition_point(|&sum| sum <= drawn).min(count - 1)
    }
}

fn maybe<T>(rng: &mut ChaCha8Rng, probability: f64, make: impl FnOnce(&mut ChaCha8Rng) -> T) -> Option<T> {
    rng.random_bool(probability).then(|| make(rng))
}
