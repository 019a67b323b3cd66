//! The published Tables 2, 3, 5 and 6 of Michel et al. (2019): what they say together, and through our own renderer.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::path::Path;

use plotting::best_head::{BestHeads, best_head_table};
use plotting::paper::{PublishedBest, best_head_cells};
use plotting::result_file::ResultFile;
use plotting::significance::{Adjustment, Criterion};
use plotting::sweep::Sweep;
use records::AblationRow;

const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

fn cells(table: &str) -> Vec<PublishedBest> {
    best_head_cells(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper"), table).unwrap()
}

/// The paper does not say which head is the best; any will do, and any p-value on the same side of 0.01.
fn row(cell: &PublishedBest) -> AblationRow {
    AblationRow {
        attention: cell.attention.clone(),
        layer: cell.layer,
        head: 1,
        metric: "bleu".to_owned(),
        base_score: 36.05,
        score: 36.05 + cell.delta,
        score_delta: cell.delta,
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

#[test]
fn tables_cover_all_layers() {
    for (table, expected) in [("table2", 18), ("table3", 12), ("table5", 18), ("table6", 12)] {
        assert_eq!(cells(table).len(), expected, "{table}");
    }
}

/// Both report MNLI matched: a head chosen on training examples cannot beat the best one there.
#[test]
fn bert_heads_chosen_elsewhere_are_no_better_than_the_best() {
    for (best, chosen) in cells("table3").iter().zip(cells("table6")) {
        assert_eq!(best.layer, chosen.layer);
        assert!(chosen.delta <= best.delta, "layer {}: {} and {}", best.layer, best.delta, chosen.delta);
    }
}

/// As they are ours and the paper's at once, each cell stands twice in its row, with the same mark.
#[test]
fn the_printed_table_2_is_that_of_the_paper() {
    let published = cells("table2");
    let rows = published.iter().map(row).collect();
    let sweep = Sweep::from_rows(ResultFile::unsigned("wmt14-en-fr", "michel2019-table2.csv"), rows).unwrap();
    let table =
        best_head_table(&BestHeads { sweep, selected_on: None, selected_limit: None }, CRITERION, &published)
            .unwrap();
    let plain = anstream::adapter::strip_str(&table.terminal()).to_string();
    let line = |layer: &str| {
        let line = plain.lines().find(|line| line.trim_start().starts_with(layer)).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("5 "), "+0.02 (1) +0.02 -1.55 (1)* -1.55* -0.04 (1) -0.04");
    assert_eq!(line("6 "), "-0.36 (1)* -0.36* -13.56 (1)* -13.56* +0.24 (1) +0.24");
    let sentence = "4 of 6 layers of enc-enc, 4 of 6 layers of enc-dec, 6 of 6 layers of dec-dec";
    assert_eq!(plain.matches(sentence).count(), 2);
}
