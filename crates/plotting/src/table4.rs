//! Table 4: segments a second with all heads and without some (Michel et al. 2019, Section 4.3).
use records::SpeedRow;
use stats::Metric;

use crate::number::{count, decimals, signed, tenths};
use crate::paper::PublishedSpeed;
use crate::speed::Speed;
use crate::table::{Cell, Row, Table};

/// Name of its files, without extension.
pub const FILE_STEM: &str = "table4";

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Two tables for each share of removed heads: speed, and what is saved.
pub fn tables(speed: &Speed, published: &[PublishedSpeed]) -> Vec<Table> {
    speed.shares().flat_map(|rows| [speeds(speed, rows, published), costs(speed, rows)]).collect()
}

/// Ours beside the paper's speedup where it has one for as many heads and the same batch size.
fn speeds(speed: &Speed, rows: &[SpeedRow], published: &[PublishedSpeed]) -> Table {
    let mut columns = vec!["original", "pruned", "speedup (%)", "95 % interval", "predicted (%)"];
    let is_comparable = rows.iter().any(|row| paper_speedup(row, published).is_some());
    columns.extend(is_comparable.then_some("paper (%)"));
    let unit = Unit::of(speed);
    let slowest = rows.iter().flat_map(|row| {
        [row.original_per_second, row.pruned_per_second].map(|segments| segments * unit.of_a_segment(row))
    });
    // As many digits for all, but at least one, as in the paper.
    let digits = decimals(slowest.fold(f64::INFINITY, f64::min)).max(1);
    let row = |row: &SpeedRow| {
        let mut cells = cells(row, unit, digits);
        cells.push(Cell::plain(
            paper_speedup(row, published).map_or(String::new(), |speedup| signed(speedup, 1)),
        ));
        cells.truncate(columns.len());
        Row { label: row.batch_size.to_string(), cells }
    };
    Table {
        name: "Table 4",
        label: label(speed, rows, FILE_STEM),
        title: format!("{} a second, original and {}; {}", unit.name(), without(rows), title(speed)),
        row_heading: "Batch size",
        column_heading: "Speed",
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        rows: rows.iter().map(row).collect(),
        column_groups: Vec::new(),
        mark: Some("the 95 % interval of the speedup does not hold 0".to_owned()),
        summary: speed_summary(speed, rows),
        remarks: remarks(speed, rows, published),
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Texts or sentences.
    Segments,
    /// Tokens that a language model reads.
    Read,
    /// Tokens that a language model produces.
    Produced,
}

impl Unit {
    fn of(speed: &Speed) -> Self {
        match speed.file.origin.identity() {
            Some(identity) if identity.arguments.contains_key("continue_by") => Self::Produced,
            Some(identity) if identity.metric.starts_with(Metric::Nats.name()) => Self::Read,
            _ => Self::Segments,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Segments => "Segments",
            Self::Read => "Tokens read",
            Self::Produced => "Tokens produced",
        }
    }

    /// How many a segment has, on average.
    fn of_a_segment(self, row: &SpeedRow) -> f64 {
        match self {
            Self::Segments => 1.0,
            Self::Read | Self::Produced => row.tokens as f64 / row.segments as f64,
        }
    }
}

fn cells(row: &SpeedRow, unit: Unit, digits: usize) -> Vec<Cell> {
    let scale = unit.of_a_segment(row);
    let rate = |mean: f64, deviation: f64| {
        Cell::plain(format!("{:.digits$} \u{b1} {:.digits$}", mean * scale, deviation * scale))
    };
    let [speedup, low, high, predicted] =
        [row.ratio, row.ratio_low, row.ratio_high, row.predicted_ratio].map(percent_more);
    vec![
        rate(row.original_per_second, row.original_deviation),
        rate(row.pruned_per_second, row.pruned_deviation),
        Cell { text: speedup, marked: row.ratio_low > 1.0 || row.ratio_high < 1.0 },
        Cell::plain(format!("{low} to {high}")),
        Cell::plain(predicted),
    ]
}

fn speed_summary(speed: &Speed, rows: &[SpeedRow]) -> Vec<String> {
    let repeats = range(rows, "repeat", |row| row.repeats);
    let segments = range(rows, "segment", |row| row.segments);
    let mut summary = vec![
        format!("mean \u{b1} standard deviation of {repeats} over {segments}, both models in turn, after one to warm up"),
        "speedup: geometric mean over pairs of neighbouring passes; predicted: the speedup if time were only \
         multiply-adds"
            .to_owned(),
        which_heads(speed),
    ];
    summary.extend(continuation(speed));
    summary.extend(speed.file.origin.estimate().departures());
    summary.extend(speed.file.origin.machine().map(|machine| format!("measured on {machine}")));
    summary.extend(neighbours(rows));
    if !speed.is_finished() {
        summary.push("not finished: the run was killed or is still going, so rows may be missing".to_owned());
    }
    summary
}

/// How texts were continued, if they were.
fn continuation(speed: &Speed) -> Option<String> {
    let tokens = speed.file.origin.identity()?.arguments.get("continue_by")?.as_u64()?;
    Some(format!(
        "each segment is continued by {}, greedily and with a cache",
        count(tokens as usize, "token")
    ))
}

/// What other processes took while the rows were timed, if that is known of all.
fn neighbours(rows: &[SpeedRow]) -> Option<String> {
    let shares: Vec<f64> = rows.iter().map(|row| row.neighbours).collect::<Option<_>>()?;
    let most = shares.into_iter().fold(0.0, f64::max);
    Some(format!("other processes took at most {} % of the machine's processor time", tenths(100.0 * most)))
}

/// Which heads were removed, as far as the signature says.
fn which_heads(speed: &Speed) -> String {
    let identity = speed.file.origin.identity();
    let order = identity.and_then(|identity| identity.arguments.get("order")?.as_str());
    let heads = match order {
        None | Some("importance") => "the least important heads are removed".to_owned(),
        Some(order) => format!("heads are removed in the order {order}"),
    };
    let data = speed.file.origin.estimate().data();
    heads + &data.map_or(String::new(), |data| format!(", estimated on {data}"))
}

fn remarks(speed: &Speed, rows: &[SpeedRow], published: &[PublishedSpeed]) -> Vec<String> {
    let mut remarks = Vec::new();
    if rows.iter().any(|row| paper_speedup(row, published).is_some()) {
        let speeds = published.chunk_by(|left, right| left.batch_size == right.batch_size);
        let speeds = speeds.map(|models| {
            let speeds = models.iter().map(|model| format!("{:.1}", model.examples_per_second));
            format!("{} in batches of {}", speeds.collect::<Vec<_>>().join(" and "), models[0].batch_size)
        });
        remarks.push(format!(
            "paper: Michel et al. (2019), Table 4, BERT on MNLI matched, original and without half of its heads, examples \
             a second: {}",
            speeds.collect::<Vec<_>>().join("; ")
        ));
    }
    remarks.extend(speed.file.remark());
    remarks
}

/// What one pass computes and holds.
fn costs(speed: &Speed, rows: &[SpeedRow]) -> Table {
    let mut columns = vec!["multiply-adds", "pruned", "change (%)"];
    let has_memory = rows.iter().any(|row| row.original_peak_bytes.or(row.pruned_peak_bytes).is_some());
    columns.extend(has_memory.then_some(["memory", "pruned", "change (%)"]).into_iter().flatten());
    let row = |row: &SpeedRow| {
        let each = |all: u64| Some(all as f64 / row.segments as f64 / 1e6);
        let mut cells = before_after(each(row.original_multiply_adds), each(row.pruned_multiply_adds));
        let mebibytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / MEBIBYTE);
        cells.extend(before_after(mebibytes(row.original_peak_bytes), mebibytes(row.pruned_peak_bytes)));
        cells.truncate(columns.len());
        Row { label: row.batch_size.to_string(), cells }
    };
    Table {
        name: "Costs beside Table 4",
        label: label(speed, rows, "costs"),
        title: format!("What is computed and held, original and {}; {}", without(rows), title(speed)),
        row_heading: "Batch size",
        column_heading: "Costs",
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        rows: rows.iter().map(row).collect(),
        column_groups: Vec::new(),
        mark: None,
        summary: cost_summary(speed, rows, has_memory),
        remarks: Vec::new(),
    }
}

fn cost_summary(speed: &Speed, rows: &[SpeedRow], has_memory: bool) -> Vec<String> {
    let parameters = rows.first().map(|row| {
        let [original, pruned] =
            [row.original_parameters, row.pruned_parameters].map(|count| count as f64 / 1e6);
        let change = percent_change(original, pruned);
        format!(
            "parameters: {} million, pruned {} ({change} %)",
            three_digits(original),
            three_digits(pruned)
        )
    });
    let translates = speed.file.origin.identity().is_some_and(|identity| identity.metric.starts_with("BLEU"));
    // removed heads change how many steps the search of a translation takes
    let free = if translates { ", of as many steps as each model's own translations take" } else { "" };
    let arithmetic = format!("multiply-adds: millions for a segment, padding included{free}");
    let memory = "memory: the most that a process held which made one pass, in MiB".to_owned();
    parameters.into_iter().chain([arithmetic]).chain(has_memory.then_some(memory)).collect()
}

/// Both numbers and the change in percent; empty where there are none.
fn before_after(original: Option<f64>, pruned: Option<f64>) -> Vec<Cell> {
    let number = |value: Option<f64>| value.map_or(String::new(), three_digits);
    let change = original.zip(pruned).map(|(original, pruned)| percent_change(original, pruned));
    [number(original), number(pruned), change.unwrap_or_default()].map(Cell::plain).into()
}

fn three_digits(value: f64) -> String {
    format!("{value:.0$}", decimals(value))
}

fn percent_change(original: f64, pruned: f64) -> String {
    percent_more(pruned / original)
}

/// A ratio as what it is more than 1, in percent: `+17.5`.
fn percent_more(ratio: f64) -> String {
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
    rows.first().map_or(String::new(), |row| {
        format!("without {} of {} ({} %)", row.removed, count(row.heads, "head"), tenths(percent(row)))
    })
}

fn title(speed: &Speed) -> String {
    speed.file.origin.title(&speed.file.subject)
}

/// A label of its own for each share: `table4-demo-inference-16`.
fn label(speed: &Speed, rows: &[SpeedRow], stem: &str) -> String {
    let removed = rows.first().map_or(0, |row| row.removed);
    format!("{stem}-{}-{removed}", speed.file.subject)
}

/// Share of the heads that were removed, in percent.
fn percent(row: &SpeedRow) -> f64 {
    100.0 * row.removed as f64 / row.heads as f64
}

/// The published speedup at the same batch size, of a share that is ours but for less than one head.
fn paper_speedup(row: &SpeedRow, published: &[PublishedSpeed]) -> Option<f64> {
    let is_near = |share: f64| (share / 100.0 * row.heads as f64 - row.removed as f64).abs() < 1.0;
    let mut same = published.iter().filter(|paper| paper.batch_size == row.batch_size);
    same.find(|paper| paper.pruned_percent().is_some_and(is_near))?.speedup_percent
}

#[cfg(test)]
mod tests {
    use records::Identity;

    use super::*;
    use crate::origin::tests::origin;
    use crate::speed::tests::{row, speed};

    fn published() -> Vec<PublishedSpeed> {
        let row = |batch_size, model: &str, examples_per_second, speedup_percent| PublishedSpeed {
            batch_size,
            model: model.to_owned(),
            examples_per_second,
            standard_deviation: 0.5,
            speedup_percent,
        };
        vec![
            row(1, "original", 17.0, None),
            row(1, "pruned-50", 17.5, Some(2.5)),
            row(4, "original", 60.0, None),
            row(4, "pruned-50", 66.0, Some(10.0)),
        ]
    }

    fn terminal(speed: &Speed, published: &[PublishedSpeed]) -> String {
        let tables: Vec<_> = tables(speed, published).iter().map(Table::terminal).collect();
        anstream::adapter::strip_str(&tables.join("\n")).to_string()
    }

    /// In batches of 1: 1.1 is 10 % more; 9 and 7.2 million multiply-adds for 9 segments are 1 and 0.8 million for each.
    /// In batches of 8, which the paper has not: slower, by 0.98; 3 and 2.25 MiB.
    #[test]
    fn each_batch_size_has_its_speedup_and_its_costs() {
        let slower = SpeedRow {
            original_per_second: 1234.56,
            pruned_per_second: 1210.0,
            ratio: 0.98,
            ratio_low: 0.95,
            ratio_high: 1.01,
            original_peak_bytes: Some(3 << 20),
            pruned_peak_bytes: Some(9 << 18),
            repeats: 3,
            neighbours: Some(0.125),
            ..row(36, 8)
        };
        let identity =
            Identity { precision: "f32".to_owned(), ..crate::estimate::tests::identity("token", true, 0.5) };
        let mut speed = speed(vec![row(36, 1), slower]);
        speed.file.origin = origin(identity, true);
        let expected = "\
Table 4. Segments a second, original and without 36 of 72 heads (50 %); demo-x (demo language), test

                    Speed
Batch size       original          pruned     speedup (%)   95 % interval   predicted (%)       paper (%)
         1    100.0 ± 2.0     110.0 ± 3.0           +10.0*  +5.0 to +15.0           +25.0            +2.5
         8   1234.6 ± 2.0    1210.0 ± 3.0            -2.0    -5.0 to +1.0           +25.0

* the 95 % interval of the speedup does not hold 0
mean ± standard deviation of 3 to 5 repeats over 9 segments, both models in turn, after one to warm up
speedup: geometric mean over pairs of neighbouring passes; predicted: the speedup if time were only multiply-adds
the least important heads are removed, estimated on 2000 segments of train
importance by token
measured on cpu with 2 threads (linux x86_64), f32
other processes took at most 12.5 % of the machine's processor time
paper: Michel et al. (2019), Table 4, BERT on MNLI matched, original and without half of its heads, examples a second: \
17.0 and 17.5 in batches of 1; 60.0 and 66.0 in batches of 4

Costs beside Table 4. What is computed and held, original and without 36 of 72 heads (50 %); demo-x (demo language), test

                    Costs
Batch size  multiply-adds          pruned      change (%)          memory          pruned      change (%)
         1           1.00           0.800           -20.0
         8           1.00           0.800           -20.0            3.00            2.25           -25.0

parameters: 4.00 million, pruned 3.00 (-25.0 %)
multiply-adds: millions for a segment, padding included
memory: the most that a process held which made one pass, in MiB
";
        let found = terminal(&speed, &published());
        assert_eq!(found, expected, "\n{found}");
    }

    #[test]
    fn a_translator_takes_as_many_steps_as_it_likes() {
        let mut speed = speed(vec![row(36, 1)]);
        let says = |speed: &Speed| terminal(speed, &[]).contains("as each model's own translations take");
        assert!(!says(&speed));
        let identity = Identity {
            metric: "BLEU|nrefs:1".to_owned(),
            ..crate::estimate::tests::identity("token", true, 0.5)
        };
        speed.file.origin = origin(identity, true);
        assert!(says(&speed));
    }

    /// 9 segments of 45 tokens, 5 each: 100 and 110 segments a second are 500 and 550 tokens.
    #[test]
    fn speed_of_a_language_model_is_in_tokens() {
        let mut speed = speed(vec![row(36, 1)]);
        let mut identity =
            Identity { metric: "nats".to_owned(), ..crate::estimate::tests::identity("token", true, 0.5) };
        speed.file.origin = origin(identity.clone(), true);
        let read = terminal(&speed, &[]);
        assert!(read.starts_with("Table 4. Tokens read a second, original and without 36"), "{read}");
        assert!(read.contains("500.0 \u{b1} 10.0    550.0 \u{b1} 15.0"), "{read}");
        identity.arguments.insert("continue_by".to_owned(), 1.into());
        speed.file.origin = origin(identity, true);
        let produced = terminal(&speed, &[]);
        assert!(produced.starts_with("Table 4. Tokens produced a second"), "{produced}");
        assert!(
            produced.contains("each segment is continued by 1 token, greedily and with a cache"),
            "{produced}"
        );
    }

    #[test]
    fn only_half_of_the_heads_is_compared_with_the_paper() {
        let of = |removed, heads| {
            let row = SpeedRow { heads, ..row(removed, 4) };
            paper_speedup(&row, &published())
        };
        assert_eq!([of(36, 72), of(4, 9), of(5, 9)], [Some(10.0); 3]);
        assert_eq!([of(35, 72), of(37, 72), of(18, 72), of(6, 9)], [None; 4]);
        let quarter = terminal(&speed(vec![row(18, 4)]), &published());
        assert!(!quarter.contains("paper"), "{quarter}");
        assert!(terminal(&speed(vec![row(36, 4)]), &published()).contains("paper (%)"));
        assert!(!terminal(&speed(vec![row(36, 4)]), &[]).contains("paper"));
    }

    #[test]
    fn each_share_has_tables_of_its_own() {
        let speed = speed(vec![row(36, 1), row(18, 1), row(18, 4)]);
        let labels: Vec<_> = tables(&speed, &[]).iter().map(|table| table.label.clone()).collect();
        assert_eq!(labels, ["table4-demo-x-18", "costs-demo-x-18", "table4-demo-x-36", "costs-demo-x-36"]);
        let text = terminal(&speed, &[]);
        assert_eq!(text.matches("not finished").count(), 2);
        assert!(text.contains("without 18 of 72 heads (25 %)"), "{text}");
        assert!(text.contains("split unknown: no signature beside `a.csv`"), "{text}");
        assert!(!text.contains("memory") && !text.contains("measured on"), "{text}");
    }

    #[test]
    fn slow_models_have_digits_too() {
        let slow = SpeedRow {
            original_per_second: 0.25,
            original_deviation: 0.01,
            pruned_per_second: 0.5,
            repeats: 1,
            segments: 1,
            ..row(36, 1)
        };
        let text = terminal(&speed(vec![slow]), &[]);
        assert!(text.contains("0.250 ± 0.010"), "{text}");
        assert!(text.contains("of 1 repeat over 1 segment, both"), "{text}");
    }

    #[test]
    fn another_order_is_named() {
        let mut identity = crate::estimate::tests::identity("example", true, 0.5);
        identity.arguments.insert("order".to_owned(), "random".into());
        let mut speed = speed(vec![row(36, 1)]);
        speed.file.origin = origin(identity, false);
        let text = terminal(&speed, &[]);
        assert!(text.contains("heads are removed in the order random"), "{text}");
        assert!(text.contains("not finished"), "{text}");
    }

    #[test]
    fn latex_has_true_signs_and_underlines_what_is_sure() {
        let latex = tables(&speed(vec![row(36, 1)]), &published())[0].latex();
        let line = r"    1 & 100.0 $\pm$ 2.0 & 110.0 $\pm$ 3.0 & \underline{$+$10.0} & $+$5.0 to $+$15.0 & $+$25.0 & $+$2.5 \\";
        assert!(latex.contains(line), "{latex}");
    }
}
