//! Tokens and their ids as a JSON object lists them, duplicates included.
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use words::excerpt;

/// The entries in order. A map would silently keep only one of two entries with the same name.
pub(crate) struct Numbering(Vec<(String, u32)>);

impl Numbering {
    /// The ids of the tokens. The error names a token with two ids, or two tokens with one id, of which decoding would
    /// pick either.
    pub(crate) fn into_unique(self) -> Result<HashMap<String, u32>, String> {
        let (mut ids, mut tokens) = (HashMap::new(), BTreeMap::new());
        for (token, id) in self.0 {
            if let Some(other) = tokens.insert(id, token.clone()).filter(|other| *other != token) {
                return Err(format!("`{}` and `{}` both have the id {id}", excerpt(&other), excerpt(&token)));
            }
            if let Some(other) = ids.insert(token.clone(), id) {
                return Err(format!("`{}` has two ids, {other} and {id}", excerpt(&token)));
            }
        }
        Ok(ids)
    }
}

impl<'de> Deserialize<'de> for Numbering {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Numbering;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map of tokens to ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbering, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Numbering(entries))
    }
}
