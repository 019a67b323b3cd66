//! Compares views of a report on synthetic results with golden files, which `GOLDEN=write cargo test -p plotting` updates.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::findings::source::subjects;
use crate::findings::{Folders, Pairing};
use charts::legible;
use charts::write::{Format, Sheet};
use records::CorrelationRow;
use test_support::golden;

use crate::report::gather::Reader;
use crate::report::view::comparison;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(sheet: &Sheet) -> String {
    assert_eq!(sheet.chart.as_ref().and_then(legible::fault), None, "{}", sheet.stem);
    let drawn = sheet.chart.as_ref().map(charts::svg).unwrap_or_default();
    format!("{}=====\n{drawn}", sheet.document("md", &Format::ALL).unwrap())
}

/// A synthetic pairing, since no two of the setups share a pretrained model.
fn pairing() -> Pairing {
    let row = CorrelationRow {
        heads: 72,
        pearson: Some(0.4),
        pearson_p_value: Some(0.0005),
        pearson_low: Some(0.1),
        pearson_high: Some(0.6),
        first_reliability: Some(0.25),
        second_reliability: Some(1.0),
        pearson_ceiling: Some(0.5),
        pearson_ceiling_low: Some(0.3),
        pearson_ceiling_high: Some(0.7),
        influential_head: Some("self:1:2".to_owned()),
        pearson_without: Some(0.2),
        spearman_without: Some(0.1),
        spearman: Some(0.3),
        spearman_p_value: Some(0.01),
        top: 10,
        top_overlap: 4.5,
        top_overlap_by_chance: 100.0 / 72.0,
        ..CorrelationRow::default()
    };
    let subjects = ["tiny-inference", "demo-inference (demo language)"].map(str::to_owned);
    Pairing { pretrained: "a_model".to_owned(), subjects, row, importance: Some([0.5, -0.25]) }
}

#[test]
fn views_of_a_report_equal_the_golden_files() {
    let [results, experiments] = ["results", "experiments"].map(|name| folder("../test-support").join(name));
    let reader = Reader::new(Folders { results: results.clone(), experiments }, None, 0.01);
    let (mut all, mut drawn) = (Vec::new(), BTreeMap::new());
    for name in subjects(&results).unwrap() {
        let gathered = reader.gather(&name).unwrap();
        drawn.insert(format!("{name}/claim"), gathered.claim.join("\n") + "\n");
        let heads = gathered.heads.as_ref().map(|heads| &heads.table);
        for (table, of) in
            heads.into_iter().zip(["all-heads"]).chain(gathered.verdicts.iter().zip(["verdicts"]))
        {
            drawn.insert(format!("{name}/{of}"), text(&Sheet::new(of, None, [table.clone()])));
        }
        drawn.extend(gathered.training.iter().map(|sheet| (format!("{name}/training"), text(sheet))));
        all.push(gathered);
    }
    let (comparisons, faults) = reader.comparison(all);
    assert!(faults.is_empty(), "{faults:?}");
    drawn.extend(comparisons.iter().map(|(name, _, sheet)| (format!("comparison-{name}"), text(sheet))));
    let tasks = comparison::tasks(&[pairing()]).unwrap();
    drawn.insert("comparison-tasks".to_owned(), text(&tasks));
    golden::check(&folder("tests/golden-report"), &drawn);
}
