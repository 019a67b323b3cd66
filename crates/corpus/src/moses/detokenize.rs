//! Text out of words and punctuation: `detokenizer.perl`.
use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::characters::CHARACTERS;
use super::tokenize::ESCAPES;
use super::{Moses, is_space, words};

impl Moses {
    /// The text of words and punctuation marks as [`tokenize`](Self::tokenize) gives them.
    pub fn detokenize<S: AsRef<str>>(&self, tokens: &[S]) -> String {
        let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let text = unescape(&format!(" {} ", tokens.join(" ")).replace(" @-@ ", "-"));
        let tokens: Vec<&str> = words(&text).collect();
        let mut joined = Joined::default();
        for (place, token) in tokens.iter().enumerate() {
            let previous = place.checked_sub(1).map(|place| tokens[place]);
            let next = tokens.get(place + 1).copied();
            let placing = self.placing(token, previous, next, &mut joined.quotes);
            joined.push(token, placing);
        }
        joined.text.trim_matches(is_space).to_owned()
    }

    /// Spaces beside a token.
    fn placing(
        &self,
        token: &str,
        previous: Option<&str>,
        next: Option<&str>,
        quotes: &mut HashMap<String, bool>,
    ) -> Placing {
        let language = self.language.as_str();
        let first = token.chars().next();
        if first.is_some_and(is_cjk) {
            let follows = previous.and_then(|token| token.chars().last()).is_some_and(is_cjk);
            return if follows { Placing::Left } else { Placing::Apart };
        }
        if token.chars().all(|letter| "([{¿¡".contains(letter) || CHARACTERS.currency.contains(letter)) {
            return Placing::Right;
        }
        if token.chars().all(|letter| r",.?!:;\%}])".contains(letter)) {
            let wide = language == "fr" && ["?", "!", ":", ";", "\\", "%"].contains(&token);
            return if wide { Placing::Away } else { Placing::Left };
        }
        if language == "en" && previous.is_some() && is_english_ending(token) {
            return Placing::Left;
        }
        if language == "fr" && is_elided(token) && next.is_some_and(|next| next.starts_with(is_alphabetic)) {
            return Placing::Right;
        }
        if token.chars().all(|letter| "'\"„“`".contains(letter)) {
            return self.quote(token, previous, quotes);
        }
        Placing::Apart
    }

    /// Quotation marks open and close in turn.
    fn quote(&self, token: &str, previous: Option<&str>, quotes: &mut HashMap<String, bool>) -> Placing {
        let kind = if token.chars().all(|letter| "„“".contains(letter)) { "\"" } else { token };
        let open = quotes.entry(kind.to_owned()).or_default();
        let possessive =
            self.language == "en" && token == "'" && previous.is_some_and(|word| word.ends_with('s'));
        if !*open && possessive {
            return Placing::Left;
        }
        *open = !*open;
        if *open { Placing::Right } else { Placing::Left }
    }
}

/// Place of a token beside its neighbours.
#[derive(Clone, Copy, PartialEq)]
enum Placing {
    Apart,
    /// Apart from what comes before it, even if that is joined to what comes next.
    Away,
    /// Joined to what comes before it.
    Left,
    /// Joined to what comes after it.
    Right,
}

#[derive(Default)]
struct Joined {
    text: String,
    /// Kinds of quotation marks, with true if they are open.
    quotes: HashMap<String, bool>,
    /// True if the last token is joined to the next.
    is_open: bool,
}

impl Joined {
    fn push(&mut self, token: &str, placing: Placing) {
        let is_joined = placing == Placing::Left || self.is_open && placing != Placing::Away;
        if !is_joined {
            self.text.push(' ');
        }
        self.text.push_str(token);
        self.is_open = placing == Placing::Right;
    }
}

fn is_alphabetic(letter: char) -> bool {
    CHARACTERS.alphabetic.contains(letter)
}

/// As in "'s".
fn is_english_ending(token: &str) -> bool {
    token.strip_prefix('\'').is_some_and(|rest| rest.starts_with(is_alphabetic))
}

/// As "l'".
fn is_elided(token: &str) -> bool {
    token.strip_suffix('\'').is_some_and(|rest| rest.ends_with(is_alphabetic))
}

/// Letters of Chinese, Japanese, Korean and their like.
fn is_cjk(letter: char) -> bool {
    const RANGES: [RangeInclusive<char>; 11] = [
        '\u{1100}'..='\u{11ff}',
        '\u{2e80}'..='\u{a4cf}',
        '\u{a840}'..='\u{a87f}',
        '\u{ac00}'..='\u{d7af}',
        '\u{f900}'..='\u{faff}',
        '\u{fe30}'..='\u{fe4f}',
        '\u{ff65}'..='\u{ffdc}',
        '\u{17000}'..='\u{18aff}',
        '\u{1b000}'..='\u{1b12f}',
        '\u{1b170}'..='\u{1b2ff}',
        '\u{20000}'..='\u{2ffff}',
    ];
    RANGES.iter().any(|range| range.contains(&letter))
}

/// The reverse of escaping; older versions of Moses escaped with names.
fn unescape(text: &str) -> String {
    let older = [("|", "&bar;"), ("[", "&bra;"), ("]", "&ket;")];
    // `&amp;` comes last, so that "&amp;lt;" becomes "&lt;".
    let escapes = older.iter().chain(ESCAPES.iter().rev());
    escapes.fold(text.to_owned(), |text, (plain, escaped)| text.replace(escaped, plain))
}
