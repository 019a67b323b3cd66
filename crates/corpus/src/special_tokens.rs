//! Special tokens in the texts of translators: they stay whole, and only the text between them is cut into pieces.

/// A special token.
pub(crate) struct SpecialToken {
    pub(crate) text: String,
    pub(crate) id: u32,
}

/// A part of a text.
pub(crate) enum Part<'a> {
    Text(&'a str),
    Special(&'a SpecialToken),
}

/// The special tokens of a translator.
pub(crate) struct SpecialTokens(pub(crate) Vec<SpecialToken>);

impl SpecialTokens {
    /// Ids of `text`; `cut` gives those of the text between special tokens.
    pub(crate) fn encode(&self, text: &str, cut: impl Fn(&str) -> Vec<u32>) -> Vec<u32> {
        let ids = |part| match part {
            Part::Text(text) => cut(text),
            Part::Special(token) => vec![token.id],
        };
        self.parts(text).into_iter().flat_map(ids).collect()
    }

    /// The special tokens in `text` and the text between them. If several begin at one place, the longest counts.
    pub(crate) fn parts<'a>(&'a self, text: &'a str) -> Vec<Part<'a>> {
        let (mut parts, mut rest) = (Vec::new(), text);
        loop {
            let places = self.0.iter().filter_map(|token| Some((rest.find(&token.text)?, token)));
            let first = places.min_by_key(|(place, token)| (*place, usize::MAX - token.text.len()));
            let Some((place, token)) = first else { break };
            parts.extend([Part::Text(&rest[..place]), Part::Special(token)]);
            rest = &rest[place + token.text.len()..];
        }
        parts.push(Part::Text(rest));
        parts
    }

    /// Whether one of them has this id.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.0.iter().any(|token| token.id == id)
    }
}
