//! The English sentence of a tree: words and dependency arcs.
//!
//! Relations follow Universal Dependencies, <https://universaldependencies.org/u/dep/>. Differs from them: "not" is `neg`, as in version 1,
//! because the head roles of Voita et al. (2019) distinguish it from other adverbs.
use super::lexicon::{Determiner, Number, Tense};
use super::tree::{
    Adjective, Adposition, Clause, Nominal, NounPhrase, Partner, Relative, Sentence, VerbGroup,
};
use super::{Arc, Relation};

/// Words without capital letters or punctuation, and the arcs between them.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub words: Vec<String>,
    pub arcs: Vec<Arc>,
}

pub(super) fn read(sentence: &Sentence) -> Words {
    let mut words = Words::default();
    match sentence {
        Sentence::Question(clause) => words.question(clause),
        Sentence::Statement(clause) => words.statement(clause),
        Sentence::Contrast(first, second) => {
            let head = words.statement(first);
            let but = words.push("but");
            let conjunct = words.statement(second);
            words.attach(but, conjunct, Relation::Coordinator);
            words.attach(conjunct, head, Relation::Conjunct)
        }
    };
    words
}

/// Returns the words of a relative clause after a singular noun.
pub(super) fn read_relative(relative: &Relative) -> Vec<String> {
    let mut words = Words::default();
    words.relative(relative, Number::Singular);
    words.words
}

/// Each function appends a phrase and returns the index of its syntactic head.
impl Words {
    fn push(&mut self, word: &str) -> usize {
        self.words.push(word.to_owned());
        self.words.len() - 1
    }

    fn attach(&mut self, dependent: usize, head: usize, relation: Relation) -> usize {
        self.arcs.push(Arc { head, dependent, relation });
        head
    }

    /// Appends `word`, whose syntactic head follows `distance` words later.
    fn push_before(&mut self, word: &str, distance: usize, relation: Relation) {
        let dependent = self.push(word);
        self.attach(dependent, dependent + distance, relation);
    }

    fn statement(&mut self, clause: &Clause) -> usize {
        let opening = clause.opening.map(|word| self.push(word.source));
        let subject = self.noun_phrase(&clause.subject);
        let verb = self.verb_group(&clause.verb, clause.subject.number());
        if let Some(opening) = opening {
            self.attach(opening, verb, Relation::AdverbialModifier);
        }
        self.attach(subject, verb, Relation::Subject);
        self.complements(clause, verb)
    }

    fn question(&mut self, clause: &Clause) -> usize {
        let auxiliary = self.push(auxiliary(clause.verb.tense, clause.subject.number()));
        let subject = self.noun_phrase(&clause.subject);
        let verb = self.bare_verb(&clause.verb, clause.verb.verb.base);
        self.attach(auxiliary, verb, Relation::Auxiliary);
        self.attach(subject, verb, Relation::Subject);
        self.complements(clause, verb)
    }

    fn complements(&mut self, clause: &Clause, verb: usize) -> usize {
        if let Some(object) = &clause.object {
            let object = self.noun_phrase(object);
            self.attach(object, verb, Relation::Object);
        }
        if let Some(place) = &clause.place {
            let place = self.adposition(place);
            self.attach(place, verb, Relation::Oblique);
        }
        verb
    }

    fn verb_group(&mut self, group: &VerbGroup, number: Number) -> usize {
        if !group.negated {
            return self.bare_verb(group, group.verb.source(group.tense, number));
        }
        let auxiliary = self.push(auxiliary(group.tense, number));
        let verb = self.bare_verb(group, group.verb.base);
        self.attach(auxiliary, verb, Relation::Auxiliary)
    }

    /// Appends "not", the adverb, and the verb in the given form.
    fn bare_verb(&mut self, group: &VerbGroup, form: &str) -> usize {
        let adverbs = usize::from(group.adverb.is_some());
        if group.negated {
            self.push_before("not", 1 + adverbs, Relation::Negation);
        }
        if let Some(adverb) = group.adverb {
            self.push_before(adverb.source, 1, Relation::AdverbialModifier);
        }
        self.push(form)
    }

    fn noun_phrase(&mut self, phrase: &NounPhrase) -> usize {
        match phrase {
            NounPhrase::Plain(nominal) => self.nominal(nominal),
            NounPhrase::Pair(first, second) => {
                let head = self.nominal(first);
                let and = self.push("and");
                let conjunct = self.nominal(second);
                self.attach(and, conjunct, Relation::Coordinator);
                self.attach(conjunct, head, Relation::Conjunct)
            }
            NounPhrase::WithAdposition(nominal, adposition) => {
                let head = self.nominal(nominal);
                let modifier = self.adposition(adposition);
                self.attach(modifier, head, Relation::NominalModifier)
            }
            NounPhrase::WithRelative(nominal, relative) => {
                let head = self.nominal(nominal);
                let verb = self.relative(relative, nominal.number());
                self.attach(verb, head, Relation::RelativeClause)
            }
        }
    }

    fn relative(&mut self, relative: &Relative, head: Number) -> usize {
        let that = self.push("that");
        let number = relative.number(head);
        match &relative.partner {
            Partner::Object(object) => {
                let verb = self.verb_group(&relative.verb, number);
                self.attach(that, verb, Relation::Subject);
                if let Some(object) = object {
                    let object = self.nominal(object);
                    self.attach(object, verb, Relation::Object);
                }
                verb
            }
            Partner::Subject(subject) => {
                let subject = self.nominal(subject);
                let verb = self.verb_group(&relative.verb, number);
                self.attach(that, verb, Relation::Object);
                self.attach(subject, verb, Relation::Subject)
            }
        }
    }

    fn adposition(&mut self, adposition: &Adposition) -> usize {
        let case = self.push(adposition.word.source);
        let nominal = self.nominal(&adposition.nominal);
        self.attach(case, nominal, Relation::Case)
    }

    fn nominal(&mut self, nominal: &Nominal) -> usize {
        match nominal {
            Nominal::Name(name) => self.push(name),
            Nominal::Noun { determiner, adjectives, noun, number } => {
                let form = noun.source(*number);
                let between: Vec<&str> = adjectives.iter().flat_map(words_of).collect();
                let next = between.first().copied().unwrap_or(form);
                let article = article(determiner, *number, next);
                self.push_before(article, 1 + between.len(), Relation::Determiner);
                let head = self.words.len() + between.len();
                adjectives.iter().for_each(|adjective| self.adjective(adjective, head));
                self.push(form)
            }
        }
    }

    fn adjective(&mut self, adjective: &Adjective, head: usize) {
        if let Some(degree) = adjective.degree {
            self.push_before(degree.source, 1, Relation::AdverbialModifier);
        }
        let index = self.push(adjective.word.source);
        self.attach(index, head, Relation::AdjectivalModifier);
    }
}

fn words_of(adjective: &Adjective) -> impl Iterator<Item = &'static str> {
    adjective.degree.into_iter().chain([adjective.word]).map(|word| word.source)
}

/// Returns the form of "do" before a negated verb or in a question.
pub(super) fn auxiliary(tense: Tense, number: Number) -> &'static str {
    match (tense, number) {
        (Tense::Past, _) => "did",
        (Tense::Present, Number::Singular) => "does",
        (Tense::Present, Number::Plural) => "do",
    }
}

/// Returns the determiner before the word `next`: "a" becomes "an" before a vowel.
fn article(determiner: &Determiner, number: Number, next: &str) -> &'static str {
    match determiner.source[number as usize] {
        "a" if next.starts_with(['a', 'e', 'i', 'o', 'u']) => "an",
        other => other,
    }
}
