//! Keys of `config.json` that differ between families.
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Error, checkpoint};

/// Maps the common keys, those in the code, to a family's keys.
#[derive(Debug, PartialEq)]
pub struct ConfigKeys {
    /// Common key, and the family's key or `None`. If two keys of a family mean one common key, the last one present wins.
    pub entries: &'static [(&'static str, Option<&'static str>)],
    /// Defaults of absent keys: JSON under common keys.
    pub defaults: &'static str,
}

impl ConfigKeys {
    /// Returns the family's name of a key.
    pub fn own<'a>(&self, name: &'a str) -> &'a str {
        let entry = self.entries.iter().find(|(common, _)| *common == name);
        entry.and_then(|(_, own)| *own).unwrap_or(name)
    }

    /// Converts a `config.json` to common keys and adds defaults.
    pub fn to_common(&self, mut json: Map<String, Value>) -> Map<String, Value> {
        // A key that the family does not have is meaningless and dropped.
        rename(&mut json, self.entries.iter().map(|&(name, own)| (own, Some(name))));
        assume(&mut json, self.defaults);
        json
    }

    /// Returns the defaults, under common keys.
    pub fn assumed(&self) -> Map<String, Value> {
        let mut assumed = Map::new();
        assume(&mut assumed, self.defaults);
        assumed
    }

    /// Writes a configuration with common keys under the family's keys.
    pub fn write(&self, path: &Path, config: &impl Serialize) -> Result<(), Error> {
        if self.entries.is_empty() {
            return checkpoint::write_json(path, config); // keeps the order of its fields
        }
        let json = serde_json::to_value(config).map_err(|fault| Error::json(path, &fault))?;
        let Value::Object(mut json) = json else { return checkpoint::write_json(path, &json) };
        rename(&mut json, self.entries.iter().map(|&(name, own)| (Some(name), own)));
        checkpoint::write_json(path, &json)
    }
}

/// Renames keys. One value may go to two keys; of two values for one key the last wins.
fn rename<'a>(
    json: &mut Map<String, Value>,
    pairs: impl Iterator<Item = (Option<&'a str>, Option<&'a str>)> + Clone,
) {
    let value = |(from, to): (Option<&str>, Option<&str>)| Some((to?.to_owned(), json.get(from?)?.clone()));
    let values: Vec<(String, Value)> = pairs.clone().filter_map(value).collect();
    pairs.flat_map(|(from, to)| [from, to]).flatten().for_each(|name| drop(json.remove(name)));
    json.extend(values);
}

/// Adds absent keys from `defaults`, which must be JSON. A null means that there is no value and is kept.
pub fn assume(json: &mut Map<String, Value>, defaults: &str) {
    let defaults: Map<String, Value> = serde_json::from_str(defaults).expect("defaults are JSON");
    for (name, value) in defaults {
        json.entry(name).or_insert(value);
    }
}
