//! The whole command on a language model that trains in a second; `ablate-one` masks its single heads for comparison.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, AuditRow};
use tempfile::TempDir;
use test_support::{LANGUAGE_MODEL, read, refusal, rows, trained};

fn folder() -> TempDir {
    trained(LANGUAGE_MODEL, "ablate-one", &["--limit", "first:1", "--resamples", "0"])
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = test_support::command("audit", folder);
    command.args(arguments).args(["--resamples", "99", "--limit", "first:10"]);
    command
}

/// Both the list and the random sets are single heads of one layer, so `ablate-one` gives their scores.
#[test]
fn a_list_is_ranked_among_random_sets_of_its_layers() {
    let folder = folder();
    command(folder.path(), &["L2H3"]).assert().success().stdout("results/tiny/audit-first-10.csv\n");
    test_support::command("ablate-one", folder.path())
        .args(["--limit", "first:10", "--resamples", "0"])
        .assert()
        .success();
    let alone: Vec<AblationRow> = rows(folder.path(), "ablate-one-first-10.csv");
    let score = |name: &str| alone.iter().find(|row| row.head_id().to_string() == name).unwrap().score;
    let all: Vec<AuditRow> = rows(folder.path(), "audit-first-10.csv");
    let (list, draws) = (&all[0], &all[1..]);
    assert_eq!((list.draw, list.masked_heads.as_str(), draws.len()), (None, "self:2:3", 200));
    for (row, seed) in draws.iter().zip(1..) {
        assert_eq!(row.draw, Some(seed));
        assert!(row.masked_heads.starts_with("self:2:"), "{row:?}");
        assert!((row.score - score(&row.masked_heads)).abs() < 1e-9, "{row:?}");
    }
    // 200 draws of 4 heads: 50 each, with a standard deviation of 6
    for head in 1..=4 {
        let drawn = draws.iter().filter(|row| row.masked_heads == format!("self:2:{head}")).count();
        assert!((25..=75).contains(&drawn), "head {head}: {drawn}");
    }
    let larger = draws.iter().filter(|row| row.score > list.score).count(); // nats
    let as_large = draws.iter().filter(|row| row.score >= list.score).count();
    assert_eq!((list.rank, list.draws), (Some(1 + larger), Some(200)));
    assert_eq!(list.p_rank, Some((1 + as_large) as f64 / 201.0));
    // the list is one head of four: finding it has probability 1/4, not finding it p = 1
    assert_eq!(list.found_again_by_chance, Some(0.25));
    assert_eq!(list.p_found_again, Some(if list.found_again == Some(1) { 0.25 } else { 1.0 }));
    assert!(list.delta_low.unwrap() <= list.score_delta && list.score_delta <= list.delta_high.unwrap());

    let before = read(folder.path(), "results/tiny/audit-first-10.csv");
    command(folder.path(), &["L2H3"]).assert().success();
    assert_eq!(read(folder.path(), "results/tiny/audit-first-10.csv"), before, "nothing is measured again");
    command(folder.path(), &["L2H3", "--draws", "210"]).assert().success();
    assert_eq!(rows::<AuditRow>(folder.path(), "audit-first-10.csv").len(), 211);
}

/// Combines a list from a file, several splits, and a ranking by a gradient.
#[test]
fn a_list_of_a_file_is_audited_on_each_split() {
    let folder = folder();
    fs::write(folder.path().join("heads.yaml"), "heads:  # two\n  - L1H1\n  - \"self:2:4\"\n").unwrap();
    let arguments = ["heads.yaml", "--split", "test,shifted", "--by", "importance", "--estimate-limit", "20"];
    let paths = "results/tiny/audit-first-10.csv\nresults/tiny/audit-shifted-first-10.csv\n";
    command(folder.path(), &arguments).assert().success().stdout(paths);
    for file in ["audit-first-10.csv", "audit-shifted-first-10.csv"] {
        let all: Vec<AuditRow> = rows(folder.path(), file);
        assert_eq!((all.len(), all[0].masked_heads.as_str()), (201, "self:1:1+self:2:4"));
        assert!(all[1..].iter().all(|row| row.masked_heads.matches("self:1:").count() == 1));
        assert_eq!(all[0].found_again_by_chance, Some(0.5));
    }
}

#[test]
fn an_oracle_ranks_heads_under_the_ablation_of_the_list() {
    let folder = folder();
    let arguments = ["L2H3", "--by", "oracle", "--ablation", "mean", "--estimate-limit", "20"];
    command(folder.path(), &arguments).assert().success();
    let files = fs::read_dir(folder.path().join("results/tiny")).unwrap();
    let names: Vec<String> = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let sweeps: Vec<&String> =
        names.iter().filter(|name| name.starts_with("ablate-one") && name.ends_with("20.csv")).collect();
    assert!(!sweeps.is_empty() && sweeps.iter().all(|name| name.contains("mean")), "{names:?}");
}

#[test]
fn what_cannot_be_audited_is_refused_in_one_line() {
    let folder = folder();
    for (arguments, expected) in [
        (&["L0H1"][..], "`self:0:1` is not a head"),
        (&["2:9"], "no head 9 in a layer of `self`: heads are numbered 1 to 4"),
        (
            &["missing.yaml"],
            "the list `missing.yaml`, of a file or of arguments: `missing.yaml` is not a head",
        ),
        (&["L1H1", "1:1"], "`self:1:1` is there twice"),
        (&["L1H1,L1H2,L1H3,L1H4"], "the list has all heads of its layers"),
        (&["L1H1", "--by", "random"], "--by random: heads are not ranked by it one by one"),
        (&["L1H1", "--estimate-on", "test"], "--estimate-on test is a split that is scored"),
        (&["L1H1", "--split", "test,dev", "--output", "a.csv"], "--output is for one split"),
    ] {
        let said = refusal(&mut command(folder.path(), arguments));
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    command(folder.path(), &["L1H1", "--draws", "20"]).assert().failure().code(2);
}
