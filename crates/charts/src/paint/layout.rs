//! Page layout: legend, panels with room for their axes, and colour bar.
use plotters::style::text_anchor::HPos;

use super::canvas::{Canvas, DIGIT, Paint, SIZE, SMALL, TextStyle, fitted, spot, width};
use super::layers::draw_stripes;
use super::marks::draw_mark;
use super::{axes, layers};
use crate::chart::{Axis, Chart, ColorBar, Entry, Layer, Panel, Style, Ticks};
use crate::palette::{INK, diverging};

/// Margin around everything.
const MARGIN: f64 = 3.0;
/// Height of a line of the legend.
const LINE: f64 = 9.5;
/// Lengths of a sample line, and of a mark or an area.
const SAMPLES: [f64; 2] = [14.0, 8.0];
/// Gap between two entries of the legend.
const GAP: f64 = 8.0;
/// Room above a panel for its name.
const NAME: f64 = 11.0;
/// Room for the label of an axis.
const LABEL: f64 = 10.5;
/// Maximum width of names along a y axis.
const NAMES: f64 = 130.0;
/// The colour bar: room above it, its height, and room below it.
const BAR: [f64; 3] = [7.0, 6.0, 20.0];

/// Place of a panel, in points from the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// Room that a panel needs around it: left, right, above, below.
type Room = [f64; 4];

/// Places of everything on the page.
pub struct Layout {
    /// Height of the page, in points.
    pub height: f64,
    /// Left end and baseline of each legend entry.
    entries: Vec<(f64, f64)>,
    places: Vec<Place>,
}

fn sample(entry: &Entry) -> f64 {
    match (&entry.line, &entry.mark, &entry.fill) {
        (Some(_), ..) => SAMPLES[0],
        (None, None, None) => 0.0,
        _ => SAMPLES[1],
    }
}

/// Returns the height of the ticks and names of an x axis.
pub fn depth(axis: &Axis) -> f64 {
    match &axis.ticks {
        Ticks::Round(_, true) => 10.5,
        Ticks::Round(_, false) => 3.0,
        Ticks::Names(names) => {
            let lines = names.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
            if lines == 0 { 0.0 } else { 1.5 + 8.5 * lines as f64 }
        }
    }
}

/// Returns the width of the widest number or name of a y axis.
pub fn widest(axis: &Axis) -> f64 {
    match &axis.ticks {
        Ticks::Round(_, true) => {
            axes::round(axis).iter().map(|(_, number)| width(number, SIZE) + 5.0).fold(0.0, f64::max)
        }
        Ticks::Round(..) => 3.0,
        Ticks::Names(names) => {
            let texts = names.iter().flat_map(|(_, lines)| lines);
            texts.map(|text| width(text, SMALL) + 3.0).fold(0.0, f64::max).min(NAMES)
        }
    }
}

fn labelled(axis: &Axis) -> f64 {
    if axis.label.is_empty() { 0.0 } else { LABEL }
}

fn room(panel: &Panel) -> Room {
    let ends = panel.layers.iter().flat_map(|layer| match layer {
        Layer::Ends(ends) => &ends[..],
        _ => &[],
    });
    let ends = ends.map(|(_, name, _)| width(name, SMALL) + layers::LEADER + 3.5).fold(7.0, f64::max);
    let name = if panel.name.is_empty() { 0.0 } else { NAME };
    let left = labelled(&panel.y) + widest(&panel.y);
    let below = depth(&panel.x) + labelled(&panel.x) + 2.0;
    [left, ends, 5.0 + name + layers::above(panel), below]
}

/// Returns the maximum room that any panel needs, side by side.
fn most<'a>(panels: impl Iterator<Item = &'a Panel>) -> Room {
    let wider = |one: Room, other: Room| std::array::from_fn(|side| one[side].max(other[side]));
    panels.map(room).fold(Room::default(), wider)
}

impl Layout {
    pub fn of(chart: &Chart) -> Self {
        let page = chart.width * 72.0;
        let (entries, header) = legend(&chart.legend, page - MARGIN);
        let columns = chart.columns.max(1);
        let of_column: Vec<Room> =
            (0..columns).map(|column| most(chart.panels.iter().skip(column).step_by(columns))).collect();
        let taken: f64 = of_column.iter().map(|[left, right, ..]| left + right).sum();
        let shares: Vec<f64> = chart.panels.iter().take(columns).map(|panel| panel.share).collect();
        let unit = (page - 2.0 * MARGIN - taken) / shares.iter().sum::<f64>().max(1e-9);
        let mut places = Vec::new();
        let mut top = header;
        for row in chart.panels.chunks(columns) {
            let [_, _, above, below] = most(row.iter());
            let height = row.iter().map(|panel| panel.height).fold(0.0, f64::max);
            let mut left = MARGIN;
            for ((_, [before, after, ..]), share) in row.iter().zip(&of_column).zip(&shares) {
                left += before;
                let right = left + unit * share;
                places.push(Place { left, right, top: top + above, bottom: top + above + height });
                left = right + after;
            }
            top += above + height + below;
        }
        let bar = if chart.color_bar.is_some() { BAR.iter().sum() } else { 0.0 };
        Self { height: top + bar + 1.0, entries, places }
    }

    pub fn draw(&self, canvas: &mut Canvas, chart: &Chart) {
        for (entry, &at) in chart.legend.iter().zip(&self.entries) {
            draw_entry(canvas, entry, at);
        }
        for (panel, &place) in chart.panels.iter().zip(&self.places) {
            axes::draw(canvas, panel, place);
        }
        let left = self.places.first().map_or(MARGIN, |place| place.left);
        let right = self.places.iter().map(|place| place.right).fold(left, f64::max);
        if let Some(bar) = &chart.color_bar {
            draw_bar(canvas, bar, (left, right), self.height - 1.0 - BAR[1] - BAR[2]);
        }
    }
}

/// Places legend entries line by line, and returns the height of the legend as well.
fn legend(entries: &[Entry], right: f64) -> (Vec<(f64, f64)>, f64) {
    let (mut left, mut line) = (MARGIN, 1.0);
    let mut places = Vec::new();
    for entry in entries {
        let needed = sample(entry) + 3.0 + width(&entry.text, SMALL);
        if left > MARGIN && left + needed > right {
            (left, line) = (MARGIN, line + 1.0);
        }
        places.push((left, LINE * line));
        left += needed + GAP;
    }
    (places, if entries.is_empty() { 2.0 } else { LINE * line + 3.0 })
}

fn draw_entry(canvas: &mut Canvas, entry: &Entry, (left, baseline): (f64, f64)) {
    let length = sample(entry);
    let middle = baseline - SMALL * DIGIT / 2.0;
    if let Some(color) = entry.fill {
        let corners = [(left, middle - 3.0), (left + length, middle + 3.0)];
        canvas.rectangle(corners.map(spot), Paint::area(color));
    }
    if let Some(style) = entry.line {
        canvas.line(&[(left, middle), (left + length, middle)].map(spot), style);
    }
    if let Some(mark) = entry.mark {
        draw_mark(canvas, mark, spot((left + length / 2.0, middle)));
    }
    let start = left + if length > 0.0 { length + 3.0 } else { 0.0 };
    let (text, size) = fitted(&entry.text, SMALL, canvas.width - start - MARGIN);
    TextStyle { size, color: INK, anchor: HPos::Left }.write(canvas, &text, (start, baseline));
}

/// Draws a colour bar with five numbers and its label; the odd number of parts makes the middle one white.
fn draw_bar(canvas: &mut Canvas, bar: &ColorBar, (left, right): (f64, f64), top: f64) {
    const PARTS: i32 = 81;
    let bottom = top + BAR[1];
    let corners = [(left, top), (right, bottom)].map(spot);
    let edge = |part: i32| corners[0].0 + (corners[1].0 - corners[0].0) * part / PARTS;
    for part in 0..PARTS {
        let value = f64::from(2 * part + 1 - PARTS) / f64::from(PARTS - 1);
        // each part extends to the end of the bar, since white would show through between parts that only touch
        canvas.rectangle([(edge(part), corners[0].1), corners[1]], Paint::area(diverging(value)));
    }
    draw_stripes(canvas, [corners[0], (edge(PARTS / 2), corners[1].1)]);
    canvas.rectangle(corners, Paint { area: None, outline: Some(Style::line(INK, 0.0)) });
    let style = |anchor| TextStyle { size: SMALL, color: INK, anchor };
    let anchors = [HPos::Left, HPos::Center, HPos::Center, HPos::Center, HPos::Right];
    for (place, (anchor, number)) in anchors.into_iter().zip(&bar.numbers).enumerate() {
        let x = left + (right - left) * place as f64 / 4.0;
        style(anchor).write(canvas, number, (x, bottom + 8.0));
    }
    let (text, size) = fitted(&bar.label, SMALL, canvas.width - 2.0 * MARGIN);
    let half = width(&text, size) / 2.0 + MARGIN;
    let middle = ((left + right) / 2.0).min(canvas.width - half).max(half);
    TextStyle { size, ..style(HPos::Center) }.write(canvas, &text, (middle, bottom + 17.0));
}
