//! Statistics of segments, in a gzip-compressed CSV file that grows block by block.
//!
//! `ablate-one.segments.csv.gz` has the columns `row`, `segment` and the numbers that its metric stores for a segment. A block begins with
//! the line for segment 0, which has the name of the row and the sums over the whole test set; these show whether the block is complete.
//! The following lines are the segments, counted from 1, on which a model with heads masked differs from the full model. There, `row` is
//! empty, and `segment` is empty if it is one more than in the preceding line, except in the last line of a block, which shows that no line
//! is missing. Counts are digits; other numbers have a point or an exponent, in the shortest text that parses to an equal number in single
//! precision, or double precision for sums.
//!
//! Files of earlier versions, with both cells in every line, can still be read.
//!
//! While the file grows, each block is a separate gzip member, so that an interruption can only tear the end.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use stats::{Cell, Cells};

use crate::place::bytes;
use crate::signature::sha256;
use crate::{Error, Signature, Sum};

/// Maximum length of a gzip member, in bytes of text, as a guard against decompression bombs.
const LONGEST: u64 = 1 << 28;

/// Maximum length of all members together, in bytes of text.
const MAX_TEXT: u64 = 1 << 33;

/// Length from which on a block ends a member of a complete file, in bytes of text.
const LONG: usize = 1 << 26;

/// Maximum number of segments of a test set.
const MAX_SEGMENTS: usize = 1 << 22;

/// Statistics of a model with heads masked, or of a full model.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Name in the file.
    pub name: String,
    /// Index, counted from 0, and numbers of the segments that differ from the base, ascending; all segments for a base.
    pub segments: Vec<(usize, Cells)>,
    /// Sums of the numbers over the whole test set.
    pub sums: Vec<Sum>,
}

impl Block {
    /// Builds the block of a model from the numbers of all segments; leaves out segments that `base` has too.
    ///
    /// # Panics
    /// If the base covers a different number of segments.
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

    /// Returns the numbers of all segments.
    ///
    /// # Errors
    /// If they do not add up to the stored sums, because the block is incomplete or has another base.
    pub fn cells(&self, base: Option<&[Cells]>) -> Result<Vec<Cells>, String> {
        let mut cells = base.map_or(Vec::new(), <[Cells]>::to_vec);
        for (place, segment) in &self.segments {
            if let Some(known) = cells.get_mut(*place) {
                known.clone_from(segment);
            } else if *place == cells.len() && base.is_none() {
                cells.push(segment.clone());
            } else {
                return Err(format!("`{}` skips segments before segment {}", self.name, place + 1));
            }
        }
        if Self::new(String::new(), &cells, None).sums == self.sums {
            Ok(cells)
        } else {
            Err(format!("the segments of `{}` do not add up to its sums", self.name))
        }
    }

    /// Returns the number of segments in which another base differs from this one.
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

const FIRST_ORDER: &str = "first-order/";

/// Returns the name of the block with first-order predictions for a row: its segments if the loss were linear in the gates.
pub fn first_order_name(row: &str) -> String {
    format!("{FIRST_ORDER}{row}")
}

/// Returns the name of the row or base that a block belongs to.
pub fn row_of(block: &str) -> &str {
    block.strip_prefix(FIRST_ORDER).unwrap_or(block)
}

pub(crate) fn is_predicted(block: &str) -> bool {
    block.starts_with(FIRST_ORDER)
}

/// Blocks of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blocks {
    /// Names of the numbers of a segment.
    pub columns: Vec<String>,
    blocks: BTreeMap<String, Block>,
}

impl Blocks {
    /// Returns the block with this name.
    pub fn get(&self, name: &str) -> Option<&Block> {
        self.blocks.get(name)
    }

    /// Adds a block, or replaces the block with its name.
    pub fn insert(&mut self, block: Block) {
        self.blocks.insert(block.name.clone(), block);
    }

    /// Returns the blocks, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.blocks.values()
    }

    /// Adds the blocks of others, or replaces the blocks with their names.
    pub(crate) fn add(&mut self, others: Self) {
        if self.columns.is_empty() {
            self.columns = others.columns;
        }
        self.blocks.extend(others.blocks);
    }

    /// Keeps only the blocks with these names.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.blocks.retain(|name, _| keep(name));
    }

    /// Returns the bytes that add a block to a growing file.
    pub(crate) fn addition(&self, block: &Block) -> Vec<u8> {
        let header = if self.is_empty() { header(&self.columns) } else { String::new() };
        compressed(&(header + &block.text()))
    }

    /// Returns true without blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the path of the statistics for a CSV file.
    pub fn path_beside(csv: &Path) -> PathBuf {
        csv.with_extension("segments.csv.gz")
    }

    /// Reads the statistics for a CSV file with this signature; `None` without a file.
    ///
    /// # Errors
    /// If they are not the ones that the signature was completed with, cannot be read, are torn, or are not statistics.
    pub fn beside(csv: &Path, signature: &Signature) -> Result<Option<Self>, Error> {
        let path = Self::path_beside(csv);
        let Some(bytes) = bytes(&path)? else { return Ok(None) };
        check_segments(&path, Some(&bytes), signature)?;
        Self::of(&path, &bytes).map(Some)
    }

    fn of(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let read = Readable::of(path, bytes)?;
        let rest = &bytes[read.complete..];
        if !rest.is_empty() {
            let fault = match (may_be_gzip(rest), read.complete) {
                (true, _) => "its end is torn",
                (false, 0) => "it is not compressed with gzip",
                (false, _) => "the data after its last gzip member is not gzip",
            };
            return Err(no_segments(path, fault));
        }
        Ok(read.blocks)
    }

    /// Reads a file that may still grow, without a torn end; `None` if it does not exist.
    pub(crate) fn read_untorn(path: &Path) -> Result<Option<Self>, Error> {
        let Some(bytes) = bytes(path)? else { return Ok(None) };
        Ok(Some(Readable::of(path, &bytes)?.blocks))
    }

    /// Returns the content of the file, sorted by name: equal statistics give equal bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (mut bytes, mut text) = (Vec::new(), header(&self.columns));
        for block in self.blocks.values() {
            text += &block.text();
            if text.len() >= LONG {
                bytes.append(&mut compressed(&text));
                text.clear();
            }
        }
        if !text.is_empty() {
            bytes.append(&mut compressed(&text));
        }
        bytes
    }
}

/// Refuses statistics of segments, or missing ones, if the signature was completed with others.
pub(crate) fn check_segments(path: &Path, bytes: Option<&[u8]>, signature: &Signature) -> Result<(), Error> {
    match &signature.complete {
        Some(complete) if complete.segments_sha256 != bytes.map(sha256) => Err(Error::of(
            path,
            "was edited or mixed with another file after it was completed: --again measures it again",
        )),
        _ => Ok(()),
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

fn no_segments(path: &Path, fault: &str) -> Error {
    Error::of(path, format!("has no valid statistics of segments: {fault}"))
}

/// Readable part of a file that may be torn.
struct Readable {
    blocks: Blocks,
    /// Length of the complete members, in bytes.
    complete: usize,
}

impl Readable {
    fn of(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let fault = |fault: String| no_segments(path, &fault);
        let mut blocks = Blocks::default();
        let (mut complete, mut left) = (0, MAX_TEXT);
        while let Some((text, length)) = member(&bytes[complete..], left.min(LONGEST)).map_err(&fault)? {
            left -= text.len() as u64;
            let text = String::from_utf8(text).map_err(|_| fault("it is not UTF-8 text".to_owned()))?;
            parse(&text, &mut blocks).map_err(&fault)?;
            complete += length;
        }
        Ok(Self { blocks, complete })
    }
}

/// Returns true if these may be the first bytes of a gzip member (RFC 1952, Section 2.3.1).
fn may_be_gzip(bytes: &[u8]) -> bool {
    bytes.iter().zip([0x1f, 0x8b]).all(|(&byte, own)| byte == own)
}

/// Returns the text and the compressed length of the first gzip member; `None` if it is torn or missing.
fn member(bytes: &[u8], limit: u64) -> Result<Option<(Vec<u8>, usize)>, String> {
    let mut decoder = GzDecoder::new(bytes);
    let mut text = Vec::new();
    if bytes.is_empty() || decoder.by_ref().take(limit + 1).read_to_end(&mut text).is_err() {
        return Ok(None);
    }
    if text.len() as u64 > limit {
        return Err(format!("one of its gzip members contains more than {limit} bytes of text"));
    }
    Ok(Some((text, bytes.len() - decoder.into_inner().len())))
}

fn parse(text: &str, blocks: &mut Blocks) -> Result<(), String> {
    let mut block: Option<Block> = None;
    for line in text.lines() {
        let shown = || line.chars().take(80).collect::<String>().escape_debug().to_string();
        let mut words = line.split(',');
        let (Some(name), Some(segment)) = (words.next(), words.next()) else {
            return Err(format!("`{}` is not a valid line", shown()));
        };
        if blocks.columns.is_empty() {
            if (name, segment) != ("row", "segment") || words.clone().next().is_none() {
                return Err(format!("it begins with `{}`: expected `row,segment,`", shown()));
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

fn begun(name: &str, sums: &[&str]) -> Result<Block, &'static str> {
    if name.is_empty() {
        return Err("has no row");
    }
    let sums = sums.iter().map(|sum| Sum::parse(sum)).collect::<Option<_>>().ok_or("lacks a number")?;
    Ok(Block { name: name.to_owned(), segments: Vec::new(), sums })
}

/// Adds a segment to a block; the name must be empty or the block's.
fn add(block: Option<&mut Block>, name: &str, segment: usize, cells: &[&str]) -> Result<(), &'static str> {
    let cells = cells.iter().map(|cell| Cell::parse(cell)).collect::<Option<_>>().ok_or("lacks a number")?;
    let is_own = |block: &&mut Block| name.is_empty() || block.name == name;
    let is_later = |block: &&mut Block| block.segments.last().is_none_or(|(last, _)| *last < segment - 1);
    match block.filter(is_own).filter(is_later) {
        Some(block) if segment <= MAX_SEGMENTS => block.segments.push((segment - 1, cells)),
        _ => return Err("does not follow the line before it"),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
