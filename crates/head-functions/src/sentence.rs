//! Sentences as heads see them: tokens, words made of tokens, and arcs between words.
use corpus::placed::{PlacedToken, pieces_of};
use corpus::trees::{Tree, TreeArc};
use subject::TextInput;

/// A tokenized sentence.
#[derive(Debug, Clone)]
pub struct Sentence {
    /// Ids of its tokens.
    pub tokens: Vec<u32>,
    /// For each token, whether it is part of the text and not a special symbol.
    pub is_text: Vec<bool>,
    /// For each token, whether it is a symbol that ends texts.
    pub is_end: Vec<bool>,
    /// Tokens of each word in order; empty for a word that the tokenizer drops or truncates.
    pub words: Vec<Vec<usize>>,
    /// Dependencies between words that have tokens.
    pub arcs: Vec<TreeArc>,
    /// Number of dependencies lost because a word has no tokens.
    pub lost_arcs: usize,
    /// True if a token sees later tokens.
    pub sees_future: bool,
}

impl Sentence {
    /// Builds a sentence from the tokens of a tree's text.
    pub fn new(tree: &Tree, tokens: &[PlacedToken], input: &TextInput) -> Self {
        let words = pieces_of(&tree.words, tokens);
        let is_there = |arc: &&TreeArc| !words[arc.head].is_empty() && !words[arc.dependent].is_empty();
        let arcs: Vec<TreeArc> = tree.arcs.iter().filter(is_there).cloned().collect();
        Self {
            tokens: tokens.iter().map(|token| token.id).collect(),
            is_text: tokens.iter().map(|token| token.bytes.is_some()).collect(),
            is_end: tokens.iter().map(|token| input.ends.contains(&token.id)).collect(),
            lost_arcs: tree.arcs.len() - arcs.len(),
            arcs,
            words,
            sees_future: input.sees_future,
        }
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the number of keys that a query sees, which are the first ones.
    pub fn seen(&self, query: usize) -> usize {
        if self.sees_future { self.len() } else { query + 1 }
    }

    /// Returns the places of the queries that see several keys.
    pub fn queries_with_choice(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|&query| self.seen(query) > 1)
    }

    /// Returns true if a query sees all tokens of a word.
    pub fn sees_word(&self, query: usize, word: usize) -> bool {
        self.words[word].last().is_some_and(|&last| last < self.seen(query))
    }

    /// Returns the places of the text tokens.
    pub fn text(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|&place| self.is_text[place])
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use core_masking::Attention;
    use std::ops::Range;

    /// Returns the text input of an encoder, whose texts end with token 0, or of a decoder, which sees no later tokens.
    pub fn input(sees_future: bool) -> TextInput {
        TextInput { attention: Attention::SelfAttention, sees_future, ends: vec![0], longest: 99 }
    }

    fn placed(id: u32, bytes: Range<usize>) -> PlacedToken {
        PlacedToken { id, bytes: Some(bytes) }
    }

    /// Returns a sentence of one-token words with ids 1, 2, .., and EOS.
    pub fn of_words(count: usize, arcs: &[(usize, &str, usize)], sees_future: bool) -> Sentence {
        let tree = Tree {
            text: "a ".repeat(count),
            words: (0..count).map(|word| 2 * word..2 * word + 1).collect(),
            arcs: arcs
                .iter()
                .map(|&(dependent, relation, head)| TreeArc {
                    head,
                    dependent,
                    relation: relation.to_owned(),
                })
                .collect(),
        };
        let tokens = (0..count).map(|word| placed(word as u32 + 1, 2 * word..2 * word + 1));
        let tokens: Vec<PlacedToken> = tokens.chain([PlacedToken::symbol(0)]).collect();
        Sentence::new(&tree, &tokens, &input(sees_future))
    }

    /// "naive dogs x", whose first word has two tokens and whose last word has none.
    #[test]
    fn words_are_made_of_tokens_and_arcs_need_both_words() {
        let arc = |dependent, head| TreeArc { head, dependent, relation: "amod".to_owned() };
        let tree = Tree {
            text: "naive dogs x".to_owned(),
            words: vec![0..5, 6..10, 11..12],
            arcs: vec![arc(0, 1), arc(2, 1)],
        };
        let tokens = [placed(4, 0..2), placed(5, 2..5), placed(6, 5..10), PlacedToken::symbol(0)];
        let sentence = Sentence::new(&tree, &tokens, &input(false));
        assert_eq!(sentence.words, [vec![0, 1], vec![2], vec![]]);
        assert_eq!((sentence.arcs.len(), sentence.lost_arcs), (1, 1));
        assert_eq!(
            (sentence.is_text, sentence.is_end),
            (vec![true, true, true, false], vec![false, false, false, true])
        );
    }

    #[test]
    fn a_decoder_sees_what_stands_before_and_itself() {
        let (encoder, decoder) = (of_words(3, &[], true), of_words(3, &[], false));
        assert_eq!((0..4).map(|query| decoder.seen(query)).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(encoder.seen(0), 4);
        assert!(encoder.sees_word(0, 2) && !decoder.sees_word(0, 2) && decoder.sees_word(2, 2));
    }
}
