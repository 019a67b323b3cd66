//! Separates words from punctuation, like `tokenizer.perl -a`, with markup escaped.
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::characters::CHARACTERS;
use super::{Moses, Rule, SPACE, apply, is_space, words};

impl Moses {
    /// Returns the words and punctuation marks of a text; a dash within a word becomes ` @-@ `, and `&`, `|`, `<`, `>`, `'`, `"`,
    /// `[`, `]` are written as `&amp;` and so on.
    pub fn tokenize(&self, text: &str) -> Vec<String> {
        let text = apply([&SHARED.white_space, &SHARED.control], text);
        let text = apply([&SHARED.others], text.trim_matches(is_space));
        let text = split_dashes(&text);
        let text = hide_multiple_stops(&text);
        let text = apply(&self.before_full_stops, &text);
        let text = self.split_full_stops(&text);
        let text = apply([&SHARED.last_stop], &text);
        let text = show_multiple_stops(&text);
        words(&escape(&text)).map(str::to_owned).collect()
    }

    /// Inserts a space before the full stop of a word, but not of an abbreviation or before a lowercase letter.
    fn split_full_stops(&self, text: &str) -> String {
        let mut tokens = Vec::new();
        let mut rest = words(text).peekable();
        while let Some(word) = rest.next() {
            let next = rest.peek().and_then(|next| next.chars().next());
            match word.strip_suffix('.').filter(|stem| !stem.is_empty()) {
                Some(stem) if !self.is_abbreviation(stem, next) => tokens.extend([stem, "."]),
                _ => tokens.push(word),
            }
        }
        tokens.join(" ")
    }

    /// Returns true if the full stop after `stem` belongs to it, `next` being the letter after them.
    fn is_abbreviation(&self, stem: &str, next: Option<char>) -> bool {
        let is_letter =
            |letter| CHARACTERS.alphabetic.contains(letter) || CHARACTERS.joining.contains(letter);
        let has_inner_stop = stem.contains('.') && stem.chars().any(is_letter);
        has_inner_stop
            || self.prefixes.always(stem)
            || next.is_some_and(|letter| CHARACTERS.lowercase.contains(letter))
            || self.prefixes.before_number(stem) && next.is_some_and(|letter| letter.is_ascii_digit())
    }
}

struct Shared {
    white_space: Rule,
    control: Rule,
    others: Rule,
    dash: Regex,
    last_stop: Rule,
}

static SHARED: LazyLock<Shared> = LazyLock::new(|| {
    let alphanumeric = CHARACTERS.alphanumeric.bracket() + &CHARACTERS.joining.bracket();
    Shared {
        white_space: Rule::new(&format!("[{SPACE}]+"), " "),
        control: Rule::new(r"[\x00-\x1f]", ""),
        others: Rule::new(&format!(r"([^{alphanumeric}\s.'`,\-])"), " $1 "),
        dash: Regex::new(&format!("[{alphanumeric}]-")).expect("a pattern of this module"),
        last_stop: Rule::new(r"\.' ?$", " . ' "),
    }
});

/// Returns rules that split off commas, except between numbers, and then apostrophes as the language requires.
pub(super) fn rules(language: &str) -> Vec<Rule> {
    let number = CHARACTERS.number.bracket();
    let letter = CHARACTERS.alphabetic.bracket() + &CHARACTERS.joining.bracket();
    let mut rules = vec![
        Rule::new(&format!("([^{number}]),"), "$1 , "),
        Rule::new(&format!(",([^{number}])"), " , $1"),
        Rule::new(&format!("([{number}]),$"), "$1 , "),
    ];
    let apart = "$1 ' $2";
    let apostrophes = match language {
        "en" => vec![
            Rule::new(&format!("([^{letter}])'([^{letter}])"), apart),
            Rule::new(&format!("([^{letter}{number}])'([{letter}])"), apart),
            Rule::new(&format!("([{letter}])'([^{letter}])"), apart),
            Rule::new(&format!("([{letter}])'([{letter}])"), "$1 '$2"),
            Rule::new(&format!("([{number}])'(s)"), "$1 '$2"),
        ],
        "fr" => vec![
            Rule::new(&format!("([^{letter}])'([^{letter}])"), apart),
            Rule::new(&format!("([^{letter}])'([{letter}])"), apart),
            Rule::new(&format!("([{letter}])'([^{letter}])"), apart),
            Rule::new(&format!("([{letter}])'([{letter}])"), "$1' $2"),
        ],
        _ => vec![Rule::new("'", " ' ")],
    };
    rules.extend(apostrophes);
    rules
}

/// Replaces a dash between letters or numbers with ` @-@ `.
fn split_dashes(text: &str) -> String {
    let replaced = SHARED.dash.replace_all(text, |found: &Captures| {
        let found = found.get(0).expect("the whole match");
        let is_inner =
            |letter| CHARACTERS.alphanumeric.contains(letter) || CHARACTERS.joining.contains(letter);
        if text[found.end()..].starts_with(is_inner) {
            found.as_str().replace('-', " @-@ ")
        } else {
            found.as_str().to_owned()
        }
    });
    replaced.into_owned()
}

static STOPS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\.{2,}").expect("a pattern of this module"));
static HIDDEN_STOPS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("(?:DOT)+MULTI").expect("a pattern of this module"));

/// Replaces two or more full stops with a separate word of letters, so that later rules leave them together.
fn hide_multiple_stops(text: &str) -> String {
    let replaced = STOPS.replace_all(text, |found: &Captures| {
        let found = found.get(0).expect("the whole match");
        let after = if found.end() < text.len() { " " } else { "" };
        format!(" {}MULTI{after}", "DOT".repeat(found.len()))
    });
    replaced.into_owned()
}

/// Reverses [`hide_multiple_stops`]; such a word in the text itself also becomes full stops.
fn show_multiple_stops(text: &str) -> String {
    let stops = |found: &Captures| ".".repeat((found[0].len() - "MULTI".len()) / "DOT".len());
    HIDDEN_STOPS.replace_all(text, stops).into_owned()
}

/// `&` comes first, since the other escapes contain it.
pub(super) const ESCAPES: [(&str, &str); 8] = [
    ("&", "&amp;"),
    ("|", "&#124;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ("'", "&apos;"),
    ("\"", "&quot;"),
    ("[", "&#91;"),
    ("]", "&#93;"),
];

fn escape(text: &str) -> String {
    ESCAPES.iter().fold(text.to_owned(), |text, (plain, escaped)| text.replace(plain, escaped))
}
