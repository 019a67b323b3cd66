//! Jinja templates of rows, as lm-evaluation-harness fills them.
//!
//! The rules are those of `ConfigurableTask` in its `lm_eval/api/task.py`, version 0.4.13: a template that is the name of a field is that
//! field; digits are a number; and Python's notation of a list is a list.
use std::sync::LazyLock;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, ErrorKind, State, Template, UndefinedBehavior, escape_formatter};
use minijinja_contrib::pycompat::unknown_method_callback;
use regex::Regex;
use serde_json::Value as Json;
use words::excerpt;

use crate::foreign::listed;
use crate::rows::Record;

/// A template filled in for a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filled {
    Text(String),
    Number(usize),
    List(Vec<Filled>),
}

impl Filled {
    /// Returns the text, or the digits of a number.
    pub(super) fn text(self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Number(number) => Ok(number.to_string()),
            Self::List(_) => Err("is a list, but text is needed".to_owned()),
        }
    }
}

/// Jinja2 as the harness sets it up, with methods of Python's values.
static JINJA: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut jinja = Environment::new();
    jinja.set_undefined_behavior(UndefinedBehavior::Strict);
    jinja.set_keep_trailing_newline(true);
    jinja.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Bool | ValueKind::None | ValueKind::Seq | ValueKind::Iterable => {
            Ok(out.write_str(&python(value))?)
        }
        _ => escape_formatter(out, state, value),
    });
    jinja.set_unknown_method_callback(method);
    jinja.add_filter("regex_replace", |text: &str, pattern: &str, by: &str| {
        let fault = |fault: regex::Error| {
            minijinja::Error::new(ErrorKind::InvalidOperation, excerpt(&fault.to_string()))
        };
        // `\1` of Python is `${1}` here
        static GROUP: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\\(?:g<)?(\w+)>?").expect("a pattern of ours"));
        let by = GROUP.replace_all(&by.replace('$', "$$"), "$${${1}}").into_owned();
        Regex::new(pattern).map(|pattern| pattern.replace_all(text, by).into_owned()).map_err(fault)
    });
    jinja
});

/// Formats a value like Python's `repr`, but quotes and escapes strings as JSON, which Python reads too.
fn python(value: &Value) -> String {
    match value.kind() {
        ValueKind::Bool if value.is_true() => "True".to_owned(),
        ValueKind::Bool => "False".to_owned(),
        ValueKind::None => "None".to_owned(),
        ValueKind::Seq | ValueKind::Iterable => {
            let members: Vec<String> =
                value.try_iter().into_iter().flatten().map(|value| python(&value)).collect();
            format!("[{}]", members.join(", "))
        }
        _ => value.as_str().map_or_else(|| value.to_string(), |text| Json::from(text).to_string()),
    }
}

/// Calls a method; adds `index` of lists and strings to [`unknown_method_callback`].
fn method(
    state: &State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, minijinja::Error> {
    let ("index", [wanted]) = (name, args) else {
        return unknown_method_callback(state, value, name, args);
    };
    let place = match (value.as_str(), wanted.as_str()) {
        (Some(text), Some(wanted)) => text.find(wanted).map(|place| text[..place].chars().count()),
        _ => value.try_iter()?.position(|member| member == *wanted),
    };
    place.map(Value::from).ok_or_else(|| {
        let fault = format!("`{}` is not in {}", excerpt(&wanted.to_string()), excerpt(&python(value)));
        minijinja::Error::new(ErrorKind::InvalidOperation, fault)
    })
}

/// A template, compiled, or the name of a field.
pub(super) struct Jinja<'a> {
    text: &'a str,
    compiled: Template<'a, 'a>,
}

impl<'a> Jinja<'a> {
    /// Compiles a template; the error describes what is wrong with it.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let compiled = JINJA.template_from_str(text).map_err(|fault| unfit(text, &fault))?;
        Ok(Self { text, compiled })
    }

    /// Fills the template. Digits become a number, and a list in Python's notation a list.
    ///
    /// # Errors
    /// If the row lacks a field that the template asks for.
    pub(super) fn fill(&self, record: &Record) -> Result<Filled, String> {
        Ok(match self.fill_line(record)? {
            Filled::Text(text) if !record.fields().contains_key(self.text) => {
                let list = |texts: Vec<String>| Filled::List(texts.into_iter().map(Filled::Text).collect());
                literals(&text).map_or(Filled::Text(text), list)
            }
            other => other,
        })
    }

    /// Like [`fill`](Self::fill), but a list in Python's notation stays a text.
    pub(super) fn fill_line(&self, record: &Record) -> Result<Filled, String> {
        if let Some(value) = record.fields().get(self.text) {
            return of_field(value).map_err(|fault| format!("field `{}` {fault}", self.text));
        }
        let text = self.rendered(record)?;
        Ok(digits(&text).map_or(Filled::Text(text), Filled::Number))
    }

    /// Like [`fill_line`](Self::fill_line), but digits stay a text, too.
    pub(super) fn fill_text(&self, record: &Record) -> Result<String, String> {
        let Some(value) = record.fields().get(self.text) else { return self.rendered(record) };
        of_field(value).and_then(Filled::text).map_err(|fault| format!("field `{}` {fault}", self.text))
    }

    fn rendered(&self, record: &Record) -> Result<String, String> {
        self.compiled.render(record.fields()).map_err(|fault| match fault.kind() {
            ErrorKind::UndefinedError => {
                let asked = self.compiled.undeclared_variables(false);
                let mut asked: Vec<&String> =
                    asked.iter().filter(|name| !record.fields().contains_key(*name)).collect();
                asked.sort_unstable();
                let asked = if asked.is_empty() { "a value".to_owned() } else { listed(asked) };
                let (template, known) = (excerpt(self.text), listed(record.fields().keys()));
                format!("template `{template}` uses {asked}, which the row lacks: it has {known}")
            }
            _ => unfit(self.text, &fault),
        })
    }
}

fn unfit(template: &str, fault: &minijinja::Error) -> String {
    let fault = fault.to_string();
    let fault = fault.split(" (in ").next().unwrap_or_default();
    format!("template `{}`: {}", excerpt(template), excerpt(fault))
}

fn of_field(value: &Json) -> Result<Filled, String> {
    match value {
        Json::String(text) => Ok(Filled::Text(text.clone())),
        Json::Bool(value) => Ok(Filled::Number(usize::from(*value))),
        Json::Number(number) => Ok(number
            .as_u64()
            .map_or_else(|| Filled::Text(number.to_string()), |number| Filled::Number(number as usize))),
        Json::Array(members) => Ok(Filled::List(members.iter().map(of_field).collect::<Result<_, _>>()?)),
        Json::Null => Err("is null, but text is needed".to_owned()),
        Json::Object(_) => Err("is an object, but text is needed".to_owned()),
    }
}

/// Returns the number if a text consists of digits.
pub(super) fn digits(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns the members of a list of texts and numbers in Python's notation: `['it\'s', "two", 3]`.
fn literals(text: &str) -> Option<Vec<String>> {
    static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
        let texts = r#"'''(?<a>(?:[^\\]|\\.)*?)'''|"""(?<b>(?:[^\\]|\\.)*?)"""|'(?<c>(?:[^'\\]|\\.)*)'|"(?<d>(?:[^"\\]|\\.)*)""#;
        Regex::new(&format!(r"(?s)\A\s*(?:{texts}|(?<e>-?[0-9][0-9.]*))\s*(?<then>,|\z)"))
            .expect("a pattern of ours")
    });
    let mut rest = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut members = Vec::new();
    while !rest.trim().is_empty() {
        let member = MEMBER.captures(rest)?;
        let inside = ["a", "b", "c", "d"].into_iter().find_map(|name| member.name(name));
        members.push(match inside {
            Some(inside) => unescaped(inside.as_str()),
            None => member["e"].to_owned(),
        });
        rest = &rest[member.get(0)?.end()..];
    }
    Some(members)
}

/// Replaces the escapes in a Python string.
fn unescaped(text: &str) -> String {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        let escape = if letter == '\\' { letters.next() } else { None };
        let mut code = |digits: usize| {
            let code: String = letters.by_ref().take(digits).collect();
            u32::from_str_radix(&code, 16)
                .ok()
                .and_then(char::from_u32)
                .unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        match escape {
            None => plain.push(letter),
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('b') => plain.push('\u{8}'),
            Some('f') => plain.push('\u{c}'),
            Some('x') => plain.push(code(2)),
            Some('u') => plain.push(code(4)),
            Some('U') => plain.push(code(8)),
            Some('\n') => {}
            Some(quoted @ ('\\' | '\'' | '"')) => plain.push(quoted),
            Some(other) => plain.extend(['\\', other]),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str) -> Filled {
        Filled::Text(text.to_owned())
    }

    fn texts(members: &[&str]) -> Filled {
        Filled::List(members.iter().map(|member| text(member)).collect())
    }

    /// Templates of the harness's tasks; the expected values were printed by its `doc_to_text`, `doc_to_choice` and `doc_to_target`.
    #[test]
    fn templates_give_what_jinja2_and_python_give() {
        let fields = json!({
            "a": "it's", "b": "say \"no\"\n", "key": "B ", "label": 1, "n": "2", "yes": true, "none": null,
            "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answers": [{"atext": "p"}, {"atext": "q"}],
            "text": "one two three", "start": 4, "end": 7,
        });
        let record = Record::new(1, fields.as_object().unwrap().clone());
        for (template, expected) in [
            ("label", Filled::Number(1)),
            ("yes", Filled::Number(1)),
            ("{{label}}", Filled::Number(1)),
            ("{{ (n|int) - 1 }}", Filled::Number(1)),
            ("{{n|int - 1}}", Filled::Number(1)),
            ("{{yes}} {{none}}", text("True None")),
            ("{{[a, b]}}", texts(&["it's", "say \"no\"\n"])),
            ("{{choices.text}}", texts(&["x", "y"])),
            ("{{choices['text'][0]}}\n", text("x\n")),
            ("{{choices.label.index(key.rstrip())}}", Filled::Number(1)),
            ("{{['True', 'Neither', 'False'][label]}}", text("Neither")),
            ("{{answers|map(attribute='atext')|list}}", texts(&["p", "q"])),
            ("{{text.split(' ')[:-1]|join(' ')}}", text("one two")),
            ("{{' '+text.split(' ')[-1]}}", text(" three")),
            ("{{text[start:end]}}", text("two")),
            ("{% set place = start + n | length %}{{text[place:]}}", text("wo three")),
            ("{% set first = text[:4] %}{{[first+a, first+'b']}}", texts(&["one it's", "one b"])),
            (
                "{{[text+\", right? Yes, \"+a,text]}}",
                texts(&["one two three, right? Yes, it's", "one two three"]),
            ),
            (
                "['''{{text}}\\nyes''', '''{{text}}\\nno''']",
                texts(&["one two three\nyes", "one two three\nno"]),
            ),
            ("[{{text}}]", text("[one two three]")),
            ("{{text|regex_replace('(t)(w)', '\\\\2\\\\1')}}", text("one wto three")),
            ("", text("")),
        ] {
            assert_eq!(Jinja::parse(template).unwrap().fill(&record), Ok(expected), "{template}");
        }
        for (template, expected) in [
            ("{{x}} {{a}}", "template `{{x}} {{a}}` uses `x`, which the row lacks: it has `a`, `answers`"),
            ("{{choices.label.index('C')}}", "`C` is not in [\"A\", \"B\"]"),
            ("none", "field `none` is null, but text is needed"),
            ("{{a.frobnicate()}}", "template `{{a.frobnicate()}}`: unknown method"),
        ] {
            let fault = Jinja::parse(template).unwrap().fill(&record).unwrap_err();
            assert!(fault.contains(expected) && !fault.contains('\n'), "{fault}");
        }
        assert!(Jinja::parse("{{a").err().unwrap().starts_with("template `{{a`: "));
    }
}
