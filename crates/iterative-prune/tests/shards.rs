//! The whole command in shards, and merged, on a setup that trains in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use tempfile::TempDir;
use test_support::{TRANSLATOR, read, trained};

const TABLE: &str = "results/tiny/iterative-prune.csv";
const STATISTICS: &str = "results/tiny/iterative-prune.segments.csv.gz";

const ARGUMENTS: [&str; 8] =
    ["--resamples", "99", "--estimate-limit", "40", "--step-percent", "30", "--random-orders", "2"];

fn folder() -> TempDir {
    trained(
        TRANSLATOR,
        "iterative-prune",
        &["--limit", "first:1", "--estimate-limit", "5", "--step-percent", "100"],
    )
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = test_support::command("iterative-prune", folder);
    command.args(ARGUMENTS).args(arguments);
    command
}

fn merge(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("merge").unwrap();
    command.current_dir(folder).arg("tiny");
    command
}

/// Head sets that several curves share, such as all heads, are rows of several shards.
#[test]
fn curves_in_shards_become_the_file_of_one_machine() {
    let orders = ["--order", "importance,random", "--attention", "all,enc-dec"];
    let (whole, apart) = (folder(), folder());
    command(whole.path(), &orders).assert().success();
    for shard in ["3/3", "1/3", "2/3"] {
        command(apart.path(), &[&orders[..], &["--shard", shard]].concat()).assert().success();
    }
    merge(apart.path()).assert().success().stdout(contains("rows of 3 shards"));
    for file in [TABLE, STATISTICS] {
        assert_eq!(read(apart.path(), file), read(whole.path(), file), "{file}");
    }
}

#[test]
fn an_oracle_needs_all_rows_of_ablate_one_before_it_is_sharded() {
    let folder = folder();
    let sharded = ["--order", "oracle", "--shard", "1/2"];
    let message = test_support::refusal(&mut command(folder.path(), &sharded));
    assert!(message.contains("`results/tiny/ablate-one.csv` does not have all rows yet"), "{message}");
    let mut ablate_one = test_support::command("ablate-one", folder.path());
    ablate_one.args(["--resamples", "0"]).assert().success();
    for shard in ["1/2", "2/2"] {
        command(folder.path(), &["--order", "oracle", "--shard", shard]).assert().success();
    }
    merge(folder.path()).assert().success();
}

#[test]
fn what_has_no_independent_rows_refuses_a_shard_and_says_why() {
    let folder = folder();
    let cases: [(&str, &[&str], &str); 4] = [
        ("iterative-prune", &["--recompute"], "with --recompute each step"),
        ("importance", &[], "scored by the same passes"),
        ("speed-bench", &[], "a ratio on one machine"),
        ("cross-domain", &[], "two sweeps of ablate-one"),
    ];
    for (program, arguments, reason) in cases {
        let mut command = test_support::command(program, folder.path());
        let message = test_support::refusal(command.args(arguments).args(["--shard", "1/2"]));
        assert!(message.starts_with("error: --shard 1/2: ") && message.contains(reason), "{message}");
    }
}
