//! The published Table 1 of Michel et al. (2019), through the renderer of our own results.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::path::Path;

use plotting::attention::Attention;
use plotting::paper::{Published, PublishedDelta, table1_cells};
use plotting::result_file::ResultFile;
use plotting::significance::{Adjustment, Criterion, Tally};
use plotting::sweep::Sweep;
use plotting::table::Table;
use plotting::table1::table1;
use records::AblationRow;

const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

/// The paper underlines cells but prints no p-values; any on the same side of 0.01 will do.
fn row(cell: PublishedDelta, base_score: f64) -> AblationRow {
    AblationRow {
        attention: cell.attention,
        layer: cell.layer,
        head: cell.head,
        metric: "bleu".to_owned(),
        base_score,
        score: base_score + cell.delta_bleu,
        score_delta: cell.delta_bleu,
        delta_low: None,
        delta_high: None,
        p_value: Some(if cell.significant { 0.001 } else { 0.5 }),
        p_koehn: None,
        p_adjusted: None,
        p_benjamini_hochberg: None,
        p_unpaired_t: None,
        p_mcnemar: None,
    }
}

fn published() -> (Published, Sweep) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper");
    let summary = Published::read(&folder).unwrap();
    let cells = table1_cells(&folder).unwrap();
    let rows = cells.into_iter().map(|cell| row(cell, summary.table1.base_bleu)).collect();
    let sweep = Sweep::from_rows(ResultFile::unsigned("wmt14-en-fr", "michel2019-table1.csv"), rows).unwrap();
    (summary, sweep)
}

fn rendered() -> Table {
    let (summary, sweep) = published();
    table1(&sweep, Attention::EncEnc, CRITERION, Some(&summary)).unwrap()
}

#[test]
fn eight_heads_are_significant_and_four_of_them_for_the_better() {
    let (_, sweep) = published();
    let tally = CRITERION.tally(&sweep.family(Attention::EncEnc).unwrap());
    assert_eq!(tally, Tally { tested: 96, significant: 8, better: 4 });
}

/// Layers 1 and 6 as printed in the paper, there with underlines for the stars and without plus signs.
#[test]
fn the_printed_table_is_that_of_the_paper() {
    let plain = anstream::adapter::strip_str(&rendered().terminal()).to_string();
    let cells = |layer: usize| -> Vec<String> {
        let line = plain.lines().find(|line| line.starts_with(&format!("    {layer}  "))).unwrap();
        line.split_whitespace().skip(1).map(|cell| cell.replace('+', "")).collect()
    };
    let first = "0.03 0.07 0.05 -0.06 0.03 -0.53* 0.09 -0.33* 0.06 0.03 0.11 0.04 0.01 -0.04 0.04 0.00";
    let last = "0.06 0.07 -0.31* 0.15 -0.19 0.15 0.11 0.05 0.01 -0.08 0.06 0.01 0.01 0.02 0.07 0.05";
    assert_eq!(cells(1).join(" "), first);
    assert_eq!(cells(6).join(" "), last);
    assert_eq!(
        plain.lines().filter(|line| line.ends_with("8 of 96 heads significant, 4 for the better")).count(),
        2
    );
}

#[test]
fn all_three_forms_mark_the_same_eight_cells() {
    let table = rendered();
    assert_eq!(table.terminal().matches("\u{1b}[0m*").count(), 8);
    assert_eq!(table.markdown().matches(" **").count(), 8);
    assert_eq!(table.latex().matches(r"\underline{").count(), 8);
}
