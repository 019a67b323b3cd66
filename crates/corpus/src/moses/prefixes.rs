//! Abbreviations whose full stop does not end a sentence.
use std::collections::HashSet;

#[derive(Debug)]
pub(super) struct Prefixes {
    always: HashSet<&'static str>,
    numeric: HashSet<&'static str>,
}

impl Prefixes {
    pub(super) fn of(language: &str) -> Self {
        let text = match language {
            "de" => include_str!("prefixes/de.txt"),
            "fr" => include_str!("prefixes/fr.txt"),
            "ru" => include_str!("prefixes/ru.txt"),
            _ => include_str!("prefixes/en.txt"),
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let (mut always, mut numeric) = (HashSet::new(), HashSet::new());
        let mut list = &mut always;
        for line in lines {
            match line {
                "[always]" => {}
                "[numeric]" => list = &mut numeric,
                words => list.extend(words.split_whitespace()),
            }
        }
        Self { always, numeric }
    }

    /// Returns true if `word` is an abbreviation, whatever follows.
    pub(super) fn always(&self, word: &str) -> bool {
        self.always.contains(word)
    }

    /// Returns true if `word` is an abbreviation before a number, such as "No. 5".
    pub(super) fn before_number(&self, word: &str) -> bool {
        self.numeric.contains(word)
    }
}
