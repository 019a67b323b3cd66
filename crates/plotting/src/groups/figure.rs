//! The groups as a heat map: one row for each group, one column for each head that matters.
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use super::{Groups, Head};
use crate::Error;
use crate::figure::axes::stroke;
use crate::figure::canvas::{Area, Figure, TEXT_INCHES, points, to_error};
use crate::figure::color_bar::{ABOVE_BAR, BAR, BELOW_BAR, ColorBar};
use crate::figure::diverging::{color, text_color};
use crate::figure::palette::{GREY, INK, LIGHT};
use crate::figure::text::{SMALL, TextStyle, fitted, width};
use crate::number::{count, short, typeset};

/// Heads that are shown at most: those with the smallest p-value in any group.
const MOST: usize = 24;
/// Right and left margin, in points.
const MARGIN: f64 = 6.0;
/// Height of a line of text, in points.
const LINE: f64 = 11.0;
/// Height of a row, in points.
const ROW: f64 = 9.5;
/// Greatest width of a column, in points.
const WIDEST: f64 = 14.0;
/// Greatest width of the names of groups, in points.
const NAMES: f64 = 150.0;
/// Room between the names and the cells, in points.
const GAP: f64 = 4.0;

/// Where the cells stand on the page, in points, and which heads they are of.
struct Grid {
    left: f64,
    top: f64,
    column: f64,
    /// Places of the heads that are shown.
    heads: Vec<usize>,
    /// The greatest change that is shown, in percentage points; the end of the colours.
    most: f64,
}

impl Grid {
    fn of(groups: &Groups) -> Self {
        let heads = shown(groups);
        let names = groups.groups.iter().map(|group| width(&group.name, SMALL));
        let left = MARGIN + names.fold(0.0, f64::max).min(NAMES) + GAP;
        let room = (TEXT_INCHES * 72.0 - MARGIN - left) / heads.len().max(1) as f64;
        let above = heads.iter().map(|&head| width(&groups.heads[head].name, SMALL)).fold(0.0, f64::max);
        let changes =
            groups.groups.iter().flat_map(|group| heads.iter().map(|&head| group.changes[head].delta));
        let most = changes.fold(0.0_f64, |most, delta| most.max(delta.abs()));
        let most = if most > 0.0 { most } else { 1.0 };
        Self { left, top: 2.0 * LINE + GAP + above + GAP + 2.0, column: room.min(WIDEST), heads, most }
    }

    fn x(&self, place: usize) -> i32 {
        points(self.left + self.column * place as f64)
    }

    fn y(&self, row: usize) -> i32 {
        points(self.top + ROW * row as f64)
    }
}

/// Places of the heads with the smallest p-values in any group, the greater change first among equals, in their order.
fn shown(groups: &Groups) -> Vec<usize> {
    let changes = |head: usize| groups.groups.iter().map(move |group| group.changes[head]);
    let least_p = |head| changes(head).map(|change| change.p_adjusted).fold(1.0, f64::min);
    let most = |head| changes(head).map(|change| change.delta.abs()).fold(0.0, f64::max);
    let mut heads: Vec<usize> = (0..groups.heads.len()).collect();
    heads.sort_by(|&one, &other| {
        least_p(one).total_cmp(&least_p(other)).then(most(other).total_cmp(&most(one)))
    });
    heads.truncate(MOST);
    heads.sort_unstable();
    heads
}

/// Changes of accuracy as colours, significant ones with a dot; thin lines between layers and between the heads that share
/// keys and values.
///
/// # Errors
/// If drawing fails.
pub fn figure(groups: &Groups, alpha: f64) -> Result<Figure, Error> {
    let grid = Grid::of(groups);
    let bottom = grid.top + ROW * groups.groups.len() as f64;
    let height = bottom + ABOVE_BAR + BAR + BELOW_BAR;
    let size = (TEXT_INCHES, (height / 72.0 * 100.0).round() / 100.0);
    let title = title(groups, &grid);
    Figure::draw(size, &title, |page| {
        draw_text(page, &title, LINE, GREY)?;
        let dot = format!("dot: p < {} (McNemar, adjusted by Holm for all heads and groups)", short(alpha));
        draw_text(page, &dot, 2.0 * LINE, INK)?;
        for row in 0..groups.groups.len() {
            draw_group(page, groups, &grid, (row, alpha))?;
        }
        for place in 0..grid.heads.len() {
            draw_head(page, groups, &grid, place)?;
        }
        let right = (grid.left + grid.column * grid.heads.len() as f64).max(grid.left + 100.0);
        let label = "change of accuracy with the head masked (percentage points)";
        ColorBar { left: grid.left, right, top: bottom + ABOVE_BAR, label }
            .draw(page, |value| typeset(value * grid.most, 1))
    })
}

fn title(groups: &Groups, grid: &Grid) -> String {
    let (shown, all) = (grid.heads.len(), groups.heads.len());
    let heads = match shown == all {
        true => count(all, "head"),
        false => format!("the {shown} of {all} heads with the smallest p"),
    };
    format!("{}; {heads}", groups.sweep.title())
}

fn draw_text(page: &Area<'_>, text: &str, baseline: f64, color: RGBColor) -> Result<(), Error> {
    let (text, size) = fitted(text, SMALL, TEXT_INCHES * 72.0 - 2.0 * MARGIN);
    TextStyle::new(size, color, HPos::Left).write(page, &text, (points(MARGIN), points(baseline)))
}

/// The name and the cells of one group.
fn draw_group(
    page: &Area<'_>,
    groups: &Groups,
    grid: &Grid,
    (row, alpha): (usize, f64),
) -> Result<(), Error> {
    let group = &groups.groups[row];
    let (top, bottom) = (grid.y(row), grid.y(row + 1));
    let (name, size) = fitted(&group.name, SMALL, NAMES);
    let beside = (points(grid.left - GAP), (top + bottom) / 2);
    TextStyle::new(size, INK, HPos::Right).write_centered(page, &name, beside)?;
    for (place, &head) in grid.heads.iter().enumerate() {
        let (left, right) = (grid.x(place), grid.x(place + 1));
        let change = group.changes[head];
        let value = change.delta / grid.most;
        let area = [(left, top), (right, bottom)];
        page.draw(&Rectangle::new(area, color(value).filled())).map_err(to_error)?;
        page.draw(&Rectangle::new(area, stroke(LIGHT, 0.5))).map_err(to_error)?;
        if Groups::is_significant(change, alpha) {
            let middle = ((left + right) / 2, (top + bottom) / 2);
            page.draw(&Circle::new(middle, points(1.3), text_color(value).filled())).map_err(to_error)?;
        }
    }
    Ok(())
}

/// The name of one head above its column, and a line before it where it shares no keys and values with the head to its left.
fn draw_head(page: &Area<'_>, groups: &Groups, grid: &Grid, place: usize) -> Result<(), Error> {
    let head = &groups.heads[grid.heads[place]];
    let above = ((grid.x(place) + grid.x(place + 1)) / 2 + points(SMALL * 0.355), points(grid.top - GAP));
    TextStyle::new(SMALL, INK, HPos::Left).write_upwards(page, &head.name, above)?;
    let before = place.checked_sub(1).map(|before| &groups.heads[grid.heads[before]]);
    let Some(before) = before.filter(|before| block(groups, before) != block(groups, head)) else {
        return Ok(());
    };
    let is_new_layer = (before.attention, before.layer) != (head.attention, head.layer);
    let (x, width) = (grid.x(place), if is_new_layer { 0.9 } else { 0.4 });
    let ends = vec![(x, grid.y(0)), (x, grid.y(groups.groups.len()))];
    page.draw(&PathElement::new(ends, stroke(INK, width))).map_err(to_error)
}

/// The layer of a head and its key-value head, counted from 0; 0 for all where each head has its own.
fn block(groups: &Groups, head: &Head) -> impl PartialEq {
    let of_layer = groups.heads.iter().map(|other| other.number).max().unwrap_or(0);
    let group = groups.sweep.key_value_groups(of_layer).first().map_or(of_layer, |group| group.columns);
    (head.attention, head.layer, (head.number - 1) / group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::layout::clash;
    use crate::groups::tests::example;

    #[test]
    fn groups_and_heads_are_named() {
        let figure = figure(&example(), 0.01).unwrap();
        for label in ["agreement over a distractor", "self:1:2", "8 heads", "percentage points", "83.3"] {
            assert!(figure.svg().contains(label), "`{label}` is missing");
        }
        assert_eq!(figure.svg().matches("<circle").count(), 2);
        assert_eq!(clash(figure.svg()), None);
    }

    /// Two layers of two key-value heads: one line in each layer, one between the layers.
    #[test]
    fn lines_stand_between_heads_that_share_nothing() {
        let groups = example();
        let blocks: Vec<_> = groups.heads.iter().map(|head| block(&groups, head)).collect();
        let changes: Vec<bool> = blocks.windows(2).map(|pair| pair[0] != pair[1]).collect();
        assert_eq!(changes, [false, true, false, true, false, true, false]);
    }

    #[test]
    fn of_many_heads_those_that_matter_are_shown() {
        let mut many = example();
        let (head, plain) = (many.heads[0].clone(), many.groups[0].changes[0]);
        for number in 5..40 {
            many.heads.push(Head { layer: 3, number, ..head.clone() });
            many.groups.iter_mut().for_each(|group| group.changes.push(plain));
        }
        let shown = shown(&many);
        assert_eq!(shown.len(), MOST);
        assert!([1, 2, 6].iter().all(|place| shown.contains(place)) && shown.is_sorted());
        assert!(figure(&many, 0.01).unwrap().svg().contains("the 24 of 43 heads with the smallest p"));
    }

    #[test]
    fn equal_rows_give_equal_files() {
        let draw = || figure(&example(), 0.01).unwrap();
        assert_eq!(draw(), draw());
        assert_eq!(draw().png().unwrap(), draw().png().unwrap());
    }
}
