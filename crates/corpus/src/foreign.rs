//! Reads tokenizer files that other programs wrote, and quotes them in messages.
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use words::excerpt;

use crate::Error;

/// Maximum size of a tokenizer file in bytes, about twice the size of the largest in use.
const MAX_BYTES: u64 = 1 << 26;

/// Maximum number of names that a message lists.
const MAX_NAMES: usize = 30;

/// Reads a file. Refuses pipes and devices, which may never end.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let fault = Error::reading(path);
    let mut bytes = Vec::new();
    let file = durable::open_regular(path).map_err(&fault)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(&fault)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fault(io::Error::other(format!(
            "longer than {MAX_BYTES} bytes, the limit for such a file"
        ))));
    }
    Ok(bytes)
}

/// Reads a UTF-8 file with the limits of [`read`].
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    String::from_utf8(read(path)?).map_err(|_| Error::reading(path)(io::Error::other("not valid UTF-8")))
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    parse_json(&read_text(path)?).map_err(|reason| wrong(path, reason))
}

/// Reads a JSON file; returns the defaults if it does not exist.
pub(crate) fn read_if_there<T: Default + DeserializeOwned>(path: &Path) -> Result<T, Error> {
    if path.exists() { read_json(path) } else { Ok(T::default()) }
}

pub(crate) fn wrong(path: &Path, reason: String) -> Error {
    Error::Invalid(format!("no tokenizer can be read from `{}`: {reason}", path.display()))
}

/// Parses JSON; the error is one line.
pub(crate) fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| excerpt(&error.to_string()))
}

/// Lists names from a foreign file for a message, at most [`MAX_NAMES`].
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut names = names.into_iter().map(|name| format!("`{}`", excerpt(name)));
    let first: Vec<String> = names.by_ref().take(MAX_NAMES).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    /// All tokenizer files are read by this function.
    #[test]
    fn irregular_and_overlong_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let refusal =
            |path: &Path| std::error::Error::source(&read_text(path).unwrap_err()).unwrap().to_string();
        assert_eq!(refusal(folder.path()), "not a regular file");
        assert_eq!(refusal(Path::new("/dev/zero")), "not a regular file");
        File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(refusal(&path), "longer than 67108864 bytes, the limit for such a file");
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(refusal(&path), "not valid UTF-8");
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(refusal(&path), "not a regular file");
    }
}
