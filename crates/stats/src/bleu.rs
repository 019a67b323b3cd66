//! BLEU from sufficient statistics, with sacreBLEU's numbers.
//!
//! Papineni et al. (2002), <https://aclanthology.org/P02-1040>; tokenisation, smoothing and signature follow Post (2018),
//! <https://aclanthology.org/W18-6319>, as implemented by `sacrebleu_rs`.

use std::borrow::Cow;

const ORDERS: usize = sacrebleu_rs::MAX_NGRAM_ORDER;

/// Counts of a segment for BLEU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BleuStatistics {
    /// Words of the hypothesis.
    pub hypothesis_length: u32,
    /// Words of the reference.
    pub reference_length: u32,
    /// n-grams of the hypothesis that match the reference, for n = 1 to 4.
    pub correct: [u32; ORDERS],
    /// n-grams of the hypothesis, for n = 1 to 4.
    pub total: [u32; ORDERS],
}

impl BleuStatistics {
    /// Builds the counts from lengths in words and matching n-grams: a segment of `length` words has `length` - n + 1 n-grams.
    pub fn new(hypothesis_length: u32, reference_length: u32, correct: [u32; ORDERS]) -> Self {
        let total = std::array::from_fn(|order| hypothesis_length.saturating_sub(order as u32));
        Self { hypothesis_length, reference_length, correct, total }
    }

    pub(crate) fn sum(segments: &[Self]) -> Self {
        let add =
            |one: [u32; ORDERS], other: [u32; ORDERS]| std::array::from_fn(|order| one[order] + other[order]);
        segments.iter().fold(Self::default(), |sum, own| Self {
            hypothesis_length: sum.hypothesis_length + own.hypothesis_length,
            reference_length: sum.reference_length + own.reference_length,
            correct: add(sum.correct, own.correct),
            total: add(sum.total, own.total),
        })
    }

    pub(crate) fn counts(&self) -> [f64; 2 + 2 * ORDERS] {
        let [c1, c2, c3, c4] = self.correct;
        let [t1, t2, t3, t4] = self.total;
        [self.hypothesis_length, self.reference_length, c1, c2, c3, c4, t1, t2, t3, t4].map(f64::from)
    }
}

/// Returns corpus BLEU in points, 0 to 100, with exponential smoothing and all four orders; 0 if no word matches.
pub(crate) fn score(sums: &[f64]) -> f64 {
    let whole = |sums: &[f64]| sums.iter().map(|&sum| sum as i64).collect::<Vec<_>>();
    let (correct, total) = (whole(&sums[2..2 + ORDERS]), whole(&sums[2 + ORDERS..]));
    sacrebleu_rs::compute_bleu(correct, total, sums[0] as i64, sums[1] as i64, "exp", None, false, ORDERS)
        .score
}

/// Tokenizer of sacreBLEU, apart from the Japanese, Korean and SentencePiece tokenizers, which need extra files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BleuTokenizer {
    /// Words and ASCII punctuation, as WMT does: `13a`.
    #[default]
    Wmt,
    /// Words and the punctuation of all scripts: `intl`.
    International,
    /// Chinese characters one by one, all else nearly as `13a` does: `zh`.
    Chinese,
    /// Characters one by one: `char`.
    Characters,
    /// Words between white space, for text that is already tokenized: `none`.
    None,
}

impl BleuTokenizer {
    /// All tokenizers.
    pub const ALL: [Self; 5] = [Self::Wmt, Self::International, Self::Chinese, Self::Characters, Self::None];
    /// Their sacreBLEU names, in the order of `ALL`.
    pub const NAMES: [&'static str; 5] = ["13a", "intl", "zh", "char", "none"];

    /// Returns its sacreBLEU name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the tokenizer with this name; `None` if it is unknown or not supported.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tokenizer| tokenizer.name() == name)
    }

    /// Returns true if this letter is a separate token next to any other letter.
    pub fn separates(self, letter: char) -> bool {
        match self {
            Self::Characters => true,
            Self::Chinese => is_chinese(letter),
            Self::Wmt | Self::International | Self::None => false,
        }
    }
}

/// Counts the n-grams of segments as sacreBLEU does, with upper and lower case distinct.
#[derive(Clone, Default)]
pub struct Bleu {
    metric: sacrebleu_rs::Bleu,
    tokenizer: BleuTokenizer,
}

impl Bleu {
    /// Counts plain text, tokenised as in WMT (`tok:13a`).
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts text with this tokenizer.
    pub fn of(tokenizer: BleuTokenizer) -> Self {
        // `sacrebleu_rs` treats unknown names as `13a`, and has no `zh`
        let name = if tokenizer == BleuTokenizer::Chinese { BleuTokenizer::None } else { tokenizer }.name();
        Self { metric: sacrebleu_rs::Bleu { tokenize: name.to_owned(), ..Default::default() }, tokenizer }
    }

    /// Returns the statistics of a hypothesis and its reference.
    pub fn segment(&self, hypothesis: &str, reference: &str) -> BleuStatistics {
        self.segment_of(hypothesis, &[reference])
    }

    /// Returns the statistics of a hypothesis and several references: matches of an n-gram are limited to its maximum count in a reference,
    /// and the reference length is the one closest to the hypothesis length.
    pub fn segment_of(&self, hypothesis: &str, references: &[&str]) -> BleuStatistics {
        let prepared = |text| match self.tokenizer {
            BleuTokenizer::Chinese => chinese(&with_python_spaces(text)),
            _ => with_python_spaces(text).into_owned(),
        };
        let references: Vec<String> = references.iter().map(|text| prepared(text)).collect();
        let counted = self.metric.sentence_score(&prepared(hypothesis), &references);
        BleuStatistics {
            hypothesis_length: count(counted.sys_len),
            reference_length: count(counted.ref_len),
            correct: std::array::from_fn(|n| count(counted.counts[n])),
            total: std::array::from_fn(|n| count(counted.totals[n])),
        }
    }

    /// Returns sacreBLEU's signature, which names everything that changes the score.
    pub fn signature(&self) -> String {
        let signature = self.metric.signature(1);
        match self.tokenizer {
            BleuTokenizer::Chinese => signature.replace("|tok:none|", "|tok:zh|"),
            _ => signature,
        }
    }
}

/// Tokenizes as sacreBLEU's `zh`: separates Chinese characters and ASCII punctuation; points and commas unless within a number, dashes only
/// after a digit. Tokens are separated by white space.
fn chinese(line: &str) -> String {
    let is_punctuation = |letter: char| letter.is_ascii_punctuation() && !"'-.,".contains(letter);
    let mut letters = Vec::new();
    for letter in line.trim().chars() {
        match is_chinese(letter) || is_punctuation(letter) {
            true => letters.extend([' ', letter, ' ']),
            false => letters.push(letter),
        }
    }
    let (digit, point) = (|letter: char| letter.is_ascii_digit(), |letter| matches!(letter, '.' | ','));
    let letters = replaced(&letters, |a, b| (!digit(a) && point(b)).then_some([a, ' ', b, ' ']));
    let letters = replaced(&letters, |a, b| (point(a) && !digit(b)).then_some([' ', a, ' ', b]));
    replaced(&letters, |a, b| (digit(a) && b == '-').then_some([a, ' ', b, ' '])).into_iter().collect()
}

/// Replaces pairs of neighbouring letters from left to right, without overlap.
fn replaced(letters: &[char], replacement: impl Fn(char, char) -> Option<[char; 4]>) -> Vec<char> {
    let (mut result, mut rest) = (Vec::with_capacity(2 * letters.len()), letters);
    while let [first, others @ ..] = rest {
        match others.split_first().and_then(|(&second, behind)| Some((replacement(*first, second)?, behind)))
        {
            Some((four, behind)) => {
                result.extend(four);
                rest = behind;
            }
            None => {
                result.push(*first);
                rest = others;
            }
        }
    }
    result
}

/// Returns true for characters that sacreBLEU counts as Chinese: Han, full-width forms, CJK punctuation, bopomofo and, since it compares
/// with the text "\u20000" instead of U+20000, all symbols from U+2001 to U+2A6D, but no Han beyond U+FFFF.
fn is_chinese(letter: char) -> bool {
    matches!(letter,
        '\u{2001}'..='\u{2a6d}' | '\u{2e80}'..='\u{2fdf}' | '\u{2ff0}'..='\u{303f}' | '\u{3100}'..='\u{312f}'
        | '\u{31a0}'..='\u{31bf}' | '\u{31c0}'..='\u{31ef}' | '\u{3200}'..='\u{4db5}' | '\u{4e00}'..='\u{9fbb}'
        | '\u{f900}'..='\u{fa2d}' | '\u{fa30}'..='\u{fa6a}' | '\u{fa70}'..='\u{fad9}' | '\u{fe10}'..='\u{fe1f}'
        | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}')
}

/// Replaces U+001C to U+001F (information separators) with spaces: Python counts them as white space, Unicode and Rust do not.
fn with_python_spaces(text: &str) -> Cow<'_, str> {
    let separates = |letter| ('\u{1c}'..='\u{1f}').contains(&letter);
    if text.contains(separates) { text.replace(separates, " ").into() } else { text.into() }
}

fn count(value: i64) -> u32 {
    u32::try_from(value).expect("a segment has from 0 to 2^32 - 1 words")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored statistics leave out the totals, which follow from the segment's length.
    #[test]
    fn totals_follow_from_the_length() {
        for text in ["", "one", "two words", "now three words", "a b c d e f g"] {
            let own = Bleu::new().segment(text, "a b c d");
            let rebuilt = BleuStatistics::new(own.hypothesis_length, own.reference_length, own.correct);
            assert_eq!(rebuilt, own, "{text:?}");
        }
    }

    /// As printed by sacreBLEU 2.6.0, apart from the number of bootstrap resamples.
    #[test]
    fn signature_names_case_tokenizer_and_smoothing() {
        assert_eq!(Bleu::new().signature(), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
        for (tokenizer, name) in BleuTokenizer::ALL.into_iter().zip(BleuTokenizer::NAMES) {
            assert!(Bleu::of(tokenizer).signature().contains(&format!("|tok:{name}|")), "{name}");
            assert_eq!(BleuTokenizer::named(name), Some(tokenizer));
        }
        assert_eq!(BleuTokenizer::named("ja-mecab"), None);
    }
}
