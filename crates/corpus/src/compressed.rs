//! Compressed files, which may claim to hold more than any machine has room for.
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// The most bytes that a compressed file may hold: more than any data set of this project.
const MOST: u64 = 4 << 30;
/// Bytes that any compressed file may hold, however small it is.
const ALWAYS: u64 = 64 << 20;
/// The most bytes for each compressed one, beyond [`ALWAYS`]. Text comes to 10 at most; 1,000 is what gzip can do.
const RATIO: u64 = 200;

/// The most bytes that `compressed` bytes may become.
pub(crate) fn most(compressed: u64) -> u64 {
    compressed.saturating_mul(RATIO).clamp(ALWAYS, MOST)
}

/// The content of the gzip file at `path`, which ends with an error where it is too long.
pub(crate) fn gzip(path: &Path) -> io::Result<impl Read + use<>> {
    let file = File::open(path)?;
    let most = most(file.metadata()?.len());
    Ok(Bounded { inner: MultiGzDecoder::new(BufReader::new(file)), left: most, most })
}

/// `inner`, but for an error after `most` bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
    most: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(too_long(self.most))),
        }
        Ok(count)
    }
}

/// Message on content beyond `most` bytes.
pub(crate) fn too_long(most: u64) -> String {
    format!("it decompresses to more than the {most} bytes that are read of a file of its size")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Archive;
    use crate::parallel;
    use crate::test_files;
    use std::error::Error as _;
    use std::fs;

    #[test]
    fn small_files_are_bound_by_a_constant_larger_ones_by_their_size() {
        assert_eq!([most(0), most(1 << 10), most(1 << 20), most(1 << 40)], [ALWAYS, ALWAYS, 200 << 20, MOST]);
    }

    /// One byte more than is read, in about 65 KB.
    #[test]
    fn files_that_explode_are_refused() {
        let text = vec![b'a'; ALWAYS as usize + 1];
        let folder = tempfile::tempdir().unwrap();
        let [gzip, zip] = ["a.gz", "a.zip"].map(|name| folder.path().join(name));
        fs::write(&gzip, test_files::gzip(&text)).unwrap();
        fs::write(&zip, test_files::zip(&[("a.txt", &text)])).unwrap();
        let reason = "it decompresses to more than the 67108864 bytes that are read of a file of its size";
        assert_eq!(parallel::read_lines(&gzip).unwrap_err().source().unwrap().to_string(), reason);
        let error = Archive::open(&zip).unwrap().read("a.txt").unwrap_err().to_string();
        assert!(error.ends_with(&format!("a.zip`: `a.txt` cannot be read ({reason})")), "{error}");
    }
}
