//! Checks that results drawn together come from the same model.
use records::Identity;

use crate::findings::error::{Result, faulty};
use crate::findings::source::ResultFile;

/// Name and value of an entry in a signature; `None` if the signature lacks it.
pub(crate) type Entry = (&'static str, Option<String>);

/// Returns the entries for model and test set.
pub(crate) fn model_entries(identity: &Identity) -> Vec<Entry> {
    let test_set = [
        ("split", Some(identity.split.clone()).filter(|split| !split.is_empty())),
        ("limit", Some(identity.limit.map_or("none".to_owned(), |limit| limit.to_string()))),
        ("data of the split", identity.data.get(&identity.split).cloned()),
    ];
    test_set.into_iter().chain(weights_entry(identity)).collect()
}

/// Returns the entry for the model alone.
pub(crate) fn weights_entry(identity: &Identity) -> Vec<Entry> {
    vec![("weights", identity.weights.clone())]
}

/// `true` unless the signatures of two files name different weights.
pub fn may_have_same_weights(first: &ResultFile, second: &ResultFile) -> bool {
    difference(first, second, &[weights_entry]).is_none()
}

/// Returns the results of `experiment` in `<name>.csv` of the same folder; `None` if there is no such file.
pub(crate) fn beside(
    file: &ResultFile,
    name: &str,
    experiment: &str,
    entries: &[fn(&Identity) -> Vec<Entry>],
) -> Result<Option<ResultFile>> {
    let path = file.path.with_file_name(format!("{name}.csv"));
    if !path.exists() {
        return Ok(None);
    }
    let own = file.other(path, experiment)?;
    match difference(file, &own, entries) {
        None => Ok(Some(own)),
        Some(difference) => {
            let fault = format!("does not match `{}`: {difference}", file.path.display());
            Err(faulty(&own.path, fault))
        }
    }
}

/// Describes the first entry that differs between two signatures, as seen from the second file. Entries that either lacks are not compared.
pub(crate) fn difference(
    first: &ResultFile,
    second: &ResultFile,
    entries: &[fn(&Identity) -> Vec<Entry>],
) -> Option<String> {
    let (first, second) = (first.identity()?, second.identity()?);
    let both = entries.iter().flat_map(|entries| entries(first).into_iter().zip(entries(second)));
    both.into_iter().find_map(|((entry, expected), (_, found))| {
        let (expected, found) = (expected?, found?);
        (expected != found).then(|| format!("{entry} is {found} here but {expected} there"))
    })
}
