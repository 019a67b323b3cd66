//! Sets of heads.
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::{Error, HeadId};

/// Heads that are masked together; the empty set is the full model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeadSet(BTreeSet<HeadId>);

impl HeadSet {
    /// Returns the empty set: the full model.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the heads in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = HeadId> + '_ {
        self.0.iter().copied()
    }

    /// Returns true if the head is in the set.
    pub fn contains(&self, id: HeadId) -> bool {
        self.0.contains(&id)
    }

    /// Returns the number of heads.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true for the full model.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a short text for progress lines: the names of up to two heads, or only their number.
    pub fn brief(&self) -> String {
        if self.len() <= 2 { self.to_string() } else { format!("{} heads", self.len()) }
    }

    /// Returns the names of the heads as in result files: joined by `+`, empty without heads.
    pub fn names(&self) -> String {
        self.iter().map(|id| id.to_string()).collect::<Vec<_>>().join("+")
    }

    /// Returns the set with one more head.
    pub fn with(&self, id: HeadId) -> Self {
        self.iter().chain([id]).collect()
    }

    /// Returns the set without one head.
    pub fn without(&self, id: HeadId) -> Self {
        self.iter().filter(|&other| other != id).collect()
    }
}

impl fmt::Display for HeadSet {
    /// Writes `enc-enc:1:2+enc-enc:1:3`, or `no head`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { formatter.pad("no head") } else { formatter.pad(&self.names()) }
    }
}

impl FromStr for HeadSet {
    type Err = Error;

    /// Parses names joined by `+`, as in result files. An empty text is the empty set; a duplicate name is an error.
    fn from_str(names: &str) -> Result<Self, Error> {
        let mut heads = BTreeSet::new();
        for name in names.split('+').filter(|name| !name.is_empty()) {
            let id: HeadId = name.parse()?;
            if !heads.insert(id) {
                return Err(Error::Head(format!("`{id}` occurs twice")));
            }
        }
        Ok(Self(heads))
    }
}

impl FromIterator<HeadId> for HeadSet {
    fn from_iter<I: IntoIterator<Item = HeadId>>(heads: I) -> Self {
        Self(heads.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sets_survive_a_round_trip() {
        let set: HeadSet = "enc-enc:1:2+self:6:13".parse().unwrap();
        assert_eq!((set.names().as_str(), set.len()), ("enc-enc:1:2+self:6:13", 2));
        assert_eq!("".parse(), Ok(HeadSet::none()));
        let twice = "self:1:1+self:1:2+self:1:1".parse::<HeadSet>().unwrap_err();
        assert_eq!(twice.to_string(), "`self:1:1` occurs twice");
    }
}
