//! One panel: its plane by plotters' chart builder, its axes with round ticks or names, its layers.
use anyhow::Result;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::element::PathElement;
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::HPos;

use super::layout::{Place, depth, widest};
use super::text::{SIZE, SMALL, TextStyle, fitted, width};
use super::{Page, layers, points, stroke, to_error};
use crate::chart::{Axis, Panel, Ticks};
use crate::palette::{INK, LIGHT, WHITE};
use crate::words::typeset;

/// The plane of a panel, for elements of plotters in data coordinates.
pub type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Length of a tick, in points.
const TICK: f64 = 2.5;

/// Room between two names, in points.
const GAP: f64 = 2.5;

/// Draws a panel.
pub fn draw(page: &Page<'_>, panel: &Panel, place: Place) -> Result<()> {
    let corner = (points(place.left), points(place.top));
    let size = (points(place.right) - corner.0, points(place.bottom) - corner.1);
    let area = page.clone().shrink(corner, size);
    let (x, y) = (panel.x.low..panel.x.high, panel.y.low..panel.y.high);
    let mut plot = ChartBuilder::on(&area).build_cartesian_2d(x, y).map_err(to_error)?;
    let is_matrix = matches!((&panel.x.ticks, &panel.y.ticks), (Ticks::Names(_), Ticks::Names(_)));
    let frame = Frame { page, place, is_matrix };
    if !is_matrix {
        frame.grid(&plot, &panel.y)?;
    }
    layers::draw(page, &mut plot, panel, place)?;
    if !is_matrix {
        frame.line([(place.left, place.bottom), (place.right, place.bottom)])?;
        frame.line([(place.left, place.top), (place.left, place.bottom)])?;
    }
    frame.x_ticks(&plot, &panel.x, panel.y.low)?;
    frame.y_ticks(&plot, &panel.y, panel.x.low)?;
    frame.labels(panel)
}

/// Where a value pair stands on the page, in points.
fn at(plot: &Plot<'_>, x: f64, y: f64) -> (f64, f64) {
    let (x, y) = plot.plotting_area().map_coordinate(&(x, y));
    let scale = 72.0 / f64::from(super::UNITS_PER_INCH);
    (f64::from(x) * scale, f64::from(y) * scale)
}

/// Ticks of an axis at round numbers, with their numbers.
fn round(axis: &Axis) -> Vec<(f64, String)> {
    let Ticks::Round(step, _) = axis.ticks else { return Vec::new() };
    let ticks = step.ticks(axis.low.min(axis.high), axis.low.max(axis.high)).into_iter();
    ticks.map(|tick| (tick, typeset(tick, step.decimals()))).collect()
}

/// What stands around the plane.
struct Frame<'a, 'b> {
    page: &'a Page<'b>,
    place: Place,
    is_matrix: bool,
}

impl Frame<'_, '_> {
    fn line(&self, ends: [(f64, f64); 2]) -> Result<()> {
        let ends = ends.map(|(x, y)| (points(x), points(y)));
        self.page.draw(&PathElement::new(ends.to_vec(), stroke(INK, 0.6))).map_err(to_error)
    }

    /// Light level lines at the ticks of the y axis.
    fn grid(&self, plot: &Plot<'_>, axis: &Axis) -> Result<()> {
        round(axis).into_iter().try_for_each(|(tick, _)| {
            let y = points(at(plot, 0.0, tick).1);
            let ends = vec![(points(self.place.left), y), (points(self.place.right), y)];
            self.page.draw(&PathElement::new(ends, stroke(LIGHT, 0.4))).map_err(to_error)
        })
    }

    fn x_ticks(&self, plot: &Plot<'_>, axis: &Axis, y: f64) -> Result<()> {
        let style = TextStyle { size: SIZE, color: INK, anchor: HPos::Center };
        let bottom = self.place.bottom;
        let is_numbered = matches!(axis.ticks, Ticks::Round(_, true));
        for (tick, number) in round(axis) {
            let (x, _) = at(plot, tick, y);
            self.line([(x, bottom), (x, bottom + TICK)])?;
            if is_numbered {
                style.write(self.page, &number, (x, bottom + 10.0))?;
            }
        }
        let Ticks::Names(names) = &axis.ticks else { return Ok(()) };
        let spans: Vec<_> = names
            .iter()
            .map(|(place, lines)| {
                let half = lines.iter().map(|line| width(line, SMALL)).fold(0.0, f64::max) / 2.0;
                let (x, _) = at(plot, *place, y);
                (x - half, x + half)
            })
            .collect();
        let stride = stride(&spans);
        let is_shown = |place| if self.is_matrix { place % stride == 0 } else { has_room(&spans, place) };
        for place in 0..names.len() {
            let middle = (spans[place].0 + spans[place].1) / 2.0;
            if !self.is_matrix {
                self.line([(middle, bottom), (middle, bottom + TICK)])?;
            }
            if !is_shown(place) {
                continue;
            }
            for (index, line) in names[place].1.iter().enumerate() {
                let at = (middle, bottom + 8.5 * (index + 1) as f64);
                TextStyle { size: SMALL, ..style }.write(self.page, line, at)?;
            }
        }
        axis.gap.map_or(Ok(()), |gap| self.gap(at(plot, gap, y).0))
    }

    /// Two strokes across the lower axis where it leaves something out.
    fn gap(&self, x: f64) -> Result<()> {
        let y = self.place.bottom;
        let blank = vec![(points(x - 1.2), points(y)), (points(x + 1.2), points(y))];
        self.page.draw(&PathElement::new(blank, stroke(WHITE, 2.0))).map_err(to_error)?;
        [x - 1.2, x + 1.2].into_iter().try_for_each(|x| self.line([(x - 1.2, y + 2.4), (x + 1.2, y - 2.4)]))
    }

    fn y_ticks(&self, plot: &Plot<'_>, axis: &Axis, x: f64) -> Result<()> {
        let style = TextStyle { size: SIZE, color: INK, anchor: HPos::Right };
        let left = self.place.left;
        let is_numbered = matches!(axis.ticks, Ticks::Round(_, true));
        for (tick, number) in round(axis) {
            let (_, y) = at(plot, x, tick);
            self.line([(left - TICK, y), (left, y)])?;
            if is_numbered {
                style.write_centered(self.page, &number, (left - TICK - 1.5, y))?;
            }
        }
        let Ticks::Names(names) = &axis.ticks else { return Ok(()) };
        names.iter().try_for_each(|(place, lines)| {
            let (text, size) = fitted(&lines.join(" "), SMALL, 127.0);
            TextStyle { size, ..style }.write_centered(self.page, &text, (left - 3.0, at(plot, x, *place).1))
        })
    }

    /// The name of the panel and what its axes show.
    fn labels(&self, panel: &Panel) -> Result<()> {
        let Place { left, right, top, bottom } = self.place;
        let style = TextStyle { size: SIZE, color: INK, anchor: HPos::Center };
        let page_width = f64::from(self.page.dim_in_pixel().0) * 72.0 / f64::from(super::UNITS_PER_INCH);
        let (text, size) = fitted(&panel.x.label, SIZE, page_width - 4.0);
        let half = width(&text, size) / 2.0 + 2.0;
        let middle = ((left + right) / 2.0).min(page_width - half).max(half);
        TextStyle { size, ..style }.write(self.page, &text, (middle, bottom + depth(&panel.x) + 9.0))?;
        let beside = left - widest(&panel.y) - 3.0;
        let (text, size) = fitted(&panel.y.label, SIZE, (bottom - top) + 30.0);
        TextStyle { size, ..style }.write_upwards(self.page, &text, (beside, (top + bottom) / 2.0))?;
        let above = top - 4.0 - layers::above(panel);
        let (text, size) = fitted(&panel.name, SMALL, page_width - left);
        TextStyle { size, color: INK, anchor: HPos::Left }.write(self.page, &text, (left, above))
    }
}

/// Which names of a matrix are shown, from the first on: every one, or every second, third, ... so that they keep clear of
/// each other.
fn stride(spans: &[(f64, f64)]) -> usize {
    let is_clear = |stride: usize| {
        let shown: Vec<_> = spans.iter().step_by(stride).collect();
        shown.windows(2).all(|pair| pair[0].1 + GAP <= pair[1].0)
    };
    (1..spans.len()).find(|&stride| is_clear(stride)).unwrap_or(spans.len().max(1))
}

/// Whether a name is shown: the last one is, and then each from the left that keeps clear of those.
fn has_room(spans: &[(f64, f64)], index: usize) -> bool {
    let Some((last, others)) = spans.split_last() else { return false };
    if index == others.len() {
        return true;
    }
    let mut end = f64::NEG_INFINITY;
    for (place, (left, right)) in others.iter().enumerate() {
        let is_shown = *left >= end + GAP && *right + GAP <= last.0;
        if place == index {
            return is_shown;
        }
        end = if is_shown { *right } else { end };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Names 10 wide, 8 apart: every second; 40 wide, which reach over five places: every sixth.
    #[test]
    fn names_of_a_matrix_are_shown_at_even_distances() {
        let spans = |width: f64| {
            (0..12).map(|place| f64::from(place) * 8.0).map(|at| (at, at + width)).collect::<Vec<_>>()
        };
        assert_eq!([5.0, 10.0, 40.0].map(|width| stride(&spans(width))), [1, 2, 6]);
        assert_eq!((stride(&[]), stride(&[(0.0, 9.0)])), (1, 1));
    }

    proptest! {
        #[test]
        fn no_two_names_touch(mut starts in prop::collection::vec(0.0_f64..200.0, 1..30), width in 1.0_f64..40.0) {
            starts.sort_by(f64::total_cmp);
            let spans: Vec<_> = starts.iter().map(|start| (*start, start + width)).collect();
            let shown: Vec<_> = (0..spans.len()).filter(|&index| has_room(&spans, index)).collect();
            prop_assert!(shown.contains(&(spans.len() - 1)));
            prop_assert!(shown.windows(2).all(|pair| spans[pair[0]].1 < spans[pair[1]].0), "{:?}", shown);
        }
    }
}
