//! Contexts with fields in braces, such as `Question: {goal}\nAnswer:`.
use std::sync::LazyLock;

use regex::{Captures, Regex};
use words::excerpt;

use crate::rows::Record;

/// Braces, doubled ones and those around a field first.
static BRACES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{|\}\}|\{(?<field>[^{}]*)\}|[{}]").expect("a pattern of ours"));

/// A context that is not filled in yet: `{{` and `}}` are braces, `{name}` is a field, `{name|capitalize}` a field with a capital
/// first letter and small others, as Python's `capitalize` makes it for HellaSwag.
pub(super) struct Template {
    text: String,
}

impl Template {
    /// The error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        for braces in BRACES.captures_iter(text) {
            let whole = braces.get(0).expect("the whole match");
            match field(&braces) {
                None if whole.len() == 1 => {
                    let (brace, rest) = (whole.as_str(), excerpt(&text[whole.end()..]));
                    return Err(format!(
                        "`context` has a lone `{brace}` before `{rest}`: double it for a literal brace"
                    ));
                }
                Some(("", _)) => return Err("`context` has braces with no field in them".to_owned()),
                Some((_, Some(other))) if other != "capitalize" => {
                    let other = excerpt(other);
                    return Err(format!("`context` uses the filter `{other}`, expected `capitalize`"));
                }
                _ => {}
            }
        }
        Ok(Self { text: text.to_owned() })
    }

    /// The fields that it names.
    pub(super) fn fields(&self) -> Vec<&str> {
        BRACES.captures_iter(&self.text).filter_map(|braces| Some(field(&braces)?.0)).collect()
    }

    /// The context of a row. The error names a field that the row lacks.
    pub(super) fn fill(&self, record: &Record) -> Result<String, String> {
        let (mut context, mut end) = (String::new(), 0);
        for braces in BRACES.captures_iter(&self.text) {
            let whole = braces.get(0).expect("the whole match");
            context += &self.text[end..whole.start()];
            end = whole.end();
            match field(&braces) {
                None => context += &whole.as_str()[1..],
                Some((name, None)) => context += &record.text(name)?,
                Some((name, Some(_))) => context += &capitalized(&record.text(name)?),
            }
        }
        Ok(context + &self.text[end..])
    }
}

/// The name of a field and what is to be done with it; `None` for braces.
fn field<'a>(braces: &Captures<'a>) -> Option<(&'a str, Option<&'a str>)> {
    let field = braces.name("field")?.as_str();
    Some(field.split_once('|').map_or((field, None), |(name, change)| (name, Some(change))))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    first + &letters.as_str().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_stand_in_braces_and_doubled_braces_are_braces() {
        let fields = json!({"a": "dOG", "b": {"c": 7}, "é": ""});
        let record = Record::new(1, fields.as_object().unwrap().clone());
        let filled = |template: &str| Template::parse(template)?.fill(&record);
        for (template, expected) in [
            ("Q: {a}\nA:", Ok("Q: dOG\nA:")),
            ("{a|capitalize}{b.c}", Ok("Dog7")),
            ("{{a}} {{{a}}} }}{{", Ok("{a} {dOG} }{")),
            ("ä{é}{é|capitalize}ö", Ok("äö")),
            ("a {b", Err("`context` has a lone `{` before `b`: double it for a literal brace")),
            ("a } b", Err("`context` has a lone `}` before ` b`: double it for a literal brace")),
            ("{a{b}", Err("`context` has a lone `{` before `a{b}`: double it for a literal brace")),
            ("{}", Err("`context` has braces with no field in them")),
            ("{a|upper}", Err("`context` uses the filter `upper`, expected `capitalize`")),
            ("{x}", Err("no field `x`: the row has `a`, `b`, `é`")),
        ] {
            assert_eq!(filled(template), expected.map(str::to_owned).map_err(str::to_owned), "{template}");
        }
    }
}
