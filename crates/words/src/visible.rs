//! Texts from files and arguments, such that they cannot steer a terminal.

/// `text` with control characters other than line breaks shown as escapes, `\u{1b}` for example.
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

/// The same on one line.
pub fn one_line(text: &str) -> String {
    visible(&text.replace(['\n', '\r'], " "))
}

/// `text` with a capital letter.
pub fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// The most characters of a foreign text that a message repeats.
const MOST: usize = 120;

/// The beginning of a foreign text, on one line.
pub fn excerpt(text: &str) -> String {
    let rest = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    one_line(&text.chars().take(MOST).collect::<String>()) + rest
}

/// Control characters, those that turn the direction of writing, and the two that XML forbids.
fn is_steering(character: char) -> bool {
    let turns = ['\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}'];
    character.is_control()
        || turns.contains(&character)
        || ('\u{2066}'..='\u{2069}').contains(&character)
        || ['\u{fffe}', '\u{ffff}'].contains(&character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_alone_becomes_a_capital() {
        assert_eq!(["base BLEU", "\u{e4}rger", ""].map(capitalised), ["Base BLEU", "\u{c4}rger", ""]);
    }

    #[test]
    fn nothing_reaches_the_terminal_that_steers_it() {
        assert_eq!(visible("a\u{1b}[2Jb\n\u{202e}c\td\u{ffff}"), "a\\u{1b}[2Jb\n\\u{202e}c\\td\\u{ffff}");
        assert_eq!(excerpt("a\u{1b}[31m\nb"), "a\\u{1b}[31m b");
        assert_eq!(excerpt(&"é".repeat(MOST)), "é".repeat(MOST));
        assert_eq!(excerpt(&"é".repeat(MOST + 1)), "é".repeat(MOST) + "…");
        assert_eq!(one_line("two\r\nlines \u{2264} 1"), "two  lines \u{2264} 1");
    }
}
