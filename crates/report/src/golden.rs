//! What the views of a report make of the made-up results, beside golden files. `GOLDEN=write cargo test -p report` writes these
//! anew.
use std::fs;
use std::path::{Path, PathBuf};

use charts::legible;
use charts::write::Sheet;
use findings::source::subjects;

use crate::gather::Reader;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Compares with a golden file, or writes it.
fn check(name: &str, found: &str) {
    let path = folder("tests/golden").join(format!("{name}.golden"));
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let differs = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert!(expected == found, "{} is not what is shown: {differs:?}", path.display());
}

fn check_sheet(name: &str, sheet: &Sheet) {
    let drawn = sheet.chart.as_ref().map(charts::svg).unwrap_or_default();
    check(name, &format!("{}=====\n{drawn}", sheet.document("md").unwrap()));
    assert_eq!(sheet.chart.as_ref().and_then(legible::fault), None, "{name}");
}

#[test]
fn what_only_a_report_shows_is_what_the_golden_files_say() {
    let results = folder("../test-support/results");
    let reader = Reader::new(&results, &folder("../../data/paper"), 0.01).unwrap();
    let mut all = Vec::new();
    for name in subjects(&results).unwrap() {
        let gathered = reader.gather(&name).unwrap();
        check(&format!("{name}/claim"), &(gathered.claim.join("\n") + "\n"));
        let heads = gathered.heads.as_ref().map(|heads| &heads.table);
        for (table, of) in
            heads.into_iter().zip(["all-heads"]).chain(gathered.verdicts.iter().zip(["verdicts"]))
        {
            check_sheet(&format!("{name}/{of}"), &Sheet::new(of, None, [table.clone()]));
        }
        gathered.training.iter().for_each(|sheet| check_sheet(&format!("{name}/training"), sheet));
        all.push(gathered);
    }
    let (comparisons, faults) = reader.comparison(all).unwrap();
    comparisons.iter().for_each(|(name, _, sheet)| check_sheet(&format!("comparison-{name}"), sheet));
    assert!(comparisons.len() > 1 && faults.is_empty(), "{faults:?}");
}
