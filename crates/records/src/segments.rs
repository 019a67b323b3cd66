//! What was measured of each segment, beside the rows: a gzip-compressed CSV file that grows block by block.
//!
//! `ablate-one.segments.csv.gz` has the columns `row`, `segment` and the numbers that its metric stores of a segment. A block
//! begins with the line for segment 0, which has the name of the row and the sums over the whole test set; these show whether the
//! block is complete. The lines below it are those of the segments on which a model with heads masked differs from its base,
//! counted from 1. There `row` is empty, and so is `segment` where it is the one after that of the line above, but for the last
//! line of a block, which shows that none is missing. Counts are digits; what cannot be counted has a point or an
//! exponent, and is the shortest text that reads back to the same number of single precision, or of double precision in the sums.
//!
//! Files of earlier versions, which have both in every line, can still be read.
//!
//! Each block is a gzip member of its own, so that an interruption can only tear the end of the file.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use stats::{Cell, Cells};

use crate::file::{LockedFile, write_error};
use crate::stored::bytes;
use crate::{Error, Sum};

/// No statistics are longer than this, in bytes of text: a file that claims to be is a trap.
const LONGEST: u64 = 1 << 28;

/// Segments of a test set beyond this are faults.
const MOST_SEGMENTS: usize = 1 << 22;

/// What was measured of a model with heads masked, or of a base.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// What it is stored under.
    pub name: String,
    /// The segments that differ from the base, all of a base: place, counted from 0, and numbers. Places ascend.
    pub segments: Vec<(usize, Cells)>,
    /// The sums of the numbers over the whole test set.
    pub sums: Vec<Sum>,
}

impl Block {
    /// Of a model whose numbers of all segments are these; those that `base` has too are left out.
    ///
    /// # Panics
    /// If the base covers another number of segments.
    pub fn new(name: String, cells: &[Cells], base: Option<&[Cells]>) -> Self {
        let mut sums = vec![Sum::ZERO; cells.first().map_or(0, Vec::len)];
        for cells in cells {
            sums.iter_mut().zip(cells).for_each(|(sum, &cell)| *sum = sum.plus(cell));
        }
        if let Some(base) = base {
            assert_eq!(base.len(), cells.len(), "a model and its base cover the same segments");
        }
        let differs = |place: &usize| base.is_none_or(|base| base[*place] != cells[*place]);
        let places = (0..cells.len()).filter(differs);
        Self { name, segments: places.map(|place| (place, cells[place].clone())).collect(), sums }
    }

    /// The numbers of all segments.
    ///
    /// # Errors
    /// If they do not add up to the stored sums: a part of the block, or another base.
    pub fn cells(&self, base: Option<&[Cells]>) -> Result<Vec<Cells>, String> {
        let mut cells = base.map_or(Vec::new(), <[Cells]>::to_vec);
        for (place, segment) in &self.segments {
            if let Some(known) = cells.get_mut(*place) {
                known.clone_from(segment);
            } else if *place == cells.len() && base.is_none() {
                cells.push(segment.clone());
            } else {
                return Err(format!("`{}` does not reach segment {}", self.name, place + 1));
            }
        }
        if Self::new(String::new(), &cells, None).sums == self.sums {
            Ok(cells)
        } else {
            Err(format!("the segments of `{}` do not add up to its sums", self.name))
        }
    }

    /// Number of segments in which another base differs from this one.
    pub(crate) fn differences(&self, other: &Self) -> usize {
        let own = self.segments.iter().filter(|segment| !other.segments.contains(segment)).count();
        own.max(self.segments.len().abs_diff(other.segments.len()))
    }

    fn text(&self) -> String {
        let joined = |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(",");
        let mut text = format!("{},0,{}\n", self.name, joined(&mut self.sums.iter().map(Sum::to_string)));
        let mut expected = 0;
        for (index, (place, cells)) in self.segments.iter().enumerate() {
            let is_told = *place == expected && index + 1 < self.segments.len();
            let segment = if is_told { String::new() } else { (place + 1).to_string() };
            text += &format!(",{segment},{}\n", joined(&mut cells.iter().map(Cell::to_string)));
            expected = place + 1;
        }
        text
    }
}

/// All blocks of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blocks {
    /// The numbers of a segment, by name.
    pub columns: Vec<String>,
    blocks: BTreeMap<String, Block>,
}

impl Blocks {
    /// The block of this name.
    pub fn get(&self, name: &str) -> Option<&Block> {
        self.blocks.get(name)
    }

    /// Adds a block, in the place of an earlier one of its name.
    pub fn insert(&mut self, block: Block) {
        self.blocks.insert(block.name.clone(), block);
    }

    /// The blocks, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.blocks.values()
    }

    /// Adds those blocks of others that are wanted, in the place of earlier ones of their names.
    pub(crate) fn add(&mut self, others: &Self, is_wanted: impl Fn(&str) -> bool) {
        if self.columns.is_empty() {
            self.columns.clone_from(&others.columns);
        }
        others.iter().filter(|block| is_wanted(&block.name)).cloned().for_each(|block| self.insert(block));
    }

    /// Takes out all blocks but those of these names.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.blocks.retain(|name, _| keep(name));
    }

    /// Names the numbers of a segment, unless they have names.
    pub(crate) fn name_columns(&mut self, columns: &[&str]) {
        if self.columns.is_empty() {
            self.columns = columns.iter().map(|&column| column.to_owned()).collect();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Where the statistics beside a CSV file are.
    pub fn path_beside(csv: &Path) -> PathBuf {
        csv.with_extension("segments.csv.gz")
    }

    /// Reads a file; absent if there is none.
    ///
    /// # Errors
    /// If it cannot be read, is torn, or is not such a file.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let Some(bytes) = bytes(path)? else { return Ok(None) };
        let read = Readable::of(path, &bytes)?;
        if read.complete < bytes.len() {
            return Err(Error::Segments { path: path.to_owned(), fault: "its end is torn".to_owned() });
        }
        Ok(Some(read.blocks))
    }

    /// The same of a file that may be growing: what is torn at its end is left out.
    ///
    /// # Errors
    /// If it cannot be read, or is not such a file.
    pub(crate) fn read_untorn(path: &Path) -> Result<Option<Self>, Error> {
        let Some(bytes) = bytes(path)? else { return Ok(None) };
        Ok(Some(Readable::of(path, &bytes)?.blocks))
    }

    /// The whole file, in the order of names: equal statistics give equal bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let text: String = self.blocks.values().map(Block::text).collect();
        compressed(&(header(&self.columns) + &text))
    }
}

fn header(columns: &[String]) -> String {
    format!("row,segment,{}\n", columns.join(","))
}

fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).expect("memory takes every byte");
    encoder.finish().expect("memory takes every byte")
}

/// What can be read of a file that may be torn.
struct Readable {
    blocks: Blocks,
    /// Length of the complete members, in bytes.
    complete: usize,
}

impl Readable {
    fn of(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let fault = |fault: String| Error::Segments { path: path.to_owned(), fault };
        let mut blocks = Blocks::default();
        let (mut complete, mut left) = (0, LONGEST);
        while let Some((text, length)) = member(&bytes[complete..], left).map_err(&fault)? {
            left -= text.len() as u64;
            let text = String::from_utf8(text).map_err(|_| fault("it is not UTF-8 text".to_owned()))?;
            parse(&text, &mut blocks).map_err(&fault)?;
            complete += length;
        }
        Ok(Self { blocks, complete })
    }
}

/// The text of the first gzip member, and its length; `None` if it is torn, or there is none.
fn member(bytes: &[u8], limit: u64) -> Result<Option<(Vec<u8>, usize)>, String> {
    let mut decoder = GzDecoder::new(bytes);
    let mut text = Vec::new();
    if bytes.is_empty() || decoder.by_ref().take(limit + 1).read_to_end(&mut text).is_err() {
        return Ok(None);
    }
    if text.len() as u64 > limit {
        return Err(format!("it holds more than {LONGEST} bytes of text"));
    }
    Ok(Some((text, bytes.len() - decoder.into_inner().len())))
}

fn parse(text: &str, blocks: &mut Blocks) -> Result<(), String> {
    let mut block: Option<Block> = None;
    for line in text.lines() {
        let shown = || line.chars().take(80).collect::<String>().escape_debug().to_string();
        let mut words = line.split(',');
        let (Some(name), Some(segment)) = (words.next(), words.next()) else {
            return Err(format!("`{}` is not a line of it", shown()));
        };
        if blocks.columns.is_empty() {
            if (name, segment) != ("row", "segment") || words.clone().next().is_none() {
                return Err(format!("it begins with `{}`, not with `row,segment,`", shown()));
            }
            blocks.columns = words.map(str::to_owned).collect();
            continue;
        }
        let next = block.as_ref().map(|block| block.segments.last().map_or(1, |(last, _)| last + 2));
        let segment = if segment.is_empty() { next } else { segment.parse().ok() };
        let segment = segment.ok_or_else(|| format!("`{}` has no segment", shown()))?;
        let words: Vec<&str> = words.collect();
        if words.len() != blocks.columns.len() {
            return Err(format!("`{}` lacks a number", shown()));
        }
        if segment == 0 {
            let begun = begun(name, &words).map_err(|fault| format!("`{}` {fault}", shown()))?;
            block.replace(begun).into_iter().for_each(|whole| blocks.insert(whole));
            continue;
        }
        add(block.as_mut(), name, segment, &words).map_err(|fault| format!("`{}` {fault}", shown()))?;
    }
    block.into_iter().for_each(|block| blocks.insert(block));
    Ok(())
}

/// A block with no segments yet.
fn begun(name: &str, sums: &[&str]) -> Result<Block, &'static str> {
    if name.is_empty() {
        return Err("has no row");
    }
    let sums = sums.iter().map(|sum| Sum::parse(sum)).collect::<Option<_>>().ok_or("lacks a number")?;
    Ok(Block { name: name.to_owned(), segments: Vec::new(), sums })
}

/// Adds a segment to a block, which must be of this name unless there is none.
fn add(block: Option<&mut Block>, name: &str, segment: usize, cells: &[&str]) -> Result<(), &'static str> {
    let cells = cells.iter().map(|cell| Cell::parse(cell)).collect::<Option<_>>().ok_or("lacks a number")?;
    let is_own = |block: &&mut Block| name.is_empty() || block.name == name;
    let is_later = |block: &&mut Block| block.segments.last().is_none_or(|(last, _)| *last < segment - 1);
    match block.filter(is_own).filter(is_later) {
        Some(block) if segment <= MOST_SEGMENTS => block.segments.push((segment - 1, cells)),
        _ => return Err("does not follow the line before it"),
    }
    Ok(())
}

/// A file that blocks are appended to.
#[derive(Debug)]
pub(crate) struct SegmentsWriter {
    path: PathBuf,
    file: LockedFile,
    pub(crate) blocks: Blocks,
}

impl SegmentsWriter {
    /// Opens the file, or creates it; a block torn by an interruption is cut off.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut file = LockedFile::open(path)?;
        let bytes = file.read().map_err(|source| crate::file::read_error(path, source))?;
        let read = Readable::of(path, &bytes)?;
        if read.complete < bytes.len() {
            file.truncate(read.complete).map_err(|source| write_error(path, source))?;
        }
        Ok(Self { path: path.to_owned(), file, blocks: read.blocks })
    }

    /// Appends a block and waits until it is on the disk.
    pub(crate) fn append(&mut self, columns: &[&str], block: Block) -> Result<(), Error> {
        let mut text = block.text();
        if self.blocks.columns.is_empty() {
            self.blocks.name_columns(columns);
            text.insert_str(0, &header(&self.blocks.columns));
        }
        self.file.append(compressed(&text)).map_err(|source| write_error(&self.path, source))?;
        self.blocks.insert(block);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const COLUMNS: [&str; 2] = ["gold", "predicted"];

    fn cells(predicted: &[u32]) -> Vec<Cells> {
        predicted.iter().map(|&predicted| [1, predicted].map(Cell::Count).to_vec()).collect()
    }

    fn written(path: &Path, blocks: &[Block]) {
        let mut writer = SegmentsWriter::open(path).unwrap();
        for block in blocks {
            writer.append(&COLUMNS, block.clone()).unwrap();
        }
    }

    fn three_blocks() -> [Block; 3] {
        let (base, variant) = (cells(&[1, 0, 1]), cells(&[1, 1, 1]));
        [
            Block::new("base".to_owned(), &base, None),
            Block::new("self:1:1".to_owned(), &variant, Some(&base)),
            Block::new("self:1:2".to_owned(), &base, Some(&base)),
        ]
    }

    /// A text as long as is left is read whole, a longer one refused, by however much it is longer.
    #[test]
    fn a_member_may_be_as_long_as_what_is_left() {
        for (text, is_read) in [("1234", true), ("12345", true), ("123456", false), ("123456789", false)] {
            let bytes = compressed(text);
            match member(&[bytes.as_slice(), b"more"].concat(), 5) {
                Ok(found) => {
                    assert!(is_read, "{text}");
                    assert_eq!(found, Some((text.as_bytes().to_vec(), bytes.len())));
                }
                Err(fault) => assert!(!is_read && fault.contains("it holds more than"), "{text}: {fault}"),
            }
        }
    }

    #[test]
    fn only_what_differs_from_the_base_is_stored() {
        let [base, variant, same] = three_blocks();
        let sums = |sums: [u64; 2]| sums.map(Sum::Count).to_vec();
        assert_eq!((base.segments.len(), &base.sums), (3, &sums([3, 2])));
        let changed = [(1, cells(&[1]).remove(0))];
        assert_eq!((variant.segments.as_slice(), &variant.sums), (&changed[..], &sums([3, 3])));
        assert!(same.segments.is_empty());
        assert_eq!(base.text(), "base,0,3,2\n,,1,1\n,,1,0\n,3,1,1\n");
        assert_eq!(variant.text(), "self:1:1,0,3,3\n,2,1,1\n");
        let of_base = base.cells(None).unwrap();
        assert_eq!(variant.cells(Some(&of_base)), Ok(cells(&[1, 1, 1])));
        let other = cells(&[0, 0, 0]);
        assert!(variant.cells(Some(&other)).unwrap_err().contains("do not add up"));
        assert!(variant.cells(None).unwrap_err().contains("does not reach segment 2"));
    }

    /// Torn after every byte: what is there of complete blocks is kept, and appending goes on behind them.
    #[test]
    fn a_torn_file_keeps_its_complete_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.segments.csv.gz");
        let blocks = three_blocks();
        written(&path, &blocks);
        let whole = std::fs::read(&path).unwrap();
        let expected = Blocks::read(&path).unwrap().unwrap();
        assert_eq!(expected.get("self:1:1"), Some(&blocks[1]));
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let there = SegmentsWriter::open(&path).unwrap().blocks;
            let missing: Vec<Block> =
                blocks.iter().filter(|block| there.get(&block.name).is_none()).cloned().collect();
            assert!(!missing.is_empty(), "torn after {length} bytes");
            written(&path, &missing);
            assert_eq!(Blocks::read(&path).unwrap(), Some(expected.clone()), "torn after {length} bytes");
        }
    }

    #[test]
    fn equal_statistics_give_equal_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["a.gz", "b.gz"].map(|name| folder.path().join(name));
        let mut blocks = three_blocks();
        written(&first, &blocks);
        blocks.reverse();
        written(&second, &blocks);
        let [first, second] = [first, second].map(|path| Blocks::read(&path).unwrap().unwrap());
        assert_eq!(first.bytes(), second.bytes());
        std::fs::write(folder.path().join("c.gz"), first.bytes()).unwrap();
        assert_eq!(Blocks::read(&folder.path().join("c.gz")).unwrap(), Some(first));
    }

    /// As in earlier versions: row and segment in every line, or in some.
    #[test]
    fn names_and_numbers_that_a_reader_can_tell_may_stand_there() {
        let text: String = three_blocks().iter().map(Block::text).collect();
        let long = text.replace("\n,,1,1\n,,1,0\n,3,1,1\n", "\nbase,1,1,1\nbase,2,1,0\n,,1,1\n");
        let long = long.replace("\n,2,1,1\n", "\nself:1:1,2,1,1\n");
        assert_eq!(long.lines().filter(|line| line.starts_with(',')).count(), 1, "{long}");
        let read = |text: &str| {
            let text = header(&COLUMNS.map(str::to_owned)) + text;
            Readable::of(Path::new("a.gz"), &compressed(&text)).unwrap().blocks
        };
        assert_eq!(read(&long), read(&text));
    }

    /// Without its second line, which adds nothing to the sums, the block would have two segments.
    #[test]
    fn a_missing_line_of_zeros_is_found() {
        let zeros = Block::new(
            "base".to_owned(),
            &[[1, 1], [0, 0], [1, 0]].map(|of| of.map(Cell::Count).to_vec()),
            None,
        );
        let (text, mut blocks) = (zeros.text().replacen(",,0,0\n", "", 1), Blocks::default());
        assert_eq!(text, "base,0,2,1\n,,1,1\n,3,1,0\n");
        parse(&(header(&COLUMNS.map(str::to_owned)) + &text), &mut blocks).unwrap();
        let fault = blocks.get("base").unwrap().cells(None).unwrap_err();
        assert_eq!(fault, "`base` does not reach segment 3");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gz");
        assert_eq!(Blocks::read(&path).unwrap(), None);
        for (text, fault) in [
            ("day,note\n", "it begins with `day,note`"),
            ("row,segment\n", "it begins with"),
            ("row,segment,gold\nbase\n", "`base` is not a line of it"),
            ("row,segment,gold\nbase,0,x\n", "lacks a number"),
            ("row,segment,gold\nbase,0,1,2\n", "lacks a number"),
            ("row,segment,gold\nbase,one,1\n", "has no segment"),
            ("row,segment,gold\nbase,1,1\n", "does not follow"),
            ("row,segment,gold\nbase,0,1\nother,1,1\n", "does not follow"),
            ("row,segment,gold\nbase,0,1\nbase,1,1\nbase,1,1\n", "does not follow"),
            ("row,segment,gold\n,,1\n", "has no segment"),
            ("row,segment,gold\n,1,1\n", "does not follow"),
            ("row,segment,gold\n,0,1\n", "`,0,1` has no row"),
            ("row,segment,gold\nbase,0,1\n,,1\n,1,1\n", "does not follow"),
            ("row,segment,gold\nbase,0,9\nbase,1,99999999999\n", "lacks a number"),
            ("row,segment,nats\nbase,0,9.5\nbase,1,NaN\n", "lacks a number"),
            ("row,segment,nats\nbase,0,inf\n", "lacks a number"),
            ("row,segment,nats\nbase,0,9.5\nbase,1,-9.5\n", "lacks a number"),
            ("row,segment,gold\nbase,0,9\nbase,9999999,9\n", "does not follow"),
        ] {
            std::fs::write(&path, compressed(text)).unwrap();
            let message = Blocks::read(&path).unwrap_err().to_string();
            assert!(message.contains(fault) && !message.contains('\n'), "{message}");
        }
        std::fs::write(&path, "plain text").unwrap();
        assert!(Blocks::read(&path).unwrap_err().to_string().ends_with("its end is torn"));
    }

    /// 0.1 and 0.2 in single precision; their sum in double precision has more digits.
    #[test]
    fn decimal_numbers_are_stored_as_short_as_can_be() {
        let documents = [[Cell::Decimal(0.1), Cell::Count(3)], [Cell::Decimal(0.2), Cell::Count(4)]];
        let cells: Vec<Cells> = documents.map(|document| document.to_vec()).to_vec();
        let block = Block::new("base".to_owned(), &cells, None);
        assert_eq!(block.text(), "base,0,0.30000000447034836,7\n,,0.1,3\n,2,0.2,4\n");
        let mut blocks =
            Blocks { columns: vec!["nats".to_owned(), "tokens".to_owned()], ..Blocks::default() };
        blocks.insert(block);
        let read = Readable::of(Path::new("a.gz"), &blocks.bytes()).unwrap().blocks;
        assert_eq!(read, blocks);
        assert_eq!(read.get("base").unwrap().cells(None), Ok(cells));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, text in "[a-z0-9.,\n]*") {
            let _ = Readable::of(Path::new("a.gz"), &bytes);
            let _ = Readable::of(Path::new("a.gz"), &compressed(&text));
        }

        #[test]
        fn blocks_read_back(predicted in vec((0..3_u32, 0..3_u32), 1..20)) {
            let (base, variant): (Vec<u32>, Vec<u32>) = predicted.into_iter().unzip();
            let (base, variant) = (cells(&base), cells(&variant));
            let mut blocks = Blocks { columns: vec!["gold".to_owned(), "predicted".to_owned()], ..Blocks::default() };
            blocks.insert(Block::new("base".to_owned(), &base, None));
            blocks.insert(Block::new("v".to_owned(), &variant, Some(&base)));
            let read = Readable::of(Path::new("a.gz"), &blocks.bytes()).unwrap().blocks;
            prop_assert_eq!(&read, &blocks);
            let of_base = read.get("base").unwrap().cells(None).unwrap();
            prop_assert_eq!(read.get("v").unwrap().cells(Some(&of_base)).unwrap(), variant);
        }
    }
}
