//! What heads can be ordered by, and how far these orders agree, by rank correlation over all heads (Michel et al. 2019,
//! Section 4.1). The paper has no such table; it compares orders by what they do to the score.
use anyhow::{Context as _, Result};
use records::ImportanceRow;
use stats::correlation::{kendall, spearman};

use super::that_hold;
use crate::chart::{self, Axis, Chart, Panel};
use crate::origin;
use crate::source::ResultFile;
use crate::table::{Cell, Row, Table};
use crate::words::{count, signed, typeset};

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "importance";

/// Name of its files, without extension.
pub const STEM: &str = "importance-agreement";

/// A score of heads, one column of the file; heads with the least are masked first.
///
/// The orders of `iterative-prune` are [others](records::Order): not all of them go by a score.
#[derive(Debug, Clone, Copy)]
pub struct HeadScore {
    /// The name in figures and tables.
    pub label: &'static str,
    /// The value of a head; absent where it was not measured.
    value: fn(&ImportanceRow) -> Option<f64>,
}

const COMBINED: HeadScore =
    HeadScore { label: "importance + entropy", value: |row| Some(row.importance_entropy) };
const ORACLE: HeadScore = HeadScore { label: "oracle", value: |row| row.oracle };
const SCORES: [HeadScore; 7] = [
    HeadScore { label: "importance", value: |row| Some(row.example_normalised) },
    HeadScore { label: "importance by token", value: |row| Some(row.token_normalised) },
    HeadScore { label: "attention gradient", value: |row| Some(row.attention_gradient) },
    HeadScore { label: "\u{2212}entropy", value: |row| Some(-row.entropy) },
    HeadScore { label: "confidence", value: |row| Some(row.confidence) },
    COMBINED,
    ORACLE,
];

/// What is known of each head of a subject.
#[derive(Debug, Clone)]
pub struct Importance {
    pub file: ResultFile,
    pub rows: Vec<ImportanceRow>,
}

impl Importance {
    /// Reads a file of `importance`.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        Ok(Self { rows: file.rows(EXPERIMENT)?, file })
    }

    /// The scores that no head lacks, with those of all heads; only the oracle may be missing.
    pub fn known(&self) -> Vec<(HeadScore, Vec<f64>)> {
        let of = |score: HeadScore| self.rows.iter().map(score.value).collect::<Option<_>>();
        SCORES.into_iter().filter_map(|score| Some((score, of(score)?))).collect()
    }

    /// Subject and the data of all scores but the oracle's, as a reader should see them.
    pub fn title(&self) -> String {
        let data = self.file.estimated_on().map_or(String::new(), |data| format!(", estimated on {data}"));
        format!("{}{data}", origin::name(&self.file.subject))
    }

    /// A sentence where there is a signature, but it does not name the data.
    pub fn unknown(&self) -> Option<String> {
        let is_unknown = self.file.signature.is_some() && self.file.estimated_on().is_none();
        is_unknown.then(|| "data of the estimates unknown: the signature does not name it".to_owned())
    }

    /// Sentences on what the title does not cover: how importance is combined with entropy, if not as usual, and the
    /// data of the oracle, if all heads have one.
    pub fn notes(&self) -> Vec<String> {
        // Each of the other columns has its settings in its name.
        let departures = self.file.departures();
        let combined = departures.map(|how| format!("{}: {how}", COMBINED.label));
        let has_oracle = self.rows.iter().all(|row| row.oracle.is_some());
        // The split of the signature is what `ablate-one` scored.
        let oracle = self.file.scored().filter(|_| has_oracle);
        let oracle = oracle.map(|data| format!("{}: score lost on {data}", ORACLE.label));
        combined.into_iter().chain(oracle).collect()
    }
}

/// Correlations of two orders, Kendall's tau-b above the diagonal and Spearman's rho below; absent where all heads are equal in
/// one of them, and meaningless on the diagonal.
fn matrix(importance: &Importance) -> Result<Vec<Vec<Option<f64>>>> {
    let known = importance.known();
    let cell = |row: usize, column: usize| {
        let correlate = if row < column { kendall } else { spearman };
        match correlate(&known[row].1, &known[column].1) {
            Err(stats::Error::NoSpread) => Ok(None),
            found => found.map(|found| Some(found.coefficient)),
        }
    };
    let row = |row: usize| (0..known.len()).map(|column| cell(row, column)).collect::<Result<_, _>>();
    let matrix = (0..known.len()).map(row).collect::<Result<_, _>>();
    matrix.with_context(|| format!("cannot compare the numbers of `{}`", importance.file.path.display()))
}

const DIRECTION: &str = "heads with the least value are masked first; entropy counts negative, so that heads of spread \
                         attention come first";

/// The matrix with numbered columns, since the names are long, and the sums over groups of heads, if there are groups.
pub fn tables(importance: &Importance) -> Result<Vec<Table>> {
    let (known, matrix) = (importance.known(), matrix(importance)?);
    let cell = |row: usize, column: usize| match matrix[row][column] {
        _ if row == column => Cell::default(),
        None => "n/a".into(),
        Some(value) => Cell::number(signed(value, 2), value),
    };
    let size = known.len();
    let row = |row: usize| {
        Row::new(format!("{} {}", row + 1, known[row].0.label), (0..size).map(|column| cell(row, column)))
    };
    let heads = count(importance.rows.len(), "head");
    let missing = importance.rows.iter().filter(|row| row.oracle.is_none()).count();
    let sentences = [
        (
            matrix.iter().flatten().any(Option::is_none),
            "n/a: all heads are equal in one of the two orders".to_owned(),
        ),
        (missing > 0, format!("oracle left out: {missing} of {heads} without it, `ablate-one` measures it")),
    ];
    let agreement = Table {
        name: "Agreement of orders",
        label: format!("{STEM}-{}", importance.file.subject),
        title: format!(
            "Kendall's \u{3c4}-b above the diagonal and Spearman's \u{3c1} below, between what heads can be ordered by; \
             {}, {heads}",
            importance.title()
        ),
        headings: ["Order", "Order"],
        columns: (1..=size).map(|number| number.to_string()).collect(),
        rows: (0..size).map(row).collect(),
        summary: std::iter::once(DIRECTION.to_owned()).chain(importance.notes()).collect(),
        remarks: that_hold(sentences).chain(importance.unknown()).collect(),
        ..Table::default()
    };
    Ok(std::iter::once(agreement).chain(by_group(importance)).collect())
}

/// The matrix in colours.
pub fn figure(importance: &Importance) -> Result<Chart> {
    let (known, matrix) = (importance.known(), matrix(importance)?);
    let cell = |row: usize, column: usize| {
        let (value, text) = match matrix[row][column] {
            _ if row == column => (Some(0.0), String::new()),
            Some(value) => (Some(value), typeset(value, 2)),
            None => (None, "\u{2013}".to_owned()),
        };
        chart::Cell { value, text, ..chart::Cell::default() }
    };
    let size = known.len();
    let rows = (0..size).map(|row| vec![format!("{} {}", known[row].0.label, row + 1)]).collect();
    let columns = (1..=size).map(|number| vec![number.to_string()]).collect();
    let axes = [Axis::named("", columns), Axis::named("", rows).downwards()];
    let above = "above the diagonal Kendall's \u{3c4}-b, below Spearman's \u{3c1}; \u{2013}: all heads are equal in one of the \
                 two orders";
    let notes = [above, DIRECTION].map(str::to_owned).into_iter();
    Ok(Chart {
        name: "Agreement of orders",
        label: format!("{STEM}-matrix-{}", importance.file.subject),
        title: format!(
            "How far the orders of heads agree; {}, {}",
            importance.title(),
            count(importance.rows.len(), "head")
        ),
        notes: notes.chain(importance.notes()).chain(importance.unknown()).collect(),
        panels: vec![Panel::new("", axes, 16.0 * size as f64, vec![chart::cells(size, size, cell)])],
        color_bar: Some((
            "rank correlation".to_owned(),
            [-1.0, -0.5, 0.0, 0.5, 1.0].map(|rho| typeset(rho, 1)),
        )),
        ..Chart::default()
    })
}

/// What heads that share keys and values sum up to, which `iterative-prune --unit group` orders by; none for a model whose
/// heads all have keys and values of their own.
fn by_group(importance: &Importance) -> Option<Table> {
    let heads = importance.rows.iter().map(|row| row.head).max()?;
    let size = heads / importance.file.key_value_heads(heads)?;
    let mut sorted: Vec<(usize, &ImportanceRow)> = importance.rows.iter().enumerate().collect();
    sorted.sort_by_key(|(_, row)| (row.layer, row.head));
    let group = |row: &ImportanceRow| (row.layer, (row.head - 1) / size + 1);
    let groups: Vec<_> = sorted.chunk_by(|(_, one), (_, next)| group(one) == group(next)).collect();
    let known = importance.known();
    let sum = |rows: &[(usize, &ImportanceRow)], values: &[f64]| rows.iter().map(|(at, _)| values[*at]).sum();
    let columns: Vec<Vec<f64>> =
        known.iter().map(|(_, values)| groups.iter().map(|rows| sum(rows, values)).collect()).collect();
    let row = |(place, rows): (usize, &&[(usize, &ImportanceRow)])| {
        let (layer, number) = group(rows[0].1);
        let (first, last) = (rows[0].1.head, rows[rows.len() - 1].1.head);
        let label = format!("layer {layer}, group {number}: heads {first} to {last}");
        Row::new(label, columns.iter().map(|column| sum_cell(column, place)))
    };
    Some(Table {
        name: "Importance by group",
        label: format!("importance-by-group-{}", importance.file.subject),
        title: format!("Sums over the heads that share keys and values; {}", importance.title()),
        headings: ["Group", "Score"],
        columns: known.iter().map(|(score, _)| score.label.to_owned()).collect(),
        rows: groups.iter().enumerate().map(row).collect(),
        mark: Some(
            "the least of its column: the group that `iterative-prune --unit group` masks first".to_owned(),
        ),
        summary: importance.notes(),
        remarks: importance.unknown().into_iter().collect(),
        ..Table::default()
    })
}

/// As many digits for a whole column, three that count in its greatest number.
fn sum_cell(column: &[f64], place: usize) -> Cell {
    let greatest = column.iter().copied().map(f64::abs).fold(0.0, f64::max);
    let least = column.iter().copied().fold(f64::INFINITY, f64::min);
    let digits = (2.0 - greatest.max(f64::MIN_POSITIVE).log10().floor()).clamp(0.0, 9.0) as usize;
    let value = column[place];
    Cell::number(format!("{value:.digits$}").replace('-', "\u{2212}"), value).marked(value == least)
}
