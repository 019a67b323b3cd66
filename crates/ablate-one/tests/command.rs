//! The whole command on a setup that trains in a second.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use records::{AblationRow, AuditRow, Signature};
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, program, read, refuses, said, with_model};

const TABLE: &str = "results/tiny/ablate-one.csv";

fn command(folder: &Path) -> Command {
    test_support::command_with("ablate-one", folder, &["--resamples", "99"])
}

#[test]
fn every_head_has_one_row_with_its_test() {
    let folder = with_model(TRANSLATOR);
    command(folder.path()).assert().success().stdout("results/tiny/ablate-one.csv\n");
    let rows: Vec<AblationRow> = test_support::rows(folder.path(), "ablate-one.csv");
    assert_eq!(rows.len(), 3 * 2 * 3);
    for row in &rows {
        assert_eq!(row.score_delta, row.score - row.base_score);
        assert_eq!(row.base_score, rows[0].base_score);
        // 2 (1 + count) / (99 + 1) is a multiple of 1/50
        let p = row.p_bootstrap.unwrap();
        assert!((0.02..=1.0).contains(&p) && ((p * 50.0).round() - p * 50.0).abs() < 1e-9, "{p}");
        assert!(row.p_koehn.unwrap() <= p);
        let p = row.p_value.unwrap();
        assert!(row.p_adjusted.unwrap() >= p && row.p_benjamini_hochberg.unwrap() >= p);
        assert!(row.delta_low.unwrap() <= row.delta_high.unwrap());
    }
    assert!(rows.iter().any(|row| row.score_delta != 0.0), "masking must change something");
    let signature = Signature::read(&folder.path().join("results/tiny/ablate-one.json")).unwrap().unwrap();
    let weights = records::sha256_file(&folder.path().join("data/models/tiny/model.safetensors")).unwrap();
    assert_eq!(signature.identity.weights, Some(weights));
}

/// The memory limit leaves room for one sentence per batch.
#[test]
fn neither_the_order_of_types_nor_threads_nor_memory_changes_the_file() {
    let (together, apart) = (with_model(TRANSLATOR), with_model(TRANSLATOR));
    let file = "results/tiny/ablate-one-first-5.csv";
    command(together.path()).args(["--limit", "first:5", "--threads", "2"]).assert().success();
    for attention in ["dec-dec", "enc-enc", "all"] {
        let scarce = ["--limit", "first:5", "--threads", "1", "--memory", "1K", "--attention", attention];
        command(apart.path()).args(scarce).assert().success();
    }
    assert_eq!(read(together.path(), file), read(apart.path(), file));
}

/// A run with other settings writes to a new file; if --output names the existing file, it is refused.
#[test]
fn runs_with_other_settings_leave_existing_results_unchanged() {
    let folder = with_model(TRANSLATOR);
    let enc_enc = ["--attention", "enc-enc"];
    command(folder.path()).args(enc_enc).assert().success();
    let before = read(folder.path(), TABLE);
    let other = ["--attention", "dec-dec", "--limit", "first:3", "--split", "shifted"];
    let file = "results/tiny/ablate-one-shifted-first-3.csv\n";
    command(folder.path()).args(other).assert().success().stdout(file);
    let rescaled = [&enc_enc[..], &["--rescale", "--shard", "2/2"]].concat();
    let rescaled = command(folder.path()).args(rescaled).output().unwrap();
    let own = String::from_utf8(rescaled.stdout).unwrap();
    assert!(own.starts_with("results/tiny/ablate-one-") && own.ends_with(".shard-2-of-2.csv\n"), "{own}");
    let said = String::from_utf8(rescaled.stderr).unwrap();
    assert!(said.contains("arguments.rescale: false in the file, true now"), "{said}");
    let into = ["--attention", "enc-enc", "--rescale", "--output", TABLE];
    refuses(command(folder.path()).args(into), "belongs to another run");
    assert_eq!(read(folder.path(), TABLE), before);
    command(folder.path()).args(enc_enc).args(["--rescale", "--again"]).assert().success();
    assert_ne!(read(folder.path(), TABLE), before);
}

#[test]
fn faults_are_named_in_one_line() {
    let folder = with_model(TRANSLATOR);
    fs::write(folder.path().join("file"), "").unwrap();
    for (arguments, expected) in [
        (["--split", "newstest"], "no split `newstest`: this setup has train, dev, test, shifted"),
        (["--attention", "self"], "no `self` attention in this model: it has enc-enc, enc-dec, dec-dec"),
        (["--output", "file/ablate-one.csv"], "error: cannot write `file`"),
    ] {
        refuses(command(folder.path()).args(arguments), expected);
    }
    command(folder.path()).args(["--attention", "enc"]).assert().code(2).stderr(contains("one of enc-enc"));
    for (file, content, expected) in [
        ("model.safetensors", "torn", "model.safetensors`"),
        ("tokenizer.json", "{", "tokenizer.json"),
        ("config.json", r#"{"model_type": "bert"}"#, "model_type is `bert`"),
    ] {
        let folder = with_model(TRANSLATOR);
        fs::write(folder.path().join("data/models/tiny").join(file), content).unwrap();
        refuses(&mut command(folder.path()), expected);
    }
}

/// The replacement of each text and its head outputs do not depend on batch size or threads; another draw gives other results.
#[test]
fn resample_ablation_does_not_depend_on_batches_or_threads() {
    const RESAMPLE: [&str; 4] = ["--ablation", "resample", "--reference-limit", "30"];
    for spec in [CLASSIFIER, TRANSLATOR, LANGUAGE_MODEL] {
        let folder = with_model(spec);
        let scores = |arguments: &[&str], file: &str| {
            command(folder.path()).args(RESAMPLE).args(arguments).assert().success();
            let rows: Vec<AblationRow> = test_support::rows(folder.path(), file);
            rows.into_iter().map(|row| row.score).collect::<Vec<_>>()
        };
        let found = scores(&[], "ablate-one-resample-1.csv");
        let small = ["--memory", "6M", "--threads", "1", "--output", "results/tiny/small.csv"];
        for (found, small) in found.iter().zip(scores(&small, "small.csv")) {
            assert!((found - small).abs() < 1e-5, "{found} {small}");
        }
        assert_ne!(found, scores(&["--draw", "2"], "ablate-one-resample-2.csv"));
        let own = [&RESAMPLE[..], &["--reference-on", "test"]].concat();
        refuses(command(folder.path()).args(own), "where a text may replace itself");
        refuses(command(folder.path()).args(["--draw", "2"]), "--draw is for --ablation resample");
    }
}

#[test]
fn a_sweep_announces_its_work_and_how_to_resume_it() {
    let folder = with_model(TRANSLATOR);
    let arguments = ["tiny.toml", "--limit", "500", "--attention", "enc-enc", "--resamples", "0"];
    let said = said(program("ablate-one", folder.path()).args(arguments));
    assert!(said.contains("`test` has only 24 segments, and all are scored"), "{said}");
    assert!(said.contains("masking 6 head sets on all 24 segments of split `test`: 7 evaluations"), "{said}");
    assert!(said.contains(&format!("resume with `ablate-one {}`", arguments.join(" "))), "{said}");
}

fn audit(folder: &Path, arguments: &[&str]) -> Command {
    let small = ["--resamples", "99", "--limit", "first:10"];
    test_support::command_with("audit", folder, &[arguments, &small].concat())
}

/// Both the list and the random sets are single heads of one layer, so `ablate-one` gives their scores.
#[test]
fn a_list_is_ranked_among_random_sets_of_its_layers() {
    let folder = with_model(LANGUAGE_MODEL);
    audit(folder.path(), &["L2H3"]).assert().success().stdout("results/tiny/audit-first-10.csv\n");
    let mut single = test_support::command("ablate-one", folder.path());
    single.args(["--limit", "first:10", "--resamples", "0"]).assert().success();
    let alone: Vec<AblationRow> = test_support::rows(folder.path(), "ablate-one-first-10.csv");
    let score = |name: &str| alone.iter().find(|row| row.head_id().to_string() == name).unwrap().score;
    let all: Vec<AuditRow> = test_support::rows(folder.path(), "audit-first-10.csv");
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
    // the list is one head of four: finding it again has p = 1/4, not finding it p = 1
    assert_eq!(list.found_again_by_chance, Some(0.25));
    assert_eq!(list.p_found_again, Some(if list.found_again == Some(1) { 0.25 } else { 1.0 }));
    assert!(list.delta_low.unwrap() <= list.score_delta && list.score_delta <= list.delta_high.unwrap());

    let before = read(folder.path(), "results/tiny/audit-first-10.csv");
    audit(folder.path(), &["L2H3"]).assert().success();
    assert_eq!(read(folder.path(), "results/tiny/audit-first-10.csv"), before, "nothing is measured again");
    audit(folder.path(), &["L2H3", "--draws", "210"]).assert().success();
    assert_eq!(test_support::rows::<AuditRow>(folder.path(), "audit-first-10.csv").len(), 211);
}

/// Combines a list from a file, several splits, and a ranking by a gradient.
#[test]
fn a_list_from_a_file_is_audited_on_each_split_and_invalid_audits_are_refused() {
    let folder = with_model(LANGUAGE_MODEL);
    fs::write(folder.path().join("heads.yaml"), "heads:  # two\n  - L1H1\n  - \"self:2:4\"\n").unwrap();
    let arguments = ["heads.yaml", "--split", "test,shifted", "--by", "importance", "--estimate-limit", "20"];
    let paths = "results/tiny/audit-first-10.csv\nresults/tiny/audit-shifted-first-10.csv\n";
    audit(folder.path(), &arguments).assert().success().stdout(paths);
    for file in ["audit-first-10.csv", "audit-shifted-first-10.csv"] {
        let all: Vec<AuditRow> = test_support::rows(folder.path(), file);
        assert_eq!((all.len(), all[0].masked_heads.as_str()), (201, "self:1:1+self:2:4"));
        assert!(all[1..].iter().all(|row| row.masked_heads.matches("self:1:").count() == 1));
        assert_eq!(all[0].found_again_by_chance, Some(0.5));
    }
    for (arguments, expected) in [
        (&["missing.yaml"][..], "invalid list of heads `missing.yaml` (a file or heads): "),
        (&["L1H1,L1H2,L1H3,L1H4"], "the list contains all heads of its layers"),
        (&["L1H1", "--by", "random"], "--by random does not rank single heads"),
        (&["L1H1", "--estimate-on", "test"], "--estimate-on test is a split that is scored"),
        (&["L1H1", "--split", "test,dev", "--output", "a.csv"], "--output allows only one split"),
    ] {
        refuses(&mut audit(folder.path(), arguments), expected);
    }
    audit(folder.path(), &["L1H1", "--draws", "20"]).assert().failure().code(2);
}

#[test]
fn an_oracle_ranks_heads_under_the_ablation_of_the_list() {
    let folder = with_model(LANGUAGE_MODEL);
    let arguments = ["L2H3", "--by", "oracle", "--ablation", "mean", "--estimate-limit", "20"];
    audit(folder.path(), &arguments).assert().success();
    let files = fs::read_dir(folder.path().join("results/tiny")).unwrap();
    let names: Vec<String> = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let sweeps: Vec<&String> =
        names.iter().filter(|name| name.starts_with("ablate-one") && name.ends_with("20.csv")).collect();
    assert!(!sweeps.is_empty() && sweeps.iter().all(|name| name.contains("mean")), "{names:?}");
}
