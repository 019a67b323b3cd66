//! The sha256 of a file's content.
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::Error;
use crate::compressed;

/// The sha256 of a file in hexadecimal; if `gzip`, of the decompressed text. The inner error says that
/// the file is not gzip, or torn.
pub(crate) fn of_text(path: &Path, gzip: bool) -> Result<Result<String, String>, Error> {
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    if gzip {
        let content = compressed::gzip(path).map_err(unreadable)?;
        Ok(hash(content).map_err(|error| format!("no complete gzip file ({error})")))
    } else {
        File::open(path).and_then(hash).map(Ok).map_err(unreadable)
    }
}

fn hash(mut content: impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut content, &mut hasher)?;
    Ok(format!("{:x}", hasher.finalize()))
}
