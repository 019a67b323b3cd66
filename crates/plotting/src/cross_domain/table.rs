//! Figure 2 in numbers: how far two splits agree, and how far noise lets them.
use records::CorrelationRow;

use super::CrossDomain;
use crate::number::{p_value, signed, tenths};
use crate::table::{Cell, Row, Table};

/// Digits after the point.
const DECIMALS: usize = 2;
/// Below this, less than half of what an axis shows is the heads' doing.
const RELIABLE: f64 = 0.5;

/// How to read r, its interval and its ceiling.
pub const HOW_TO_READ: &str = "reliability: the share of the differences between heads that another test set of the same kind \
                               would show again (split halves); ceiling: the greatest r that the noise of both axes leaves, \
                               absent where one axis is noise only; an r near its ceiling is full agreement, an r near 0 means \
                               something only below a high ceiling";

/// The columns of [`cells`].
pub const COLUMNS: [&str; 8] =
    ["heads", "r", "95 % interval", "p of r", "reliability", "ceiling of r", "rho", "top heads shared"];

/// One row for all heads and one for each attention type.
pub fn figure2_table(comparison: &CrossDomain) -> Table {
    let row = |row: &CorrelationRow| {
        let texts = cells(row).into_iter().chain([reading(row)]);
        Row { label: row.attention.clone(), cells: texts.map(Cell::plain).collect() }
    };
    let base = |name: &str, base| format!("base {} on {name}", comparison.first.metric.amount(base));
    let (first, second) = (&comparison.first, &comparison.second);
    Table {
        name: "Figure 2",
        label: format!("figure2-{}-{}", comparison.pair.file.subject, comparison.pair.second),
        title: format!(
            "Pearson's r and Spearman's \u{3c1} between the scores with one head masked, {}; {}",
            first.metric.label(),
            comparison.title()
        ),
        row_heading: "Attention",
        column_heading: "Agreement",
        columns: COLUMNS.into_iter().chain(["reading"]).map(str::to_owned).collect(),
        rows: comparison.rows().map(row).collect(),
        column_groups: Vec::new(),
        mark: None,
        summary: vec![
            format!(
                "{}, {}",
                base(&comparison.pair.first, first.base),
                base(&comparison.pair.second, second.base)
            ),
            "interval of r: jackknife over the segments of both splits".to_owned(),
            HOW_TO_READ.to_owned(),
        ],
        remarks: comparison.pair.file.remark().into_iter().collect(),
    }
}

/// The numbers of a row; empty where they are undefined or were not measured.
pub fn cells(row: &CorrelationRow) -> [String; 8] {
    let number =
        |value: Option<f64>| value.map_or(String::new(), |value| signed(value, DECIMALS).replace('+', ""));
    let interval = row.pearson_low.zip(row.pearson_high);
    let reliability = [row.first_reliability, row.second_reliability];
    let both =
        || reliability.map(|value| value.map_or("?".to_owned(), |value| number(Some(value)))).join(", ");
    [
        row.heads.to_string(),
        number(row.pearson),
        interval
            .map_or(String::new(), |(low, high)| format!("{} to {}", number(Some(low)), number(Some(high)))),
        row.pearson_p_value.map_or(String::new(), p_value),
        if reliability == [None; 2] { String::new() } else { both() },
        number(row.pearson_ceiling),
        number(row.spearman),
        format!(
            "{} of {} ({} by chance)",
            tenths(row.top_overlap),
            row.top,
            tenths(row.top_overlap_by_chance)
        ),
    ]
}

/// What r says once noise is taken into account.
pub fn reading(row: &CorrelationRow) -> String {
    let Some(r) = row.pearson else { return "undefined: all heads are equal on one split".to_owned() };
    let reliability = [row.first_reliability, row.second_reliability];
    let Some(ceiling) = row.pearson_ceiling else {
        let is_measured = reliability != [None; 2];
        return if is_measured { "noise: one axis is noise only" } else { "noise was not measured" }
            .to_owned();
    };
    let Some((low, high)) = row.pearson_low.zip(row.pearson_high) else {
        return "the interval of r was not computed".to_owned();
    };
    let least = reliability.into_iter().flatten().fold(1.0, f64::min);
    if low > 0.0 {
        return format!("agreement, without noise about {:.DECIMALS$}", (r / ceiling).min(1.0));
    }
    let reading = match least < RELIABLE {
        _ if high < 0.0 => "disagreement",
        true => "noise: it hides more than half of an axis",
        false => "no agreement",
    };
    reading.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cross_domain::tests::{correlation, cross_domain};

    const POINTS: [(&str, [f64; 2]); 3] =
        [("enc-enc", [29.0, 19.0]), ("enc-enc", [28.0, 18.0]), ("enc-enc", [27.0, 18.5])];

    fn row(r: f64, interval: Option<(f64, f64)>, reliability: [Option<f64>; 2]) -> CorrelationRow {
        let ceiling = reliability[0].zip(reliability[1]).map(|(first, second)| first * second);
        CorrelationRow {
            pearson: Some(r),
            pearson_low: interval.map(|(low, _)| low),
            pearson_high: interval.map(|(_, high)| high),
            first_reliability: reliability[0],
            second_reliability: reliability[1],
            pearson_ceiling: ceiling.filter(|product| *product > 0.0).map(f64::sqrt),
            ..correlation("all", &POINTS)
        }
    }

    /// r = 0.4 below a ceiling of sqrt(0.25 · 1) = 0.5 would be 0.8 without noise.
    #[test]
    fn noise_and_truth_are_told_apart() {
        let around_zero = Some((-0.2, 0.2));
        let read = |r, interval, reliability| reading(&row(r, interval, reliability));
        let noise = "noise: it hides more than half of an axis";
        assert_eq!(read(0.0, around_zero, [Some(0.05), Some(0.1)]), noise);
        assert_eq!(read(0.0, around_zero, [Some(0.9), Some(0.8)]), "no agreement");
        assert_eq!(read(0.0, around_zero, [Some(-0.1), Some(0.8)]), "noise: one axis is noise only");
        assert_eq!(read(0.0, around_zero, [None; 2]), "noise was not measured");
        let agreement = read(0.4, Some((0.1, 0.6)), [Some(0.25), Some(1.0)]);
        assert_eq!(agreement, "agreement, without noise about 0.80");
        assert_eq!(read(-0.5, Some((-0.7, -0.1)), [Some(0.9), Some(0.8)]), "disagreement");
        assert_eq!(read(0.4, None, [Some(0.9), Some(0.8)]), "the interval of r was not computed");
    }

    #[test]
    fn the_table_has_interval_reliability_and_ceiling() {
        let comparison = cross_domain(&POINTS, vec![correlation("all", &POINTS)]);
        let markdown = figure2_table(&comparison).markdown();
        let line = "| all | 3 | 0.50 | 0.25 to 0.95 | p \\< 0.001 | 0.90, 0.40 | 0.60 | -0.25 | 1 of 3 (0.3 by chance) | \
                    agreement, without noise about 0.83 |";
        assert!(markdown.contains(line), "{markdown}");
    }
}
