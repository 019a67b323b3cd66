//! The whole commands on setups that train in a second.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use records::{AblationRow, CurveRow, Measure, Row, ScoreRow, TestedRow};
use test_support::{CLASSIFIER, TRANSLATOR, kill_when, program, read, refuses, rows, said, with_model};

const TABLE: &str = "results/tiny/iterative-prune.csv";

const ARGUMENTS: [&str; 4] = ["--resamples", "99", "--estimate-limit", "40"];

fn command(folder: &Path) -> Command {
    test_support::command_with("iterative-prune", folder, &ARGUMENTS)
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
fn curves_begin_at_the_full_model_and_end_at_the_floor() {
    let folder = with_model(TRANSLATOR);
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
    let folder = with_model(TRANSLATOR);
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
    let said = said(command(folder.path()).args(["--order", "oracle", "--step-percent", "50"]));
    assert!(said.contains("is from another run (weights:"), "{said}");
    assert_eq!(read(folder.path(), "results/tiny/ablate-one.csv"), before);
}

/// Figure 4: each type has a curve in the file of the curve over all types. If an option is given twice, the last one counts, as when `just
/// reproduce-figure4` gets an option that it already sets.
#[test]
fn attention_types_have_separate_curves() {
    let folder = with_model(TRANSLATOR);
    let twice = ["--attention", "all", "--attention", "enc-dec,dec-dec", "--step-percent", "50"];
    command(folder.path()).args(twice).assert().success();
    let read = || -> Vec<CurveRow> { rows(folder.path(), "iterative-prune.csv") };
    assert!(curve(&read(), "all/importance").is_empty());
    command(folder.path()).args(["--attention", "all", "--step-percent", "50"]).assert().success();
    let rows = read();
    for attention in ["enc-dec", "dec-dec"] {
        let curve = curve(&rows, &format!("{attention}/importance"));
        let steps: Vec<_> = curve.iter().map(|row| (row.masked, row.heads)).collect();
        assert_eq!(steps, [(0, 6), (3, 6), (6, 6)]);
        assert!(heads(curve[2]).iter().all(|name| name.starts_with(attention)));
    }
    assert_eq!(curve(&rows, "all/importance").len(), 3);
}

/// Scores on the masked model differ from those on the full model, and so do the heads chosen next; layers keep --keep-at-least heads.
#[test]
fn recomputed_scores_change_the_order() {
    let folder = with_model(TRANSLATOR);
    let curves = |arguments: &[&str]| {
        let shared = ["--keep-at-least", "1", "--step-percent", "25", "--again"];
        command(folder.path()).args(shared).args(arguments).assert().success();
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
    let folder = with_model(CLASSIFIER);
    command(folder.path()).args(["--step-percent", "100"]).assert().success();
    let rows: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    let text = fs::read_to_string(folder.path().join("data/reviews/test.tsv")).unwrap();
    let good = 100.0 * text.matches("\tgood\t").count() as f64 / (text.lines().count() - 1) as f64;
    let (base, floor) = (rows[0].base_score, curve(&rows, "all/floor")[0].score);
    assert!((good - floor).abs().min((100.0 - good - floor).abs()) < 1e-9, "{good} {floor}");
    assert!(good != 50.0 && base > good.max(100.0 - good), "{base}");
}

/// This happens if the oracle was measured again.
#[test]
fn an_unfinished_run_whose_rows_masked_other_heads_is_refused() {
    let arguments = [&ARGUMENTS[..], &["--order", "importance,random"]].concat();
    let (killed, growing) = loop {
        let killed = with_model(TRANSLATOR);
        let growing = killed.path().join(TABLE.replace(".csv", ".partial.csv"));
        // The full model's rows come first, one per curve.
        let has_step = |text: String| text.contains('+') && text.ends_with('\n');
        kill_when("iterative-prune", &arguments, killed.path(), || {
            fs::read_to_string(&growing).is_ok_and(has_step)
        });
        if growing.exists() {
            break (killed, growing); // otherwise it finished before it could be killed
        }
    };
    let text = fs::read_to_string(&growing).unwrap();
    let mut forged: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = forged.iter().position(|line| line.contains('+')).unwrap();
    let (start, heads) = forged[line].rsplit_once(',').unwrap();
    forged[line] = format!("{start},{}", heads.split('+').skip(1).collect::<Vec<_>>().join("+"));
    fs::write(&growing, forged.join("\n") + "\n").unwrap();
    refuses(command(killed.path()).args(&arguments), "masked different heads");
}

#[test]
fn invalid_arguments_are_refused() {
    let folder = with_model(TRANSLATOR);
    for (arguments, expected) in [
        (["--order", "size"], "importance-entropy"),
        (["--step-percent", "0"], "1..=100"),
        (["--entropy-weight", "2"], "from 0 to 1"),
    ] {
        command(folder.path()).args(arguments).assert().code(2).stderr(contains(expected));
    }
    for (arguments, expected) in [
        (&["--order", "importance,entropy,importance"][..], "an order is given twice"),
        (&["--attention", "all,all"], "a type is given twice"),
        (&["--keep-at-least", "3"], "leaves nothing to mask: layers have 3 heads"),
        (&["--recompute", "--order", "random"], "which order random does not allow"),
        (&["--order", "swap", "--uniform"], "choose single heads"),
        (
            &["--preset", "prune-and-retrain", "--recompute"],
            "cannot be combined with another --repair or with --recompute",
        ),
        (&["--preset", "compare-methods", "--percent", "50"], "takes neither --percent nor --recompute"),
        (&["--preset", "compare-methods", "--rescale"], "cannot be combined with repairs"),
        (&["--order", "fisher-rearranged", "--shard", "1/2"], "chooses the heads of each step anew"),
    ] {
        refuses(command(folder.path()).args(arguments), expected);
    }
}

/// Each layer's normalised scores have norm 1. The oracle's rows are added once `ablate-one` has run.
#[test]
fn importance_has_a_row_for_each_head_and_measure() {
    let folder = with_model(TRANSLATOR);
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

/// Head sets that several curves share, such as all heads, are rows of several shards.
#[test]
fn merged_shards_equal_the_file_of_one_machine() {
    let orders = ["--order", "importance,random", "--random-orders", "2", "--attention", "all,enc-dec"];
    let orders = [&orders[..], &["--step-percent", "30"]].concat();
    let (whole, apart) = (with_model(TRANSLATOR), with_model(TRANSLATOR));
    command(whole.path()).args(&orders).assert().success();
    for shard in ["3/3", "1/3", "2/3"] {
        command(apart.path()).args(&orders).args(["--shard", shard]).assert().success();
    }
    let mut merge = program("merge", apart.path());
    merge.arg("tiny").assert().success().stdout(contains("rows of 3 shards"));
    for file in [TABLE, "results/tiny/iterative-prune.segments.csv.gz"] {
        assert_eq!(read(apart.path(), file), read(whole.path(), file), "{file}");
    }
}

#[test]
fn commands_without_independent_rows_refuse_shards_with_a_reason() {
    let folder = with_model(TRANSLATOR);
    let cases: [(&str, &[&str], &str); 4] = [
        ("iterative-prune", &["--recompute"], "with --recompute, the ranking at each step"),
        ("importance", &[], "measured in the same passes"),
        ("speed-bench", &[], "must be measured on a single machine"),
        ("cross-domain", &[], "two sweeps of ablate-one"),
    ];
    for (program, arguments, reason) in cases {
        let mut command = test_support::command(program, folder.path());
        refuses(command.args(arguments).args(["--shard", "1/2"]), reason);
    }
}
