//! Heads that are measured on a growing sample until they are decided.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, Blocks, Row, Signature, TestedRow, Verdict, first_order_name};
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, kill_when, refuses, text, with_model};

/// Uses the training split, which has enough sentences for three looks.
const SWEEP: [&str; 6] = ["--split", "train", "--limit", "200", "--resamples", "199"];

const NAME: &str = "ablate-one-train-sample-200.csv";
const TABLE: &str = "results/tiny/ablate-one-train-sample-200.csv";

fn command(folder: &Path) -> Command {
    test_support::command_with("ablate-one", folder, &SWEEP)
}

fn sweep(folder: &Path, arguments: &[&str]) -> Vec<AblationRow> {
    command(folder).args(arguments).assert().success();
    test_support::rows(folder, NAME)
}

/// A head leaves the sweep at the first look at which its interval is on one side of the margin. Heads measured to the end get the results
/// of the exact sweep. The intervals of the others contain the exact effects. Intervals hold at every look and margin, so stored
/// rows can be retested without the model.
#[test]
fn heads_stop_once_they_are_decided() {
    let (exact, folder) = (with_model(LANGUAGE_MODEL), with_model(LANGUAGE_MODEL));
    let exact = sweep(exact.path(), &["--exact"]);
    let rows = sweep(folder.path(), &["--until-decided"]);
    assert_eq!(rows.len(), 8);
    let mut stopped = 0;
    for (row, exact) in rows.iter().zip(&exact) {
        let looks = row.looks().unwrap();
        assert!([[50].as_slice(), &[50, 100], &[50, 100, 200]].contains(&&looks[..]), "{looks:?}");
        let (ends, verdict) = (row.delta_interval().unwrap(), row.verdict(2.0).unwrap());
        if looks.len() == 3 {
            // other batches round differently
            let gap = (row.score - exact.score).abs().max((ends.0 - exact.delta_low.unwrap()).abs());
            assert!(gap < 1e-6, "{row:?} instead of {exact:?}");
            continue;
        }
        stopped += 1;
        assert_ne!(verdict, Verdict::Undecided, "{row:?}");
        assert!(row.correlation.unwrap() > 0.5, "{row:?}");
        assert!(ends.0 < exact.score_delta && exact.score_delta < ends.1, "{row:?} instead of {exact:?}");
        assert_eq!((row.p_value, row.simultaneous_low), (None, None));
    }
    assert!(stopped > 0, "some head must be decided early for the test to mean something");
    // predictions are stored for all segments
    let table = folder.path().join(TABLE);
    let signature = Signature::read(&table.with_extension("json")).unwrap().unwrap();
    let blocks = Blocks::beside(&table, &signature).unwrap().unwrap();
    let predicted = blocks.get(&first_order_name(&rows[0].name())).unwrap();
    assert!(predicted.segments.len() > 190, "{}", predicted.segments.len());
    significance::retest(&table, |testing| testing).unwrap();
    assert_eq!(test_support::rows::<AblationRow>(folder.path(), NAME), rows);
    let without = sweep(folder.path(), &["--until-decided", "--control-variate", "off", "--again"]);
    assert!(without.iter().all(|row| row.correlation.is_none()));
}

#[test]
fn a_killed_sweep_and_one_out_of_budget_resume_to_the_same_file() {
    let (unbroken, killed, poor) =
        (with_model(LANGUAGE_MODEL), with_model(LANGUAGE_MODEL), with_model(LANGUAGE_MODEL));
    let bounds = ["--until-decided", "--bounds", "pocock", "--margin", "0.1"];
    sweep(unbroken.path(), &bounds);
    let growing = killed.path().join("results/tiny/ablate-one-train-sample-200.partial.csv");
    for rows in [3, 11] {
        let lines = || fs::read_to_string(&growing).map_or(0, |text| text.lines().count());
        kill_when("ablate-one", &[&SWEEP[..], &bounds].concat(), killed.path(), || lines() > rows);
    }
    sweep(killed.path(), &bounds);
    // 200 for the full model, 600 for the gradient, and 8 heads on 50 segments
    let first = sweep(poor.path(), &[&bounds[..], &["--budget", "1200"]].concat());
    assert!(first.iter().all(|row| row.looks() == Some(vec![50])), "{first:?}");
    sweep(poor.path(), &bounds);
    for other in [&killed, &poor] {
        assert_eq!(text(other.path(), TABLE), text(unbroken.path(), TABLE));
    }
}

/// A sweep with other rules reuses first-order effects that an earlier sweep stored, and gets the results that it would get alone. The
/// budget pays for the full model and for 8 heads on 50 of 200 sentences, but not for the gradient.
#[test]
fn stored_gradients_serve_other_sweeps() {
    let (alone, second) = (with_model(LANGUAGE_MODEL), with_model(LANGUAGE_MODEL));
    let pocock = ["--until-decided", "--bounds", "pocock"];
    let poor = [&pocock[..], &["--budget", "600"]].concat();
    command(alone.path()).args(&poor).assert().code(1);
    let expected = sweep(alone.path(), &pocock);
    let first = ["--until-decided", "--output", "results/tiny/first.csv"];
    command(second.path()).args(first).assert().success();
    sweep(second.path(), &poor);
    let found = sweep(second.path(), &pocock);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!((found.head_id(), found.looks()), (expected.head_id(), expected.looks()));
        let gap = (found.delta_low.unwrap() - expected.delta_low.unwrap()).abs();
        assert!(gap < 1e-9 && found.correlation == expected.correlation, "{found:?} instead of {expected:?}");
    }
}

/// First-order effects depend on the ablation: with mean ablation too, predictions correlate with the effects.
#[test]
fn effects_of_mean_ablation_are_predicted() {
    let folder = with_model(LANGUAGE_MODEL);
    let means = ["--until-decided", "--ablation", "mean", "--reference-on", "dev"];
    command(folder.path()).args(means).args(["--output", "results/tiny/means.csv"]).assert().success();
    let rows: Vec<AblationRow> = test_support::rows(folder.path(), "means.csv");
    let mut correlations: Vec<f64> = rows.iter().filter_map(|row| row.correlation).collect();
    correlations.sort_by(f64::total_cmp);
    assert!(correlations.len() == 8 && correlations[4] > 0.7, "{correlations:?}");
}

/// Covers accuracy of a classifier and of a language model's choices, log-odds, and F1, for which pseudo-values are predicted.
#[test]
fn decisions_are_predicted_by_the_lead_of_the_right_class() {
    let f1 = CLASSIFIER.replace("metric = \"accuracy\"", "metric = \"f1\"\npositive = \"good\"");
    let language = LANGUAGE_MODEL.replace("pairs = 40", "pairs = 200").replace("epochs = 4", "epochs = 16");
    let trained = |spec: &str| {
        let folder = test_support::folder(spec);
        test_support::write_reviews(folder.path());
        test_support::command("train-subject", folder.path()).assert().success();
        folder
    };
    let classes = ["--split", "train", "--looks", "1"];
    let choices = ["--split", "agreement", "--looks", "1"];
    let log_odds = language.clone() + "[score]\nchoices = \"log_odds\"\n";
    for (folder, sweep) in [
        (trained(CLASSIFIER), classes),
        (trained(&f1), classes),
        (trained(&language), choices),
        (trained(&log_odds), choices),
    ] {
        let sweep =
            [&sweep[..], &["--until-decided", "--control-variate", "on", "--resamples", "99"]].concat();
        let sweep = [&sweep[..], &["--output", "results/tiny/one.csv"]].concat();
        test_support::command("ablate-one", folder.path()).args(&sweep).assert().success();
        let rows: Vec<AblationRow> = test_support::rows(folder.path(), "one.csv");
        let correlations: Vec<f64> = rows.iter().filter_map(|row| row.correlation).collect();
        let high = correlations.iter().filter(|&&own| own > 0.3).count();
        assert!(high > 0 && 2 * high >= correlations.len(), "{sweep:?}: {rows:?}");
        significance::retest(&folder.path().join("results/tiny/one.csv"), |testing| testing).unwrap();
        assert_eq!(test_support::rows::<AblationRow>(folder.path(), "one.csv"), rows);
    }
}

#[test]
fn other_metrics_stop_without_predictions() {
    let folder = with_model(TRANSLATOR);
    let rows = sweep(folder.path(), &["--attention", "enc-enc", "--until-decided"]);
    assert!(rows.iter().all(|row| row.looks().is_some() && row.correlation.is_none()));
}

#[test]
fn sweeps_that_cannot_stop_early_are_refused_in_one_line() {
    let folder = with_model(LANGUAGE_MODEL);
    for (arguments, fault) in [
        (&["--budget", "900"][..], "8 head sets on 50 segments take 400 passes"),
        (&["--rescale", "--control-variate", "on"], "first-order effects do not predict nats"),
        (&["--ablation", "resample", "--reference-on", "dev"], "is for --ablation zero and mean"),
    ] {
        refuses(command(folder.path()).arg("--until-decided").args(arguments), fault);
    }
    for alone in
        [&["--budget", "20m"], &["--looks", "3"], &["--bounds", "pocock"], &["--control-variate", "on"]]
    {
        command(folder.path()).args(alone).assert().failure().code(2);
    }
    command(folder.path()).args(["--until-decided", "--exact"]).assert().failure().code(2);
}
