//! Text of foreign files in messages: names and values that a terminal must not obey, and that may be of any length.

/// Characters of a foreign text that a message shows at most.
const LONGEST: usize = 200;

/// The text as one line that no terminal obeys: line breaks and tabs become spaces, other control characters escapes.
pub fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    escaped(&lines.join(" ").replace('\t', " "))
}

/// The beginning of a foreign text, control characters and line breaks escaped.
pub(crate) fn excerpt(text: &str) -> String {
    let shown: String = text.chars().take(LONGEST).collect();
    let rest = if text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    escaped(&shown) + rest
}

fn escaped(text: &str) -> String {
    let mut line = String::new();
    for character in text.chars() {
        if is_obeyed(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Control characters, line separators, and marks that turn the direction of writing.
fn is_obeyed(character: char) -> bool {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_that_no_terminal_obeys() {
        assert_eq!(one_line("a\nb\r\nc\td"), "a b c d");
        assert_eq!(
            one_line("red \u{1b}[31m, \u{9b}0m, \u{202e}txet"),
            r"red \u{1b}[31m, \u{9b}0m, \u{202e}txet"
        );
        assert_eq!(one_line("a\rb\u{2028}c"), r"a\rb\u{2028}c");
        assert_eq!(one_line("`Straße`, 文: \"…\""), "`Straße`, 文: \"…\"");
    }

    #[test]
    fn foreign_text_is_escaped_and_shortened() {
        assert_eq!(excerpt("a\nb\u{7}é"), r"a\nb\u{7}é");
        let long = excerpt(&"é".repeat(1 << 20));
        assert_eq!((long.chars().count(), long.ends_with("é…")), (LONGEST + 1, true));
        assert_eq!(excerpt(&"é".repeat(LONGEST)), "é".repeat(LONGEST));
    }
}
