//! The whole commands on setups that train in a second.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use records::{AblationRow, CurveRow, Measure, Row, ScoreRow, TestedRow};
use tempfile::TempDir;
use test_support::{CLASSIFIER, TRANSLATOR, kill_when, read, rows, trained};

const TABLE: &str = "results/tiny/iterative-prune.csv";

const SMALL: [&str; 6] = ["--limit", "first:1", "--estimate-limit", "5", "--step-percent", "100"];

fn folder() -> TempDir {
    trained(TRANSLATOR, "iterative-prune", &SMALL)
}

fn reviews() -> TempDir {
    trained(CLASSIFIER, "iterative-prune", &SMALL)
}

const ARGUMENTS: [&str; 4] = ["--resamples", "99", "--estimate-limit", "40"];

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("iterative-prune", folder);
    command.args(ARGUMENTS);
    command
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    test_support::refusal(command(folder).args(arguments))
}

fn ablate_one(folder: &Path, arguments: &[&str]) {
    let mut command = test_support::command("ablate-one", folder);
    command.args(["--resamples", "0"]).args(arguments).assert().success();
}

/// Returns the rows of a curve by its name, such as `all/importance` or `all/random-5`.
fn curve<'a>(rows: &'a [CurveRow], name: &str) -> Vec<&'a CurveRow> {
    rows.iter().filter(|row| row.family() == name).collect()
}

fn heads(row: &CurveRow) -> BTreeSet<&str> {
    row.masked_heads.split('+').filter(|name| !name.is_empty()).collect()
}

/// Step 0 masks nothing and the last step everything; the sets in between are nested.
#[test]
fn curves_have_their_known_ends() {
    let folder = folder();
    let orders = ["--order", "oracle", "--order", "importance,random,entropy"];
    let arguments = [&orders[..], &["--random-orders", "2", "--seed", "5"]].concat();
    command(folder.path()).args(arguments).assert().success().stdout(format!("{TABLE}\n"));
    let rows: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    let whole = ["importance", "entropy"].map(|order| curve(&rows, &format!("all/{order}")));
    let turned = ["importance", "entropy"].map(|order| curve(&rows, &format!("all/{order}/complement")));
    let random = [5, 6].map(|seed| curve(&rows, &format!("all/random-{seed}")));
    let floor = curve(&rows, "all/floor");
    assert_eq!((rows.len(), floor.len(), floor[0].masked), (6 * 11 + 1, 1, 18));
    for curve in whole.iter().chain(&turned).chain(&random) {
        // 18 heads: ⌈1.8⌉, ⌈3.6⌉ ..
        let masked: Vec<usize> = curve.iter().map(|row| row.masked).collect();
        assert_eq!(masked, [0, 2, 4, 6, 8, 9, 11, 13, 15, 17, 18]);
        assert_eq!((curve[0].score, curve[0].p_value), (curve[0].base_score, None));
        assert!(curve.windows(2).all(|pair| heads(pair[0]).is_subset(&heads(pair[1]))));
        assert!(curve[1..].iter().all(|row| row.p_adjusted.unwrap() >= row.p_value.unwrap()));
    }
    assert_ne!(random[0][5].masked_heads, random[1][5].masked_heads);
    for (curve, turned) in whole.iter().zip(&turned) {
        assert_eq!(curve[10].score, floor[0].score, "all heads masked");
        // with 9 of 18 masked, each side masks the heads that the other keeps
        assert!(heads(curve[5]).is_disjoint(&heads(turned[5])));
        assert!(heads(curve[10]).difference(&heads(curve[9])).all(|last| heads(turned[1]).contains(last)));
    }
}

/// A step with one masked head equals a row of `ablate-one`, whose missing rows are measured. The oracle masks first the head whose masking
/// leaves the best score. Results of another model are not used, and stay as they are.
#[test]
fn the_first_step_is_a_row_of_ablate_one() {
    let folder = folder();
    ablate_one(folder.path(), &["--attention", "enc-enc"]);
    command(folder.path()).args(["--order", "oracle,importance", "--step-percent", "5"]).assert().success();
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    assert_eq!(single.len(), 18);
    let pruned: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    for row in pruned.iter().filter(|row| row.masked == 1) {
        let head = single.iter().find(|head| head.name() == row.masked_heads).unwrap();
        assert_eq!((row.score, row.base_score), (head.score, head.base_score));
    }
    let first = curve(&pruned, "all/oracle")[1];
    assert!(single.iter().all(|head| head.score <= first.score), "{}", first.masked_heads);

    let path = folder.path().join("results/tiny/ablate-one.json");
    let mut signature: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    signature["identity"]["weights"] = "0123".into();
    fs::write(&path, signature.to_string()).unwrap();
    let before = read(folder.path(), "results/tiny/ablate-one.csv");
    let output = command(folder.path()).args(["--order", "oracle", "--step-percent", "50"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("is of another run (weights:"), "{said}");
    assert_eq!(read(folder.path(), "results/tiny/ablate-one.csv"), before);
}

/// Figure 4: each type has a curve in the file of the curve over all. If an option is given twice, the last one counts, as when `just
/// reproduce-figure4` gets an option that it already sets.
#[test]
fn attention_types_have_curves_of_their_own() {
    let folder = folder();
    command(folder.path())
        .args(["--attention", "all", "--attention", "enc-dec,dec-dec", "--step-percent", "50"])
        .assert()
        .success();
    let read = || -> Vec<CurveRow> { rows(folder.path(), "iterative-prune.csv") };
    assert!(curve(&read(), "all/importance").is_empty());
    command(folder.path()).args(["--attention", "all", "--step-percent", "50"]).assert().success();
    let rows = read();
    for attention in ["enc-dec", "dec-dec"] {
        let curve = curve(&rows, &format!("{attention}/importance"));
        assert_eq!(
            curve.iter().map(|row| (row.masked, row.heads)).collect::<Vec<_>>(),
            [(0, 6), (3, 6), (6, 6)]
        );
        assert!(heads(curve[2]).iter().all(|name| name.starts_with(attention)));
    }
    assert_eq!(curve(&rows, "all/importance").len(), 3);
}

/// Scores on the masked model differ from those on the full model, and so do the heads chosen next; layers keep --keep-at-least heads.
#[test]
fn recomputed_scores_change_the_order() {
    let folder = folder();
    let curves = |arguments: &[&str]| {
        command(folder.path())
            .args(["--keep-at-least", "1", "--step-percent", "25", "--again"])
            .args(arguments)
            .assert()
            .success();
        let rows: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
        assert_eq!(curve(&rows, "all/floor")[0].masked, 18, "the floor keeps no head of any layer");
        ["", "/complement"]
            .map(|side| curve(&rows, &format!("all/importance{side}")).into_iter().cloned().collect())
    };
    let (plain, again): ([Vec<CurveRow>; 2], [Vec<CurveRow>; 2]) = (curves(&[]), curves(&["--recompute"]));
    for curve in plain.iter().chain(&again) {
        assert_eq!(curve.iter().map(|row| row.masked).collect::<Vec<_>>(), [0, 5, 9, 12]);
    }
    let (plain, again) = (&plain[0], &again[0]);
    assert_eq!(plain[1].masked_heads, again[1].masked_heads, "nothing is masked yet");
    assert!(plain.iter().zip(again).any(|(plain, again)| plain.masked_heads != again.masked_heads));
    let last = heads(&again[3]);
    for attention in ["enc-enc", "enc-dec", "dec-dec"] {
        for layer in 1..=2 {
            let prefix = format!("{attention}:{layer}:");
            assert_eq!(last.iter().filter(|name| name.starts_with(&prefix)).count(), 2, "{prefix}");
        }
    }
}

/// Without attention the first position sees only itself, so all texts get one class: the score is the share of that class.
#[test]
fn a_classifier_without_heads_gives_all_texts_one_class() {
    let folder = reviews();
    command(folder.path()).args(["--step-percent", "100"]).assert().success();
    let rows: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    let text = fs::read_to_string(folder.path().join("data/reviews/test.tsv")).unwrap();
    let share = |label: &str| {
        let labels: Vec<bool> =
            text.lines().skip(1).map(|line| line.split('\t').nth(1) == Some(label)).collect();
        100.0 * labels.iter().filter(|&&is| is).count() as f64 / labels.len() as f64
    };
    let score = curve(&rows, "all/floor")[0].score;
    assert!([share("good"), share("bad")].iter().any(|share| (share - score).abs() < 1e-9), "{score}");
    assert!(
        share("good") != share("bad") && rows[0].base_score > share("good").max(share("bad")),
        "{}",
        rows[0].base_score
    );
}

/// An unfinished run whose rows masked other heads, as after measuring the oracle again, is refused.
#[test]
fn a_killed_run_goes_on_to_the_file_of_an_unbroken_one() {
    let unbroken = folder();
    let arguments = [&ARGUMENTS[..], &["--order", "importance,random"]].concat();
    command(unbroken.path()).args(&arguments).assert().success();
    let growing = |killed: &Path| killed.join(TABLE.replace(".csv", ".partial.csv"));
    let killed = loop {
        let killed = folder();
        // The full model's rows come first, one per curve.
        let has_step = || {
            fs::read_to_string(growing(killed.path()))
                .is_ok_and(|text| text.contains('+') && text.ends_with('\n'))
        };
        kill_when("iterative-prune", &arguments, killed.path(), has_step);
        if growing(killed.path()).exists() {
            break killed; // otherwise it finished before it could be killed
        }
    };
    let growing = growing(killed.path());
    let text = fs::read_to_string(&growing).unwrap();
    let mut forged: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = forged.iter().position(|line| line.contains('+')).unwrap();
    let (start, heads) = forged[line].rsplit_once(',').unwrap();
    forged[line] = format!("{start},{}", heads.split('+').skip(1).collect::<Vec<_>>().join("+"));
    fs::write(&growing, forged.join("\n") + "\n").unwrap();
    let message = refusal(killed.path(), &arguments);
    assert!(message.contains("masked other heads than now"), "{message}");
    fs::write(&growing, text).unwrap();
    command(killed.path()).args(&arguments).args(["--threads", "1"]).assert().success();
    assert_eq!(read(killed.path(), TABLE), read(unbroken.path(), TABLE));
    command(killed.path()).args(&arguments).arg("--again").assert().success();
    assert_eq!(read(killed.path(), TABLE), read(unbroken.path(), TABLE));
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let folder = folder();
    for (arguments, expected) in [
        (["--order", "size"], "importance-entropy"),
        (["--step-percent", "0"], "1..=100"),
        (["--entropy-weight", "2"], "from 0 to 1"),
    ] {
        command(folder.path()).args(arguments).assert().code(2).stderr(contains(expected));
    }
    for (arguments, expected) in [
        (&["--order", "importance,entropy,importance"][..], "error: an order is given twice in --order\n"),
        (&["--attention", "all,all"], "error: a type is given twice in --attention\n"),
        (&["--keep-at-least", "3"], "error: --keep-at-least 3 leaves nothing to mask: layers have 3 heads\n"),
        (&["--recompute", "--order", "random"], "which order random does not"),
        (&["--order", "swap", "--uniform"], "greedy-forward, swap and fisher-rearranged choose single heads"),
        (&["--preset", "prune-and-retrain", "--recompute"], "takes no other --repair and no --recompute"),
        (&["--preset", "compare-methods", "--percent", "50"], "takes neither --percent nor --recompute"),
        (&["--preset", "compare-methods", "--rescale"], "cannot be combined with repairs"),
        (&["--order", "fisher-rearranged", "--shard", "1/2"], "chooses the heads of each step anew"),
        (&["--estimate-on", "newstest"], "no split `newstest`: this setup has train, dev, test, shifted"),
    ] {
        let message = refusal(folder.path(), arguments);
        assert!(message.contains(expected), "{message}");
    }
}

/// Each layer's normalised scores have norm 1. The oracle's rows are added once `ablate-one` has run.
#[test]
fn importance_has_a_row_for_each_head_and_measure() {
    let folder = folder();
    let importance = || {
        let mut command = test_support::command("importance", folder.path());
        command.args(["--estimate-limit", "40"]).assert().success().stdout("results/tiny/importance.csv\n");
        rows::<ScoreRow>(folder.path(), "importance.csv")
    };
    let of = |rows: &[ScoreRow], measure: Measure| {
        let own = rows.iter().filter(|row| row.measure == measure);
        own.map(|row| row.value).collect::<Vec<_>>()
    };
    let before = importance();
    for measure in Measure::ALL {
        let heads = if [Measure::LogitAttribution, Measure::Oracle].contains(&measure) { 0 } else { 18 };
        assert_eq!(of(&before, measure).len(), heads, "{measure}");
    }
    for measure in [Measure::ExampleNormalised, Measure::TokenNormalised] {
        for layer in of(&before, measure).chunks(3) {
            let norm: f64 = layer.iter().map(|value| value.powi(2)).sum();
            assert!((norm - 1.0).abs() < 1e-9, "{norm}");
        }
    }
    assert!(of(&before, Measure::Confidence).iter().all(|&value| value > 0.0 && value <= 1.0));
    assert!(of(&before, Measure::Entropy).iter().all(|&value| value > 0.0));
    ablate_one(folder.path(), &[]);
    let after = importance();
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let lost: Vec<f64> = single.iter().map(|row| 0.0 - row.score_delta).collect();
    assert_eq!(of(&after, Measure::Oracle), lost);
    let (lost, measured): (Vec<_>, Vec<_>) =
        after.into_iter().partition(|row| row.measure == Measure::Oracle);
    assert_eq!((lost.len(), measured), (18, before));
    assert_eq!(importance().len(), 18 * (Measure::ALL.len() - 1));
}
