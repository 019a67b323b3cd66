//! Checks of reference translations: whether spaces separate words, and whether the texts are plain.
use std::fmt;

use words::count;

/// A script that is written without spaces between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Script {
    Han,
    Kana,
    Thai,
    Lao,
    Khmer,
    Myanmar,
}

impl Script {
    const ALL: [Self; 6] = [Self::Han, Self::Kana, Self::Thai, Self::Lao, Self::Khmer, Self::Myanmar];

    /// Returns the script of a letter; `None` if spaces separate its words, as in Korean.
    fn of(letter: char) -> Option<Self> {
        match letter {
            '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{323af}' => Some(Self::Han),
            '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => Some(Self::Kana),
            '\u{e01}'..='\u{e5b}' => Some(Self::Thai),
            '\u{e81}'..='\u{edf}' => Some(Self::Lao),
            '\u{1780}'..='\u{17ff}' => Some(Self::Khmer),
            '\u{1000}'..='\u{109f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}' => {
                Some(Self::Myanmar)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Han => "Han",
            Self::Kana => "kana",
            Self::Thai => "Thai",
            Self::Lao => "Lao",
            Self::Khmer => "Khmer",
            Self::Myanmar => "Myanmar",
        })
    }
}

/// Maximum mean letters per word of a segmented text in such a script: Chinese words have 1.5 letters, Thai ones 4 on average.
const LETTERS_OF_WORD: usize = 6;

/// Returns the scripts of most letters, the most frequent first, if they are written without spaces and the tokenizer does not separate
/// their letters. `None` also for texts that are already segmented into words.
///
/// - `separates`: returns true for letters that become separate tokens
pub(super) fn without_spaces(references: &[String], separates: impl Fn(char) -> bool) -> Option<Vec<Script>> {
    let mut found = Script::ALL.map(|script| (0, script));
    let mut letters = 0;
    for letter in references.iter().flat_map(|text| text.chars()) {
        match Script::of(letter) {
            Some(script) => {
                letters += 1;
                found[script as usize].0 += usize::from(!separates(letter));
            }
            None => letters += usize::from(letter.is_alphabetic()),
        }
    }
    let fused: usize = found.iter().map(|(letters, _)| letters).sum();
    let words: usize = references.iter().map(|text| text.split_whitespace().count()).sum();
    let is_cut = words > 2 * references.len() && letters <= LETTERS_OF_WORD * words;
    if 2 * fused <= letters || is_cut {
        return None;
    }
    found.sort_by(|left, right| right.cmp(left));
    // a few letters of another script, such as names, are not worth naming
    Some(found.into_iter().filter(|(letters, _)| 20 * letters > fused).map(|(_, script)| script).collect())
}

/// Returns one clause for each sign that the texts are not plain; empty for plain texts.
///
/// - `spaces_count`: whether spaces before punctuation change the score
pub(super) fn not_plain(references: &[String], spaces_count: bool) -> Vec<String> {
    let of_all = |some: usize| format!("{some} of {}", count(references.len(), "reference"));
    let with = |is_sign: fn(&str) -> bool| {
        let found = |text: &String| text.split_whitespace().find(|word| is_sign(word)).map(str::to_owned);
        let mut found = references.iter().filter_map(found);
        let example = found.next()?;
        let some = 1 + found.count();
        // plain text may have some, such as a sentence about HTML
        (some > 1 && 50 * some > references.len()).then(|| (words::excerpt(&example), some))
    };
    let mut signs = Vec::new();
    if let Some((example, some)) = with(is_piece) {
        signs.push(format!("subwords such as `{example}` are not joined in {}", of_all(some)));
    }
    if let Some((example, some)) = with(is_escaped) {
        signs.push(format!("characters are escaped as in `{example}` in {}", of_all(some)));
    }
    if spaces_count {
        let mut marks = [0, 0];
        for text in references {
            for word in text.split_whitespace() {
                if word.ends_with(POINTS) && !word.ends_with("..") {
                    marks[usize::from(word.chars().count() > 1)] += 1;
                }
            }
        }
        let [apart, attached] = marks;
        // plain text has occasional typos, and tokenized text has abbreviations
        if apart > 1 && 4 * apart > apart + attached {
            signs.push(format!("a space precedes {apart} of {} full stops and commas", apart + attached));
        }
    }
    signs
}

/// Punctuation that no language precedes with a space; French puts one before `?`, `!`, `:` and `;`.
const POINTS: [char; 5] = ['.', ',', '。', '，', '、'];

/// Returns true for pieces of subword tokenizers: `mar@@`, `▁market` and `##ket`, and for the joints of Moses' `@-@`.
fn is_piece(word: &str) -> bool {
    let begins_with_letter = |rest: &str| rest.starts_with(char::is_alphabetic);
    word.len() > 2 && (word.ends_with("@@") || (word.starts_with('@') && word.ends_with('@')))
        || word.contains('\u{2581}')
        || word.strip_prefix("##").is_some_and(begins_with_letter)
}

/// Returns true if a word has an XML entity: `&apos;`, `&#124;`, `&#x27;`.
fn is_escaped(word: &str) -> bool {
    let is_entity = |rest: &str| match rest.split_once(';').map(|(name, _)| name) {
        Some("amp" | "apos" | "quot" | "lt" | "gt" | "nbsp" | "bar" | "bra" | "ket") => true,
        Some(code) => match code.strip_prefix('#') {
            Some(code) => {
                let (digits, radix) = code.strip_prefix(['x', 'X']).map_or((code, 10), |hex| (hex, 16));
                !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
            }
            None => false,
        },
        None => false,
    };
    word.split('&').skip(1).any(is_entity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn scripts_without_spaces_are_found_unless_their_letters_are_tokens_or_words_are_apart() {
        use Script::{Han, Kana, Khmer, Lao, Myanmar, Thai};
        let han = |letter| Script::of(letter) == Some(Han);
        let none = |_| false;
        for (text, expected) in [
            (&["我爱北京天安门。", "他有3本书, OK."][..], Some(vec![Han])),
            (&["一只狗。"], Some(vec![Han])),
            (&["犬が庭で寝る。", "彼はコーヒーを飲む。"], Some(vec![Kana, Han])),
            (&["สุนัขนอนอยู่ในสวน แมวกินปลา"], Some(vec![Thai])),
            (&["ໝານອນຢູ່ໃນສວນ"], Some(vec![Lao])),
            (&["ឆ្កែដេកក្នុងសួន"], Some(vec![Khmer])),
            (&["ခွေးအိပ်နေသည်"], Some(vec![Myanmar])),
            (&["개가 강을 본다.", "그는 책을 읽는다."], None),
            (&["The word 狗 means dog.", "A man sleeps."], None),
            (&["我 爱 北京 天安门 。", "他 有 三 本 书 。"], None),
            (&["1 2 3", "."], None),
            (&[], None),
        ] {
            assert_eq!(without_spaces(&lines(text), none), expected, "{text:?}");
        }
        assert_eq!(without_spaces(&lines(&["我爱北京天安门。"]), han), None);
        assert_eq!(without_spaces(&lines(&["わたしはいぬがすきです"]), han), Some(vec![Kana]));
        assert_eq!(without_spaces(&lines(&["สุนัขนอนอยู่ในสวน"]), |_| true), None);
    }

    #[test]
    fn tokenized_and_escaped_texts_are_told_from_plain_ones() {
        let signs = |text: &[&str]| not_plain(&lines(text), true);
        for plain in [
            &["A dog sees it. He says \"no\", but it's 3.5 m.", "Mr. Smith, 5 p.m."][..],
            &["Le chien dort ?", "Quoi : un chat ; deux !", "Il dort, elle mange."],
            &["It follows...", "He waits ... and waits...", "Well ..."],
            &["Tom & Jerry; R&D", "AT&T; a &b; &#; &#x;", "mail a@b.c to @ann # 1 ## two"],
            &["A slip , here.", "None here, none there.", "Not here."],
            &["我爱北京天安门，他也爱。", "他有书、笔。"],
            &["One writes &amp; in HTML.", "All others do not.", "No."],
            &[],
        ] {
            assert!(signs(plain).is_empty(), "{plain:?}: {:?}", signs(plain));
        }
        for (text, expected) in [
            (
                &["A dog sees it .", "It 's a cat , he says ."][..],
                "a space precedes 3 of 3 full stops and commas",
            ),
            (&["我 爱 北京 。", "他 有 书 、 笔 。"], "a space precedes 3 of 3 full stops and commas"),
            (
                &["the mar@@ ket", "a bro@@ ther"],
                "subwords such as `mar@@` are not joined in 2 of 2 references",
            ),
            (
                &["▁the ▁market", "▁a ▁bro ther"],
                "subwords such as `▁the` are not joined in 2 of 2 references",
            ),
            (
                &["the mar ##ket", "bro ##ther"],
                "subwords such as `##ket` are not joined in 2 of 2 references",
            ),
            (
                &["a well @-@ known cat", "10 @,@ 5"],
                "subwords such as `@-@` are not joined in 2 of 2 references",
            ),
            (
                &["it &apos;s a", "can &apos;t", "a"],
                "characters are escaped as in `&apos;s` in 2 of 3 references",
            ),
            (&["a &#124; b", "&quot;c&quot;"], "characters are escaped as in `&#124;` in 2 of 2 references"),
            (&["a&amp;b", "&#x27;"], "characters are escaped as in `a&amp;b` in 2 of 2 references"),
        ] {
            assert_eq!(signs(text), [expected], "{text:?}");
        }
        assert_eq!(signs(&["it &apos;s a bro@@ ther .", "can &apos;t be bro@@ thers ."]).len(), 3);
        assert!(not_plain(&lines(&["A dog sees it .", "A cat ."]), false).is_empty());
    }
}
