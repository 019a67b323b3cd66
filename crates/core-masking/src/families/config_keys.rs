//! Keys of `config.json` whose names differ between families.
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Error, checkpoint};

/// Maps the common names of configuration keys, those in the code, to a family's own.
#[derive(Debug, PartialEq)]
pub struct ConfigKeys {
    /// The common name, and the family's own, if it has such an entry.
    pub entries: &'static [(&'static str, Option<&'static str>)],
    /// What is assumed where an entry is not there: JSON under common names.
    pub defaults: &'static str,
}

impl ConfigKeys {
    /// The family's name of an entry.
    pub(crate) fn own<'a>(&self, name: &'a str) -> &'a str {
        let entry = self.entries.iter().find(|(common, _)| *common == name);
        entry.and_then(|(_, own)| *own).unwrap_or(name)
    }

    /// A `config.json` under common names, with what it leaves out.
    ///
    /// # Panics
    /// If the defaults are no JSON.
    pub(crate) fn to_common(&self, mut json: Map<String, Value>) -> Map<String, Value> {
        for (name, own) in self.entries {
            // Where a family has no such entry, one of that name means nothing.
            json.remove(*name);
            if let Some(value) = own.and_then(|own| json.remove(own)) {
                json.insert((*name).to_owned(), value);
            }
        }
        assume(&mut json, self.defaults);
        json
    }

    /// Writes a configuration, whose entries have common names, under the family's names.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, path: &Path, config: &impl Serialize) -> Result<(), Error> {
        if self.entries.is_empty() {
            return checkpoint::write_json(path, config); // in the order of its entries
        }
        let fault = |source| Error::Json { path: path.to_owned(), source };
        checkpoint::write_json(path, &self.to_own(serde_json::to_value(config).map_err(fault)?))
    }

    fn to_own(&self, mut json: Value) -> Value {
        for (name, own) in self.entries {
            let value = json.as_object_mut().and_then(|json| json.remove(*name));
            if let (Some(value), Some(own)) = (value, own) {
                json[*own] = value;
            }
        }
        json
    }
}

/// Adds the entries of `defaults`, JSON, that are not there. One that is null says that there is none, and stays.
///
/// # Panics
/// If the defaults are no JSON.
pub(crate) fn assume(json: &mut Map<String, Value>, defaults: &str) {
    let defaults: Map<String, Value> = serde_json::from_str(defaults).expect("defaults are JSON");
    for (name, value) in defaults {
        json.entry(name).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEYS: ConfigKeys = ConfigKeys {
        entries: &[("hidden_size", Some("dim")), ("segments", None)],
        defaults: r#"{"segments": 1, "layers": 6}"#,
    };

    fn object(json: Value) -> Map<String, Value> {
        let Value::Object(json) = json else { panic!("{json}") };
        json
    }

    #[test]
    fn names_go_there_and_back_and_what_is_missing_is_filled_in() {
        let own = object(json!({ "dim": 24, "layers": 3, "dropout": 0.1 }));
        let common = object(json!({ "hidden_size": 24, "layers": 3, "dropout": 0.1, "segments": 1 }));
        assert_eq!(KEYS.to_common(own.clone()), common);
        assert_eq!(KEYS.to_own(Value::Object(common)), Value::Object(own.clone()));
        assert_eq!(KEYS.to_common(Map::new())["layers"], 6);
        let foreign =
            object(json!({ "dim": 24, "hidden_size": 7, "segments": 5, "layers": 3, "dropout": 0.1 }));
        assert_eq!(KEYS.to_common(foreign), KEYS.to_common(own));
        assert_eq!((KEYS.own("hidden_size"), KEYS.own("layers")), ("dim", "layers"));
    }
}
