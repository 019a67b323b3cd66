//! The papers' claims next to measurements of other models: one page from the template `summary.md`, with a table for each claim.
mod michel;
mod time;
mod voita;

use crate::findings::{Adjustment, Criterion, ResultFile, SubjectResults};
use charts::table::Row;
use charts::write::documents::{of_rows, templates};
use minijinja::{Value, context};
use records::rows::functions::{POSITIONAL_PERCENT, SYNTACTIC_POINTS};
use records::verdicts::MARGIN_PERCENT;
use words::short;

/// Describes the criterion of significance without naming options.
fn significantly(criterion: Criterion) -> String {
    let adjustment = match criterion.adjustment {
        Adjustment::None => "not adjusted",
        Adjustment::Family => "adjusted for the family",
        Adjustment::Bh => "adjusted by Benjamini and Hochberg (1995)",
    };
    format!("p < {}, {adjustment}", criterion.alpha)
}

/// Renders the page; `None` if nothing was measured.
pub fn page(all: &[SubjectResults], criterion: Criterion) -> Result<Option<String>, minijinja::Error> {
    let of = |claim: fn(&[SubjectResults], Criterion) -> Claim| claim(all, criterion).shown();
    let remark = |file: &ResultFile| Some(format!("{}: {}", file.subject, file.remark()?));
    let unchecked: Vec<_> = all.iter().flat_map(SubjectResults::files).filter_map(remark).collect();
    let tables = [
        ("single_heads", of(michel::single_heads)),
        ("replicates", of(michel::replicates)),
        ("kinds", of(michel::kinds)),
        ("best_heads", of(michel::best_heads)),
        ("across_domains", of(michel::across_domains)),
        ("removable", of(michel::removable)),
        ("pruning_kinds", of(michel::pruning_kinds)),
        ("by_type", of(michel::by_type)),
        ("retrained", of(michel::retrained)),
        ("methods", of(michel::methods)),
        ("during_training", of(michel::during_training)),
        ("language", of(michel::language)),
        ("functions", of(voita::functions)),
        ("few_heads", of(voita::few_heads)),
        ("minutes", of(time::minutes)),
    ];
    let has_any = tables.iter().any(|(_, table)| table.is_some());
    let words = context! {
        has_nats => all.iter().any(SubjectResults::has_nats),
        unchecked,
        significantly => significantly(criterion),
        margin_percent => short(MARGIN_PERCENT),
        positional_percent => short(POSITIONAL_PERCENT),
        syntactic_points => short(SYNTACTIC_POINTS),
    };
    let mut templates = templates();
    templates.add_template("summary.md", include_str!("summary.md"))?;
    let page =
        templates.get_template("summary.md")?.render(context! { ..Value::from_iter(tables), ..words })?;
    Ok(has_any.then_some(page))
}

/// Published and measured rows of a claim; the template names their columns.
#[derive(Default)]
struct Claim {
    published: Vec<Row>,
    measured: Vec<Row>,
    remarks: Vec<String>,
}

impl Claim {
    /// Returns the table for the template; `None` if nothing was measured.
    fn shown(self) -> Option<Value> {
        let width = self.measured.iter().map(|row| row.cells.len()).max()?;
        let rows = self.published.into_iter().chain(self.measured).map(|row| compact(row.cut(width)));
        Some(context! { remarks => self.remarks, ..of_rows(&rows.collect::<Vec<_>>(), width) })
    }
}

/// Writes percentages of other views without a space.
fn compact(mut row: Row) -> Row {
    for cell in &mut row.cells {
        cell.text = cell.text.replace(" %", "%");
    }
    row
}
