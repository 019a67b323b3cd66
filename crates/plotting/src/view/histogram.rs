//! Figure 1: histogram of the scores with one head masked (Michel et al. 2019, Section 3.2).
use records::{AblationRow, Attention};

use super::Context;
use crate::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style, Ticks};
use crate::data::sweep::Sweep;
use crate::origin::Beside;
use crate::palette::{INK, PALE, VERMILLION};
use crate::paper::FIGURE_1B;
use crate::scale::{Bins, Step, extent};

/// Names of its files: the paper has one histogram for translation and one for BERT.
pub const STEMS: [&str; 3] = ["figure1", "figure1b", "figure1-self"];

/// The scores axis is at least this many bins long.
const FEWEST: f64 = 12.0;

/// The strip below the bars with a stroke for each head, as a share of the height of the bars.
const STRIP: f64 = 0.14;

const BASE: Style = Style::dashed(INK, 0.9);

/// One plot for each attention type, one above the other over the same scores. An edge of the bins is the base; of the heads
/// in a bin, those that are significant stand at the bottom in another colour; each head is a stroke below.
pub fn figure1(sweep: &Sweep, attentions: &[Attention], context: Context<'_>) -> Chart {
    let (metric, base) = (sweep.metric(), sweep.base());
    let families: Vec<_> = attentions.iter().map(|&attention| sweep.family(attention)).collect();
    let bins = Bins::around(base, families.iter().flatten().map(|row| row.score));
    let bars: Vec<_> = families.iter().map(|family| bars(family, bins, context)).collect();
    let edges = bars.iter().flatten().flatten().flat_map(|bar| [bar[0], bar[1]]);
    let label = format!("{} with one head masked", metric.axis_label());
    let x = Axis::of_at_least(&label, extent(edges.chain([base])), FEWEST * bins.width);
    // One scale for all, so that bars can be compared between panels.
    let most = bars.iter().flatten().flatten().map(|bar| bar[3]).fold(1.0, f64::max);
    let step = Step::covering_whole(most, 4);
    let high = step.multiple(step.index_below(most * 1.02) + 1);
    let last = attentions.len().saturating_sub(1);
    let panel = |(index, &attention): (usize, &Attention)| {
        let label = if index == attentions.len() / 2 { "number of heads" } else { "" };
        let (low, ticks) = (-STRIP * high, Ticks::Round(step, true));
        let y = Axis { label: label.to_owned(), low, high, ticks, gap: None };
        let x = if index == last { x.clone() } else { x.clone().silent() };
        let [significant, others] = &bars[index];
        let stroke = |is_meant: bool, color| {
            let meant = families[index].iter().filter(|row| context.criterion.holds(**row) == is_meant);
            let places = meant.map(|row| (row.score, -STRIP / 2.0 * high)).collect();
            Layer::Points(places, Mark::new(Shape::Tick, 2.4, color))
        };
        let layers = vec![
            Layer::Bars(others.clone(), PALE),
            Layer::Bars(significant.clone(), VERMILLION),
            stroke(false, INK),
            stroke(true, VERMILLION),
            Layer::Rule(At::X(base), BASE),
        ];
        if last == 0 {
            return Panel::new([x, y], 100.0, layers);
        }
        Panel::new([x, y], 58.0, layers).named(format!("{attention} ({})", sweep.file.description(attention)))
    };
    let all = families.iter().flatten();
    let significant = all.clone().filter(|row| context.criterion.holds(**row)).count();
    let stem = sweep.stem(STEMS);
    let is_alone = attentions == [Attention::SelfAttention]
        && sweep.beside(&sweep.attentions()).is_some_and(Beside::is_inference);
    let paper = context.paper.values(FIGURE_1B).filter(|_| is_alone).map(|values| {
        let [base, lowest, highest] = values.map(|share| 100.0 * share);
        format!("Figure 1b of the paper (MNLI): {base:.1} %, masked {lowest:.1} to {highest:.1} %")
    });
    let name = if stem == "figure1b" { "Figure 1b" } else { "Figure 1" };
    Chart::of(&sweep.file, name, stem, label)
        .note(format!("{}, dashed, is an edge of the bins", sweep.base_line()))
        .note(format!("significant: {}", sweep.judge(context.criterion).description("heads")))
        .note("each stroke below the bars is a head")
        .note(paper)
        .note(sweep.missing_heads())
        .entries([
            Entry::line(format!("base {}", metric.amount(base)), BASE),
            Entry::fill(format!("significant: {significant}"), VERMILLION),
            Entry::fill(format!("not: {}", all.count() - significant), PALE),
            Entry::mark("each head", Mark::new(Shape::Tick, 2.4, INK)),
        ])
        .panels(1, attentions.iter().enumerate().map(panel).collect())
}

/// The bars of significant heads and, above these, those of the others.
fn bars(family: &[&AblationRow], bins: Bins, context: Context<'_>) -> [Vec<[f64; 4]>; 2] {
    let mut bars: [Vec<[f64; 4]>; 2] = Default::default();
    let mut rows: Vec<_> =
        family.iter().map(|row| (bins.of(row.score), context.criterion.holds(*row))).collect();
    rows.sort_by(|(one, _), (other, _)| one.0.total_cmp(&other.0));
    for bin in rows.chunk_by(|(one, _), (next, _)| one == next) {
        let ((left, right), all) = (bin[0].0, bin.len() as f64);
        let significant = bin.iter().filter(|(_, is_significant)| *is_significant).count() as f64;
        for (bars, [low, high]) in bars.iter_mut().zip([[0.0, significant], [significant, all]]) {
            bars.extend((high > low).then_some([left, right, low, high]));
        }
    }
    bars
}
