//! Tokens with their positions in the text.
use std::ops::Range;

use tokenizers::Encoding;

/// A token of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedToken {
    /// Id in the vocabulary.
    pub id: u32,
    /// Bytes of the text that the token covers, including a space before them if it is part of the token; `None` for special tokens that a
    /// tokenizer adds.
    pub bytes: Option<Range<usize>>,
}

impl PlacedToken {
    /// Makes a special token, which covers no part of the text.
    pub fn symbol(id: u32) -> Self {
        Self { id, bytes: None }
    }

    /// Returns the tokens of an encoding whose offsets are in bytes.
    pub(crate) fn of(encoding: &Encoding) -> Vec<Self> {
        let marks = encoding.get_special_tokens_mask();
        let tokens = encoding.get_ids().iter().zip(encoding.get_offsets()).zip(marks);
        tokens
            .map(|((&id, &(start, end)), &mark)| Self { id, bytes: (mark == 0).then_some(start..end) })
            .collect()
    }
}

/// Returns the tokens of each word, as indices into `tokens`; `words` are byte ranges in ascending order. A token belongs to the word with
/// which it shares most bytes, in a tie to the first. A token that shares no bytes with any word, such as a single space or a special
/// token, belongs to none.
pub fn pieces_of(words: &[Range<usize>], tokens: &[PlacedToken]) -> Vec<Vec<usize>> {
    let mut pieces = vec![Vec::new(); words.len()];
    for (place, token) in tokens.iter().enumerate() {
        let Some(bytes) = &token.bytes else { continue };
        let shared =
            |word: &Range<usize>| bytes.end.min(word.end).saturating_sub(bytes.start.max(word.start));
        let first = words.partition_point(|word| word.end <= bytes.start);
        let near = words[first..].iter().take_while(|word| word.start < bytes.end).map(shared);
        // the first maximum
        let best = near
            .enumerate()
            .fold((0, 0), |best, (at, shared)| if shared > best.1 { (at, shared) } else { best });
        if best.1 > 0 {
            pieces[first + best.0].push(place);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier_tokenizer::ClassifierTokenizer;
    use crate::language_tokenizer::LanguageTokenizer;
    use crate::sentence_tokenizer::SentenceTokenizer;
    use crate::tokenizer::SubwordTokenizer;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    const TEXT: &str = "dogs don't bark at the naïve cats.";

    static SUBWORDS: LazyLock<SubwordTokenizer> =
        LazyLock::new(|| SubwordTokenizer::train([TEXT; 3].iter(), 290).unwrap());
    static BYTES: LazyLock<LanguageTokenizer> =
        LazyLock::new(|| LanguageTokenizer::train_bytes([TEXT; 3].iter(), 290).unwrap());
    static WORD_PIECES: LazyLock<ClassifierTokenizer> =
        LazyLock::new(|| ClassifierTokenizer::train([TEXT; 3].iter(), 40, 64).unwrap());

    fn token(bytes: Range<usize>) -> PlacedToken {
        PlacedToken { id: 7, bytes: Some(bytes) }
    }

    /// "do" and "n't", tokenised as " don" and "'t": " don" shares two bytes with the first word and one with the second.
    #[test]
    fn a_piece_belongs_to_the_word_that_it_shares_most_with() {
        let words = [2..4, 4..7, 8..9];
        let tokens =
            [PlacedToken::symbol(0), token(1..5), token(5..7), token(7..8), token(7..9), token(9..9)];
        assert_eq!(pieces_of(&words, &tokens), [vec![1], vec![2], vec![4]]);
        assert_eq!(pieces_of(&words, &[token(3..5)]), [vec![0], vec![], vec![]], "the first of two");
        assert_eq!(pieces_of(&[], &tokens), Vec::<Vec<usize>>::new());
    }

    fn all_tokenizers(text: &str) -> [Vec<PlacedToken>; 3] {
        [
            SUBWORDS.encode_placed(text).unwrap().unwrap(),
            BYTES.encode_placed(text).unwrap(),
            WORD_PIECES.encode_placed(text).unwrap(),
        ]
    }

    fn ids(tokens: &[PlacedToken]) -> Vec<u32> {
        tokens.iter().map(|token| token.id).collect()
    }

    proptest! {
        #[test]
        fn tokens_are_those_without_places_and_stand_in_the_text(text in "[a-eé '.\\u{1F415}]{0,14}") {
            let [subwords, bytes, word_pieces] = all_tokenizers(&text);
            prop_assert_eq!(ids(&subwords), SUBWORDS.encode(&text).unwrap());
            prop_assert_eq!(ids(&bytes), BYTES.encode(&text).unwrap());
            prop_assert_eq!(ids(&word_pieces), WORD_PIECES.encode(&text, None).unwrap().ids);
            for tokens in [subwords, bytes, word_pieces] {
                let places: Vec<Range<usize>> = tokens.iter().filter_map(|token| token.bytes.clone()).collect();
                prop_assert!(places.iter().all(|bytes| text.get(bytes.clone()).is_some()), "{:?}", places);
                prop_assert!(places.windows(2).all(|pair| pair[0].start <= pair[1].start), "{:?}", places);
            }
        }
    }

    /// The tokenizers add a special token at the end, none, and one at both ends.
    #[test]
    fn symbols_around_a_text_have_no_place() {
        let symbols = all_tokenizers(TEXT).map(|tokens| {
            let without = |token: &PlacedToken| token.bytes.is_none();
            [without(&tokens[0]), without(&tokens[1]), without(&tokens[tokens.len() - 1])]
        });
        assert_eq!(symbols, [[false, false, true], [false, false, false], [true, false, true]]);
    }
}
