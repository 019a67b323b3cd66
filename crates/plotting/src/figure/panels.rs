//! Several plots side by side over the same values, each below a legend of its own.
use plotters::style::text_anchor::HPos;

use super::axes::{Axes, Place, Scale, draw_y_label};
use super::canvas::{Area, Figure, TEXT_INCHES, points};
use super::legend::{Entry, LINE, Legend};
use super::lines::{BASE, Line, draw_head};
use super::palette::INK;
use super::text::{SMALL, TextStyle, fitted};
use super::ticks::{NUMBERS, Tick, arranged, depth};
use crate::Error;

/// Least margin left of the plots and the margin right of them, in points.
const LEFT: f64 = 34.0;
const RIGHT: f64 = 9.0;
/// Room for the label of the y axis and around its numbers, in points.
const AROUND_NUMBERS: f64 = 20.0;
/// Room between two plots, in points.
const GAP: f64 = 18.0;
/// Room below the labels of the x axes, in points.
const BOTTOM: f64 = 18.0;
/// Height of the plots, in points.
const HEIGHT: f64 = 140.0;

/// What stands along the x axis of a panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Ticks {
    /// Round numbers.
    Numbers,
    /// Names at these places.
    Names(Vec<(f64, Vec<String>)>),
}

/// One plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What its lines are, above the legend.
    pub heading: String,
    /// The curves, the most important one first; it is drawn last.
    pub lines: Vec<Line>,
    /// What its x axis covers.
    pub x: Scale,
    /// The ticks of that axis.
    pub ticks: Ticks,
    /// Where that axis leaves something out.
    pub gap: Option<f64>,
    /// What that axis shows.
    pub label: String,
    /// Its share of the width, 0 to 1.
    pub share: f64,
}

/// A row of plots.
#[derive(Debug, Clone, PartialEq)]
pub struct Panels {
    /// Title for screen readers and file managers.
    pub title: String,
    /// Lines of small print above all.
    pub head: Vec<String>,
    /// The plots, from the left.
    pub panels: Vec<Panel>,
    /// Value of the horizontal line, and its name.
    pub base: (f64, String),
    /// What the y axes show.
    pub label: String,
}

/// A panel with its place on the page.
struct Placed<'a> {
    panel: &'a Panel,
    /// Whether it has the numbers of the y axis, and the base in its legend.
    is_first: bool,
    legend: Legend,
    ticks: Vec<Tick>,
    left: f64,
    right: f64,
}

impl Panels {
    /// Draws them at the width of the text.
    ///
    /// # Errors
    /// If drawing fails.
    pub fn figure(&self) -> Result<Figure, Error> {
        let y = self.y_scale();
        let placed = self.placed((AROUND_NUMBERS + y.widest_number()).max(LEFT));
        let left = placed.first().map_or(LEFT, |one| one.left);
        let head = LINE * self.head.len() as f64;
        let legends = placed.iter().map(|one| LINE + one.legend.height()).fold(0.0, f64::max);
        let (top, bottom) = (head + legends + 10.0, head + legends + 10.0 + HEIGHT);
        let below = placed.iter().map(|one| depth(&one.ticks)).fold(NUMBERS, f64::max);
        let size = (TEXT_INCHES, ((bottom + below + BOTTOM) / 72.0 * 100.0).round() / 100.0);
        Figure::draw(size, &self.title, |page| {
            draw_head(page, &self.head, (left, TEXT_INCHES * 72.0 - RIGHT))?;
            for one in &placed {
                one.draw_legend(page, head)?;
                let place = Place { left: one.left, right: one.right, top, bottom };
                let axes = Axes::new(page, place, one.panel.x, y);
                one.draw(page, &axes, self.base.0)?;
                axes.draw_y_axis_with(one.is_first)?;
            }
            draw_y_label(page, &self.label, top, bottom)
        })
    }

    /// The panels from left to right, each as wide as its share.
    fn placed(&self, mut left: f64) -> Vec<Placed<'_>> {
        let gaps = GAP * self.panels.len().saturating_sub(1) as f64;
        let room = TEXT_INCHES * 72.0 - left - RIGHT - gaps;
        let place = |(index, panel): (usize, _)| {
            let one = self.place(panel, index == 0, left, room);
            left = one.right + GAP;
            one
        };
        self.panels.iter().enumerate().map(place).collect()
    }

    fn place<'a>(&self, panel: &'a Panel, is_first: bool, left: f64, room: f64) -> Placed<'a> {
        let width = room * panel.share;
        let entry = |style, text: &str| Entry { style, is_hollow: false, text: text.to_owned() };
        let lines = panel.lines.iter().map(|line| entry(line.style, &line.name));
        let base = is_first.then(|| entry(BASE, &self.base.1)); // once is enough
        let entries = base.into_iter().chain(lines).collect();
        let Scale { low, high, .. } = panel.x;
        let to_points = |x: f64| left + width * (x - low) / (high - low);
        let number = |(at, label)| Tick { at, lines: vec![label], level: 0 };
        let ticks = match &panel.ticks {
            Ticks::Numbers => panel.x.ticks().map(number).collect(),
            Ticks::Names(names) => arranged(names.clone(), to_points),
        };
        Placed { panel, is_first, legend: Legend::compact(entries, width), ticks, left, right: left + width }
    }

    /// Holds all points and the base; one for all, so that panels can be compared.
    fn y_scale(&self) -> Scale {
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        let values = lines.flat_map(|line| &line.pieces).flatten().map(|point| point.y);
        let start = (self.base.0.min(0.0), self.base.0);
        let (low, high) = values.fold(start, |(low, high), value| (low.min(value), high.max(value)));
        Scale::around(low, high)
    }
}

impl Placed<'_> {
    fn draw_legend(&self, page: &Area<'_>, top: f64) -> Result<(), Error> {
        let (text, size) = fitted(&self.panel.heading, SMALL, self.right - self.left);
        let at = (points(self.left), points(top + LINE));
        TextStyle::new(size, INK, HPos::Left).write(page, &text, at)?;
        self.legend.draw(page, self.left, top + LINE)
    }

    fn draw(&self, page: &Area<'_>, axes: &Axes<'_, '_>, base: f64) -> Result<(), Error> {
        axes.draw_grid()?;
        BASE.draw_line(page, axes.ends_along(base).to_vec())?;
        for line in self.panel.lines.iter().rev() {
            line.draw(page, axes)?;
        }
        axes.draw_x_ticks(&self.ticks)?;
        axes.draw_x_label_below(&self.panel.label, depth(&self.ticks))?;
        self.panel.gap.map_or(Ok(()), |x| axes.draw_x_break(x))
    }
}
