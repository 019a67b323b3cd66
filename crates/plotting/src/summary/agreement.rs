//! The rows of `cross-domain`.
use std::path::{Path, PathBuf};

use records::{CorrelationRow, read_rows};

use crate::Error;
use crate::pruning::order::Scope;

const EXPERIMENT: &str = "cross-domain";

/// How the effects of single heads agree between two splits.
pub(super) struct Agreement {
    pub subject: String,
    /// Both splits, as the file is named after them.
    pub splits: String,
    pub rows: Vec<CorrelationRow>,
}

/// Reads all `cross-domain-<first>-<second>.csv` of a subject's folder, in the order of their names.
pub(super) fn read(folder: &Path, subject: &str) -> Result<Vec<Agreement>, Error> {
    let entries =
        std::fs::read_dir(folder).map_err(|source| Error::Read { path: folder.to_owned(), source })?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let splits = |name: String| Some(name.strip_prefix("cross-domain-")?.strip_suffix(".csv")?.to_owned());
    let mut found: Vec<_> = names.filter_map(splits).collect();
    found.sort();
    let read = |splits: String| {
        let path = folder.join(format!("{EXPERIMENT}-{splits}.csv"));
        let mut rows: Vec<CorrelationRow> = read_rows(&path)?;
        for row in &rows {
            check(&path, row)?;
        }
        rows.sort_by_key(|row| Scope::parse(&row.attention));
        let splits = match splits.split('-').collect::<Vec<_>>()[..] {
            [first, second] => format!("{first} and {second}"),
            _ => splits,
        };
        Ok(Agreement { subject: subject.to_owned(), splits, rows })
    };
    found.into_iter().map(read).collect()
}

fn check(path: &Path, row: &CorrelationRow) -> Result<(), Error> {
    let path = || PathBuf::from(path);
    if Scope::parse(&row.attention).is_none() {
        let (found, allowed) = (row.attention.clone(), Scope::allowed());
        return Err(Error::Name {
            path: path(),
            experiment: EXPERIMENT,
            column: "attention",
            found,
            allowed,
        });
    }
    let columns = [
        ("pearson", row.pearson, -1.0, "-1 to 1 or empty"),
        ("pearson_p_value", row.pearson_p_value, 0.0, "0 to 1 or empty"),
        ("spearman", row.spearman, -1.0, "-1 to 1 or empty"),
    ];
    for (column, value, least, range) in columns {
        if let Some(found) = value.filter(|value| !(least..=1.0).contains(value)) {
            return Err(Error::Range { path: path(), head: row.attention.clone(), column, found, range });
        }
    }
    Ok(())
}
