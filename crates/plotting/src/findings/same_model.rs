//! `true` if results that are drawn together are of the same model.
use records::Identity;

use crate::findings::error::{Result, faulty};
use crate::findings::source::ResultFile;

/// An entry of a signature, if it has one: its name and its value.
pub(crate) type Entry = (&'static str, Option<String>);

/// Model and test set.
pub(crate) fn model_entries(identity: &Identity) -> Vec<Entry> {
    let test_set = [
        ("split", Some(identity.split.clone()).filter(|split| !split.is_empty())),
        ("limit", Some(identity.limit.map_or("none".to_owned(), |limit| limit.to_string()))),
        ("data of the split", identity.data.get(&identity.split).cloned()),
    ];
    test_set.into_iter().chain(weights_entry(identity)).collect()
}

/// The model alone.
pub(crate) fn weights_entry(identity: &Identity) -> Vec<Entry> {
    vec![("weights", identity.weights.clone())]
}

/// `true` if the signatures of two files do not say that they are of models with other weights.
pub fn may_have_same_weights(first: &ResultFile, second: &ResultFile) -> bool {
    difference(first, second, &[weights_entry]).is_none()
}

/// Results of `experiment` beside others, if `<name>.csv` is there.
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
            let fault = format!("does not go with `{}`: {difference}", file.path.display());
            Err(faulty(&own.path, fault))
        }
    }
}

/// The first of these entries of two signatures that should be the same and is not, as a sentence on the second file. What one
/// of the two does not name is not compared.
pub(crate) fn difference(
    first: &ResultFile,
    second: &ResultFile,
    entries: &[fn(&Identity) -> Vec<Entry>],
) -> Option<String> {
    let (first, second) = (first.identity()?, second.identity()?);
    let both = entries.iter().flat_map(|entries| entries(first).into_iter().zip(entries(second)));
    both.into_iter().find_map(|((entry, expected), (_, found))| {
        let (expected, found) = (expected?, found?);
        (expected != found).then(|| format!("{entry} is {found} but {expected} there"))
    })
}
