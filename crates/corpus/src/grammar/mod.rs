//! Synthetic demo data from a grammar: an English-like source language and its translation into an artificial language.
//!
//! A random tree is the meaning of a sentence. Both languages are generated from it, so the translation is a deterministic function of the
//! tree, and the dependency arcs of the source are gold. The source has number agreement across relative clauses and prepositional phrases.
//! The target puts the verb last and the adjective after its noun, and inflects both. There are many names, most of them rare, and they are
//! copied.
//!
//! From these trees, [`inference_splits`] generates English-like pairs of a premise and a hypothesis, labelled as entailment, neutral or
//! contradiction, in a matched and a mismatched domain. [`language_splits`] and [`agreement_pairs`] are data for language models, and
//! [`phrase_splits`] tags noun phrases.
mod inference;
mod language;
mod lexicon;
mod noise;
mod phrases;
mod sampling;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::HashSet;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use sampling::Sampler;
use tree::Sentence;

pub use inference::{INFERENCE_LABELS, inference_splits};
pub use language::{AGREEMENT_GROUPS, agreement_pairs, language_samples, language_splits};
pub use phrases::{PHRASE_TAGS, phrase_splits};

/// Distribution that sentences are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Sentences that the demo models are trained on.
    Standard,
    /// Longer sentences, other frequent words, other names, and noise in the source.
    Shifted,
}

const DOMAINS: [Domain; 2] = [Domain::Standard, Domain::Shifted];

/// Relation of a word to its syntactic head, as in Universal Dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// `amod`: "old" in "old dog".
    AdjectivalModifier,
    /// `advmod`: "often" in "often sees", "very" in "very old".
    AdverbialModifier,
    /// `aux`: "does" in "does not see".
    Auxiliary,
    /// `case`: "near" in "near the house".
    Case,
    /// `conj`: the second of two phrases, attached to the first.
    Conjunct,
    /// `cc`: "and" or "but", attached to the second phrase.
    Coordinator,
    /// `det`: "the" in "the dog".
    Determiner,
    /// `neg`: "not" in "does not see".
    Negation,
    /// `nmod`: a noun that modifies a noun, "hat" in "the man with the hat".
    NominalModifier,
    /// `nsubj`: "dog" in "the dog sees"; in a relative clause "that" or the subject of the clause.
    Subject,
    /// `obj` (formerly `dobj`): "cat" in "sees the cat"; in a relative clause also "that".
    Object,
    /// `obl`: a noun that modifies a verb, "house" in "sleeps near the house".
    Oblique,
    /// `acl:relcl`: the verb of a relative clause, attached to the noun before it.
    RelativeClause,
}

impl Relation {
    /// Returns the name in Universal Dependencies; `neg` is from version 1.
    pub fn name(self) -> &'static str {
        match self {
            Self::AdjectivalModifier => "amod",
            Self::AdverbialModifier => "advmod",
            Self::Auxiliary => "aux",
            Self::Case => "case",
            Self::Conjunct => "conj",
            Self::Coordinator => "cc",
            Self::Determiner => "det",
            Self::Negation => "neg",
            Self::NominalModifier => "nmod",
            Self::Subject => "nsubj",
            Self::Object => "obj",
            Self::Oblique => "obl",
            Self::RelativeClause => "acl:relcl",
        }
    }
}

/// A dependency between two words of a source sentence.
///
/// Words are counted from 0 and separated by single spaces; the final punctuation belongs to the last word and has no arc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arc {
    /// Index of the syntactic head.
    pub head: usize,
    /// Index of the dependent word.
    pub dependent: usize,
    /// Relation of the dependent to its head.
    pub relation: Relation,
}

/// A sentence in both languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The English-like sentence.
    pub source: String,
    /// Its translation.
    pub target: String,
    /// One arc for each word of the source except the root, ordered by dependent.
    pub arcs: Vec<Arc>,
}

/// Number of samples in each split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitSizes {
    /// Training, standard domain.
    pub train: usize,
    /// Development, standard domain.
    pub dev: usize,
    /// Test, standard domain.
    pub test: usize,
    /// Test, shifted domain.
    pub shifted: usize,
}

/// Demo data: samples, documents of one sentence each, or pairs of sentences. No source sentence, document or premise occurs twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splits<T = Sample> {
    /// Training, standard domain.
    pub train: Vec<T>,
    /// Development, standard domain.
    pub dev: Vec<T>,
    /// Test, standard domain.
    pub test: Vec<T>,
    /// Test, shifted domain.
    pub shifted: Vec<T>,
}

impl<T> Splits<T> {
    /// Draws the splits from two streams, which are given the number of samples wanted and the sentences drawn before. Test sets come
    /// first, so that they do not depend on the size of the training set.
    fn draw(
        sizes: SplitSizes,
        mut standard: impl FnMut(usize, &mut HashSet<String>) -> Vec<T>,
        mut shifted: impl FnMut(usize, &mut HashSet<String>) -> Vec<T>,
    ) -> Self {
        let mut seen = HashSet::new();
        let test = standard(sizes.test, &mut seen);
        let dev = standard(sizes.dev, &mut seen);
        let shifted = shifted(sizes.shifted, &mut seen);
        let train = standard(sizes.train, &mut seen);
        Self { train, dev, test, shifted }
    }

    /// Returns the split of this name; `None` if it does not exist.
    pub fn named(self, split: &str) -> Option<Vec<T>> {
        match split {
            "train" => Some(self.train),
            "dev" => Some(self.dev),
            "test" => Some(self.test),
            "shifted" => Some(self.shifted),
            _ => None,
        }
    }
}

/// Returns distinct samples from one domain; equal arguments give equal samples.
pub fn generate(domain: Domain, count: usize, seed: u64) -> Vec<Sample> {
    Generator::new(domain, seed).take(count, &mut HashSet::new())
}

/// Returns the splits of the demo. The test sets do not depend on the size of the training set. Sentences also differ before noise is
/// added: no test sentence is a misspelt training sentence.
pub fn demo_splits(sizes: SplitSizes, seed: u64) -> Splits {
    let [mut standard, mut shifted] = DOMAINS.map(|domain| Generator::new(domain, seed));
    Splits::draw(sizes, |count, seen| standard.take(count, seen), |count, seen| shifted.take(count, seen))
}

/// A stream of samples.
#[derive(Debug)]
struct Generator {
    domain: Domain,
    sampler: Sampler,
    rng: ChaCha8Rng,
}

impl Generator {
    fn new(domain: Domain, seed: u64) -> Self {
        Self { domain, sampler: Sampler::new(domain), rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Returns the next `count` samples whose source, with and without noise, is not in `seen`, and adds both to `seen`.
    fn take(&mut self, count: usize, seen: &mut HashSet<String>) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(count);
        while samples.len() < count {
            let tree = self.sampler.sentence(&mut self.rng);
            let clean = sample(&tree).source;
            let finished = self.finish(&tree);
            if !seen.contains(&clean) && !seen.contains(&finished.source) {
                seen.extend([clean, finished.source.clone()]);
                samples.push(finished);
            }
        }
        samples
    }

    fn finish(&mut self, tree: &Sentence) -> Sample {
        match self.domain {
            Domain::Standard => sample(tree),
            Domain::Shifted => noisy(tree, &mut self.rng),
        }
    }
}

fn sample(tree: &Sentence) -> Sample {
    let mark = end_mark(tree);
    let source::Words { words, mut arcs } = source::read(tree);
    arcs.sort_unstable_by_key(|arc| arc.dependent);
    Sample { source: spell(&words, true, mark), target: spell(&target::read(tree), true, mark), arcs }
}

/// Generates both languages, the source with noise.
fn noisy(tree: &Sentence, rng: &mut ChaCha8Rng) -> Sample {
    let mut words = source::read(tree).words;
    noise::mistype(&mut words, rng);
    let capital = !noise::forgets_capital(rng);
    let mark = if noise::forgets_punctuation(rng) { "" } else { end_mark(tree) };
    Sample { source: spell(&words, capital, mark), ..sample(tree) }
}

fn end_mark(tree: &Sentence) -> &'static str {
    if matches!(tree, Sentence::Question(_)) { "?" } else { "." }
}

fn spell(words: &[String], capital: bool, mark: &str) -> String {
    let mut text = words.join(" ") + mark;
    if capital {
        text[..1].make_ascii_uppercase(); // all words of both languages are ASCII
    }
    text
}
