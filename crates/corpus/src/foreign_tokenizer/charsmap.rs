//! Tables of replacements as SentencePiece compiles them.
use crate::pieces::check_replacements;

/// Checks a table of replacements as SentencePiece compiles it: the size of a trie in little-endian order, the trie,
/// then texts that each end with a zero. The trie is a double array of 32-bit units:
/// <https://github.com/s-yata/darts-clone/blob/master/include/darts.h>.
///
/// The library follows the trie wherever it points, even out of bounds.
pub(crate) fn check_charsmap(map: &[u8]) -> Result<(), String> {
    let malformed = || "its table of normalisation is malformed".to_owned();
    let (size, rest) = map.split_first_chunk().ok_or_else(malformed)?;
    let size = u32::from_le_bytes(*size) as usize;
    let (trie, texts) =
        rest.split_at_checked(size).filter(|_| size.is_multiple_of(4)).ok_or_else(malformed)?;
    let texts = str::from_utf8(texts).map_err(|_| malformed())?;
    check_replacements(texts)?;
    let (units, _) = trie.as_chunks();
    let units: Vec<Unit> = units.iter().map(|unit| Unit(u32::from_le_bytes(*unit))).collect();
    check_trie(&units, texts).ok_or_else(malformed)
}

/// Follows every path through a trie; `None` if one leaves the trie or ends outside the texts.
fn check_trie(units: &[Unit], texts: &str) -> Option<()> {
    let mut seen = vec![false; units.len()];
    let mut nodes = vec![units.first()?.offset()];
    while let Some(node) = nodes.pop() {
        units.get(node | 0xff)?; // any byte can come next
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        for byte in 1..=0xff {
            let unit = units[node ^ byte];
            if unit.label() != byte {
                continue;
            }
            let next = node ^ byte ^ unit.offset();
            if unit.has_leaf() && !texts.is_char_boundary(units.get(next)?.value()) {
                return None;
            }
            nodes.push(next);
        }
    }
    Some(())
}

/// A unit of a double array.
#[derive(Clone, Copy)]
struct Unit(u32);

impl Unit {
    fn has_leaf(self) -> bool {
        (self.0 >> 8) & 1 == 1
    }

    fn value(self) -> usize {
        (self.0 & 0x7fff_ffff) as usize
    }

    /// Larger than any byte if the unit is a leaf.
    fn label(self) -> usize {
        (self.0 & 0x8000_00ff) as usize
    }

    fn offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 >> 6) & 8)) as usize
    }
}
