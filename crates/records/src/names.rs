//! What rows name: attention types, the heads that a curve can mask. A row with another name is refused as it is read.
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A name that is none of those that are allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{}`: it is one of {allowed}", words::excerpt(found))]
pub struct UnknownName {
    /// What was to be named, such as `attention type`.
    pub what: &'static str,
    /// The name.
    pub found: String,
    /// What is allowed, separated by commas.
    pub allowed: String,
}

/// Finds the value of a name among `all`.
pub(crate) fn find<T: Copy>(
    what: &'static str,
    found: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter().copied().find(|&one| name(one) == found).ok_or_else(|| UnknownName {
        what,
        found: found.to_owned(),
        allowed: all.iter().map(|&one| name(one)).collect::<Vec<_>>().join(", "),
    })
}

/// What a type needs that stands in rows by its `name()`, given as `type, what it is, all its values`.
macro_rules! named {
    ($type:ty, $what:literal, $all:expr) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::names::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                crate::names::find($what, name, &$all, Self::name)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }

        impl PartialEq<str> for $type {
            fn eq(&self, name: &str) -> bool {
                self.name() == name
            }
        }

        impl PartialEq<&str> for $type {
            fn eq(&self, name: &&str) -> bool {
                self.name() == *name
            }
        }

        impl PartialEq<String> for $type {
            fn eq(&self, name: &String) -> bool {
                self.name() == name
            }
        }
    };
}
pub(crate) use named;

/// Where an attention module stands in the model (Michel et al. 2019, Section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// Encoder self-attention.
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
}

named!(Attention, "attention type", Attention::ALL);

/// Heads that a row is about: those of one attention type, or all of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All heads of the model.
    #[default]
    All,
    /// Those of one attention type.
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

    /// Whether heads of a type are among these.
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
}

named!(Scope, "attention type", Scope::EACH);

/// One head of a model as rows name it: `enc-enc:6:13`, layer and head counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Head {
    /// Its attention type.
    pub attention: Attention,
    /// Its layer, counted from 1.
    pub layer: usize,
    /// Its place in the layer, counted from 1.
    pub head: usize,
}

/// Layers, and heads of a layer, beyond this are faults.
pub(crate) const MOST_HEADS: usize = 256;

impl Head {
    /// The heads of a list such as `enc-enc:1:2+enc-enc:6:13`.
    ///
    /// # Errors
    /// The first part that is no head, or a head that is there twice.
    pub fn list(names: &str) -> Result<Vec<Self>, String> {
        let heads = names.split('+').filter(|name| !name.is_empty()).map(str::parse);
        let (heads, mut seen) = (heads.collect::<Result<Vec<Self>, _>>()?, BTreeSet::new());
        match heads.iter().find(|head| !seen.insert(**head)) {
            Some(twice) => Err(format!("`{twice}` is there twice")),
            None => Ok(heads),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.attention, self.layer, self.head)
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let fault = || {
            format!(
                "`{}` is no head such as enc-enc:6:13, of layers and heads 1 to 256",
                words::excerpt(name)
            )
        };
        let [attention, layer, head] = name.split(':').collect::<Vec<_>>()[..] else { return Err(fault()) };
        let is_number = |number: &usize| (1..=MOST_HEADS).contains(number);
        let number = |text: &str| text.parse().ok().filter(is_number).ok_or_else(fault);
        let attention = attention.parse::<Attention>().map_err(|error| error.to_string())?;
        Ok(Self { attention, layer: number(layer)?, head: number(head)? })
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
        let twice = Head::list("self:1:1+self:1:2+self:1:1").unwrap_err();
        assert_eq!(twice, "`self:1:1` is there twice");
        assert!("self:256:256".parse::<Head>().is_ok() && "self:257:1".parse::<Head>().is_err());
        let message = "enc\u{1b}".parse::<Attention>().unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown attention type `enc\\u{1b}`: it is one of enc-enc, enc-dec, dec-dec, self"
        );
    }

    #[test]
    fn all_holds_each_type_and_one_its_own_alone() {
        let held =
            |scope: Scope| Attention::ALL.into_iter().filter(|&one| scope.holds(one)).collect::<Vec<_>>();
        assert_eq!(held(Scope::All), Attention::ALL);
        assert_eq!(held(Scope::One(Attention::EncDec)), [Attention::EncDec]);
    }

    #[test]
    fn heads_are_read_and_written_alike() {
        let heads = Head::list("enc-enc:1:2+self:6:13").unwrap();
        assert_eq!(heads.iter().map(Head::to_string).collect::<Vec<_>>(), ["enc-enc:1:2", "self:6:13"]);
        assert_eq!(Head::list("").unwrap(), []);
        for name in ["enc-enc:1", "enc-enc:0:1", "mid:1:1", "self:1:x"] {
            assert!(Head::list(name).is_err(), "{name}");
        }
    }
}
