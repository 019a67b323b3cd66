use super::*;
use crate::significance::{Adjustment, Criterion};

const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

#[test]
fn sections_without_measurements_are_left_out() {
    let section = |measured: Vec<Vec<String>>| Section {
        title: "Claim",
        note: "p < 0.01".to_owned(),
        columns: &["model", "attention", "r"],
        published: vec![["M19", "self", "0.56"].map(str::to_owned).to_vec()],
        measured,
        remarks: vec!["p < 0.01 too".to_owned()],
    };
    assert_eq!(section(vec![]).markdown(), None);
    let expected = "\
## Claim

p \\< 0.01

| model | attention | r |
|---|---|--:|
| M19 | self | 0.56 |
| a\\|b | self |  |

- p \\< 0.01 too
";
    let measured = vec![["a|b", "self", ""].map(str::to_owned).to_vec()];
    assert_eq!(section(measured).markdown().unwrap(), expected);
}

#[test]
fn without_any_results_there_is_nothing_to_sum_up() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("demo-x")).unwrap();
    let mut left_out = LeftOut::default();
    let message = summary(folder.path(), None, CRITERION, &mut left_out).unwrap_err().to_string();
    assert!(message.contains("has no results to sum up"), "{message}");
    assert!(summary(&folder.path().join("none"), None, CRITERION, &mut left_out).is_err());
}
