//! Shared parts of artefacts: the request of a command, cells, marks, curves, sentences.
pub(crate) mod curve;
pub(crate) mod summary;

use std::collections::BTreeMap;

use crate::findings::{
    Ablations, Criterion, Draws, Error, Folders, Judge, LeftOut, Metric, Result, ResultFile, Results,
    Verdicts,
};
use charts::chart::{At, Axis, Chart, Layer, Mark, Shape, Style};
use charts::palette::{BLUE, GREEN, GREY, VERMILLION};
use charts::table::{self, Cell, Table};
use charts::write::Sheet;
use heads::Selection;
use records::{Attention, HeadId, Row, TestedRow, Verdict};
use stats::family::Comparison;
use words::{count, range, typeset};

/// Request of a command.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Criterion of significance.
    pub criterion: Criterion,
    /// Folders of results and of setup files.
    pub folders: &'a Folders,
    /// Attention types shown in tables and figures of single heads.
    pub attention: Selection,
    /// `true` if Figure 1 is drawn along with Table 1.
    pub with_figure: bool,
    /// Second split of a comparison; `None` for any.
    pub against: Option<&'a str>,
    /// `true` if everything is drawn, so that an artefact that does not apply is left out instead of causing an error.
    pub is_all: bool,
}

impl<'a> Request<'a> {
    /// Returns the request for all artefacts of a setup.
    pub fn everything(criterion: Criterion, folders: &'a Folders) -> Self {
        let attention = Selection::Paper;
        Self { criterion, folders, attention, with_figure: false, against: None, is_all: true }
    }

    /// Returns data that a file may lack or another experiment provides; `None` if everything is drawn and the data was not measured.
    pub(crate) fn if_there<T>(&self, read: Result<T>, left_out: &mut LeftOut) -> Result<Option<T>> {
        if self.is_all { Ok(left_out.keep_if_there(read)) } else { read.map(Some) }
    }

    /// Returns the one sheet of a file. Without a sheet, returns nothing if everything is drawn, otherwise the fault.
    pub(crate) fn sheet_or(
        &self,
        sheet: Option<Result<Sheet>>,
        fault: impl FnOnce() -> Error,
    ) -> Result<Vec<Sheet>> {
        match sheet {
            None if !self.is_all => Err(fault()),
            sheet => sheet.into_iter().collect(),
        }
    }
}

pub(crate) const SIGNS: &str = "!: needed, ?: undecided, no sign: dispensable";

/// Puts the sign of a verdict before the text of a cell.
pub(crate) fn judged(cell: Cell, verdict: Option<Verdict>) -> Cell {
    let sign = match verdict {
        Some(Verdict::Needed) => "!",
        Some(Verdict::Undecided) => "?",
        _ => "",
    };
    Cell { text: format!("{sign}{}", cell.text), ..cell }
}

/// Returns cells with the numbers of needed, dispensable and undecided heads; empty without verdicts.
pub fn three(verdicts: Option<Verdicts>) -> [Cell; 3] {
    let three = verdicts.map(|Verdicts { needed, dispensable, undecided }| [needed, dispensable, undecided]);
    three.map_or_else(Default::default, |three| three.map(Cell::from))
}

/// Adds columns and rows, with the column names taken from the cells.
pub(crate) fn by_name(
    table: Table,
    headings: [&'static str; 2],
    rows: impl Iterator<Item = (Cell, Vec<(&'static str, Cell)>)>,
) -> Table {
    let (mut names, mut all) = (Vec::new(), Vec::new());
    for (label, cells) in rows {
        let (of_row, cells): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
        names = of_row;
        all.push(table::Row::new(label, cells));
    }
    table.columns(headings, names).rows(all)
}

/// Returns a sheet of a file, with a remark on what its signature does not vouch for.
pub(crate) fn sheet(
    file: &ResultFile,
    name: &str,
    chart: impl Into<Option<Chart>>,
    tables: impl IntoIterator<Item = Table>,
) -> Sheet {
    Sheet::new(&file.stem(name), chart, tables).remark(file.remark())
}

/// Draws a figure from the rows of one file.
pub(crate) fn figure<R: Row, C: Into<Option<Chart>>>(
    file: ResultFile,
    stem: &str,
    draw: impl Fn(&Results<R>) -> C,
) -> Result<Vec<Sheet>> {
    let found = Results::read(file)?;
    Ok(vec![sheet(&found.file, stem, draw(&found), [])])
}

/// Style of the line at a loss equal to the margin.
pub(crate) const MARGIN: Style = Style::dashed(GREY, 0.7);

/// Returns lines at no change and at the margin, on an axis of changes.
pub(crate) fn limits(sweep: &Ablations, judge: Judge, at: fn(f64) -> At) -> [Layer; 2] {
    [Layer::Rule(at(0.0), Style::line(GREY, 0.5)), Layer::Rule(at(margin(sweep, judge)), MARGIN)]
}

/// Returns the change of the score at a loss equal to the margin.
pub(crate) fn margin(sweep: &Ablations, judge: Judge) -> f64 {
    -sweep.metric().direction().gain(judge.margin(sweep.base()))
}

/// Returns an axis for changes of the score.
pub(crate) fn changes(metric: Metric, (low, high): (f64, f64)) -> Axis {
    Axis::around(format!("change in {}", metric.label()), low, high)
}

/// Returns the mark for an attention type.
pub(crate) const fn mark(attention: Attention, radius: f64) -> Mark {
    match attention {
        Attention::EncEnc | Attention::SelfAttention => Mark::new(Shape::Circle, radius, BLUE),
        Attention::EncDec => Mark::new(Shape::Square, radius, VERMILLION),
        Attention::DecDec => Mark::new(Shape::Triangle, radius, GREEN),
    }
}

pub(crate) const BANDS: &str = "bands: 95% intervals of the change from the full model, drawn around the score, for each step separately";

/// Formats a score with the 95% interval of its change, `35.91 [-0.35, +0.08]`; marked if significantly worse.
pub(crate) fn scored(row: &impl TestedRow, criterion: Criterion) -> Cell {
    let (metric, tests) = (Metric::new(row.metric()), row.tests());
    let ends = metric.brackets(row.delta_interval());
    Cell::number(metric.amount(tests.variant) + &ends, tests.variant).marked(criterion.is_loss(row))
}

/// Formats the difference between two models with its 95% interval: `-0.75 [-1.50, -0.02]`.
pub(crate) fn difference(found: &Comparison, metric: &Metric) -> Cell {
    let ends = metric.brackets(found.interval.map(|ends| (ends.low, ends.high)));
    Cell::number(metric.change(found.delta) + &ends, found.delta)
}

/// Returns the value of each head with its rank, 1 for the highest; equal values share a rank.
pub fn ranked(numbers: impl IntoIterator<Item = (HeadId, f64)>) -> BTreeMap<HeadId, Cell> {
    let numbers: Vec<(HeadId, f64)> = numbers.into_iter().collect();
    let rank = |value: f64| 1 + numbers.iter().filter(|(_, other)| *other > value).count();
    let text = |value: f64| format!("{} ({})", typeset(value, 3), rank(value));
    numbers.iter().map(|&(head, value)| (head, Cell::printed(value, text))).collect()
}

/// Formats the mean of random draws with their range, `2.565 (2.564 to 2.567, 5 draws)`; marked if `score` is outside the range.
pub(crate) fn drawn(draws: &Draws, number: impl Fn(f64) -> String, score: Option<f64>) -> Cell {
    let range = if draws.count > 1 { range(draws.range, &number) + ", " } else { String::new() };
    let text = format!("{} ({range}{})", number(draws.mean), count(draws.count, "draw"));
    Cell::number(text, draws.mean).marked(score.is_some_and(|score| draws.exclude(score)))
}

/// Explains random draws, given the smallest number of draws that a choice is compared with; `None` without draws.
pub(crate) fn of_draws(fewest: usize) -> Option<String> {
    let (all, enough) = (count(fewest, "draw"), Draws::ENOUGH);
    let means = format!("random: the mean of {all}, with the range");
    let few =
        format!("random: {all}, too few to call a choice better or worse than random, which needs {enough}");
    (fewest > 0).then_some(if fewest < enough { few } else { means })
}

/// Explains the mark on a score of a fine-tuned model.
pub(crate) fn worse_than_control(metric: &Metric, criterion: Criterion) -> String {
    let (side, criterion) = (metric.worse_side(), criterion.in_words());
    format!(
        "significantly {side} all heads with the same training ({criterion}); holds for other test segments, not for other runs"
    )
}

pub(crate) fn hollow(metric: &Metric, than: &str, criterion: Criterion) -> String {
    format!("hollow: {}", significantly_worse(metric, than, criterion))
}

/// Explains a mark on a score that is compared with `than`.
fn significantly_worse(metric: &Metric, than: &str, criterion: Criterion) -> String {
    format!("significantly {} {than} ({})", metric.worse_side(), criterion.in_words())
}
