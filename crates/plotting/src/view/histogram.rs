//! Figure 1: histogram of the scores with one head masked (Michel et al. 2019, Section 3.2).
use std::collections::BTreeMap;

use records::{AblationRow, Attention};

use super::Context;
use crate::chart::{At, Axis, COLUMN, Chart, Entry, Layer, Mark, Panel, Shape, Style, Ticks};
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

/// One plot for each attention type, one above the other over the same scores. An edge of the bins is the base; of the heads
/// in a bin, those that are significant stand at the bottom in another colour; each head is a stroke below.
pub fn figure1(sweep: &Sweep, attentions: &[Attention], context: Context<'_>) -> Chart {
    let families: Vec<_> = attentions.iter().map(|&attention| sweep.family(attention)).collect();
    let bins = Bins::around(sweep.base, families.iter().flatten().map(|row| row.score));
    let counted: Vec<_> = families.iter().map(|family| Counted::of(family, bins, context)).collect();
    let x = x_axis(sweep, bins, &counted);
    // One scale for all, so that bars can be compared between panels.
    let most = counted.iter().flat_map(|one| one.bins.values()).map(|bin| bin.1 + bin.2).max().unwrap_or(1);
    let step = Step::covering_whole(most as f64, 4);
    let high = step.multiple(step.index_below(most as f64 * 1.02) + 1);
    let last = attentions.len().saturating_sub(1);
    let panel = |(index, (&attention, counted)): (usize, (&Attention, &Counted))| {
        let label = if index == attentions.len() / 2 { "number of heads" } else { "" };
        let ticks = Ticks::Round { step, is_numbered: true };
        let (low, label) = (-STRIP * high, label.to_owned());
        let name = format!("{attention} ({})", sweep.model().description(attention));
        Panel {
            name: if last > 0 { name } else { String::new() },
            x: if index == last { x.clone() } else { x.clone().silent() },
            y: Axis { label, low, high, ticks, gap: None },
            height: if last > 0 { 58.0 } else { 100.0 },
            share: 1.0,
            layers: counted.layers(sweep.base, high),
        }
    };
    Chart {
        name: if sweep.stem(STEMS) == "figure1b" { "Figure 1b" } else { "Figure 1" },
        label: format!("{}-{}", sweep.stem(STEMS), sweep.file.subject),
        title: format!("{} with one head masked; {}", sweep.metric.axis_label(), sweep.title()),
        notes: notes(sweep, attentions, context),
        width: COLUMN,
        columns: 1,
        legend: legend(sweep, &counted),
        panels: attentions.iter().zip(&counted).enumerate().map(panel).collect(),
        color_bar: None,
    }
}

/// Heads of one type by bin: its ends, and how many are significant or not.
struct Counted {
    bins: BTreeMap<i64, ((f64, f64), usize, usize)>,
    scores: [Vec<f64>; 2],
}

impl Counted {
    fn of(family: &[&AblationRow], bins: Bins, context: Context<'_>) -> Self {
        let mut counted = Self { bins: BTreeMap::new(), scores: [Vec::new(), Vec::new()] };
        for row in family {
            let is_significant = context.criterion.holds(*row);
            let ends = bins.of(row.score);
            let bin = counted.bins.entry((ends.0 / bins.width).round() as i64).or_insert((ends, 0, 0));
            if is_significant { bin.1 += 1 } else { bin.2 += 1 }
            counted.scores[usize::from(is_significant)].push(row.score);
        }
        counted
    }

    fn layers(&self, base: f64, high: f64) -> Vec<Layer> {
        let bar = |((left, right), low, more): ((f64, f64), usize, usize)| {
            [left, right, low as f64, (low + more) as f64]
        };
        let above = self.bins.values().filter(|bin| bin.2 > 0).map(|&(ends, low, more)| bar((ends, low, more)));
        let below = self.bins.values().filter(|bin| bin.1 > 0).map(|&(ends, some, _)| bar((ends, 0, some)));
        let strokes = |scores: &[f64], color| {
            let places = scores.iter().map(|&score| (score, -STRIP / 2.0 * high)).collect();
            Layer::Points(places, Mark::new(Shape::Tick, 2.4, color))
        };
        let [others, significant] = &self.scores;
        vec![
            Layer::Bars(above.collect(), PALE),
            Layer::Bars(below.collect(), VERMILLION),
            strokes(others, INK),
            strokes(significant, VERMILLION),
            Layer::rule(At::X(base), Style::dashed(INK, 0.9), ""),
        ]
    }
}

/// Holds all bins and the base score; never so short that one bin fills it.
fn x_axis(sweep: &Sweep, bins: Bins, counted: &[Counted]) -> Axis {
    let edges = counted.iter().flat_map(|one| one.bins.values()).flat_map(|(ends, ..)| [ends.0, ends.1]);
    let (low, high) = extent(edges.chain([sweep.base]));
    let missing = (FEWEST * bins.width - (high - low)).max(0.0) / 2.0;
    let label = format!("{} with one head masked", sweep.metric.axis_label());
    Axis::around(label, low - missing, high + missing)
}

fn legend(sweep: &Sweep, counted: &[Counted]) -> Vec<Entry> {
    let heads = |place: usize| counted.iter().map(|one| one.scores[place].len()).sum::<usize>();
    let base = sweep.metric.amount(sweep.base);
    let mut legend = vec![Entry::text(format!("base {base}")).line(Style::dashed(INK, 0.9))];
    legend.push(Entry::text(format!("significant: {}", heads(1))).fill(VERMILLION));
    legend.push(Entry::text(format!("not: {}", heads(0))).fill(PALE));
    legend.push(Entry::text("each head").mark(Mark::new(Shape::Tick, 2.4, INK)));
    legend
}

fn notes(sweep: &Sweep, attentions: &[Attention], context: Context<'_>) -> Vec<String> {
    let mut notes = vec![
        format!("{}, dashed, is an edge of the bins", sweep.base_line()),
        format!("significant: {}", sweep.judge(context.criterion).description("heads")),
        "each stroke below the bars is a head".to_owned(),
    ];
    let is_alone = attentions == [Attention::SelfAttention] && sweep.beside() == Some(Beside::Mnli);
    notes.extend(context.paper.filter(|_| is_alone).map(|paper| {
        let [base, lowest, highest] = FIGURE_1B.map(|name| 100.0 * paper.value(name));
        format!("Figure 1b of the paper (MNLI): {base:.1} %, masked {lowest:.1} to {highest:.1} %")
    }));
    notes.extend(attentions.iter().filter_map(|&attention| sweep.missing_heads(attention)));
    notes.extend(sweep.file.remark());
    notes
}
