//! Replays of complete sweeps, as if each head had left the sweep once it was decided.
use std::path::Path;

use records::{
    AblationRow, BASE, Blocks, Row as _, Signature, TestedRow, UntilDecided, Verdict, read_complete,
};
use stats::deciding::look_sizes;
use stats::predictions::passes;
use stats::sequential::{Spending, sampling_order};

use crate::{Error, Store, look, metric_of};

const LOOKS: usize = 6;

const SEED: u64 = 1;

/// A sweep with and without stopping.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replayed {
    /// Number of heads in the sweep.
    pub heads: usize,
    /// Number of segments in the sweep.
    pub segments: usize,
    /// Number of heads with the verdict of the full sweep.
    pub equal: usize,
    /// Number of heads with the opposite verdict.
    pub reversed: usize,
    /// Forward passes over a segment, including the gradient, as a share of all heads times all segments.
    pub share: f64,
    /// Looks, ascending by segments.
    pub looks: Vec<Look>,
}

/// State of a replayed sweep after a look. Forward passes are over one segment; a backward pass counts two, and the passes for the full
/// model and the gradient are included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Look {
    /// Number of measured segments.
    pub segments: usize,
    /// Number of heads decided at this look or earlier.
    pub decided: usize,
    /// Forward passes so far.
    pub passes: usize,
    /// Forward passes so far if no head left the sweep.
    pub fixed: usize,
}

/// Replays a sweep from its stored statistics. A head that no early look decides keeps the verdict of the full sweep.
///
/// - `is_helped`: use first-order predictions as a control variate; returns `None` if they are not stored
pub fn replay(path: &Path, bounds: Spending, is_helped: bool) -> Result<Option<Replayed>, Error> {
    let incomplete = || Error::Invalid(format!("`{}` is not a complete, tested sweep", path.display()));
    let signature = Signature::read(&Signature::path_beside(path))?.ok_or_else(incomplete)?;
    let blocks = Blocks::beside(path, &signature)?.ok_or_else(incomplete)?;
    let (measured, testing) = signature.measured.as_ref().zip(signature.testing).ok_or_else(incomplete)?;
    let rows: Vec<AblationRow> = read_complete(path)?;
    let mut store = Store::new(&blocks, metric_of(measured)?);
    let base = store.base(BASE)?;
    let order = sampling_order(base.len(), SEED);
    let rules = UntilDecided { bounds, seed: SEED, control_variate: is_helped };
    let mut found = Replayed { heads: rows.len(), segments: base.len(), ..Replayed::default() };
    let gradient = if is_helped { passes(base.metric()) } else { 0 };
    found.share = gradient as f64 / found.heads as f64;
    let sizes = look_sizes(&base, LOOKS);
    let before = base.len() * (1 + gradient);
    let empty =
        |&segments| Look { segments, decided: 0, passes: before, fixed: before + segments * found.heads };
    found.looks = sizes.iter().map(empty).collect();
    for exact in rows {
        let expected = exact.verdict(testing.margin_percent).ok_or_else(incomplete)?;
        let whole = store.variant(&exact.name(), BASE)?;
        let predicted = if is_helped { store.first_order(&exact.name(), BASE)? } else { None };
        if is_helped && predicted.is_none() {
            return Ok(None);
        }
        let mut row = AblationRow { looks: String::new(), ..exact.clone() };
        let (mut verdict, mut sample) = (expected, base.len()); // the last look is the plain test
        for &size in &sizes[..sizes.len() - 1] {
            let mut places = order[..size].to_vec();
            places.sort_unstable();
            let variant = base.clone().with(&places, &whole.at(&places));
            row.add_look(size);
            look(&mut row, (&base, &variant), (predicted.as_ref(), &[]), (rules, testing))?;
            let early = row.verdict(testing.margin_percent).filter(|own| *own != Verdict::Undecided);
            if let Some(early) = early {
                (verdict, sample) = (early, size);
                break;
            }
        }
        for own in &mut found.looks {
            own.passes += sample.min(own.segments);
            own.decided += usize::from(verdict != Verdict::Undecided && sample <= own.segments);
        }
        found.equal += usize::from(verdict == expected);
        found.reversed += usize::from(verdict != expected && expected != Verdict::Undecided);
        found.share += sample as f64 / base.len() as f64 / found.heads as f64;
    }
    Ok(Some(found))
}
