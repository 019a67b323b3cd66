//! Detects file formats by their first bytes, not their names: text, compressed text, binary tables and unsupported formats. Limits the
//! size of decompressed files.
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::Error;

/// Maximum number of decompressed bytes: more than any data set of this project has.
const MOST: u64 = 4 << 30;
/// Number of decompressed bytes allowed for even the smallest file.
const ALWAYS: u64 = 64 << 20;
/// Maximum number of decompressed bytes per compressed byte, above [`ALWAYS`]. Text reaches at most 10; gzip can reach 1,000.
const RATIO: u64 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Plain,
    Gzip,
    Zstd,
    Parquet,
    /// An Arrow IPC file, which includes Feather.
    Arrow,
    /// An Arrow IPC stream, as written by `save_to_disk`.
    ArrowStream,
    /// A folder written by `save_to_disk`.
    Saved,
    /// Unsupported; names the format and the remedy.
    Other(&'static str),
}

/// Magic numbers.
const BEGINNINGS: [(&[u8], Content); 8] = [
    (b"\x1f\x8b", Content::Gzip),
    (b"\x28\xb5\x2f\xfd", Content::Zstd),
    (b"PAR1", Content::Parquet),
    (b"ARROW1", Content::Arrow),
    (b"\xff\xff\xff\xff", Content::ArrowStream),
    (b"PK\x03\x04", Content::Other(ZIP)),
    (b"\xd0\xcf\x11\xe0", Content::Other(EXCEL)),
    (b"FEA1", Content::Other("a Feather file of version 1: write it again with pandas' `to_feather`")),
];
/// `{}` is replaced by the path.
const EXCEL: &str = "an Excel workbook: python3 -c \"import pandas, sys; pandas.read_excel(sys.argv[1]).to_csv(sys.argv[2], \
                     index=False)\" '{}' table.csv converts it";
const ZIP: &str = "a zip archive: its name must end in .zip";

impl Content {
    /// Detects the format of the file or folder at `path`.
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        if path.join("state.json").is_file() || path.join("dataset_dict.json").is_file() {
            return Ok(Self::Saved);
        }
        let mut start = Vec::new();
        let file = durable::open_regular(path).map_err(Error::reading(path))?;
        file.take(32).read_to_end(&mut start).map_err(Error::reading(path))?;
        let found = BEGINNINGS.iter().find(|(bytes, _)| start.starts_with(bytes));
        let is_workbook = path.extension().is_some_and(|ending| ending.to_string_lossy().starts_with("xls"));
        Ok(match found {
            Some((_, Self::Other(ZIP))) if is_workbook => Self::Other(EXCEL),
            Some((_, content)) => *content,
            // truncated or not compressed: the decoder refuses it
            None if path.extension().is_some_and(|ending| ending == "gz") => Self::Gzip,
            None if path.extension().is_some_and(|ending| ending == "zst") => Self::Zstd,
            None => Self::Plain,
        })
    }

    /// Returns true for binary tables, whose columns have names and types.
    pub(crate) fn is_columnar(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow | Self::ArrowStream | Self::Saved)
    }
}

/// Reads a file, decompressing gzip and zstd.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = match Content::of(path)? {
        Content::Plain => durable::open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes)),
        Content::Gzip => gzip(path).and_then(|mut content| content.read_to_end(&mut bytes)),
        Content::Zstd => zstd(path).and_then(|mut content| content.read_to_end(&mut bytes)),
        Content::Other(what) => {
            let shown = path.display().to_string();
            return Err(Error::of(path, format!("it is {}", what.replace("{}", &shown))));
        }
        _ => {
            let reason = "it is a table in Parquet or Arrow, not text: set `kind = \"parquet\"` or `kind = \"arrow\"` to read its \
                          columns by name";
            return Err(Error::of(path, reason));
        }
    };
    read.map(|_| bytes).map_err(Error::reading(path))
}

/// Returns the maximum number of bytes that `compressed` bytes may decompress to.
pub(crate) fn most(compressed: u64) -> u64 {
    compressed.saturating_mul(RATIO).clamp(ALWAYS, MOST)
}

/// Opens a gzip file; reading fails once its content exceeds [`most`].
pub(crate) fn gzip(path: &Path) -> io::Result<impl Read + use<>> {
    bounded(path, |file| Ok(MultiGzDecoder::new(file)))
}

/// Opens a zstd file with the limit of [`gzip`].
fn zstd(path: &Path) -> io::Result<impl Read + use<>> {
    bounded(path, zstd::Decoder::with_buffer)
}

fn bounded<R: Read>(
    path: &Path,
    decoder: impl FnOnce(BufReader<File>) -> io::Result<R>,
) -> io::Result<Bounded<R>> {
    let file = durable::open_regular(path)?;
    let most = most(file.metadata()?.len());
    Ok(Bounded { inner: decoder(BufReader::new(file))?, left: most, most })
}

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

pub(crate) fn too_long(most: u64) -> String {
    format!("it decompresses to more than {most} bytes, the limit for a file of its size")
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

    /// One byte above the limit, compressed to about 65 KB.
    #[test]
    fn files_that_explode_are_refused() {
        let text = vec![b'a'; ALWAYS as usize + 1];
        let folder = tempfile::tempdir().unwrap();
        let [gzip, zip] = ["a.gz", "a.zip"].map(|name| folder.path().join(name));
        fs::write(&gzip, test_files::gzip(&text)).unwrap();
        fs::write(&zip, test_files::zip(&[("a.txt", &text)])).unwrap();
        let reason = "it decompresses to more than 67108864 bytes, the limit for a file of its size";
        assert_eq!(parallel::read_lines(&gzip).unwrap_err().source().unwrap().to_string(), reason);
        let error = Archive::open(&zip).unwrap().read("a.txt").unwrap_err().to_string();
        assert!(error.ends_with(&format!("a.zip`: `a.txt` cannot be read ({reason})")), "{error}");
    }
}
