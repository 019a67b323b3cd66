//! Tables of sentence pairs, one pair per row, and selection of pairs.
//!
//! Sentences are kept unchanged. The French of Tatoeba and NTREX has no-break spaces (U+00A0, U+202F) where Multi30k has plain ones. BLEU
//! does not see the difference, since its tokenisation ends with a split at any white space, and an altered reference would no longer be
//! the published one.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use words::excerpt;

use crate::Error;
use crate::archive::Archive;
use crate::foreign::listed;
use crate::parallel::ParallelText;
use crate::rows::{self, BadRows, Column, Layout, Record, RowKind, Source};

/// A file of sentence pairs, and the columns of its sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairTable {
    /// The file, or a zip archive (`.zip`) that contains it.
    pub path: PathBuf,
    /// Name of the table in the archive; optional if exactly one `.txt` or `.tsv` in it contains tabs.
    pub inside: Option<String>,
    /// Kind of rows; `None` for a tab-separated table without header.
    pub kind: Option<RowKind>,
    /// Column of the source sentences.
    pub source: Column,
    /// Column of their translations.
    pub target: Column,
    /// Columns of further references.
    pub others: Vec<Column>,
}

impl PairTable {
    /// Checks the description before any file is read.
    pub fn validate(&self) -> Result<(), Error> {
        let Self { path, source, .. } = self;
        let reason = if let Some(fault) = self.layout().fault([source].into_iter().chain(self.targets())) {
            fault
        } else if self.targets().any(|target| target == source) {
            format!("source and target are both column {source}")
        } else if self.inside.is_some() && !is_zip(path) {
            format!("`inside` is for archives, but `{}` is not a .zip file", path.display())
        } else {
            return Ok(());
        };
        Err(Error::of_format(reason))
    }

    fn targets(&self) -> impl Iterator<Item = &Column> {
        [&self.target].into_iter().chain(&self.others)
    }

    /// Returns the layout; columns with names need a header.
    fn layout(&self) -> Layout {
        let is_named = matches!(self.source, Column::Name(_));
        match self.kind {
            None => Layout { kind: RowKind::Tsv, header: Some(false), quoting: Some(false) },
            Some(kind) if kind.has_lists() => Layout { kind, header: None, quoting: None },
            Some(kind) => Layout { kind, header: Some(is_named), quoting: None },
        }
    }

    /// Reads the pairs in file order. Keeps only the first pair of each source sentence, so that no sentence weighs more than another.
    pub fn read(&self, bad: &mut BadRows) -> Result<ParallelText, Error> {
        self.validate()?;
        let Member { path, source } = content(&self.path, self.inside.as_deref())?;
        let columns: Vec<&Column> = [&self.source].into_iter().chain(self.targets()).collect();
        let mut rows = self.layout().read(&source, &path, &columns)?.peekable();
        if rows.peek().is_none() {
            return Err(Error::no_examples(&path));
        }
        let mut text = ParallelText::default();
        let mut seen = HashSet::new();
        let pair = |row: Record| {
            let cell = |column| row.filled(column).map_err(|reason| row.fault(&path, reason));
            columns.iter().map(|column| cell(column)).collect::<Result<Vec<_>, _>>()
        };
        for mut texts in bad.sift_all(rows.map(|row| row.and_then(pair)))? {
            if seen.insert(texts[0].clone()) {
                if !self.others.is_empty() {
                    text.others.push(texts.split_off(2));
                }
                text.target.extend(texts.pop());
                text.source.extend(texts.pop());
            }
        }
        Ok(text)
    }
}

/// A file, or a member of an archive.
pub(crate) struct Member {
    /// Name in messages.
    pub(crate) path: PathBuf,
    pub(crate) source: Source,
}

/// Reads a file, or a table in a zip archive (`.zip`): the member `inside`, by default the only table.
pub(crate) fn content(path: &Path, inside: Option<&str>) -> Result<Member, Error> {
    if is_zip(path) {
        return zipped(path, inside);
    }
    if inside.is_some() {
        let path = path.display();
        return Err(Error::of_format(format!("`inside` is for archives, but `{path}` is not a .zip file")));
    }
    Ok(Member { path: path.to_owned(), source: Source::open(path)? })
}

fn zipped(path: &Path, inside: Option<&str>) -> Result<Member, Error> {
    let mut archive = Archive::open(path)?;
    let (member, bytes) = match inside {
        Some(member) => (member.to_owned(), archive.read(member)?),
        None => only_table(path, &mut archive)?,
    };
    let path = PathBuf::from(format!("{}:{}", path.display(), excerpt(&member)));
    Ok(Member { source: Source::Text(rows::text(bytes, &path)?), path })
}

fn is_zip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zip")
}

/// Returns name and content of the only member that is a table: a `.txt` or `.tsv` with tabs.
fn only_table(path: &Path, archive: &mut Archive) -> Result<(String, Vec<u8>), Error> {
    let mut tables = Vec::new();
    for name in archive.members()? {
        if !name.ends_with(".txt") && !name.ends_with(".tsv") {
            continue;
        }
        let bytes = archive.read(&name)?;
        if bytes.contains(&b'\t') {
            tables.push((name, bytes));
        }
    }
    if tables.len() > 1 {
        let names = listed(tables.iter().map(|(name, _)| name));
        return Err(Error::of(path, format!("has more than one table, {names}: choose one with `inside`")));
    }
    tables.pop().ok_or_else(|| Error::of(path, "has no .txt or .tsv file with tabs"))
}

/// Which pairs of a file are kept; all by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selection {
    /// Maximum number of words on either side, separated by white space; longer pairs are skipped.
    pub most_words: Option<usize>,
    /// Size and seed of a random sample of the remaining pairs.
    pub sample: Option<(usize, u64)>,
}

impl Selection {
    /// Returns the pairs of `text` that are kept. A sample is in random order, so with equal seeds a smaller sample is the beginning of a
    /// larger one. A message about too few pairs names `path`.
    pub fn choose(&self, text: &ParallelText, path: &Path) -> Result<ParallelText, Error> {
        let mut kept: Vec<usize> = (0..text.len()).filter(|&index| self.fits(text, index)).collect();
        if let Some((asked, seed)) = self.sample {
            draw(&mut kept, (asked, seed), path, "pairs")?;
        }
        Ok(text.select(&kept))
    }

    fn fits(&self, text: &ParallelText, index: usize) -> bool {
        let words = |sentence: &str| sentence.split_whitespace().count();
        let longest = words(&text.source[index]).max(words(&text.target[index]));
        self.most_words.is_none_or(|most| longest <= most)
    }
}

/// Shuffles `all` by the seed and keeps the first `asked`: a smaller sample is the beginning of a larger one. `path` and `what` are for
/// messages.
pub(crate) fn draw<T>(
    all: &mut Vec<T>,
    (asked, seed): (usize, u64),
    path: &Path,
    what: &'static str,
) -> Result<(), Error> {
    if asked > all.len() {
        let found = all.len();
        let reason = format!("a sample of {asked} {what} is requested, but only {found} can be drawn");
        return Err(Error::of(path, reason));
    }
    all.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    all.truncate(asked);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{read_as, zip};

    const TABLE: &str = "Go.\tVa !\nRun!\tCours !\nRun!\tCourez !\nWow!\tÇa alors !\n";

    fn side(text: &[&str]) -> Vec<String> {
        text.iter().map(|&sentence| sentence.to_owned()).collect()
    }

    fn text(source: &[&str], target: &[&str]) -> ParallelText {
        ParallelText { source: side(source), target: side(target), ..ParallelText::default() }
    }

    fn read_table(
        name: &str,
        content: impl AsRef<[u8]>,
        inside: Option<&str>,
        kind: Option<RowKind>,
        [source, target]: [Column; 2],
    ) -> Result<ParallelText, String> {
        let inside = inside.map(str::to_owned);
        read_as(name, content, |path| {
            let table = PairTable { path: path.to_owned(), inside, kind, source, target, others: Vec::new() };
            table.read(&mut BadRows::default())
        })
    }

    fn read(
        name: &str,
        content: impl AsRef<[u8]>,
        inside: Option<&str>,
        columns: [usize; 2],
    ) -> Result<ParallelText, String> {
        read_table(name, content, inside, None, columns.map(Column::Number))
    }

    #[test]
    fn plain_and_zip_files_hold_the_same_pairs_each_source_once() {
        let expected = Ok(text(&["Go.", "Run!", "Wow!"], &["Va !", "Cours !", "Ça alors !"]));
        assert_eq!(read("a.tsv", TABLE, None, [1, 2]), expected);
        let archive =
            zip(&[("_about.txt", b"About.\n"), ("image.png", b"\t"), ("fra.txt", TABLE.as_bytes())]);
        assert_eq!(read("a.zip", archive, None, [1, 2]), expected);
    }

    #[test]
    fn columns_are_chosen_and_sentences_kept_as_they_stand() {
        let content = "1\tGeh.\tGo.\tCC BY\r\n2\tLauf!\tRun!\tCC BY\r\n3\tRenn!\tRun!";
        let expected = text(&["Geh.", "Lauf!", "Renn!"], &["Go.", "Run!", "Run!"]);
        assert_eq!(read("a.tsv", content, None, [2, 3]), Ok(expected));
        assert_eq!(read("a.tsv", content, None, [3, 2]), Ok(text(&["Go.", "Run!"], &["Geh.", "Lauf!"])));
        let content = "\u{feff}Go. \tVa\u{202f}!\nRun\u{2028}now.\t«\u{a0}Cours\u{a0}»\n";
        let expected = text(&["Go. ", "Run\u{2028}now."], &["Va\u{202f}!", "«\u{a0}Cours\u{a0}»"]);
        assert_eq!(read("a.tsv", content, None, [1, 2]), Ok(expected));
    }

    #[test]
    fn columns_have_names_in_tables_of_other_kinds() {
        for (kind, content, names) in [
            (RowKind::Csv, "id,en,fr\n1,Go.,\"Va, va\"\n", ["en", "fr"]),
            (RowKind::Jsonl, r#"{"pair": {"en": "Go.", "fr": "Va, va"}}"#, ["pair.en", "pair.fr"]),
        ] {
            let columns = names.map(|name| Column::Name(name.to_owned()));
            assert_eq!(read_table("a", content, None, Some(kind), columns), Ok(text(&["Go."], &["Va, va"])));
        }
    }

    #[test]
    fn an_archive_needs_one_table_or_the_name_of_one() {
        let two = zip(&[("fra.txt", TABLE.as_bytes()), ("deu.tsv", b"Go.\tGeh.\n")]);
        assert_eq!(read("a.zip", &two, Some("deu.tsv"), [1, 2]), Ok(text(&["Go."], &["Geh."])));
        for (archive, inside, fault) in [
            (&zip(&[("fra.csv", TABLE.as_bytes())])[..], None, "`a.zip`: has no .txt or .tsv file with tabs"),
            (&two, None, "`a.zip`: has more than one table, `fra.txt`, `deu.tsv`: choose one with `inside`"),
            (&two, Some("ita.txt"), "`a.zip`: has no `ita.txt`"),
            (&two[..two.len() / 2], None, "`a.zip`: not a complete zip archive"),
            (&zip(&[("fra.txt", b"Go.\tVa !\nRun!")]), None, "`a.zip:fra.txt`, line 2: 1 column"),
        ] {
            let error = read("a.zip", archive, inside, [1, 2]).unwrap_err();
            assert!(error.starts_with(fault), "{error}");
        }
    }

    /// 40 pairs; the source of pair n has n words.
    fn staircase() -> ParallelText {
        let source = (1..=40).map(|words| vec!["word"; words].join(" ")).collect();
        let target = (1..=40).map(|number| number.to_string()).collect();
        ParallelText { source, target, ..ParallelText::default() }
    }

    #[test]
    fn pairs_with_a_side_of_too_many_words_are_left_out_before_a_sample_is_drawn() {
        let choose = |most_words, sample, text: &ParallelText| {
            Selection { most_words, sample }.choose(text, Path::new("a.tsv"))
        };
        let all = staircase();
        assert_eq!(choose(None, None, &all).unwrap(), all);
        assert_eq!(choose(Some(3), None, &all).unwrap().target, ["1", "2", "3"]);
        let swapped = ParallelText { source: all.target.clone(), target: all.source.clone(), ..all.clone() };
        assert_eq!(choose(Some(3), None, &swapped).unwrap().source, ["1", "2", "3"]);
        let drawn = choose(Some(20), Some((12, 1)), &all).unwrap();
        let words = |sentence: &String| sentence.split(' ').count().to_string();
        assert_eq!(drawn.source.iter().map(words).collect::<Vec<_>>(), drawn.target, "pairs stay pairs");
        assert_eq!(drawn.target.iter().collect::<HashSet<_>>().len(), 12, "no pair twice");
        let refusal = choose(Some(3), Some((4, 1)), &all).unwrap_err().to_string();
        assert!(refusal.contains("a sample of 4 pairs is requested, but only 3 can be drawn"), "{refusal}");
    }
}
