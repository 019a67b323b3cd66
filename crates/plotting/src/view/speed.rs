//! Table 4: segments a second with all heads and without some (Michel et al. 2019, Section 4.3).
use records::{Signature, SpeedRow};

use anyhow::Result;

use super::Context;
use crate::paper::{Paper, Published};
use crate::source::ResultFile;
use crate::table::{Cell, Row, Table, names};
use crate::words::{count, decimals, signed, tenths};

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "speed-bench";

/// Name of its files, without extension.
pub const STEM: &str = "table4";

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// How fast a model is with all its heads and without some.
#[derive(Debug, Clone)]
pub struct Speed {
    pub file: ResultFile,
    pub rows: Vec<SpeedRow>,
}

impl Speed {
    /// Reads a file of `speed-bench`.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        let rows: Vec<SpeedRow> = file.rows(EXPERIMENT)?;
        if let Some(Signature { identity, .. }) = &mut file.signature {
            // One that the split does not reach limits nothing.
            identity.limit = identity.limit.filter(|limit| rows.iter().all(|row| row.segments >= *limit));
        }
        Ok(Self { file, rows })
    }

    /// The rows by number of removed heads, each by batch size.
    fn shares(&self) -> impl Iterator<Item = &[SpeedRow]> {
        self.rows.chunk_by(|left, right| left.removed == right.removed)
    }

    fn metric(&self) -> &str {
        self.file.identity().map_or("", |identity| &identity.metric)
    }
}

/// Two tables for each share of removed heads: speed, and what is saved.
pub fn tables(speed: &Speed, context: Context<'_>) -> Vec<Table> {
    speed.shares().flat_map(|rows| [speeds(speed, rows, context.paper), costs(speed, rows)]).collect()
}

/// What is counted, and how many of them a segment has on average.
fn unit(speed: &Speed) -> (&'static str, fn(&SpeedRow) -> f64) {
    let tokens = |row: &SpeedRow| row.tokens as f64 / row.segments as f64;
    if speed.file.argument("continue_by").is_some() {
        ("Tokens produced", tokens)
    } else if speed.metric().starts_with("nats") {
        ("Tokens read", tokens)
    } else {
        ("Segments", |_| 1.0)
    }
}

/// Ours beside the paper's speedup where it has one for as many heads and the same batch size.
fn speeds(speed: &Speed, rows: &[SpeedRow], paper: Option<&Paper>) -> Table {
    let is_comparable = rows.iter().any(|row| paper_speedup(row, paper).is_some());
    let mut columns = names(&["original", "pruned", "speedup (%)", "95 % interval", "predicted (%)"]);
    columns.extend(is_comparable.then(|| "paper (%)".to_owned()));
    let (unit, of_a_segment) = unit(speed);
    let speeds = rows.iter().flat_map(|row| {
        [row.original_per_second, row.pruned_per_second].map(|segments| segments * of_a_segment(row))
    });
    // As many digits for all, but at least one, as in the paper.
    let digits = decimals(speeds.fold(f64::INFINITY, f64::min)).max(1);
    let row = |row: &SpeedRow| {
        let rate = |mean: f64, deviation: f64| {
            let [mean, deviation] = [mean, deviation].map(|each| each * of_a_segment(row));
            Cell::number(format!("{mean:.digits$} \u{b1} {deviation:.digits$}"), mean)
        };
        let more = |ratio: f64| Cell::number(percent_more(ratio), 100.0 * (ratio - 1.0));
        let [low, high] = [row.ratio_low, row.ratio_high].map(percent_more);
        let mut cells = vec![
            rate(row.original_per_second, row.original_deviation),
            rate(row.pruned_per_second, row.pruned_deviation),
            more(row.ratio).marked(row.ratio_low > 1.0 || row.ratio_high < 1.0),
            format!("{low} to {high}").into(),
            more(row.predicted_ratio),
        ];
        let paper = paper_speedup(row, paper).map(|speedup| Cell::number(signed(speedup, 1), speedup));
        cells.extend(is_comparable.then_some(paper.unwrap_or_default()));
        Row { label: row.batch_size.to_string(), cells }
    };
    Table {
        name: "Table 4",
        label: label(speed, rows, STEM),
        title: format!("{unit} a second, original and {}; {}", without(rows), speed.file.title()),
        headings: ["Batch size", "Speed"],
        columns,
        rows: rows.iter().map(row).collect(),
        mark: Some("the 95 % interval of the speedup does not hold 0".to_owned()),
        summary: summary(speed, rows),
        remarks: paper.filter(|_| is_comparable).map(paper_remark).into_iter().collect(),
        ..Table::default()
    }
}

fn summary(speed: &Speed, rows: &[SpeedRow]) -> Vec<String> {
    let (repeats, segments) =
        (range(rows, "repeat", |row| row.repeats), range(rows, "segment", |row| row.segments));
    let neighbours: Option<Vec<f64>> = rows.iter().map(|row| row.neighbours).collect();
    let neighbours = neighbours.map(|shares| {
        let most = tenths(100.0 * shares.into_iter().fold(0.0, f64::max));
        format!("other processes took at most {most} % of the machine's processor time")
    });
    let continued = speed.file.number("continue_by").map(|tokens| {
        format!("each segment is continued by {}, greedily and with a cache", count(tokens as usize, "token"))
    });
    [
        format!("mean \u{b1} standard deviation of {repeats} over {segments}, both models in turn, after one to warm up"),
        "speedup: geometric mean over pairs of neighbouring passes; predicted: the speedup if time were only \
         multiply-adds"
            .to_owned(),
        which_heads(speed),
    ]
    .into_iter()
    .chain(continued)
    .chain(speed.file.departures())
    .chain(speed.file.machine().map(|machine| format!("measured on {machine}")))
    .chain(neighbours)
    .collect()
}

/// Which heads were removed, as far as the signature says.
fn which_heads(speed: &Speed) -> String {
    let heads = match speed.file.text("order") {
        None | Some("importance") => "the least important heads are removed".to_owned(),
        Some(order) => format!("heads are removed in the order {order}"),
    };
    heads + &speed.file.estimated_on().map_or(String::new(), |data| format!(", estimated on {data}"))
}

fn paper_remark(paper: &Paper) -> String {
    let rows = paper.rows("table4");
    let batches = rows.chunk_by(|left, right| left.batch_size == right.batch_size);
    let speeds = batches.map(|models| {
        let speed = |model: &Published| Some(format!("{:.1}", model.examples_per_second?));
        let speeds = models.iter().filter_map(speed).collect::<Vec<_>>().join(" and ");
        format!("{speeds} in batches of {}", models[0].batch_size.unwrap_or(0))
    });
    format!(
        "paper: Michel et al. (2019), Table 4, BERT on MNLI matched, original and without half of its heads, examples a \
         second: {}",
        speeds.collect::<Vec<_>>().join("; ")
    )
}

/// What one pass computes and holds.
fn costs(speed: &Speed, rows: &[SpeedRow]) -> Table {
    let has_memory = rows.iter().any(|row| row.original_peak_bytes.or(row.pruned_peak_bytes).is_some());
    let mut columns = names(&["multiply-adds", "pruned", "change (%)"]);
    columns.extend(has_memory.then(|| names(&["memory", "pruned", "change (%)"])).into_iter().flatten());
    let row = |row: &SpeedRow| {
        let each = |all: u64| Some(all as f64 / row.segments as f64 / 1e6);
        let mebibytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / MEBIBYTE);
        let mut cells = before_after(each(row.original_multiply_adds), each(row.pruned_multiply_adds));
        cells.extend(before_after(mebibytes(row.original_peak_bytes), mebibytes(row.pruned_peak_bytes)));
        cells.truncate(columns.len());
        Row { label: row.batch_size.to_string(), cells }
    };
    let [original, pruned] = [rows[0].original_parameters, rows[0].pruned_parameters].map(|n| n as f64 / 1e6);
    // removed heads change how many steps the search of a translation takes
    let translates = speed.metric().starts_with("BLEU");
    let free = if translates { ", of as many steps as each model's own translations take" } else { "" };
    let memory = "memory: the most that a process held which made one pass, in MiB".to_owned();
    let [before, after] = [original, pruned].map(three_digits);
    Table {
        name: "Costs beside Table 4",
        label: label(speed, rows, "costs"),
        title: format!("What is computed and held, original and {}; {}", without(rows), speed.file.title()),
        headings: ["Batch size", "Costs"],
        rows: rows.iter().map(row).collect(),
        columns,
        summary: [
            format!("parameters: {before} million, pruned {after} ({} %)", percent_more(pruned / original)),
            format!("multiply-adds: millions for a segment, padding included{free}"),
        ]
        .into_iter()
        .chain(has_memory.then_some(memory))
        .collect(),
        ..Table::default()
    }
}

/// Both numbers and the change in percent; empty where there are none.
fn before_after(original: Option<f64>, pruned: Option<f64>) -> Vec<Cell> {
    let number =
        |value: Option<f64>| value.map_or(Cell::default(), |value| Cell::number(three_digits(value), value));
    let change = original.zip(pruned).map(|(original, pruned)| percent_more(pruned / original));
    vec![number(original), number(pruned), change.unwrap_or_default().into()]
}

fn three_digits(value: f64) -> String {
    format!("{value:.0$}", decimals(value))
}

/// A ratio as what it is more than 1, in percent: `+17.5`.
pub fn percent_more(ratio: f64) -> String {
    signed(100.0 * (ratio - 1.0), 1)
}

/// `9815 segments`, `5 to 10 repeats`.
fn range(rows: &[SpeedRow], noun: &str, number: fn(&SpeedRow) -> usize) -> String {
    let numbers = || rows.iter().map(number);
    let (low, high) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    let counted = count(high, noun);
    if low == high { counted } else { format!("{low} to {counted}") }
}

/// `without 36 of 72 heads (50 %)`.
fn without(rows: &[SpeedRow]) -> String {
    let SpeedRow { removed, heads, .. } = rows[0];
    let percent = tenths(100.0 * removed as f64 / heads as f64);
    format!("without {removed} of {} ({percent} %)", count(heads, "head"))
}

/// A label of its own for each share: `table4-demo-inference-16`.
fn label(speed: &Speed, rows: &[SpeedRow], stem: &str) -> String {
    format!("{stem}-{}-{}", speed.file.subject, rows[0].removed)
}

/// The published speedup at the same batch size, of a share that is ours but for less than one head.
pub fn paper_speedup(row: &SpeedRow, paper: Option<&Paper>) -> Option<f64> {
    let is_near = |share: f64| (share / 100.0 * row.heads as f64 - row.removed as f64).abs() < 1.0;
    let mut same = paper?.rows("table4").iter().filter(|paper| paper.batch_size == Some(row.batch_size));
    same.find(|paper| paper.pruned_percent().is_some_and(is_near))?.speedup_percent
}
