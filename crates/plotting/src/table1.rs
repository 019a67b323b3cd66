//! Table 1: what masking one head does to the score (Michel et al. 2019, Section 3.2).
use std::collections::BTreeMap;

use records::AblationRow;

use crate::Error;
use crate::attention::{Attention, FileNames};
use crate::number::{count, short};
use crate::origin::{Model, OPEN_QUESTION};
use crate::paper::{Published, PublishedFigure1b, PublishedTable1};
use crate::significance::{Adjustment, Criterion, Tally};
use crate::sweep::{EXPERIMENT, Sweep, UNFINISHED};
use crate::table::{Cell, Row, Table};

/// Digits after the point of the paper's BLEU.
const DECIMALS: usize = 2;

/// Names of its files. The paper prints no such table for BERT, so that one is named after the experiment.
pub const FILE_NAMES: FileNames =
    FileNames { translation: "table1", bert: EXPERIMENT, language_model: EXPERIMENT };

/// The layer x head matrix of one attention type.
///
/// # Errors
/// If `sweep` has no rows of this type.
pub fn table1(
    sweep: &Sweep,
    attention: Attention,
    criterion: Criterion,
    published: Option<&Published>,
) -> Result<Table, Error> {
    let family = sweep.family(attention)?;
    let tally = criterion.tally(&family);
    let (layers, heads) = extent(&family);
    let mut summary = vec![format!("base {}", sweep.metric.described(sweep.base))];
    summary.extend(counts(sweep, criterion, &family, tally));
    summary.extend(missing_heads(layers * heads, family.len()));
    summary.extend(layout(sweep, attention));
    let mut remarks = adjusted_counts(sweep, criterion, &family);
    remarks.extend(other_tests(criterion, &family));
    remarks.extend(paper_remark(sweep, attention, published));
    remarks.extend(sweep.file.remark());
    Ok(Table {
        name: name(attention),
        label: format!("{}-{}-{attention}", FILE_NAMES.of(attention, sweep.model()), sweep.file.subject),
        title: title(sweep, attention),
        row_heading: "Layer",
        column_heading: "Head",
        columns: (1..=heads).map(|head| head.to_string()).collect(),
        column_groups: sweep.key_value_groups(heads),
        rows: matrix(sweep, &family, criterion),
        mark: (tally.tested > 0).then(|| criterion.description(sweep.test(), "heads")),
        summary,
        remarks,
    })
}

fn name(attention: Attention) -> &'static str {
    match attention {
        Attention::SelfAttention => "One head at a time",
        _ => "Table 1",
    }
}

fn title(sweep: &Sweep, attention: Attention) -> String {
    let (metric, subject) = (sweep.metric.label(), sweep.title());
    let unit = sweep.metric.difference_unit().map_or(String::new(), |unit| format!(", in {unit}"));
    format!(
        "{attention} ({}): {metric} with one head masked, minus the base {metric}{unit}; {subject}",
        sweep.model().description(attention)
    )
}

/// Where the form comes from, if the paper has no such table.
fn layout(sweep: &Sweep, attention: Attention) -> Option<String> {
    let who = match sweep.model() {
        Model::Language => OPEN_QUESTION,
        Model::Other => "who print none for BERT",
    };
    (attention == Attention::SelfAttention)
        .then(|| format!("laid out as Table 1 of Michel et al. (2019), {who}"))
}

/// Layers and heads that the rows span.
fn extent(family: &[&AblationRow]) -> (usize, usize) {
    let layers = family.iter().map(|row| row.layer).max().unwrap_or(0);
    let heads = family.iter().map(|row| row.head).max().unwrap_or(0);
    (layers, heads)
}

fn matrix(sweep: &Sweep, family: &[&AblationRow], criterion: Criterion) -> Vec<Row> {
    let (layers, heads) = extent(family);
    let by_head: BTreeMap<_, _> = family.iter().map(|row| ((row.layer, row.head), *row)).collect();
    let cell = |layer, head| {
        by_head.get(&(layer, head)).map_or_else(Cell::default, |row| Cell {
            text: sweep.metric.change(row.score_delta),
            marked: criterion.holds(*row),
        })
    };
    let row = |layer: usize| Row {
        label: layer.to_string(),
        cells: (1..=heads).map(|head| cell(layer, head)).collect(),
    };
    (1..=layers).map(row).collect()
}

/// The sentences on significant heads; they say so where nothing or not all was tested, or could not be significant.
fn counts(sweep: &Sweep, criterion: Criterion, family: &[&AblationRow], tally: Tally) -> Vec<String> {
    if tally.tested == 0 {
        return vec![match criterion.adjustment.method(sweep.test()) {
            None => "no head was tested for significance".to_owned(),
            Some(method) => format!("no p-values adjusted by {method} yet: they come with the last head"),
        }];
    }
    let mut sentences = vec![significant_heads(tally)];
    if criterion.adjustment == Adjustment::None {
        let expected = short(criterion.alpha * tally.tested as f64);
        sentences.push(format!("false alarms expected by chance: {expected}"));
    }
    sentences.extend(one_sided(criterion, family));
    sentences.extend(sweep.test().out_of_reach(criterion.alpha));
    if tally.tested < family.len() {
        sentences.push(format!("{} without a test", count(family.len() - tally.tested, "head")));
    }
    sentences
}

/// What the p-value of the paper would mark, where it was computed.
fn one_sided(criterion: Criterion, family: &[&AblationRow]) -> Option<String> {
    let tally = Tally::of(family, criterion.alpha, |row| row.p_koehn);
    let expected = short((2.0 * criterion.alpha).min(1.0) * tally.tested as f64);
    (tally.tested > 0).then(|| {
        format!(
            "the paper's one-sided p would mark {}, {} for the better; false alarms expected of it: {expected}",
            tally.significant, tally.better
        )
    })
}

fn significant_heads(Tally { tested, significant, better }: Tally) -> String {
    format!("{significant} of {} significant, {better} for the better", count(tested, "head"))
}

fn missing_heads(cells: usize, rows: usize) -> Option<String> {
    let missing = cells.saturating_sub(rows);
    (missing > 0).then(|| format!("{missing} of {cells} cells are empty: {UNFINISHED}"))
}

/// What would be left by the other p-values, which are there once all heads are.
fn adjusted_counts(sweep: &Sweep, criterion: Criterion, family: &[&AblationRow]) -> Vec<String> {
    let remains = |adjustment: Adjustment| {
        let Tally { tested, significant, better } = Criterion { adjustment, ..criterion }.tally(family);
        let how = adjustment.method(sweep.test()).map(|method| format!("adjusted by {method}"));
        let how = how.unwrap_or("not adjusted".to_owned());
        (tested > 0).then(|| format!("{how}: {significant} significant, {better} for the better"))
    };
    let all = [Adjustment::None, Adjustment::Family, Adjustment::Bh];
    let others = all.into_iter().filter(|adjustment| *adjustment != criterion.adjustment);
    let remarks: Vec<_> = others.filter_map(remains).collect();
    let tested = criterion.tally(family).tested > 0;
    match remarks.is_empty() && tested {
        true => vec!["no adjusted p-values yet: they come with the last head".to_owned()],
        false => remarks,
    }
}

/// What the tests beside the deciding one say, where they were made.
fn other_tests(criterion: Criterion, family: &[&AblationRow]) -> Vec<String> {
    let remark = |name, p_value: fn(&AblationRow) -> Option<f64>| {
        let tally = Tally::of(family, criterion.alpha, p_value);
        let counts = significant_heads(tally);
        (tally.tested > 0)
            .then(|| format!("{name} at p < {}, not adjusted: {counts}", short(criterion.alpha)))
    };
    let mcnemar = remark("McNemar's test with mid-p", |row| row.p_mcnemar);
    let unpaired = remark("unpaired t-test", |row| row.p_unpaired_t);
    mcnemar.into_iter().chain(unpaired).collect()
}

/// What the paper has: the same sentence for enc-enc, and for BERT the range of its histogram of accuracies.
fn paper_remark(sweep: &Sweep, attention: Attention, published: Option<&Published>) -> Option<String> {
    let Published { table1, figure1b, .. } = published?;
    match attention {
        Attention::EncEnc => {
            let PublishedTable1 { base_bleu, heads, significant, better } = table1;
            Some(format!(
                "Michel et al. (2019), Table 1: base BLEU {base_bleu:.DECIMALS$}; \
                 {significant} of {heads} heads significant, {better} for the better"
            ))
        }
        Attention::SelfAttention if sweep.is_like_figure1b() => {
            let PublishedFigure1b { base, lowest, highest } = figure1b;
            Some(format!(
                "Michel et al. (2019), Figure 1b, BERT on MNLI matched: base accuracy {base:.1} %, \
                 {lowest:.1} to {highest:.1} % with one head masked"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::tests::tested;
    use crate::test_rows;

    fn row(layer: usize, head: usize, delta: f64, p_values: [Option<f64>; 3]) -> AblationRow {
        let [p_value, p_adjusted, p_benjamini_hochberg] = p_values;
        let untested = test_rows::row("enc-enc", (layer, head), 36.05, 36.05 + delta);
        AblationRow {
            p_value,
            p_koehn: p_value.map(|p| p / 2.0),
            p_adjusted,
            p_benjamini_hochberg,
            ..untested
        }
    }

    fn table_of(sweep: &Sweep, attention: Attention, adjustment: Adjustment) -> Table {
        table1(sweep, attention, Criterion { alpha: 0.01, adjustment }, Some(&test_rows::published()))
            .unwrap()
    }

    fn table(rows: Vec<AblationRow>, adjustment: Adjustment) -> Table {
        table_of(&test_rows::sweep(rows).unwrap(), Attention::EncEnc, adjustment)
    }

    fn plain(table: &Table) -> String {
        anstream::adapter::strip_str(&table.terminal()).to_string()
    }

    /// p-values 0.001, 0.009, 0.018, the paper's half as large; adjusted 0.003, 0.018, 0.018.
    fn rows() -> Vec<AblationRow> {
        vec![
            row(1, 1, -0.531, [Some(0.001), Some(0.003), Some(0.003)]),
            row(1, 2, 0.2, [Some(0.009), Some(0.018), Some(0.0135)]),
            row(2, 2, -0.001, [Some(0.018), Some(0.018), Some(0.018)]),
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

* p < 0.01 (two-sided paired bootstrap; not adjusted for the number of heads)
base BLEU 36.05
2 of 3 heads significant, 1 for the better
false alarms expected by chance: 0.03
the paper's one-sided p would mark 3, 1 for the better; false alarms expected of it: 0.06
1 of 4 cells are empty: the sweep is not finished, or not all layers have as many heads
adjusted by step-down max-T (Westfall and Young 1993): 1 significant, 0 for the better
adjusted by Benjamini and Hochberg (1995): 1 significant, 0 for the better
Michel et al. (2019), Table 1: base BLEU 1.00; 3 of 5 heads significant, 2 for the better
split unknown: no signature beside `a.csv`
";
        let plain = plain(&table(rows(), Adjustment::None));
        assert_eq!(plain, expected, "\n{plain}");
    }

    /// p-values of three t-tests; without an effect, 0.01 of them would be below 0.01: 0.03.
    fn bert_rows(metric: &str) -> Vec<AblationRow> {
        let row = |(layer, head), score, [p_value, p_unpaired_t, p_mcnemar]: [f64; 3]| AblationRow {
            metric: metric.to_owned(),
            p_value: Some(p_value),
            p_adjusted: Some(1.0),
            p_benjamini_hochberg: Some(1.0),
            p_unpaired_t: Some(p_unpaired_t),
            p_mcnemar: Some(p_mcnemar),
            ..test_rows::row("self", (layer, head), 83.4, score)
        };
        vec![
            row((1, 1), 82.4, [0.001, 0.2, 0.002]),
            row((1, 2), 83.5, [0.009, 0.3, 0.011]),
            row((1, 3), 83.4, [1.0, 1.0, 1.0]),
        ]
    }

    #[test]
    fn accuracies_of_bert_come_with_all_tests_and_the_numbers_of_figure_1b() {
        let expected = "\
One head at a time. self (self-attention): accuracy with one head masked, minus the base accuracy, \
in percentage points; demo-x (demo language)

        Head
Layer      1       2       3
    1  -1.00*  +0.10*   0.00

* p < 0.01 (two-sided paired t-test; not adjusted for the number of heads)
base accuracy 83.40 %
2 of 3 heads significant, 1 for the better
false alarms expected by chance: 0.03
laid out as Table 1 of Michel et al. (2019), who print none for BERT
adjusted by Holm (1979): 0 significant, 0 for the better
adjusted by Benjamini and Hochberg (1995): 0 significant, 0 for the better
McNemar's test with mid-p at p < 0.01, not adjusted: 1 of 3 heads significant, 0 for the better
unpaired t-test at p < 0.01, not adjusted: 0 of 3 heads significant, 0 for the better
Michel et al. (2019), Figure 1b, BERT on MNLI matched: base accuracy 7.0 %, 6.0 to 9.0 % with one head masked
split unknown: no signature beside `a.csv`
";
        let sweep = test_rows::sweep(bert_rows("accuracy")).unwrap();
        let plain = plain(&table_of(&sweep, Attention::SelfAttention, Adjustment::None));
        assert_eq!(plain, expected, "\n{plain}");
    }

    /// 2 / (99 + 1) is 0.02: no p-value can be below 0.01. A t-test has no resamples, so nothing bounds its p.
    #[test]
    fn a_family_that_could_not_be_significant_says_so() {
        let summary = |metric| {
            let mut sweep = test_rows::sweep(bert_rows(metric)).unwrap();
            sweep.file.origin = tested(99);
            let table = table_of(&sweep, Attention::SelfAttention, Adjustment::None);
            assert!(table.remarks.iter().all(|remark| !remark.contains("split unknown")));
            table.summary.join("\n")
        };
        let expected = "nothing could be significant: no p is below 0.02; for 0.01 it takes 200 resamples";
        assert!(summary("f1").contains(expected), "{}", summary("f1"));
        assert!(!summary("accuracy").contains("nothing could"));
        assert!(!summary("f1").contains("one-sided"), "the paper's p was not computed");
    }

    #[test]
    fn other_metrics_of_bert_are_not_compared_with_its_accuracy() {
        let sweep = test_rows::sweep(bert_rows("f1")).unwrap();
        let table = table_of(&sweep, Attention::SelfAttention, Adjustment::None);
        assert!(table.title.contains("minus the base F1, in points;"), "{}", table.title);
        assert_eq!(table.summary[0], "base F1 83.40 points");
        assert!(!table.remarks.join("\n").contains("Figure 1b"), "{:?}", table.remarks);
    }

    #[test]
    fn an_adjustment_moves_the_marks() {
        let table = table(rows(), Adjustment::Family);
        let marked = table.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.marked).count();
        assert_eq!(marked, 1);
        assert!(table.mark.unwrap().contains("adjusted by step-down max-T"));
        assert!(table.remarks[0].starts_with("not adjusted: 2 significant"));
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
        assert!(running.summary[1].starts_with("no p-values adjusted by Benjamini and Hochberg (1995) yet"));
    }
}
