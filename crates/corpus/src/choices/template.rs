//! Contexts with fields in braces, such as `Question: {goal}\nAnswer:`.
use words::excerpt;

use crate::rows::Record;

/// A context that is not filled in yet.
pub(super) struct Template {
    pieces: Vec<Piece>,
}

enum Piece {
    Text(String),
    Field { name: String, capitalized: bool },
}

impl Template {
    /// Reads a template: `{{` and `}}` are braces, `{name}` is a field, `{name|capitalize}` a field with a capital first
    /// letter and small others, as Python's `capitalize` makes it for HellaSwag. The error says what is wrong.
    pub(super) fn parse(template: &str) -> Result<Self, String> {
        let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), template);
        while let Some(place) = rest.find(['{', '}']) {
            text.push_str(&rest[..place]);
            let brace = &rest[place..=place];
            rest = &rest[place + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                text.push_str(brace);
                rest = after;
                continue;
            }
            let field = rest.split_once('}').filter(|(field, _)| brace == "{" && !field.contains('{'));
            let Some((field, after)) = field else {
                return Err(format!(
                    "`context` has a lone `{brace}` before `{}`: a doubled one is a brace",
                    excerpt(rest)
                ));
            };
            pieces.push(Piece::Text(std::mem::take(&mut text)));
            pieces.push(Self::field(field)?);
            rest = after;
        }
        pieces.push(Piece::Text(text + rest));
        Ok(Self { pieces })
    }

    fn field(field: &str) -> Result<Piece, String> {
        let (name, capitalized) = match field.split_once('|') {
            Some((name, "capitalize")) => (name, true),
            Some((_, other)) => {
                return Err(format!(
                    "`context` asks for `{}`, but only `capitalize` is known",
                    excerpt(other)
                ));
            }
            None => (field, false),
        };
        if name.is_empty() {
            return Err("`context` has braces without a field in them".to_owned());
        }
        Ok(Piece::Field { name: name.to_owned(), capitalized })
    }

    /// The fields that it names.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Field { name, .. } => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The context of a row. The error names a field that the row lacks.
    pub(super) fn fill(&self, record: &Record) -> Result<String, String> {
        let mut context = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => context.push_str(text),
                Piece::Field { name, capitalized: false } => context.push_str(&record.text(name)?),
                Piece::Field { name, capitalized: true } => {
                    context.push_str(&capitalized(&record.text(name)?))
                }
            }
        }
        Ok(context)
    }
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

    fn filled(template: &str) -> Result<String, String> {
        let fields = json!({"a": "dOG", "b": {"c": 7}, "é": ""});
        Template::parse(template)?.fill(&Record::new(1, fields.as_object().unwrap().clone()))
    }

    #[test]
    fn fields_stand_in_braces_and_doubled_braces_are_braces() {
        for (template, expected) in [
            ("", ""),
            ("Q: {a}\nA:", "Q: dOG\nA:"),
            ("{a|capitalize}{b.c}", "Dog7"),
            ("{{a}} {{{a}}} }}{{", "{a} {dOG} }{"),
            ("ä{é}{é|capitalize}ö", "äö"),
        ] {
            assert_eq!(filled(template).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn faults_of_templates_are_named() {
        for (template, expected) in [
            ("a {b", "`context` has a lone `{` before `b`: a doubled one is a brace"),
            ("a } b", "`context` has a lone `}` before ` b`: a doubled one is a brace"),
            ("{a{b}", "`context` has a lone `{` before `a{b}`: a doubled one is a brace"),
            ("{}", "`context` has braces without a field in them"),
            ("{a|upper}", "`context` asks for `upper`, but only `capitalize` is known"),
            ("{x}", "no field `x`: there are `a`, `b`, `é`"),
            ("{b}", "field `b` is an object, but text is needed"),
        ] {
            assert_eq!(filled(template), Err(expected.to_owned()), "{template}");
        }
    }
}
