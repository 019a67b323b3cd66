//! Draws the layers of a panel.
use plotters::style::text_anchor::HPos;

use super::axes::Plane;
use super::canvas::{Canvas, Paint, SMALL, Spot, TextStyle, points, spot, width};
use super::layout::Place;
use super::marks::draw_mark;
use crate::chart::{At, Cell, Color, Layer, Panel, SIGN_RADIUS, Sign, Style};
use crate::palette::{GREY, INK, LIGHT, WHITE, diverging, text_on};

/// Opacity of bands.
const BAND: f64 = 0.18;
/// Height of a name at the end of a line.
const END: f64 = 7.5;
/// Length of the leader from the end of a line to its name.
pub const LEADER: f64 = 9.0;

/// Draws all layers from back to front.
pub fn draw(canvas: &mut Canvas, plane: &Plane<'_>) {
    let spots = |places: &[(f64, f64)]| places.iter().map(|&place| plane.at(place)).collect::<Vec<_>>();
    for layer in &plane.panel.layers {
        match layer {
            Layer::Bars(bars, color) => bars.iter().for_each(|&[left, right, low, high]| {
                let ((left, bottom), (right, top)) = (plane.at((left, low)), plane.at((right, high)));
                // a white gap between neighbours
                canvas.rectangle([(left + 1, top), (right - 2, bottom)], Paint::area(*color));
            }),
            Layer::Line(line, style) => canvas.line(&spots(line), *style),
            Layer::Band(band, color) => {
                let lower = band.iter().map(|&(x, low, _)| plane.at((x, low)));
                let upper = band.iter().rev().map(|&(x, _, high)| plane.at((x, high)));
                let paint = Paint { area: Some((*color, BAND)), outline: None };
                canvas.polygon(&lower.chain(upper).collect::<Vec<_>>(), paint);
            }
            Layer::Points(places, mark) => {
                spots(places).into_iter().for_each(|at| draw_mark(canvas, *mark, at));
            }
            Layer::Rule(at, style) => canvas.line(&spots(&rule(plane.panel, *at)), *style),
            Layer::Cells(cells) => draw_cells(canvas, plane, cells),
            Layer::Label(at, text) => draw_label(canvas, plane, *at, text),
            Layer::Ends(ends) => draw_ends(canvas, plane, ends),
            Layer::Tops(tops) => draw_tops(canvas, plane, tops),
            Layer::Brackets(spans) => draw_brackets(canvas, plane, spans),
        }
    }
}

/// Returns the height that layers need between the panel and its name.
pub fn above(panel: &Panel) -> f64 {
    let height = |layer: &Layer| match layer {
        Layer::Brackets(_) => 12.0,
        Layer::Tops(_) => 8.5,
        _ => 0.0,
    };
    panel.layers.iter().map(height).fold(0.0, f64::max)
}

/// Returns the ends of a line across the panel.
fn rule(Panel { x, y, .. }: &Panel, at: At) -> [(f64, f64); 2] {
    match at {
        At::X(at) => [(at, y.low), (at, y.high)],
        At::Y(at) => [(x.low, at), (x.high, at)],
        At::Diagonal(across, up) => {
            let from = (x.low - across).max(y.low - up);
            let to = (x.high - across).min(y.high - up);
            [from, to].map(|step| (across + step, up + step))
        }
    }
}

/// Draws coloured squares; without text, those without a value are crossed out and those below 0 are striped.
fn draw_cells(canvas: &mut Canvas, plane: &Plane<'_>, cells: &[Cell]) {
    let paper = |cell: &Cell| cell.value.map_or(WHITE, diverging);
    let corners = |&Cell { place: (column, row), .. }: &Cell| {
        let (x, y) = (column as f64, row as f64);
        [plane.at((x, y)), plane.at((x + 1.0, y + 1.0))]
    };
    for cell in cells {
        let paint = Paint { outline: Some(Style::line(LIGHT, 0.3)), ..Paint::area(paper(cell)) };
        canvas.rectangle(corners(cell), paint);
    }
    // squares first, then lines, since the backend groups neighbours with equal attributes
    for cell in cells.iter().filter(|cell| cell.text.is_empty()) {
        match cell.value {
            None => canvas.line(&corners(cell), Style::line(LIGHT, 0.6)),
            Some(value) if value < 0.0 => draw_stripes(canvas, corners(cell)),
            Some(_) => {}
        }
    }
    // one font size for all: smaller digits would look like a smaller number
    let fit = |cell: &Cell| {
        let [from, to] = corners(cell);
        SMALL * (points(to.0 - from.0) - 2.0) / width(&cell.text, SMALL).max(1.0)
    };
    let size = cells.iter().map(fit).fold(SMALL, f64::min);
    for cell in cells {
        let [from, to] = corners(cell);
        let middle = ((from.0 + to.0) / 2, (from.1 + to.1) / 2);
        let ink = text_on(paper(cell));
        match cell.sign {
            Some(Sign::Dot) => canvas.circle(middle, SIGN_RADIUS, Paint::area(ink)),
            Some(Sign::Ring) => {
                let outline = Some(Style::line(ink, 0.6));
                canvas.circle(middle, SIGN_RADIUS, Paint { area: None, outline });
            }
            None => {}
        }
        let color = if cell.value.is_some() { ink } else { GREY };
        let style = TextStyle { size, color, anchor: HPos::Center };
        style.write_centered(canvas, &cell.text, (points(middle.0), points(middle.1)));
    }
}

/// Draws white stripes across an area, so that negative values are recognisable in black and white.
pub fn draw_stripes(canvas: &mut Canvas, [(left, top), (right, bottom)]: [Spot; 2]) {
    for third in [1, 2] {
        let y = top + (bottom - top) * third / 3;
        canvas.line(&[(left, y), (right, y)], Style::line(WHITE, 0.7));
    }
}

/// Draws a text right of a place in the left half of the panel, otherwise left of it.
fn draw_label(canvas: &mut Canvas, plane: &Plane<'_>, at: (f64, f64), text: &str) {
    let ((x, y), Place { left, right, .. }) = (plane.at(at), plane.place);
    let is_left = points(x) > (left + right) / 2.0;
    let (anchor, gap) = if is_left { (HPos::Right, -4.0) } else { (HPos::Left, 4.0) };
    TextStyle { size: SMALL, color: INK, anchor }.write_centered(canvas, text, (points(x) + gap, points(y)));
}

/// Draws names at the right edge, each with a leader; names that would overlap are moved apart.
fn draw_ends(canvas: &mut Canvas, plane: &Plane<'_>, ends: &[(f64, String, Color)]) {
    let Place { right, top, bottom, .. } = plane.place;
    let wanted: Vec<_> = ends.iter().map(|(y, ..)| points(plane.up(*y))).collect();
    let heights = apart(wanted.iter().map(|&y| (y, END)).collect(), (top - END / 2.0, bottom + END / 2.0));
    for (((_, name, color), from), to) in ends.iter().zip(wanted).zip(heights) {
        let style = TextStyle { size: SMALL, color: *color, anchor: HPos::Left };
        style.write_centered(canvas, name, (right + LEADER + 1.5, to));
        canvas.line(&[spot((right, from)), spot((right + LEADER, to))], Style::line(*color, 0.4));
    }
}

/// Draws names above the panel, moved apart if they would overlap; they may extend over the names of the y axis.
fn draw_tops(canvas: &mut Canvas, plane: &Plane<'_>, tops: &[(f64, String, Color)]) {
    let Place { left, right, top, .. } = plane.place;
    let across = |(x, name, _): &(f64, String, Color)| (points(plane.across(*x)), width(name, SMALL) + 8.0);
    let middles = apart(tops.iter().map(across).collect(), (left - 24.0, right + 6.0));
    for ((_, name, color), x) in tops.iter().zip(middles) {
        let style = TextStyle { size: SMALL, color: *color, anchor: HPos::Center };
        style.write(canvas, name, (x, top - 3.0));
    }
}

/// Moves things, given by middle and size, apart so that none overlap, within both ends if they fit; returns middles in input order.
fn apart(things: Vec<(f64, f64)>, (low, high): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<_> = (0..things.len()).collect();
    order.sort_by(|&one, &other| things[one].0.total_cmp(&things[other].0));
    let mut middles: Vec<_> = things.iter().map(|(middle, _)| *middle).collect();
    let (mut least, mut most) = (low, high);
    for &each in &order {
        let half = things[each].1 / 2.0;
        middles[each] = middles[each].max(least + half);
        least = middles[each] + half;
    }
    for &each in order.iter().rev() {
        let half = things[each].1 / 2.0;
        middles[each] = middles[each].min(most - half);
        most = middles[each] - half;
    }
    middles
}

fn draw_brackets(canvas: &mut Canvas, plane: &Plane<'_>, spans: &[(f64, f64, String)]) {
    let top = plane.place.top;
    for (left, right, name) in spans {
        let [left, right] = [left, right].map(|x| points(plane.across(*x)));
        let (left, right) = (left + 1.0, right - 1.0);
        let path = [(left, top - 1.5), (left, top - 3.5), (right, top - 3.5), (right, top - 1.5)];
        canvas.line(&path.map(spot), Style::line(INK, 0.5));
        let style = TextStyle { size: SMALL * 0.9, color: INK, anchor: HPos::Center };
        style.write(canvas, name, ((left + right) / 2.0, top - 5.5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_ends_of_lines_do_not_overlap() {
        let apart =
            |middles: &[f64], ends| apart(middles.iter().map(|&middle| (middle, 8.0)).collect(), ends);
        assert_eq!(apart(&[11.0, 10.0, 40.0], (0.0, 100.0)), [18.0, 10.0, 40.0]);
        assert_eq!(apart(&[90.0, 99.0, 99.0], (0.0, 100.0)), [80.0, 88.0, 96.0]);
        assert_eq!(apart(&[-5.0], (0.0, 100.0)), [4.0]);
    }
}
