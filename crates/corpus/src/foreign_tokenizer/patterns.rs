//! Patterns at which a text is split, and where the library's two engines of regular expressions agree on them.
//!
//! Python's tokenizers match them by Oniguruma with the syntax of Ruby, ours by `fancy-regex`. What the two read
//! differently is refused: `.`, `^` and `$`, which depend on modes that have other names; `\w`, which takes other
//! letters; `\h` and its like. Llama 3, Qwen, GPT-4 and their kin need none of these.
use std::iter::Peekable;
use std::str::Chars;

use serde_json::Value;

use words::excerpt;

/// The most bytes of a pattern; those in use have about 300.
const LONGEST: usize = 2_000;
/// The most digits of a number of repetitions: the library would write out longer ones.
const MOST_DIGITS: usize = 3;
/// What may follow `(?`: groups, those that ignore case, and looks ahead and behind.
const GROUPS: [&str; 6] = [":", "i:", "=", "!", "<=", "<!"];

/// Refuses an empty text to split at, and a pattern that is too long or could be read in two ways.
pub(super) fn check_pattern(pattern: &Value) -> Result<(), String> {
    if pattern["String"].as_str().is_some_and(|text| !text.is_empty() && text.len() <= LONGEST) {
        return Ok(());
    }
    let Some(regex) = pattern["Regex"].as_str().filter(|regex| !regex.is_empty()) else {
        return Err("its pattern must be a text or a regular expression".to_owned());
    };
    let fault = if regex.len() > LONGEST {
        Some(format!("has {} bytes, but {LONGEST} is the most", regex.len()))
    } else {
        Scanner { rest: regex.chars().peekable(), in_class: false }.fault()
    };
    fault.map_or(Ok(()), |fault| Err(format!("its pattern `{}` {fault}", excerpt(regex))))
}

/// Goes through a pattern from left to right.
struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    in_class: bool,
}

impl Scanner<'_> {
    /// What of the pattern is not supported.
    fn fault(mut self) -> Option<String> {
        let mut digits = 0;
        while let Some(letter) = self.rest.next() {
            digits = if letter.is_ascii_digit() { digits + 1 } else { 0 };
            let supported = match letter {
                '\\' => self.escape(),
                '[' => self.opens_class(),
                ']' => {
                    self.in_class = false;
                    true
                }
                '(' if !self.in_class => self.group(),
                '.' | '^' | '$' => self.in_class,
                '&' => !(self.in_class && self.rest.peek() == Some(&'&')),
                _ => digits <= MOST_DIGITS,
            };
            if !supported {
                let rest: String = self.rest.take(10).collect();
                return Some(format!("is not supported from `{}` on", excerpt(&format!("{letter}{rest}"))));
            }
        }
        None
    }

    /// A class of letters within another is read differently.
    fn opens_class(&mut self) -> bool {
        self.rest.next_if_eq(&'^');
        !std::mem::replace(&mut self.in_class, true)
    }

    fn escape(&mut self) -> bool {
        let supported = |letter: &char| "pPsSdDrnt".contains(*letter) || letter.is_ascii_punctuation();
        let known = self.rest.peek().is_some_and(supported);
        if known {
            self.rest.next();
        }
        known
    }

    fn group(&mut self) -> bool {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('?') {
            return true;
        }
        let kind: String = ahead.take(2).collect();
        GROUPS.iter().any(|group| kind.starts_with(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(regex: &str) -> Option<String> {
        check_pattern(&json!({ "Regex": regex })).err()
    }

    /// Of GPT-2, Llama 3, Qwen2 and GPT-4o, as their files have them.
    #[test]
    fn patterns_in_use_are_supported() {
        for pattern in [
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t)?|[\r\n/]*",
            r"[\s\S]",
            r"[.$^]|\.|\$|(a|b)(?<=c)(?<!d)(?=e)(?:f)",
        ] {
            assert_eq!(refusal(pattern), None);
        }
        assert_eq!(check_pattern(&json!({"String": " "})), Ok(()));
    }

    #[test]
    fn what_two_engines_read_in_two_ways_is_refused() {
        for pattern in [
            "a.b", "^a", "a$", r"\w+", r"\h", r"\u0041", "(?m:a)", "(?s)a", "[a[b]]", "[a&&b]", "\\",
            "a{1000}", "",
        ] {
            assert!(refusal(pattern).is_some(), "{pattern}");
        }
        let said = refusal(r"\p{L}+|\w+ and so on and on").unwrap();
        assert_eq!(said, r"its pattern `\p{L}+|\w+ and so on and on` is not supported from `\w+ and so ` on");
        let long = refusal(&"a".repeat(2_001)).unwrap();
        assert!(long.ends_with("has 2001 bytes, but 2000 is the most"), "{long}");
    }

    #[test]
    fn a_text_to_split_at_is_not_empty() {
        for pattern in [json!({"String": ""}), json!({"Regex": 3}), json!(null)] {
            assert_eq!(
                check_pattern(&pattern),
                Err("its pattern must be a text or a regular expression".to_owned())
            );
        }
    }
}
