//! Special tokens in the texts of translators: they stay whole, and only the text between them is cut into pieces.
use crate::Error;

/// A special token.
pub(crate) struct SpecialToken {
    pub(crate) text: String,
    pub(crate) id: u32,
}

/// A span of a text.
pub(crate) enum Span<'a> {
    Text(&'a str),
    Special(&'a SpecialToken),
}

/// The special tokens of a translator.
pub(crate) struct SpecialTokens(pub(crate) Vec<SpecialToken>);

impl SpecialTokens {
    /// Returns the ids of `text`; `cut` returns those of the text between special tokens.
    pub(crate) fn encode(
        &self,
        text: &str,
        cut: impl Fn(&str) -> Result<Vec<u32>, Error>,
    ) -> Result<Vec<u32>, Error> {
        let ids = |span| match span {
            Span::Text(text) => cut(text),
            Span::Special(token) => Ok(vec![token.id]),
        };
        Ok(self.spans(text).into_iter().map(ids).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Returns the special tokens in `text` and the text between them. If several begin at one place, the longest counts.
    pub(crate) fn spans<'a>(&'a self, text: &'a str) -> Vec<Span<'a>> {
        let (mut spans, mut rest) = (Vec::new(), text);
        loop {
            let places = self.0.iter().filter_map(|token| Some((rest.find(&token.text)?, token)));
            let first = places.min_by_key(|(place, token)| (*place, usize::MAX - token.text.len()));
            let Some((place, token)) = first else { break };
            spans.extend([Span::Text(&rest[..place]), Span::Special(token)]);
            rest = &rest[place + token.text.len()..];
        }
        spans.push(Span::Text(rest));
        spans
    }

    /// Returns true if one of them has this id.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.0.iter().any(|token| token.id == id)
    }
}
