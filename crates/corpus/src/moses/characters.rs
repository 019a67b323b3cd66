//! Character classes.
use std::collections::HashMap;
use std::sync::LazyLock;

/// Ranges of code points, in order.
#[derive(Debug, Default)]
pub(super) struct Class(Vec<[u32; 2]>);

pub(super) struct Characters {
    pub(super) number: Class,
    pub(super) alphanumeric: Class,
    pub(super) alphabetic: Class,
    pub(super) lowercase: Class,
    pub(super) currency: Class,
    /// Combining marks of Indic and other scripts, which belong to the letter before them.
    pub(super) joining: Class,
}

/// Character classes of sacremoses, from `characters.txt`.
pub(super) static CHARACTERS: LazyLock<Characters> = LazyLock::new(|| {
    let mut classes = read(include_str!("characters.txt"));
    let mut class = |name: &str| classes.remove(name).expect("`characters.txt` has all classes");
    Characters {
        number: class("number"),
        alphanumeric: class("alphanumeric"),
        alphabetic: class("alphabetic"),
        lowercase: class("lowercase"),
        currency: class("currency"),
        joining: class("joining"),
    }
});

impl Class {
    pub(super) fn contains(&self, letter: char) -> bool {
        let code = u32::from(letter);
        let after = self.0.partition_point(|&[first, _]| first <= code);
        after > 0 && code <= self.0[after - 1][1]
    }

    /// Returns the ranges for a bracket expression of a regular expression.
    pub(super) fn bracket(&self) -> String {
        self.0.iter().map(|[first, last]| format!(r"\u{{{first:X}}}-\u{{{last:X}}}")).collect()
    }
}

fn read(text: &'static str) -> HashMap<&'static str, Class> {
    let mut classes: HashMap<&str, Class> = HashMap::new();
    let mut name = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix('[') {
            name = title.trim_end_matches(']');
            continue;
        }
        let ranges = line.split_whitespace().map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            [first, last].map(|code| u32::from_str_radix(code, 16).expect("a number of `characters.txt`"))
        });
        classes.entry(name).or_default().0.extend(ranges);
    }
    classes
}
