//! Demo data for language models: sentences of the English-like language, and minimal pairs for subject-verb agreement.
//!
//! The pairs follow Linzen et al. (2016), <https://aclanthology.org/Q16-1037>, and BLiMP (Warstadt et al. 2020,
//! <https://aclanthology.org/2020.tacl-1.25>): a sentence, and a copy whose verb does not agree with its subject. The words between subject
//! and verb may contain an attractor, a noun of the other number, which misleads a model that only looks nearby.
use std::collections::HashSet;

use sha2::{Digest, Sha256};

use super::lexicon::{Number, Tense};
use super::tree::{Clause, NounPhrase, Partner, Sentence};
use super::{DOMAINS, Domain, Generator, Relation, Sample, SplitSizes, Splits, source, spell};
use crate::choices::Choice;
use crate::documents::Document;

/// Groups of [`agreement_pairs`]: the construction between the noun and its verb, and whether it contains an attractor.
pub const AGREEMENT_GROUPS: [&str; 5] = [
    "simple",
    "prepositional-phrase",
    "prepositional-phrase, attractor",
    "relative-clause",
    "relative-clause, attractor",
];

/// Returns the splits of the demo: English-like sentences, except those reserved for [`agreement_pairs`]. The test sets do not depend on
/// the size of the training set.
pub fn language_splits(sizes: SplitSizes, seed: u64) -> Splits<Document> {
    let Splits { train, dev, test, shifted } = language_samples(sizes, seed);
    let [train, dev, test, shifted] = [train, dev, test, shifted]
        .map(|samples| samples.into_iter().map(|sample| Document::from(sample.source)).collect::<Vec<_>>());
    Splits { train, dev, test, shifted }
}

/// Returns the samples, with dependency arcs, whose source sentences make up [`language_splits`], in the order of the splits.
pub fn language_samples(sizes: SplitSizes, seed: u64) -> Splits {
    let [mut standard, mut shifted] = DOMAINS.map(|domain| Generator::new(domain, seed));
    let standard = |count, seen: &mut HashSet<String>| samples(&mut standard, count, seen);
    Splits::draw(sizes, standard, |count, seen| samples(&mut shifted, count, seen))
}

fn samples(generator: &mut Generator, count: usize, seen: &mut HashSet<String>) -> Vec<Sample> {
    let mut samples = Vec::with_capacity(count);
    while samples.len() < count {
        let more = generator.take(count - samples.len(), seen);
        samples.extend(more.into_iter().filter(|sample| !is_kept(&sample.source)));
    }
    samples
}

/// Returns true if a sentence is reserved for [`agreement_pairs`]. One sentence in eight is, independently of the splits, so that the pairs
/// do not depend on them.
fn is_kept(sentence: &str) -> bool {
    Sha256::digest(sentence)[0] < 32
}

/// Returns minimal pairs from a domain, without noise: a statement, which is the right choice, and a copy whose main verb has the wrong
/// number. The [groups](AGREEMENT_GROUPS) take turns. Equal arguments give equal pairs, a smaller count gives the first of them, and none
/// of their sentences is in [`language_splits`].
pub fn agreement_pairs(domain: Domain, count: usize, seed: u64) -> Vec<Choice> {
    let mut generator = Generator::new(domain, seed);
    let mut seen = HashSet::new();
    let mut groups = AGREEMENT_GROUPS.map(|_| Vec::new());
    let wanted = |group: usize| (count + AGREEMENT_GROUPS.len() - 1 - group) / AGREEMENT_GROUPS.len();
    while (0..groups.len()).any(|group| groups[group].len() < wanted(group)) {
        let Sentence::Statement(clause) = generator.sampler.sentence(&mut generator.rng) else { continue };
        let Some(group) = group(&clause.subject).filter(|&group| groups[group].len() < wanted(group)) else {
            continue;
        };
        if let Some(pair) = pair(clause, group)
            && is_kept(&pair.choices[0])
            && seen.insert(pair.choices[0].clone())
        {
            groups[group].push(pair);
        }
    }
    let mut turns = groups.map(Vec::into_iter);
    (0..count).filter_map(|place| turns[place % AGREEMENT_GROUPS.len()].next()).collect()
}

/// Returns the index of a subject's group in [`AGREEMENT_GROUPS`]; `None` for two nouns joined by "and".
fn group(subject: &NounPhrase) -> Option<usize> {
    let (construction, between) = match subject {
        NounPhrase::Plain(_) => (0, None),
        NounPhrase::Pair(..) => return None,
        NounPhrase::WithAdposition(_, modifier) => (1, Some(&modifier.nominal)),
        NounPhrase::WithRelative(_, relative) => match &relative.partner {
            Partner::Object(object) => (3, object.as_ref()),
            Partner::Subject(partner) => (3, Some(partner)),
        },
    };
    let attracts = between.is_some_and(|nominal| nominal.number() != subject.number());
    Some(construction + usize::from(attracts))
}

/// Returns the pair of a statement; `None` if its verb does not show the number.
fn pair(clause: Clause, group: usize) -> Option<Choice> {
    if clause.verb.tense != Tense::Present {
        return None;
    }
    let other = match clause.subject.number() {
        Number::Singular => Number::Plural,
        Number::Plural => Number::Singular,
    };
    let wrong = if clause.verb.negated {
        source::auxiliary(Tense::Present, other)
    } else {
        clause.verb.verb.source(Tense::Present, other)
    };
    let source::Words { mut words, arcs } = source::read(&Sentence::Statement(clause));
    let root = (0..words.len()).find(|&word| arcs.iter().all(|arc| arc.dependent != word))?;
    let auxiliary = arcs.iter().find(|arc| arc.head == root && arc.relation == Relation::Auxiliary);
    let right = spell(&words, true, ".");
    words[auxiliary.map_or(root, |arc| arc.dependent)] = wrong.to_owned();
    let choices = vec![right, spell(&words, true, ".")];
    Some(Choice { choices, group: Some(AGREEMENT_GROUPS[group].to_owned()), ..Choice::default() })
}

#[cfg(test)]
mod tests;
