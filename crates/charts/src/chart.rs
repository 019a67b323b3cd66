//! A chart as a plain value: panels with axes, a legend, and layers of data. Nothing is drawn here. Lengths are in points.
use std::fmt::Display;

use serde::Serialize;

use crate::palette::INK;
use crate::scale::Step;
use crate::sentences::Sentences;

/// Width of one text column in inches.
pub const COLUMN: f64 = 3.3;

/// Width of the whole text in inches: exactly the NeurIPS style's, and less than ACL's.
pub const TEXT: f64 = 5.5;

/// Colour values that are labelled below a colour bar.
pub const BAR_COLORS: [f64; 5] = [-1.0, -0.5, 0.0, 0.5, 1.0];

/// Radius of the marks in cells.
pub(crate) const SIGN_RADIUS: f64 = 1.3;

/// A colour: red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Color(pub u8, pub u8, pub u8);

/// A figure with its caption.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Name, such as `Figure 1`.
    pub name: &'static str,
    /// Short name for references.
    pub label: String,
    /// Title: one sentence without a full stop.
    pub title: String,
    /// Further sentences of the caption, without full stops.
    pub notes: Vec<String>,
    /// In inches: [`COLUMN`] or [`TEXT`].
    pub width: f64,
    /// Panels per row.
    pub columns: usize,
    /// Meaning of marks and lines, shown above the panels.
    pub legend: Vec<Entry>,
    /// Row by row.
    pub panels: Vec<Panel>,
    /// Shown below the panels.
    pub color_bar: Option<ColorBar>,
}

/// A colour bar from -1 to 1 below the panels: a label, and numbers below its ends, its middle and halfway between.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct ColorBar {
    pub label: String,
    pub numbers: [String; 5],
}

impl Chart {
    /// Returns a chart without panels, one text column wide.
    pub fn new(name: &'static str, label: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            name,
            label: label.into(),
            title: title.into(),
            notes: Vec::new(),
            width: COLUMN,
            columns: 1,
            legend: Vec::new(),
            panels: Vec::new(),
            color_bar: None,
        }
    }

    /// Adds sentences to the caption.
    pub fn note(mut self, sentences: impl Sentences) -> Self {
        self.notes.extend(sentences.all());
        self
    }

    /// Adds entries to the legend.
    pub fn entries(mut self, entries: impl IntoIterator<Item = Entry>) -> Self {
        self.legend.extend(entries);
        self
    }

    /// Sets the panels, `columns` of them per row. Several columns take the width of the text.
    pub fn panels(self, columns: usize, panels: Vec<Panel>) -> Self {
        Self { columns, panels, width: if columns > 1 { TEXT } else { self.width }, ..self }
    }

    /// Adds one panel per element of `each`, side by side. Several panels are named, and only the first shows the shared y axis.
    pub fn beside<T: Copy>(
        self,
        each: &[T],
        name: impl Fn(T) -> &'static str,
        panel: impl Fn(&T) -> Panel,
    ) -> Self {
        let name = |one| if each.len() > 1 { name(one) } else { "" };
        let panels = each.iter().enumerate();
        let panels = panels.map(|(place, one)| panel(one).named(name(*one)).in_row(place));
        let panels = panels.collect();
        self.panels(each.len(), panels)
    }

    /// Sets the width to that of the text.
    pub fn wide(self) -> Self {
        Self { width: TEXT, ..self }
    }

    /// Adds a colour bar from -1 to 1 with these numbers below [`BAR_COLORS`].
    pub fn bar(self, label: impl Into<String>, numbers: [String; 5]) -> Self {
        Self { color_bar: Some(ColorBar { label: label.into(), numbers }), ..self }
    }
}

/// One entry of a legend: a text with a sample line, a mark (drawn on the line if both are given) or an area.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Entry {
    pub text: String,
    pub line: Option<Style>,
    pub mark: Option<Mark>,
    pub fill: Option<Color>,
}

impl Entry {
    /// Returns an entry without a sample.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns an entry with a sample line.
    pub fn line(text: impl Into<String>, style: Style) -> Self {
        Self { line: Some(style), ..Self::text(text) }
    }

    /// Returns an entry with a mark.
    pub fn mark(text: impl Into<String>, mark: Mark) -> Self {
        Self { mark: Some(mark), ..Self::text(text) }
    }

    /// Returns an entry with the mark of a cell.
    pub fn sign(text: impl Into<String>, sign: Sign) -> Self {
        let mark = Mark::new(Shape::Circle, SIGN_RADIUS, INK);
        Self::mark(text, if sign == Sign::Ring { mark.hollow() } else { mark })
    }

    /// Returns an entry with an area of one colour.
    pub fn fill(text: impl Into<String>, color: Color) -> Self {
        Self { fill: Some(color), ..Self::text(text) }
    }
}

/// One plot, with its name above it and its layers from back to front.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Panel {
    pub name: String,
    pub x: Axis,
    pub y: Axis,
    /// Without its axes.
    pub height: f64,
    /// Relative width among the panels of a row.
    pub share: f64,
    pub layers: Vec<Layer>,
}

impl Panel {
    /// Returns an unnamed panel, as wide as its neighbours.
    pub fn new([x, y]: [Axis; 2], height: f64, layers: Vec<Layer>) -> Self {
        Self { name: String::new(), x, y, height, share: 1.0, layers }
    }

    /// Returns a matrix of cells from the label and names of its columns and rows; the first row is on top.
    pub fn matrix<X: Display, Y: Display>(
        (across, columns): (&str, impl IntoIterator<Item = X>),
        (down, rows): (&str, impl IntoIterator<Item = Y>),
        row_height: f64,
        cell: impl Fn(usize, usize) -> Cell,
    ) -> Self {
        let (columns, rows): (Vec<X>, Vec<Y>) = (columns.into_iter().collect(), rows.into_iter().collect());
        let places = (0..rows.len()).flat_map(|row| (0..columns.len()).map(move |column| (row, column)));
        let cells = places.map(|(row, column)| Cell { place: (column, row), ..cell(row, column) });
        let (height, cells) = (row_height * rows.len() as f64, Layer::Cells(cells.collect()));
        Self::new([Axis::named(across, columns), Axis::named(down, rows).downwards()], height, vec![cells])
    }

    /// Returns a panel with one text line of height per name, the first on top: row `n` is at `n + 0.5` of the y axis.
    pub fn rows(x: Axis, names: Vec<String>, layers: Vec<Layer>) -> Self {
        let height = 13.0 * names.len() as f64;
        Self::new([x, Axis::named("", names).downwards()], height, layers)
    }

    /// Sets the name above the panel.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Hides the y axis unless this is the first panel of a row, which shows it for all.
    pub fn in_row(self, place: usize) -> Self {
        if place == 0 { self } else { Self { y: self.y.silent(), ..self } }
    }
}

/// An axis with its label and limits: `low` is the left or lower end. If `low` exceeds `high`, the axis is reversed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Axis {
    pub label: String,
    pub low: f64,
    pub high: f64,
    pub ticks: Ticks,
    /// Place of an axis break.
    pub gap: Option<f64>,
}

/// The ticks of an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Ticks {
    /// At multiples of a step; `true` shows the numbers.
    Round(Step, bool),
    /// Names at places, line by line outwards from the axis; names that do not fit are left out.
    Names(Vec<(f64, Vec<String>)>),
}

impl Axis {
    /// Returns an axis from `low` to `high`, with a margin at both ends.
    pub fn around(label: impl Into<String>, low: f64, high: f64) -> Self {
        let air = (high - low).max(1e-9) * 0.04;
        let ticks = Ticks::Round(Step::covering(high - low, 6), true);
        Self { label: label.into(), low: low - air, high: high + air, ticks, gap: None }
    }

    /// Returns an axis that spans at least `least`, so that rounding errors do not look like data.
    pub fn of_at_least(label: impl Into<String>, (low, high): (f64, f64), least: f64) -> Self {
        let missing = (least - (high - low)).max(0.0) / 2.0;
        Self::around(label, low - missing, high + missing)
    }

    /// Returns an axis from 0% to 100%.
    pub fn percent(label: impl Into<String>) -> Self {
        Self::around(label, 0.0, 100.0)
    }

    /// Returns an axis with one place per name; a name may have several lines, and an empty one is not shown.
    pub fn named<T: Display>(label: impl Into<String>, names: impl IntoIterator<Item = T>) -> Self {
        let lines = |name: T| name.to_string().lines().map(str::to_owned).collect();
        let names: Vec<_> =
            (0..).zip(names).map(|(place, name)| (f64::from(place) + 0.5, lines(name))).collect();
        let high = names.len().max(1) as f64;
        Self { label: label.into(), low: 0.0, high, ticks: Ticks::Names(names), gap: None }
    }

    /// Reverses the axis.
    pub fn downwards(self) -> Self {
        Self { low: self.high, high: self.low, ..self }
    }

    /// Removes the numbers and the label.
    pub fn silent(self) -> Self {
        let ticks = match self.ticks {
            Ticks::Round(step, _) => Ticks::Round(step, false),
            Ticks::Names(_) => Ticks::Names(Vec::new()),
        };
        Self { label: String::new(), ticks, ..self }
    }
}

/// A layer of data in a panel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Layer {
    /// Vertical bars: left, right, lower and upper end.
    Bars(Vec<[f64; 4]>, Color),
    /// Straight segments from each place to the next.
    Line(Vec<(f64, f64)>, Style),
    /// The area between two lines: x, lower and upper end.
    Band(Vec<(f64, f64, f64)>, Color),
    /// Marks at places.
    Points(Vec<(f64, f64)>, Mark),
    /// A line across the whole panel.
    Rule(At, Style),
    /// Coloured squares.
    Cells(Vec<Cell>),
    /// A text next to a place, on the side with more room.
    Label((f64, f64), String),
    /// Names at these heights on the right edge, moved apart if they would overlap.
    Ends(Vec<(f64, String, Color)>),
    /// Names above the panel at these places of the x axis, moved apart if they would overlap.
    Tops(Vec<(f64, String, Color)>),
    /// Names above the panel over spans of the x axis.
    Brackets(Vec<(f64, f64, String)>),
}

/// Place of a line across the panel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum At {
    /// Vertical, at a place of the x axis.
    X(f64),
    /// Horizontal, at a place of the y axis.
    Y(f64),
    /// With slope 1 through a point.
    Diagonal(f64, f64),
}

/// One cell of a matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Column and row, counted from 0.
    pub place: (usize, usize),
    /// Colour from -1 to 1; cells below 0 without text are striped. `None` if nothing was measured.
    pub value: Option<f64>,
    /// Text in the middle; may be empty.
    pub text: String,
    /// Mark in the middle.
    pub sign: Option<Sign>,
}

/// Mark in a cell, legible in black and white.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "self-explanatory")]
pub enum Sign {
    Dot,
    Ring,
}

/// Style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in SVG")]
pub struct Style {
    pub color: Color,
    /// In points.
    pub width: f64,
    /// Lengths of a dash and of the gap after it; both 0 for a solid line.
    pub dash: [f64; 2],
}

impl Style {
    /// Returns a solid line.
    pub const fn line(color: Color, width: f64) -> Self {
        Self { color, width, dash: [0.0; 2] }
    }

    /// Returns a dashed line.
    pub const fn dashed(color: Color, width: f64) -> Self {
        Self { color, width, dash: [3.0, 2.0] }
    }

    /// Returns a dotted line.
    pub const fn dotted(color: Color, width: f64) -> Self {
        Self { color, width, dash: [0.8, 1.6] }
    }
}

/// A shape around a point. Shapes of equal radius cover about the same area, except the cross and the tick, which have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(
    missing_docs,
    reason = "self-explanatory, except that a wedge is a triangle on its tip and a tick an upright line"
)]
pub enum Shape {
    Circle,
    Square,
    Triangle,
    Wedge,
    Diamond,
    Star,
    Cross,
    Tick,
}

/// Style of a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in SVG")]
pub struct Mark {
    pub shape: Shape,
    /// In points.
    pub radius: f64,
    pub color: Color,
    /// Opacity of its area, 0 to 1.
    pub opacity: f64,
    /// `true` if its area is white.
    pub is_hollow: bool,
}

impl Mark {
    /// Returns a solid mark.
    pub const fn new(shape: Shape, radius: f64, color: Color) -> Self {
        Self { shape, radius, color, opacity: 1.0, is_hollow: false }
    }

    /// Makes the area white.
    pub const fn hollow(self) -> Self {
        Self { is_hollow: true, ..self }
    }

    /// Makes the area translucent, so that what it overlaps stays visible.
    pub const fn faint(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }
}
