//! What the views of a report make of the made-up results, beside golden files. `GOLDEN=write cargo test -p report` writes these
//! anew.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use charts::legible;
use charts::write::Sheet;
use findings::source::subjects;
use test_support::golden;

use crate::gather::Reader;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(sheet: &Sheet) -> String {
    assert_eq!(sheet.chart.as_ref().and_then(legible::fault), None, "{}", sheet.stem);
    let drawn = sheet.chart.as_ref().map(charts::svg).unwrap_or_default();
    format!("{}=====\n{drawn}", sheet.document("md").unwrap())
}

#[test]
fn what_only_a_report_shows_is_what_the_golden_files_say() {
    let results = folder("../test-support/results");
    let reader = Reader::new(&results, &folder("../../data/paper"), 0.01).unwrap();
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
    let (comparisons, faults) = reader.comparison(all).unwrap();
    assert!(faults.is_empty(), "{faults:?}");
    drawn.extend(comparisons.iter().map(|(name, _, sheet)| (format!("comparison-{name}"), text(sheet))));
    golden::check(&folder("tests/golden"), &drawn);
}
