//! Files that others wrote, and their text in messages.
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use words::excerpt;

use crate::Error;

/// The most bytes of a tokeniser's file, about twice as many as the largest in use have.
pub(crate) const MOST_BYTES: u64 = 1 << 26;

/// The most names that a message lists.
const MOST_NAMES: usize = 30;

/// Reads a file of at most `most` bytes. Pipes and devices, which may never end, are refused.
///
/// # Errors
/// If it is missing, not a regular file, or longer.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let fault = |source| Error::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = durable::open_regular(path).map_err(fault)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > most {
        return Err(fault(io::Error::other(format!("longer than {most} bytes, which no such file is"))));
    }
    Ok(bytes)
}

/// Reads a file of at most `most` bytes of UTF-8, as [`read`] does.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String, Error> {
    let text = String::from_utf8(read(path, most)?);
    text.map_err(|_| Error::Read { path: path.to_owned(), source: io::Error::other("not valid UTF-8") })
}

/// Reads a tokeniser's JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    parse_json(&read_text(path, MOST_BYTES)?).map_err(|reason| wrong(path, reason))
}

/// A fault of a tokeniser's file or folder.
pub(crate) fn wrong(path: &Path, reason: String) -> Error {
    Error::Tokenizer { path: path.to_owned(), reason }
}

/// Parses JSON; the error is one line.
pub(crate) fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| excerpt(&error.to_string()))
}

/// Names from a foreign file as a message may list them: only the first few.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut names = names.into_iter().map(|name| format!("`{}`", excerpt(name)));
    let first: Vec<String> = names.by_ref().take(MOST_NAMES).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_may_be_as_long_as_it_may_be_and_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "犬").unwrap();
        assert_eq!(read_text(&path, 3).unwrap(), "犬");
        let source = |error: Error| std::error::Error::source(&error).unwrap().to_string();
        let error = read_text(&path, 2).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read `{}`", path.display()));
        assert_eq!(source(error), "longer than 2 bytes, which no such file is");
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(source(read_text(&path, 3).unwrap_err()), "not valid UTF-8");
        assert_eq!(source(read(folder.path(), 3).unwrap_err()), "not a regular file");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (1..=31).map(|number| number.to_string()).collect();
        assert_eq!(listed(&names[..2]), "`1`, `2`");
        assert!(listed(&names[..30]).ends_with("`29`, `30`"));
        assert!(listed(&names).ends_with("`29`, `30` and 1 more"));
        assert_eq!(listed(&["a\n".to_owned()]), r"`a\n`");
    }
}
