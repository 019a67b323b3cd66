//! Line-parallel text: line n of one file translates line n of the other.
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::Error;
use crate::compressed;
use crate::markup;
use crate::rows::BadRows;

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
    ///
    /// # Errors
    /// If a file is missing, torn, empty, SGML, XML or not UTF-8, has an empty line, or is longer than the other.
    pub fn read(source: &Path, target: &Path, bad: &mut BadRows) -> Result<Self, Error> {
        let [sources, targets] = [lines(source)?, lines(target)?];
        let lengths = [sources.len(), targets.len()];
        let pairs =
            bad.sift_all(sources.into_iter().zip(targets).map(|(source, target)| Ok((source?, target?))))?;
        check_lengths((source, lengths[0]), (target, lengths[1]))?;
        let (source, target) = pairs.into_iter().unzip();
        Ok(Self { source, target })
    }

    /// Number of sentence pairs.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Returns true if there is no sentence pair.
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
/// reader that split there would lose the alignment. SGML and XML are refused.
pub fn read_lines(path: &Path) -> Result<Vec<String>, Error> {
    lines(path)?.into_iter().collect()
}

/// The sentences of lines, or their faults.
fn lines(path: &Path) -> Result<Vec<Result<String, Error>>, Error> {
    let bytes = read_bytes(path)?;
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    if bytes.is_empty() {
        let path = path.display();
        return Err(Error::Invalid(format!("`{path}` is empty: it must hold one sentence a line")));
    }
    markup::refuse(&String::from_utf8_lossy(bytes), path)?;
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let sentence = |(bytes, line)| {
        let text = std::str::from_utf8(bytes).map_err(|_| Error::of_line(path, line, "not valid UTF-8"))?;
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.trim().is_empty() {
            let reason = "empty line, but every line must hold one sentence";
            return Err(Error::of_line(path, line, reason));
        }
        Ok(text.to_owned())
    };
    Ok(text.split(|&byte| byte == b'\n').zip(1..).map(sentence).collect())
}

/// Refuses files that do not have equally many lines.
pub(crate) fn check_lengths(
    (source, source_lines): (&Path, usize),
    (target, target_lines): (&Path, usize),
) -> Result<(), Error> {
    if source_lines == target_lines {
        return Ok(());
    }
    let [source, target] = [source, target].map(Path::display);
    Err(Error::Invalid(format!(
        "`{source}` has {source_lines} lines, but `{target}` has {target_lines}: parallel files must have equally many"
    )))
}

/// The content of a file, decompressed if it is gzip (`.gz`).
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = if path.extension().is_some_and(|extension| extension == "gz") {
        compressed::gzip(path).and_then(|mut content| content.read_to_end(&mut bytes))
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map(|_| bytes).map_err(Error::reading(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{gzip, read_as};
    use std::fs;
    use tempfile::TempDir;

    fn lines_of(name: &str, content: impl AsRef<[u8]>) -> Result<Vec<String>, String> {
        read_as(name, content, read_lines)
    }

    #[test]
    fn lines_are_the_same_however_a_file_is_written() {
        let expected = Ok(vec!["Ein Hund.".to_owned(), "Zwei Hunde\u{2028}schlafen.".to_owned()]);
        let content = "Ein Hund.\nZwei Hunde\u{2028}schlafen.\n".as_bytes();
        assert_eq!(lines_of("a.de", content), expected);
        assert_eq!(lines_of("a.de", "\u{feff}Ein Hund.\r\nZwei Hunde\u{2028}schlafen.".as_bytes()), expected);
        assert_eq!(lines_of("a.de.gz", gzip(content)), expected);
        let (first, second) = content.split_at(10);
        assert_eq!(lines_of("a.de.gz", [gzip(first), gzip(second)].concat()), expected, "two members");
    }

    #[test]
    fn markup_is_refused_in_either_file_even_if_bad_rows_are_left_out() {
        let folder = TempDir::new().unwrap();
        let [plain, markup] = ["a.txt", "a.sgm.gz"].map(|name| folder.path().join(name));
        fs::write(&plain, "A dog.\nIt sleeps.\n").unwrap();
        fs::write(&markup, gzip(b"\xef\xbb\xbf<refset>\r\n<seg id=\"1\">Ein Hund.</seg>\r\n")).unwrap();
        for (source, target) in [(&plain, &markup), (&markup, &plain)] {
            let mut bad = BadRows::new(crate::rows::BadRowRule::Skip);
            let error = ParallelText::read(source, target, &mut bad).unwrap_err().to_string();
            let start = format!("`{}`, line 1: `<refset` is SGML or XML", markup.display());
            assert!(error.starts_with(&start) && !error.contains('\n'), "{error}");
        }
    }
    #[test]
    fn files_of_different_length_are_refused() {
        let read = read_as("a.en", "A.\nB.\nC.\n", |en| {
            let fr = en.with_file_name("a.fr");
            fs::write(&fr, "A.\nB.\n").unwrap();
            ParallelText::read(en, &fr, &mut BadRows::default())
        });
        let expected = "`a.en` has 3 lines, but `a.fr` has 2: parallel files must have equally many";
        assert_eq!(read.unwrap_err(), expected);
    }
}
