//! Text of files in messages.

/// The most characters of a foreign text that a message repeats.
const MOST: usize = 120;

/// `text` as a message may show it: in one line, control characters escaped, and not at any length.
pub(crate) fn shown(text: &str) -> String {
    let rest = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    text.chars().take(MOST).map(escaped).collect::<String>() + rest
}

fn escaped(letter: char) -> String {
    // These are harmless, and escapes of theirs would only be hard to read.
    if matches!(letter, '"' | '\'' | '\\') { letter.into() } else { letter.escape_debug().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_long_text_is_cut() {
        assert_eq!(shown("a\u{1b}[31m\nb\u{202e}c"), r"a\u{1b}[31m\nb\u{202e}c");
        assert_eq!(shown(r#"["é", 'C:\x']"#), r#"["é", 'C:\x']"#);
        assert_eq!(shown(&"é".repeat(MOST)), "é".repeat(MOST));
        assert_eq!(shown(&"é".repeat(MOST + 1)), "é".repeat(MOST) + "…");
    }
}
