//! Text of files and servers in messages.

/// The most characters of foreign text that a message repeats.
const MOST: usize = 120;

/// The most names that a message lists.
const MOST_NAMES: usize = 30;

/// `text` as a message may show it: in one line, with control characters escaped, and not at any length.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST).flat_map(escaped).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

/// Names of a foreign file as a message may list them: not more than the first few.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut names = names.into_iter().map(|name| format!("`{}`", shown(name)));
    let first: Vec<String> = names.by_ref().take(MOST_NAMES).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn escaped(letter: char) -> impl Iterator<Item = char> {
    // These are harmless, and escapes of theirs would only be hard to read.
    let plain = matches!(letter, '"' | '\'' | '\\');
    let escape = (!plain).then(|| letter.escape_debug());
    plain.then_some(letter).into_iter().chain(escape.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_other_text_stays() {
        assert_eq!(shown("a\u{1b}[31m\nb\u{202e}c"), r"a\u{1b}[31m\nb\u{202e}c");
        for text in ["Ça « alors » 犬 🐕", r#"say "no" or 'C:\x'"#] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (1..=31).map(|number| number.to_string()).collect();
        assert_eq!(listed(&names[..2]), "`1`, `2`");
        assert!(listed(&names[..30]).ends_with("`29`, `30`"));
        assert!(listed(&names).ends_with("`29`, `30` and 1 more"));
        assert_eq!(listed(&["a\n".to_owned()]), r"`a\n`");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(shown(&"é".repeat(MOST)), "é".repeat(MOST));
        assert_eq!(shown(&"é".repeat(MOST + 1)), "é".repeat(MOST) + "…");
    }
}
