//! Table 4: segments per second of the full model and with heads removed (Michel et al. 2019, Section 4.3).
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::results::percent;
use crate::findings::{PAPER, Speed, experiment};
use charts::table::{Cell, Row, Table};
use records::SpeedRow;
use words::{count, decimals, fixed, percent_more, signed, tenths};

use crate::view::{by_name, sheet};

const STEM: &str = "table4";

/// Two tables for each share of removed heads: speed, and savings.
pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "speed", chapter::SPEED],
    "Segments per second with all heads and with some removed, and other savings",
    Reads::Each(experiment::SPEED),
    |file, _, left_out| {
        let folded = left_out.keep(Speed::folded(&file)).flatten();
        let folded = folded.as_ref().map(|folded| &folded.rows[..]).unwrap_or_default();
        let found = Speed::of_file(file)?;
        let tables = found.shares().flat_map(|rows| [speeds(&found, rows, folded), costs(&found, rows)]);
        Ok(vec![sheet(&found.file, STEM, None, tables)])
    },
);

const FOLDED: &str = "folded: the speedup if the mean outputs of the removed heads are folded into the bias of the output projection, timed \
     separately against the original";

pub(super) const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Returns a table with a distinct label for each share: `table4-demo-inference-16`.
fn table(
    (speed, rows): (&Speed, &[SpeedRow]),
    name: &'static str,
    stem: &str,
    title: impl std::fmt::Display,
) -> Table {
    let SpeedRow { removed, heads, .. } = rows[0];
    let percent = tenths(percent(removed, heads));
    let without = format!("original and without {removed} of {} ({percent}%)", count(heads, "head"));
    let table = Table::new(name, speed.file.label(stem), speed.file.titled(format!("{title}, {without}")));
    Table { label: format!("{}-{removed}", table.label), ..table }
}

/// Compares speeds, with the paper's speedup if it has one for the share and batch size.
fn speeds(speed: &Speed, rows: &[SpeedRow], folded: &[SpeedRow]) -> Table {
    let folded = |row: &SpeedRow| {
        let key = |row: &SpeedRow| (row.removed_heads.clone(), row.batch_size);
        folded.iter().find(|folded| key(folded) == key(row))
    };
    let has_folded = rows.iter().any(|row| folded(row).is_some());
    let speedup = |row: &SpeedRow| PAPER.speedup(row).filter(|_| speed.is_beside_bert());
    let is_comparable = rows.iter().any(|row| speedup(row).is_some());
    let (unit, of_a_segment) = speed.unit();
    let speeds = rows.iter().flat_map(|row| {
        [row.original_per_second, row.pruned_per_second].map(|segments| segments * of_a_segment(row))
    });
    // the same number of decimals in all cells, at least one, as in the paper
    let digits = decimals(speeds.fold(f64::INFINITY, f64::min)).max(1);
    let row = |row: &SpeedRow| {
        let rate = |mean: f64, deviation: f64| {
            let [mean, deviation] = [mean, deviation].map(|each| each * of_a_segment(row));
            Cell::number(format!("{} \u{b1} {}", fixed(mean, digits), fixed(deviation, digits)), mean)
        };
        let paper = speedup(row).map(|more| Cell::printed(more, |more| signed(more, 1)));
        let ours = |row: &SpeedRow| speedup_cells(row.ratio, (row.ratio_low, row.ratio_high));
        let [speedup, interval] = ours(row);
        let mut cells = vec![
            ("original", rate(row.original_per_second, row.original_deviation)),
            ("pruned", rate(row.pruned_per_second, row.pruned_deviation)),
            ("speedup (%)", speedup),
            ("95% interval", interval),
            ("predicted (%)", more(row.predicted_ratio)),
        ];
        let folded = has_folded.then(|| folded(row).map(ours).unwrap_or_default());
        cells.extend(
            folded.into_iter().flat_map(|cells| ["folded (%)", "95% interval"].into_iter().zip(cells)),
        );
        cells.extend(is_comparable.then(|| ("paper (%)", paper.into())));
        (row.batch_size.into(), cells)
    };
    let table = table((speed, rows), "Table 4", STEM, format!("{unit} per second"));
    let table = by_name(table, ["Batch size", "Speed"], rows.iter().map(row))
        .mark("the 95% interval of the speedup does not contain 0".to_owned());
    with_conditions(table, speed, rows)
        .note(has_folded.then_some(FOLDED))
        .remark(is_comparable.then(|| PAPER.sentence("table4")))
}

/// Adds the conditions of the measurement.
fn with_conditions(table: Table, speed: &Speed, rows: &[SpeedRow]) -> Table {
    let [repeats, segments] =
        [range(rows, "repeat", |row| row.repeats), range(rows, "segment", |row| row.segments)];
    let neighbours: Option<Vec<f64>> = rows.iter().map(|row| row.neighbours).collect();
    let neighbours = neighbours.map(|shares| {
        let most = tenths(100.0 * shares.into_iter().fold(0.0, f64::max));
        format!("other processes took at most {most}% of the machine's processor time")
    });
    let continued = speed.file.number("continue_by").map(|tokens| {
        format!("each segment is continued by {}, greedily and with a cache", count(tokens as usize, "token"))
    });
    table
        .note(format!(
            "mean \u{b1} standard deviation of {repeats} over {segments}, both models in turn, after one warm-up pass"
        ))
        .note(
            "speedup: geometric mean over pairs of neighbouring passes; predicted: the speedup if time were \
             proportional to multiply-adds",
        )
        .note(which_heads(speed))
        .note(continued)
        .note(speed.file.departures())
        .note(speed.file.machine().map(|machine| format!("measured on {machine}")))
        .note(neighbours)
}

/// Describes how the removed heads were chosen, as far as the signature records it.
fn which_heads(speed: &Speed) -> String {
    let heads = match speed.file.text("order") {
        None | Some("importance") => "the least important heads are removed".to_owned(),
        Some(order) => format!("order of removal: {order}"),
    };
    heads + &speed.file.estimated_on().map_or(String::new(), |data| format!(", estimated on {data}"))
}

/// Tabulates the costs of one pass: computation and memory.
fn costs(speed: &Speed, rows: &[SpeedRow]) -> Table {
    let has_memory = rows.iter().any(|row| row.original_peak_bytes.or(row.pruned_peak_bytes).is_some());
    let names = ["multiply-adds", "pruned", "change (%)", "memory", "pruned", "change (%)"];
    let names = &names[..if has_memory { 6 } else { 3 }];
    let row = |row: &SpeedRow| {
        let each = |all: u64| Some(all as f64 / row.segments as f64 / 1e6);
        let mebibytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / MEBIBYTE);
        let computed = before_after(each(row.original_multiply_adds), each(row.pruned_multiply_adds));
        let held = before_after(mebibytes(row.original_peak_bytes), mebibytes(row.pruned_peak_bytes));
        Row::new(row.batch_size, computed.into_iter().chain(held)).cut(names.len())
    };
    let [original, pruned] = [rows[0].original_parameters, rows[0].pruned_parameters].map(|n| n as f64 / 1e6);
    let ([before, after], more) = ([original, pruned].map(three_digits), percent_more(pruned / original));
    // removing heads changes the lengths of translations and so the number of decoding steps
    let translates = speed.has_metric("BLEU");
    let free = if translates { ", for the decoding steps of each model's own translations" } else { "" };
    table((speed, rows), "Other costs", "costs", "Computation and memory")
        .columns(["Batch size", "Costs"], names.iter().copied())
        .rows(rows.iter().map(row))
        .note(format!("parameters: {before} million, pruned {after} ({more}%)"))
        .note(format!("multiply-adds: millions per segment, including padding{free}"))
        .note(has_memory.then_some("memory: peak of a process that makes one pass, in MiB"))
}

/// Returns both numbers and the change in percent; empty if unknown.
fn before_after(original: Option<f64>, pruned: Option<f64>) -> [Cell; 3] {
    let number = |value: Option<f64>| value.map(|value| Cell::printed(value, three_digits)).into();
    let change = original.zip(pruned).map(|(original, pruned)| more(pruned / original));
    [number(original), number(pruned), change.into()]
}

/// Returns a speedup and its interval in percent, marked if the interval excludes 0.
pub(super) fn speedup_cells(ratio: f64, ends: (f64, f64)) -> [Cell; 2] {
    [more(ratio).marked(ends.0 > 1.0 || ends.1 < 1.0), Cell::interval(ends, percent_more)]
}

fn more(ratio: f64) -> Cell {
    Cell::number(percent_more(ratio), 100.0 * (ratio - 1.0))
}

fn three_digits(value: f64) -> String {
    fixed(value, decimals(value))
}

/// Formats a range of counts: `9815 segments`, `5 to 10 repeats`.
fn range(rows: &[SpeedRow], noun: &str, number: fn(&SpeedRow) -> usize) -> String {
    let numbers = || rows.iter().map(number);
    let (low, high) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    let counted = count(high, noun);
    if low == high { counted } else { format!("{low} to {counted}") }
}
