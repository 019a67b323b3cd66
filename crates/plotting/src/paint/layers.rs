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
/// Height of the name of an upright rule.
const RULE: f64 = 8.5;

/// Draws all layers from the back to the front.
pub fn draw(page: &Page<'_>, plot: &mut Plot<'_>, panel: &Panel, place: Place) -> Result<()> {
    let mut level = upright_names(panel);
    for layer in &panel.layers {
        match layer {
            Layer::Bars(bars, color) => draw_bars(plot, bars, *color)?,
            Layer::Line(line, style) => marks::draw_line(page, *style, on_page(plot, line))?,
            Layer::Band(band, color) => draw_band(plot, band, *color)?,
            Layer::Points(places, mark) => {
                on_page(plot, places).into_iter().try_for_each(|at| marks::draw_mark(page, *mark, at))?;
            }
            Layer::Rule(at, style, name) => {
                level -= usize::from(is_named_upright(layer));
                draw_rule(page, plot, (panel, place), (*at, *style, name, level))?;
            }
            Layer::Cells(cells) => cells.iter().try_for_each(|cell| draw_cell(page, plot, cell))?,
            Layer::Ends(ends) => draw_ends(page, plot, ends, place)?,
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

/// Upright rules have their names above the panel, the last one lowest.
fn is_named_upright(layer: &Layer) -> bool {
    matches!(layer, Layer::Rule(At::X(_), _, name) if !name.is_empty())
}

/// How many lines these names take.
pub fn upright_names(panel: &Panel) -> usize {
    panel.layers.iter().filter(|layer| is_named_upright(layer)).count()
}

/// How high above the panel its name stands.
pub fn above(panel: &Panel) -> f64 {
    let has_brackets = panel.layers.iter().any(|layer| matches!(layer, Layer::Brackets(_)));
    RULE * upright_names(panel) as f64 + if has_brackets { 12.0 } else { 0.0 }
}

fn draw_rule(
    page: &Page<'_>,
    plot: &Plot<'_>,
    (panel, place): (&Panel, Place),
    (at, line, name, level): (At, Style, &str, usize),
) -> Result<()> {
    let Panel { x, y, .. } = panel;
    let ends = match at {
        At::X(at) => [(at, y.low), (at, y.high)],
        At::Y(at) => [(x.low, at), (x.high, at)],
        At::Diagonal(across, up) => {
            let from = (x.low - across).max(y.low - up);
            let to = (x.high - across).min(y.high - up);
            [from, to].map(|step| (across + step, up + step))
        }
    };
    let path = on_page(plot, &ends);
    let first = path[0];
    marks::draw_line(page, line, path)?;
    let style = TextStyle { size: SMALL, color: line.color, anchor: HPos::Center };
    match at {
        At::X(_) => {
            let half = width(name, SMALL) / 2.0;
            let x = in_points(first.0).min(place.right - half).max(place.left + half);
            style.write(page, name, (x, place.top - 3.0 - RULE * level as f64))
        }
        At::Y(at) => {
            // Curves start near the upper end of the axis and end near the lower one.
            let is_high = (at - y.low) / (y.high - y.low) > 0.5;
            let (anchor, x, below) = if is_high {
                (HPos::Right, place.right - 2.0, SMALL)
            } else {
                (HPos::Left, place.left + 4.0, -2.0)
            };
            TextStyle { anchor, ..style }.write(page, name, (x, in_points(first.1) + below))
        }
        At::Diagonal(..) => Ok(()),
    }
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
    let mut placed: Vec<(f64, &str, Color)> = ends
        .iter()
        .map(|(y, name, color)| (in_points(on_page(plot, &[(0.0, *y)])[0].1), name.as_str(), *color))
        .collect();
    placed.sort_by(|one, other| one.0.total_cmp(&other.0));
    let heights: Vec<f64> = placed.iter().map(|(y, ..)| *y).collect();
    let heights = apart(heights, (place.top, place.bottom));
    placed.iter().zip(heights).try_for_each(|((_, name, color), y)| {
        let style = TextStyle { size: SMALL, color: *color, anchor: HPos::Left };
        style.write_centered(page, name, (place.right + 3.0, y))
    })
}

/// Moves ascending heights as far apart as names are high, and not below the lower of the two ends if there is room.
fn apart(mut heights: Vec<f64>, (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut least = top;
    for height in &mut heights {
        *height = height.max(least);
        least = *height + END;
    }
    let mut most = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - END;
    }
    heights
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
        assert_eq!(apart(vec![10.0, 11.0, 40.0], (0.0, 100.0)), [10.0, 17.5, 40.0]);
        assert_eq!(apart(vec![95.0, 99.0, 99.0], (0.0, 100.0)), [85.0, 92.5, 100.0]);
        assert_eq!(apart(vec![-5.0], (0.0, 100.0)), [0.0]);
    }
}
