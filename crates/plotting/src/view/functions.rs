//! Table 1 and Figures 1c and 2b of Voita et al. (2019): which heads do what, and how many there are in each layer.
use records::rows::functions::{LayerCensus, census, leaders};
use records::{Attention, HeadFunctionRow};

use crate::chart::{Axis, COLUMN, Cell, Chart, Panel, TEXT, cells};
use crate::data::functions::Functions;
use crate::table::{self, Row, Table};
use crate::words::tenths;

/// Names of the files, without extension.
pub const TABLE: &str = "v19-table1";
pub const CENSUS: &str = "v19-figure1c";

/// When a head has a function.
const THRESHOLDS: &str = "reaches the paper's threshold: 90 % for a position, 10 points above the most frequent position for a \
                          relation, more than half for the two rarest tokens; and more than of shuffled targets";

/// The head that does each thing best, beside what its position alone and shuffled targets give: Table 1.
pub fn table1(functions: &Functions) -> Table {
    let percent = |share: Option<f64>| share.map(|share| tenths(100.0 * share));
    let text = |text: Option<String>| table::Cell::from(text.unwrap_or_default());
    let row = |row: &HeadFunctionRow| {
        let ends = row.share_low.zip(row.share_high);
        let position = row.baseline_position.zip(percent(row.baseline));
        let cells = [
            table::Cell::from(row.head_id().to_string()),
            table::Cell::from(tenths(100.0 * row.share)).marked(row.holds == Some(true)),
            text(ends.map(|(low, high)| format!("{} to {}", tenths(100.0 * low), tenths(100.0 * high)))),
            text(percent(row.best)),
            text(position.map(|(at, share)| format!("{share} ({at:+})"))),
            text(percent(row.shuffled)),
        ];
        let label = format!("{} {}", row.function, row.detail);
        Row { label: label.trim_end().to_owned(), cells: cells.into() }
    };
    let columns = [
        "best head",
        "share (%)",
        "95 % interval",
        "best in (% of resamples)",
        "position alone (%)",
        "shuffled (%)",
    ];
    Table {
        name: "Table 1",
        label: format!("{TABLE}-{}", functions.file.subject),
        title: format!("The head that does each thing best (Voita et al. 2019); {}", functions.file.title()),
        headings: ["Function", "of all heads"],
        columns: columns.map(str::to_owned).into(),
        rows: leaders(&functions.rows).into_iter().map(row).collect(),
        mark: Some(THRESHOLDS.to_owned()),
        summary: vec![
            "position alone: how often the partner stands at its most frequent relative position".to_owned(),
        ],
        ..Table::default()
    }
}

/// How many heads of each layer have each function, a panel for each attention type: Figures 1c and 2b.
pub fn figure1c(functions: &Functions) -> Chart {
    let found = census(&functions.rows, false);
    let mut attentions: Vec<Attention> = found.keys().map(|(attention, _)| *attention).collect();
    attentions.dedup();
    let panel = |(place, attention): (usize, &Attention)| {
        let layers: Vec<_> = found.iter().filter(|((own, _), _)| own == attention).collect();
        let counts = |name: &'static str, of: fn(&LayerCensus) -> Option<usize>| {
            let counts: Vec<_> = layers.iter().map(|(_, layer)| (of(layer), layer.heads)).collect();
            counts.iter().any(|(count, _)| count.is_some()).then_some((name, counts))
        };
        let rows: Vec<_> = [
            counts("positional", |layer| layer.positional),
            counts("syntactic", |layer| layer.syntactic),
            counts("rare tokens", |layer| layer.rare),
            counts("other", |layer| layer.other),
        ]
        .into_iter()
        .flatten()
        .collect();
        let drawn = cells(rows.len(), layers.len(), |row, layer| {
            let (count, heads) = rows[row].1[layer];
            let text = count.map(|count| count.to_string()).unwrap_or_default();
            Cell { value: count.map(|count| count as f64 / heads as f64), text, ..Cell::default() }
        });
        let y = Axis::named("", rows.iter().map(|(name, _)| vec![(*name).to_owned()]).collect()).downwards();
        let x = Axis::named("layer", layers.iter().map(|((_, layer), _)| vec![layer.to_string()]).collect());
        let name = if attentions.len() > 1 { attention.to_string() } else { String::new() };
        Panel::new(name, [x, if place == 0 { y } else { y.silent() }], 14.0 * rows.len() as f64, vec![drawn])
    };
    Chart {
        name: "Figures 1c and 2b",
        label: format!("{CENSUS}-{}", functions.file.subject),
        title: format!("What the heads of each layer do (Voita et al. 2019); {}", functions.file.title()),
        notes: vec![
            "numbers: heads of a layer; the darker, the greater their share of it".to_owned(),
            format!("a head counts that {THRESHOLDS}; it may have several functions"),
        ],
        width: if attentions.len() > 1 { TEXT } else { COLUMN },
        columns: attentions.len(),
        panels: attentions.iter().enumerate().map(panel).collect(),
        ..Chart::default()
    }
}
