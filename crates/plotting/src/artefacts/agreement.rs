//! Rank correlations between rankings. Michel et al. (2019), Section 4.1, have no such table: they compare pruning curves.
use std::collections::BTreeMap;

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::error::incomparable;
use crate::findings::{HeadScore, Importance, LeftOut, Relevance, Result, ResultFile, experiment};
use charts::chart::{self, Chart, Entry, Panel};
use charts::table::{Cell, Row, Table};
use records::{HeadId, Measure};
use stats::correlation::{kendall, spearman};
use words::{count, signed, typeset};

use crate::view::sheet;

const STEM: &str = "importance-agreement";

/// The matrix as a figure and a table, and sums over groups of heads that share keys and values.
pub(super) const ARTEFACT: Artefact = Artefact::new(
    ["agreement", "importance", chapter::ORDERS],
    "Rank correlations between rankings of heads, as a matrix and a table",
    Reads::Each(experiment::IMPORTANCE),
    |file, _, left_out| {
        let orders = Orders::read(file, left_out)?;
        let (importance, matrix) = (&orders.importance, matrix(&orders)?);
        let tables = std::iter::once(table(&orders, &matrix)).chain(by_group(importance));
        Ok(vec![sheet(&importance.file, STEM, figure(&orders, &matrix), tables)])
    },
)
.detail("also sums over groups if heads share keys and values");

/// All rankings of the heads of a model.
struct Orders {
    /// The criteria, which also define the heads.
    importance: Importance,
    /// Rankings by criteria, then by relevance.
    all: Vec<HeadScore>,
    /// Describes the data of relevance.
    notes: Vec<String>,
}

impl Orders {
    /// Reads a file of `importance`, and `relevance` from the same folder unless its model differs.
    fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let importance = Importance::read(file)?;
        let (mut all, mut notes) = (importance.known(), Vec::new());
        let relevance = Relevance::beside_model(&importance.file, experiment::RELEVANCE);
        if let Some(relevance) = left_out.keep(relevance).flatten() {
            let by_head: BTreeMap<HeadId, f64> =
                relevance.rows.iter().map(|row| (row.head_id(), row.relevance)).collect();
            let values = importance.heads().into_iter().map(|head| by_head.get(&head).copied());
            // a ranking needs a value for every head
            if let Some(values) = values.collect() {
                let data = relevance.file.scored().map_or(String::new(), |data| format!(", on {data}"));
                let doubt = relevance.doubt().map_or(String::new(), |doubt| format!("; {doubt}"));
                notes.push(format!("relevance: Voita et al. (2019){data}{doubt}"));
                all.push(HeadScore { label: "relevance".to_owned(), unit: "", values });
            }
        }
        Ok(Self { importance, all, notes })
    }

    fn notes(&self) -> Vec<String> {
        self.importance.notes().into_iter().chain(self.notes.clone()).collect()
    }
}

type Matrix = Vec<Vec<Option<f64>>>;

/// Correlates rankings: Kendall's tau-b above the diagonal, Spearman's rho below. `None` if all heads are equal in one ranking.
fn matrix(Orders { importance, all, .. }: &Orders) -> Result<Matrix> {
    let cell = |row: usize, column: usize| {
        let [x, y] = [row, column].map(|place| &all[place].values);
        let found = if row < column { kendall(x, y) } else { spearman(x, y).map(|found| found.coefficient) };
        match found {
            Err(stats::Error::NoSpread) => Ok(None),
            found => found.map(Some),
        }
    };
    let row = |row: usize| (0..all.len()).map(|column| cell(row, column)).collect::<Result<_, _>>();
    let matrix = (0..all.len()).map(row).collect::<Result<_, _>>();
    matrix.map_err(incomparable(&importance.file))
}

const DIRECTION: &str = "heads with the lowest value are masked first; entropy is negated, so that heads with spread-out \
     attention come first";

/// Tabulates the matrix with numbered columns, since the names are long.
fn table(orders: &Orders, matrix: &Matrix) -> Table {
    let importance = &orders.importance;
    let cell = |row: usize, column: usize| match matrix[row][column] {
        _ if row == column => Cell::default(),
        None => Cell::gap("n/a"),
        Some(value) => Cell::printed(value, |value| signed(value, 2)),
    };
    let size = orders.all.len();
    let row = |(row, order): (usize, &HeadScore)| {
        Row::new(format!("{} {}", row + 1, order.label), (0..size).map(|column| cell(row, column)))
    };
    let heads = count(importance.heads().len(), "head");
    let missing = importance.lacking(Measure::Oracle);
    let equal = matrix.iter().flatten().any(Option::is_none);
    let title =
        "Kendall's \u{3c4}-b above and Spearman's \u{3c1} below the diagonal, between rankings of heads";
    let title = format!("{title}; {}, {heads}", importance.title());
    Table::new("Agreement of rankings", importance.file.label(STEM), title)
        .columns(["Order", "Order"], (1..=size).map(|number| number.to_string()))
        .rows(orders.all.iter().enumerate().map(row))
        .note(DIRECTION)
        .note(orders.notes())
        .remark(equal.then_some("n/a: all heads are equal in one of the two rankings"))
        .remark((missing > 0).then_some(format!(
            "oracle left out: it is missing for {missing} of {heads}; `importance` has it if `ablate-one` ran before"
        )))
        .remark(importance.unknown())
}

fn figure(orders: &Orders, matrix: &Matrix) -> Chart {
    let (importance, all) = (&orders.importance, &orders.all);
    let cell = |row: usize, column: usize| {
        let (value, text) = match matrix[row][column] {
            _ if row == column => (Some(0.0), String::new()),
            Some(value) => (Some(value), typeset(value, 2)),
            None => (None, "\u{2013}".to_owned()),
        };
        chart::Cell { value, text, ..chart::Cell::default() }
    };
    let rows = all.iter().map(|order| &order.label);
    let columns = all.iter().map(|order| order.label.replace("+ ", "+\u{a0}").replace(' ', "\n"));
    let label = importance.file.label(&format!("{STEM}-matrix"));
    let heads = count(importance.heads().len(), "head");
    let title = format!("Rank correlations between rankings of heads; {}, {heads}", importance.title());
    Chart::new("Agreement of rankings", label, title)
        .note("\u{2013}: all heads are equal in one of the two rankings")
        .note(DIRECTION)
        .note(orders.notes())
        .note(importance.unknown())
        .entries([Entry::text(
            "above the diagonal: Kendall's \u{3c4}-b; below the diagonal: Spearman's \u{3c1}",
        )])
        .panels(1, vec![Panel::matrix(("", columns), ("", rows), 16.0, cell)])
        .wide()
        .bar("rank correlation", chart::BAR_COLORS.map(|rho| typeset(rho, 1)))
}

/// Sums criteria over heads that share keys and values, by which `iterative-prune --unit group` ranks; `None` if every head has its own.
fn by_group(importance: &Importance) -> Option<Table> {
    let heads: Vec<(usize, HeadId)> = importance.heads().into_iter().enumerate().collect();
    let most = heads.iter().map(|(_, head)| head.head_number()).max()?;
    let size = most / importance.file.key_value_heads(most)?;
    // only models with a single attention type share keys and values
    let group = |head: HeadId| (head.layer_number(), head.head_index() / size + 1);
    let groups: Vec<_> = heads.chunk_by(|(_, one), (_, next)| group(*one) == group(*next)).collect();
    let known = importance.known();
    let sum = |heads: &[(usize, HeadId)], values: &[f64]| heads.iter().map(|(at, _)| values[*at]).sum();
    let columns: Vec<Vec<f64>> =
        known.iter().map(|score| groups.iter().map(|heads| sum(heads, &score.values)).collect()).collect();
    let row = |(place, heads): (usize, &&[(usize, HeadId)])| {
        let (layer, number) = group(heads[0].1);
        let (first, last) = (heads[0].1.head_number(), heads[heads.len() - 1].1.head_number());
        let label = format!("layer {layer}, group {number}: heads {first} to {last}");
        Row::new(label, columns.iter().map(|column| sum_cell(column, place)))
    };
    let label = importance.file.label("importance-by-group");
    let title = format!("Sums over the heads that share keys and values; {}", importance.title());
    let table = Table::new("Importance by group", label, title)
        .columns(["Group", "Score"], known.iter().map(|score| &score.label[..]))
        .rows(groups.iter().enumerate().map(row))
        .mark("minimum of its column: the group that `iterative-prune --unit group` masks first".to_owned())
        .note(importance.notes())
        .remark(importance.unknown());
    Some(table)
}

/// Formats a sum with three significant digits of the column's maximum, and marks the column's minimum.
fn sum_cell(column: &[f64], place: usize) -> Cell {
    let greatest = column.iter().copied().map(f64::abs).fold(0.0, f64::max);
    let least = column.iter().copied().fold(f64::INFINITY, f64::min);
    let digits = (2.0 - greatest.max(f64::MIN_POSITIVE).log10().floor()).clamp(0.0, 9.0) as usize;
    let value = column[place];
    Cell::printed(value, |value| typeset(value, digits)).marked(value == least)
}
