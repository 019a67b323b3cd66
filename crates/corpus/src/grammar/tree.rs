//! Meaning of a sentence as a tree, from which both languages are generated.
use super::lexicon::{Determiner, Noun, Number, Tense, Verb, Word};

/// A sentence: a question, a statement, or two statements joined by "but".
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sentence {
    Question(Clause),
    Statement(Clause),
    Contrast(Clause, Box<Clause>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clause {
    pub opening: Option<&'static Word>,
    pub subject: NounPhrase,
    pub verb: VerbGroup,
    pub object: Option<NounPhrase>,
    pub place: Option<Adposition>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct VerbGroup {
    pub verb: &'static Verb,
    pub tense: Tense,
    pub negated: bool,
    pub adverb: Option<&'static Word>,
}

/// A noun phrase. It has at most one modifier after the noun and none in a pair, so that attachment is never ambiguous.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NounPhrase {
    Plain(Nominal),
    Pair(Nominal, Nominal),
    WithAdposition(Nominal, Adposition),
    WithRelative(Nominal, Relative),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Nominal {
    Name(String),
    Noun { determiner: &'static Determiner, adjectives: Vec<Adjective>, noun: &'static Noun, number: Number },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Adjective {
    pub degree: Option<&'static Word>,
    pub word: &'static Word,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Adposition {
    pub word: &'static Word,
    pub nominal: Nominal,
}

/// A relative clause. One argument of its verb is the noun it modifies, `partner` is the other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Relative {
    pub verb: VerbGroup,
    pub partner: Partner,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Partner {
    /// "the dog that sees the cat", "the dog that sleeps": the noun is the subject.
    Object(Option<Nominal>),
    /// "the dog that the cat sees": the noun is the object.
    Subject(Nominal),
}

impl Nominal {
    pub fn number(&self) -> Number {
        match self {
            Self::Name(_) => Number::Singular,
            Self::Noun { number, .. } => *number,
        }
    }
}

impl NounPhrase {
    /// Returns the number that a verb agrees with.
    pub fn number(&self) -> Number {
        match self {
            Self::Pair(..) => Number::Plural,
            Self::Plain(head) | Self::WithAdposition(head, _) | Self::WithRelative(head, _) => head.number(),
        }
    }
}

impl Relative {
    /// Returns the number of its verb; `head` is the number of the noun it modifies.
    pub fn number(&self, head: Number) -> Number {
        match &self.partner {
            Partner::Object(_) => head,
            Partner::Subject(subject) => subject.number(),
        }
    }
}
