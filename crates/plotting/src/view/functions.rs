//! Table 1 and Figures 1c and 2b of Voita et al. (2019): which heads do what, and how many there are in each layer.
use charts::chart::{self, Chart, Panel};
use charts::table::{Cell, Row, Table};
use findings::functions::Functions;
use findings::results::distinct;
use records::rows::functions::{LayerCensus, POSITIONAL_PERCENT, SYNTACTIC_POINTS, census, leaders};
use records::{Attention, HeadFunctionRow};
use words::{name_among, tenths};

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
    type Count = fn(&LayerCensus) -> Option<usize>;
    const KINDS: [(&str, Count); 4] = [
        ("positional", |layer| layer.positional),
        ("syntactic", |layer| layer.syntactic),
        ("rare tokens", |layer| layer.rare),
        ("other", |layer| layer.other),
    ];
    let found = census(&functions.rows, false);
    let attentions = distinct(found.keys().map(|(attention, _)| *attention));
    let panel = |(place, attention): (usize, &Attention)| {
        let layers: Vec<_> = found.iter().filter(|((own, _), _)| own == attention).collect();
        let is_known = |of: Count| layers.iter().any(|(_, layer)| of(layer).is_some());
        let rows: Vec<_> = KINDS.into_iter().filter(|(_, of)| is_known(*of)).collect();
        let cell = |row: usize, layer: usize| {
            let (of, layer) = (rows[row].1, layers[layer].1);
            let text = of(layer).map(|count| count.to_string()).unwrap_or_default();
            let value = of(layer).map(|count| count as f64 / layer.heads as f64);
            chart::Cell { value, text, ..chart::Cell::default() }
        };
        let columns = layers.iter().map(|((_, layer), _)| layer.to_string()).collect();
        let names = rows.iter().map(|(name, _)| (*name).to_owned()).collect();
        let panel = Panel::matrix(("layer", columns), ("", names), 14.0, cell);
        panel.named(name_among(attention, &attentions)).in_row(place)
    };
    let title = "What the heads of each layer do (Voita et al. 2019)";
    Chart::new("Figures 1c and 2b", functions.file.label(CENSUS), functions.file.titled(title))
        .note("numbers: heads of a layer; the darker, the greater their share of it")
        .note(format!("a head counts that {}; it may have several functions", thresholds()))
        .panels(attentions.len(), attentions.iter().enumerate().map(panel).collect())
}
