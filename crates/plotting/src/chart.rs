//! A chart as a plain value: panels with axes, a legend, and layers of data. Nothing is drawn here.
use serde::Serialize;

use crate::scale::Step;

/// Width of one text column in inches.
pub const COLUMN: f64 = 3.3;

/// Width of the whole text in inches, that of the NeurIPS style and less than that of ACL.
pub const TEXT: f64 = 5.5;

/// A colour: red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Color(pub u8, pub u8, pub u8);

/// A figure with its caption.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// The figure of the paper that this is, such as `Figure 1`, or what it shows if the paper has none.
    pub name: &'static str,
    /// Short name for references.
    pub label: String,
    /// What it shows: one sentence without a full stop.
    pub title: String,
    /// Further sentences of the caption, without full stops.
    pub notes: Vec<String>,
    /// Width in inches: [`COLUMN`] or [`TEXT`].
    pub width: f64,
    /// Panels that stand side by side.
    pub columns: usize,
    /// What marks and lines mean, above the panels.
    pub legend: Vec<Entry>,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// What the colours of cells mean, below the panels.
    pub color_bar: Option<ColorBar>,
}

/// One line of a legend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// What it says.
    pub text: String,
    /// A sample of a line.
    pub line: Option<Style>,
    /// A sample of a mark.
    pub mark: Option<Mark>,
    /// A sample of an area.
    pub fill: Option<Color>,
}

impl Entry {
    /// A text without a sample.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), line: None, mark: None, fill: None }
    }

    /// With a sample of a line.
    pub fn line(self, style: Style) -> Self {
        Self { line: Some(style), ..self }
    }

    /// With a sample of a mark.
    pub fn mark(self, mark: Mark) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// With a sample of an area.
    pub fn fill(self, color: Color) -> Self {
        Self { fill: Some(color), ..self }
    }
}

/// One plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Panel {
    /// Its name, above it; may be empty.
    pub name: String,
    /// The axis from the left to the right.
    pub x: Axis,
    /// The axis from the bottom to the top.
    pub y: Axis,
    /// Height in points.
    pub height: f64,
    /// Its share of the width among those beside it.
    pub share: f64,
    /// What is drawn, from the back to the front.
    pub layers: Vec<Layer>,
}

/// What an axis covers and says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// What it shows, with its unit; may be empty.
    pub label: String,
    /// Value at the left or lower end.
    pub low: f64,
    /// Value at the other end; below `low` on an axis that counts downwards.
    pub high: f64,
    /// Its ticks.
    pub ticks: Ticks,
    /// Where it leaves something out.
    pub gap: Option<f64>,
}

/// The ticks of an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Ticks {
    /// Round numbers at multiples of a step; without numbers where a neighbour has them.
    Round {
        /// Their distance.
        step: Step,
        /// Whether they are numbered.
        is_numbered: bool,
    },
    /// Names at places, in lines from the axis outwards, without strokes; a name without room is left out.
    Names(Vec<(f64, Vec<String>)>),
}

impl Axis {
    /// An axis that holds everything from `low` to `high`, with some air at both ends.
    pub fn around(label: impl Into<String>, low: f64, high: f64) -> Self {
        let air = (high - low).max(1e-9) * 0.04;
        let ticks = Ticks::Round { step: Step::covering(high - low, 6), is_numbered: true };
        Self { label: label.into(), low: low - air, high: high + air, ticks, gap: None }
    }

    /// An axis for percentages of heads.
    pub fn percent(label: impl Into<String>) -> Self {
        Self::around(label, 0.0, 100.0)
    }

    /// An axis with one place for each name.
    pub fn named(label: impl Into<String>, names: Vec<Vec<String>>) -> Self {
        let high = names.len().max(1) as f64;
        let names = names.into_iter().enumerate().map(|(place, name)| (place as f64 + 0.5, name));
        Self { label: label.into(), low: 0.0, high, ticks: Ticks::Names(names.collect()), gap: None }
    }

    /// The same axis counted from the other end.
    pub fn downwards(self) -> Self {
        Self { low: self.high, high: self.low, ..self }
    }

    /// The same axis without numbers and label, for a panel beside one that has them.
    pub fn silent(self) -> Self {
        let ticks = match self.ticks {
            Ticks::Round { step, .. } => Ticks::Round { step, is_numbered: false },
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
    /// A line through points.
    Line(Vec<(f64, f64)>, Style),
    /// The area between two lines: x, lower and upper end.
    Band(Vec<(f64, f64, f64)>, Color),
    /// Marks at points.
    Points(Vec<(f64, f64)>, Mark),
    /// A line across the whole panel.
    Rule(Rule),
    /// Squares of colour.
    Cells(Vec<Cell>),
    /// Names at the right end, at these heights; they keep clear of each other.
    Ends(Vec<(f64, String, Color)>),
    /// Names over spans of the x axis, above the panel.
    Brackets(Vec<(f64, f64, String)>),
}

/// A line across a panel with its name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    /// Where it stands.
    pub at: At,
    /// What it looks like.
    pub style: Style,
    /// Its name: of an upright rule above the panel, of a level one at the end with more room; may be empty.
    pub name: String,
}

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum At {
    /// Upright, at this place of the x axis.
    X(f64),
    /// Level, at this place of the y axis.
    Y(f64),
    /// Rising by 1 for 1, through this point.
    Diagonal(f64, f64),
}

impl Layer {
    /// A rule with its name.
    pub fn rule(at: At, style: Style, name: impl Into<String>) -> Self {
        Self::Rule(Rule { at, style, name: name.into() })
    }
}

/// One cell of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Its column and row, counted from 0.
    pub place: (usize, usize),
    /// Its colour: -1 to 1; absent where nothing was measured.
    pub value: Option<f64>,
    /// What is written on it; may be empty.
    pub text: String,
    /// Whether it has a dot.
    pub is_marked: bool,
}

/// What colours of cells mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColorBar {
    /// What they show, with its unit.
    pub label: String,
    /// The numbers of the colours -1, 0 and 1.
    pub ends: [String; 3],
}

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Style {
    /// Its colour.
    pub color: Color,
    /// Its width, in points.
    pub width: f64,
    /// Whether it is dashed.
    pub is_dashed: bool,
}

impl Style {
    /// A solid line.
    pub const fn line(color: Color, width: f64) -> Self {
        Self { color, width, is_dashed: false }
    }

    /// A dashed line.
    pub const fn dashed(color: Color, width: f64) -> Self {
        Self { color, width, is_dashed: true }
    }
}

/// A shape around a point; all shapes of one radius cover about the same area, but for the cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Shape {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ▼
    Wedge,
    /// ◆
    Diamond,
    /// ★
    Star,
    /// ×, which has no area to fill
    Cross,
    /// |
    Tick,
}

/// How a point looks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mark {
    /// Its shape.
    pub shape: Shape,
    /// Radius of a circle of about the same area, in points.
    pub radius: f64,
    /// Colour of its outline.
    pub color: Color,
    /// Opacity of its area, 0 to 1; 0 leaves the outline alone, on what is behind it.
    pub opacity: f64,
    /// Whether its area is white.
    pub is_hollow: bool,
}

impl Mark {
    /// A mark of one colour.
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
