//! Whether gates choose better heads, and what training them costs: models that were trained on, two by two.
use stats::family::Comparison;

use super::Context;
use super::gates::{label, name};
use crate::data::contrasts::Contrasts;
use crate::table::{Cell, Row, Table};
use crate::words::short;

/// Name of the files, without extension.
pub const STEM: &str = "gate-contrasts";

/// A row for each number of heads, a column for each two methods.
pub fn table(contrasts: &Contrasts, context: Context<'_>) -> Table {
    let Contrasts { gates, measured, rows } = contrasts;
    let (metric, alpha) = (&gates.metric, context.criterion.alpha);
    let cell = |found: &Option<Comparison>| {
        let Some(found) = found else { return Cell::default() };
        let ends = found
            .interval
            .map(|ends| format!(" [{}, {}]", metric.change(ends.low), metric.change(ends.high)));
        let is_significant = found.p_adjusted.is_some_and(|p_adjusted| p_adjusted < alpha);
        Cell::number(metric.change(found.delta) + &ends.unwrap_or_default(), found.delta)
            .marked(is_significant)
    };
    let better = if metric.direction().gain(1.0) > 0.0 { "above" } else { "below" };
    Table {
        name: "Gates and other choices",
        label: format!("{STEM}-{}", gates.file.subject),
        title: format!(
            "Differences in {} between models that were trained on with as many heads, with their 95 % intervals; {}",
            metric.label(),
            gates.file.title()
        ),
        headings: ["Heads that stay", "First method minus second"],
        columns: measured.iter().map(|pair| format!("{} \u{2212} {}", name(pair.of), name(pair.less))).collect(),
        rows: rows.iter().map(|(leader, found)| Row::new(label(leader), found.iter().map(cell))).collect(),
        mark: Some(format!("p < {}, adjusted by Holm (1979) for the numbers of heads in a column", short(alpha))),
        summary: std::iter::once(format!("{better} 0 the first is better"))
            .chain(["no gates: with all heads".to_owned()])
            .chain(gates.recipe())
            .collect(),
        remarks: vec![
            "chosen by gates: the heads that gates leave, the others closed from the first update on; beside importance and \
             random it tells what the choice is worth, beside gates what it costs to train them"
                .to_owned(),
            "of several random draws the one of the median score; intervals are of the test segments, not of other trainings"
                .to_owned(),
        ],
        ..Table::default()
    }
}
