//! Names of rows and of their families, by which signatures, statistics and shards find them.
use std::collections::BTreeMap;

use records::{
    AblationRow, Attention, BASE, CorrelationRow, CurveRow, DynamicsRow, GateRow, Identity, Measure,
    Measured, Method, MetricName, Order, Provenance, Repair, Row, Scope, ScoreRow, Signature, TestedRow,
    Testing, columns, read_checked,
};

/// The base of a step in training is the checkpoint; gates are sorted by their goal.
#[test]
fn rows_are_told_apart_by_name_and_key() {
    let head = AblationRow::untested("enc-enc:2:3".parse().unwrap(), MetricName::Bleu, 36.0, 35.0);
    assert_eq!((head.name().as_str(), head.key()), ("enc-enc:2:3", ("enc-enc", 2, 3, "bleu")));
    assert_eq!(
        (head.family().as_str(), head.base().as_str(), head.is_full_model()),
        ("enc-enc", BASE, false)
    );
    let score = ScoreRow::new("self:1:4".parse().unwrap(), Measure::Entropy, 0.5, None);
    assert_eq!((score.name().as_str(), score.key()), ("self:1:4/entropy", ("self", 1, 4, Measure::Entropy)));
    let of_type = CorrelationRow { attention: Scope::One(Attention::DecDec), ..CorrelationRow::default() };
    assert_eq!((of_type.name().as_str(), of_type.key()), ("dec-dec", "dec-dec"));
    let step = DynamicsRow { updates: 1200, step: 3, masked: 15, ..DynamicsRow::default() };
    assert_eq!((step.name().as_str(), step.key()), ("1200/3", (1200, 3)));
    assert_eq!([step.family(), step.base()], ["1200", "1200/base"]);
    assert!(!step.is_full_model() && DynamicsRow { masked: 0, ..step }.is_full_model());
    let target = |target| GateRow { target: Some(target), ..GateRow::default() };
    let lambda = |lambda| GateRow { lambda: Some(lambda), ..GateRow::default() };
    assert_eq!([target(9).name(), lambda(0.02).name()], ["all/gates/heads-9", "all/gates/lambda-0.02"]);
    assert!(target(9).key() < target(10).key() && lambda(0.0).key() < lambda(0.5).key());
    let random = GateRow { method: Method::Random, method_seed: Some(7), ..target(3) };
    assert_eq!([random.name(), random.family()], ["all/random-7/heads-3", "all/random"]);
}

/// With a repair, step 0 differs from the full model, so it is tested; names of retrained rows do not contain the repair.
#[test]
fn rows_of_a_curve_are_named_by_step_and_repair() {
    let step =
        CurveRow { order: Order::Random, order_seed: Some(7), complement: true, ..CurveRow::default() };
    let step = CurveRow { step: 3, masked: 1, heads: 6, masked_heads: "self:1:2".to_owned(), ..step };
    let repaired = |repair| CurveRow { repair: Some(repair), ..step.clone() };
    assert_eq!([step.name(), step.family()], ["all/random-7/complement/3", "all/random-7/complement"]);
    assert_eq!(step.key(), (None, "all", "random", Some(7), true, 3));
    assert_eq!(repaired(Repair::Training).name(), step.name());
    assert_eq!(repaired(Repair::Mean).name(), format!("{}/mean", step.name()));
    assert_eq!(repaired(Repair::None).family(), "all/random-7/complement/none");
    assert!(step.fault().is_none() && CurveRow { masked: 2, ..step.clone() }.fault().is_some());
    let first = CurveRow::default();
    assert!(first.is_full_model() && first.step().is_some() && !step.is_full_model());
    let first = CurveRow { repair: Some(Repair::Training), ..first };
    assert!(!first.is_full_model() && first.step().is_none());
}

#[test]
fn rows_must_have_the_metric_that_their_signature_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let header = columns::<AblationRow>().join(",");
    std::fs::write(&path, header + "\nself,2,3,bleu,36.0,35.0,-1.0,,,,,,,,,,,,,,,\n").unwrap();
    let read = |metric| {
        let run = Provenance::collect("cpu", 1, BTreeMap::new());
        let measured = Measured { metric, positive: None, families: BTreeMap::new() };
        let testing = Testing { resamples: 99, seed: 7, margin_percent: 1.0, block: 1 };
        let signature = Signature::new(Identity::new("ablate-one", "demo-x"), run).tested(measured, testing);
        read_checked::<AblationRow>(&path, Some(&signature))
    };
    assert_eq!(read(MetricName::Bleu).unwrap().rows.len(), 1);
    let fault = read(MetricName::Accuracy).unwrap_err().to_string();
    assert!(fault.ends_with("metric is `accuracy` in its signature but `bleu` for self:2:3"), "{fault}");
}
