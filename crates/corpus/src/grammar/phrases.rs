//! Demo data for token classifiers: noun phrases, tagged in IOB2 with their role in the clause according to the gold arcs.
//!
//! `SUBJ` and `OBJ` are subjects and objects of verbs, `OBL` nouns attached to a verb by a preposition, `MOD` nouns attached to a noun. A
//! phrase is a name, or a noun with its determiner, adjectives and their adverbs. The second of two phrases joined by "and" has the role of
//! the first. A role depends on words further away: in "the dog that the cat sees", on "that" and the word order after it.
use super::{SplitSizes, Splits, demo_splits};
use crate::labelled::Example;
use crate::trees::{Tree, TreeArc};

/// The tags of [`phrase_splits`].
pub const PHRASE_TAGS: [&str; 9] =
    ["O", "B-SUBJ", "I-SUBJ", "B-OBJ", "I-OBJ", "B-OBL", "I-OBL", "B-MOD", "I-MOD"];

/// Returns the sentences of [`demo_splits`] as words with tags.
pub fn phrase_splits(sizes: SplitSizes, seed: u64) -> Splits<Example> {
    let Splits { train, dev, test, shifted } = demo_splits(sizes, seed);
    let tagged = |samples: Vec<_>| samples.iter().map(|sample| tagged(&Tree::from(sample))).collect();
    let [train, dev, test, shifted] = [train, dev, test, shifted].map(tagged);
    Splits { train, dev, test, shifted }
}

/// Tags the phrases of a sentence.
fn tagged(tree: &Tree) -> Example {
    let mut tags = vec!["O".to_owned(); tree.words.len()];
    for arc in &tree.arcs {
        let Some(kind) = kind(tree, arc) else { continue };
        let phrase = first(tree, arc.dependent)..=arc.dependent;
        tags[phrase.clone()].fill(format!("I-{kind}"));
        tags[*phrase.start()] = format!("B-{kind}");
    }
    let words = tree.words.iter().map(|bytes| tree.text[bytes.clone()].to_owned()).collect();
    Example::tagged(words, &tags).expect("each word has a tag")
}

/// Returns the role of a noun's phrase; `None` for other words.
fn kind(tree: &Tree, arc: &TreeArc) -> Option<&'static str> {
    let into = |word: usize| tree.arcs.iter().find(|other| other.dependent == word);
    // "that" directly follows the noun that its clause modifies
    let is_pronoun =
        || into(arc.head).is_some_and(|verb| verb.relation == "acl:relcl" && verb.head + 1 == arc.dependent);
    match arc.relation.as_str() {
        "nsubj" if !is_pronoun() => Some("SUBJ"),
        "obj" if !is_pronoun() => Some("OBJ"),
        "obl" => Some("OBL"),
        "nmod" => Some("MOD"),
        "conj" => kind(tree, into(arc.head)?),
        _ => None,
    }
}

/// Returns the first word of a noun's phrase.
fn first(tree: &Tree, noun: usize) -> usize {
    let of = |head: usize, relations: &[&str]| {
        let is_of = |arc: &&TreeArc| arc.head == head && relations.contains(&arc.relation.as_str());
        tree.arcs.iter().filter(is_of).map(|arc| arc.dependent).min()
    };
    of(noun, &["det", "amod"]).unwrap_or(noun)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use stats::entities::entities;

    const SIZES: SplitSizes = SplitSizes { train: 300, dev: 20, test: 60, shifted: 60 };

    #[test]
    fn phrases_are_tagged_with_their_role_in_the_clause() {
        let Splits { train, shifted, .. } = phrase_splits(SIZES, 1);
        let all: Vec<Example> = train.into_iter().chain(shifted).collect();
        let tags: BTreeSet<&str> = all.iter().flat_map(Example::tags).collect();
        assert_eq!(tags, BTreeSet::from(PHRASE_TAGS));
        for example in &all {
            let tags: Vec<&str> = example.tags().collect();
            let (clauses, subjects) = (example.words().iter().filter(|word| *word == "but").count(), "SUBJ");
            let found =
                entities(tags.iter().copied()).iter().filter(|phrase| phrase.kind == subjects).count();
            assert!(found > clauses, "each clause has a subject: {example:?}");
            for (word, tag) in example.words().iter().zip(&tags) {
                assert!(
                    !["but", "and", "not", ".", "?"].contains(&word.as_str()) || *tag == "O",
                    "{example:?}"
                );
            }
        }
        // "the dog that the cat sees": the second subject is inside the relative clause of the first
        let is_relative = |example: &&Example| {
            let tags: Vec<&str> = example.tags().collect();
            tags.starts_with(&["B-SUBJ", "I-SUBJ", "O", "B-SUBJ"]) && example.words()[2] == "that"
        };
        assert!(all.iter().filter(is_relative).count() > 5);
    }
}
