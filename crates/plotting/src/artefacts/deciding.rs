//! Heads decided at each look of a sweep that stops early, and how well the gradient predicts effects. The papers have no such figure.
use charts::chart::{At, Axis, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{BLUE, GREY, INK, ORANGE};
use charts::table::{Cell, Table};
use charts::write::Sheet;
use records::{AblationRow, TestedRow as _, UntilDecided, Verdicts};
use stats::predictions::passes;
use stats::sequential::Spending;
use words::count;

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::error::{no_looks, no_segments, within};
use crate::findings::segments::stored;
use crate::findings::{Ablations, Criterion, Judge, Result, Results, experiment};
use crate::view::{by_name, mark, sheet, three};

const STEM: &str = "deciding";

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "heads", chapter::SINGLE_HEADS],
    "Heads decided after each look, over the forward passes used, and how well the gradient predicts effects in each layer",
    Reads::Each(experiment::SWEEP),
    |file, request, _| {
        let sweep: Ablations = Results::read(file.clone())?;
        let rules = file.signature.as_ref().and_then(|signature| signature.identity.until_decided());
        let sheet = rules.map(|rules| sheet_of(&sweep, rules, request.criterion));
        request.sheet_or(sheet, || no_looks(&file))
    },
)
.detail("after `--until-decided`");

/// Results of a sweep after a look.
struct Look {
    segments: usize,
    /// Forward passes over one segment; a backward pass counts as two.
    passes: usize,
    /// Passes for this sample size if no head leaves.
    fixed: usize,
    verdicts: Verdicts,
}

/// Returns the looks of a sweep over `segments` segments, in order.
fn looks(
    sweep: &Ablations,
    judge: Judge,
    (rules, metric, segments): (UntilDecided, stats::Metric, usize),
) -> Vec<Look> {
    let mut sizes: Vec<usize> = sweep.rows.iter().filter_map(|row| row.looks()).flatten().collect();
    sizes.sort_unstable();
    sizes.dedup();
    // passes of the full model, and of the gradient
    let before = segments * if rules.control_variate { 1 + passes(metric) } else { 1 };
    let of_size = |size: usize| {
        let passes: usize = sweep.rows.iter().map(|row| row.sample().min(size)).sum();
        let verdicts = sweep.verdicts_after(judge, size);
        Look { segments: size, passes: before + passes, fixed: before + size * sweep.rows.len(), verdicts }
    };
    sizes.into_iter().map(of_size).collect()
}

/// A line of the figure: heads decided by passes.
struct Line {
    name: &'static str,
    style: Style,
    mark: Mark,
    points: Vec<(f64, f64)>,
}

impl Line {
    /// - `looks`: passes and heads decided
    fn new(
        name: &'static str,
        ink: Color,
        leaves: bool,
        looks: impl Iterator<Item = (usize, usize)>,
    ) -> Self {
        let points = looks.map(|(passes, decided)| (passes as f64 / 1_000.0, decided as f64)).collect();
        let (style, mark) = if leaves {
            (Style::line(ink, 1.0), Mark::new(Shape::Circle, 1.7, ink))
        } else {
            (Style::dashed(ink, 0.7), Mark::new(Shape::Square, 1.5, ink).hollow())
        };
        Self { name, style, mark, points }
    }
}

fn sheet_of(sweep: &Ablations, rules: UntilDecided, criterion: Criterion) -> Result<Sheet> {
    let (base, _) = stored(sweep, || no_segments(&sweep.file))?;
    let judge = sweep.judge(criterion);
    let is_whole = |row: &AblationRow| row.looks().is_some_and(|looks| looks == [base.len()]);
    if rules.control_variate && sweep.rows.iter().all(is_whole) {
        return replayed(sweep, judge);
    }
    let looks = looks(sweep, judge, (rules, base.metric(), base.len()));
    let decided = |look: &Look| look.verdicts.needed + look.verdicts.dispensable;
    let lines = [
        Line::new("heads leave once decided", BLUE, true, looks.iter().map(|own| (own.passes, decided(own)))),
        Line::new("no head leaves", GREY, false, looks.iter().map(|own| (own.fixed, decided(own)))),
    ];
    let note = format!(
        "solid: this sweep, which heads leave once they are decided ({}); dashed: passes needed for samples of these sizes if no head \
         leaves",
        bounds(rules)
    );
    let chart = figure(sweep, &lines, note, judge);
    Ok(sheet(&sweep.file, STEM, chart, [table(sweep, &looks, judge)]))
}

/// Replays a sweep over all segments as if heads had left it, with and without the gradient as a control variate.
fn replayed(sweep: &Ablations, judge: Judge) -> Result<Sheet> {
    let path = &sweep.file.path;
    let unreadable = || format!("the segments of `{}` cannot be read", path.display());
    let replay = |is_helped| {
        let found = significance::replay(path, Spending::Pocock, is_helped).map_err(within(unreadable))?;
        found.ok_or_else(|| no_segments(&sweep.file))
    };
    let (helped, alone) = (replay(true)?, replay(false)?);
    let leaves = |own: &significance::Look| (own.passes, own.decided);
    let stays = |own: &significance::Look| (own.fixed, own.decided);
    let lines = [
        Line::new("heads leave, gradient", BLUE, true, helped.looks.iter().map(leaves)),
        Line::new("heads leave", ORANGE, true, alone.looks.iter().map(leaves)),
        Line::new("no head leaves, gradient", BLUE, false, helped.looks.iter().map(stays)),
        Line::new("no head leaves", GREY, false, alone.looks.iter().map(stays)),
    ];
    let note = "replayed from a sweep of all segments, in one random order, with Pocock's bounds; gradient: used as a control variate";
    let chart = figure(sweep, &lines, note.to_owned(), judge);
    let row = |(name, own): (&str, &significance::Look)| {
        let share = 100.0 * own.passes as f64 / own.fixed as f64;
        let cells = [
            ("decided", Cell::from(own.decided)),
            ("passes", Cell::from(own.passes)),
            ("of passes without stopping", Cell::printed(share, |share| format!("{share:.0}%"))),
        ];
        (format!("{}, {name}", count(own.segments, "segment")).into(), cells.into())
    };
    let with = |name, found: &significance::Replayed| {
        found.looks.iter().map(|look| row((name, look))).collect::<Vec<_>>()
    };
    let rows = [with("with gradient", &helped), with("without", &alone)].concat();
    let title = sweep.file.titled("Heads decided after each look, replayed");
    let table =
        by_name(Table::new("Deciding", sweep.file.label(STEM), title), ["look", "heads"], rows.into_iter())
            .note("passes: forward passes over a segment; a backward pass counts as two")
            .note(judge.of_verdicts());
    Ok(sheet(&sweep.file, STEM, chart, [table]))
}

fn figure(sweep: &Ablations, lines: &[Line], note: String, judge: Judge) -> Chart {
    let heads = sweep.rows.len();
    let most = lines.iter().flat_map(|line| &line.points).map(|&(passes, _)| passes).fold(0.0, f64::max);
    let mut layers = vec![Layer::Rule(At::Y(heads as f64), Style::line(GREY, 0.4))];
    for Line { style, mark, points, .. } in lines.iter().rev() {
        layers.extend([Layer::Line(points.clone(), *style), Layer::Points(points.clone(), *mark)]);
    }
    let x = Axis::around("forward passes over a segment, in thousands", 0.0, most);
    let y = Axis::around("heads decided", 0.0, heads as f64);
    let mut panels = vec![Panel::new([x, y], 120.0, layers)];
    panels.extend(correlations(sweep));
    let title = sweep
        .file
        .titled(format!("Heads decided by the effect of masking each on {}", sweep.metric().label()));
    let entry = |line: &Line| Entry { line: Some(line.style), ..Entry::mark(line.name, line.mark) };
    Chart::new("Deciding", sweep.file.label(STEM), title)
        .note(note)
        .note("a backward pass counts as two forward passes")
        .note((panels.len() > 1).then_some(
            "right: correlation, over the measured segments, between the effect of masking a head and its prediction from the gradient; line: \
             median of each layer",
        ))
        .note(judge.of_verdicts())
        .entries(lines.iter().map(entry).collect::<Vec<_>>())
        .panels(panels.len(), panels)
}

fn bounds(rules: UntilDecided) -> String {
    let helped = if rules.control_variate { ", with the gradient as a control variate" } else { "" };
    format!("bounds: {}{helped}", rules.bounds.name())
}

/// Plots the correlation between effect and prediction for each head by layer; `None` without predictions.
fn correlations(sweep: &Ablations) -> Option<Panel> {
    let of = |row: &AblationRow| Some((row.attention, row.layer, row.correlation?));
    let all: Vec<_> = sweep.rows.iter().filter_map(of).collect();
    let layers = all.iter().map(|&(_, layer, _)| layer).max()?;
    let low = all.iter().map(|&(_, _, own)| own).fold(0.0, f64::min);
    let median = |layer: usize| {
        let mut own: Vec<f64> = all.iter().filter(|own| own.1 == layer).map(|own| own.2).collect();
        own.sort_by(f64::total_cmp);
        Some((layer as f64, crate::findings::pruning::median(&own)?))
    };
    let points = sweep.attentions().into_iter().map(|attention| {
        let own = all.iter().filter(|own| own.0 == attention);
        Layer::Points(own.map(|&(_, layer, own)| (layer as f64, own)).collect(), mark(attention, 1.2))
    });
    let line = Layer::Line((1..=layers).filter_map(median).collect(), Style::line(INK, 0.8));
    let x = Axis::around("layer", 1.0, layers.max(2) as f64);
    let y = Axis::around("correlation with the gradient", low, 1.0);
    Some(Panel::new([x, y], 120.0, points.chain([line]).collect()))
}

fn table(sweep: &Ablations, looks: &[Look], judge: Judge) -> Table {
    let row = |look: &Look| {
        let share =
            Cell::printed(100.0 * look.passes as f64 / look.fixed as f64, |share| format!("{share:.0}%"));
        let names = ["needed", "dispensable", "undecided"];
        let verdicts = names.into_iter().zip(three(Some(look.verdicts)));
        let cells = [("passes", Cell::from(look.passes)), ("of passes without stopping", share)];
        (count(look.segments, "segment").into(), verdicts.chain(cells).collect())
    };
    let title = sweep.file.titled("Heads decided after each look");
    by_name(Table::new("Deciding", sweep.file.label(STEM), title), ["look", "verdict"], looks.iter().map(row))
        .note("passes: forward passes over a segment; a backward pass counts as two")
        .note(judge.of_verdicts())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Adjustment, Source};

    /// Of three heads one is decided after 50 of 200 segments, one after 100, and one never.
    #[test]
    fn passes_are_those_of_heads_that_are_left() {
        let file = Source::subject(&crate::findings::tiny(), "tiny-language").one(experiment::SWEEP).unwrap();
        let mut sweep: Ablations = Results::read(file).unwrap();
        let criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };
        let judge = sweep.judge(criterion);
        let cost = judge.margin(sweep.base());
        let row = |looks: &str, low: f64, high: f64, correlation| AblationRow {
            looks: looks.to_owned(),
            delta_low: Some(low * cost),
            delta_high: Some(high * cost),
            correlation,
            ..sweep.rows[0].clone()
        };
        sweep.rows = vec![
            row("50", -0.5, 0.5, Some(0.9)),
            row("50+100", 2.0, 3.0, None),
            row("50+100+200", 0.5, 1.5, Some(0.2)),
        ];
        let rules = UntilDecided { bounds: Spending::Pocock, seed: 1, control_variate: true };
        let found = looks(&sweep, judge, (rules, stats::Metric::Nats, 200));
        let expected = [(50, 800 + 150, [0, 1, 2]), (100, 800 + 250, [1, 1, 1]), (200, 800 + 350, [1, 1, 1])];
        for (look, (segments, passes, verdicts)) in found.iter().zip(expected) {
            let Verdicts { needed, dispensable, undecided } = look.verdicts;
            assert_eq!((look.segments, look.passes), (segments, passes));
            assert_eq!([needed, dispensable, undecided], verdicts);
        }
        assert_eq!(found.len(), 3);
    }

    /// All 1,725 pairs of MRPC with the gradient: the file whose replay `significance` tests.
    #[test]
    fn whole_sweeps_with_predictions_are_replayed() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../significance/tests/minilm-mrpc/ablate-one-msr_test.csv");
        let experiments = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments").into();
        let file = Source::File { path: path.into(), experiments }.one(experiment::SWEEP).unwrap();
        let sweep: Ablations = Results::read(file).unwrap();
        let rules = sweep.file.signature.as_ref().unwrap().identity.until_decided().unwrap();
        let sheet = sheet_of(&sweep, rules, Criterion { alpha: 0.01, adjustment: Adjustment::None }).unwrap();
        // 72 heads on 863 and 1,725 pairs, each with and without gradient
        let rows = &sheet.tables[0].rows;
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| format!("{row:?}").contains('%')));
    }
}
