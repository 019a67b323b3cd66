//! Entries of `config.json` that families call otherwise.
use serde_json::{Map, Value};

/// How a family calls what another one, whose names the code has, calls otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dictionary {
    /// The common name, and the family's own, if it has such an entry.
    pub(crate) entries: &'static [(&'static str, Option<&'static str>)],
    /// What is assumed where an entry is not there: JSON under common names.
    pub(crate) defaults: &'static str,
}

impl Dictionary {
    /// The family's name of an entry.
    pub(crate) fn own<'a>(&self, name: &'a str) -> &'a str {
        let entry = self.entries.iter().find(|(common, _)| *common == name);
        entry.and_then(|(_, own)| *own).unwrap_or(name)
    }

    /// A `config.json` under common names, with what it leaves out.
    ///
    /// # Panics
    /// If the defaults are no JSON.
    pub(crate) fn to_common(self, mut json: Map<String, Value>) -> Map<String, Value> {
        for (name, own) in self.entries {
            if let Some(value) = own.and_then(|own| json.remove(own)) {
                json.insert((*name).to_owned(), value);
            }
        }
        let defaults: Map<String, Value> = serde_json::from_str(self.defaults).expect("defaults are JSON");
        for (name, value) in defaults {
            json.entry(name).or_insert(value);
        }
        json
    }

    /// A `config.json` under the family's names, from one under common names.
    pub(crate) fn to_own(self, mut json: Map<String, Value>) -> Map<String, Value> {
        for (name, own) in self.entries {
            if let (Some(value), Some(own)) = (json.remove(*name), own) {
                json.insert((*own).to_owned(), value);
            }
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DICTIONARY: Dictionary = Dictionary {
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
        assert_eq!(DICTIONARY.to_common(own.clone()), common);
        assert_eq!(DICTIONARY.to_own(common), own);
        assert_eq!(DICTIONARY.to_common(Map::new())["layers"], 6);
        assert_eq!((DICTIONARY.own("hidden_size"), DICTIONARY.own("layers")), ("dim", "layers"));
    }
}
