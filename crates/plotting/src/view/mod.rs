//! What artefacts share: the request of a command, cells, marks, curves, sentences.
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
pub struct Asked<'a> {
    /// Criterion of significance.
    pub criterion: Criterion,
    /// Folders of results and of the files of subjects.
    pub folders: &'a Folders,
    /// Attention types that tables and figures of single heads show.
    pub attention: Selection,
    /// `true` if Table 1 brings Figure 1 along.
    pub with_figure: bool,
    /// The second split of a comparison; any if absent.
    pub against: Option<&'a str>,
    /// `true` if everything is drawn, so that an artefact that does not apply is left out and not an error.
    pub is_all: bool,
}

impl<'a> Asked<'a> {
    /// Everything that there is of a subject.
    pub fn everything(criterion: Criterion, folders: &'a Folders) -> Self {
        let attention = Selection::Paper;
        Self { criterion, folders, attention, with_figure: false, against: None, is_all: true }
    }

    /// Returns what not every file has, or another experiment has to have measured too; nothing, if everything is drawn and that was not
    /// measured.
    pub(crate) fn if_there<T>(&self, read: Result<T>, left_out: &mut LeftOut) -> Result<Option<T>> {
        if self.is_all { Ok(left_out.keep_if_there(read)) } else { read.map(Some) }
    }

    /// The one sheet of a file; without one nothing, if everything is drawn, and else this fault.
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

/// Signs of verdicts in the cells of tables.
pub(crate) const SIGNS: &str = "!: needed, ?: undecided, no sign: dispensable";

/// A cell with the sign of a verdict before it.
pub(crate) fn judged(cell: Cell, verdict: Option<Verdict>) -> Cell {
    let sign = match verdict {
        Some(Verdict::Needed) => "!",
        Some(Verdict::Undecided) => "?",
        _ => "",
    };
    Cell { text: format!("{sign}{}", cell.text), ..cell }
}

/// Numbers of verdicts in three cells: needed, dispensable, undecided; empty where there are none.
pub fn three(verdicts: Option<Verdicts>) -> [Cell; 3] {
    let three = verdicts.map(|Verdicts { needed, dispensable, undecided }| [needed, dispensable, undecided]);
    three.map_or_else(Default::default, |three| three.map(Cell::from))
}

/// Adds rows whose cells have the names of their columns.
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

/// Sheet of a file under a name, with a remark on what the signature cannot vouch for.
pub(crate) fn sheet(
    file: &ResultFile,
    name: &str,
    chart: impl Into<Option<Chart>>,
    tables: impl IntoIterator<Item = Table>,
) -> Sheet {
    Sheet::new(&file.stem(name), chart, tables).remark(file.remark())
}

/// A figure of the rows of one file; none if they have nothing for it.
pub(crate) fn figure<R: Row, C: Into<Option<Chart>>>(
    file: ResultFile,
    stem: &str,
    draw: impl Fn(&Results<R>) -> C,
) -> Result<Vec<Sheet>> {
    let found = Results::read(file)?;
    Ok(vec![sheet(&found.file, stem, draw(&found), [])])
}

/// The line at which a loss is as large as the margin.
pub(crate) const MARGIN: Style = Style::dashed(GREY, 0.7);

/// Lines at no change and at the margin, on an axis of changes of the score.
pub(crate) fn limits(sweep: &Ablations, judge: Judge, at: fn(f64) -> At) -> [Layer; 2] {
    [Layer::Rule(at(0.0), Style::line(GREY, 0.5)), Layer::Rule(at(margin(sweep, judge)), MARGIN)]
}

/// The change of the score that is a loss as large as the margin.
pub(crate) fn margin(sweep: &Ablations, judge: Judge) -> f64 {
    -sweep.metric().direction().gain(judge.margin(sweep.base()))
}

/// An axis that holds these changes of the score.
pub(crate) fn changes(metric: Metric, (low, high): (f64, f64)) -> Axis {
    Axis::around(format!("change of {}", metric.label()), low, high)
}

/// The mark of one attention type.
pub(crate) const fn mark(attention: Attention, radius: f64) -> Mark {
    match attention {
        Attention::EncEnc | Attention::SelfAttention => Mark::new(Shape::Circle, radius, BLUE),
        Attention::EncDec => Mark::new(Shape::Square, radius, VERMILLION),
        Attention::DecDec => Mark::new(Shape::Triangle, radius, GREEN),
    }
}

/// Sentence on the bands around curves.
pub(crate) const BANDS: &str = "bands: 95% intervals of the change from the full model, drawn around the score, for each step separately";

/// `35.91 [-0.35, +0.08]`: a score with the 95% interval of its change, marked where it is significantly worse.
pub(crate) fn scored(row: &impl TestedRow, criterion: Criterion) -> Cell {
    let (metric, tests) = (Metric::new(row.metric()), row.tests());
    let ends = metric.brackets(row.delta_interval());
    Cell::number(metric.amount(tests.variant) + &ends, tests.variant).marked(criterion.is_loss(row))
}

/// `-0.75 [-1.50, -0.02]`: a difference of two models with its 95% interval.
pub(crate) fn difference(found: &Comparison, metric: &Metric) -> Cell {
    let ends = metric.brackets(found.interval.map(|ends| (ends.low, ends.high)));
    Cell::number(metric.change(found.delta) + &ends, found.delta)
}

/// The number of each head with its rank, 1 for the greatest; equal numbers have the same one.
pub fn ranked(numbers: impl IntoIterator<Item = (HeadId, f64)>) -> BTreeMap<HeadId, Cell> {
    let numbers: Vec<(HeadId, f64)> = numbers.into_iter().collect();
    let rank = |value: f64| 1 + numbers.iter().filter(|(_, other)| *other > value).count();
    let text = |value: f64| format!("{} ({})", typeset(value, 3), rank(value));
    numbers.iter().map(|&(head, value)| (head, Cell::printed(value, text))).collect()
}

/// `2.565 (2.564 to 2.567, 5 draws)`: the mean of random draws, with the range; marked if that does not hold `score`.
pub(crate) fn drawn(draws: &Draws, number: impl Fn(f64) -> String, score: Option<f64>) -> Cell {
    let range = if draws.count > 1 { range(draws.range, &number) + ", " } else { String::new() };
    let text = format!("{} ({range}{})", number(draws.mean), count(draws.count, "draw"));
    Cell::number(text, draws.mean).marked(score.is_some_and(|score| draws.exclude(score)))
}

/// Sentence on random draws, of which the fewest that a choice is compared with are as many as this; nothing without any.
pub(crate) fn of_draws(fewest: usize) -> Option<String> {
    let (all, enough) = (count(fewest, "draw"), Draws::ENOUGH);
    let means = format!("random: the mean of {all}, with the range");
    let few =
        format!("random: {all}, too few to call a choice better or worse than random, which takes {enough}");
    (fewest > 0).then_some(if fewest < enough { few } else { means })
}

/// Meaning of a mark on the score of a model that was trained further.
pub(crate) fn worse_than_control(metric: &Metric, criterion: Criterion) -> String {
    let (side, criterion) = (metric.worse_side(), criterion.in_words());
    format!(
        "significantly {side} all heads with the same training ({criterion}); holds for other test segments, not for other runs"
    )
}

pub(crate) fn hollow(metric: &Metric, than: &str, criterion: Criterion) -> String {
    format!("hollow: {}", significantly_worse(metric, than, criterion))
}

/// Meaning of a mark on such a score, which is compared with `than`.
fn significantly_worse(metric: &Metric, than: &str, criterion: Criterion) -> String {
    format!("significantly {} {than} ({})", metric.worse_side(), criterion.in_words())
}
