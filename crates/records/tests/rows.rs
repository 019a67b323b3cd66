//! Names of rows and of their families, by which signatures, statistics and shards find them.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use records::{
    AblationRow, BASE, CorrelationRow, CurveRow, DynamicsRow, Identity, Measure, Measured, MetricName, Order,
    Provenance, Row, ScoreRow, Signature, SpeedRow, TestedRow, Testing, TrainingRow, columns, read_checked,
    read_complete,
};

fn row<R: Row>(line: &str) -> R {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, format!("{}\n{line}\n", columns::<R>().join(","))).unwrap();
    let mut rows = read_complete::<R>(&path).unwrap();
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn heads_are_rows_of_their_attention_type() {
    let row: AblationRow = row("enc-enc,2,3,bleu,36.0,35.0,-1.0,,,,,,,,,,,,,,,");
    assert_eq!(row.name(), "enc-enc:2:3");
    assert_eq!(row.key(), ("enc-enc", 2, 3, "bleu"));
    assert_eq!((row.family().as_str(), row.base().as_str()), ("enc-enc", BASE));
    assert!(!row.is_intact());
    let score: ScoreRow = self::row("self,1,4,entropy,0.5,,");
    let key = ("self", 1, 4, Measure::Entropy);
    assert_eq!((score.name().as_str(), score.key()), ("self:1:4/entropy", key));
    let correlation: CorrelationRow =
        self::row("dec-dec,96,bleu,36.0,26.0,0.5,0.01,0.25,0.75,0.5,0.5,0.5,,,0.5,0.01,,,,10,3.5,1.0");
    assert_eq!((correlation.name().as_str(), correlation.key()), ("dec-dec", "dec-dec"));
}

#[test]
fn steps_are_rows_of_their_curve() {
    let of = |line: &str| {
        let (cells, masked_heads) = line.rsplit_once(',').unwrap();
        row::<CurveRow>(&format!(",{cells},,,,,,,{masked_heads}"))
    };
    let step = of("all,importance,,false,3,15,144,bleu,36.0,35.0,-1.0,,,,,,,,,,,,,,,,,self:1:1");
    assert_eq!((step.name().as_str(), step.family().as_str()), ("all/importance/3", "all/importance"));
    let key = |seed, complement| (None, "enc-dec", "random", seed, complement, 1);
    let random = of("enc-dec,random,4,false,1,0,96,bleu,36.0,36.0,0.0,,,,,,,,,,,,,,,,,");
    assert_eq!((random.name().as_str(), random.key()), ("enc-dec/random-4/1", key(Some(4), false)));
    let reversed = of("enc-dec,random,4,true,1,5,96,bleu,36.0,36.0,0.0,,,,,,,,,,,,,,,,,");
    assert_eq!(reversed.name(), "enc-dec/random-4/complement/1");
    assert_eq!(reversed.key(), key(Some(4), true));
    assert_eq!(reversed.base(), BASE);
    assert!(random.is_intact() && !reversed.is_intact() && !step.is_intact());
}

#[test]
fn checkpoints_have_bases_of_their_own() {
    let masked: DynamicsRow = row("2,1200,3,15,144,bleu,36.0,35.0,-1.0,,,,,,,,,,,,,,self:1:1");
    assert_eq!((masked.name().as_str(), masked.key()), ("1200/3", (1200, 3)));
    assert_eq!((masked.family().as_str(), masked.base().as_str()), ("1200", "1200/base"));
    let intact: DynamicsRow = row("2,1200,0,0,144,bleu,36.0,36.0,0.0,,,,,,,,,,,,,,");
    assert!(intact.is_intact() && !masked.is_intact());
}

#[test]
fn epochs_and_speeds_are_told_apart() {
    let epoch: TrainingRow = row("3,1200,1.5,1.25,36.0,0.001,true");
    assert_eq!((epoch.name().as_str(), epoch.key()), ("3/1200", (3, 1200)));
    let speed: SpeedRow =
        row("36,72,16,408,9000,5,50.0,1.0,60.0,1.0,1.2,1.1,1.3,0.1,1.25,9,8,7,6,5,4,self:1:1");
    assert_eq!((speed.name().as_str(), speed.key()), ("36/16", (36, 16)));
}

#[test]
fn only_orders_by_a_score_of_the_model_can_be_measured_again() {
    let is_measured = |name: &str| name.parse::<Order>().unwrap().is_measured();
    assert!(["importance", "entropy", "fisher-batches", "modules"].into_iter().all(is_measured));
    // these do not score heads on a model without some of them
    assert!(!["oracle", "random", "relevance", "greedy-forward", "swap"].into_iter().any(is_measured));
}

#[test]
fn a_signature_says_what_is_tested_and_how() {
    let run = Provenance::collect("cpu", 1, std::collections::BTreeMap::new());
    let families = std::collections::BTreeMap::from([("self".to_owned(), 32)]);
    let measured = Measured { metric: MetricName::Nats, positive: None, families };
    let testing = Testing { resamples: 99, seed: 7, margin_percent: 1.0, block: 1 };
    let signature = Signature::new(Identity::new("ablate-one", "demo-x"), run);
    assert_eq!((&signature.measured, &signature.testing), (&None, &None));
    let signature = signature.tested(measured.clone(), testing);
    assert_eq!((signature.measured, signature.testing), (Some(measured), Some(testing)));
}

#[test]
fn rows_are_of_the_metric_that_their_signature_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let text =
        format!("{}\nself,2,3,bleu,36.0,35.0,-1.0,,,,,,,,,,,,,,,\n", columns::<AblationRow>().join(","));
    std::fs::write(&path, text).unwrap();
    let read = |metric| {
        let run = Provenance::collect("cpu", 1, std::collections::BTreeMap::new());
        let measured = Measured { metric, positive: None, families: std::collections::BTreeMap::new() };
        let testing = Testing { resamples: 99, seed: 7, margin_percent: 1.0, block: 1 };
        let signature = Signature::new(Identity::new("ablate-one", "demo-x"), run).tested(measured, testing);
        read_checked::<AblationRow>(&path, Some(&signature))
    };
    assert_eq!(read(MetricName::Bleu).unwrap().rows.len(), 1);
    let fault = read(MetricName::Accuracy).unwrap_err().to_string();
    assert!(fault.ends_with("metric is `accuracy` in its signature but `bleu` for self:2:3"), "{fault}");
}
