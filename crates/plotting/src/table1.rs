//! Table 1: what masking one head does to the score (Michel et al. 2019, Section 3.2).
use std::collections::BTreeMap;

use records::AblationRow;

use crate::Error;
use crate::attention::Attention;
use crate::number::{count, short, signed};
use crate::paper::PublishedTable1;
use crate::significance::{Adjustment, Criterion, Tally};
use crate::sweep::{EXPERIMENT, Sweep};
use crate::table::{Cell, Row, Table};

/// Digits after the point, as in the paper.
const DECIMALS: usize = 2;

/// The layer x head matrix of one attention type.
///
/// # Errors
/// If `sweep` has no rows of this type.
pub fn table1(
    sweep: &Sweep,
    attention: Attention,
    criterion: Criterion,
    published: Option<&PublishedTable1>,
) -> Result<Table, Error> {
    let family = sweep.family(attention)?;
    let tally = criterion.tally(&family);
    let (layers, heads) = extent(&family);
    let mut summary = vec![format!("base {} {:.DECIMALS$}", sweep.metric.label(), sweep.base)];
    summary.extend(counts(criterion, &family, tally));
    summary.extend(missing_heads(layers * heads, family.len()));
    let mut remarks = adjusted_counts(criterion, &family);
    remarks.extend(out_of_reach(criterion, &family, sweep.resamples));
    remarks.extend(paper_remark(attention, published));
    remarks.extend(
        sweep.split.is_none().then(|| format!("split unknown: no {EXPERIMENT}.json beside the rows")),
    );
    Ok(Table {
        name: "Table 1",
        label: format!("table1-{}-{attention}", sweep.subject),
        title: title(sweep, attention),
        row_heading: "Layer",
        column_heading: "Head",
        columns: (1..=heads).map(|head| head.to_string()).collect(),
        rows: matrix(&family, criterion),
        mark: (tally.tested > 0).then(|| mark(sweep, criterion)),
        summary,
        remarks,
    })
}

fn title(sweep: &Sweep, attention: Attention) -> String {
    let (metric, subject) = (sweep.metric.label(), sweep.title());
    format!(
        "{attention} ({}): {metric} with one head masked, minus the base {metric}; {subject}",
        attention.description()
    )
}

/// Layers and heads that the rows span.
fn extent(family: &[&AblationRow]) -> (usize, usize) {
    let layers = family.iter().map(|row| row.layer).max().unwrap_or(0);
    let heads = family.iter().map(|row| row.head).max().unwrap_or(0);
    (layers, heads)
}

fn matrix(family: &[&AblationRow], criterion: Criterion) -> Vec<Row> {
    let (layers, heads) = extent(family);
    let by_head: BTreeMap<_, _> = family.iter().map(|row| ((row.layer, row.head), *row)).collect();
    let cell = |layer, head| {
        by_head.get(&(layer, head)).map_or_else(Cell::default, |row| Cell {
            text: signed(row.score_delta, DECIMALS),
            marked: criterion.holds(row),
        })
    };
    let row = |layer: usize| Row {
        label: layer.to_string(),
        cells: (1..=heads).map(|head| cell(layer, head)).collect(),
    };
    (1..=layers).map(row).collect()
}

fn mark(sweep: &Sweep, criterion: Criterion) -> String {
    let test = sweep.metric.test(sweep.resamples);
    format!("p < {} ({test}; {})", short(criterion.alpha), criterion.adjustment.description())
}

/// The sentence on significant heads; says so where nothing or not all was tested.
fn counts(criterion: Criterion, family: &[&AblationRow], tally: Tally) -> Vec<String> {
    if tally.tested == 0 {
        let reason = match criterion.adjustment {
            Adjustment::None => "no head was tested for significance",
            Adjustment::Holm => "no Holm-adjusted p-values yet: they come with the last head",
            Adjustment::Bh => "no Benjamini-Hochberg-adjusted p-values yet: they come with the last head",
        };
        return vec![reason.to_owned()];
    }
    let Tally { tested, significant, better } = tally;
    let of = count(tested, "head");
    let mut sentences = vec![format!("{significant} of {of} significant, {better} for the better")];
    if criterion.adjustment == Adjustment::None {
        // p counts resamples against the side that was observed, and either side may be.
        let expected = short(2.0 * criterion.alpha * tested as f64);
        sentences.push(format!(
            "false alarms expected by chance: {expected} (p is one-sided, on the side observed)"
        ));
    }
    if tested < family.len() {
        sentences.push(format!("{} without a test", count(family.len() - tested, "head")));
    }
    sentences
}

/// A sweep that is still running and a model with uneven layers look the same from here.
fn missing_heads(cells: usize, rows: usize) -> Option<String> {
    let missing = cells.saturating_sub(rows);
    let note = "the sweep is not finished, or not all layers have as many heads";
    (missing > 0).then(|| format!("{missing} of {cells} cells are empty: {note}"))
}

/// What would be left by the other p-values, which are there once all heads are.
fn adjusted_counts(criterion: Criterion, family: &[&AblationRow]) -> Vec<String> {
    let remains = |adjustment, name| {
        let tally = Criterion { adjustment, ..criterion }.tally(family);
        let Tally { significant, better, .. } = tally;
        (tally.tested > 0)
            .then(|| format!("after {name}: {significant} significant, {better} for the better"))
    };
    let all = [
        (Adjustment::None, "no adjustment"),
        (Adjustment::Holm, "Holm"),
        (Adjustment::Bh, "Benjamini-Hochberg"),
    ];
    let others = all.into_iter().filter(|(adjustment, _)| *adjustment != criterion.adjustment);
    let remarks: Vec<_> = others.filter_map(|(adjustment, name)| remains(adjustment, name)).collect();
    let tested = criterion.tally(family).tested > 0;
    match remarks.is_empty() && tested {
        true => vec!["no adjusted p-values yet: they come with the last head".to_owned()],
        false => remarks,
    }
}

/// Says where no adjusted p-value can be significant: the least p of a bootstrap is 1 / (resamples + 1).
fn out_of_reach(criterion: Criterion, family: &[&AblationRow], resamples: Option<u64>) -> Option<String> {
    let tested = family.iter().filter(|row| row.p_holm.is_some()).count() as f64;
    let least = tested / (resamples? as f64 + 1.0);
    let needed = (tested / criterion.alpha).ceil();
    (least >= criterion.alpha)
        .then(|| format!("Holm's p cannot fall below {}: it takes {needed} resamples", short(least)))
}

/// The same sentence with the paper's numbers, which are about enc-enc alone.
fn paper_remark(attention: Attention, published: Option<&PublishedTable1>) -> Option<String> {
    let published = published.filter(|_| attention == Attention::EncEnc)?;
    let PublishedTable1 { base_bleu, heads, significant, better } = published;
    Some(format!(
        "Michel et al. (2019), Table 1: base BLEU {base_bleu:.DECIMALS$}; \
         {significant} of {heads} heads significant, {better} for the better"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn row(layer: usize, head: usize, delta: f64, p_values: [Option<f64>; 3]) -> AblationRow {
        AblationRow {
            attention: "enc-enc".to_owned(),
            layer,
            head,
            metric: "bleu".to_owned(),
            base_score: 36.05,
            score: 36.05 + delta,
            score_delta: delta,
            delta_low: None,
            delta_high: None,
            p_value: p_values[0],
            p_holm: p_values[1],
            p_benjamini_hochberg: p_values[2],
        }
    }

    fn table(rows: Vec<AblationRow>, adjustment: Adjustment) -> Table {
        let sweep = Sweep::from_rows("demo-x", PathBuf::from("a.csv"), rows).unwrap();
        let published = PublishedTable1 { base_bleu: 1.0, heads: 5.0, significant: 3.0, better: 2.0 };
        let criterion = Criterion { alpha: 0.01, adjustment };
        table1(&sweep, Attention::EncEnc, criterion, Some(&published)).unwrap()
    }

    /// p-values 0.001, 0.009, 0.5 after Holm: 0.003, 0.018, 0.5.
    fn rows() -> Vec<AblationRow> {
        vec![
            row(1, 1, -0.531, [Some(0.001), Some(0.003), Some(0.003)]),
            row(1, 2, 0.2, [Some(0.009), Some(0.018), Some(0.0135)]),
            row(2, 2, -0.001, [Some(0.5), Some(0.5), Some(0.5)]),
        ]
    }

    #[test]
    fn significant_heads_are_counted_and_compared_with_the_paper() {
        let expected = "\
Table 1. enc-enc (encoder self-attention): BLEU with one head masked, minus the base BLEU; demo-x (demo language)

        Head
Layer      1       2
    1  -0.53*  +0.20*
    2           0.00

* p < 0.01 (paired bootstrap; not adjusted for the number of heads)
base BLEU 36.05
2 of 3 heads significant, 1 for the better
false alarms expected by chance: 0.06 (p is one-sided, on the side observed)
1 of 4 cells are empty: the sweep is not finished, or not all layers have as many heads
after Holm: 1 significant, 0 for the better
after Benjamini-Hochberg: 1 significant, 0 for the better
Michel et al. (2019), Table 1: base BLEU 1.00; 3 of 5 heads significant, 2 for the better
split unknown: no ablate-one.json beside the rows
";
        let plain = anstream::adapter::strip_str(&table(rows(), Adjustment::None).terminal()).to_string();
        assert_eq!(plain, expected, "\n{plain}");
    }

    #[test]
    fn an_adjustment_moves_the_marks() {
        let table = table(rows(), Adjustment::Holm);
        let marked = table.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.marked).count();
        assert_eq!(marked, 1);
        assert!(table.mark.unwrap().contains("Holm-adjusted"));
        assert!(table.remarks[0].starts_with("after no adjustment: 2 significant"));
    }

    #[test]
    fn a_sweep_without_tests_has_no_marks_and_says_so() {
        let untested = table(vec![row(1, 1, -0.5, [None; 3])], Adjustment::None);
        assert_eq!(untested.mark, None);
        assert!(!untested.rows[0].cells[0].marked);
        assert_eq!(untested.summary[1], "no head was tested for significance");

        let running = table(vec![row(1, 1, -0.5, [Some(0.001), None, None])], Adjustment::None);
        assert_eq!(running.remarks[0], "no adjusted p-values yet: they come with the last head");

        let running = table(vec![row(1, 1, -0.5, [Some(0.001), None, None])], Adjustment::Bh);
        assert!(running.summary[1].starts_with("no Benjamini-Hochberg-adjusted p-values yet"));
    }
}
