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
    let (metric, alpha) = (gates.metric(), context.criterion.alpha);
    let cell = |found: &Comparison| {
        let ends = metric.brackets(found.interval.map(|ends| (ends.low, ends.high)));
        let is_significant = found.p_adjusted.is_some_and(|p_adjusted| p_adjusted < alpha);
        Cell::number(metric.change(found.delta) + &ends, found.delta).marked(is_significant)
    };
    let row = |(leader, found): &(_, Vec<Option<Comparison>>)| {
        Row::new(label(leader), found.iter().map(|found| Cell::from(found.as_ref().map(cell))))
    };
    let columns = measured.iter().map(|pair| format!("{} \u{2212} {}", name(pair.of), name(pair.less)));
    let title = format!(
        "Differences in {} between models that were trained on with as many heads, with their 95 % intervals",
        metric.label()
    );
    let better = if metric.direction().gain(1.0) > 0.0 { "above" } else { "below" };
    Table::of(&gates.file, "Gates and other choices", STEM, title)
        .columns(["Heads that stay", "First method minus second"], columns)
        .rows(rows.iter().map(row))
        .mark(format!("p < {}, adjusted by Holm (1979) for the numbers of heads in a column", short(alpha)))
        .note(format!("{better} 0 the first is better"))
        .note("no gates: with all heads")
        .note(gates.recipe())
        .remark(
            "chosen by gates: the heads that gates leave, the others closed from the first update on; beside importance and \
             random it tells what the choice is worth, beside gates what it costs to train them",
        )
        .remark("of several random draws the one of the median score; intervals are of the test segments, not of other trainings")
}
