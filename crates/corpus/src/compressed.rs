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

/// What is said of content beyond `most` bytes.
pub(crate) fn too_long(most: u64) -> String {
    format!("it decompresses to more than the {most} bytes that are read of a file of its size")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Archive;
    use crate::{labelled, parallel};
    use flate2::{Compression, write::GzEncoder};
    use std::error::Error as _;
    use std::fs;
    use std::io::{Cursor, Write};
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    const REASON: &str =
        "it decompresses to more than the 67108864 bytes that are read of a file of its size";

    /// One byte more than is read, in about 65 KB.
    fn bomb() -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![b'a'; ALWAYS as usize + 1]).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn small_files_are_bound_by_a_constant_larger_ones_by_their_size() {
        assert_eq!([most(0), most(1 << 10), most(1 << 20), most(1 << 40)], [ALWAYS, ALWAYS, 200 << 20, MOST]);
    }

    #[test]
    fn a_gzip_file_that_explodes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gz");
        fs::write(&path, bomb()).unwrap();
        let format = "kind = 'tsv'\nheader = false\ntext = 1\nlabel = 2";
        let labelled = labelled::read(&path, &toml::from_str(format).unwrap()).unwrap_err();
        for error in [parallel::read_lines(&path).unwrap_err(), labelled] {
            assert_eq!(error.source().unwrap().to_string(), REASON);
        }
        let checksum = crate::fetch::checksum::of_text(&path, true).unwrap();
        assert_eq!(checksum, Err(format!("no complete gzip file ({REASON})")));
    }

    fn zipped() -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("a.txt", SimpleFileOptions::default()).unwrap();
        writer.write_all(&vec![b'a'; ALWAYS as usize + 1]).unwrap();
        writer.finish().unwrap().into_inner()
    }

    fn refusal_of_zip(content: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        fs::write(&path, content).unwrap();
        let mut archive = Archive::open(&path).unwrap();
        let read = archive.read("a.txt").unwrap_err().to_string();
        let extracted = archive.extract("a.txt", &folder.path().join("a.txt")).unwrap_err().to_string();
        assert!(extracted.ends_with(&read[read.find("`a.txt`").unwrap()..].replace("read (", "extracted (")));
        read
    }

    #[test]
    fn a_zip_member_that_explodes_is_refused() {
        let error = refusal_of_zip(&zipped());
        assert!(error.ends_with(&format!("a.zip`: `a.txt` cannot be read ({REASON})")), "{error}");
    }

    #[test]
    fn a_zip_member_that_holds_more_than_the_directory_says_is_refused() {
        let mut content = zipped();
        let size = (ALWAYS as u32 + 1).to_le_bytes();
        let directory = content.windows(4).rposition(|bytes| bytes == size).unwrap();
        content[directory..directory + 4].copy_from_slice(&7_u32.to_le_bytes());
        let error = refusal_of_zip(&content);
        assert!(error.contains("`a.txt` cannot be read (File is larger than its declared"), "{error}");
    }
}
