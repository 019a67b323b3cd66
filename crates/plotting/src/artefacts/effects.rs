//! All heads sorted by the effect of masking each, with intervals, the margin and verdicts. The papers have no such figure.
use charts::chart::{At, Axis, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{GREY, INK, ORANGE, SKY, VERMILLION};
use charts::scale::extent;
use records::{AblationRow, TestedRow as _, Verdict};

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::ablations::looks_of;
use crate::findings::{Ablations, Criterion, Judge, Results, experiment};
use crate::view::{MARGIN, changes, limits, margin, sheet};

const STEM: &str = "effects";

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "heads", chapter::SINGLE_HEADS],
    "All heads sorted by the effect of masking each, with 95% intervals, the margin and verdicts",
    Reads::Each(experiment::SWEEP),
    |file, request, _| {
        let sweep = Results::read(file)?;
        Ok(vec![sheet(&sweep.file, STEM, figure(&sweep, request.criterion), [])])
    },
);

/// Number of heads that are named for the largest loss; the head with the smallest loss is named too.
const NAMED: usize = 3;

/// Verdicts in drawing order, with styles that differ in black and white.
const LOOKS: [(Option<Verdict>, &str, Color, Shape); 4] = [
    (None, "not tested", GREY, Shape::Tick),
    (Some(Verdict::Dispensable), "dispensable", SKY, Shape::Circle),
    (Some(Verdict::Undecided), "undecided", ORANGE, Shape::Circle),
    (Some(Verdict::Needed), "needed", VERMILLION, Shape::Square),
];

fn figure(sweep: &Ablations, criterion: Criterion) -> Chart {
    let (metric, judge) = (sweep.metric(), sweep.judge(criterion));
    let mut rows: Vec<&AblationRow> = sweep.rows.iter().collect();
    rows.sort_by(|one, other| one.gain().total_cmp(&other.gain()));
    let (mut layers, entries) = by_verdict(&rows, judge);
    // in front, since many marks leave no gaps
    layers.extend(limits(sweep, judge, At::Y));
    let is_extreme = |place: usize| place < NAMED || place + 1 == rows.len();
    let extremes = rows.iter().enumerate().filter(|(place, _)| is_extreme(*place));
    let name = |(place, row): (usize, &&AblationRow)| (rank(place), row.head_id().in_words(), INK);
    layers.push(Layer::Tops(extremes.map(name).collect()));
    let ends = rows.iter().filter_map(|row| row.delta_interval()).flat_map(|(low, high)| [low, high]);
    let changed = rows.iter().map(|row| row.score_delta).chain(ends).chain([margin(sweep, judge)]);
    let y = changes(metric, extent(changed));
    let x = Axis::around("heads, sorted by the effect of masking", 1.0, rows.len().max(2) as f64);
    let title = sweep.file.titled(format!("Effect of masking each head on {}, sorted", metric.label()));
    Chart::new("Effects", sweep.file.label(STEM), title)
        .note(sweep.base_line())
        .note(format!("named: the {NAMED} heads that cost most, the most expensive one first, and the one that costs least"))
        .note("bars: 95% intervals, for each head separately")
        .note(judge.of_verdicts())
        .note(looks_of(&sweep.rows))
        .note(sweep.missing_heads())
        .entries(entries.into_iter().rev())
        .entries([Entry::line(format!("margin: {}", judge.margin_in_words()), MARGIN)])
        .panels(1, vec![Panel::new([x, y], 150.0, layers)])
        .wide()
}

fn rank(place: usize) -> f64 {
    place as f64 + 1.0
}

/// Returns marks and intervals of the heads for each verdict, and legend entries.
fn by_verdict(rows: &[&AblationRow], judge: Judge) -> (Vec<Layer>, Vec<Entry>) {
    let (mut layers, mut entries) = (Vec::new(), Vec::new());
    let (radius, width) = if rows.len() > 150 { (0.9, 0.3) } else { (1.7, 0.6) };
    for (verdict, name, color, shape) in LOOKS {
        let own = rows.iter().enumerate().filter(|(_, row)| judge.verdict(**row) == verdict);
        let own: Vec<(f64, &&AblationRow)> = own.map(|(place, row)| (rank(place), row)).collect();
        if own.is_empty() {
            continue;
        }
        layers.extend(own.iter().filter_map(|(rank, row)| {
            let (low, high) = row.delta_interval()?;
            Some(Layer::Line(vec![(*rank, low), (*rank, high)], Style::line(color, width)))
        }));
        let mark = Mark::new(shape, radius, color);
        let mark = if verdict == Some(Verdict::Undecided) { mark.hollow() } else { mark };
        layers.push(Layer::Points(own.iter().map(|(rank, row)| (*rank, row.score_delta)).collect(), mark));
        let entry = Entry::mark(format!("{name}: {}", own.len()), Mark { radius: 1.7, ..mark });
        entries.push(Entry { line: Some(Style::line(color, 0.6)), ..entry });
    }
    (layers, entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Adjustment, Source};
    use records::Attention;

    #[test]
    fn a_dozen_heads_and_a_thousand_can_be_read() {
        let file =
            Source::subject(&crate::findings::tiny(), "tiny-translation").one(experiment::SWEEP).unwrap();
        let mut sweep: Ablations = Results::read(file).unwrap();
        for (attention, layers, heads) in [(Attention::SelfAttention, 2, 6), (Attention::EncDec, 32, 32)] {
            let own = sweep.rows[0].clone();
            let row = |place: usize| {
                let (layer, head) = (place / heads + 1, place % heads + 1);
                let score_delta = 0.01 * place as f64 - 1.0;
                AblationRow { attention, layer, head, score_delta, ..own.clone() }
            };
            sweep.rows = (0..layers * heads).map(row).collect();
            let chart = figure(&sweep, Criterion { alpha: 0.01, adjustment: Adjustment::None });
            assert_eq!(charts::legible::fault(&chart), None);
        }
    }
}
