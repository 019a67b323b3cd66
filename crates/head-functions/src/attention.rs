//! Attention of one head in one sentence, reduced to what its functions depend on.
//!
//! Which keys are left out depends on the function, as in Voita et al. (2019). Confidence leaves out the tokens that end texts: `</s>` in
//! translators and RoBERTa, `[SEP]` in BERT, and the end-of-text tokens of language models, one of which GPT-2 also puts before texts.
//! `[CLS]`, `<s>` and other tokens that begin texts count. Relative positions leave out nothing. Relations and rare tokens leave out all
//! special tokens.
use core_masking::HeadId;
use subject::TextAttention;

use crate::sentence::Sentence;

/// Keys and words that a head attends to most.
#[derive(Debug, Clone, PartialEq)]
pub struct SentenceAttention {
    /// Sum of the maximum weights over queries that see several keys, without the tokens that end texts as keys.
    pub sum_of_greatest: f64,
    /// For each query, the key with the maximum weight among all that it sees.
    pub keys: Vec<usize>,
    /// For each query, the text token with the maximum weight; `None` if text gets no weight.
    pub text_keys: Vec<Option<usize>>,
    /// For each word, the word whose tokens together get the maximum weight; `None` if the word has no tokens or gives no weight to words.
    pub words: Vec<Option<usize>>,
}

impl SentenceAttention {
    /// - `is_first`: represent a word by its first token instead of its last
    pub fn new(sentence: &Sentence, attention: &TextAttention, id: HeadId, is_first: bool) -> Self {
        let row = |query: usize| &attention.row(id, query)[..sentence.seen(query)];
        let queries = || (0..sentence.len()).map(row);
        let greatest = sentence.queries_with_choice().map(row).map(|row| {
            let weights = row.iter().zip(&sentence.is_end).filter(|(_, is_end)| !**is_end);
            weights.map(|(&weight, _)| f64::from(weight)).fold(0.0, f64::max)
        });
        let text_key = |row: &[f32]| {
            let text = row.iter().zip(&sentence.is_text).enumerate().filter(|(_, (_, is_text))| **is_text);
            first_greatest(text.map(|(key, (&weight, _))| (key, f64::from(weight))))
        };
        let key = |row: &[f32]| {
            first_greatest(row.iter().map(|&weight| f64::from(weight)).enumerate()).unwrap_or(0)
        };
        Self {
            sum_of_greatest: greatest.sum(),
            keys: queries().map(key).collect(),
            text_keys: queries().map(text_key).collect(),
            words: (0..sentence.words.len()).map(|word| word_of(sentence, &row, word, is_first)).collect(),
        }
    }
}

/// Returns the token that represents a word as a query.
pub fn query_of(sentence: &Sentence, word: usize, is_first: bool) -> Option<usize> {
    let tokens = &sentence.words[word];
    if is_first { tokens.first() } else { tokens.last() }.copied()
}

/// Returns the word that a word attends to most, among those that it sees.
fn word_of<'a>(
    sentence: &Sentence,
    row: &impl Fn(usize) -> &'a [f32],
    word: usize,
    is_first: bool,
) -> Option<usize> {
    let query = query_of(sentence, word, is_first)?;
    let weights = row(query);
    let seen = |tokens: &&usize| **tokens < weights.len();
    let sum =
        |tokens: &Vec<usize>| tokens.iter().filter(seen).map(|&key| f64::from(weights[key])).sum::<f64>();
    let candidates =
        sentence.words.iter().enumerate().filter(|(_, tokens)| tokens.iter().any(|key| *key < weights.len()));
    first_greatest(candidates.map(|(word, tokens)| (word, sum(tokens))))
}

/// Returns the place of the maximum if it is above 0, the first of those that tie.
fn first_greatest(values: impl Iterator<Item = (usize, f64)>) -> Option<usize> {
    let best = values
        .fold((None, 0.0), |best, (place, value)| if value > best.1 { (Some(place), value) } else { best });
    best.0
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::sentence::tests::of_words;
    use core_masking::Attention;

    /// Returns the attention of a single head with these weights, `[query][key]`.
    pub fn attention(rows: &[&[f32]]) -> TextAttention {
        TextAttention::new(rows.len(), vec![rows.concat()])
    }

    /// Returns the attention of a head that gives all weight of query i to key `keys[i]`.
    pub fn looking_at(sentence: &Sentence, keys: &[usize]) -> SentenceAttention {
        let weight = |query: usize, key: usize| if keys[query] == key { 1.0 } else { 0.0 };
        let rows =
            (0..sentence.len()).flat_map(|query| (0..sentence.len()).map(move |key| weight(query, key)));
        let attention = TextAttention::new(sentence.len(), vec![rows.collect()]);
        SentenceAttention::new(sentence, &attention, head(), false)
    }

    pub fn head() -> HeadId {
        HeadId::from_index(Attention::SelfAttention, 0, 0)
    }

    /// Two words and the EOS token; without it the maximum weights are 0.5, 0.375 and 0.25.
    #[test]
    fn the_eos_token_counts_for_positions_but_not_for_confidence_and_text() {
        let sentence = of_words(2, &[], true);
        let weights = attention(&[&[0.5, 0.25, 0.25], &[0.125, 0.375, 0.5], &[0.25, 0.25, 0.5]]);
        let attention = SentenceAttention::new(&sentence, &weights, head(), false);
        assert_eq!(attention.sum_of_greatest, 0.5 + 0.375 + 0.25);
        assert_eq!(attention.keys, [0, 2, 2]);
        assert_eq!(attention.text_keys, [Some(0), Some(1), Some(0)], "of equal weights the first");
        assert_eq!(attention.words, [Some(0), Some(1)]);
    }

    /// A decoder's weights on later tokens are 0 and must not win if all others are 0 too.
    #[test]
    fn only_keys_that_a_query_sees_count() {
        let sentence = of_words(2, &[], false);
        let weights = attention(&[&[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0], &[0.0, 0.25, 0.75]]);
        let attention = SentenceAttention::new(&sentence, &weights, head(), false);
        assert_eq!(
            (attention.keys, attention.sum_of_greatest),
            (vec![0, 1, 2], 1.25),
            "the first query has no choice"
        );
    }

    /// Words of two, one and one tokens. The first word's last token gives 0.3 to the word itself in two parts, then 0.25 and 0.45; its
    /// first token gives 0.6 in two parts, and 0.4.
    #[test]
    fn a_word_gets_the_weight_of_all_its_tokens() {
        let mut sentence = of_words(4, &[], true);
        sentence.words = vec![vec![0, 1], vec![2], vec![3]];
        let rows: [&[f32]; 5] = [
            &[0.3, 0.3, 0.4, 0.0, 0.0],
            &[0.1, 0.2, 0.25, 0.45, 0.0],
            &[0.3, 0.2, 0.4, 0.1, 0.0],
            &[0.0, 0.0, 0.1, 0.0, 0.9],
            &[1.0, 0.0, 0.0, 0.0, 0.0],
        ];
        let words = |is_first| SentenceAttention::new(&sentence, &attention(&rows), head(), is_first).words;
        assert_eq!(words(false), [Some(2), Some(0), Some(1)]);
        assert_eq!(words(true), [Some(0), Some(0), Some(1)]);
    }
}
