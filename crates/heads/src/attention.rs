//! Attention types, and those that a row or an experiment is about.
use std::str::FromStr;

use crate::layout::HeadLayout;
use crate::names::{UnknownName, named};
use crate::{Error, HeadId};

/// Place of an attention module in the model (Michel et al. 2019, Section 2.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// Encoder self-attention.
    #[default]
    EncEnc,
    /// Decoder to encoder.
    EncDec,
    /// Decoder self-attention.
    DecDec,
    /// Self-attention of a model like BERT, or of a language model.
    SelfAttention,
}

impl Attention {
    /// All types, in the order in which tables list them.
    pub const ALL: [Self; 4] = [Self::EncEnc, Self::EncDec, Self::DecDec, Self::SelfAttention];

    /// The name in files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::EncEnc => "enc-enc",
            Self::EncDec => "enc-dec",
            Self::DecDec => "dec-dec",
            Self::SelfAttention => "self",
        }
    }

    /// The name in legends and titles of figures.
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

/// Heads that a row is about: those of one attention type, or all of the model.
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

    /// Returns true if heads of a type are among these.
    pub fn holds(self, attention: Attention) -> bool {
        self == Self::All || self == Self::One(attention)
    }

    /// The name in files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::One(attention) => attention.name(),
        }
    }

    /// The name in legends and titles of figures.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::All => "all heads",
            Self::One(attention) => attention.in_words(),
        }
    }
}

named!(Scope, "attention type", Scope::EACH);

/// Attention types to look at, as the argument `--attention` gives them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// The type of the paper's Table 1: of a translator's encoder, or all if there is none.
    #[default]
    Paper,
    /// All that there are.
    All,
    /// One of them.
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
    /// The types among those `present`; one that was asked for by name need not be among them.
    pub fn of(self, present: &[Attention]) -> Vec<Attention> {
        match self {
            Self::Paper if present.contains(&Attention::EncEnc) => vec![Attention::EncEnc],
            Self::One(attention) => vec![attention],
            Self::Paper | Self::All => present.to_vec(),
        }
    }

    /// Heads of a model that result files name so.
    pub fn scope(self, layout: &HeadLayout) -> Scope {
        match self {
            Self::Paper if layout.heads_of(Attention::EncEnc).is_ok() => Scope::One(Attention::EncEnc),
            Self::One(attention) => Scope::One(attention),
            Self::Paper | Self::All => Scope::All,
        }
    }

    /// The heads of these types.
    ///
    /// # Errors
    /// If the model has no such attention.
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
    fn names_survive_a_round_trip_and_others_are_refused_with_those_allowed() {
        for scope in Scope::EACH {
            assert_eq!(scope.name().parse(), Ok(scope));
            assert_eq!(scope.to_string(), scope.name());
            assert!(scope == scope.name());
        }
        let message = "enc\u{1b}".parse::<Attention>().unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown attention type `enc\\u{1b}`: it is one of enc-enc, enc-dec, dec-dec, self; did you mean `enc-dec`?"
        );
        assert!("x".parse::<Selection>().unwrap_err().to_string().ends_with("dec-dec, self or all"));
    }
}
