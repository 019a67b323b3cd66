//! The matrix as a figure.
use plotters::element::Rectangle;
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use super::{Agreement, Cell};
use crate::Error;
use crate::figure::axes::stroke;
use crate::figure::canvas::{Area, COLUMN_INCHES, Figure, points, to_error};
use crate::figure::color_bar::{ABOVE_BAR, BAR, BELOW_BAR, ColorBar};
use crate::figure::diverging::{color, text_color};
use crate::figure::palette::{GREY, INK, LIGHT};
use crate::figure::text::{SIZE, SMALL, TextStyle, fitted, width};
use crate::number::{count, typeset};

/// Right and left margin, in points.
const MARGIN: f64 = 6.0;
/// Height of a line of text, in points.
const LINE: f64 = 11.0;
/// Room between the names and the cells, in points.
const GAP: f64 = 4.0;
const WHITE: RGBColor = RGBColor(255, 255, 255);

/// Where the cells stand on the page, in points.
#[derive(Clone, Copy)]
struct Grid {
    left: f64,
    top: f64,
    /// Width and height of a cell.
    cell: f64,
    /// Number of rows and of columns.
    size: usize,
}

impl Grid {
    fn of(agreement: &Agreement) -> Self {
        let names = agreement.scores.iter().map(|score| width(score.label(), SMALL));
        let widest = names.fold(0.0, f64::max);
        let left = MARGIN + widest + GAP;
        let size = agreement.scores.len();
        let cell = (COLUMN_INCHES * 72.0 - MARGIN - left) / size as f64;
        let lines = (2 + agreement.notes.len()) as f64;
        Self { left, top: lines * LINE + GAP + widest + GAP + 2.0, cell, size }
    }

    /// The ends of a row or column, counted from an edge.
    fn span(self, edge: f64, index: usize) -> (i32, i32) {
        (points(edge + self.cell * index as f64), points(edge + self.cell * (index + 1) as f64))
    }

    fn right(self) -> f64 {
        self.left + self.cell * self.size as f64
    }

    fn bottom(self) -> f64 {
        self.top + self.cell * self.size as f64
    }
}

/// A square matrix with Kendall's tau-b above the diagonal and Spearman's rho below, each printed on its colour.
///
/// # Errors
/// If drawing fails.
pub fn figure(agreement: &Agreement) -> Result<Figure, Error> {
    let grid = Grid::of(agreement);
    let height = grid.bottom() + ABOVE_BAR + BAR + BELOW_BAR;
    let size = (COLUMN_INCHES, (height / 72.0 * 100.0).round() / 100.0);
    let title = format!("{}; {}", agreement.title, count(agreement.heads, "head"));
    Figure::draw(size, &title, |page| {
        draw_text(page, &title, LINE, GREY)?;
        draw_text(page, &explanation(agreement), 2.0 * LINE, INK)?;
        for (index, note) in agreement.notes.iter().enumerate() {
            draw_text(page, note, (index + 3) as f64 * LINE, GREY)?;
        }
        for row in 0..grid.size {
            draw_names(page, agreement, grid, row)?;
            for column in 0..grid.size {
                draw_cell(page, agreement.cell(row, column), grid, (row, column))?;
            }
        }
        let top = grid.bottom() + ABOVE_BAR;
        ColorBar { left: grid.left, right: grid.right(), top, label: "rank correlation" }
            .draw(page, tick_label)
    })
}

fn explanation(agreement: &Agreement) -> String {
    let dash = if agreement.has_undefined() { "; \u{2013} all heads are equal" } else { "" };
    format!("above the diagonal Kendall\u{2019}s \u{3c4}, below Spearman\u{2019}s \u{3c1}{dash}")
}

fn draw_text(page: &Area<'_>, text: &str, baseline: f64, color: RGBColor) -> Result<(), Error> {
    let (text, size) = fitted(text, SMALL, COLUMN_INCHES * 72.0 - 2.0 * MARGIN);
    TextStyle::new(size, color, HPos::Left).write(page, &text, (points(MARGIN), points(baseline)))
}

/// The name of one order, beside its row and above its column.
fn draw_names(page: &Area<'_>, agreement: &Agreement, grid: Grid, index: usize) -> Result<(), Error> {
    let name = agreement.scores[index].label();
    let (top, bottom) = grid.span(grid.top, index);
    let beside = (points(grid.left - GAP), (top + bottom) / 2);
    TextStyle::new(SMALL, INK, HPos::Right).write_centered(page, name, beside)?;
    let (left, right) = grid.span(grid.left, index);
    // Digits are 0.711 em high; half of that centres the text on its column.
    let above = ((left + right) / 2 + points(SMALL * 0.355), points(grid.top - GAP));
    TextStyle::new(SMALL, INK, HPos::Left).write_upwards(page, name, above)
}

fn draw_cell(page: &Area<'_>, cell: Cell, grid: Grid, (row, column): (usize, usize)) -> Result<(), Error> {
    let ((left, right), (top, bottom)) = (grid.span(grid.left, column), grid.span(grid.top, row));
    let (paper, ink, text) = match cell {
        Cell::Diagonal => (LIGHT, INK, String::new()),
        Cell::Undefined => (WHITE, GREY, "\u{2013}".to_owned()),
        Cell::Correlation(value) => (color(value), text_color(value), typeset(value, 2)),
    };
    page.draw(&Rectangle::new([(left, top), (right, bottom)], paper.filled())).map_err(to_error)?;
    page.draw(&Rectangle::new([(left, top), (right, bottom)], stroke(WHITE, 1.0))).map_err(to_error)?;
    let size = (SIZE * (grid.cell - 3.0) / width("\u{2212}0.00", SIZE)).min(SIZE);
    let middle = ((left + right) / 2, (top + bottom) / 2);
    TextStyle::new(size, ink, HPos::Center).write_centered(page, &text, middle)
}

fn tick_label(value: f64) -> String {
    let decimals = if value.fract() == 0.0 { 0 } else { 1 };
    typeset(value, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::tests::example;

    #[test]
    fn numbers_and_names_are_text_in_the_svg() {
        let figure = figure(&example()).unwrap();
        for label in
            ["0.33", "0.60", "\u{2212}entropy", "attention gradient", "rank correlation", "; 4 heads"]
        {
            assert!(figure.svg().contains(label), "`{label}` is missing");
        }
        assert_eq!(figure.svg().matches("importance by token").count(), 2);
    }

    #[test]
    fn notes_stand_above_the_matrix() {
        let noted = Agreement { notes: vec!["oracle: score lost on test".to_owned()], ..example() };
        assert!(figure(&noted).unwrap().svg().contains("oracle: score lost on test"));
        assert!((Grid::of(&noted).top - Grid::of(&example()).top - LINE).abs() < 1e-9);
    }

    #[test]
    fn equal_rows_give_equal_files() {
        let draw = || figure(&example()).unwrap();
        assert_eq!(draw(), draw());
        assert_eq!(draw().png().unwrap(), draw().png().unwrap());
    }
}
