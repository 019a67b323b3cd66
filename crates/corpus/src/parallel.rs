//! Parallel text: line n of one file translates line n of the other, or segments are aligned in WMT's SGML and XML.
use std::borrow::Cow;
use std::path::{Path, PathBuf};

use words::excerpt;

use crate::Error;
use crate::compressed;
use crate::foreign::listed;
use crate::markup;
use crate::rows::BadRows;

/// Sentences and their translations; all sides have equal length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParallelText {
    /// Source sentences.
    pub source: Vec<String>,
    /// First reference of each sentence, on which models are trained.
    pub target: Vec<String>,
    /// Further references of each sentence; empty if no sentence has any.
    pub others: Vec<Vec<String>>,
    /// Number of the document of each sentence, in ascending order; empty if the files have no documents.
    pub documents: Vec<usize>,
}

impl ParallelText {
    /// Reads a file of sentences and one or more files of references: one sentence per line, or WMT's SGML or XML, with the references
    /// of all translators unless `translators` names some.
    ///
    /// # Errors
    /// If a file is missing, truncated, empty or not UTF-8, has an empty line, is longer than another, has different segments, or lacks a
    /// translator.
    pub fn read(
        source: &Path,
        targets: &[impl AsRef<Path>],
        translators: &[String],
        bad: &mut BadRows,
    ) -> Result<Self, Error> {
        let source = Side::source(source)?;
        let targets = targets.iter().map(|target| Side::references(target.as_ref(), translators));
        let targets: Vec<Side> = targets.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        let longest = [&source].into_iter().chain(&targets).map(|side| side.sentences.len()).max();
        let rows = (0..longest.unwrap_or(0)).map(|row| {
            let texts = [&source]
                .into_iter()
                .chain(&targets)
                .filter_map(|side| Some((side, side.sentences.get(row)?)));
            let texts = texts
                .map(|(side, sentence)| sentence.clone().map_err(|(line, reason)| side.fault(line, reason)));
            Ok((texts.collect::<Result<Vec<_>, Error>>()?, source.ids.get(row).map(|id| id.0)))
        });
        let rows = bad.sift_all(rows)?;
        targets.iter().try_for_each(|target| target.check(&source))?;
        let mut text = Self::default();
        for (mut texts, document) in rows {
            text.others.push(texts.split_off(2));
            text.target.extend(texts.pop());
            text.source.extend(texts.pop());
            text.documents.extend(document);
        }
        if targets.len() == 1 {
            text.others.clear();
        }
        Ok(text)
    }

    /// Returns the references of a sentence.
    ///
    /// # Panics
    /// If `row` is out of range.
    pub fn references(&self, row: usize) -> Vec<&str> {
        let others = self.others.get(row).into_iter().flatten();
        [&self.target[row]].into_iter().chain(others).map(String::as_str).collect()
    }

    /// Returns the maximum number of references of a sentence.
    pub fn reference_count(&self) -> usize {
        1 + self.others.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns the number of sentences in each document; empty if the files have no documents.
    pub fn document_lengths(&self) -> Vec<usize> {
        self.documents.chunk_by(|one, next| one == next).map(<[_]>::len).collect()
    }

    /// Returns the number of sentence pairs.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Returns true if it has no sentence pairs.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// Appends pairs and continues the document numbers, which are dropped if one of the texts has none.
    pub fn append(&mut self, more: Self) {
        let (own, added) = (self.len(), more.len());
        if own == 0 {
            self.documents = more.documents;
        } else if self.documents.is_empty() || more.documents.is_empty() {
            self.documents.clear();
        } else {
            let next = self.documents.last().map_or(0, |last| last + 1);
            self.documents.extend(more.documents.into_iter().map(|document| next + document));
        }
        if !(self.others.is_empty() && more.others.is_empty()) {
            self.others.resize(own, Vec::new());
            self.others.extend(more.others);
            self.others.resize(own + added, Vec::new());
        }
        self.source.extend(more.source);
        self.target.extend(more.target);
    }

    /// Returns the pairs at these indices.
    ///
    /// # Panics
    /// If an index is out of range.
    pub fn select(&self, places: &[usize]) -> Self {
        fn side<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
            places.iter().filter(|_| !all.is_empty()).map(|&place| all[place].clone()).collect()
        }
        Self {
            source: side(&self.source, places),
            target: side(&self.target, places),
            others: side(&self.others, places),
            documents: side(&self.documents, places),
        }
    }
}

/// A sentence, or the number of its line or segment and its fault.
type Sentence = Result<String, (usize, String)>;

#[derive(Clone)]
struct Side {
    path: PathBuf,
    sentences: Vec<Sentence>,
    /// Number of the document, and names of document and segment; empty for lines.
    ids: Vec<(usize, [String; 2])>,
}

impl Side {
    fn source(path: &Path) -> Result<Self, Error> {
        let mut sides = sides(path)?.into_iter().filter(|(translator, _)| translator.is_none());
        sides.next().map(|(_, side)| side).ok_or_else(|| Error::of(path, "it has no source segments"))
    }

    /// Returns the references of a file, from all translators unless some are named.
    fn references(path: &Path, translators: &[String]) -> Result<Vec<Self>, Error> {
        let mut sides = sides(path)?;
        if matches!(&sides[..], [(None, side)] if side.ids.is_empty()) {
            return Ok(sides.into_iter().map(|(_, side)| side).collect());
        }
        sides.retain(|(translator, _)| translator.is_some());
        let names: Vec<String> = sides.iter().filter_map(|(translator, _)| translator.clone()).collect();
        if names.is_empty() {
            return Err(Error::of(path, "it has no references"));
        }
        if let Some(lacking) = translators.iter().find(|wanted| !names.contains(wanted)) {
            let lacking = excerpt(lacking);
            return Err(Error::of(path, format!("no translator `{lacking}`, only {}", listed(&names))));
        }
        sides.retain(|(name, _)| {
            translators.is_empty() || name.as_ref().is_some_and(|name| translators.contains(name))
        });
        Ok(sides.into_iter().map(|(_, side)| side).collect())
    }

    fn fault(&self, line: usize, reason: String) -> Error {
        match self.ids.get(line.wrapping_sub(1)) {
            Some((_, [document, segment])) => {
                let [document, segment] = [document, segment].map(|name| excerpt(name));
                Error::of(&self.path, format!("segment `{segment}` of document `{document}`: {reason}"))
            }
            None => Error::of_line(&self.path, line, reason),
        }
    }

    /// Refuses references that do not match the source sentences.
    fn check(&self, source: &Self) -> Result<(), Error> {
        check_lengths((&source.path, source.sentences.len()), (&self.path, self.sentences.len()))?;
        let mut pairs = source.ids.iter().zip(&self.ids);
        match pairs.position(|((_, own), (_, other))| own != other) {
            Some(place) => {
                let fault = format!("`{}` has a different segment in this place", self.path.display());
                Err(source.fault(place + 1, fault))
            }
            None => Ok(()),
        }
    }
}

/// Returns the sides of a file, each with its translator: `None` for the source and for lines.
fn sides(path: &Path) -> Result<Vec<(Option<String>, Side)>, Error> {
    let bytes = compressed::read(path)?;
    let whole = String::from_utf8_lossy(&bytes);
    let Some(sides) = markup::sides(whole.trim_start_matches('\u{feff}'), path)? else {
        let sentences = sentences(&bytes, path)?;
        return Ok(vec![(None, Side { path: path.to_owned(), sentences, ids: Vec::new() })]);
    };
    if matches!(whole, Cow::Owned(_)) {
        return Err(Error::of(path, "not valid UTF-8"));
    }
    let side = |own: markup::Side| {
        let segments = (1..).zip(own.segments).map(|(number, segment)| {
            let is_empty = segment.text.is_empty();
            let sentence = if is_empty { Err((number, "it is empty".to_owned())) } else { Ok(segment.text) };
            ((segment.document, segment.id), sentence)
        });
        let (ids, sentences) = segments.unzip();
        (own.translator, Side { path: path.to_owned(), sentences, ids })
    };
    Ok(sides.into_iter().map(side).collect())
}

/// Reads one sentence per line: UTF-8, plain, gzip or zstd, with or without byte-order mark and carriage returns. Lines end at `\n` only:
/// Unicode's other line breaks occur inside sentences of web text, where a split would break the alignment. SGML and XML are refused.
pub fn read_lines(path: &Path) -> Result<Vec<String>, Error> {
    let bytes = compressed::read(path)?;
    markup::refuse(String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}'), path)?;
    let sentence = |sentence: Sentence| sentence.map_err(|(line, reason)| Error::of_line(path, line, reason));
    sentences(&bytes, path)?.into_iter().map(sentence).collect()
}

/// Returns the sentence of each line, or its fault.
fn sentences(bytes: &[u8], path: &Path) -> Result<Vec<Sentence>, Error> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    if bytes.is_empty() {
        let path = path.display();
        return Err(Error::Invalid(format!("`{path}` is empty: it must contain one sentence per line")));
    }
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let sentence = |(bytes, line)| {
        let text = std::str::from_utf8(bytes).map_err(|_| (line, "not valid UTF-8".to_owned()))?;
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.trim().is_empty() {
            return Err((line, "empty line, but every line must contain one sentence".to_owned()));
        }
        Ok(text.to_owned())
    };
    Ok(text.split(|&byte| byte == b'\n').zip(1..).map(sentence).collect())
}

pub(crate) fn check_lengths(
    (source, source_lines): (&Path, usize),
    (target, target_lines): (&Path, usize),
) -> Result<(), Error> {
    if source_lines == target_lines {
        return Ok(());
    }
    let [source, target] = [source, target].map(Path::display);
    Err(Error::Invalid(format!(
        "`{source}` has {source_lines} lines, but `{target}` has {target_lines}: parallel files must have equal numbers of lines"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{gzip, read_as};

    fn lines_of(name: &str, content: impl AsRef<[u8]>) -> Result<Vec<String>, String> {
        read_as(name, content, read_lines)
    }

    #[test]
    fn lines_do_not_depend_on_compression_or_line_ends() {
        let expected = Ok(vec!["Ein Hund.".to_owned(), "Zwei Hunde\u{2028}schlafen.".to_owned()]);
        let content = "Ein Hund.\nZwei Hunde\u{2028}schlafen.\n".as_bytes();
        assert_eq!(lines_of("a.de", content), expected);
        assert_eq!(lines_of("a.de", "\u{feff}Ein Hund.\r\nZwei Hunde\u{2028}schlafen.".as_bytes()), expected);
        assert_eq!(lines_of("a.de.gz", gzip(content)), expected);
        let (first, second) = content.split_at(10);
        assert_eq!(lines_of("a.de.gz", [gzip(first), gzip(second)].concat()), expected, "two members");
    }
}
