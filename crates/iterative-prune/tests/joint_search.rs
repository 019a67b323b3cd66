//! The preset `joint-search` on setups that train in a second.
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, CurveRow, Repair, Row};
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, read, refuses, rows, with_model};

const TABLE: &str = "joint-search.csv";

fn run(program: &str, folder: &Path, arguments: &[&str]) {
    test_support::command(program, folder).args(["--resamples", "99"]).args(arguments).assert().success();
}

fn search(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = test_support::command("iterative-prune", folder);
    command.args(["--preset", "joint-search", "--resamples", "99"]).args(arguments);
    command
}

fn masked(rows: &[CurveRow]) -> Vec<usize> {
    rows.iter().map(|row| row.masked).collect()
}

/// The first head of greedy search is the best single head on the search split; the row has its test score.
#[test]
fn greedy_search_begins_with_the_best_single_head() {
    let folder = with_model(CLASSIFIER);
    let arguments = ["--search-on", "dev", "--search-limit", "40", "--step-percent", "1", "--percent", "60"];
    let mut search = search(folder.path(), &arguments);
    search.assert().success().stdout("results/tiny/joint-search.csv\n");
    let found: Vec<CurveRow> = rows(folder.path(), TABLE);
    assert_eq!(masked(&found), [0, 1, 2, 3, 4], "6 heads, up to ⌈3.6⌉ of them");
    run("ablate-one", folder.path(), &["--split", "dev"]); // all 40 reviews
    run("ablate-one", folder.path(), &[]);
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one-dev.csv");
    let best = single.iter().map(|row| row.score).fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(found[1].search_score, Some(best));
    let on_test: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let same = on_test.iter().find(|head| head.name() == found[1].masked_heads).unwrap();
    assert_eq!(found[1].score, same.score);
    let before = read(folder.path(), "results/tiny/joint-search.csv");
    search.assert().success();
    assert_eq!(read(folder.path(), "results/tiny/joint-search.csv"), before);
}

/// Starting from the ranking by importance, the score on the search split can only rise; here it does.
#[test]
fn swap_search_improves_on_its_start() {
    let folder = with_model(TRANSLATOR);
    let estimate = ["--estimate-limit", "40"];
    let swap = ["--method", "swap", "--search-on", "dev", "--search-limit", "20", "--evaluations", "50"];
    let swap = [&estimate[..], &swap].concat();
    search(folder.path(), &swap).assert().success();
    let found: Vec<CurveRow> = rows(folder.path(), TABLE);
    assert_eq!(masked(&found), [0, 9]);
    run("iterative-prune", folder.path(), &[&estimate[..], &["--split", "dev"]].concat());
    let curves: Vec<CurveRow> = rows(folder.path(), "iterative-prune-dev.csv");
    let start = curves.iter().find(|row| row.order == "importance" && !row.complement && row.masked == 9);
    let start = start.unwrap().score;
    assert!(found[1].search_score.unwrap() > start, "{:?} after {start}", found[1].search_score);
    search(folder.path(), &[&swap[..], &["--percent", "15"]].concat()).assert().success();
    assert_eq!(masked(&rows(folder.path(), TABLE)), [0, 2, 9], "a smaller share has its row too");

    for (arguments, expected) in [
        (&["--search-on", "test"][..], "--search-on test is the split that is scored"),
        (&["--method", "swap", "--percent", "1"], "--percent 1 allows masking none of 18 heads"),
        (&["--shard", "1/2"], "a search chooses each set of heads by the results"),
    ] {
        refuses(&mut search(folder.path(), arguments), expected);
    }
}

/// A search optimises the metric of its own split, which must be the reported metric.
#[test]
fn splits_of_different_metrics_are_not_mixed() {
    let folder = with_model(LANGUAGE_MODEL);
    let on = ["--step-percent", "50", "--estimate-limit", "20", "--split", "agreement", "--search-on"];
    refuses(&mut search(folder.path(), &on[..6]), "scored by nats, but `agreement` is scored by accuracy");
    search(folder.path(), &[&on[..], &["agreement-shifted"]].concat()).assert().success();
    let found: Vec<CurveRow> = rows(folder.path(), "joint-search-agreement.csv");
    assert!(found.len() == 2 && found.iter().all(|row| row.metric.name() == "accuracy"));
}

/// A preset only sets defaults: the search gives an equal curve among other orders, and its sets can be repaired.
#[test]
fn a_search_finds_the_same_heads_under_any_preset() {
    let folder = with_model(CLASSIFIER);
    let on = ["--search-on", "dev", "--search-limit", "20", "--step-percent", "34", "--estimate-limit", "20"];
    search(folder.path(), &[&on[..], &["--percent", "100"]].concat()).assert().success();
    let orders = ["--order", "greedy-forward,importance", "--repair", "none,mean"];
    run("iterative-prune", folder.path(), &[&on[..], &orders].concat());
    let found: Vec<CurveRow> = rows(folder.path(), TABLE);
    let all: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    let of = |repair, complement| {
        let own = all.iter().filter(move |row| row.repair == Some(repair) && row.complement == complement);
        own.filter(|row| row.order != "floor").collect::<Vec<_>>()
    };
    let searched = |repair| {
        let own = of(repair, false).into_iter().filter(|row| row.order == "greedy-forward");
        own.map(|row| (row.masked_heads.clone(), row.search_score)).collect::<Vec<_>>()
    };
    let expected: Vec<_> = found.iter().map(|row| (row.masked_heads.clone(), row.search_score)).collect();
    assert_eq!(masked(&found), [0, 3, 5, 6]);
    assert_eq!([searched(Repair::None), searched(Repair::Mean)], [expected.clone(), expected]);
    assert!(of(Repair::Mean, true).iter().all(|row| row.order == "importance"), "a search has no complement");
    let scores = |repair| of(repair, false).iter().map(|row| row.score).collect::<Vec<_>>();
    assert_ne!(scores(Repair::None), scores(Repair::Mean));
}
