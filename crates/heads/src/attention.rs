//! Attention types, and selections of them for rows and experiments.
use std::str::FromStr;

use crate::layout::HeadLayout;
use crate::names::{UnknownName, named};
use crate::{Error, HeadId};

/// Type of an attention module by its place in the model (Michel et al. 2019, Section 2.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// Encoder self-attention.
    #[default]
    EncEnc,
    /// Cross-attention from decoder to encoder.
    EncDec,
    /// Decoder self-attention.
    DecDec,
    /// Self-attention of a model like BERT, or of a language model.
    SelfAttention,
}

impl Attention {
    /// All types, in the order of tables.
    pub const ALL: [Self; 4] = [Self::EncEnc, Self::EncDec, Self::DecDec, Self::SelfAttention];

    /// Returns the name in files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::EncEnc => "enc-enc",
            Self::EncDec => "enc-dec",
            Self::DecDec => "dec-dec",
            Self::SelfAttention => "self",
        }
    }

    /// Returns the name in legends and titles of figures.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::EncEnc => "encoder",
            Self::EncDec => "cross-attention",
            Self::DecDec => "decoder",
            Self::SelfAttention => "self-attention",
        }
    }
}

named!(Attention, "attention type", Attention::ALL);

/// Heads that a row covers: of one attention type, or all heads of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All heads of the model.
    #[default]
    All,
    /// Heads of one attention type.
    One(Attention),
}

impl Scope {
    const EACH: [Self; 5] = [
        Self::All,
        Self::One(Attention::EncEnc),
        Self::One(Attention::EncDec),
        Self::One(Attention::DecDec),
        Self::One(Attention::SelfAttention),
    ];

    /// Returns true if heads of this type are included.
    pub fn holds(self, attention: Attention) -> bool {
        self == Self::All || self == Self::One(attention)
    }

    /// Returns the name in files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::One(attention) => attention.name(),
        }
    }

    /// Returns the name in legends and titles of figures.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::All => "all heads",
            Self::One(attention) => attention.in_words(),
        }
    }
}

named!(Scope, "attention type", Scope::EACH);

/// Attention types selected by the argument `--attention`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// The type of the paper's Table 1: encoder self-attention, or all types for a model without it.
    #[default]
    Paper,
    /// All types of the model.
    All,
    /// One type.
    One(Attention),
}

impl FromStr for Selection {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "all" => Ok(Self::All),
            "paper" => Ok(Self::Paper),
            _ => name.parse().map(Self::One).map_err(|error: UnknownName| UnknownName {
                allowed: format!("{} or all", error.allowed),
                ..error
            }),
        }
    }
}

impl Selection {
    /// Returns the selected types among those `present`; a type selected by name need not be among them.
    pub fn of(self, present: &[Attention]) -> Vec<Attention> {
        match self {
            Self::Paper if present.contains(&Attention::EncEnc) => vec![Attention::EncEnc],
            Self::One(attention) => vec![attention],
            Self::Paper | Self::All => present.to_vec(),
        }
    }

    /// Returns the scope of the selected heads, as in result files.
    pub fn scope(self, layout: &HeadLayout) -> Scope {
        match self {
            Self::Paper if layout.heads_of(Attention::EncEnc).is_ok() => Scope::One(Attention::EncEnc),
            Self::One(attention) => Scope::One(attention),
            Self::Paper | Self::All => Scope::All,
        }
    }

    /// Returns the selected heads.
    pub fn heads(self, layout: &HeadLayout) -> Result<Vec<HeadId>, Error> {
        match self.scope(layout) {
            Scope::All => Ok(layout.heads()),
            Scope::One(attention) => layout.heads_of(attention),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_unknown_names_are_refused_with_those_allowed() {
        for scope in Scope::EACH {
            assert_eq!(scope.name().parse(), Ok(scope));
            assert_eq!(scope.to_string(), scope.name());
            assert!(scope == scope.name());
        }
        let message = "enc\u{1b}".parse::<Selection>().unwrap_err().to_string();
        let expected = "expected one of enc-enc, enc-dec, dec-dec, self or all; did you mean `enc-dec`?";
        assert_eq!(message, format!(r"unknown attention type `enc\u{{1b}}`: {expected}"));
    }
}
