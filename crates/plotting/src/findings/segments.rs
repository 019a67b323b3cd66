//! Finds the segments that change most when one head is masked, from the stored statistics of a sweep.
use std::collections::BTreeMap;

use records::{AblationRow, BASE, Blocks, HeadId, Row};
use significance::{Store, metric_of};
use stats::Segments;
use stats::text::TextMetric;
use words::{fixed, signed};

use crate::findings::ablations::Ablations;
use crate::findings::error::{Error, Result, no_segments, within};
use crate::findings::metric::Metric;
use crate::findings::results::Results;

/// Maximum number of segments per head.
const MOST: usize = 5;

/// Change of one segment caused by masking one head.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentChange {
    /// Position in the split, counted from 1.
    pub segment: usize,
    /// Improvement of the segment's score with the head masked; negative if it gets worse.
    pub gain: f64,
    /// The change in words: `BLEU 100.0 to 45.2`; `right to wrong` for classes.
    pub words: String,
}

/// Returns the segments that change most for each head; of equal changes, losses come first.
pub fn most_changed(sweep: &Ablations) -> Result<BTreeMap<HeadId, Vec<SegmentChange>>> {
    let none = || no_segments(&sweep.file);
    let (base, masked) = stored(sweep, none)?;
    let metric = sweep.metric();
    let of = |(row, masked): (&AblationRow, _)| (row.head_id(), largest(changes(&base, &masked, &metric)));
    Ok(sweep.rows.iter().zip(masked).map(of).collect())
}

/// Returns the stored segments of the full model and of each row; `none` makes the error if nothing is stored.
pub fn stored<R: Row>(
    Results { file, rows }: &Results<R>,
    none: impl Fn() -> Error,
) -> Result<(Segments, Vec<Segments>)> {
    let path = &file.path;
    let signature = file.signature.as_ref().ok_or_else(&none)?;
    let measured = signature.measured.as_ref().ok_or_else(&none)?;
    let blocks = Blocks::beside(path, signature)?.ok_or_else(&none)?;
    let damaged = || format!("the segments of `{}` cannot be read", path.display());
    let mut store = Store::new(&blocks, metric_of(measured).map_err(within(damaged))?);
    let base = store.base(BASE).map_err(within(damaged))?;
    let of = |row: &R| store.variant(&row.name(), BASE).map_err(within(damaged));
    Ok((base, rows.iter().map(of).collect::<Result<_>>()?))
}

/// Like [`stored`], but returns `None` if nothing is stored.
pub fn stored_if_there<R: Row>(results: &Results<R>) -> Result<Option<(Segments, Vec<Segments>)>> {
    match stored(results, || no_segments(&results.file)) {
        Err(Error::NotMeasured(_)) => Ok(None),
        found => found.map(Some),
    }
}

/// Returns the change of each segment that differs: in the text metric, in nats, in absolute error, or from right to wrong.
fn changes(base: &Segments, masked: &Segments, metric: &Metric) -> Vec<SegmentChange> {
    let score = |segments: &Segments, place: usize| match segments {
        Segments::Bleu(segments) => Segments::Bleu(vec![segments[place]]).score().unwrap_or(0.0),
        Segments::Classes(outcomes, _) => f64::from(u8::from(outcomes[place].is_right())),
        Segments::Nats(documents) => f64::from(documents[place].nats()),
        Segments::Means(all, _) => all[place].value(),
        Segments::Texts(texts, metric) => {
            Segments::Texts(vec![texts[place].clone()], *metric).score().unwrap_or(0.0)
        }
        Segments::Estimates(estimates, _) => {
            -f64::from((estimates[place].predicted - estimates[place].gold).abs())
        }
        _ => 0.0,
    };
    let word = |right: f64| if right > 0.0 { "right" } else { "wrong" };
    let words = |before: f64, after: f64| match base {
        Segments::Bleu(_) => format!("BLEU {} to {}", fixed(before, 1), fixed(after, 1)),
        Segments::Nats(_) | Segments::Means(..) => format!("{} nats", signed(after - before, 2)),
        Segments::Texts(_, kind) if *kind != TextMetric::ExactMatch => {
            format!("{} {} to {}", metric.label(), fixed(before, 1), fixed(after, 1))
        }
        Segments::Estimates(..) => format!("off by {} to {}", fixed(-before, 2), fixed(-after, 2)),
        _ => format!("{} to {}", word(before), word(after)),
    };
    let change = |place: usize| {
        let (before, after) = (score(base, place), score(masked, place));
        let gain = metric.direction().gain(after - before);
        SegmentChange { segment: place + 1, gain, words: words(before, after) }
    };
    let differs = |place: &usize| base.cells(*place) != masked.cells(*place);
    (0..base.len().min(masked.len())).filter(differs).map(change).collect()
}

fn largest(mut changes: Vec<SegmentChange>) -> Vec<SegmentChange> {
    let size = |change: &SegmentChange| change.gain.abs();
    changes.sort_by(|one, other| {
        let by_size = size(other).total_cmp(&size(one)).then(one.gain.total_cmp(&other.gain));
        by_size.then(one.segment.cmp(&other.segment))
    });
    changes.truncate(MOST);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::MetricName;
    use stats::bleu::BleuStatistics;
    use stats::classification::{ClassificationMetric, Outcome};

    /// Of four predictions, one becomes wrong, one becomes right, one becomes another wrong class, and one stays right.
    #[test]
    fn what_gets_wrong_stands_before_what_gets_right() {
        let of = |predicted: [usize; 4]| {
            let outcomes = predicted.map(|predicted| Outcome { gold: 1, predicted });
            Segments::Classes(outcomes.to_vec(), ClassificationMetric::Accuracy)
        };
        let found =
            largest(changes(&of([0, 1, 0, 1]), &of([1, 0, 2, 1]), &Metric::new(MetricName::Accuracy)));
        let words: Vec<_> = found.iter().map(|change| (change.segment, change.words.as_str())).collect();
        assert_eq!(words, [(2, "right to wrong"), (1, "wrong to right"), (3, "wrong to wrong")]);
    }

    /// A hypothesis without a word of the reference scores 0, an identical one 100.
    #[test]
    fn segments_are_scored_one_by_one() {
        let of = |correct: [[u32; 4]; 2]| {
            Segments::Bleu(correct.map(|correct| BleuStatistics::new(4, 4, correct)).to_vec())
        };
        let found =
            changes(&of([[4, 3, 2, 1], [0; 4]]), &of([[0; 4], [0; 4]]), &Metric::new(MetricName::Bleu));
        assert_eq!((found.len(), found[0].segment), (1, 1));
        assert!((found[0].gain + 100.0).abs() < 1e-12, "{}", found[0].gain);
        assert_eq!(found[0].words, "BLEU 100.0 to 0.0");
    }
}
