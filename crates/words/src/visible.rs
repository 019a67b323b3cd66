//! Texts from files and arguments, made safe for terminals.
use std::error::Error;
use std::iter;

/// Replaces control characters other than line breaks with escapes, such as `\u{1b}`.
pub fn visible(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        match character {
            '\n' => shown.push('\n'),
            _ if is_steering(character) => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Makes a text [`visible()`] on one line: line ends and tabs become spaces, other line breaks escapes.
pub fn one_line(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    visible(&lines.join(" ").replace('\t', " "))
}

/// Capitalises the first letter.
pub fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// Joins the message of an error and its sources with colons.
pub fn in_full(error: &dyn Error) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Maximum number of characters of an external text in a message.
const MOST: usize = 200;

/// Returns the beginning of an external text, with line breaks as escapes.
pub fn excerpt(text: &str) -> String {
    let rest = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    visible(&text.chars().take(MOST).collect::<String>()).replace('\n', "\\n") + rest
}

/// Returns true for control characters, line separators, direction marks, invisible characters, and the two that XML forbids. Joiners stay,
/// since Persian and emoji need them.
fn is_steering(character: char) -> bool {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let has_no_sign = matches!(character, '\u{200b}' | '\u{2060}' | '\u{feff}');
    let breaks_or_forbidden = matches!(character, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}');
    character.is_control() || turns || has_no_sign || breaks_or_forbidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_alone_becomes_a_capital() {
        assert_eq!(["base BLEU", "\u{e4}rger", ""].map(capitalised), ["Base BLEU", "\u{c4}rger", ""]);
    }

    #[test]
    fn control_characters_are_escaped_and_long_texts_cut() {
        assert_eq!(visible("a\u{1b}[2Jb\n\u{202e}c\td\u{ffff}"), "a\\u{1b}[2Jb\n\\u{202e}c\\td\\u{ffff}");
        assert_eq!(one_line("a\nb \r\nc\td"), "a b c d");
        assert_eq!(one_line("a\rb\u{2028}c \u{9b}0m"), r"a\rb\u{2028}c \u{9b}0m");
        assert_eq!(one_line("`Straße`, 文: \"…\" \u{2264} 1"), "`Straße`, 文: \"…\" \u{2264} 1");
        assert_eq!(excerpt("a\nb\u{7}é \u{200b}"), r"a\nb\u{7}é \u{200b}");
        assert_eq!(excerpt(&"é".repeat(MOST)), "é".repeat(MOST));
        assert_eq!(excerpt(&"é".repeat(1 << 20)), "é".repeat(MOST) + "…");
    }
}
