//! Types whose values have names in files and arguments. Reading a row with any other name fails.
/// A name that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{}`: expected one of {allowed}{}", words::excerpt(found), words::did_you_mean(found, allowed.split(", ")))]
pub struct UnknownName {
    /// Kind of name, such as `attention type`.
    pub what: &'static str,
    /// The unknown name.
    pub found: String,
    /// Allowed names, separated by commas.
    pub allowed: String,
}

/// Finds the value with this name among `all`.
pub fn find<T: Copy>(
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

/// Implements `Display`, `FromStr`, serde and `==`, given `name()`, for `type, kind of name, all values`.
#[macro_export]
macro_rules! named {
    ($type:ty, $what:literal, $all:expr) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::names::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                $crate::names::find($what, name, &$all, Self::name)
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
pub use named;
