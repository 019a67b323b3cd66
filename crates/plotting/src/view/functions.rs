//! Table 1 and Figures 1c and 2b of Voita et al. (2019): which heads do what, and how many there are in each layer.
use charts::chart::Chart;
use charts::table::{Cell, Row, Table};
use findings::functions::Functions;
use findings::results::distinct;
use records::rows::functions::{POSITIONAL_PERCENT, SYNTACTIC_POINTS, leaders};
use records::{Attention, HeadFunctionRow};
use words::{name_among, tenths};

use super::heat_map::counts;

/// Names of the files, without extension.
pub const TABLE: &str = "v19-table1";
pub const CENSUS: &str = "v19-figure1c";

/// When a head has a function.
fn thresholds() -> String {
    format!(
        "reaches the paper's threshold: {POSITIONAL_PERCENT} % for a position, {SYNTACTIC_POINTS} points above the most frequent \
         position for a relation, more than half for the two rarest tokens; and more than of shuffled targets"
    )
}

/// The head that does each thing best, beside what its position alone and shuffled targets give: Table 1.
pub fn table1(functions: &Functions) -> Table {
    let share = |share: f64| Cell::printed(100.0 * share, tenths);
    let row = |row: &HeadFunctionRow| {
        let ends = row.share_low.zip(row.share_high).map(|(low, high)| (100.0 * low, 100.0 * high));
        let position = row.baseline_position.zip(row.baseline).map(|(at, share)| {
            let percent = 100.0 * share;
            Cell::number(format!("{} ({at:+})", tenths(percent)), percent)
        });
        let cells = [
            row.head_id().to_string().into(),
            share(row.share).marked(row.holds == Some(true)),
            ends.map(|ends| Cell::interval(ends, tenths)).into(),
            row.best.map(share).into(),
            position.into(),
            row.shuffled.map(share).into(),
        ];
        Row::new(format!("{} {}", row.function, row.detail).trim_end(), cells)
    };
    let columns = [
        "best head",
        "share (%)",
        "95 % interval",
        "best in (% of resamples)",
        "position alone (%)",
        "shuffled (%)",
    ];
    let title = "The head that does each thing best (Voita et al. 2019)";
    Table::new("Table 1", functions.file.label(TABLE), functions.file.titled(title))
        .columns(["Function", "of all heads"], columns)
        .rows(leaders(&functions.rows).into_iter().map(row))
        .mark(thresholds())
        .note("position alone: how often the partner stands at its most frequent relative position")
}

/// How many heads of each layer have each function, a panel for each attention type: Figures 1c and 2b.
pub fn figure1c(functions: &Functions) -> Chart {
    let (all, kinds) = (functions.heads(), functions.kinds());
    let attentions = distinct(all.iter().map(|head| head.attention));
    let panel = |(place, &attention): (usize, &Attention)| {
        let of_type = || all.iter().filter(|head| head.attention == attention);
        let layers = distinct(of_type().map(|head| head.layer));
        let count = |row: usize, column: usize| {
            let in_layer = || of_type().filter(|head| head.layer == layers[column]);
            (in_layer().filter(|head| kinds[row].1.contains(head)).count(), in_layer().count())
        };
        let names = kinds.iter().map(|(name, _)| name);
        let panel = counts(("layer", &layers), ("", names), count);
        panel.named(name_among(&attention, &attentions)).in_row(place)
    };
    let title = "What the heads of each layer do (Voita et al. 2019)";
    Chart::new("Figures 1c and 2b", functions.file.label(CENSUS), functions.file.titled(title))
        .note("numbers: heads of a layer; the darker, the greater their share of it")
        .note(format!("a head counts that {}; it may have several functions", thresholds()))
        .panels(attentions.len(), attentions.iter().enumerate().map(panel).collect())
}
