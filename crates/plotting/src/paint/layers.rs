//! The layers of a panel.
use anyhow::Result;
use plotters::element::{Circle, Polygon, Rectangle};
use plotters::style::Color as _;
use plotters::style::text_anchor::HPos;

use super::axes::Plot;
use super::layout::Place;
use super::text::{SMALL, TextStyle, width};
use super::{Page, UNITS_PER_INCH, marks, points, rgb, stroke, to_error};
use crate::chart::{At, Cell, Color, Layer, Panel, Style};
use crate::palette::{GREY, INK, LIGHT, WHITE, diverging, text_on};

/// Opacity of bands.
const BAND: f64 = 0.18;
/// Height of a name at the end of a line.
const END: f64 = 7.5;

/// Draws all layers from the back to the front.
pub fn draw(page: &Page<'_>, plot: &mut Plot<'_>, panel: &Panel, place: Place) -> Result<()> {
    for layer in &panel.layers {
        match layer {
            Layer::Bars(bars, color) => draw_bars(plot, bars, *color)?,
            Layer::Line(line, style) => marks::draw_line(page, *style, on_page(plot, line))?,
            Layer::Band(band, color) => draw_band(plot, band, *color)?,
            Layer::Points(places, mark) => {
                on_page(plot, places).into_iter().try_for_each(|at| marks::draw_mark(page, *mark, at))?;
            }
            Layer::Rule(at, style) => draw_rule(page, plot, panel, (*at, *style))?,
            Layer::Cells(cells) => cells.iter().try_for_each(|cell| draw_cell(page, plot, cell))?,
            Layer::Ends(ends) => draw_ends(page, plot, ends, place)?,
            Layer::Tops(tops) => draw_tops(page, plot, tops, place)?,
            Layer::Brackets(spans) => draw_brackets(page, plot, spans, place.top)?,
        }
    }
    Ok(())
}

/// Places on the page, in units.
fn on_page(plot: &Plot<'_>, places: &[(f64, f64)]) -> Vec<(i32, i32)> {
    places.iter().map(|place| plot.plotting_area().map_coordinate(place)).collect()
}

fn in_points(units: i32) -> f64 {
    f64::from(units) * 72.0 / f64::from(UNITS_PER_INCH)
}

fn draw_bars(plot: &mut Plot<'_>, bars: &[[f64; 4]], color: Color) -> Result<()> {
    let bar = |&[left, right, low, high]: &[f64; 4]| {
        let mut bar = Rectangle::new([(left, low), (right, high)], rgb(color).filled());
        bar.set_margin(0, 0, 1, 2); // a white gap between neighbours
        bar
    };
    plot.draw_series(bars.iter().map(bar)).map(drop).map_err(to_error)
}

fn draw_band(plot: &mut Plot<'_>, band: &[(f64, f64, f64)], color: Color) -> Result<()> {
    let lower = band.iter().map(|&(x, low, _)| (x, low));
    let upper = band.iter().rev().map(|&(x, _, high)| (x, high));
    let area = Polygon::new(lower.chain(upper).collect::<Vec<_>>(), rgb(color).mix(BAND).filled());
    plot.draw_series([area]).map(drop).map_err(to_error)
}

/// The room that layers take above the panel, below its name.
pub fn above(panel: &Panel) -> f64 {
    let height = |layer: &Layer| match layer {
        Layer::Brackets(_) => 12.0,
        Layer::Tops(_) => 8.5,
        _ => 0.0,
    };
    panel.layers.iter().map(height).fold(0.0, f64::max)
}

fn draw_rule(
    page: &Page<'_>,
    plot: &Plot<'_>,
    Panel { x, y, .. }: &Panel,
    (at, line): (At, Style),
) -> Result<()> {
    let ends = match at {
        At::X(at) => [(at, y.low), (at, y.high)],
        At::Y(at) => [(x.low, at), (x.high, at)],
        At::Diagonal(across, up) => {
            let from = (x.low - across).max(y.low - up);
            let to = (x.high - across).min(y.high - up);
            [from, to].map(|step| (across + step, up + step))
        }
    };
    marks::draw_line(page, line, on_page(plot, &ends))
}

/// A square of colour; one without a value is crossed out.
fn draw_cell(page: &Page<'_>, plot: &mut Plot<'_>, cell: &Cell) -> Result<()> {
    let (column, row) = (cell.place.0 as f64, cell.place.1 as f64);
    let corners = [(column, row), (column + 1.0, row + 1.0)];
    let paper = cell.value.map_or(WHITE, diverging);
    let square = |style| Rectangle::new(corners, style);
    plot.draw_series([square(rgb(paper).filled()), square(stroke(LIGHT, 0.5))]).map_err(to_error)?;
    let ends = on_page(plot, &corners);
    let middle = ((ends[0].0 + ends[1].0) / 2, (ends[0].1 + ends[1].1) / 2);
    if cell.value.is_none() && cell.text.is_empty() {
        return marks::draw_line(page, Style::line(LIGHT, 0.6), ends);
    }
    if cell.text.is_empty() && cell.value < Some(0.0) {
        marks::draw_stripes(page, [ends[0], ends[1]])?;
    }
    if cell.is_marked {
        page.draw(&Circle::new(middle, points(1.2), rgb(text_on(paper)).filled())).map_err(to_error)?;
    }
    if cell.text.is_empty() {
        return Ok(());
    }
    let room = in_points((ends[1].0 - ends[0].0).abs()) - 2.0;
    let size = (SMALL * room / width(&cell.text, SMALL)).min(SMALL);
    let color = if cell.value.is_some() { text_on(paper) } else { GREY };
    let style = TextStyle { size, color, anchor: HPos::Center };
    style.write_centered(page, &cell.text, (in_points(middle.0), in_points(middle.1)))
}

/// Names at the right end; those that would overlap move apart.
fn draw_ends(page: &Page<'_>, plot: &Plot<'_>, ends: &[(f64, String, Color)], place: Place) -> Result<()> {
    let half = END / 2.0;
    let heights = ends.iter().map(|(y, ..)| in_points(on_page(plot, &[(0.0, *y)])[0].1));
    let heights = apart(heights.map(|y| (y, END)).collect(), (place.top - half, place.bottom + half));
    ends.iter().zip(heights).try_for_each(|((_, name, color), y)| {
        let style = TextStyle { size: SMALL, color: *color, anchor: HPos::Left };
        style.write_centered(page, name, (place.right + 3.0, y))
    })
}

/// Names above the panel, in the same way; they may reach over the names of the y axis.
fn draw_tops(page: &Page<'_>, plot: &Plot<'_>, tops: &[(f64, String, Color)], place: Place) -> Result<()> {
    let across = |(x, name, _): &(f64, String, Color)| {
        (in_points(on_page(plot, &[(*x, 0.0)])[0].0), width(name, SMALL) + 8.0)
    };
    let middles = apart(tops.iter().map(across).collect(), (place.left - 24.0, place.right + 6.0));
    tops.iter().zip(middles).try_for_each(|((_, name, color), x)| {
        let style = TextStyle { size: SMALL, color: *color, anchor: HPos::Center };
        style.write(page, name, (x, place.top - 3.0))
    })
}

/// Moves the middles of things of these sizes apart, so that none overlaps another and all are between both ends if there is
/// room; in the order of the things.
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

fn draw_brackets(page: &Page<'_>, plot: &Plot<'_>, spans: &[(f64, f64, String)], top: f64) -> Result<()> {
    for (left, right, name) in spans {
        let [left, right] = [left, right].map(|x| in_points(on_page(plot, &[(*x, 0.0)])[0].0));
        let (left, right) = (left + 1.0, right - 1.0);
        let path = [(left, top - 1.5), (left, top - 3.5), (right, top - 3.5), (right, top - 1.5)];
        let path = path.map(|(x, y)| (points(x), points(y))).to_vec();
        marks::draw_line(page, Style::line(INK, 0.5), path)?;
        let style = TextStyle { size: SMALL * 0.9, color: INK, anchor: HPos::Center };
        style.write(page, name, ((left + right) / 2.0, top - 5.5))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_ends_of_lines_keep_clear_of_each_other() {
        let apart =
            |middles: &[f64], ends| apart(middles.iter().map(|&middle| (middle, 8.0)).collect(), ends);
        assert_eq!(apart(&[11.0, 10.0, 40.0], (0.0, 100.0)), [18.0, 10.0, 40.0]);
        assert_eq!(apart(&[90.0, 99.0, 99.0], (0.0, 100.0)), [80.0, 88.0, 96.0]);
        assert_eq!(apart(&[-5.0], (0.0, 100.0)), [4.0]);
    }
}
