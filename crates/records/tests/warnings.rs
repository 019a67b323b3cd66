//! Signatures contain the warnings of their run. A separate test file, since a process has one list of warnings.
#![expect(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in their helpers")]

use std::collections::BTreeMap;

use records::{AblationRow, Identity, MetricName, Provenance, RowWriter, Signature};

fn row(name: &str) -> AblationRow {
    AblationRow::untested(name.parse().unwrap(), MetricName::Bleu, 30.0, 29.0)
}

#[test]
fn a_signature_contains_the_warnings_of_the_run_even_if_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let run = Provenance::collect("cpu", 1, BTreeMap::new());
    let signature = Signature::new(Identity::new("ablate-one", "demo"), run);
    words::warn("split `test`:\nthe references look tokenized");
    let mut writer = RowWriter::open(&path, &signature, false).unwrap();
    writer.append(row("enc-dec:1:1"), None).unwrap();
    let stored = |name: &str| Signature::read(&folder.path().join(name)).unwrap().unwrap().runs;
    let first = "split `test`: the references look tokenized";
    assert_eq!(stored("ablate-one.partial.json")[0].warnings, [first]);
    words::warn("split `test`: the references look tokenized");
    words::warn("all answers end at the limit");
    writer.finish().unwrap();
    assert_eq!(stored("ablate-one.json")[0].warnings, [first, "all answers end at the limit"]);

    // neither the identity nor a signature without warnings has the key
    let json = std::fs::read_to_string(folder.path().join("ablate-one.json")).unwrap();
    for older in [json.split("\"runs\"").next().unwrap(), &serde_json::to_string(&signature).unwrap()] {
        assert!(!older.contains("\"warnings\":"), "{older}");
    }
}
