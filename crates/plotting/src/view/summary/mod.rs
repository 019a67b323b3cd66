//! The paper's claims beside what was measured on other data: one table for each claim.
mod claims;
mod language;

use crate::data::best_heads::BestHeads;
use crate::data::dynamics::Dynamics;
use crate::data::pair::Pair;
use crate::data::pruning::Pruning;
use crate::data::sweep::Sweep;
use crate::source::ResultFile;
use crate::table::{Cell, Row, Table, names};
use crate::view::Context;

/// All that was measured on one subject.
#[derive(Debug, Default)]
pub struct Subject {
    /// One head at a time.
    pub sweep: Option<Sweep>,
    /// The best head of each layer, chosen on each split.
    pub best: Vec<BestHeads>,
    /// Comparisons of two splits.
    pub pairs: Vec<Pair>,
    /// Curves over the share of masked heads.
    pub pruning: Option<Pruning>,
    /// Curves during training.
    pub dynamics: Option<Dynamics>,
    /// Nats of the intact model for each word of the text, where words were counted.
    pub nats_a_word: Option<f64>,
}

impl Subject {
    /// Whether its scores are nats a token, and no points.
    pub fn has_nats(&self) -> bool {
        let sweeps = self.sweep.iter().map(|sweep| &sweep.metric);
        sweeps.chain(self.pruning.iter().map(|pruning| &pruning.metric)).any(|metric| metric.is_nats())
    }

    /// The files that were read.
    pub fn files(&self) -> impl Iterator<Item = &ResultFile> {
        let best = self.best.iter().map(|best| &best.sweep);
        let sweeps = self.sweep.iter().chain(best).map(|sweep| &sweep.file);
        let pairs = self.pairs.iter().map(|pair| &pair.file);
        let curves = self.pruning.iter().map(|pruning| &pruning.file);
        sweeps.chain(pairs).chain(curves).chain(self.dynamics.iter().map(|dynamics| &dynamics.file))
    }
}

/// One table for each claim that something was measured of: its name is the claim, its title says how to read it.
pub fn tables(all: &[Subject], context: Context<'_>) -> Vec<Table> {
    let claims = [
        claims::single_heads(all, context),
        claims::best_heads(all, context),
        claims::across_domains(all, context),
        claims::removable(all, context),
        claims::by_type(all, context),
        claims::during_training(all, context),
        language::question(all, context),
    ];
    claims.into_iter().flatten().collect()
}

/// What the page begins with, and what it says of nats where there are some.
pub const HEAD: [&str; 2] = [
    "\
# The paper's claims beside what we measured on other data

Made by `plotting summary` from the files in this folder. M19 is Michel, Levy and Neubig (2019), as published; all other
rows are other models on other data, so numbers are there to compare patterns, not values. Demo subjects are made-up
languages. Scores are in points.
",
    "Nats a token are no points: the less the better.\n",
];

/// One claim of the paper.
struct Claim<'a> {
    name: &'static str,
    how_to_read: String,
    columns: &'a [&'static str],
    /// What the paper has.
    published: Vec<Vec<Cell>>,
    /// What was measured.
    measured: Vec<Vec<Cell>>,
    remarks: Vec<String>,
}

/// Cells of a row, the first of which names it.
fn row<const N: usize>(cells: [&str; N]) -> Vec<Cell> {
    cells.map(Cell::from).to_vec()
}

impl Claim<'_> {
    /// As a table; none if nothing was measured.
    fn table(self) -> Option<Table> {
        let row = |mut cells: Vec<Cell>| {
            let rest = cells.split_off(1);
            Row { label: cells.remove(0).text, cells: rest }
        };
        let (first, columns) = self.columns.split_first()?;
        (!self.measured.is_empty()).then(|| Table {
            name: self.name,
            title: self.how_to_read,
            row_heading: first,
            columns: names(columns),
            rows: self.published.into_iter().chain(self.measured).map(row).collect(),
            remarks: self.remarks,
            ..Table::default()
        })
    }
}
