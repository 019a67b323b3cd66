//! Punctuation normalisation: `normalize-punctuation.perl` and the scripts that fairseq ran before and after.
use std::sync::LazyLock;

use regex::Regex;

use super::{Moses, Rule, SPACE, apply, is_space};

impl Moses {
    /// Replaces typographic quotation marks, dashes and spaces by plain ones.
    pub fn normalize(&self, text: &str) -> String {
        apply(&self.normalising, text).trim_matches(is_space).to_owned()
    }

    /// Replaces wide punctuation, [normalises](Self::normalize), and removes control characters: what fairseq did to its WMT data before
    /// tokenisation.
    pub fn clean(&self, text: &str) -> String {
        let text = self.normalize(&apply(&*WIDE, text));
        CONTROL.replace_all(&text, "").into_owned()
    }
}

/// Returns the rules of [`Moses::normalize`] in order.
pub(super) fn rules(language: &str) -> Vec<Rule> {
    let general = GENERAL.iter().map(|(pattern, replacement)| Rule::new(pattern, replacement));
    let quotes = match language {
        "en" => vec![Rule::new(r#""([,.]+)"#, r#"$1""#)],
        "de" | "es" | "fr" => {
            vec![Rule::new(r#",""#, r#"","#), Rule::new(&format!(r#"(\.+)"([{SPACE}]*[^<])"#), r#""$1$2"#)]
        }
        _ => Vec::new(),
    };
    let decimal = if ["de", "fr"].contains(&language) { "$1,$2" } else { "$1.$2" };
    let number = Rule::new("(\\d)\u{a0}(\\d)", decimal);
    general.chain(quotes).chain([number]).collect()
}

const GENERAL: [(&str, &str); 39] = [
    (r"\r", ""),
    (r"\(", " ("),
    (r"\)", ") "),
    (" +", " "),
    (r"\) ([.!:?;,])", ")$1"),
    (r"\( ", "("),
    (r" \)", ")"),
    (r"(\d) %", "$1%"),
    (" :", ":"),
    (" ;", ";"),
    ("`", "'"),
    ("''", " \" "),
    ("[„“”]", "\""),
    ("–", "-"),
    ("—", " - "),
    (" +", " "),
    ("´", "'"),
    ("([a-zA-Z])‘([a-zA-Z])", "$1'$2"),
    ("([a-zA-Z])’([a-zA-Z])", "$1'$2"),
    ("[‘‚’]", "'"),
    ("''", "\""),
    ("´´", "\""),
    ("…", "..."),
    ("\u{a0}«\u{a0}", "\""),
    ("«\u{a0}", "\""),
    ("«", "\""),
    ("\u{a0}»\u{a0}", "\""),
    ("\u{a0}»", "\""),
    ("»", "\""),
    ("\u{a0}%", "%"),
    ("nº\u{a0}", "nº "),
    ("\u{a0}:", ":"),
    ("\u{a0}ºC", " ºC"),
    ("\u{a0}cm", " cm"),
    ("\u{a0}\\?", "?"),
    ("\u{a0}!", "!"),
    ("\u{a0};", ";"),
    (",\u{a0}", ", "),
    (" +", " "),
];

/// `replace-unicode-punctuation.perl`; no rule produces what another replaces.
static WIDE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let ideographic = [("。", ". "), ("．", ". ")]
        .map(|(stop, replacement)| Rule::new(&format!("{stop}[{SPACE}]*"), replacement));
    let others = [
        ("[，、]", ","),
        ("[”“《》」「]", "\""),
        ("[∶：]", ":"),
        ("？", "?"),
        ("）", ")"),
        ("！", "!"),
        ("（", "("),
        ("；", ";"),
        ("０", "0"),
        ("１", "1"),
        ("２", "2"),
        ("３", "3"),
        ("４", "4"),
        ("５", "5"),
        ("６", "6"),
        ("７", "7"),
        ("８", "8"),
        ("９", "9"),
        ("～", "~"),
        ("’", "'"),
        ("…", "..."),
        ("━", "-"),
        ("〈", "<"),
        ("〉", ">"),
        ("【", "["),
        ("】", "]"),
        ("％", "%"),
    ];
    let others = others.map(|(pattern, replacement)| Rule::new(pattern, replacement));
    ideographic.into_iter().chain(others).collect()
});

/// `remove-non-printing-char.perl`
static CONTROL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\p{C}").expect("a pattern of this module"));
