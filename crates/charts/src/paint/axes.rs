//! Draws one panel: axes with round ticks or names, and layers.
use plotters::style::text_anchor::HPos;
use words::typeset;

use super::canvas::{Canvas, SIZE, SMALL, Spot, TextStyle, fitted, points, spot, units, width};
use super::layers;
use super::layout::{Place, depth, widest};
use crate::chart::{Axis, Panel, Style, Ticks};
use crate::palette::{INK, LIGHT, WHITE};

/// Length of a tick, in points.
const TICK: f64 = 2.5;

/// Minimum gap between two names, in points.
const GAP: f64 = 2.5;

/// Maps values of a panel to places on the page.
pub struct Plane<'a> {
    pub place: Place,
    pub panel: &'a Panel,
}

impl Plane<'_> {
    /// Returns the place of a pair of values.
    pub fn at(&self, (x, y): (f64, f64)) -> Spot {
        (self.across(x), self.up(y))
    }

    /// Returns the place of an x value, in units from the left.
    pub fn across(&self, x: f64) -> i32 {
        along(&self.panel.x, x, units(self.place.left), units(self.place.right) - 1)
    }

    /// Returns the place of a y value, in units from the top.
    pub fn up(&self, y: f64) -> i32 {
        along(&self.panel.y, y, units(self.place.bottom) - 1, units(self.place.top))
    }
}

/// Interpolates between the ends of an axis.
fn along(axis: &Axis, value: f64, from: i32, to: i32) -> i32 {
    let share = (value - axis.low) / (axis.high - axis.low);
    from + (f64::from(to - from) * share).round() as i32
}

pub fn draw(canvas: &mut Canvas, panel: &Panel, place: Place) {
    let plane = Plane { place, panel };
    let Place { left, right, top, bottom } = place;
    let is_matrix = matches!((&panel.x.ticks, &panel.y.ticks), (Ticks::Names(_), Ticks::Names(_)));
    if !is_matrix {
        // light grid lines at the ticks of the y axis
        for (tick, _) in round(&panel.y) {
            let y = plane.up(tick);
            canvas.line(&[(units(left), y), (units(right), y)], Style::line(LIGHT, 0.4));
        }
    }
    layers::draw(canvas, &plane);
    if !is_matrix {
        line(canvas, [(left, bottom), (right, bottom)]);
        line(canvas, [(left, top), (left, bottom)]);
    }
    x_ticks(canvas, &plane, &panel.x, is_matrix);
    y_ticks(canvas, &plane, &panel.y);
    labels(canvas, panel, place);
}

/// Returns round ticks of an axis with their numbers, which are empty if the axis shows none.
pub fn round(axis: &Axis) -> Vec<(f64, String)> {
    let Ticks::Round(step, is_numbered) = axis.ticks else { return Vec::new() };
    let number = |tick| if is_numbered { typeset(tick, step.decimals()) } else { String::new() };
    let ticks = step.ticks(axis.low.min(axis.high), axis.low.max(axis.high)).into_iter();
    ticks.map(|tick| (tick, number(tick))).collect()
}

fn line(canvas: &mut Canvas, ends: [(f64, f64); 2]) {
    canvas.line(&ends.map(spot), Style::line(INK, 0.6));
}

fn x_ticks(canvas: &mut Canvas, plane: &Plane<'_>, axis: &Axis, is_matrix: bool) {
    let style = TextStyle { size: SIZE, color: INK, anchor: HPos::Center };
    let bottom = plane.place.bottom;
    let across = |value: f64| points(plane.across(value));
    for (tick, number) in round(axis) {
        let x = across(tick);
        line(canvas, [(x, bottom), (x, bottom + TICK)]);
        style.write(canvas, &number, (x, bottom + 10.0));
    }
    let Ticks::Names(names) = &axis.ticks else { return };
    let widest = |lines: &[String], size| lines.iter().map(|line| width(line, size)).fold(0.0, f64::max);
    // column names shrink a little before some are left out
    let column = (plane.place.right - plane.place.left) / names.len().max(1) as f64 - GAP;
    let most = names.iter().map(|(_, lines)| widest(lines, SMALL)).fold(1.0, f64::max);
    let size = if is_matrix { SMALL * (column / most).clamp(0.8, 1.0) } else { SMALL };
    let span = |(place, lines): &(f64, Vec<String>)| {
        let half = widest(lines, size) / 2.0;
        (across(*place) - half, across(*place) + half)
    };
    let spans: Vec<_> = names.iter().map(span).collect();
    let shown = if is_matrix { at_even_distances(&spans) } else { with_room(&spans) };
    for (place, (_, lines)) in names.iter().enumerate() {
        let middle = (spans[place].0 + spans[place].1) / 2.0;
        if !is_matrix {
            line(canvas, [(middle, bottom), (middle, bottom + TICK)]);
        }
        for (index, line) in lines.iter().enumerate().filter(|_| shown.contains(&place)) {
            let at = (middle, bottom + 8.5 * (index + 1) as f64);
            TextStyle { size, ..style }.write(canvas, line, at);
        }
    }
    if let Some(gap) = axis.gap {
        // two strokes mark an axis break
        let x = across(gap);
        canvas.line(&[(x - 1.2, bottom), (x + 1.2, bottom)].map(spot), Style::line(WHITE, 2.0));
        for x in [x - 1.2, x + 1.2] {
            line(canvas, [(x - 1.2, bottom + 2.4), (x + 1.2, bottom - 2.4)]);
        }
    }
}

fn y_ticks(canvas: &mut Canvas, plane: &Plane<'_>, axis: &Axis) {
    let style = TextStyle { size: SIZE, color: INK, anchor: HPos::Right };
    let left = plane.place.left;
    let up = |value: f64| points(plane.up(value));
    for (tick, number) in round(axis) {
        let y = up(tick);
        line(canvas, [(left - TICK, y), (left, y)]);
        style.write_centered(canvas, &number, (left - TICK - 1.5, y));
    }
    let Ticks::Names(names) = &axis.ticks else { return };
    for (place, lines) in names {
        let (text, size) = fitted(&lines.join(" "), SMALL, 127.0);
        TextStyle { size, ..style }.write_centered(canvas, &text, (left - 3.0, up(*place)));
    }
}

/// Draws the name of the panel and the labels of its axes.
fn labels(canvas: &mut Canvas, panel: &Panel, Place { left, right, top, bottom }: Place) {
    let style = TextStyle { size: SIZE, color: INK, anchor: HPos::Center };
    let page = canvas.width;
    let (text, size) = fitted(&panel.x.label, SIZE, page - 4.0);
    let half = width(&text, size) / 2.0 + 2.0;
    let middle = ((left + right) / 2.0).min(page - half).max(half);
    TextStyle { size, ..style }.write(canvas, &text, (middle, bottom + depth(&panel.x) + 9.0));
    let beside = left - widest(&panel.y) - 3.0;
    let (text, size) = fitted(&panel.y.label, SIZE, (bottom - top) + 30.0);
    TextStyle { size, ..style }.write_upwards(canvas, &text, (beside, (top + bottom) / 2.0));
    let above = top - 4.0 - layers::above(panel);
    let (text, size) = fitted(&panel.name, SMALL, page - left);
    TextStyle { size, color: INK, anchor: HPos::Left }.write(canvas, &text, (left, above));
}

/// Returns the names of a matrix to show: every n-th from the first, with the smallest n at which they do not touch.
fn at_even_distances(spans: &[(f64, f64)]) -> Vec<usize> {
    let is_clear = |stride: usize| {
        let shown: Vec<_> = spans.iter().step_by(stride).collect();
        shown.windows(2).all(|pair| pair[0].1 + GAP <= pair[1].0)
    };
    let stride = (1..spans.len()).find(|&stride| is_clear(stride)).unwrap_or(spans.len().max(1));
    (0..spans.len()).step_by(stride).collect()
}

/// Returns the names to show: the last, and from the left each that touches neither the previous shown name nor the last.
fn with_room(spans: &[(f64, f64)]) -> Vec<usize> {
    let Some(((start, _), others)) = spans.split_last() else { return Vec::new() };
    let (mut shown, mut end) = (Vec::new(), f64::NEG_INFINITY);
    for (place, (left, right)) in others.iter().enumerate() {
        if *left >= end + GAP && *right + GAP <= *start {
            shown.push(place);
            end = *right;
        }
    }
    shown.push(others.len());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Names 8 apart: if they are 10 wide, every second is shown; if they are 40 wide and so cover five places, every sixth.
    #[test]
    fn names_of_a_matrix_are_shown_at_even_distances() {
        let spans = |width: f64| {
            (0..12).map(|place| f64::from(place) * 8.0).map(|at| (at, at + width)).collect::<Vec<_>>()
        };
        let every = |stride| (0..12).step_by(stride).collect::<Vec<usize>>();
        assert_eq!([5.0, 10.0, 40.0].map(|width| at_even_distances(&spans(width))), [1, 2, 6].map(every));
        assert_eq!((at_even_distances(&[]), at_even_distances(&[(0.0, 9.0)])), (vec![], vec![0]));
    }

    proptest! {
        #[test]
        fn no_two_names_touch(mut starts in prop::collection::vec(0.0_f64..200.0, 1..30), width in 1.0_f64..40.0) {
            starts.sort_by(f64::total_cmp);
            let spans: Vec<_> = starts.iter().map(|start| (*start, start + width)).collect();
            let shown = with_room(&spans);
            prop_assert!(shown.contains(&(spans.len() - 1)));
            prop_assert!(shown.windows(2).all(|pair| spans[pair[0]].1 < spans[pair[1]].0), "{:?}", shown);
        }
    }
}
