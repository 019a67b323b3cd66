//! Translation edit rate: Snover et al. (2006), <https://aclanthology.org/2006.amta-papers.25>. The edits that turn a hypothesis into its
//! reference are insertions, deletions, substitutions and shifts of blocks of words, each at a cost of 1.
//!
//! The greedy search for shifts, with its limits and its tie breaking, follows sacreBLEU,
//! <https://github.com/mjpost/sacrebleu/blob/v2.6.0/sacrebleu/metrics/lib_ter.py>, which follows Tercom.
use std::cmp::Reverse;

/// Maximum length of a shifted block, in words.
const LONGEST_SHIFT: usize = 10;
/// Maximum distance between a block and its position in the reference, in words.
const FARTHEST_SHIFT: usize = 50;
/// Maximum number of shifts tried for a segment.
const MAX_CANDIDATES: usize = 1000;
/// Number of cells of the edit matrix on either side of the diagonal.
const BEAM: usize = 25;

/// Edit of the reference that turns it into the hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Substitute,
    /// A word of the hypothesis that the reference lacks.
    Insert,
    /// A word of the reference that the hypothesis lacks.
    Delete,
}

/// Returns the number of edits of a segment and the length of its reference in words, in lower case and separated by white space.
pub(crate) fn edits(hypothesis: &str, reference: &str) -> [usize; 2] {
    let [own, other] = [hypothesis, reference].map(str::to_lowercase);
    let [mut own, other] = [&own, &other].map(|text| text.split_whitespace().collect::<Vec<&str>>());
    if other.is_empty() {
        return [own.len(), 0];
    }
    let (mut shifts, mut tried) = (0, 0);
    while let Some(shifted) = best_shift(&own, &other, &mut tried) {
        own = shifted;
        shifts += 1;
    }
    [shifts + distance(&own, &other).0, other.len()]
}

/// Returns the hypothesis after the shift that saves most edits; `None` if no shift saves an edit, or too many were tried.
fn best_shift<'a>(own: &[&'a str], other: &[&str], tried: &mut usize) -> Option<Vec<&'a str>> {
    let (before, trace) = distance(own, other);
    let Alignment { places, own_errors, other_errors } = Alignment::of(&trace);
    let mut best = None;
    for (from, to, length) in common_blocks(own, other) {
        let is_error = |errors: &[bool], start: usize| errors[start..start + length].contains(&true);
        // a block that is right where it is, or that the reference has matched there, stays, and no block moves into itself
        let is_within = (from as isize..(from + length) as isize).contains(&places[to]);
        if !is_error(&own_errors, from) || !is_error(&other_errors, to) || is_within {
            continue;
        }
        let mut last = None;
        for aligned in to..=to + length {
            let target = match aligned.checked_sub(1).map(|before| places.get(before)) {
                None => 0,
                Some(Some(&place)) => (place + 1) as usize,
                Some(None) => break, // past the reference
            };
            if last.replace(target) == Some(target) {
                continue;
            }
            let words = shifted(own, from, length, target);
            let saved = before as isize - distance(&words, other).0 as isize;
            let candidate = (saved, length, Reverse(from), Reverse(target), words);
            *tried += 1;
            if best.as_ref().is_none_or(|best| candidate > *best) {
                best = Some(candidate);
            }
        }
        if *tried >= MAX_CANDIDATES {
            return None;
        }
    }
    best.filter(|(saved, ..)| *saved > 0).map(|(.., words)| words)
}

fn common_blocks(own: &[&str], other: &[&str]) -> Vec<(usize, usize, usize)> {
    let starts = (0..own.len()).flat_map(|from| (0..other.len()).map(move |to| (from, to)));
    let near = starts.filter(|(from, to)| from.abs_diff(*to) <= FARTHEST_SHIFT);
    let of_start = |(from, to): (usize, usize)| {
        let common = own[from..].iter().zip(&other[to..]).take_while(|(own, other)| own == other).count();
        (1..=common.min(LONGEST_SHIFT)).map(move |length| (from, to, length))
    };
    near.flat_map(of_start).collect()
}

/// Moves a block of words before the word at `target`; a target inside the block moves it by the target's distance from the start.
fn shifted<'a>(words: &[&'a str], start: usize, length: usize, target: usize) -> Vec<&'a str> {
    let (block, end) = (&words[start..start + length], start + length);
    let rest = [&words[..start], &words[end..]].concat();
    let place = if target < start {
        target
    } else if target > end {
        target - length
    } else {
        target.min(rest.len())
    };
    [&rest[..place], block, &rest[place..]].concat()
}

/// Alignment of the words of the reference with the hypothesis.
struct Alignment {
    /// Index in the hypothesis of each word of the reference; for a missing word, of the last one before it, -1 at the start.
    places: Vec<isize>,
    own_errors: Vec<bool>,
    other_errors: Vec<bool>,
}

impl Alignment {
    fn of(trace: &[Edit]) -> Self {
        let mut found = Self { places: Vec::new(), own_errors: Vec::new(), other_errors: Vec::new() };
        for edit in trace {
            if *edit != Edit::Delete {
                found.own_errors.push(*edit != Edit::Keep);
            }
            if *edit != Edit::Insert {
                found.other_errors.push(*edit != Edit::Keep);
                found.places.push(found.own_errors.len() as isize - 1);
            }
        }
        found
    }
}

/// Returns the Levenshtein distance near the diagonal, and its edits. Ties prefer keeping and substituting, then insertion.
fn distance(own: &[&str], other: &[&str]) -> (usize, Vec<Edit>) {
    const FAR: usize = usize::MAX / 2;
    let ratio = if own.is_empty() { 1.0 } else { other.len() as f64 / own.len() as f64 };
    let beam = if (BEAM as f64) < ratio / 2.0 { (ratio / 2.0 + BEAM as f64).ceil() as usize } else { BEAM };
    let mut matrix = vec![vec![(FAR, Edit::Keep); other.len() + 1]; own.len() + 1];
    for (column, cell) in matrix[0].iter_mut().enumerate() {
        *cell = (column, Edit::Delete);
    }
    for row in 1..=own.len() {
        let diagonal = (row as f64 * ratio).floor() as usize;
        let is_last = row == own.len();
        let end = if is_last { other.len() + 1 } else { (diagonal + beam).min(other.len() + 1) };
        for column in diagonal.saturating_sub(beam)..end {
            let above = (matrix[row - 1][column].0 + 1, Edit::Insert);
            matrix[row][column] = if column == 0 {
                above
            } else {
                let is_same = own[row - 1] == other[column - 1];
                let edit = if is_same { Edit::Keep } else { Edit::Substitute };
                let diagonal = (matrix[row - 1][column - 1].0 + usize::from(!is_same), edit);
                let left = (matrix[row][column - 1].0 + 1, Edit::Delete);
                [above, left].into_iter().fold(diagonal, |best, one| if one.0 < best.0 { one } else { best })
            };
        }
    }
    let (mut row, mut column, mut trace) = (own.len(), other.len(), Vec::new());
    while row > 0 || column > 0 {
        let edit = matrix[row][column].1;
        row -= usize::from(edit != Edit::Delete);
        column -= usize::from(edit != Edit::Insert);
        trace.push(edit);
    }
    trace.reverse();
    (matrix[own.len()][other.len()].0, trace)
}

#[cfg(test)]
mod tests {
    use crate::Segments;
    use crate::text::TextMetric;

    /// Edits, reference length, hypothesis and reference: random edits and shifts of random words, scored by sacreBLEU 2.6.0,
    /// `TER()._extract_corpus_statistics([hypothesis], [[reference]])`; the last ones are long, and one is far longer than its hypothesis.
    const REFERENCE: &str = include_str!("ter/reference.tsv");
    /// `TER().corpus_score` of all these segments.
    const CORPUS: f64 = 47.042_640_990_371_39;

    #[test]
    fn edits_and_the_score_of_a_corpus_equal_sacrebleu() {
        let mut segments = Vec::new();
        for line in REFERENCE.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let found = TextMetric::Ter.segment(cells[2], cells[3]);
            assert_eq!(found.iter().map(u32::to_string).collect::<Vec<_>>(), cells[..2], "{line}");
            segments.push(found);
        }
        let score = |segments| Segments::Texts(segments, TextMetric::Ter).score().unwrap();
        assert!((score(segments) - CORPUS).abs() < 1e-12);
        // as in sacreBLEU, a hypothesis with an empty reference is all wrong
        assert_eq!([score(vec![vec![2, 0]]), score(vec![vec![0, 0]])], [100.0, 0.0]);
    }
}
