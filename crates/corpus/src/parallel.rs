//! Line-parallel text: line n of one file translates line n of the other.
use std::fs;
use std::io::Read;
use std::path::Path;

use crate::Error;
use crate::compressed;

/// Sentences and their translations; both sides are equally long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParallelText {
    /// Sentences of the source language.
    pub source: Vec<String>,
    /// Sentences of the target language.
    pub target: Vec<String>,
}

impl ParallelText {
    /// Reads two files with one sentence a line, plain or gzip (`.gz`), and checks that they fit.
    pub fn read(source: &Path, target: &Path) -> Result<Self, Error> {
        let text = Self { source: read_lines(source)?, target: read_lines(target)? };
        if text.source.len() != text.target.len() {
            return Err(Error::LineCounts {
                source_path: source.to_owned(),
                source_lines: text.source.len(),
                target_path: target.to_owned(),
                target_lines: text.target.len(),
            });
        }
        Ok(text)
    }

    /// Number of sentence pairs.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Whether there is no sentence pair.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// Adds pairs behind those that are there.
    pub fn append(&mut self, more: Self) {
        self.source.extend(more.source);
        self.target.extend(more.target);
    }

    /// The pairs at these places.
    ///
    /// # Panics
    /// If there are fewer pairs.
    pub fn select(&self, places: &[usize]) -> Self {
        let side = |lines: &[String]| places.iter().map(|&place| lines[place].clone()).collect();
        Self { source: side(&self.source), target: side(&self.target) }
    }
}

/// Reads one sentence a line: UTF-8, plain or gzip (`.gz`), with or without byte-order mark and
/// carriage returns.
///
/// Lines end at `\n` only: other line breaks of Unicode occur inside sentences of web text, and a
/// reader that split there would lose the alignment.
pub fn read_lines(path: &Path) -> Result<Vec<String>, Error> {
    let bytes = read_bytes(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    lines(&bytes, path)
}

/// The same of the content of a file, decompressed; `path` is for messages.
pub(crate) fn lines(bytes: &[u8], path: &Path) -> Result<Vec<String>, Error> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    if bytes.is_empty() {
        return Err(Error::EmptyFile { path: path.to_owned() });
    }
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    text.split(|&byte| byte == b'\n').zip(1..).map(|(bytes, line)| sentence(bytes, path, line)).collect()
}

fn sentence(bytes: &[u8], path: &Path, line: usize) -> Result<String, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::NotUtf8 { path: path.to_owned(), line })?;
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(Error::EmptyLine { path: path.to_owned(), line });
    }
    Ok(text.to_owned())
}

/// The content of a file, decompressed if it is gzip (`.gz`).
pub(crate) fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    compressed::gzip(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    use tempfile::TempDir;

    /// Reads `content` as a file of this name; errors begin with the name and without the folder.
    fn lines_of(name: &str, content: &[u8]) -> Result<Vec<String>, String> {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let prefix = format!("{}/", folder.path().display());
        read_lines(&path).map_err(|error| error.to_string().replace(&prefix, ""))
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn plain_and_gzip_files_hold_the_same_lines() {
        let expected = Ok(vec!["Ein Hund.".to_owned(), "Zwei Hunde\u{2028}schlafen.".to_owned()]);
        let content = "Ein Hund.\nZwei Hunde\u{2028}schlafen.\n".as_bytes();
        assert_eq!(lines_of("a.de", content), expected);
        assert_eq!(lines_of("a.de.gz", &gzip(content)), expected);
        let (first, second) = content.split_at(10);
        assert_eq!(lines_of("a.de.gz", &[gzip(first), gzip(second)].concat()), expected, "two members");
    }

    #[test]
    fn byte_order_mark_carriage_returns_and_a_missing_last_newline_do_not_matter() {
        assert_eq!(
            lines_of("a.en", b"\xef\xbb\xbfA dog.\r\nTwo dogs."),
            lines_of("a.en", b"A dog.\nTwo dogs.\n")
        );
    }

    #[test]
    fn faults_are_named_with_file_and_line() {
        let fault = |content: &[u8]| lines_of("a.en", content).unwrap_err();
        assert_eq!(fault(b"A.\n\nB.\n"), "`a.en`, line 2: empty line, but every line must hold one sentence");
        assert_eq!(
            fault(b"A.\nB.\n \r\n"),
            "`a.en`, line 3: empty line, but every line must hold one sentence"
        );
        assert_eq!(fault(b"A.\n\xff\n"), "`a.en`, line 2: not valid UTF-8");
        assert_eq!(fault(b""), "`a.en` is empty: it must hold one sentence a line");
        assert_eq!(fault(b"\xef\xbb\xbf"), "`a.en` is empty: it must hold one sentence a line");
    }

    #[test]
    fn unreadable_files_are_named() {
        let whole = gzip(b"A dog.\n");
        assert_eq!(lines_of("a.en.gz", &whole[..whole.len() - 9]), Err("cannot read `a.en.gz`".into()));
        assert_eq!(lines_of("a.en.gz", b"A dog.\n"), Err("cannot read `a.en.gz`".into()));
        assert!(matches!(read_lines(Path::new("absent.en")), Err(Error::Read { .. })));
    }

    #[test]
    fn files_of_different_length_are_refused() {
        let folder = TempDir::new().unwrap();
        let [en, fr] = ["a.en", "a.fr"].map(|name| folder.path().join(name));
        fs::write(&en, "A.\nB.\nC.\n").unwrap();
        fs::write(&fr, "A.\nB.\n").unwrap();
        let error = ParallelText::read(&en, &fr).unwrap_err().to_string();
        let expected = format!(
            "`{}` has 3 lines, but `{}` has 2: parallel files must have equally many",
            en.display(),
            fr.display()
        );
        assert_eq!(error, expected);
    }

    #[test]
    fn pairs_are_selected_by_their_places() {
        let side = |text: &str| text.split(' ').map(str::to_owned).collect();
        let text = ParallelText { source: side("a b c"), target: side("x y z") };
        assert_eq!(text.select(&[2, 0]), ParallelText { source: side("c a"), target: side("z x") });
        assert!(ParallelText::default().is_empty());
    }
}
