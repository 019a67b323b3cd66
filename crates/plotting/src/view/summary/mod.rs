//! The paper's claims beside what was measured on other data: one table for each claim.
mod claims;
mod language;
mod voita;

use crate::data::subject::Subject;
use crate::table::{Cell, Row, Table};
use crate::view::Context;

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
        voita::functions(all, context),
        voita::few_heads(all, context),
    ];
    claims.into_iter().filter(|claim| !claim.measured.is_empty()).map(Claim::table).collect()
}

/// What the page begins with, and what it says of nats where there are some.
pub const HEAD: [&str; 2] = [
    "\
# The paper's claims beside what we measured on other data

Made by `plotting summary` from the files in this folder. M19 is Michel, Levy and Neubig (2019), V19 Voita et al. (2019), as
published; all other rows are other models on other data, so numbers are there to compare patterns, not values. Demo subjects are made-up
languages. Scores are in points.
",
    "Nats a token are no points: the less the better.\n",
];

/// One claim of the paper: what it has, and what was measured.
struct Claim {
    name: &'static str,
    how_to_read: String,
    /// Their names, separated by ` | `.
    columns: &'static str,
    published: Vec<Cells>,
    measured: Vec<Cells>,
    remarks: Vec<String>,
}

/// A row, the first cell of which names it.
type Cells = Vec<Cell>;

fn row<const N: usize>(cells: [&str; N]) -> Cells {
    cells.map(Cell::from).to_vec()
}

impl Claim {
    fn table(self) -> Table {
        let mut columns = self.columns.split(" | ");
        let heading = columns.next().unwrap_or_default();
        let columns: Vec<_> = columns.map(str::to_owned).collect();
        let row = |mut cells: Cells| {
            cells.resize(columns.len() + 1, Cell::default());
            Row { label: cells.remove(0).text, cells }
        };
        Table {
            name: self.name,
            title: self.how_to_read,
            headings: [heading, ""],
            rows: self.published.into_iter().chain(self.measured).map(row).collect(),
            columns,
            remarks: self.remarks,
            ..Table::default()
        }
    }
}
