//! Keys of `config.json` whose names differ between families.
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Error, checkpoint};

/// Maps the common names of configuration keys, those in the code, to a family's own.
#[derive(Debug, PartialEq)]
pub struct ConfigKeys {
    /// The common name, and the family's own, if it has such an entry. Of two own names the last holds, if it is there.
    pub entries: &'static [(&'static str, Option<&'static str>)],
    /// Values of entries that are not there: JSON under common names.
    pub defaults: &'static str,
}

impl ConfigKeys {
    /// The family's name of an entry.
    pub fn own<'a>(&self, name: &'a str) -> &'a str {
        let entry = self.entries.iter().find(|(common, _)| *common == name);
        entry.and_then(|(_, own)| *own).unwrap_or(name)
    }

    /// A `config.json` under common names, with what it leaves out.
    ///
    /// # Panics
    /// If the defaults are no JSON.
    pub fn to_common(&self, mut json: Map<String, Value>) -> Map<String, Value> {
        // Where a family has no such entry, one of that name means nothing.
        rename(&mut json, self.entries.iter().map(|&(name, own)| (own, Some(name))));
        assume(&mut json, self.defaults);
        json
    }

    /// The defaults, under common names.
    pub fn assumed(&self) -> Map<String, Value> {
        let mut assumed = Map::new();
        assume(&mut assumed, self.defaults);
        assumed
    }

    /// Writes a configuration, whose entries have common names, under the family's names.
    pub fn write(&self, path: &Path, config: &impl Serialize) -> Result<(), Error> {
        if self.entries.is_empty() {
            return checkpoint::write_json(path, config); // in the order of its entries
        }
        let json = serde_json::to_value(config).map_err(|fault| Error::json(path, &fault))?;
        let Value::Object(mut json) = json else { return checkpoint::write_json(path, &json) };
        rename(&mut json, self.entries.iter().map(|&(name, own)| (Some(name), own)));
        checkpoint::write_json(path, &json)
    }
}

/// Moves values to other names. Two names may get one value; of two values for one name the last holds.
fn rename<'a>(
    json: &mut Map<String, Value>,
    pairs: impl Iterator<Item = (Option<&'a str>, Option<&'a str>)> + Clone,
) {
    let value = |(from, to): (Option<&str>, Option<&str>)| Some((to?.to_owned(), json.get(from?)?.clone()));
    let values: Vec<(String, Value)> = pairs.clone().filter_map(value).collect();
    pairs.flat_map(|(from, to)| [from, to]).flatten().for_each(|name| drop(json.remove(name)));
    json.extend(values);
}

/// Adds the entries of `defaults`, JSON, that are not there. One that is null says that there is none, and stays.
///
/// # Panics
/// If the defaults are no JSON.
pub fn assume(json: &mut Map<String, Value>, defaults: &str) {
    let defaults: Map<String, Value> = serde_json::from_str(defaults).expect("defaults are JSON");
    for (name, value) in defaults {
        json.entry(name).or_insert(value);
    }
}
