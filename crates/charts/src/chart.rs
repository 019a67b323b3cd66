//! A chart as a plain value: panels with axes, a legend, and layers of data. Nothing is drawn here. Lengths are in points.
use std::fmt::Display;

use serde::Serialize;

use crate::palette::INK;
use crate::scale::Step;
use crate::sentences::Sentences;

/// Width of one text column in inches.
pub const COLUMN: f64 = 3.3;

/// Width of the whole text in inches, that of the NeurIPS style and less than that of ACL.
pub const TEXT: f64 = 5.5;

/// The colours of cells whose numbers stand below a bar of colours.
pub const BAR_COLORS: [f64; 5] = [-1.0, -0.5, 0.0, 0.5, 1.0];

/// Radius of the signs of cells.
pub(crate) const SIGN_RADIUS: f64 = 1.3;

/// A colour: red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Color(pub u8, pub u8, pub u8);

/// A figure with its caption.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Its name, such as `Figure 1`.
    pub name: &'static str,
    /// Short name for references.
    pub label: String,
    /// Title: one sentence without a full stop.
    pub title: String,
    /// Further sentences of the caption, without full stops.
    pub notes: Vec<String>,
    /// In inches: [`COLUMN`] or [`TEXT`].
    pub width: f64,
    /// Panels that stand side by side.
    pub columns: usize,
    /// Meaning of marks and lines, above the panels.
    pub legend: Vec<Entry>,
    /// Row by row.
    pub panels: Vec<Panel>,
    /// Below the panels.
    pub color_bar: Option<ColorBar>,
}

/// A bar of colours below the panels: a label, and numbers below its ends, its middle and between.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct ColorBar {
    pub label: String,
    /// `true` if colours go from -1 to 1, and not from 0.
    pub is_signed: bool,
    pub numbers: [String; 5],
}

impl Chart {
    /// A caption, and nothing drawn yet; one text column wide.
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

    /// With more sentences.
    pub fn note(mut self, sentences: impl Sentences) -> Self {
        self.notes.extend(sentences.all());
        self
    }

    /// With more entries in the legend.
    pub fn entries(mut self, entries: impl IntoIterator<Item = Entry>) -> Self {
        self.legend.extend(entries);
        self
    }

    /// With these panels, this many side by side; several of them take the width of the text.
    pub fn panels(self, columns: usize, panels: Vec<Panel>) -> Self {
        Self { columns, panels, width: if columns > 1 { TEXT } else { self.width }, ..self }
    }

    /// With a panel for each of these, side by side, which is named if there are several; only the first shows the y axis, which
    /// holds for all.
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

    /// As wide as the text.
    pub fn wide(self) -> Self {
        Self { width: TEXT, ..self }
    }

    /// With the numbers of [`BAR_COLORS`] below these.
    pub fn bar(self, label: impl Into<String>, numbers: [String; 5]) -> Self {
        Self { color_bar: Some(ColorBar { label: label.into(), is_signed: true, numbers }), ..self }
    }

    /// With the colours of shares from 0 to 1.
    pub fn bar_of_shares(self, label: impl Into<String>) -> Self {
        let numbers = ["0", "0.25", "0.5", "0.75", "1"].map(ToOwned::to_owned);
        Self { color_bar: Some(ColorBar { label: label.into(), is_signed: false, numbers }), ..self }
    }
}

/// One entry of a legend: a text with a sample of a line, a mark (on the line if there is one) or an area.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Entry {
    pub text: String,
    pub line: Option<Style>,
    pub mark: Option<Mark>,
    pub fill: Option<Color>,
}

impl Entry {
    /// Of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// With a line that looks so.
    pub fn line(text: impl Into<String>, style: Style) -> Self {
        Self { line: Some(style), ..Self::text(text) }
    }

    /// With such a mark.
    pub fn mark(text: impl Into<String>, mark: Mark) -> Self {
        Self { mark: Some(mark), ..Self::text(text) }
    }

    /// With the sign of a cell.
    pub fn sign(text: impl Into<String>, sign: Sign) -> Self {
        let mark = Mark::new(Shape::Circle, SIGN_RADIUS, INK);
        Self::mark(text, if sign == Sign::Ring { mark.hollow() } else { mark })
    }

    /// With an area of a colour.
    pub fn fill(text: impl Into<String>, color: Color) -> Self {
        Self { fill: Some(color), ..Self::text(text) }
    }
}

/// One plot, with its name above it and its layers from the back to the front.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Panel {
    pub name: String,
    pub x: Axis,
    pub y: Axis,
    /// Without the room for its axes.
    pub height: f64,
    /// Of the width, in the unit of the panels beside it.
    pub share: f64,
    pub layers: Vec<Layer>,
}

impl Panel {
    /// One without a name that is as wide as its neighbours.
    pub fn new([x, y]: [Axis; 2], height: f64, layers: Vec<Layer>) -> Self {
        Self { name: String::new(), x, y, height, share: 1.0, layers }
    }

    /// A matrix of cells: what its columns and rows are and their names, and the height of a row. The first row is on top.
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

    /// A row of data for each name, as high as a line of text, the first one on top: row `n` is at `n + 0.5` of the y axis.
    pub fn rows(x: Axis, names: Vec<String>, layers: Vec<Layer>) -> Self {
        let height = 13.0 * names.len() as f64;
        Self::new([x, Axis::named("", names).downwards()], height, layers)
    }

    /// The same with a name above it.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// One of a row of panels: only the first has its y axis, which holds for all.
    pub fn in_row(self, place: usize) -> Self {
        if place == 0 { self } else { Self { y: self.y.silent(), ..self } }
    }
}

/// An axis with its label and its left or lower and its right or upper end; one whose low end is above its high end counts downwards.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Axis {
    pub label: String,
    pub low: f64,
    pub high: f64,
    pub ticks: Ticks,
    /// Place where it leaves something out.
    pub gap: Option<f64>,
}

/// The ticks of an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Ticks {
    /// At multiples of a step, with numbers or without.
    Round(Step, bool),
    /// Names at places, in lines from the axis outwards; those without room are left out.
    Names(Vec<(f64, Vec<String>)>),
}

impl Axis {
    /// An axis that holds everything from `low` to `high`, with some air at both ends.
    pub fn around(label: impl Into<String>, low: f64, high: f64) -> Self {
        let air = (high - low).max(1e-9) * 0.04;
        let ticks = Ticks::Round(Step::covering(high - low, 6), true);
        Self { label: label.into(), low: low - air, high: high + air, ticks, gap: None }
    }

    /// The same, at least `least` long, so that rounding errors do not look like data.
    pub fn of_at_least(label: impl Into<String>, (low, high): (f64, f64), least: f64) -> Self {
        let missing = (least - (high - low)).max(0.0) / 2.0;
        Self::around(label, low - missing, high + missing)
    }

    /// An axis of shares from 0 to 100 %.
    pub fn percent(label: impl Into<String>) -> Self {
        Self::around(label, 0.0, 100.0)
    }

    /// An axis with one place for each name, whose lines are those of the text; an empty one has no line.
    pub fn named<T: Display>(label: impl Into<String>, names: impl IntoIterator<Item = T>) -> Self {
        let lines = |name: T| name.to_string().lines().map(str::to_owned).collect();
        let names: Vec<_> =
            (0..).zip(names).map(|(place, name)| (f64::from(place) + 0.5, lines(name))).collect();
        let high = names.len().max(1) as f64;
        Self { label: label.into(), low: 0.0, high, ticks: Ticks::Names(names), gap: None }
    }

    /// The same axis counted from the other end.
    pub fn downwards(self) -> Self {
        Self { low: self.high, high: self.low, ..self }
    }

    /// The same axis without numbers and label.
    pub fn silent(self) -> Self {
        let ticks = match self.ticks {
            Ticks::Round(step, _) => Ticks::Round(step, false),
            Ticks::Names(_) => Ticks::Names(Vec::new()),
        };
        Self { label: String::new(), ticks, ..self }
    }
}

/// Something that is drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Layer {
    /// Upright bars: left, right, lower and upper end.
    Bars(Vec<[f64; 4]>, Color),
    /// From each place to the next.
    Line(Vec<(f64, f64)>, Style),
    /// The area between two lines: x, lower and upper end.
    Band(Vec<(f64, f64, f64)>, Color),
    /// A mark at each place.
    Points(Vec<(f64, f64)>, Mark),
    /// A line across the whole panel.
    Rule(At, Style),
    /// Squares of colour.
    Cells(Vec<Cell>),
    /// A text next to a place, on the side that has more room.
    Label((f64, f64), String),
    /// Names at the right end, at these heights; they keep clear of each other.
    Ends(Vec<(f64, String, Color)>),
    /// Names above the panel, over these places of the x axis; they keep clear of each other.
    Tops(Vec<(f64, String, Color)>),
    /// Names over spans of the x axis, above the panel.
    Brackets(Vec<(f64, f64, String)>),
}

/// Place of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum At {
    /// At a place of the x axis.
    X(f64),
    /// At a place of the y axis.
    Y(f64),
    /// Rising by 1 for 1 through a point.
    Diagonal(f64, f64),
}

/// One cell of a matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Its column and row, counted from 0.
    pub place: (usize, usize),
    /// Its colour: -1 to 1, striped below 0 unless there is text; absent where nothing was measured.
    pub value: Option<f64>,
    /// Text in its middle; may be empty.
    pub text: String,
    /// Its mark.
    pub sign: Option<Sign>,
}

/// Mark of a cell, legible in black and white.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Sign {
    Dot,
    Ring,
}

/// Look of a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in SVG")]
pub struct Style {
    pub color: Color,
    /// In points.
    pub width: f64,
    /// Lengths of a dash and of what follows it, both 0 for a line without gaps.
    pub dash: [f64; 2],
}

impl Style {
    /// A line without gaps.
    pub const fn line(color: Color, width: f64) -> Self {
        Self { color, width, dash: [0.0; 2] }
    }

    /// A line of dashes.
    pub const fn dashed(color: Color, width: f64) -> Self {
        Self { color, width, dash: [3.0, 2.0] }
    }

    /// A line of dots.
    pub const fn dotted(color: Color, width: f64) -> Self {
        Self { color, width, dash: [0.8, 1.6] }
    }
}

/// A shape around a point; all shapes of one radius cover about the same area, but for the cross and the tick, which have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(
    missing_docs,
    reason = "they are what they are called; a wedge is a triangle on its tip, a tick an upright line"
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

/// Look of a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in SVG")]
pub struct Mark {
    pub shape: Shape,
    /// In points.
    pub radius: f64,
    pub color: Color,
    /// Of its area, 0 to 1.
    pub opacity: f64,
    /// `true` if its area is white.
    pub is_hollow: bool,
}

impl Mark {
    /// A solid one.
    pub const fn new(shape: Shape, radius: f64, color: Color) -> Self {
        Self { shape, radius, color, opacity: 1.0, is_hollow: false }
    }

    /// The same with a white area.
    pub const fn hollow(self) -> Self {
        Self { is_hollow: true, ..self }
    }

    /// The same that shows what it overlaps.
    pub const fn faint(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }
}
