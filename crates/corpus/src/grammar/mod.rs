//! The demo's language pair: an English-like source and a made-up target, made by a grammar.
//!
//! A random tree says what a sentence means; both languages are read from it, so the translation is
//! a deterministic function of the tree, and the source's dependency arcs are gold. The source has
//! number agreement over relative clauses and prepositional phrases; the target puts the verb last
//! and the adjective after its noun, and inflects both. Names are many, rare and copied.
//!
//! From the same trees, [`inference_splits`] makes English-like pairs of a premise and a hypothesis,
//! labelled as entailment, neutral or contradiction, in a matched and a mismatched domain; and
//! [`language_splits`] and [`agreement_pairs`] make what language models learn and are asked; [`phrase_splits`] tags noun phrases.
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

/// A kind of sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// The sentences that the demo is trained on.
    Standard,
    /// Longer sentences, other frequent words, other names, and noise in the source.
    Shifted,
}

const DOMAINS: [Domain; 2] = [Domain::Standard, Domain::Shifted];

/// The relation of a word to its head, after Universal Dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// `amod`: "old" of "dog".
    AdjectivalModifier,
    /// `advmod`: "often" of "sees", "very" of "old".
    AdverbialModifier,
    /// `aux`: "does" of "see".
    Auxiliary,
    /// `case`: "near" of "house".
    Case,
    /// `conj`: the second of two phrases, of the first.
    Conjunct,
    /// `cc`: "and", "but", of the second phrase.
    Coordinator,
    /// `det`: "the" of "dog".
    Determiner,
    /// `neg`: "not" of "see".
    Negation,
    /// `nmod`: a noun of a noun, "hat" of "man" in "the man with the hat".
    NominalModifier,
    /// `nsubj`: "dog" of "sees"; in a relative clause "that" or its own subject.
    Subject,
    /// `obj` (once `dobj`): "cat" of "sees"; in a relative clause also "that".
    Object,
    /// `obl`: a noun of a verb, "house" of "sleeps" in "sleeps near the house".
    Oblique,
    /// `acl:relcl`: the verb of a relative clause, of the noun before it.
    RelativeClause,
}

impl Relation {
    /// Its name in Universal Dependencies; `neg` is that of their first version.
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
/// Words are counted from 0 and separated by single spaces; the final punctuation belongs to the
/// last word and has no arc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arc {
    /// Index of the word that is depended on.
    pub head: usize,
    /// Index of the word that depends on it.
    pub dependent: usize,
    /// The relation between the two.
    pub relation: Relation,
}

/// A sentence in both languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The English-like sentence.
    pub source: String,
    /// Its translation.
    pub target: String,
    /// One arc for each word of the source but the root, ordered by dependent.
    pub arcs: Vec<Arc>,
}

/// The number of samples in each split.
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

/// The demo's data: samples, documents of a sentence each, or pairs of sentences. No source sentence, document or premise is in
/// two splits, or twice in one.
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
    /// Draws the splits of two streams, which are told how many are wanted and what was drawn before. The tests come first, so
    /// that they do not depend on how much training data is asked for.
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

    /// The split of this name; absent if there is no such split.
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

/// Distinct samples of one domain; equal arguments give equal samples.
pub fn generate(domain: Domain, count: usize, seed: u64) -> Vec<Sample> {
    Generator::new(domain, seed).take(count, &mut HashSet::new())
}

/// The demo's splits. The tests do not depend on how much training data is asked for.
///
/// Sentences are told apart also before noise is added: no test sentence is a misspelt training
/// sentence.
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

    /// The next `count` samples whose source, with and without noise, is not in `seen`; it joins them.
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

/// Both languages without noise.
fn sample(tree: &Sentence) -> Sample {
    let mark = end_mark(tree);
    let source::Words { words, mut arcs } = source::read(tree);
    arcs.sort_unstable_by_key(|arc| arc.dependent);
    Sample { source: spell(&words, true, mark), target: spell(&target::read(tree), true, mark), arcs }
}

/// Both languages, the source with noise.
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

/// One line of text.
fn spell(words: &[String], capital: bool, mark: &str) -> String {
    let mut text = words.join(" ") + mark;
    if capital {
        text[..1].make_ascii_uppercase(); // all words of both languages are ASCII
    }
    text
}
