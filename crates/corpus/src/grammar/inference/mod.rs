//! Demo data for inference, in the role of the paper's MNLI: pairs of a premise and a hypothesis with one of three labels.
//!
//! A premise is a statement of the language pair's grammar. Its hypothesis is one of its clauses, edited so that the label is certain:
//!
//! - *entailment*: one or two omissions ([`edits`]);
//! - *contradiction*: one or two omissions, and "not" added or removed;
//! - *neutral*: two omissions, and an addition that the premise leaves open ([`novelty`]).
//!
//! As in the guidelines of SNLI (Bowman et al. 2015, <https://aclanthology.org/D15-1075>), both sentences describe one scene: "the dog" of
//! the hypothesis is "the old dog" of the premise. Therefore an omission within "the", "this" or "these" is sound with or without "not";
//! all others are made in affirmative clauses only. Attachment is never ambiguous: "with", "of" and "from" attach to their noun, all other
//! prepositions to the verb.
//!
//! Half of all premises are negated, so that "not" in a hypothesis does not predict the label. Neither domain has noise: a word misspelt on
//! one side only would be a new word, and the label wrong. The mismatched domain differs as MNLI's genres do, in length, frequent words and
//! names.
mod edits;
mod novelty;
mod premise;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::RangeInclusive;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::sampling::Sampler;
use super::tree::{Clause, NounPhrase, Sentence};
use super::{DOMAINS, Domain, SplitSizes, Splits, source, spell};
use crate::labelled::{Example, Input};
use premise::Premise;

/// The labels of [`inference_splits`].
pub const INFERENCE_LABELS: [&str; 3] = ["entailment", "neutral", "contradiction"];

/// Returns the splits of the demo; in each, the labels take turns. The matched and mismatched test sets do not depend on the size of the
/// training set.
pub fn inference_splits(sizes: SplitSizes, seed: u64) -> Splits<Example> {
    let [mut standard, mut shifted] = DOMAINS.map(|domain| Generator::new(domain, seed));
    Splits::draw(sizes, |count, seen| standard.take(count, seen), |count, seen| shifted.take(count, seen))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Entailment,
    Neutral,
    Contradiction,
}

impl Label {
    /// All labels, in the order of [`INFERENCE_LABELS`].
    const ALL: [Self; 3] = [Self::Entailment, Self::Neutral, Self::Contradiction];
}

#[derive(Debug)]
struct Generator {
    sampler: Sampler,
    /// Length of a premise in words: short, since the demo trains on a laptop.
    words: RangeInclusive<usize>,
    rng: ChaCha8Rng,
}

impl Generator {
    fn new(domain: Domain, seed: u64) -> Self {
        let words = match domain {
            Domain::Standard => 4..=12,
            Domain::Shifted => 8..=20,
        };
        Self { sampler: Sampler::new(domain), words, rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Returns the next `count` pairs whose premise is not in `seen`, and adds the premises to `seen`.
    fn take(&mut self, count: usize, seen: &mut HashSet<String>) -> Vec<Example> {
        let mut examples = Vec::with_capacity(count);
        while examples.len() < count {
            let premise = self.premise();
            let text = written(&premise.sentence());
            // Requires all three, so that the choice of premises does not predict the label.
            let hypotheses = Label::ALL.map(|label| self.hypothesis(&premise, label));
            if hypotheses.iter().all(Option::is_some) && seen.insert(text.clone()) {
                let turn = examples.len() % 3;
                let label = INFERENCE_LABELS[turn].to_owned();
                examples.extend(
                    hypotheses[turn]
                        .clone()
                        .map(|hypothesis| Example { input: Input::Pair(text, hypothesis), label }),
                );
            }
        }
        examples
    }

    /// Draws a premise. The polarity comes first: negated sentences are harder to shorten, so fewer would be kept.
    fn premise(&mut self) -> Premise {
        let negated = self.rng.random_bool(0.5);
        loop {
            let sentence = self.sampler.sentence(&mut self.rng);
            if let Some(premise) = Premise::new(sentence, negated, &mut self.rng)
                && self.words.contains(&source::read(&premise.sentence()).words.len())
            {
                return premise;
            }
        }
    }

    /// Makes a hypothesis with this label; `None` if no addition is possible.
    fn hypothesis(&mut self, premise: &Premise, label: Label) -> Option<String> {
        let mut clause = premise.clauses[self.rng.random_range(0..premise.clauses.len())].clone();
        // An addition takes room: without more omissions, the longest hypotheses would all be neutral.
        let least = if label == Label::Neutral { 2 } else { 1 };
        edits::omit(&mut clause, self.rng.random_range(least..=2), &mut self.rng);
        let clause = match label {
            Label::Entailment => edits::weaken(clause, &mut self.rng),
            Label::Contradiction => edits::contradict(clause, &mut self.rng),
            Label::Neutral => {
                let weaker = edits::weaken(clause, &mut self.rng);
                novelty::add(&weaker, premise, &self.sampler, &mut self.rng)?
            }
        };
        Some(written(&Sentence::Statement(clause)))
    }
}

fn written(sentence: &Sentence) -> String {
    spell(&source::read(sentence).words, true, ".")
}

/// Returns subject and object.
fn phrases(clause: &mut Clause) -> impl Iterator<Item = &mut NounPhrase> {
    std::iter::once(&mut clause.subject).chain(clause.object.as_mut())
}
